"""Calls that came before are launched by native code; what they compute, count and raise is what Python would."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._modes import modes
from pullback._op import apply
from pullback.kernels import jit
from pullback.kernels.cuda import device, eager, kind
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.emulated import Emulated
from pullback.kernels.cuda.front import fronts
from pullback.kernels.cuda.launch import launches as kernel_launches
from pullback.kernels.cuda.memory import Pool

from .deferred import instead

pytestmark = pytest.mark.skipif(not jit.available() or modes.active, reason="native code needs the compiler")


def launches() -> int:
    return int(fronts[0].words[fronts[0].kernels.COUNT]) if 0 in fronts else 0


def python_calls(function: Any) -> int:
    """How many functions a call runs, those of an emulated device apart."""
    found, inside = 0, 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal found, inside
        if frame.f_code is Emulated.enter.__code__ and event in ("call", "return"):
            inside += 1 if event == "call" else -1
        elif not inside:
            found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found - 2  # the function itself, and setprofile


def test_a_product_of_tensors_is_three_calls_once_it_came_before(run_python: Any) -> None:
    """In a process of its own: where a class overrides functions, each call asks it first."""
    found = run_python("""
import os
if os.environ.get("PULLBACK_CUDA") != "1":  # a process of its own knows nothing of simulated.py
    os.environ["PULLBACK_CUDA"] = "emulate"
import pullback as torch
from pullback._op import apply
from pullback.kernels.cuda import eager
from tests.cuda.test_launching import launches, python_calls
x, y = torch.randn(3, 4, device="cuda"), torch.randn(3, 4, device="cuda")
x * y
before = launches()
print(python_calls(lambda: x * y), launches() - before)
""")
    calls, launched = map(int, found.split())
    assert calls <= 3 and launched == 1


@pytest.mark.parametrize("compute", [
    lambda x, y: x * y, lambda x, y: x + 2.0, lambda x, y: 1 - x, lambda x, y: x.t() * y.t(), lambda x, y: x * y[0],
    lambda x, y: x[:, 1:] - y[:, :1], lambda x, y: torch.relu(x), lambda x, y: torch.where(x > 0, x, y),
    lambda x, y: torch.clamp(x, min=0.0), lambda x, y: torch.add(x, y, alpha=2), lambda x, y: x.sigmoid().mul(y),
    lambda x, y: torch.nn.functional.leaky_relu(x, 0.2), lambda x, y: x.double().exp(), lambda x, y: x.gt(0),
])  # fmt: skip
def test_the_second_and_third_call_give_what_the_first_gave(compute: Any) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    there = x.cuda(), y.cuda()
    for _ in range(3):
        made, wanted = compute(*there), compute(x, y)
        assert made.stride() == wanted.stride() and made.dtype is wanted.dtype
        np.testing.assert_allclose(made.cpu().numpy(), wanted.numpy(), 1e-6, 1e-7)


def test_calls_are_told_apart_by_all_their_numbers() -> None:
    x = torch.tensor([1.0, -1.0], device="cuda")
    for _ in range(2):
        assert [str(v) for v in (x * 0.0).tolist()] == ["0.0", "-0.0"]
        assert [str(v) for v in (x * -0.0).tolist()] == ["-0.0", "0.0"]
        assert (x + 1).tolist() == [2, 0] and (x + 1.5).tolist() == [2.5, 0.5]
        assert torch.nn.functional.leaky_relu(x, 0.5).tolist() == [1, -0.5]
        assert torch.nn.functional.leaky_relu(x, 1).tolist() == [1, -1]
    for number in range(600):  # more than are remembered
        assert (x * (number + 0.5)).tolist() == [number + 0.5, -number - 0.5]


@pytest.mark.parametrize("compute", [
    lambda x, y: x.dot(y), lambda x, y: x.outer(y), lambda x, y: torch.nn.functional.mse_loss(x, y), torch.Tensor.mul,
    lambda x, y: torch.cat([x, y]), lambda x, y: x.view(4, 4) @ y.view(4, 4), lambda x, y: torch.hypot(x, y),
    lambda x, y: torch.addmm(x.view(4, 4), y.view(4, 4), x.view(4, 4)), lambda x, y: torch.where(x > y, x, y),
    lambda x, y: torch.nn.functional.linear(x.view(4, 4), y.view(4, 4)), lambda x, y: torch.stack([y, x]),
    lambda x, y: torch.nn.functional.scaled_dot_product_attention(x.view(1, 4, 4), y.view(1, 4, 4), x.view(1, 4, 4)),
])  # fmt: skip
@pytest.mark.parametrize("sharing", ["all", "half"])
def test_a_call_of_tensors_that_share_memory_is_no_pattern_for_others(compute: Any, sharing: str) -> None:
    x, y, long = torch.randn(16), torch.randn(16), torch.randn(24)
    pairs = [(x, x), (x, y), (y, x)] if sharing == "all" else [(long[:16], long[8:]), (x, y), (y, x)]
    shared = long.cuda()
    for a, b in pairs:
        there = (shared[:16], shared[8:]) if sharing == "half" and a is not x and a is not y else None
        first = a.cuda() if there is None else there[0]
        second = (first if b is a else b.cuda()) if there is None else there[1]
        for _ in range(6):
            np.testing.assert_allclose(compute(first, second).cpu().numpy(), compute(a, b).numpy(), 1e-5, 1e-6)


def test_views_that_do_not_begin_at_16_bytes_are_computed_right() -> None:
    x = torch.arange(12.0, device="cuda")
    for start in range(6):
        assert (x[start : start + 5] * x[start : start + 5]).tolist() == [i * i for i in range(start, start + 5)]


def test_memory_that_native_code_takes_is_counted_and_given_back() -> None:
    x = torch.ones(1000, device="cuda")
    x * x
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before, came = torch.cuda.memory_allocated(), torch.cuda.memory_stats()["allocation.all.allocated"]
    made = [x * x for _ in range(10)]
    stats = torch.cuda.memory_stats()
    assert torch.cuda.memory_allocated() == before + 10 * 4096 and stats["allocation.all.allocated"] == came + 10
    assert stats["requested_bytes.small_pool.current"] >= 10 * 4000
    made.clear()
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() == before + 10 * 4096
    big = torch.ones(600_000, device="cuda")
    large = torch.cuda.memory_stats()["allocation.large_pool.current"]
    view = (big * big)[1:]
    assert torch.cuda.memory_stats()["allocation.large_pool.current"] == large + 1
    del view
    assert torch.cuda.memory_stats()["allocation.large_pool.current"] == large


def test_a_program_that_does_the_same_again_finds_all_its_memory_without_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step() -> None:
        for size in (200_000, 700_000, 1_500_000, 4_000_000):
            x = torch.empty(size, device="cuda")
            y, z = x[: size // 2] + 1, x[: size // 3] * 2
            del x
            torch.empty(size // 4, device="cuda") + y[: size // 4]
            del z, y
            torch.empty(size + 500_000, device="cuda")
        few, many = torch.empty(5 * 128, device="cuda"), torch.empty(7200 * 128, device="cuda")  # which share a list
        del few, many

    gc.collect()
    torch.cuda.empty_cache()
    step()
    asked: list[int] = []
    reserve = Pool.reserve
    monkeypatch.setattr(Pool, "reserve", lambda self, *args: (asked.append(args[0]), reserve(self, *args))[1])
    for _ in range(3):
        step()
    assert asked == []


def test_arrays_that_outlive_their_device_give_no_memory_to_the_next() -> None:
    if os.environ.get("PULLBACK_CUDA") == "1":
        pytest.skip("a GPU stays")
    with instead(Emulated(1)):
        old = [torch.ones(8, device="cuda") for _ in range(50)]
    with instead(Emulated(1)):
        torch.ones(1, device="cuda")
        gc.collect()  # what is left of the device before
        new = [torch.full((8,), float(value), device="cuda") for value in range(50)]
        del old
        others = [torch.full((8,), -1.0, device="cuda") for _ in range(50)]
        assert [one.tolist() for one in new] == [[float(value)] * 8 for value in range(50)]
        assert len({one.data_ptr() for one in (*new, *others)}) == 100


def test_work_on_another_stream_takes_memory_of_that_stream() -> None:
    x = torch.ones(100, device="cuda")
    x * x
    before = launches()
    with torch.cuda.stream(torch.cuda.Stream()):
        assert (x * x).sum().item() == 100 and launches() == before
    x * x
    assert launches() == before + 1


def test_autocast_and_modes_reach_methods_and_operators_of_the_device() -> None:
    x = torch.ones(4, 4, device="cuda")
    x @ x, x.matmul(x), torch.mm(x, x)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert {y.dtype for y in (x @ x, x.matmul(x), torch.mm(x, x), x.mm(x))} == {torch.bfloat16}
    assert (x @ x).dtype is torch.float32

    seen = []

    class Told(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Told():
        x.relu()
    assert seen == ["relu"]


@pytest.mark.parametrize("compute", [
    lambda x, y: x @ y.t(), lambda x, y: x.sum(), lambda x, y: x.sum(0), lambda x, y: x.mean(), lambda x, y: x.var(),
    lambda x, y: torch.softmax(x, 1), lambda x, y: x.amax(1), lambda x, y: torch.addmm(x[:, :3], x, y.t()),
])  # fmt: skip
def test_what_a_call_launches_is_launched_again_for_other_elements(compute: Any) -> None:
    native = 0
    for number in range(6):
        x, y = torch.randn(3, 4) * (number + 1), torch.randn(3, 4)
        before = launches()
        made = compute(x.cuda(), y.cuda())
        native = launches() - before
        np.testing.assert_allclose(made.cpu().numpy(), compute(x, y).numpy(), 1e-4, 1e-5)
    assert device.required().emulated or native == 1


def test_settings_and_random_numbers_are_not_remembered() -> None:
    p = torch.full((400,), 0.5, device="cuda")
    draws = [tuple(torch.bernoulli(p).tolist()) for _ in range(7)]
    assert len(set(draws)) == 7
    x = torch.ones(4, 4, device="cuda")
    for _ in range(6):
        x @ x
    before = launches()
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        x @ x
        assert launches() == before  # which was found out anew
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "RMSprop"])
def test_a_step_of_an_optimizer_is_one_launch_for_all_parameters(name: str) -> None:
    options: dict[str, Any] = {"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    ends = []
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        parameters = [
            torch.nn.Parameter(torch.randn(shape).to(place)) for shape in ((3, 4), (5,), (1100, 3), (2, 2, 2))
        ]
        optimizer = getattr(torch.optim, name)(parameters, **options)
        for step in range(3):
            for p in parameters:
                p.grad = torch.full_like(p, 0.5 + step) * p.detach()
            before = dict(kernel_launches)
            optimizer.step()
        if place == "cuda":
            assert kernel_launches["update"] == before.get("update", 0) + 1
        ends.append([p.detach().cpu().numpy() for p in parameters])
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(other, one, 1e-6, 1e-7)


def test_a_kernel_that_fails_is_an_error_and_not_tried_again() -> None:
    if not device.required().emulated:
        pytest.skip("a real device cannot be told to fail")
    x = torch.ones(4, device="cuda")
    x * x
    for compute in (lambda: x * x, lambda: x * 3.0, lambda: torch.mul(x, x), lambda: x.sum()):
        device.required().faults["launch"] = [(719, "unspecified launch failure")]
        with pytest.raises(torch.cuda.AcceleratorError, match="unspecified launch failure"):
            compute()
        assert not device.required().faults["launch"]
    assert (x * x).tolist() == [1, 1, 1, 1]


def test_calls_inside_autocast_are_launched_by_native_code_too(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = torch.randn(4, 8, device="cuda"), torch.randn(8, 8, device="cuda", requires_grad=True)

    def compute() -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return torch.nn.functional.gelu(torch.nn.functional.linear(x, w)).float()

    expected = [compute() for _ in range(4)][-1]

    def refuse(op: Any, *args: Any) -> None:
        raise AssertionError(f"{op.name} takes the reference path")

    monkeypatch.setattr(apply, "by_reference", refuse)
    monkeypatch.setattr(eager, "by_reference", refuse)
    got = compute()
    monkeypatch.undo()
    assert torch.equal(got, expected) and expected.dtype is torch.float32
    assert compute().sum().backward() is None and w.grad.dtype is torch.float32


def test_a_remembered_call_with_a_number_keeps_no_memory() -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    for size in (1001, 1002, 1003):
        x = torch.ones(size, device="cuda")
        (x * 2, x + 0.5, 3 - x)
    del x
    assert torch.cuda.memory_allocated() == before


def test_pointwise_ops_in_place_are_one_kernel_each_and_as_right_as_on_the_host() -> None:
    x, y = torch.linspace(-2, 2, 24).reshape(4, 6), torch.linspace(1, 3, 6)
    calls = {
        "add_": lambda t, u: t.add_(u), "alpha": lambda t, u: t.add_(u, alpha=0.5), "mul_": lambda t, u: t.mul_(2.0),
        "div_": lambda t, u: t.div_(u), "self": lambda t, u: t.mul_(t), "exp_": lambda t, u: t.exp_(),
        "+=": lambda t, u: t.__iadd__(u), "clamp_": lambda t, u: t.clamp_(-1, 1),
        "a tensor as a number": lambda t, u: t.add_(u, alpha=torch.tensor(2.0).to(u.device)),
        "lerp_": lambda t, u: t.lerp_(t * 2, 0.25),
        "addcmul_": lambda t, u: t.addcmul_(u, u, value=0.5), "columns": lambda t, u: t.t().add_(1.0),
        "column": lambda t, u: t[:, 1:2].add_(u[:1]),
    }  # fmt: skip
    for name, call in calls.items():
        ends = []
        for place in ("cpu", "cuda"):
            own, other = x.clone().to(place), y.clone().to(place)
            made, before = call(own, other), sum(kernel_launches.values())
            call(own, other)
            if place == "cuda" and name not in ("lerp_", "a tensor as a number", "column", "columns"):
                assert sum(kernel_launches.values()) - before == 1, name
            assert own._version == 2 and (made is own or made._base is own)
            ends.append(own.cpu().numpy())
        np.testing.assert_allclose(ends[1], ends[0], 2e-6, 1e-6, err_msg=name)


def test_an_op_in_place_that_came_before_is_a_dozen_calls_and_one_launch(run_python: Any) -> None:
    """Views of the same memory among its operands, and parameters where nothing is recorded."""
    found = run_python("""
import os
if os.environ.get("PULLBACK_CUDA") != "1":
    os.environ["PULLBACK_CUDA"] = "emulate"
import pullback as torch
from tests.cuda.test_launching import launches, python_calls
x, y = torch.ones(2, 12, device="cuda")
w, g, n, h = torch.nn.Parameter(torch.ones(3, device="cuda")), x[:3].clone(), x.int(), x.bfloat16()
calls = [lambda: x.add_(y), lambda: x.__iadd__(y), lambda: x.sub_(y), lambda: x.mul_(2.0), lambda: x.relu_(),
         lambda: x.add_(y, alpha=0.5), lambda: x.addcdiv_(y, y, value=0.5), lambda: w.sub_(g),
         lambda: n.add_(1), lambda: h.mul_(0.5)]
with torch.no_grad():
    for call in calls:
        call(), call()
        before = launches()
        print(python_calls(call), launches() - before)
""").split()
    calls, launched = [int(word) for word in found[::2]], [int(word) for word in found[1::2]]
    assert max(calls[:5]) <= 10 and max(calls[5:]) <= 15 and launched == [1] * 10


def test_a_remembered_op_in_place_still_sees_who_looks_at_the_same_memory() -> None:
    x, far = torch.arange(64.0, device="cuda"), torch.arange(32.0, device="cuda")
    wanted = np.arange(64.0)
    for _ in range(3):  # a call on memory apart, which is remembered, and one of the same kind on half of its own
        x[:32].add_(far)
        wanted[:32] += np.arange(32)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            x[:32].add_(x[4:36])
        x[:32].add_(x[32:])
        wanted[:32] += wanted[32:]
        x[:32].add_(x[:32])
        wanted[:32] *= 2
        assert x.tolist() == wanted.tolist()
    assert x._version == 9
    wide, one = torch.ones(4, 4, device="cuda"), torch.ones(4, device="cuda")
    for _ in range(3):
        wide.mul_(one)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            wide.add_(wide[1])  # read for all rows, and written
    assert wide.tolist() == [[1] * 4] * 4


def test_writes_by_native_code_are_counted_where_a_graph_is_looked_at() -> None:
    w, step = torch.ones(8, device="cuda", requires_grad=True), torch.ones(8, device="cuda")
    for _ in range(3):
        y = (w * w).sum()
        with torch.no_grad():
            w.add_(step, alpha=0.5)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
    assert w._version == 3 and w.grad is None and w.tolist() == [2.5] * 8
    base = torch.zeros(2, 8, device="cuda")
    part = base[1]
    for _ in range(3):
        part.add_(step)
    assert base._version == part._version == 3 and base.sum().item() == 24
    for _ in range(3):
        h = w * 2  # recorded: the history of what is written goes on
        h.mul_(step * 3)
        w.grad = None
        h.sum().backward()
        assert w.grad.tolist() == [6] * 8 and h._version == 1
    with torch.inference_mode():
        inside = torch.ones(8, device="cuda")
        for _ in range(3):
            inside.add_(step)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        inside.add_(step)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32", "bool", "complex64"])
def test_remembered_ops_in_place_give_what_the_host_gives_in_every_dtype(dtype: str) -> None:
    calls = [lambda t, u: t.add_(u), lambda t, u: t.mul_(2), lambda t, u: t.sub_(u), lambda t, u: t.mul_(0.1),
             lambda t, u: t.logical_and_(u), lambda t, u: t.masked_fill_(u != 0, 1), lambda t, u: t.neg_(),
             lambda t, u: t.add_(True), lambda t, u: t.clamp_(0, 1), lambda t, u: t.floor_()]  # fmt: skip
    for call in calls:
        ends = []
        for place in ("cpu", "cuda"):
            x, y = (torch.tensor(v).to(getattr(torch, dtype)).to(place) for v in ([0, 1, 2, 3], [1, 0, 2, 0]))
            try:
                for _ in range(3):
                    call(x, y)
            except RuntimeError as error:
                ends.append(str(error).replace("CUDA", "CPU").replace("cuda", "cpu"))
            else:
                ends.append((x.tolist(), x._version))
        assert ends[0] == ends[1]


def test_ops_in_place_that_do_not_fit_are_refused_with_nothing_written() -> None:
    x, y = torch.ones(2, 3, device="cuda"), torch.ones(4, 2, 3, device="cuda")
    for call in (lambda: x.add_(y), lambda: x.add_(torch.ones(5, device="cuda"))):
        with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape|must match the size"):
            call()
        assert x.tolist() == [[1] * 3] * 2 and x._version == 0
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.view(-1)[1:].add_(x.view(-1)[:-1])
    leaf = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.add_(1)
    z = torch.zeros(3, device="cuda").add_(leaf * 2)  # which is recorded
    z.sum().backward()
    assert leaf.grad.tolist() == [2, 2, 2] and torch.why_no_grad(torch.zeros(3, device="cuda").add_(leaf.detach()))


def test_a_step_of_a_backward_pass_that_was_done_is_done_again_by_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas with lists of gradients, wishes and sizes among their arguments too, with tables, and with zeros."""
    if required().emulated:
        pytest.skip("nothing is launched on the emulated device")
    torch.manual_seed(0)
    norm, embed = torch.nn.LayerNorm(8).cuda(), torch.nn.Embedding(5, 8).cuda()
    conv, out = torch.nn.Conv2d(1, 2, 3, padding=1).cuda(), torch.nn.Linear(8, 5).cuda()
    numbers = torch.tensor([[0, 1, 2, 3]]).cuda()

    def step() -> list[Any]:
        x = norm(embed(numbers))
        q, k, v = torch.stack([x, x * 2, x * 3]).unbind(0)
        y = torch.nn.functional.scaled_dot_product_attention(*(a[:, None] for a in (q, k, v)), is_causal=True)
        y = torch.nn.functional.max_pool2d(conv(y), 2)
        loss = torch.nn.functional.cross_entropy(out(y.reshape(-1, 8)), numbers[0, :2])
        parameters = [*norm.parameters(), *embed.parameters(), *conv.parameters(), *out.parameters()]
        return [g.cpu() for g in torch.autograd.grad(loss, parameters)]

    first = step()
    for _ in range(6):
        step()

    def not_again(self: Any, *args: Any) -> Any:
        raise AssertionError("Python did again what native code knows")

    monkeypatch.setattr(kind.AtOnce, "__call__", not_again)
    last = step()
    for one, other in zip(first, last, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_words_of_numpy_that_came_before_are_launched_by_native_code() -> None:
    for seed in range(4):
        torch.manual_seed(seed)
        x, y = torch.rand(3, 4), torch.rand(3, 4).t().contiguous().t()
        here, there = (x.numpy(), y.numpy()), (x.cuda()._array, y.cuda()._array)
        for function in (np.multiply, np.less, np.arctan2):
            before, made = launches(), function(*there)
            np.testing.assert_allclose(made.on_host(), function(*here), 1e-6)
            assert launches() == before + 1 or not seed
        for number in (np.float32(0.3), 0.3, 2, np.float64(0.3)):
            made, wanted = np.multiply(there[0], number), np.multiply(here[0], number)
            np.testing.assert_allclose(made.on_host(), wanted, 1e-6)
            assert made.dtype == wanted.dtype
        before = launches()
        assert np.subtract(there[0], there[1], there[0]) is there[0]
        assert launches() == before + 1 or not seed
        np.testing.assert_allclose(there[0].on_host(), np.subtract(*here), 1e-6, 1e-7)
