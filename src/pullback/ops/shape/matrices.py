"""Matrices from vectors, vectors in matrices: vander, fill_diagonal_; and sum_to_size, which undoes broadcasting."""

from __future__ import annotations

from typing import Any

from pullback._dtype import int64, promote_types
from pullback._op.define import function
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trim
from pullback.ops.create.copy import copy_
from pullback.ops.reduce.products import cumprod
from pullback.ops.reduce.sums import sum_all, sum_dim
from pullback.ops.shape.rearrange import flip
from pullback.ops.shape.reshape import ints, unsqueeze, view_
from pullback.ops.shape.slicing import as_strided_view, select_int, slice_


@function(raw=True, explained=True, method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector: its columns are powers of `x`.

    The result has shape `(len(x), N)` and is square by default. The powers fall from `N - 1` to 0, or rise from 0 to
    `N - 1` with `increasing`.
    """
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    result = x.new_empty((x.shape[0], count), dtype=promote_types(x.dtype, int64))
    if count > 0:
        select_int(result, 1, 0).fill_(1)
    if count > 1:
        copy_(slice_(result, 1, 1), unsqueeze(x, 1))
        copy_(slice_(result, 1, 1), cumprod(slice_(result, 1, 1), 1))
    return result if increasing else flip(result, (1,))


@function(raw=True, explained=True, space=None)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Fill the main diagonal with `fill_value`, in place.

    With more than two dimensions, which must all be of equal size, it fills the elements whose indices are all equal.
    With `wrap` the diagonal of a tall matrix begins again below its end, after a row left out.
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    strides, offset = self.stride(), self.storage_offset()
    height, width = shape[:2]
    size, step = min(height, width), sum(strides)
    as_strided_view(self, (size,), (step,), offset).fill_(value)
    if wrap and len(shape) == 2 and height > width + 1:
        rest = -(-self._array.size // (width + 1)) - size
        as_strided_view(self, (rest,), (step,), offset + strides[0] * (width + 1)).fill_(value)
    return self


@function(raw=True, explained=True, space=None)
def sum_to_size(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Sum a tensor to a shape that broadcasts to its own.

    Dimensions that broadcasting from `size` would add or stretch are summed over, which undoes it for gradients.
    """
    try:
        wanted, shape = ints("sum_to_size", "size", sizes if size is None else (size,)), self._array.shape
        lead = len(shape) - len(wanted)
        if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, shape[lead:])):
            raise RuntimeError(f"size {{{shape_text(wanted)}}} is not expandable to size {{{shape_text(shape)}}}.")
        if not wanted:
            return sum_all(self)
        dims = (*range(lead), *[lead + i for i, n in enumerate(wanted) if n == 1 and shape[lead + i] != 1])
        out = sum_dim(self, dims, True) if dims else self
        return view_(out, wanted) if lead else out
    except Exception as error:
        trim(error)
        raise
