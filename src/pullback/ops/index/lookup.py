"""Finding elements: isin, unravel_index, nonzero_static, hash_tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY, bool_, result_dtype
from pullback._op.define import Array, function, op
from pullback._op.out import exact, write_result
from pullback._tensor import Size, Tensor, fresh
from pullback._thresholds import FEW_PAIRS_COMPARED
from pullback.ops.create.cast import converted
from pullback.ops.create.data import missing
from pullback.ops.reduce.sums import axes, dims_of
from pullback.ops.shape.join import unbind
from pullback.ops.supported import invalid_combination

# ------------------------------------------------------------------ isin


@function(raw=True, explained=True, method=False, out_dtype=exact)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Tensor | None = None
) -> Tensor:
    """Test for each element whether it is among the `test_elements`.

    Either argument may be a number. The result is a bool tensor in the shape of `elements`; `invert` negates it.
    `assume_unique` promises that neither holds an element twice, which may be faster.
    """
    operands = (elements, test_elements)
    if not any(isinstance(value, Tensor) for value in operands):
        raise invalid_combination("isin", operands)
    for value in operands:
        if isinstance(value, Tensor) and (value.dtype.is_complex or value.dtype is bool_):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {value.dtype.scalar_type}")
        if isinstance(value, bool | complex):
            name = "Bool" if isinstance(value, bool) else "ComplexDouble"
            raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
    kind = result_dtype(operands)
    first, second = (
        converted(value, kind) if isinstance(value, Tensor) else fresh(np.asarray(value)) for value in operands
    )
    found = are_among(first, second, assume_unique, invert)
    return found if out is None else write_result("isin", found, out, differentiable=False)


@op(vmap="among", space=None, name="isin")
def are_among(elements: Array, test_elements: Array, assume_unique: bool, invert: bool) -> Array:
    """For each element whether it is among the others."""
    if elements.size * test_elements.size > FEW_PAIRS_COMPARED:
        return np.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    inside = np.logical_or.reduce(elements[..., None] == test_elements.reshape(-1), axis=-1)
    return ~inside if invert else inside


# ------------------------------------------------------------------ unravel_index


@function(raw=True, method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Convert positions in a flattened tensor to coordinates in a tensor of the given shape.

    `indices` is a tensor of integers. Returns a tuple of tensors of the same shape, one for each dimension.
    """
    if indices.is_complex() or indices.is_floating_point() or indices._array.dtype.kind == "b":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Size, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if 0 in sizes and indices._array.size:
        raise RuntimeError("ZeroDivisionError")
    # Python's rounding and remainders: positions out of range come in at the other end.
    steps = np.cumprod([1, *sizes[::-1][:-1]], dtype=np.int64)[::-1] if sizes else np.zeros(0, np.int64)
    places = indices._array[..., None] // steps % np.asarray(sizes, np.int64)
    return tuple(unbind(fresh(places), -1))


# ------------------------------------------------------------------ nonzero_static


@function()
def nonzero_static(self: Array, *, size: Any = None, fill_value: int = -1, out: Any = None) -> Array:
    """Find the indices of the first `size` elements that are not zero, in a result of fixed shape.

    Returns an int64 matrix `(size, ndim)`; if there are fewer such elements, the last rows hold `fill_value`.
    """
    if size is None:
        raise missing("nonzero_static", "size")
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    result = first_places(self, size, fill_value)
    return result if out is None else write_result("nonzero_static", result, out)


@op(vmap="entries", space=None, name="nonzero_static")
def first_places(self: Array, size: int, fill_value: int) -> Array:
    """So many places of elements that are not zero."""
    found = np.argwhere(self) if self.ndim else np.zeros((int(bool(self)), 0), np.int64)
    result = np.full((size, self.ndim), fill_value, np.int64)
    result[: len(found)] = found[:size]
    return result


# ------------------------------------------------------------------ hash_tensor


@op(space=None, name="hash_tensor")
def hashed(self: Array, dim: Any, keepdim: bool) -> Array:
    """The bits of all elements as 64-bit numbers, combined by exclusive or."""
    wide = self.astype(np.int64 if self.dtype.kind in "iub" else np.float64)
    return np.bitwise_xor.reduce(wide.view(np.uint64), axis=axes(dim, self.ndim), keepdims=keepdim)


@function()
def hash_tensor(self: Array, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Array:
    """Hash the elements of a tensor: the exclusive or of their bits, of all or along one or more dimensions.

    A number that changes when any one element changes. Elements are widened to 64 bits; the result is uint64.
    `dim` is a dimension or a tuple of them, an empty one meaning all; `mode` must be 0.
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = dims_of(dim)
    if not self._array.size and not dims:
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    if self._array.dtype.kind == "c":
        kind = FROM_NUMPY[self._array.dtype].scalar_type
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{kind}'")
    result = hashed(self, dims, keepdim)
    return result if out is None else write_result("hash_tensor", result, out)
