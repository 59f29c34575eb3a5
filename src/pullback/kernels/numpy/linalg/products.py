"""Products of matrices: by NumPy's BLAS or by a compiled kernel, whichever was measured to be quicker for the shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import wrap_number
from pullback._arrays.half import is_half
from pullback._dtype import FROM_NUMPY
from pullback._runtime import messages
from pullback._thresholds import (
    LEAST_WORK,
    MOST_IN_SMALL_BATCH,
    MOST_IN_SMALL_PRODUCT,
    MUCH_WORK,
    NARROW_PRODUCT,
)
from pullback.kernels import workers
from pullback.kernels.compiled import OnFirstUse, room

AnyArray = np.ndarray[Any, Any]

BLAS_UP_TO = {
    "rows": 1 << 18,
    "columns": 1 << 17,
    "batch of rows": 1 << 18,
    "batch of columns": 1 << 12,
    "one of a batch": 1 << 12,
}
"""Multiplications up to which NumPy takes less time, by how the right matrix lies in memory.

Measured on one thread beside OpenBLAS 0.3.31 (AVX-512), compiled time / BLAS time:

    matrices   32: 2.3, by columns 1.7    48: 1.6, 1.0    64: 1.3, 0.85    96: 0.95, 0.8    256 to 2048: 0.92, 0.9
    batches    8: 1.9, 1.0    16: 1.2, 0.6    32: 1.05, 0.7    64: 1.03, 0.7

Up to 2**18 BLAS uses one thread; above it, its threads and ours would get in each other's way. NumPy multiplies the
matrices of a batch on one thread, so with several threads a batch is compiled as soon as it has as much work.
"""
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def is_large(a: AnyArray, b: AnyArray) -> bool:
    """True if two matrices are multiplied more quickly by the compiled kernel."""
    rows, depth = a.shape
    inner, columns = b.shape
    if a.dtype.char in "fd":
        limit = BLAS_UP_TO["rows" if b.strides[1] == b.itemsize else "columns"]
        wanted = rows * depth * columns > limit and columns > NARROW_PRODUCT and rows > 1
    else:
        wanted = is_integer(a.dtype)
    return wanted and inner == depth and room("gemm.product") is not None


def product(a: AnyArray, b: AnyArray) -> AnyArray:
    """The product of two matrices of one dtype, which fit."""
    return SINGLES.head(a, b) if a.size * b.shape[1] > LEAST_WORK else a.dot(b)


def product_plus(a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
    """The product of two matrices plus a row or a matrix that broadcasts to it."""
    if a.size * b.shape[1] > LEAST_WORK:
        return SINGLES.head(a, b, c)
    out = a.dot(b)
    out += c
    return out


def of_other_dtype(a: AnyArray, *others: AnyArray) -> AnyArray:
    """What the builtin for float32 does not take."""
    return DOUBLES.head(a, *others) if a.dtype is DOUBLE else beyond(a, *others)


def beyond(a: AnyArray, b: AnyArray, c: AnyArray | None = None) -> AnyArray:
    """The product (plus `c`) of matrices that are too large for the builtins or of another dtype or layout."""
    columns = b.shape[1]
    if a.size * columns > MUCH_WORK:
        if is_large(a, b):
            fits = c is None or (
                c.shape in ((columns,), (len(a), columns)) and c.strides[-1] == c.itemsize and c.dtype is a.dtype
            )
            made: AnyArray | None = room("gemm.product").multiply(a, b, c if fits else None)
            if made is not None:
                return made if fits else np.add(made, c, made)
        elif is_half(a.dtype):
            made = beyond(a.astype(SINGLE), b.astype(SINGLE)).astype(a.dtype)
            return made if c is None else np.add(made, c, made)
        elif a.dtype.kind in "iu" and a.dtype.itemsize < 4:
            # What is cut off is the same at any time.
            made = beyond(a.astype(np.int32), b.astype(np.int32)).astype(a.dtype)
            return made if c is None else np.add(made, c, made)
    if c is None:
        return a.dot(b)
    out = SINGLES.head(a, b)  # where only `c` was in the way
    out += c
    return out


def is_small(a: AnyArray, b: AnyArray, *_: AnyArray) -> bool:
    """Whether a builtin may take a product."""
    return a.size * b.shape[1] < MOST_IN_SMALL_PRODUCT


SINGLES = OnFirstUse(
    "small.products",
    lambda compiled: compiled.product("float", of_other_dtype),
    of_other_dtype,
    lambda a, *others: a.dtype is SINGLE and is_small(a, *others),
)
"""The product of small matrices of float32, by a builtin that hands on the others."""
DOUBLES = OnFirstUse("small.products", lambda compiled: compiled.product("double", beyond), beyond, is_small)


def is_integer(dtype: Any) -> bool:
    """Whether numbers of this dtype are multiplied by a kernel of their own: BLAS knows no integers."""
    return bool(dtype.kind == "i" and dtype.itemsize >= 4 and dtype.isnative)


def batch_product(a: AnyArray, b: AnyArray) -> AnyArray:
    """The products of the matrices of two batches of one dtype, which fit."""
    small = BATCHES.get(a.dtype.char)
    return any_batches(a, b) if small is None else small.head(a, b)


def any_batches(a: AnyArray, b: AnyArray) -> AnyArray:
    """The same for batches of any size and dtype."""
    batch, rows, depth = a.shape
    *fitting, columns = b.shape
    work = rows * depth * columns
    made: AnyArray | None
    if fitting != [batch, depth]:
        return np.matmul(a, b)  # which says so
    if batch * work > BLAS_UP_TO["one of a batch"] and a.dtype.char in "fd" and columns > NARROW_PRODUCT and rows > 1:
        in_rows = b.strides[2] == b.itemsize
        alone = work > BLAS_UP_TO["batch of rows" if in_rows else "batch of columns"]
        shared = workers.threads() > 1 and batch * work > BLAS_UP_TO["rows"] and work >= BLAS_UP_TO["one of a batch"]
        if (alone or shared) and room("gemm.product") is not None:
            made = room("gemm.product").multiply(a, b)
            if made is not None:
                return made
    elif batch * work > MUCH_WORK and is_half(a.dtype):
        return any_batches(a.astype(SINGLE), b.astype(SINGLE)).astype(a.dtype)
    elif batch * work > MUCH_WORK and is_integer(a.dtype) and room("gemm.product") is not None:
        made = room("gemm.product").multiply(a, b)
        if made is not None:
            return made
    out: AnyArray = np.matmul(a, b)
    return out


BATCHES = {
    char: OnFirstUse(
        "small.batches",
        lambda compiled, char=char: compiled.product(char, any_batches),
        any_batches,
        lambda a, b: a.size * b.shape[-1] < MOST_IN_SMALL_BATCH,
    )
    for char in "fd"
}
"""Builtins for small batches by dtype, which hand on the others."""


CATEGORIES = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
"""What kinds of numbers count as where dtypes are promoted."""


def write_scaled(out: AnyArray, array: AnyArray, factor: Any) -> AnyArray:
    """array * factor written to `out`, by the rules of `mul_` and not by those of sums with products."""
    if not out.size:
        return out
    dtype, kind = FROM_NUMPY[out.dtype], CATEGORIES[np.asarray(factor).dtype.kind]
    if kind > dtype.category:
        found = ("Bool", "Long", "Float", "ComplexFloat")[kind]
        raise RuntimeError(messages.cannot_cast(found, dtype.scalar_type))
    out[...] = array * (wrap_number(factor, dtype) if dtype.category == 1 else factor)
    return out
