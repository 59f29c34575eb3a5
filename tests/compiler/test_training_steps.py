"""A whole training step is one program: losses, gradients, buffers, random numbers and versions are those of eager."""

from contextlib import nullcontext

import pytest

import pullback as torch
from pullback import nn, optim
from pullback.nn import functional as F
from tests.compiler.support import compared, same

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p),
    "ASGD": lambda p: optim.ASGD(p),
    "NAdam": lambda p: optim.NAdam(p),
    "RAdam": lambda p: optim.RAdam(p),
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.5, centered=True),
    "Rprop": lambda p: optim.Rprop(p),
    "Adafactor": lambda p: optim.Adafactor(p, lr=0.05),
}
OTHERWISE = {"Optimizer", "LBFGS", "Muon", "SparseAdam"}
"""Those that take a closure, matrices alone or sparse gradients: they have tests of their own."""


def batches(*shapes, count=4):
    """Calls with new data each time."""
    return [lambda step: step(*[torch.randn(*shape) for shape in shapes]) for _ in range(count)]


def mlp(make, clip=True):
    def build():
        model = nn.Sequential(
            nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.4), nn.BatchNorm1d(8), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)
        )
        optimizer = make(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        return step, [*model.parameters(), *model.buffers()]

    return build


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_updates_as_it_does_eagerly(name):
    compared(mlp(OPTIMIZERS[name]), batches((5, 6), (5, 1)))


def test_every_optimizer_is_among_them():
    known = {name for name in dir(optim) if isinstance(getattr(optim, name), type)}
    assert known == {name.partition(" ")[0] for name in OPTIMIZERS} | OTHERWISE


def test_muon_updates_matrices():
    def make():
        model = nn.Sequential(nn.Linear(4, 6, bias=False), nn.Tanh(), nn.Linear(6, 3, bias=False))
        optimizer = optim.Muon(model.parameters(), lr=0.05)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, list(model.parameters())

    compared(make, batches((5, 4)))


def test_sparse_adam_and_lbfgs_run_as_they_do_eagerly():
    def sparse():
        table = nn.Embedding(7, 3, sparse=True)
        optimizer = optim.SparseAdam(list(table.parameters()), lr=0.05)

        def step(x):
            optimizer.zero_grad()
            loss = (table((x * 10).long().abs() % 7) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, []

    def closed():
        w = torch.randn(4, requires_grad=True)
        optimizer = optim.LBFGS([w], lr=0.5, max_iter=3)

        def step(x):
            def loss():
                optimizer.zero_grad()
                value = ((w * x).tanh() - 0.3).pow(2).sum()
                value.backward()
                return value

            return optimizer.step(loss).detach()

        return step, [w]

    compared(sparse, batches((5,)), program=False)
    compared(closed, batches((4,)), program=False)


def test_a_rate_that_changes_is_no_reason_to_compile_again():
    holder = []

    def build():
        step, tensors = mlp(lambda p: holder.append(optim.Adam(p, lr=0.1)) or holder[-1])()
        return step, tensors

    def call(rate):
        def run(step):
            holder[-1].param_groups[0]["lr"] = rate
            return step(torch.randn(5, 6), torch.randn(5, 1))

        return run

    function = compared(build, [call(rate) for rate in (0.1, 0.1, 0.05, 0.02, 0.01)])
    assert len(function._compiled.entries) == 1


def test_another_batch_size_is_another_program():
    sizes = [(5, 6), (5, 6), (3, 6), (5, 6), (3, 6)]
    calls = [lambda step, n=n: step(torch.randn(n, 6), torch.randn(n, 1)) for n, _ in sizes]
    compared(mlp(OPTIMIZERS["SGD"]), calls)


def test_gradients_add_up_where_nobody_forgets_them():
    def build():
        model = nn.Linear(3, 2)

        def step(x):
            loss = model(x).square().sum()
            loss.backward()
            return loss

        return step, list(model.parameters())

    compared(build, batches((4, 3), count=5))


def test_a_convolutional_network_with_statistics():
    def build():
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
        )
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step, [*model.parameters(), *model.buffers()]

    calls = [lambda step: step(torch.randn(2, 1, 6, 6), torch.randint(3, (2,))) for _ in range(4)]
    compared(build, calls)


def test_a_transformer_with_a_recurrent_head():
    def build():
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        cell = nn.LSTM(8, 5, batch_first=True)
        parameters = [*layer.parameters(), *cell.parameters()]
        optimizer = optim.AdamW(parameters, eps=1e-3)  # the gradient of the keys' bias is nothing but rounding

        def step(x):
            optimizer.zero_grad()
            out, (h, c) = cell(layer(x))
            loss = out.mean() + h.sum() * c.mean()
            loss.backward()
            optimizer.step()
            return loss

        return step, parameters

    compared(build, batches((2, 5, 8)))


def test_embeddings_and_wrong_indices():
    def build():
        table = nn.Embedding(7, 4, padding_idx=0)

        def step(index):
            table.zero_grad()
            loss = table(index).tanh().sum()
            loss.backward()
            return loss

        return step, list(table.parameters())

    function = compared(build, [lambda step: step(torch.randint(7, (3, 2))) for _ in range(4)])
    with pytest.raises(IndexError):
        function(torch.tensor([[1, 2], [3, 4], [5, 9]]))


def test_an_error_in_the_function_is_the_functions_own():
    def build():
        w = torch.randn(3, requires_grad=True)
        return (lambda x: (w * x).sum()), [w]

    function = compared(build, batches((3,), count=3))
    with pytest.raises(RuntimeError, match="must match the size"):
        function(torch.randn(4))
    assert function(torch.ones(3)).shape == ()


def test_a_custom_function_and_a_checkpoint():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    def build():
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())

        def step(x):
            model.zero_grad()
            out = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
            loss = Twice.apply(out).sum()
            loss.backward()
            return loss

        return step, list(model.parameters())

    compared(build, batches((2, 3)), program=False)


VIEWS = {
    "of an argument": lambda x, w: (x.T, y := x[0], x.view(-1), x.T, y),
    "of a parameter": lambda x, w: (w.T, w[1] * x, w.detach()),
    "of what is returned": lambda x, w: ((y := x * w), y.T, y.detach(), y[0]),
    "of what is not returned": lambda x, w: (x * w).chunk(2, 1),
    "of each other": lambda x, w: {"a": (y := (x @ w).view(-1))[2:], "b": y[:3].view(3, 1), "c": x.data},
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_that_are_views_follow_the_history_of_what_they_show(name):
    found = []
    for compiled in (None, {"exact": True}, {}):
        function = VIEWS[name] if compiled is None else torch.compile(VIEWS[name], options=compiled)
        torch.manual_seed(0)
        w, seen = torch.randn(4, 4, requires_grad=True), []
        for k in range(6):
            x = torch.randn(4, 4, requires_grad=True)
            given = x * 1 if k % 2 else x
            result = function(given, w)
            results = list(result.values()) if isinstance(result, dict) else list(result)
            if k > 3 and results[0].grad_fn is not None and name in ("of an argument", "of what is returned"):
                with pytest.raises(RuntimeError) if results[0]._base is x else nullcontext():
                    results[0].mul_(3)
            sum([(t * t).sum() for t in results]).backward()
            seen.append([*[t.detach().numpy().copy() for t in results], *[t._version for t in results]])
            seen.append([t.requires_grad for t in results] + [t.is_leaf for t in results])
            seen.append([None if t.grad is None else t.grad.numpy().copy() for t in (x, w)])
        found.append(seen)
        if compiled is not None:
            assert [entry.why for entry in function._compiled.entries if entry.why] == []
            assert sum([entry.calls for entry in function._compiled.entries]) >= 3
    same(found[1], found[0])
    same(found[2], found[0], rounding=True)


def test_gradients_that_lie_otherwise_arrive_where_they_belong():
    w = torch.randn(3, 4, requires_grad=True)
    f = lambda x: (x * w).tanh()
    compiled = torch.compile(f)
    for _ in range(4):
        x = torch.randn(3, 4)
        for use in (
            lambda y: (y.T * torch.arange(12.0).reshape(4, 3)).sum(),
            lambda y: y.sum(),
            lambda y: y[:, 1:].prod(),
        ):
            (one,), (other,) = torch.autograd.grad(use(compiled(x)), w), torch.autograd.grad(use(f(x)), w)
            torch.testing.assert_close(one, other)


def test_writes_to_a_gradient_that_the_function_makes_are_counted_once():
    def make():
        w = torch.randn(3, requires_grad=True)

        def step(x):
            w.grad = None
            y = (w * x).tanh()
            y.sum().backward(retain_graph=True)
            (y * y).sum().backward()
            return y.detach()

        return step, [w]

    compared(make, batches((3,)))
