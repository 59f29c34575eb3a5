"""torch.utils.flop_counter on torch and on pullback: the counts of networks, forwards and backwards, by module."""

import pytest

from tests.conformance.both import attempt, on_both, same


def counter(torch):
    """The module of the counter."""
    return __import__(f"{torch.__name__}.utils.flop_counter", fromlist=["FlopCounterMode"])


def counted(torch, model, *inputs):
    """The counts of a forward pass, and of one with its backward pass."""
    found = []
    for backward in (False, True):
        with counter(torch).FlopCounterMode(display=False) as counting:
            out = model(*inputs)
            if backward:
                (out[0] if isinstance(out, tuple) else out).sum().backward()
        counts = counting.get_flop_counts()
        found.append({name: {str(op): n for op, n in counts[name].items()} for name in sorted(counts)})
        found.append(counting.get_total_flops())
    return found


MODELS = {
    "mlp": ("nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))", (4, 3)),
    "linear of three dimensions": ("nn.Linear(3, 5)", (2, 4, 3)),
    "linear without bias": ("nn.Linear(3, 5, bias=False)", (2, 4, 3)),
    "convnet": (
        "nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), "
        "nn.Conv2d(4, 8, 3, groups=2), nn.Flatten(), nn.Linear(32, 3))",
        (2, 3, 16, 16),
    ),
    "transposed": ("nn.Sequential(nn.Conv1d(3, 4, 3, dilation=2), nn.ConvTranspose1d(4, 2, 3, stride=2))", (2, 3, 16)),
    "transformer": ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)", (2, 5, 8)),
    "transformer with dropout": ("nn.TransformerEncoderLayer(8, 2, 16)", (5, 2, 8)),
    "lstm": ("nn.LSTM(4, 6, 2)", (5, 2, 4)),
    "gru": ("nn.GRU(4, 6)", (5, 2, 4)),
    "rnn": ("nn.RNN(4, 4)", (3, 2, 4)),
}


@pytest.mark.parametrize("wanted", [False, True], ids=["weights", "input too"])
@pytest.mark.parametrize("name", MODELS)
def test_a_network_costs_what_torch_says(name, wanted):
    text, shape = MODELS[name]

    def program(torch):
        torch.manual_seed(0)
        return counted(torch, eval(text, {"nn": torch.nn}), torch.randn(*shape, requires_grad=wanted))

    same(program)


FUNCTIONS = """F.scaled_dot_product_attention(q, q, q, is_causal=True)
F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)|torch.baddbmm(p, p, p)|torch.einsum('bij,bjk->bik', p, p)
p @ p|torch.bmm(p, p)|torch.addmm(p[0], p[0], p[1])|p @ p[0, 0]|p[0] @ p[1]|torch.dot(p[0, 0], p[0, 1])
torch.outer(p[0, 0], p[0, 1])|torch.linalg.inv(p)|F.bilinear(p, p, p)|F.conv3d(q[:1], q[:1])
torch.chain_matmul(p[0], p[1], p[0])"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [one for line in FUNCTIONS.splitlines() for one in line.split("|")])
def test_a_product_costs_what_torch_says(call):
    def program(torch):
        torch.manual_seed(0)
        q = torch.randn(2, 2, 4, 4, requires_grad=True)
        p = (torch.randn(4, 4, 4) + 5 * torch.eye(4)).requires_grad_()
        model = lambda: eval(call, {"torch": torch, "F": torch.nn.functional, "q": q, "p": p})
        return counted(torch, model)

    same(program)


@on_both
def test_formulas_of_your_own_are_counted(torch):
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    op = torch.library.custom_op("pbflop::twice", twice, mutates_args=())
    flops = counter(torch)

    @flops.register_flop_formula(torch.ops.pbflop.twice)
    def cost(x_shape, *args, out_shape=None, **kwargs):
        return 7 * x_shape[0]

    mapping = {torch.ops.aten.mul: lambda *args, out_shape=None, **kwargs: 1000}
    x = torch.ones(3)
    with flops.FlopCounterMode(display=False, custom_mapping=mapping) as counting:
        op(x)
        x * x
    refused = attempt(lambda: flops.register_flop_formula(torch.ops.pbflop.twice)(cost))
    wrong = attempt(lambda: flops.register_flop_formula(torch.ops.pbflop.twice.default)(cost))
    wrong.text = wrong.text.partition(", got")[0]
    return {str(k): v for k, v in counting.get_flop_counts()["Global"].items()}, refused, wrong


@on_both
def test_a_counter_begins_anew_when_it_is_entered_again(torch):
    counting = counter(torch).FlopCounterMode(display=False)
    x = torch.ones(2, 2)
    totals = []
    for repeats in (1, 3):
        with counting:
            for _ in range(repeats):
                x @ x
        totals.append(counting.get_total_flops())
    return totals
