"""Kernels over rows and kernels that look up by number compute on the device what the host computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.kernels.compiled import room

from .agreeing import agree

pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")
HALVES = [torch.float16, torch.bfloat16]


def numbers(*shape: int, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(len(shape))
    return torch.randn(*shape).to(dtype)


@pytest.mark.parametrize("shape", [(3, 5), (9, 32), (2, 3, 130), (1, 1), (2, 1028), (3, 1027)])
def test_softmax_of_rows_of_any_length(shape: tuple[int, ...]) -> None:
    agree(lambda x: torch.softmax(x, -1), numbers(*shape))
    agree(lambda x: torch.log_softmax(x, -1), numbers(*shape))


@pytest.mark.parametrize("dtype", [torch.float64, *HALVES])
def test_softmax_in_every_precision(dtype: Any) -> None:
    agree(lambda x: torch.softmax(x, -1), numbers(3, 24, dtype=dtype))
    agree(lambda x: torch.log_softmax(x, -1), numbers(3, 9, dtype=dtype))


def test_softmax_of_rows_longer_than_a_block_can_share() -> None:
    agree(lambda x: torch.softmax(x, -1), numbers(2, 9000))


@pytest.mark.parametrize("count", [4, 1020, 4096, 16388, 20004, 50001])
def test_reductions_of_any_length(count: int) -> None:
    for x in (numbers(count), numbers(count).to(torch.float64)):
        agree(lambda x: (x.sum(), x.amax(), x.view(1, -1).sum(1)), x, grad=False)
    ones = torch.ones(count, dtype=torch.int64)
    agree(lambda x: (x.sum(), x.amin()), ones, grad=False)


LONG = [(2, 17001, torch.float32), (1, 20004, torch.float32), (2, 8300, torch.float64), (1, 33000, torch.bfloat16)]


@pytest.mark.parametrize(("rows", "length", "dtype"), LONG)
def test_rows_that_are_read_again(rows: int, length: int, dtype: Any) -> None:
    x = numbers(rows, length, dtype=dtype)
    x[0, length // 2] = -np.inf
    for function in (torch.softmax, torch.log_softmax):
        agree(lambda x, function=function: function(x, -1)[:, ::7], x)
    if dtype is not torch.bfloat16:
        x[0, length // 2] = 3
        w, b = numbers(length, dtype=dtype), numbers(length, dtype=dtype) * 2
        agree(lambda x, w, b: F.layer_norm(x, w.shape, w, b), x, w, b)
        agree(lambda x: F.layer_norm(x, x.shape[-1:]), x)


def test_long_rows_with_infinities_and_nans() -> None:
    x = numbers(5, 16500)
    x[0], x[1, :9000], x[2, 7], x[3, 16499] = -np.inf, -np.inf, np.inf, np.nan
    for function in (torch.softmax, torch.log_softmax):
        agree(lambda x, function=function: function(x, -1), x, grad=False)
    agree(lambda x: torch.ops.aten._safe_softmax(x, -1), x[:2], grad=False)


def test_softmax_of_rows_with_infinities() -> None:
    x = numbers(4, 40)
    x[1] = -np.inf
    x[2, 3:] = -np.inf
    x[3, 5] = np.inf
    agree(lambda x: torch.softmax(x, -1), x, grad=False)
    q = numbers(1, 1, 4, 8)
    agree(lambda q, x: F.scaled_dot_product_attention(q, q, q, x[:, :4], 0.0), q, x[:3].repeat(2, 1)[:4], alone=False)


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 64), (5, 33), (3, 1040)])
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm_and_its_gradients(shape: tuple[int, ...], affine: bool) -> None:
    x, w, b = numbers(*shape), numbers(shape[-1]), numbers(shape[-1]) * 2
    if affine:
        agree(lambda x, w, b: F.layer_norm(x, w.shape, w, b), x, w, b)
    else:
        agree(lambda x: F.layer_norm(x, x.shape[-1:]), x)


def test_layer_norm_over_two_dimensions_and_in_float64() -> None:
    agree(lambda x, w: F.layer_norm(x, (3, 4), w), numbers(5, 3, 4), numbers(3, 4))
    agree(lambda x: F.layer_norm(x, (7,)), numbers(5, 7, dtype=torch.float64))
    agree(lambda x: F.layer_norm(x.t(), (5,)), numbers(5, 7))


# ------------------------------------------------------------------ by number


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_embedding_and_its_gradient(dtype: Any, width: int) -> None:
    indices = torch.tensor([[1, 4, 4], [0, 6, 1]])
    agree(lambda w: F.embedding(indices.to(w.device), w), numbers(7, width, dtype=dtype))
    agree(lambda w: F.embedding(indices.int().to(w.device), w, padding_idx=4), numbers(7, width, dtype=dtype))


def test_gather_and_scatter() -> None:
    index = torch.tensor([[0, 3, 1], [2, 2, 0]])
    agree(lambda x: torch.gather(x, 1, index.to(x.device)), numbers(3, 4))
    agree(lambda x: torch.gather(x.t(), 0, index.t().to(x.device)), numbers(3, 4))
    once = torch.tensor([[0, 3], [2, 1]])  # of several values for one place torch and a GPU write any
    agree(lambda x, s: x.scatter(1, once.to(x.device), s), numbers(2, 4), numbers(2, 2))
    agree(lambda x, s: x.scatter_add(1, index.to(x.device), s), numbers(2, 4), numbers(2, 3))
    agree(lambda x: x.scatter(1, index.to(x.device), 2.5), numbers(2, 4))
    agree(lambda x: x.clone().scatter_(1, index.to(x.device), 1), torch.zeros(2, 4).to(torch.int64), grad=False)


def test_slices_by_number() -> None:
    index = torch.tensor([2, 0, 2])
    agree(lambda x: [x.index_select(dim, index.to(x.device)) for dim in (0, 1, -1)], numbers(3, 4, 5))
    agree(lambda x, s: x.index_add(1, index.to(x.device), s, alpha=2), numbers(2, 3, 4), numbers(2, 3, 4))
    agree(lambda x, s: x.index_copy(0, index.to(x.device)[:2], s), numbers(3, 4), numbers(2, 4))
    agree(lambda x: x.index_fill(1, index.to(x.device), -1.5), numbers(2, 3))


def test_index_arrays_select_and_are_written_to() -> None:
    i, j = torch.tensor([[0], [-1]]), torch.tensor([1, 2, 0])

    def on(x: Any) -> Any:
        return i.to(x.device), j.to(x.device)

    agree(lambda x: x[on(x)], numbers(4, 3))
    agree(lambda x: x[:, on(x)[1]], numbers(4, 3, 5))
    agree(lambda x: x[on(x)[0], :, on(x)[1]], numbers(4, 3, 5))
    agree(lambda x: x[on(x)[1], on(x)[1]], numbers(4, 3, 8).to(torch.int16), grad=False)
    agree(lambda x, v: x.index_put(on(x), v), numbers(4, 3), numbers(2, 3))
    agree(lambda x, v: x.index_put((on(x)[1],), v, accumulate=True), numbers(4, 3), numbers(3))
    agree(lambda x: torch.take(x, on(x)[0] * 3), numbers(4, 3))


def test_a_number_out_of_bounds_is_an_error() -> None:
    w, index = numbers(4, 3).cuda(), torch.tensor([1, 4]).cuda()
    with pytest.raises(IndexError, match="index out of range"):
        F.embedding(index, w).cpu()
    assert F.embedding(index[:1], w).cpu().tolist() == w[1:2].cpu().tolist()


def test_sums_in_order_go_through_the_host() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        torch.cuda.reset_fallbacks()
        x = numbers(4, 3).cuda()
        x.index_add(0, torch.tensor([1, 1]).cuda(), x[:2])
        assert torch.cuda.fallbacks() == {"index_add": 1}
    finally:
        torch.use_deterministic_algorithms(False)


# ------------------------------------------------------------------ texts


def test_programs_over_rows_become_ptx() -> None:
    kernels = room("cuda.rows")
    for name in kernels.PROGRAMS:
        for element, shape in (("float", (32, 4, 4)), ("bfloat", (256, 8, 8)), ("half", (1024, 64, 1))):
            key = (name, element, *shape, "wb" if name.startswith("layer") else "")
            assert kernels.name_of(*key) in room("cuda.ptx").compiled(kernels.text_of(*key))


def test_kernels_that_look_up_become_ptx() -> None:
    kernels = room("cuda.index")
    for how, element in (("read", kernels.WIDE), ("write", "i16"), ("add", "float"), ("add", "i64")):
        text = room("cuda.ptx").compiled(kernels.text_of(how, element, 2, "li"))
        assert ("red.global" in text or "atom.global" in text) == (how == "add")


# ------------------------------------------------------------------ moving


def test_elements_move_on_the_device() -> None:
    x, y = numbers(2, 3, 4), numbers(2, 5, 4)
    agree(lambda x, y: torch.cat([x, y, x], 1), x, y)
    agree(lambda x, y: torch.cat([x.transpose(0, 2), y.transpose(0, 2)], -2), x, y)
    agree(lambda x: torch.stack([x, x * 2], -1), x)
    agree(lambda x: x.split(2, 1), x)
    agree(lambda x: x[:, 1:, ::2] * 2, x)
    agree(lambda x: x.select(1, -1) + x.diagonal(0, 0, 1).sum(), x)
    agree(lambda x: F.pad(x, (1, 2, -1, 3), value=0.5), x)
    agree(lambda x: x.flip(0, 2), x)
    agree(lambda x: x.roll((1, -2), (0, 2)), x)
    agree(lambda x: x.repeat(2, 1, 3), x)
    agree(lambda x: x.tril(1) + x.triu(-1), x)
    agree(lambda x: x.masked_fill(x > 0.3, -2.0), x)
    agree(lambda x: x.clone().fill_(1.5) + torch.zeros_like(x) + torch.full_like(x, 2.5), x)
    agree(lambda x: x.permute(2, 0, 1).reshape(8, 3) * 2, x)


def test_reductions_read_several_elements_at_once() -> None:
    for shape, dim in (((4096,), None), ((3, 1028), 1), ((2, 5, 64), (1, 2)), ((7, 4), 1)):
        agree(lambda x, dim=dim: [x.sum(dim), x.amax(dim or ())], numbers(*shape), grad=False)
        agree(lambda x, dim=dim: x[..., 4:].sum(dim), numbers(*shape, dtype=torch.float64), grad=False)


def test_running_sums() -> None:
    agree(lambda x: [x.cumsum(0), x.cumsum(1)], numbers(5, 7))
    agree(lambda x: x.cumsum(-1), numbers(2, 2300))
    agree(lambda x: x.cumsum(1), numbers(2, 40, 3, dtype=torch.float64))
    agree(lambda x: x.cumsum(1), (numbers(3, 300) * 9).to(torch.int32), grad=False)
    assert "shfl.sync.up" in room("cuda.ptx").compiled(room("cuda.scans").text_of("float"), (7, 0))
