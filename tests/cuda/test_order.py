"""Extrema along a dimension and sorting on the device, beside the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels.compiled import room

from .agreeing import agree

pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8]  # fmt: skip


def numbers(*shape: int, dtype: Any = torch.float32, few: bool = False) -> Any:
    torch.manual_seed(sum(shape))
    x = torch.randint(-4 if few else -90, 5 if few else 90, shape)
    return (x % 7 if dtype is torch.uint8 else x / 4 if dtype.is_floating_point else x).to(dtype)


def same(compute: Any, x: Any) -> None:
    """The very same results as on the host, computed on the device alone."""
    torch.cuda.reset_fallbacks()
    here, there = compute(x), compute(x.cuda())
    assert torch.cuda.fallbacks() == {}
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (here, there)), strict=True):
        assert one.shape == other.shape and one.dtype is other.dtype
        a, b = one.to(torch.float64).numpy(), other.cpu().to(torch.float64).numpy()
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_are_the_first_of_their_kind(dtype: Any) -> None:
    x = numbers(3, 300, dtype=dtype, few=True)
    for dim in (0, 1):
        same(lambda t, d=dim: tuple(t.max(d)), x)
        same(lambda t, d=dim: tuple(t.min(d, keepdim=True)), x)
        same(lambda t, d=dim: t.argmax(d), x)
    same(lambda t: t.argmin(), x)
    same(lambda t: t.argmax(keepdim=True), x.t())


def test_extrema_of_other_layouts_and_of_nan() -> None:
    x = numbers(4, 5, 6)
    for view in (x, x.transpose(0, 2), x[:, ::2], x[1, 2, 3], x.expand(2, 4, 5, 6), x[:1]):
        for dim in range(-view.ndim, view.ndim):
            same(lambda t, d=dim: (*t.max(d), t.argmin(d)), view)
    same(lambda t: (*t.max(0), t.argmax()), torch.tensor(3.0))
    nan, inf = float("nan"), float("inf")
    for values in ([1.0, nan, inf, nan], [nan] * 4, [-inf] * 4, [0.0, -0.0, 0.0, -0.0]):
        row = torch.tensor(values).repeat(100)
        same(lambda t: (t.max(0)[1], t.min(0)[1], t.argmax(), t.argmin()), row)
        same(lambda t: (*t.max(1), *t.min(1)), row.reshape(-1, 4))
    same(lambda t: tuple(t.max(0)), torch.tensor([[True, False], [False, False]]))
    agree(lambda t: t.max(1), numbers(5, 7) + torch.arange(7) / 100)
    with pytest.raises(IndexError, match=r"max\(\): Expected reduction dim 1 to have non-zero size"):
        torch.ones(2, 0, device="cuda").max(1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorting_keeps_the_order_of_equal_elements(dtype: Any) -> None:
    x = numbers(2, 30, dtype=dtype, few=True)
    same(lambda t: tuple(torch.sort(t, stable=True)), x)
    same(lambda t: tuple(torch.sort(t, 1, True, stable=True)), x)


@pytest.mark.parametrize("length", [1, 2, 1024, 1025, 2500])
def test_rows_of_any_length_are_sorted(length: int) -> None:
    x = numbers(2, length, few=True)
    same(lambda t: tuple(torch.sort(t, stable=True)), x)
    same(lambda t: tuple(torch.sort(t.t(), 0, True, stable=True)), x)


def test_sorting_of_nan_of_zeros_and_of_other_layouts() -> None:
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([2.0, nan, -inf, 0.0, -0.0, inf, nan, 1e-45, -1e-45, 3e38, 0.0])
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        for descending in (False, True):
            same(lambda t, d=descending: tuple(torch.sort(t, 0, d, stable=True)), x.to(kind))
    there = torch.sort(torch.tensor([0.0, -0.0, 0.0]).cuda())[0].cpu()
    assert np.signbit(there.numpy()).tolist() == [False, True, False]
    y = numbers(2, 3, 4)
    for view, dims in ((y.transpose(0, 2), (0, 2)), (y[:, 1:3], (0, 1)), (y.permute(1, 2, 0), (1,)), (y > 0, (2,))):
        for dim in dims:
            same(lambda t, d=dim: tuple(torch.sort(t, d, stable=True)), view)
            one, other = torch.sort(view, dim)[0], torch.sort(view.cuda(), dim)[0]
            assert one.stride() == other.stride()
    same(lambda t: torch.argsort(t, 0, stable=True), y)
    big = torch.tensor([2**62, -(2**63), 2**63 - 1, 0, 2**63 - 1])
    same(lambda t: tuple(torch.sort(t, stable=True)), big)
    same(lambda t: tuple(torch.sort(t, 0, True, stable=True)), big)


def test_the_largest_of_rows_and_their_middles() -> None:
    x = torch.randperm(60).reshape(4, 15) / 8
    for largest in (True, False):
        same(lambda t, g=largest: tuple(torch.topk(t, 3, 1, g)), x)
        same(lambda t, g=largest: tuple(torch.topk(t, 2, 0, g)), x.t())
    same(lambda t: (*t.kthvalue(4), *t.kthvalue(2, 0, True)), x)
    same(lambda t: (*t.median(1), *t.median(0, True)), x)
    bad = x.clone()
    bad[1, 3] = float("nan")
    same(lambda t: tuple(t.median(1)), bad)
    agree(lambda t: [torch.sort(t, 0)[0], torch.topk(t, 3)[0], t.median(1)[0], t.kthvalue(2)[0]], x)
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.cuda().topk(16)
    assert torch.ones(0, 3, device="cuda").sort(0)[0].shape == (0, 3)


# ------------------------------------------------------------------ masks


def masks(*shape: int) -> Any:
    return numbers(*shape, few=True) > 1


@pytest.mark.parametrize("shape", [(1,), (7,), (4, 5), (2, 3, 4), (2047,), (2, 2050), (0, 3), (3, 0)])
def test_the_places_of_true_elements(shape: tuple[int, ...]) -> None:
    mask = masks(*shape)
    for given in (mask, ~mask & False, mask | True):
        same(lambda t: (t.nonzero(), *t.nonzero(as_tuple=True)), given)
    same(lambda t: torch.argwhere(t), numbers(*shape, few=True))
    same(lambda t: t.nonzero(), numbers(*shape, few=True, dtype=torch.int16))
    same(lambda t: t.nonzero(), mask.transpose(0, -1))


def test_masks_select_and_are_written_to() -> None:
    x, mask, rows = numbers(4, 5, few=True), masks(4, 5), torch.tensor([True, False, True, True])
    agree(lambda t, m: [t[m], t.masked_select(m), t.t()[m.t()]], x, mask)
    agree(lambda t, r: [t[r], t.masked_select(r[:, None]), t[r, 2], t[:, 1:].contiguous()[r]], x, rows)
    agree(lambda t, m, r: [t.contiguous()[None, r][:, :, 0]], x, mask, rows)
    nan = torch.tensor([1.0, float("nan"), 2.0])
    same(lambda t: t[~t.isnan()], nan)

    def written(t: Any, m: Any, r: Any) -> Any:
        a, b, c, d = t.clone(), t.clone(), t.clone(), t.clone()
        a[m] = 7
        b[r] = t[0] * 2
        c[m] += t[m] * 3
        d.masked_scatter_(m, t.flip(0).contiguous())
        return [a, b, c, d, t.masked_scatter(r[:, None].expand(4, 5), t * 2)]

    agree(written, x, mask, rows, grad=False)
    for wrong in (torch.ones(3, dtype=torch.bool), torch.ones(4, 4, dtype=torch.bool)):
        with pytest.raises(IndexError, match="shape of the mask"):
            x.cuda()[wrong.cuda()]
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        x.cuda().masked_scatter_(mask.cuda() | True, x[:1].cuda())


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
def test_distinct_elements(dtype: Any) -> None:
    x = numbers(5, 7, dtype=torch.int64, few=True).abs().to(dtype)
    same(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x)
    same(lambda t: torch.unique(t), x.t()[1:])
    if dtype is torch.float32:
        nan = float("nan")
        same(lambda t: torch.unique(t, return_counts=True), torch.tensor([nan, 1.0, nan, 0.0, -0.0]))


def test_the_kernels_become_ptx() -> None:
    kernels, sorts = room("cuda.extrema"), room("cuda.sorts")
    texts = [sorts.merge_text(), room("cuda.masks").text_of(3)]
    for element in ("float", "double", "bfloat", "u8"):
        texts += [sorts.tile_text(element, True), *[kernels.text_of("max", element, rows) for rows in (True, False)]]
    for text in texts:
        assert ".visible .entry" in room("cuda.ptx").compiled(text, (7, 0))


# ------------------------------------------------------------------ all elements, and counting


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int16", "uint8", "bool"])
def test_extrema_of_all_elements_and_questions_about_them(dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = (torch.arange(-30, 30).reshape(3, 4, 5) % 7).to(kind)
    moving = kind.is_floating_point
    agree(lambda t: t.max(), x, grad=moving)
    agree(lambda t: t.min(), x.transpose(0, 2), grad=moving)
    for made in (x, x[:, ::2], torch.zeros(3, 4).to(kind), torch.ones(()).to(kind)):
        agree(lambda t: (t.any(), t.all(), t.any(0) if t.ndim else t.any(), t.all(-1, True)), made, grad=False)
    if moving:
        y = x.clone()
        y[0, 1, 2] = float("nan")
        agree(lambda t: (t.max(), t.min(), t.any(), t.all(), t.isnan().any(2)), y, grad=False)


def test_nothing_is_read_of_questions_about_elements() -> None:
    x = torch.randn(40, 3, device="cuda")
    (x > 0).any(), x.max(), x.isfinite().all(1)
    torch.cuda.reset_fallbacks()
    assert (x > 0).any(0).device == x.device and torch.cuda.fallbacks() == {}


def test_numbers_are_counted_and_their_weights_summed() -> None:
    x = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    w = torch.linspace(0.5, 2, 10)
    agree(lambda t: torch.bincount(t), x, grad=False)
    agree(lambda t: torch.bincount(t, minlength=20), x.to(torch.uint8), grad=False)
    agree(lambda t, u: (torch.bincount(t, u), torch.bincount(t, u.double(), 12)), x.int(), w, grad=False)
    with pytest.raises(RuntimeError, match="1-d non-negative integral inputs"):
        torch.bincount(torch.tensor([1, -1], device="cuda"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_elements_are_counted_in_bins(dtype: torch.dtype) -> None:
    x = torch.cat([torch.linspace(-3, 3, 50), torch.tensor([float("nan"), 7.0, 2.0, 2.0, 1.0])]).to(dtype)
    agree(lambda t: torch.histc(t, 10, -2, 2), x, grad=False)
    agree(lambda t: (torch.histc(t, 7), torch.histc(t[:1], 4)), x[:50].reshape(5, 10).t(), grad=False)
    agree(lambda t: torch.histc(t[0], 4), x[:50].reshape(5, 10), grad=False)
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histc(x.cuda(), 4)
