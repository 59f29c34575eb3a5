"""Seed 000: the graph, an engine written by hand, gradcheck, anomaly mode, grad mode and the profiler.

The document was written for older versions of torch: in torch 2.13 `ExpBackward` is called `ExpBackward0`.
"""

from textwrap import dedent

import pytest


def first_graph(torch):
    A = torch.tensor(2., requires_grad=True)
    B = torch.tensor(.5, requires_grad=True)
    E = torch.tensor(1., requires_grad=True)
    C = A * B
    D = C.exp()
    F = D + E
    print(F)
    print([x.is_leaf for x in [A, B, C, D, E, F]])
    print([x.grad_fn for x in [F, D, C, A]])
    print(F.grad_fn.next_functions)
    F.backward(retain_graph=True)
    print(A.grad, B.grad, E.grad)
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        print(C.grad, D.grad)


def test_the_first_graph_prints_its_nodes_and_gradients(printed):
    assert printed(first_graph) == dedent("""\
        tensor(3.7183, grad_fn=<AddBackward0>)
        [True, True, False, False, True, False]
        [<AddBackward0 object at 0x>, <ExpBackward0 object at 0x>, <MulBackward0 object at 0x>, None]
        ((<ExpBackward0 object at 0x>, 0), (<AccumulateGrad object at 0x>, 0))
        tensor(1.3591) tensor(5.4366) tensor(1.)
        None None
    """)


def test_retain_graph_allows_a_second_backward_and_leaves_accumulate(torch):
    A = torch.tensor(2., requires_grad=True)
    F = (A * .5).exp() + 1
    F.backward(retain_graph=True)
    once = A.grad.clone()
    F.backward()
    assert torch.equal(A.grad, 2 * once)


def test_the_second_item_of_an_edge_counts_the_outputs_of_its_op(torch):
    a, b = torch.ones(2, requires_grad=True).unbind()
    assert (a.output_nr, b.output_nr) == (0, 1)
    (first, first_nr), (second, second_nr) = (a * b).grad_fn.next_functions
    assert first is second and (first_nr, second_nr) == (0, 1)
    assert type(first).__name__ == first.name() == "UnbindBackward0"


def test_a_leaf_has_no_grad_fn_but_an_accumulate_grad_at_the_end_of_its_edges(torch):
    E = torch.tensor(1., requires_grad=True)
    assert E.grad_fn is None
    (end, _), _ = (E + 1).grad_fn.next_functions
    assert type(end).__name__ == "AccumulateGrad"
    assert end.variable is E
    assert end.next_functions == ()


def autograd(grad_fn, gradient):
    """Send a gradient from a node to the leaves, one path at a time, and leave it in `auto_grad`."""
    auto_grad = {}  # noqa: F841
    queue = [[grad_fn, gradient]]
    while queue != []:
        item = queue.pop()
        gradients = item[0](item[1])
        functions = [x[0] for x in item[0].next_functions]
        if type(gradients) is not tuple:
            gradients = (gradients, )
        for grad, func in zip(gradients, functions):
            if type(func).__name__ == 'AccumulateGrad':
                if hasattr(func.variable, 'auto_grad'):
                    func.variable.auto_grad = func.variable.auto_grad + grad
                else:
                    func.variable.auto_grad = grad
            else:
                queue.append([func, grad])


def engine_by_hand(torch):
    A = torch.tensor([3.], requires_grad=True)
    B = torch.tensor([2.], requires_grad=True)
    C = A ** 2
    D = B ** 2
    E = C * D
    F = D + E

    autograd(F.grad_fn, torch.tensor(1))
    print(A.auto_grad, B.auto_grad)


def test_the_engine_by_hand_walks_the_graph(printed):
    # The document prints tensor(24., grad_fn=<UnbindBackward>) tensor(40., grad_fn=<AddBackward0>). In torch 2.13 the
    # gradients have the shape of the leaves and the nodes of the products.
    assert printed(engine_by_hand) == dedent("""\
        tensor([24.], grad_fn=<MulBackward0>) tensor([40.], grad_fn=<AddBackward0>)
    """)


def make_mlp(torch):
    nn = torch.nn

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(10, 5)
            self.relu = nn.ReLU()
            self.fc2 = nn.Linear(5, 2)
            self.fc3 = nn.Linear(5, 2)
            self.fc4 = nn.Linear(2, 2)

        def forward(self, x):
            x = self.fc1(x)
            x = self.relu(x)
            x1 = self.fc2(x)
            x2 = self.fc3(x)
            x2 = self.relu(x2)
            x2 = self.fc4(x2)
            return x1 + x2

    return MLP


def mlp_by_hand_and_by_backward(torch):
    MLP = make_mlp(torch)
    x = torch.ones([10], requires_grad=True)
    mlp = MLP()
    mlp_state_dict = mlp.state_dict()

    mlp = MLP()
    mlp.load_state_dict(mlp_state_dict)
    y = mlp(x)
    z = torch.sum(y)
    autograd(z.grad_fn, torch.tensor(1.))
    print(x.auto_grad)

    mlp = MLP()
    mlp.load_state_dict(mlp_state_dict)
    y = mlp(x)
    z = torch.sum(y)
    z.backward()
    print(x.grad)


def test_the_engine_by_hand_agrees_with_backward_on_a_model(printed):
    assert printed(mlp_by_hand_and_by_backward) == dedent("""\
        tensor([-0.0755, -0.1870,  0.0643, -0.1368,  0.0436, -0.0290, -0.1881,  0.1726,
                 0.1335,  0.0459], grad_fn=<AddBackward0>)
        tensor([-0.0755, -0.1870,  0.0643, -0.1368,  0.0436, -0.0290, -0.1881,  0.1726,
                 0.1335,  0.0459])
    """)


def sigmoid_function(torch):
    class Sigmoid(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            output = 1 / (1 + torch.exp(-x))
            ctx.save_for_backward(output)
            return output

        @staticmethod
        def backward(ctx, grad_output):
            output,  = ctx.saved_tensors
            grad_x = output * (1 - output) * grad_output
            return grad_x

    return Sigmoid


@pytest.mark.parametrize("eps", [1e-4, 1e-6])
def test_gradcheck_passes_in_double_precision(torch, eps):
    Sigmoid = sigmoid_function(torch)
    test_input = torch.randn(4, requires_grad=True, dtype=torch.float64)
    assert torch.autograd.gradcheck(Sigmoid.apply, (test_input,), eps=eps) is True
    assert torch.autograd.gradcheck(torch.sigmoid, (test_input,), eps=eps) is True


def failing_function(torch):
    """Return the function whose backward fails, as `run_fn` of the document's anomaly example does."""

    class MyFunc(torch.autograd.Function):
        @staticmethod
        def forward(ctx, inp):
            return inp.clone()

        @staticmethod
        def backward(ctx, gO):
            raise RuntimeError("Some error in backward")

    return MyFunc


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_detect_anomaly_lets_the_error_of_backward_through(torch, error_of):
    MyFunc = failing_function(torch)

    def run_fn(a):
        out = MyFunc.apply(a)
        return out.sum()

    def program(torch):
        with torch.autograd.detect_anomaly():
            inp = torch.rand(10, 10, requires_grad=True)
            out = run_fn(inp)
            out.backward()

    assert error_of(program).startswith("RuntimeError: Some error in backward")


def test_detect_anomaly_warns_and_shows_where_the_failing_op_was_called(torch):
    MyFunc = failing_function(torch)
    with pytest.warns(UserWarning) as warned, pytest.raises(RuntimeError):
        with torch.autograd.detect_anomaly():
            out = MyFunc.apply(torch.rand(10, 10, requires_grad=True)).sum()
            out.backward()
    texts = [str(warning.message) for warning in warned]
    assert any(text.startswith(
        "Anomaly Detection has been enabled. This mode will increase the runtime "
        "and should only be enabled for debugging."
    ) for text in texts)
    path = next(text for text in texts if text.startswith(
        "Error detected in MyFuncBackward. Traceback of forward call that caused the error:"))
    assert "out = MyFunc.apply(torch.rand(10, 10, requires_grad=True)).sum()" in path


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in")
def test_detect_anomaly_finds_the_op_that_makes_nan(error_of):
    def program(torch):
        with torch.autograd.detect_anomaly():
            x = torch.tensor([-1.], requires_grad=True)
            torch.sqrt(x).backward()

    assert error_of(program).startswith("RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.")


def test_no_grad_builds_no_graph(torch):
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        y = (x * 2).exp()
    assert y.grad_fn is None and not y.requires_grad


def test_eval_and_no_grad_have_nothing_to_do_with_each_other(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = torch.randn(8, 4)

    model.eval()
    assert model(x).requires_grad, "eval() keeps recording"
    assert torch.equal(model(x), model(x)), "eval() makes Dropout the identity and BatchNorm use its running statistics"
    assert model[1].num_batches_tracked == 0

    model.train()
    with torch.no_grad():
        y, z = model(x), model(x)
    assert not y.requires_grad
    assert not torch.equal(y, z), "no_grad() leaves Dropout dropping"
    assert model[1].num_batches_tracked == 2, "and BatchNorm counting"


def profile(torch, model, x, rounds=100):
    """Run the document's profiler example and return the profile."""
    with torch.autograd.profiler.profile() as prof:
        for _ in range(rounds):
            y = model(x)
            y = torch.sum(y)
            y.backward()
    return prof


def check_profile(prof, convolutions):
    table = prof.key_averages().table(sort_by="self_cpu_time_total")
    for column in ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]:
        assert column in table
    assert "Self CPU time total:" in table
    counts = {event.key: event.count for event in prof.key_averages()}
    assert counts["aten::conv2d"] == convolutions
    assert counts["autograd::engine::evaluate_function: ConvolutionBackward0"] == convolutions
    times = [event.self_cpu_time_total for event in prof.key_averages()]
    assert min(times) >= 0 and sum(times) > 0


def test_the_profiler_counts_and_times_every_function(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(4, 2))
    x = torch.randn((1, 3, 16, 16), requires_grad=True)
    check_profile(profile(torch, model, x, rounds=3), convolutions=3)


@pytest.mark.slow
@pytest.mark.parametrize("torch", ["pullback"], indirect=True)
def test_the_profiler_on_resnet18(torch):
    # torchvision's resnet18 is pullback.models.resnet18. Two of the document's hundred rounds tell the same.
    x = torch.randn((1, 3, 224, 224), requires_grad=True)
    model = torch.models.resnet18()
    check_profile(profile(torch, model, x, rounds=2), convolutions=2 * 20)
