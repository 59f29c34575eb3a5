"""Native code of programs computes what their steps compute, rounded in another order."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pullback as torch
from pullback import nn, optim
from pullback._runtime.building import loaded
from pullback.kernels import compiled as compiler
from pullback.nn import functional as F

pytestmark = pytest.mark.skipif(compiler.room("runtime.calls") is None, reason="nothing is compiled here")

ACTIVATIONS = [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.Softplus, nn.LeakyReLU]
SHAPES = [(16, 10, 32, 1), (1, 3, 5, 2), (7, 1, 17, 3), (33, 20, 4, 4), (2, 2, 1, 1)]


def regions(steps):
    """How many native functions there are among steps; all that is left beside them are effects."""
    names = [step.name for step in steps]
    assert set(names) <= {"region", "forget_grad", "taken_by", "updated_by"}, names
    return names.count("region")


def losses(way, shape, activation, make, loss):
    torch.manual_seed(0)
    batch, wide, hidden, out = shape
    model = nn.Sequential(
        nn.Linear(wide, hidden),
        activation(),
        nn.Linear(hidden, hidden, bias=False),
        activation(),
        nn.Linear(hidden, out),
    )
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value

    function = torch.compile(step) if way else step
    found = [function(torch.randn(batch, wide), torch.rand(batch, out)).item() for _ in range(8)]
    versions = [p._version for p in model.parameters()]
    grads = [p.grad.numpy().copy() for p in model.parameters()]
    return found, [p.detach().numpy().copy() for p in model.parameters()], grads, versions, function


CASES = [(SHAPES[0], activation, F.mse_loss) for activation in ACTIVATIONS]
CASES += [(shape, nn.ReLU, F.mse_loss) for shape in SHAPES[1:]]
CASES += [(SHAPES[2], nn.Tanh, loss) for loss in (F.l1_loss, F.smooth_l1_loss)]
RULES = [lambda p: optim.SGD(p, lr=0.1, momentum=0.9), lambda p: optim.Adam(p, lr=0.01)]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_training_step_is_one_kernel(case):
    shape, activation, loss = CASES[case]
    make = RULES[case % 2]
    expected = losses(False, shape, activation, make, loss)
    found = losses(True, shape, activation, make, loss)
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-5)
    for part in (1, 2):
        for one, other in zip(found[part], expected[part], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=2e-5)
    assert found[3] == expected[3]
    entry = found[4]._compiled.entries[0]  # the newest: gradients were there before
    assert regions(entry.steps) == 1, entry.source


def test_forward_and_backward_outside_of_the_function():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4))
    compiled = torch.compile(model)
    for _ in range(5):
        x = torch.randn(5, 6, requires_grad=True)
        grads = []
        for function in (model, compiled):
            model.zero_grad()
            x.grad = None
            out = function(x)
            (out * out).sum().backward()
            grads.append(
                [out.detach().numpy(), x.grad.numpy().copy(), *[p.grad.numpy().copy() for p in model.parameters()]]
            )
        for one, other in zip(*grads, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_arrays_that_lie_otherwise_are_no_matter():
    model = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 4))
    compiled = torch.compile(model)
    with torch.no_grad():
        for x in (
            torch.randn(5, 6),
            torch.randn(6, 5).t(),
            torch.randn(5, 12)[:, ::2],
            torch.randn(5, 6).numpy()[::-1],
        ):
            x = x if isinstance(x, torch.Tensor) else torch.from_numpy(x.copy())
            for _ in range(4):
                np.testing.assert_allclose(compiled(x).numpy(), model(x).numpy(), rtol=1e-4, atol=1e-6)


def agree(function, *inputs, calls=4, rtol=1e-5, atol=1e-6):
    """A function compiled gives what it gives; the steps of its program."""
    compiled = torch.compile(function)
    for _ in range(calls):
        found, expected = compiled(*inputs), function(*inputs)
        for one, other in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
            assert one.dtype == other.dtype and one.stride() == other.stride()
            np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=rtol, atol=atol)
    (entry,) = compiled._compiled.entries
    assert entry.why is None
    return entry.steps


def names_of(steps):
    return [step.name for step in steps]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_pointwise_chains_are_one_pass(dtype):
    x, y = torch.randn(700, 300, dtype=dtype), torch.randn(300, dtype=dtype)
    steps = agree(lambda x, y: torch.tanh(x * y + 1) / (x.abs() + 0.5) - y, x, y)
    assert names_of(steps) == ["region"]


def test_views_are_read_where_they_lie():
    x = torch.randn(6, 8, 10)
    steps = agree(lambda x: x.permute(2, 0, 1)[1:7, ::2] * x.transpose(0, 2)[2:8, :, ::2].transpose(1, 2).exp(), x)
    assert "region" in names_of(steps)


def test_a_write_is_seen_by_what_reads_later_and_not_by_what_read_before():
    def f(x):
        y = x * 2
        before = y + 1
        y[1:] = y[:-1] * 3
        y.mul_(2)
        y[0] += before[2]
        return before, y, y.sum(0)

    agree(f, torch.randn(5, 4))


def test_what_is_computed_of_memory_is_computed_before_it_is_overwritten():
    def f(x):
        y = x.clone()
        y[1:] = y[:-1].flip(0)
        y[:, 1:] = y[:, :-1] + 1
        return y

    agree(f, torch.randn(6, 6))


def test_arguments_that_are_written_to_are_written_to():
    def f(x, out):
        out.mul_(0.5).add_(x.exp())
        return out.sum(1)

    compiled = torch.compile(f)
    one, other = torch.ones(4, 3), torch.ones(4, 3)
    for _ in range(5):
        x = torch.randn(4, 3)
        np.testing.assert_allclose(compiled(x, one).numpy(), f(x, other).numpy(), rtol=1e-6)
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-6)
        assert one._version == other._version


@pytest.mark.parametrize("dims", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_over_any_dimensions(dims, keepdim):
    x = torch.randn(7, 5, 33)
    options = {} if dims is None else {"dim": dims, "keepdim": keepdim}
    agree(lambda x: ((x * 2).sum(**options) + 1, x.permute(2, 0, 1).sum(**options)), x, atol=1e-4)


def test_results_have_the_strides_of_eager_results():
    x, w = torch.randn(9, 7), torch.randn(5, 7)
    agree(lambda x, w: (x.t() * 2, (x @ w.t()).t(), w.t() + 1, (w.t() + 1).exp()), x, w)


def test_integers_and_truth_values():
    x, i = torch.randn(40), torch.arange(40)
    agree(lambda x, i: (torch.where(x > 0, x, -x), (i * 2 + 1) // 1, (x > 0) & (i > 3), (i < 5) | (x < 0)), x, i)


def test_two_results_of_one_program_do_not_share_memory_they_did_not_share():
    compiled = torch.compile(lambda x: (x * 2, x * 2, (x + 1).t()))
    x = torch.randn(3, 3)
    kept = [compiled(x) for _ in range(4)]
    for a, b, c in kept:
        a.zero_()
        np.testing.assert_array_equal(b.numpy(), x.numpy() * 2)
        np.testing.assert_array_equal(c.numpy(), (x.numpy() + 1).T)


def test_stacks_of_products_softmax_and_norms_are_one_function():
    def attention(q, k, v, w, b):
        scores = torch.softmax(q @ k.transpose(-2, -1) / 3, -1)
        return F.layer_norm(F.gelu(scores @ v), (8,), w, b), torch.log_softmax(scores, 1)

    q, k, v = (torch.randn(2, 3, 6, 8) for _ in range(3))
    steps = agree(attention, q, k, v, torch.randn(8), torch.randn(8), rtol=1e-4, atol=1e-5)
    assert [name for name in names_of(steps) if name not in ("transpose", "expand", "view", "reshape_alias")] == [
        "region"
    ]


def test_stacks_are_stretched():
    a, b = torch.randn(4, 1, 5, 6), torch.randn(3, 6, 2)
    agree(lambda a, b: (torch.matmul(a, b) + 1, torch.matmul(b.transpose(1, 2), a.transpose(2, 3))), a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [8193, 100_000, 1_000_003])
def test_sums_of_large_arrays_are_part_of_what_computes_them(n, dtype):
    x, y = torch.rand(n, dtype=dtype), torch.rand(n, dtype=dtype)
    steps = agree(lambda x, y: ((x * y + 1).tanh().sum(), x.mean(), (x - y).max(), y.min()), x, y, rtol=1e-5)
    assert names_of(steps) == ["region"]


def test_what_is_summed_up_and_returned_is_stored():
    x = torch.rand(200, 300)
    z = torch.rand(300)

    def f(x, z):
        y = x.exp()
        return y.sum(), y, (x * z).sum(), (y + 1).sum()

    agree(f, x, z, rtol=1e-5)


def test_large_sums_are_as_exact_as_eager_ones():
    x = torch.full((3_000_000,), 0.1)
    compiled = torch.compile(lambda x: (x * 1).sum())
    for _ in range(3):
        found = compiled(x).item()
    exact = 3_000_000 * 0.10000000149011612
    assert abs(found - exact) <= max(0.1, 2 * abs(x.sum().item() - exact))


def test_many_short_sums_of_a_large_array():
    agree(lambda x: ((x * 2).sum(1), x.sum(0), x.max(1).values, (x * x).mean()), torch.rand(300, 200), rtol=1e-5)


def test_memory_that_is_not_aligned_is_read_from_a_copy():
    compiled = torch.compile(lambda x: ((x * 2).exp() + 1, x[:, 1:].sum(0)))
    raw = np.zeros(4 * 12 + 1, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(3, 4)
    unaligned[...] = np.arange(12).reshape(3, 4) / 7
    x = torch.from_numpy(unaligned)
    for _ in range(4):
        first, second = compiled(x)
        np.testing.assert_allclose(first.numpy(), np.exp(unaligned * 2) + 1, rtol=1e-6)
        np.testing.assert_allclose(second.numpy(), unaligned[:, 1:].sum(0), rtol=1e-6)


def test_memory_that_is_not_aligned_is_written_to_as_eager_code_does():
    def function(x, y):
        return (y.add_(x * 2), x.exp() * 3)[1]

    raw = np.zeros((2, 4 * 6 + 1), np.uint8)
    odd = [torch.from_numpy(row[1:].view(np.float32)) for row in raw]
    even = [torch.zeros(6) for _ in range(2)]
    compiled, x = torch.compile(function), torch.ones(6)
    for one, other in [odd] * 4 + [even] * 4 + [odd, even] * 2:
        np.testing.assert_allclose(compiled(x, one).numpy(), function(x, other).numpy(), rtol=1e-6)
        assert torch.equal(one, other)
    assert [len(entry.kernels()) for entry in compiled._compiled.entries] == [1, 0]


def test_memory_of_one_native_function_is_written_to_by_another():
    def f(x):
        y = x * 2
        order = torch.argsort(x)  # no native code
        y[1:3] = x[1:3] + order[:2]
        z = torch.cumsum(y, 0)  # nor this
        y.mul_(z)
        z += 1
        return y, z, y.sum()

    agree(f, torch.randn(7))


TRANSFORMS = {
    "vmap of grad": lambda x, w: torch.func.vmap(torch.func.grad(lambda x: (torch.tanh(w @ x) ** 2).sum()))(x),
    "hessian": lambda x, w: torch.func.hessian(lambda x: torch.tanh(w @ x).sum())(x[0]),
    "jacrev": lambda x, w: torch.func.jacrev(lambda x: torch.tanh(w @ x).sin())(x[0]),
    "vmap of jacrev": lambda x, w: torch.func.vmap(torch.func.jacrev(lambda x: (w @ x).softmax(0)))(x),
    "a gradient that is the same for the whole batch": lambda x, w: torch.func.vmap(
        torch.func.grad(lambda x, w: (x @ w).pow(2).sum().pow(2), argnums=1), (0, None)
    )(x, w),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_inside_of_a_function_are_compiled(name):
    function = TRANSFORMS[name]
    compiled = torch.compile(function)
    torch.manual_seed(0)
    for _ in range(4):
        x, w = torch.randn(5, 6), torch.randn(6, 6)
        torch.testing.assert_close(compiled(x, w), function(x, w))
    (entry,) = compiled._compiled.entries
    assert entry.why is None
    assert entry.kernels()


@pytest.mark.parametrize("depth", [255, 256, 257, 300, 500, 513])
def test_products_of_few_rows_may_be_deep(depth):
    agree(lambda x: torch.tanh(x @ x.t()), torch.randn(16, depth) / 20, rtol=1e-4)


def test_without_a_compiler_the_recorded_steps_are_run():
    program = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import pullback as torch\n"
        "compiled = torch.compile(lambda x: (x * 2).tanh().sum())\n"
        "x = torch.arange(4.0)\n"
        "assert len({compiled(x).item() for _ in range(4)} | {(x * 2).tanh().sum().item()}) == 1\n"
        "entry, = compiled._compiled.entries\n"
        "assert entry.calls == 3 and not entry.kernels()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


LARGE_PRODUCTS = {
    "with a bias": lambda x, w, b: torch.addmm(b, x, w.t()),
    "with a matrix": lambda x, w, b: torch.addmm(x @ w.t(), x, w.t()),
    "of columns": lambda x, w, b: x.t() @ (x @ w.t() + b),
    "of a stack": lambda x, w, b: (x.view(3, 2, 50, 260) @ w.t()).relu(),
    "of a stack that is turned": lambda x, w, b: x.view(6, 50, 260).transpose(0, 1) @ w.t()[None],
    "of double precision": lambda x, w, b: torch.addmm(b.double(), x.double(), w.double().t()).tanh(),
    "of one row and of few columns": lambda x, w, b: (x[:1] @ w.t() + b, x @ w[:3].t()),
}


@pytest.mark.parametrize("name", LARGE_PRODUCTS)
def test_large_products_are_called_from_native_code(name):
    torch.manual_seed(0)
    x, w, b = torch.randn(300, 260) / 8, torch.randn(130, 260) / 8, torch.randn(130)
    steps = agree(LARGE_PRODUCTS[name], x, w, b, rtol=1e-4, atol=1e-5)
    if "one row" not in name:
        assert set(names_of(steps)) == {"region"}


def test_more_threads_than_a_program_was_made_for():
    function = lambda x: (x @ x).tanh()
    compiled = torch.compile(function)
    x, before = torch.randn(200, 200) / 14, torch.get_num_threads()
    try:
        for count in (before, before, before, 1, before + 9, before + 9, before + 3, before):
            torch.set_num_threads(count)
            torch.testing.assert_close(compiled(x), function(x))
    finally:
        torch.set_num_threads(before)


def test_a_long_program_lets_other_threads_run():
    x = torch.randn(400, 400)
    compiled = torch.compile(lambda x: (x @ x @ x @ x).tanh().sum())
    for _ in range(3):
        expected = compiled(x).item()
    found = []
    threads = [threading.Thread(target=lambda: found.append({compiled(x).item() for _ in range(5)})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{expected}] * 4


def test_threads_share_sums_of_large_arrays():
    x = torch.rand(700, 513)
    agree(lambda x: (x.sum(0), x.sum(1), x.t().sum(0), x.max(0).values, x.view(7, 100, 513).sum((0, 2))), x, rtol=1e-4)
    agree(lambda x: (x.sum(0), x.sum(1, keepdim=True), x.amax(2)), torch.rand(40, 30, 301), rtol=1e-4)


def test_the_page_of_a_compiled_step_shows_what_comes_out():
    page = (Path(__file__).parents[2] / "docs" / "notes" / "compiled_step.md").read_text(encoding="utf-8")
    w = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x):
        w.grad = None
        loss = (w * x).tanh().sum()
        loss.backward()
        return loss

    for _ in range(4):
        step(torch.tensor([1.0, 2.0, 3.0]))
    entry = step._compiled.entries[0]
    lowering = loaded("pullback.compiler.native.lowering").Lowering(entry.program)  # needs the compiler
    lines = []
    for one in entry.program.steps:
        try:
            pieces = lowering.pieces(one)
        except loaded("pullback.compiler.native.parts").Unlowered:
            pieces = []
        words = [f"{type(p).__name__} {getattr(p, 'op', getattr(p, 'how', ''))}" for p in pieces]
        lines.append(f"{one.name} {words}")
    for text in ("\n".join(lines), entry.kernels()[0], entry.source):
        assert f"```text\n{text}\n```" in page, text


def test_hooks_of_an_optimizer_are_called_by_a_program_that_updates_in_one_call():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = optim.Adam(model.parameters())

    def step(x):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    compiled = torch.compile(step)
    for _ in range(30):
        compiled(torch.ones(2, 4))
    assert optimizer._in_one_call()
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append("hook"))
    compiled(torch.ones(2, 4))
    assert seen == ["hook"]
    count = next(iter(optimizer.state.values()))["step"].item()
    optim.lr_scheduler.StepLR(optimizer, 1)
    compiled(torch.ones(2, 4))
    assert seen == ["hook"] * 2
    assert next(iter(optimizer.state.values()))["step"].item() == count + 1


def test_a_step_that_a_subclass_defines_is_called():
    class Loud(optim.SGD):
        calls = 0

        def step(self, closure=None):
            type(self).calls += 1
            return super().step(closure)

    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    optimizer = Loud(model.parameters(), lr=0.1)
    for _ in range(30):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert Loud.calls == 30
    assert not optimizer._in_one_call()


def test_native_guards_see_what_changes():
    class Box:
        def __init__(self):
            self.items, self.table, self.scale = [1, 2, 3], {"a": 1.5, "b": 2.5}, 2

    box, model = Box(), nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def function(x):
        return model(x) * sum(box.items) + sum(box.table.values()) * box.scale

    compiled = torch.compile(function)

    def agrees():
        for _ in range(3):
            x = torch.randn(2, 3)
            torch.testing.assert_close(compiled(x), function(x))

    agrees()
    for change in (
        lambda: box.items.append(4),
        lambda: box.items.__setitem__(0, 7),
        lambda: box.table.__setitem__("c", 0.5),
        lambda: box.table.__setitem__("a", 9.5),
        lambda: setattr(box, "scale", 3),
        lambda: setattr(model[0], "weight", nn.Parameter(torch.ones(3, 3))),
        lambda: setattr(model, "extra", nn.Tanh()),
    ):
        change()
        agrees()
        agrees()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.int16, torch.bool, torch.complex64])
def test_new_arrays_of_any_dtype(dtype):
    function = lambda x: (torch.ones(3, dtype=dtype), x.new_zeros(2, dtype=dtype), torch.full((2,), 1, dtype=dtype))
    compiled = torch.compile(function)
    for _ in range(4):
        for one, other in zip(compiled(torch.ones(2)), function(torch.ones(2)), strict=True):
            assert one.dtype == other.dtype and torch.equal(one, other)


def rows_made(monkeypatch):
    """The numbers of loops that are done row by row, of what is compiled from now on."""
    rows = loaded("pullback.compiler.native.rows").Rows
    found, before = [], rows.call
    monkeypatch.setattr(rows, "call", lambda self, *args: (found.append(len(self.items)), before(self, *args))[1])
    return found


def norm_and_rest(x, w):
    y = x + w
    z = F.layer_norm(y, (96,), w)
    return y, z, torch.softmax(z * 2, 1)


def test_loops_over_rows_are_one_call(monkeypatch):
    found = rows_made(monkeypatch)
    x, w = torch.randn(700, 96, requires_grad=True), torch.randn(96, requires_grad=True)
    function = torch.compile(lambda x, w: sum([part.square().sum() for part in norm_and_rest(x, w)]))
    grads = []
    for _ in range(4):
        x.grad = w.grad = None
        function(x, w).backward()
        grads.append((x.grad.numpy().copy(), w.grad.numpy().copy()))
    assert max(found) > 5
    for made, wanted in zip(grads[3], grads[0], strict=True):
        np.testing.assert_allclose(made, wanted, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ((y := x + 1)[1:] * y[:-1]).contiguous(),
        lambda x: (y := x * 2).flip(0) + y,
        lambda x: (y := x * 2).t().contiguous().t() + y,
        lambda x: (y := x + 1) + y.sum(0),
        lambda x: (y := x + 1) / y.sum(1, keepdim=True) + y[0],
        lambda x: (y := x + 1).view(96, 700).sum(1, keepdim=True) + y.view(96, 700),
        lambda x: torch.cat([(y := x + 1).sum(1, keepdim=True).expand(700, 96), y], 1) * 2,
    ],
)
def test_loops_that_look_at_other_rows_wait_for_them(f):
    x = torch.randn(700, 96)
    function = torch.compile(f)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _ in range(4):
            np.testing.assert_allclose(function(x).numpy(), f(x).numpy(), rtol=1e-5, atol=1e-5)
    finally:
        torch.set_num_threads(before)


def test_rows_that_are_written_in_place_are_read_before_and_after(monkeypatch):
    found = rows_made(monkeypatch)

    def f(x, out):
        top = x.amax(1, keepdim=True)
        out.copy_(x - top)
        x.mul_(2)
        return out / out.sum(1, keepdim=True) + x

    a, b = torch.randn(512, 64), torch.empty(512, 64)
    function = torch.compile(f)
    for _ in range(4):
        mine, theirs = [a.clone(), b.clone()], [a.clone(), b.clone()]
        np.testing.assert_allclose(function(*mine).numpy(), f(*theirs).numpy(), rtol=1e-5, atol=1e-5)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert found and max(found) > 3


def test_more_threads_than_have_memory_for_rows():
    x, w = torch.randn(900, 96), torch.randn(96)
    function = torch.compile(norm_and_rest)
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 7, 3):
            torch.set_num_threads(count)
            for _ in range(4):
                for made, wanted in zip(function(x, w), norm_and_rest(x, w), strict=True):
                    np.testing.assert_allclose(made.numpy(), wanted.numpy(), rtol=2e-5, atol=2e-5)
    finally:
        torch.set_num_threads(before)
