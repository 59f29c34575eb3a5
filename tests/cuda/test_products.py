"""Products of matrices on the device, of every layout, precision and size."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.kernels.compiled import room
from pullback.kernels.cuda import products

from .agreeing import agree

pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")
HALVES = [torch.float16, torch.bfloat16]


def numbers(*shape: int, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(sum(shape))
    return torch.randn(*shape).to(dtype)


SIZES = [(1, 1, 1), (5, 7, 3), (8, 16, 24), (70, 40, 68), (64, 96, 72), (3, 600, 4)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
def test_products_of_every_layout_and_precision(sizes: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = sizes
    for a, b in ((numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)),):
        agree(torch.mm, a, b, grad=dtype in (torch.float32, torch.bfloat16))
        agree(lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), a, b, grad=False)


@pytest.mark.parametrize("sizes", [(66, 20, 70), (130, 36, 50), (40, 21, 131)])
def test_products_of_wide_tiles(sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many tiles they are of 128 rows or columns, or of both: here where there is one."""
    monkeypatch.setattr(products, "ENOUGH", 1)
    wide = tuple(128 if n > 64 else 64 for n in (sizes[0], sizes[2]))
    assert products.tile_of(1, sizes[0], sizes[2], True) == wide
    m, k, n = sizes
    a, b = numbers(m, k), numbers(k, n)
    agree(torch.mm, a, b, grad=False)
    agree(lambda a, b: torch.addmm(a[0, :1], a, b, beta=0.5), a.to(torch.bfloat16), b.to(torch.bfloat16), grad=False)
    agree(lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), a, b, grad=False)


def test_convolutions_of_wide_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "ENOUGH", 1)
    x, w = numbers(1, 5, 9, 10), numbers(41, 5, 3, 3)
    agree(lambda x, w: F.conv2d(x, w, padding=1), x, w, tolerance=3e-3)


def test_products_with_something_added() -> None:
    a, b, c = numbers(9, 20), numbers(20, 12), numbers(12)
    agree(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), c, a, b)
    agree(lambda x, w, c: F.linear(x, w, c), numbers(2, 3, 8), numbers(5, 8), numbers(5))
    agree(lambda x, w, c: F.linear(x, w, c), *[numbers(*s, dtype=HALVES[1]) for s in ((2, 3, 8), (5, 8), (5,))])
    agree(lambda a, b: torch.baddbmm(a, a, b, beta=2), numbers(3, 6, 6), numbers(3, 6, 6))


def test_products_of_all_kinds_reach_the_device() -> None:
    a, b = numbers(2, 4, 6), numbers(2, 6, 5)
    agree(torch.matmul, a, b)
    agree(lambda a, b: torch.matmul(a, b[0]), a, b)
    agree(lambda a, b: torch.einsum("bij,bjk->bik", a, b), a, b)
    agree(lambda a, b: torch.einsum("bij,bjk->ik", a, b), a, b)
    agree(lambda a, v: torch.mv(a, v), numbers(4, 6), numbers(6))
    agree(lambda v: torch.dot(v, v * 2), numbers(6))
    agree(lambda a, b: a.transpose(1, 2) @ a, a, b)
    agree(lambda a: a.expand(3, 4, 6) @ a.t(), numbers(4, 6))


def test_products_of_nothing() -> None:
    for shapes in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))):
        agree(torch.mm, *[numbers(*s) for s in shapes], grad=False)
    agree(lambda d, a, b: torch.addmm(d, a, b, beta=3), numbers(3), numbers(2, 0), numbers(0, 3), grad=False)


def test_tf32_is_used_where_it_is_allowed() -> None:
    a, b = numbers(40, 24), numbers(24, 36)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        agree(torch.mm, a, b, tolerance=3e-3)
        agree(lambda a, b: a[:, 1:] @ b[1:], a, b, tolerance=3e-3)
        agree(lambda a, b: a.t().contiguous().t() @ b, a, b, tolerance=3e-3)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def test_products_become_ptx() -> None:
    for key in (("float", 128, 128, "kr", False, "float"), ("double", 64, 64, "es", False, "double")):
        text = room("cuda.products").text_of(*key)
        assert "fma.rn" in room("cuda.ptx").compiled(text, (7, 0))
    for key in (
        ("half", 128, 128, "kr", False, "half"),
        ("bfloat", 64, 64, "rr", False, "float"),
        ("float", 64, 128, "ts", True, "float"),
    ):
        text = room("cuda.tensor_products").text_of(*key)
        ptx = room("cuda.ptx").compiled(text, (8, 0))
        assert "mma.sync" in ptx and "ldmatrix" in ptx
        if key[3] == "ts":  # words of one row are stored together: one by one they would meet in banks
            assert "st.shared.v4" in ptx and "st.shared.b32" not in ptx and "st.shared.u32" not in ptx


LARGE = [(64, 64, 64), (128, 192, 264), (200, 136, 72), (72, 712, 136), (96, 64, 77)]


@pytest.mark.parametrize("sizes", LARGE)
@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_halves_that_tensor_cores_take_from_shared_memory(sizes: tuple[int, int, int], dtype: Any) -> None:
    m, k, n = sizes
    a, b = numbers(m, k, dtype=dtype), numbers(k, n, dtype=dtype)
    agree(torch.mm, a, b, grad=dtype is torch.bfloat16)  # the gradients are a @ b.t() and a.t() @ b
    agree(lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(), a, b, grad=False)
    agree(lambda a, b: torch.addmm(a[0, :1], a, b, beta=0.5, alpha=2), a, b, grad=False)


def test_products_of_halves_in_batches_and_wide_tiles() -> None:
    a, b = (numbers(134, 64, 72).to(torch.bfloat16) for _ in range(2))
    agree(lambda a, b: a @ b.transpose(1, 2), a, b, grad=False)
    agree(lambda a, b: a.transpose(1, 2) @ b, a, b, grad=False)


def test_products_for_hopper_become_ptx() -> None:
    for key in (("half", 128, "kr", "half", True), ("bfloat", 128, "rk", "float", False)):
        text = room("cuda.hopper_products").text_of(*key)
        ptx = room("cuda.ptx").compiled(text, (9, 0))
        assert ptx.count("wgmma.mma_async") == 4
        one_left, none_left = (ptx.index(f"wait_group.sync.aligned {left};") for left in (1, 0))
        assert ptx.index("mma_async") < one_left < none_left
