"""Products of matrices on the device: which kernel, which tiles, and how many parts of the depth.

float32 and float64 are multiplied as they are (jit/cuda/products.py), halves by tensor cores, and so is float32 where
`torch.backends.cuda.matmul.allow_tf32` lets it (jit/cuda/tensor_products.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.cuda.native import native, reduced
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.precision import matmul

ELEMENTS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat"}
BUSY = 264
"""Blocks that keep a large device busy: two for each of 132 multiprocessors."""
PART = 256
"""The least depth of a part: less is not worth writing it and adding it up."""
MOST = 65535
"""Blocks along the second and third dimension of a grid."""


class Operand:
    """How one factor lies: strides in elements along the batch, rows (columns of the second factor) and depth."""

    __slots__ = ("address", "batch", "by", "depth", "depths", "row", "rows")

    def __init__(
        self, array: Any, batch: int, row: int, depth: int, rows: Any = None, depths: Any = None, by: str = "t"
    ) -> None:
        """`rows` and `depths` are tables of offsets on the device in place of strides; `by` is the loader then."""
        self.address, self.by = array.address, by
        self.batch, self.row, self.depth, self.rows, self.depths = batch, row, depth, rows, depths

    def loader(self, rows: int, depth: int, wide: int) -> str:
        """The kernel's way to read it; `wide` elements fill 16 bytes, 0 says never to read so many at once."""
        if self.rows is not None:
            return self.by
        along = wide and self.address % 16 == 0 and self.batch % wide == 0
        if along and self.depth == 1 and self.row % wide == 0 and depth % wide == 0:
            return "k"
        if along and self.row == 1 and self.depth % wide == 0 and rows % wide == 0:
            return "r"
        return "e" if self.depth == 1 or (self.row != 1 and abs(self.depth) < abs(self.row)) else "s"


class Target:
    """Where the results go: strides along the batch, rows and columns; `columns` is a table in place of the last."""

    __slots__ = ("array", "batch", "column", "columns", "row")

    def __init__(self, array: Any, batch: int, row: int, column: int, columns: Any = None) -> None:
        self.array, self.batch, self.row, self.column, self.columns = array, batch, row, column, columns


def has_tensor_cores(index: int) -> bool:
    """True for devices that multiply bfloat16 and tf32 by tensor cores."""
    return bool(required().devices[index].attributes["major"] >= 8)


def suits_hopper(index: int, rows: int, columns: int, depth: int, loaders: str) -> bool:
    """Whether the tensor cores of compute capability 9.0 take a product of halves from shared memory."""
    facts = required().devices[index].attributes
    return (facts["major"], facts["minor"]) == (9, 0) and set(loaders) <= {"k", "r"} and min(rows, columns, depth) >= 64


def multiply(
    kind: Any,
    sizes: tuple[int, int, int, int],
    a: Operand,
    b: Operand,
    c: Target,
    added: tuple[int, int, int, int] | None = None,
    beta: float = 0.0,
    alpha: float = 1.0,
    tf32: bool = False,
) -> None:
    """C = alpha * A B + beta * D by one kernel, or by one and a sum of parts.

    `sizes` are the batch, rows, columns and depth; `added` is the address and strides of D, which has C's dtype.
    """
    batch, rows, columns, depth = sizes
    place = c.array.device
    index = place.index or 0
    element = ELEMENTS[kind.name]
    by_tensor_cores = is_half(kind) or tf32
    wide = 0 if element == "double" else 16 // kind.itemsize
    loaders = a.loader(rows, depth, wide) + b.loader(columns, depth, wide)
    scattered = c.columns is not None
    by_hopper = is_half(kind) and not scattered and suits_hopper(index, rows, columns, depth, loaders)
    tile = 128 if math.ceil(rows / 128) * math.ceil(columns / 128) * batch >= BUSY // 2 else 64
    if element == "double":
        tile = 64
    high = wide_tile = tile
    if by_hopper:
        high, wide_tile = 128, 256 if math.ceil(rows / 128) * math.ceil(columns / 256) * batch >= BUSY // 2 else 128
    across, down = -(-columns // wide_tile), -(-rows // high)
    splits = 1
    if added is None and alpha == 1 and c.columns is None:
        splits = max(min(BUSY // (across * down * batch), depth // PART, MOST // batch), 1)
    chunk = math.ceil(math.ceil(depth / splits) / 32) * 32
    splits = max(-(-depth // chunk), 1) if depth else 1
    target, steps, result = c.array, (c.batch, c.row, c.column, 0), element
    if splits > 1:
        result = "float" if is_half(kind) else element
        target = empty((splits, batch, rows, columns), SINGLE if is_half(kind) else kind, None, place)
        steps = (rows * columns, columns, 1, batch * rows * columns)
    kernels: Any
    key: tuple[Any, ...]
    shared = 0
    if by_hopper:
        even = not any([step % 2 for step in (columns, *steps[:2], steps[3])]) and target.address % 8 == 0
        paired = added is None and alpha == 1 and steps[2] == 1 and even
        kernels, key = room("cuda.hopper_products"), (element, wide_tile, loaders, result, paired)
        shared = kernels.shared_bytes(wide_tile)
    elif by_tensor_cores:
        kernels, key = room("cuda.tensor_products"), (element, tile, loaders, scattered, result)
    else:
        kernels, key = room("cuda.products"), (element, tile, tile, loaders, scattered, result)
    ready = function(index, kernels.name_of(*key), lambda: kernels.text_of(*key))
    more = (target.address, 0, 0, 0) if added is None else added
    tables = [0 if t is None else t.address for t in (a.rows, a.depths, b.rows, b.depths, c.columns)]
    numbers = (rows, columns, depth, splits, chunk, a.batch, a.row, a.depth, b.batch, b.depth, b.row, *steps, *more[1:])
    launch(
        index, ready, (across, down, batch * splits), "Q" * 9 + "q" * 18 + "dd",
        a.address, b.address, target.address, more[0], *tables, *numbers, alpha, 0.0 if added is None else beta,
        shared=shared,
    )  # fmt: skip
    if splits > 1:
        total = reduced("sum", target, 0, False)
        shape = (batch, rows, columns)
        own = [step * c.array.itemsize for step in (c.batch, c.row, c.column)]
        c.array.seen_as(shape, own)[...] = total


def strides_of(matrix: Any) -> tuple[int, int, int]:
    """Strides along the batch, rows and columns, in elements."""
    own = [0 if n == 1 else step // matrix.itemsize for n, step in zip(matrix.shape, matrix.strides, strict=True)]
    return (own[0], own[1], own[2]) if len(own) == 3 else (0, own[0], own[1])


def product(a: Any, b: Any, added: Any = None, beta: float = 0.0, alpha: float = 1.0) -> Any:
    """alpha * a @ b + beta * added, of matrices or of stacks of them; None if no kernel can give it."""
    kind = a.dtype
    operands = (a, b) if added is None else (a, b, added)
    if kind.name not in ELEMENTS or any([type(o) is not DeviceArray or o.dtype != kind for o in operands]):
        return None
    if room("cuda.products") is None or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return None
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    batch = math.prod(a.shape[:-2])
    shape = (*a.shape[:-2], rows, columns)
    index = a.device.index or 0
    if batch > MOST or rows > 64 * MOST or any([step % o.itemsize for o in operands for step in o.strides]):
        return None
    if is_half(kind) and not has_tensor_cores(index):
        return None
    try:
        more = None if added is None else np.broadcast_to(added, shape)
    except ValueError:
        return None
    out = empty(shape, kind, None, a.device)
    if not out.size:
        return out
    if not depth:  # a kernel would read the first element, which is not there
        out[...] = 0 if more is None or not beta else beta * more
        return out
    counted("product")
    if required().emulated:
        wide = SINGLE if is_half(kind) else kind
        made = alpha * np.matmul(window(a).astype(wide), window(b).astype(wide))
        if more is not None and beta:
            made = made + beta * window(more).astype(wide)  # type: ignore[arg-type]
        window(out)[...] = made
        return out
    (ab, ar, ac), (bb, br, bc), (cb, cr, cc) = (strides_of(m) for m in (a, b, out))
    d = None if more is None or not beta else (added.address, *strides_of(more))
    first, second = Operand(a, ab, ar, ac), Operand(b, bb, bc, br)
    tf32 = kind == SINGLE and matmul.allow_tf32 and has_tensor_cores(index)
    multiply(kind, (batch, rows, columns, depth), first, second, Target(out, cb, cr, cc), d, beta, alpha, tf32)
    return out


@native("mm", "bmm")
def mm(a: Any, b: Any) -> Any:
    """a @ b"""
    return product(a, b)


@native("addmm", "baddbmm")
def addmm(added: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * added + alpha * a @ b"""
    if a.dtype.name not in ELEMENTS:
        return None
    return product(a, b, added, float(beta), float(alpha))


@native("mv")
def mv(self: Any, vec: Any) -> Any:
    """A matrix and a vector."""
    if type(vec) is not DeviceArray or vec.ndim != 1 or self.ndim != 2:
        return None
    made = product(self, vec[:, None])
    return None if made is None else made.reshape(-1)


@native("dot")
def dot(self: Any, tensor: Any) -> Any:
    """Two vectors."""
    if self.dtype.name not in ("float32", "float64") or self.shape != tensor.shape or self.ndim != 1:
        return None
    terms = pointwise(np.multiply, (self, tensor), {})
    return None if terms is None else reduced("sum", terms, None, False)
