"""Products of matrices on the device: which kernel, which tiles, and how many parts of the depth.

float32 and float64 are multiplied as they are (jit/cuda/products.py), halves by tensor cores, and so is float32 where
`torch.backends.cuda.matmul.allow_tf32` lets it (jit/cuda/tensor_products.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, window
from pullback.kernels.cuda.native import native, reduce_into, reduced
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.jit.language.complex_parts import from_parts
from pullback.kernels.precision import matmul

ELEMENTS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat"}
BUSY = 264
"""Blocks that keep a large device busy: two for each of 132 multiprocessors."""
ENOUGH = 120
"""Tiles that are enough for a large device: it has 108 to 132 multiprocessors, of which a few may have none."""
PART = 256
"""The least depth of a part: less is not worth writing it and adding it up."""
FEW = 66
"""Blocks, half as many as there are multiprocessors, from which on the depth is not cut into parts."""
MOST = 65535
"""Blocks along the second and third dimension of a grid."""
TYPES = "Q" * 9 + "q" * 18 + "dd"
"""What a kernel is told: addresses, numbers, alpha and beta."""
PLANS = 4096
plans: dict[Any, Any] = {}
"""How products are computed, by what their factors look like."""


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


def tile_of(batch: int, rows: int, columns: int, large: bool) -> tuple[int, int]:
    """The rows and columns of a tile: the largest of which there are enough, but none that would be half empty."""
    for high, broad in ((128, 128), (128, 64), (64, 128)) if large else ():
        fills = rows > high // 2 and columns > broad // 2
        if fills and math.ceil(rows / high) * math.ceil(columns / broad) * batch >= ENOUGH:
            return high, broad
    return 64, 64


class Plan:
    """How a product is computed: the kernel, its grid, and the numbers it is told. Addresses come with every call."""

    __slots__ = ("grid", "index", "numbers", "ready", "shape", "shared", "splits", "wide")

    def __init__(
        self, kind: Any, sizes: tuple[int, int, int, int], a: Operand, b: Operand, c: Target, added: Any, alpha: float,
        tf32: bool,
    ) -> None:  # fmt: skip
        """`sizes` are the batch, rows, columns and depth; `added` are the strides of D, which has C's dtype."""
        batch, rows, columns, depth = sizes
        self.index = c.array.device.index or 0
        element = ELEMENTS[kind.name]
        high, broad = tile_of(batch, rows, columns, element != "double")
        wide = 0 if element == "double" else 16 // kind.itemsize
        loaders = a.loader(rows, depth, wide) + b.loader(columns, depth, wide)
        scattered = c.columns is not None
        by_hopper = is_half(kind) and not scattered and suits_hopper(self.index, rows, columns, depth, loaders)
        if by_hopper:
            high, broad = 128, 256 if math.ceil(rows / 128) * math.ceil(columns / 256) * batch >= BUSY // 2 else 128
        across, down = -(-columns // broad), -(-rows // high)
        self.splits = 1
        if added is None and alpha == 1 and c.columns is None and across * down * batch <= FEW:
            self.splits = max(min(BUSY // (across * down * batch), depth // PART, MOST // batch), 1)
        chunk = math.ceil(math.ceil(depth / self.splits) / 32) * 32
        self.splits = max(-(-depth // chunk), 1)
        steps, result = (c.batch, c.row, c.column, 0), element
        self.wide, self.shape = SINGLE if is_half(kind) else kind, (self.splits, batch, rows, columns)
        if self.splits > 1:
            result = ELEMENTS[self.wide.name]
            steps = (rows * columns, columns, 1, batch * rows * columns)
        kernels: Any
        key: tuple[Any, ...]
        self.shared = 0
        if by_hopper:
            even = not any([step % 2 for step in (columns, *steps[:2], steps[3])]) and c.array.address % 8 == 0
            paired = added is None and alpha == 1 and steps[2] == 1 and even
            kernels, key = room("cuda.hopper_products"), (element, broad, loaders, result, paired)
            self.shared = kernels.shared_bytes(broad)
        elif is_half(kind) or tf32:
            kernels, key = room("cuda.tensor_products"), (element, high, broad, loaders, scattered, result)
        else:
            kernels, key = room("cuda.products"), (element, high, broad, loaders, scattered, result)
        self.ready = function(self.index, kernels.name_of(*key), lambda: kernels.text_of(*key))
        strides = (a.batch, a.row, a.depth, b.batch, b.depth, b.row, *steps, *(added or (0, 0, 0)))
        self.numbers = (rows, columns, depth, self.splits, chunk, *strides)
        self.grid = (across, down, batch * self.splits)

    def run(
        self, a: int, b: int, c: Any, d: int = 0, alpha: float = 1.0, beta: float = 0.0, tables: Any = (0, 0, 0, 0, 0)
    ) -> None:
        """Launch it on addresses; C is a contiguous array where there are parts to be added up."""
        target = c if self.splits == 1 else empty(self.shape, self.wide, None, c.device)
        given = (a, b, target.address, d, *tables, *self.numbers, alpha, beta)
        launch(self.index, self.ready, self.grid, TYPES, *given, shared=self.shared)
        if self.splits > 1 and c.dtype == self.wide:
            reduce_into("sum", target, (0,), c)
        elif self.splits > 1:
            c[...] = reduced("sum", target, 0, False).reshape(c.shape)


def multiply(
    kind: Any,
    sizes: tuple[int, int, int, int],
    a: Operand,
    b: Operand,
    c: Target,
    added: Any = None,
    tf32: bool = False,
) -> None:
    """C = A B + D by one kernel, or by one and a sum of parts; `added` are the address and strides of D."""
    plan = Plan(kind, sizes, a, b, c, None if added is None else added[1:], 1.0, tf32)
    tables = [0 if t is None else t.address for t in (a.rows, a.depths, b.rows, b.depths, c.columns)]
    d, beta = (0, 0.0) if added is None else (added[0], 1.0)
    plan.run(a.address, b.address, c.array, d, 1.0, beta, tables)


def strides_of(matrix: Any) -> tuple[int, int, int]:
    """Strides along the batch, rows and columns, in elements."""
    own = [0 if n == 1 else step // matrix.itemsize for n, step in zip(matrix.shape, matrix.strides, strict=True)]
    return (own[0], own[1], own[2]) if len(own) == 3 else (0, own[0], own[1])


def product(a: Any, b: Any, added: Any = None, beta: Any = 0.0, alpha: Any = 1.0, exact: bool = False) -> Any:
    """alpha * a @ b + beta * added, of matrices or of stacks of them; None if no kernel can give it.

    With `exact` float32 keeps its digits, whatever may be rounded to tf32 elsewhere.
    """
    kind = a.dtype
    operands = (a, b) if added is None else (a, b, added)
    if kind.kind == "c":
        return product_of_parts(a, b, added, beta, alpha, exact)
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
    facts = [(o.shape, o.strides, o.address % 16 == 0) for o in operands]
    rounds = matmul.allow_tf32 and not exact
    key = (*facts, kind, bool(beta), alpha == 1, rounds, index)
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= PLANS:
            plans.clear()
        (ab, ar, ac), (bb, br, bc), (cb, cr, cc) = (strides_of(m) for m in (a, b, out))
        steps = None if more is None or not beta else strides_of(more)
        tf32 = kind == SINGLE and rounds and has_tensor_cores(index)
        first, second = Operand(a, ab, ar, ac), Operand(b, bb, bc, br)
        sizes = (batch, rows, columns, depth)
        plan = plans[key] = Plan(kind, sizes, first, second, Target(out, cb, cr, cc), steps, alpha, tf32)
    plan.run(a.address, b.address, out, 0 if added is None else added.address, alpha, 0.0 if added is None else beta)
    return out


def product_of_parts(a: Any, b: Any, added: Any, beta: Any, alpha: Any, exact: bool) -> Any:
    """The same of complex matrices, by four products of their parts."""
    if any([type(o) is not DeviceArray or o.dtype != a.dtype for o in ((a, b) if added is None else (a, b, added))]):
        return None
    crossed, turned = product(a.real, b.real, exact=exact), product(a.real, b.imag, exact=exact)
    if crossed is None or turned is None:
        return None
    real = product(a.imag, b.imag, crossed, 1.0, -1.0, exact)
    imag = product(a.imag, b.real, turned, 1.0, 1.0, exact)
    if real is None or imag is None:
        return None
    made = pointwise(from_parts, (real, imag, a.dtype), {})
    if made is not None and alpha != 1:
        made = made * a.dtype.type(alpha)
    return made if added is None or not beta or made is None else made + added * a.dtype.type(beta)


@native("mm", "bmm")
def mm(a: Any, b: Any) -> Any:
    """a @ b"""
    return product(a, b)


@native("addmm", "baddbmm")
def addmm(added: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * added + alpha * a @ b"""
    if a.dtype.kind == "c":
        return product(a, b, added, beta, alpha)
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
    if self.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        return None
    if self.shape != tensor.shape or self.ndim != 1:
        return None
    terms = pointwise(np.multiply, (self, tensor), {})
    return None if terms is None else reduced("sum", terms, None, False)
