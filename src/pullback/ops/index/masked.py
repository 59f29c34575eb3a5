"""Masks and what is not zero: masked_fill, masked_select, masked_scatter, nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.kinds import answered
from pullback._arrays.memory import broadcast_view
from pullback._dtype import FROM_NUMPY
from pullback._op.apply import check_broadcast
from pullback._op.define import Array, function, linear, op
from pullback._op.inplace import run_inplace
from pullback._op.out import exactly, no_overlap, write_result
from pullback._runtime import messages
from pullback._tensor import Tensor
from pullback._thresholds import LARGE
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.numpy.index import subscript as kernels
from pullback.ops.reduce.sums import sum_all
from pullback.ops.shape.join import unbind
from pullback.ops.shape.reshape import check_expand, unsqueeze, zeros_of
from pullback.ops.supported import warn_if_expanded

BOOL = np.dtype(np.bool_)
INFINITY = float("inf")


# ------------------------------------------------------------------ masked_fill


CHOOSE = Kernels(lambda mask, value, self: np.where(mask, value, self), "masked_fill")


def write_filled(self: Array, mask: Array, value: Any, source: Any = None) -> None:
    """Overwrite the elements where the mask is True by one value, a number or an array without dimensions.

    With a `source`, the others become its elements.
    """
    if mask.dtype is not BOOL:
        name = FROM_NUMPY[mask.dtype].cpp_name
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {name}")
    if isinstance(value, (np.ndarray, np.generic)):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} "
                "dimension(s)."
            )
        value = element_of(value)
    if type(value) is not float or self.dtype.kind != "f" or not (-65504 <= value <= 65504 or value == -INFINITY):
        value = exact_number(value, FROM_NUMPY[self.dtype])
    if self.shape != mask.shape:
        mask = stretched(mask, self)
    others = self if source is None else source
    if 0 in self.strides:  # what one index fills no other takes back
        np.copyto(self, value, "unsafe", mask)
        return
    if self.size >= LARGE and CHOOSE.into(self, mask, np.asarray(value, self.dtype), others):
        return
    if source is not None:
        self[...] = source
    np.putmask(self, mask, value)


@answered(meta=lambda value: 0)
def element_of(value: Any) -> Any:
    """The element of an array without dimensions."""
    return value.item()


def stretched(mask: Array, self: Array) -> Array:
    """The mask in the shape of what is written to, or torch's error."""
    check_broadcast([self, mask])
    shape = whole(self.shape, mask.shape)
    if shape != self.shape:
        mine, its = messages.shape_text(self.shape), messages.shape_text(shape)
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {its}")
    return broadcast_view(mask, shape)


def filled(self: Array, mask: Array, value: Any) -> Array:
    """A copy, in the shape of both, with one value where the mask is True."""
    if self.shape != mask.shape:
        check_broadcast([mask, self])
        self = broadcast_view(self, whole(self.shape, mask.shape))
    if self.size >= LARGE:
        out = np.empty(self.shape, self.dtype)
        write_filled(out, mask, value, self)
        return out
    out = np.array(self, order="C")
    write_filled(out, mask, value)
    return out


@op(
    vmap="aligned",
    packed="moved_complex",
    kernel="masked_fill",
    space=None,
    name="masked_fill",
    inplace=write_filled,
    may_overlap="biufcV",
    vmap_inplace="inplace arithmetic",
    self=lambda grad, mask: masked_fill_value(grad, mask, 0),
    result=lambda self_t, mask: masked_fill_value(self_t, mask, 0),
)
def masked_fill_value(self: Array, mask: Array, value: Any) -> Array:
    """A number where the mask is True."""
    return filled(self, mask, value)


@op(
    packed="moved_complex",
    kernel="masked_fill",
    space=None,
    name="masked_fill",
    node="MaskedFillBackward1",
    inplace=write_filled,
    may_overlap="biufcV",
    vmap="filled",
    vmap_inplace="inplace arithmetic",
    self=lambda grad, mask: masked_fill_value(grad, mask, 0),
    value=lambda grad, mask: sum_all(masked_select(grad, mask)),
    result=lambda self_t, mask, value_t: masked_fill_tensor(self_t, mask, value_t),
)
def masked_fill_tensor(self: Array, mask: Array, value: Array) -> Array:
    """The element of a tensor without dimensions where the mask is True."""
    return filled(self, mask, value)


def fill_overload(name: str, value: Any) -> Any:
    """Which masked_fill a value means."""
    if isinstance(value, Tensor):
        return masked_fill_tensor
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        kind = type(value).__name__
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {kind}), but expected one of:\n"
            " * (Tensor mask, Tensor value)\n"
            f"      didn't match because some of the arguments have invalid types: (Tensor, !{kind}!)\n"
            " * (Tensor mask, Number value)\n"
            f"      didn't match because some of the arguments have invalid types: (Tensor, !{kind}!)\n"
        )
    return masked_fill_value


@function(nested="strided")
def masked_fill(self: Array, mask: Array, value: Any) -> Array:
    """Copy a tensor and fill it with one value where a mask is True.

    `mask` is a bool tensor that broadcasts against `input`; `value` is a number or a tensor without dimensions.
    """
    if type(value) is float:
        return masked_fill_value(self, mask, value)
    return fill_overload("masked_fill", value)(self, mask, value)


@function(nested="strided", space=None)
def masked_fill_(self: Array, mask: Array, value: Any) -> Array:
    """In-place version of :func:`masked_fill`: write `value` where `mask`, which broadcasts to this tensor, is True."""
    warn_if_expanded("masked_fill_", self)
    return run_inplace(fill_overload("masked_fill_", value).op, self, (mask, value))


# ------------------------------------------------------------------ masked_select and masked_scatter


@op(
    dynamic=True,
    packed="moved",
    check_out=no_overlap,
    vmap="of_unknown_size",
    self=lambda grad, self, mask: masked_scatter(zeros_of(grad, whole(self.shape, mask.shape)), mask, grad),
    result=linear,
    out_dtype=exactly("masked_select(): self and result must have the same scalar type"),
)
def masked_select(self: Array, mask: Array) -> Array:
    """Select the elements where a mask is True, as a vector.

    `mask` is a bool tensor; it and `input` broadcast against each other. The elements come in row-major order, copied.
    """
    if mask.dtype is not BOOL:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if self.shape != mask.shape:
        check_broadcast([mask, self])
        shape = whole(self.shape, mask.shape)
        self, mask = broadcast_view(self, shape), broadcast_view(mask, shape)
    return self[mask]


def whole(shape: tuple[int, ...], mask: tuple[int, ...]) -> tuple[int, ...]:
    """The shape a tensor and a mask have together."""
    return shape if shape == mask else np.broadcast_shapes(shape, mask)


def write_scattered(self: Array, mask: Array, source: Array) -> None:
    """Overwrite the elements where the mask is True by those of source, in order."""
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{kernels.scalar_type(self)} and "
            f"{kernels.scalar_type(source)}"
        )
    if self.shape != mask.shape:
        check_expand(mask, self.shape)
    if mask.dtype is not BOOL:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {kernels.scalar_type(mask)}"
        )
    if self.shape != mask.shape:
        mask = stretched(mask, self)
    kernels.masked_scatter_into(self, mask, source)


@op(
    vmap="mask_written",
    kernel="masked_scatter",
    inplace=write_scattered,
    out=False,
    out_overlap="unchecked",
    self=lambda grad, mask: masked_fill_value(grad, mask, 0),
    source=lambda grad, mask, source_sym_sizes: masked_scatter_backward(grad, mask, source_sym_sizes),
    result=linear,
)
def masked_scatter(self: Array, mask: Array, source: Array) -> Array:
    """Copy a tensor and replace the elements where a mask is True by those of `source`, in order.

    `mask` is a bool tensor that broadcasts against `input`. The first True takes the first element of `source`, the
    next one the second; `source` needs at least as many elements as there are True ones.
    """
    if self.shape != mask.shape:
        check_broadcast([mask, self])
        self = broadcast_view(self, whole(self.shape, mask.shape))
    out = np.array(self, order="C")
    write_scattered(out, mask, source)
    return out


@op(
    vmap="entries",
    space=None,
    arrived=lambda grad, arrived_geometry, mask: masked_scatter(zeros_of(grad, arrived_geometry[0]), mask, grad),
    result=linear,
)
def masked_scatter_backward(arrived: Array, mask: Array, sizes: Any) -> Array:
    """The gradient of the source: the elements where the mask is True, then zeros."""
    selected = masked_select(arrived, mask)
    out = np.zeros(sizes, selected.dtype)
    out.reshape(-1)[: selected.size] = selected
    return out


# ------------------------------------------------------------------ what is not zero


@op(
    dynamic=True,
    packed="compared_complex",
    kernel="nonzero_count_cpu",
    space=None,
    name="nonzero",
    vmap="of_unknown_size",
)
def nonzero_places(self: Array) -> Array:
    """The places of the elements that are not zero, one row each."""
    return kernels.nonzero(self)


@function()
def nonzero(self: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Find the indices of the elements that are not zero.

    Returns an int64 matrix `(z, ndim)`, one row for each of the z elements in row-major order.
    With `as_tuple` it is a tuple of vectors `(z,)` instead, one for each dimension, with which one can index.
    """
    if type(as_tuple) is not bool:
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return unbind(nonzero_places(self if self._array.ndim else unsqueeze(self, 0)), 1)
    if out is not None:
        if out._array.dtype != np.int64:
            raise RuntimeError(
                f"nonzero: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_type}"
            )
        return write_result("nonzero", nonzero_places(self), out)
    return nonzero_places(self)


@op(dynamic=True, vmap="entries", kernel="nonzero_count_cpu", out=False)
def argwhere(self: Array) -> Array:
    """Find the indices of the elements that are not zero, as an int64 matrix with one row for each of them."""
    return kernels.nonzero(self)
