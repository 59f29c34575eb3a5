"""segment_reduce: reductions over neighbouring elements, as many at a time as `lengths` says."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.reduce import segments as kernels
from pullback.ops.supported import no_derivative, refuse

NAMES = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "max", "amax": "max", "min": "min", "amin": "min"}


def lengths_of(lengths: Array | None, offsets: Array | None) -> Array:
    """The lengths of the segments, given as such or by their borders."""
    return lengths if offsets is None else np.diff(offsets, axis=-1)


@op(
    vmap="entries",
    space=None,
    name="segment_reduce",
    data=lambda grad, result, data, reduce, lengths, offsets, axis, initial: segment_reduce_backward(
        grad, result, data, reduce, lengths, offsets, axis, initial
    ),
)
def segments_reduced(
    data: Array, reduce: str, lengths: Array | None, offsets: Array | None, axis: int, initial: Any
) -> Array:
    """The reduction of each segment."""
    return kernels.reduce(data, NAMES[reduce], lengths_of(lengths, offsets), initial)


@op(
    vmap="entries",
    space=None,
    name="_segment_reduce_backward",
    grad=lambda grad: no_derivative("_segment_reduce_backward"),
    output=lambda grad: no_derivative("_segment_reduce_backward"),
    data=lambda grad: no_derivative("_segment_reduce_backward"),
)
def segment_reduce_backward(
    grad: Array,
    output: Array,
    data: Array,
    reduce: str,
    lengths: Array | None,
    offsets: Array | None,
    axis: int,
    initial: Any,
) -> Array:
    """The gradient of the elements."""
    return kernels.reduce_backward(grad, output, data, NAMES[reduce], lengths_of(lengths, offsets), initial)


def check_segments(
    data: Tensor, reduce: str, lengths: Tensor | None, indices: Any, offsets: Tensor | None, axis: int, unsafe: bool
) -> None:
    """Torch's demands on the arguments."""
    if axis < 0 or axis >= max(data._array.ndim, 1):
        raise RuntimeError(f"segment_reduce(): Expected axis to be in [0, {data._array.ndim}), but got {axis}.")
    if reduce not in NAMES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    given, what = (offsets, "offsets") if offsets is not None else (lengths, "lengths")
    assert given is not None
    if axis != given._array.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}.")
    refuse("_segment_reduce_lengths_cpu_kernel1", given._array, "fcb")
    if offsets is None and not unsafe:
        if given._array.size and given._array.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if (np.add.reduce(given._array, axis=-1) != data._array.shape[axis]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    refuse("_segment_reduce_cpu", data._array, "iubc")


@function(raw=True, explained=True, method=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduce consecutive segments of a tensor along `axis`: their sum, mean, product, largest or smallest element.

    `reduce` is "sum", "mean", "prod", "max" or "min". `lengths` says how many elements each segment has; instead,
    `offsets` may say where each begins, and the last ends. With leading dimensions, each row has segments of its own.
    `initial` is the value to begin with, also the result of empty segments. `unsafe` skips the check that the lengths
    add up to the size. `indices` is not supported.
    """
    check_segments(data, reduce, lengths, indices, offsets, axis, unsafe)
    return segments_reduced(data, reduce, lengths, offsets, axis, initial)
