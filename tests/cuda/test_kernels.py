"""Kernels for the device are made on any machine: LLVM verifies them all, and some are compared with files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._op.declare import registry
from pullback._op.ufuncs import is_loss, is_traced, large_forward
from pullback.kernels.compiled import room
from pullback.kernels.cuda import pointwise
from pullback.kernels.cuda.launch import launches
from pullback.kernels.cuda.pointwise import Expression, are_near
from pullback.kernels.cuda.pointwise import kernels as kernels_made
from pullback.kernels.jit.language.complex_parts import FUNCTIONS
from pullback.kernels.jit.language.device_trace import DeviceTrace
from pullback.kernels.jit.language.expression import Trace
from tests.op_samples import sample, sampled_ops

GOLDEN = Path(__file__).parent / "golden"
EVERY = 8
"""Every so many-th op is compiled; PULLBACK_SAMPLED_OPS=1 takes all of them."""
pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")


def expression(function: Any, *dtypes: str) -> Expression:
    trace = DeviceTrace()
    return Expression(trace.node_of(function(*[trace.input(room("pointwise.loops").np.dtype(d)) for d in dtypes])))


def kernels() -> dict[str, str]:
    """The text of some kernels, by name."""
    make = room("cuda.pointwise").Kernel
    return {
        "multiply": make(expression(np.multiply, "float32", "float32").root, "11", 0, True).text,
        "silu": make(expression(lambda x: x / (1 + np.exp(-x)), "float32").root, "1", 0, True).text,
        "add_strided": make(expression(np.add, "float16", "float16").root, "ss", 2, False).text,
        "add_narrow": make(expression(np.add, "float32", "float32").root, "ss", 3, False, True, True).text,
        "sum_rows": room("cuda.reductions").text_of("sum", "float", 1, 1, False),
        "max_columns": room("cuda.reductions").text_of("max", "double", 1, 2, True),
        "layer_norm": room("cuda.rows").text_of("layer_norm", "float", 32, 4, 4, "wb"),
        "embedding": room("cuda.index").text_of("read", room("cuda.index").WIDE, 2, "l"),
        "sort_tile": room("cuda.sorts").tile_text("float", True),
        "sort_merge": room("cuda.sorts").merge_text(),
        "extremum_rows": room("cuda.extrema").text_of("max", "half", True),
        "extremum_columns": room("cuda.extrema").text_of("min", "i32", False),
        "mask_places": room("cuda.masks").text_of(2),
        "running_sum": room("cuda.scans").text_of("float"),
        "resample": room("cuda.resample").text_of("float"),
        "pool_max": room("cuda.pools").text_of("max", "float"),
        "philox_normal": room("cuda.philox").text_of("normal", True),
        "prod_rows": room("cuda.reductions").text_of("prod", "double", 1, 1, False),
        "running_max": room("cuda.scans").text_of("i64", "max"),
        "running_logarithm": room("cuda.scans").text_of("float", "logaddexp"),
        "pool_adaptive_max": room("cuda.pools").text_of("adaptive_max", "bfloat"),
        "sort_search": room("cuda.sorts").search_text("float", True),
        "index_joined": room("cuda.index").text_of("prod", "float", 1, "l"),
        "index_zeros": room("cuda.index").zeros_text("i32"),
        "whole_remainder": make(expression(np.remainder, "int64", "int64").root, "11", 0, True).text,
        "complex_product": make(expression(np.multiply, "complex64", "complex64").root, "11", 0, True).text,
        "complex_quotient": make(expression(np.divide, "complex128", "float64").root, "ss", 2, False).text,
    }


@pytest.mark.parametrize("name", [
    "multiply", "silu", "add_strided", "add_narrow", "sum_rows", "max_columns", "layer_norm", "embedding", "sort_tile",
    "sort_merge", "extremum_rows", "extremum_columns", "mask_places", "running_sum", "resample", "pool_max",
    "philox_normal", "prod_rows", "running_max", "running_logarithm", "pool_adaptive_max", "sort_search",
    "index_joined", "index_zeros", "whole_remainder", "complex_product", "complex_quotient",
])  # fmt: skip
def test_the_text_of_a_kernel_is_that_of_its_file(name: str) -> None:
    path, text = GOLDEN / f"{name}.ll", kernels()[name]
    if os.environ.get("PULLBACK_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
    for capability in ((7, 0), (8, 0), (9, 0)):
        assert ".visible .entry" in room("cuda.ptx").compiled(text, capability)


def traced_ops() -> list[str]:
    found = [key for key in sampled_ops(False) if is_traced(registry[key]) and not is_loss(registry[key])]
    return found[:: int(os.environ.get("PULLBACK_SAMPLED_OPS", EVERY))]


@pytest.mark.parametrize("key", traced_ops())
def test_a_pointwise_op_becomes_ptx(key: str) -> None:
    given = [
        np.dtype("float32") if isinstance(v, np.ndarray) and v.dtype.kind == "f" else getattr(v, "dtype", v)
        for v in sample(key).arguments.values()
    ]
    trace = Trace()
    try:
        made = large_forward(registry[key]).function(*[trace.input(v) if isinstance(v, np.dtype) else v for v in given])
        found = Expression(trace.node_of(made))
    except Exception:
        pytest.skip("the host computes it without a kernel, too")
    if found.root.op == "input":
        return
    for letters, dims in (("1", 0), ("s", 3)):
        kernel = room("cuda.pointwise").Kernel(found.root, letters * len(found.inputs), dims, True)
        assert kernel.name in room("cuda.ptx").compiled(kernel.text)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_of_complex_numbers_become_ptx(name: str) -> None:
    ufunc = getattr(np, name)
    for dtype, letter, dims in (("complex64", "1", 0), ("complex128", "s", 2)):
        found = expression(ufunc, *[dtype] * ufunc.nin)
        kernel = room("cuda.pointwise").Kernel(found.root, letter * ufunc.nin, dims, not dims)
        assert kernel.name in room("cuda.ptx").compiled(kernel.text, (7, 0))


@pytest.mark.parametrize("dtype", ["float64", "int64", "int32", "int8"])
def test_powers_become_ptx(dtype: str) -> None:
    kernel = room("cuda.pointwise").Kernel(expression(np.power, dtype, dtype).root, "11", 0, True)
    assert kernel.name in room("cuda.ptx").compiled(kernel.text, (7, 0))


@pytest.mark.parametrize("element", ["float", "double"])
def test_reductions_become_ptx(element: str) -> None:
    for how in ("sum", "max", "min"):
        assert "bar.sync" in room("cuda.ptx").compiled(room("cuda.reductions").text_of(how, element, 2, 1, False))


LAYOUTS = [((5, 7), (7, 1)), ((5, 7), (1, 5)), ((3, 4, 5), (1, 15, 3)), ((6,), (2,)), ((1,), (1,)), ((0, 3), (3, 1))]


@pytest.mark.parametrize(("shape", "strides"), LAYOUTS)
def test_kernels_walk_arrays_of_any_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    memory = torch.from_numpy(rng.standard_normal(64).astype(np.float32))
    host = memory.as_strided(shape, strides)
    there = memory.cuda().as_strided(shape, strides)
    row, row_there = host[:1] * 2, there[:1] * 2
    torch.cuda.reset_fallbacks()
    for compute in (
        lambda x, r: x * r + 1.5,
        lambda x, r: torch.where(x > 0, x, r),
        lambda x, r: x.to(torch.float64).exp(),
        lambda x, r: x.t().contiguous() if x.ndim == 2 else x.clone(),
        lambda x, r: x.sum(),
        lambda x, r: x.sum(0),
        lambda x, r: x.sum(-1, keepdim=True),
        lambda x, r: x.mean(0),
        lambda x, r: x.half() + r.half(),
        lambda x, r: (x > r) & (x < 1),
    ):
        one, other = compute(host, row), compute(there, row_there)
        steps = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (one, other)]
        assert steps[0] == steps[1] and one.shape == other.shape and one.dtype is other.dtype
        np.testing.assert_allclose(other.cpu().numpy(), one.numpy(), 1e-5, 1e-6)
    assert torch.cuda.fallbacks() == {}


@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 5, 7), (64, 64, 64), (65, 17, 130), (128, 1, 3)])
def test_products_of_any_size_run_on_the_device(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    torch.manual_seed(0)
    a, b, c = torch.randn(m, k), torch.randn(n, k).t(), torch.randn(n)
    torch.cuda.reset_fallbacks()
    before = dict(launches)
    for compute in (
        lambda a, b, c: a @ b,
        lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2),
        lambda a, b, c: torch.bmm(a.expand(2, m, k), b.expand(2, k, n)),
        lambda a, b, c: (b.t() @ a.t()).t(),
    ):
        one, other = compute(a, b, c), compute(a.cuda(), b.cuda(), c.cuda())
        np.testing.assert_allclose(other.cpu().numpy(), one.numpy(), 1e-4, 1e-4)
    assert torch.cuda.fallbacks() == {} and launches["product"] == before.get("product", 0) + 4


def test_a_step_of_a_network_stays_on_the_device() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).cuda()
    x = torch.randn(32, 8, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for turn in range(2):
        if turn:
            torch.cuda.reset_fallbacks()
        optimizer.zero_grad()
        model(x).log_softmax(1).pow(2).mean().backward()
        optimizer.step()
    assert torch.cuda.fallbacks() == {}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_stays_on_the_device_and_refuses_classes_that_are_none(reduction: str) -> None:
    torch.manual_seed(0)
    x, target = torch.randn(6, 5), torch.tensor([0, 4, 2, -100, 1, 1])
    found = []
    for place in ("cpu", "cuda"):
        logits = x.clone().to(place).requires_grad_()
        torch.cuda.reset_fallbacks()
        loss = torch.nn.functional.cross_entropy(logits, target.to(place), reduction=reduction)
        loss.sum().backward()
        found.append((loss.detach().cpu().numpy(), logits.grad.cpu().numpy()))
    assert torch.cuda.fallbacks() == {}
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, 1e-5, 1e-6)
    with pytest.raises(IndexError, match=r"Target 5 is out of bounds|index out of range"):  # a device tells later
        torch.nn.functional.cross_entropy(x.cuda(), torch.tensor([0, 4, 5, 0, 1, 1]).cuda(), reduction=reduction).cpu()


def test_kernels_of_reductions_have_the_names_they_are_asked_for_by() -> None:
    kernels = room("cuda.reductions")
    for key in (("sum", "float", 1, 1, False), ("sum", "float", 1, 1, False, 4), ("max", "double", 2, 1, True)):
        assert f"@{kernels.name_of(*key)}(" in kernels.text_of(*key)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_need_no_memory_of_a_thread(name: str) -> None:
    """An array that a thread has for itself lies in the device's memory, for each thread that could run at once."""
    kernel = room("cuda.pointwise").Kernel(expression(getattr(np, name), "float64").root, "1", 0, True)
    assert ".local" not in room("cuda.ptx").compiled(kernel.text, (7, 0))


@pytest.mark.parametrize("rows", [3, 103, 1500])
def test_threads_of_large_kernels_have_several_elements_with_strides(rows: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(pointwise, "LARGE", 1)
    x = torch.arange(rows * 7.0).reshape(rows, 7)
    for compute in (
        lambda x: x.t() + x.t().contiguous(),
        lambda x: x[:, ::2].half().t().contiguous(),
        lambda x: torch.where(x[1:, 1:] > 5, x[:-1, :-1], -1.5),
        lambda x: x.clone().t().add_(x[0, 0]),
        lambda x: torch.complex(x, -x)[:, :6] * 2j,
    ):
        one, other = compute(x), compute(x.cuda()).cpu()
        assert one.stride() == other.stride() and torch.equal(one, other)


def test_elements_with_strides_are_found_by_32_bits_where_these_suffice() -> None:
    assert are_near([1 << 16, 1 << 14], [[1 << 14, 1], [0, -1]]) and not are_near([1 << 16, 1 << 15], [[1 << 15, 1]])
    assert not are_near([2, 2], [[2, 1], [-(1 << 31), 1]]) and not are_near([3], [[1 << 30], [1]])
    make = room("cuda.pointwise").Kernel
    root = expression(np.add, "float32", "float32").root
    for narrow, word in ((True, "udiv i32"), (False, "udiv i64")):
        assert word in make(root, "ss", 2, False, narrow).text
    if os.environ.get("PULLBACK_CUDA") == "simulate":
        x = torch.arange(20.0, device="cuda").view(4, 5).t()
        (x + x[:, :1]).cpu()
        assert any(["udiv i32" in kernel.text for kernel in kernels_made.values()])
