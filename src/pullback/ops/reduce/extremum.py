"""Largest and smallest elements: max, min, amax, amin, aminmax, argmax, argmin.

Where several elements are the largest, the gradient goes to the first of them if the op tells its index, and is
shared evenly otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._op.define import Array, function, op
from pullback._op.out import exact, exact_beside_indices, write_result
from pullback._tensor import Tensor
from pullback._thresholds import LARGE
from pullback.kernels.numpy.index.along import put_along, take_along
from pullback.kernels.numpy.reduce import extremum as kernels
from pullback.kernels.numpy.reduce.dims import position
from pullback.ops.pointwise.arithmetic import where_tensors
from pullback.ops.reduce.sums import axes, dims_of, restore, sum_dim
from pullback.ops.supported import invalid_combination, refuse, same_dtype

# ------------------------------------------------------------------ along one dimension, by index


@op(
    vmap="dims_of_vectors",
    space=None,
    node="GatherBackward0",
    self=lambda grad, self_sym_sizes, dim, indices, keepdim, repeated: place(
        grad, dim, indices, keepdim, self_sym_sizes, repeated
    ),
    result=lambda self_t, dim, indices, keepdim, repeated: pick(self_t, dim, indices, keepdim, repeated),
)
def pick(self: Array, dim: int, indices: Array, keepdim: bool = True, repeated: bool = False) -> Array:
    """The elements at `indices` along `dim`; without keepdim the indices lack that dimension."""
    return take_along(self, dim, indices, keepdim)


@op(
    vmap="dims_of_vectors",
    space=None,
    node="ScatterBackward0",
    self=lambda grad, dim, indices, keepdim, repeated: pick(grad, dim, indices, keepdim, repeated),
    result=lambda self_t, dim, indices, keepdim, size, repeated: place(self_t, dim, indices, keepdim, size, repeated),
)
def place(self: Array, dim: int, indices: Array, keepdim: bool, size: Any, repeated: bool = False) -> Array:
    """Zeros of a shape with the elements of self at `indices` along `dim`: what `pick` took, put back."""
    return put_along(self, dim, indices, keepdim, size, repeated)


def refuse_empty(
    name: str,
    self: Array,
    dim: Any,
    all_error: type[Exception] = RuntimeError,
    colon: str = "()",
    as_given: bool = False,
) -> None:
    """Raise torch's error for the largest of no elements, which counts `dim` from the front or names it `as_given`."""
    if dim is None or dim == ():
        advice = " Specify the reduction dim with the 'dim' argument." if all_error is RuntimeError else ""
        raise all_error(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{advice}")
    for d in (dim,) if type(dim) is int else dim:
        if not -self.ndim <= d < self.ndim:
            raise np.exceptions.AxisError(d, self.ndim)
        if self.shape[d] == 0:
            shown = d if as_given else d % self.ndim
            raise IndexError(f"{name}{colon}: Expected reduction dim {shown} to have non-zero size.")


def refuse_complex(kernel: str, self: Array, idle: bool = False) -> None:
    """Raise torch's error for numbers without an order; with `idle` not where there are none."""
    refuse(kernel, self, "c", idle)


def with_index(
    name: str, reduce: Callable[..., Array], argument: str, self: Array, dim: int, keepdim: bool
) -> tuple[Array, Array]:
    """The extremum along one dimension and where it is."""
    if self.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    if not self.size:
        refuse_empty(name, self, dim)
    if not self.ndim:
        return self.copy() if axes((dim,), 0) is None else self, np.zeros((), np.int64)
    found = position(argument, self, dim, keepdim) if self.size >= LARGE else None
    if found is not None:
        return found
    where = getattr(self, argument)(dim, None, keepdims=keepdim)
    if self.ndim == 1 and not keepdim:
        return self[where], where
    return reduce(self, dim, keepdim), where


@op(
    kernel="max_all",
    space=None,
    node="MaxBackward0",
    name="max",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def max_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The largest elements along `dim` and their indices."""
    return with_index("max", kernels.largest, "argmax", self, dim, keepdim)


@op(
    kernel="min_all",
    space=None,
    node="MinBackward0",
    name="min",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def min_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The smallest elements along `dim` and their indices."""
    return with_index("min", kernels.smallest, "argmin", self, dim, keepdim)


# ------------------------------------------------------------------ of all elements


@op(
    vmap="aligned",
    space=None,
    node="MaskedFillBackward1",
    self=lambda grad, weights: grad * weights,
    result=lambda self_t, weights: distribute(self_t, weights),
)
def distribute(self: Array, weights: Array) -> Array:
    """self times weights, but zero where the weight is zero, or the share of nobody, whatever self is."""
    return np.where(weights > 0, self * weights, np.zeros((), weights.dtype))


@op(vmap="compared", space=None)
def shares(self: Array, value: Array, dim: Any = None, nan_is_equal: bool = False) -> Array:
    """One over their number where elements equal `value`, zero elsewhere: each one's share of the gradient."""
    mask = self == value
    if nan_is_equal and np.isnan(value).any():
        mask |= (self != self) & (value != value)
    return mask.astype(self.dtype) / np.add.reduce(mask, axes(dim, self.ndim), np.int64, None, True).astype(self.dtype)


@op(
    kernel="max_all",
    space=None,
    node="MaxBackward1",
    name="max",
    vmap="reduced",
    along="amax_dim",
    self=lambda grad, self, result: distribute(grad, shares(self, result, None, True)),
    result=lambda self_t, self, result: sum_dim(self_t * shares(self, result), None),
)
def max_all(self: Array) -> Array:
    """The largest element."""
    if self.dtype.kind == "c":
        refuse_complex("max_all", self)
    if not self.size:
        refuse_empty("max", self, None)
    return kernels.largest(self, None, False)


@op(
    kernel="min_all",
    space=None,
    node="MinBackward1",
    name="min",
    vmap="reduced",
    along="amin_dim",
    self=lambda grad, self, result: distribute(grad, shares(self, result, None, True)),
    result=lambda self_t, self, result: sum_dim(self_t * shares(self, result), None),
)
def min_all(self: Array) -> Array:
    """The smallest element."""
    if self.dtype.kind == "c":
        refuse_complex("min_all", self)
    if not self.size:
        refuse_empty("min", self, None)
    return kernels.smallest(self, None, False)


@function(out=True, out_dtype=exact_beside_indices)
def max(self: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Find the largest element, the largest along a dimension with their indices, or the larger of two tensors.

    `max(input)` returns a tensor without dimensions; equal largest elements share its gradient evenly.
    `max(input, dim)` returns the named tuple `(values, indices)`; with `keepdim` the dimension stays, with size 1.
    `max(input, other)` is `maximum(input, other)`: elementwise, broadcast to a common shape.
    A NaN among the elements becomes the result.
    """
    if not isinstance(self, Tensor):
        raise invalid_combination("max", (self, other if dim is None else dim))
    if dim is None:
        if keepdim:
            raise invalid_combination("max", (self, keepdim))
        return max_all(self) if other is None else self.maximum(other)
    return (
        self.maximum(dim) if isinstance(dim, Tensor) and (dim.ndim or keepdim is False) else max_dim(self, dim, keepdim)
    )


@function(out=True, out_dtype=exact_beside_indices)
def min(self: Array, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Find the smallest element, the smallest along a dimension with their indices, or the smaller of two tensors.

    `min(input)` returns a tensor without dimensions; equal smallest elements share its gradient evenly.
    `min(input, dim)` returns the named tuple `(values, indices)`; with `keepdim` the dimension stays, with size 1.
    `min(input, other)` is `minimum(input, other)`: elementwise, broadcast to a common shape.
    A NaN among the elements becomes the result.
    """
    if not isinstance(self, Tensor):
        raise invalid_combination("min", (self, other if dim is None else dim))
    if dim is None:
        if keepdim:
            raise invalid_combination("min", (self, keepdim))
        return min_all(self) if other is None else self.minimum(other)
    return (
        self.minimum(dim) if isinstance(dim, Tensor) and (dim.ndim or keepdim is False) else min_dim(self, dim, keepdim)
    )


# ------------------------------------------------------------------ amax, amin, aminmax


def share_evenly(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extremum, shared by the elements that reach it."""
    ndim = self.ndim
    return restore(grad, ndim, dim, keepdim) * shares(self, restore(result, ndim, dim, keepdim), dim)


def mean_of_extremes(self_t: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The tangent of an extremum: the mean over the elements that reach it."""
    weights = shares(self, restore(result, self.ndim, dim, keepdim), dim)
    return sum_dim(where_tensors(weights == 0, 0, self_t * weights), dim, keepdim)


@op(
    kernel="max_values_cpu",
    space=None,
    name="amax",
    self=lambda grad, self, result, dim, keepdim: share_evenly(grad, self, result, dim, keepdim),
    result=lambda self_t, self, result, dim, keepdim: mean_of_extremes(self_t, self, result, dim, keepdim),
)
def amax_dim(self: Array, dim: Any = (), keepdim: bool = False) -> Array:
    """The largest elements over the dimensions `dim`."""
    refuse_complex("max_values_cpu", self)
    if not self.size:
        refuse_empty("amax", self, dim, as_given=True)
    return kernels.largest(self, axes(dim, self.ndim), keepdim)


@op(
    kernel="min_values_cpu",
    space=None,
    name="amin",
    self=lambda grad, self, result, dim, keepdim: share_evenly(grad, self, result, dim, keepdim),
    result=lambda self_t, self, result, dim, keepdim: mean_of_extremes(self_t, self, result, dim, keepdim),
)
def amin_dim(self: Array, dim: Any = (), keepdim: bool = False) -> Array:
    """The smallest elements over the dimensions `dim`."""
    refuse_complex("min_values_cpu", self)
    if not self.size:
        refuse_empty("amin", self, dim, as_given=True)
    return kernels.smallest(self, axes(dim, self.ndim), keepdim)


def written(name: str, result: Any, out: Tensor) -> Tensor:
    """The result of amax or amin in the tensor given for it, which must have its dtype."""
    if out._array.dtype is not result._array.dtype:
        mine, its = result.dtype.scalar_type, out.dtype.scalar_type
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {mine} for input's dtype and {its} for out's "
            "dtype."
        )
    return write_result(name, result, out)  # type: ignore[no-any-return]


@function(numpy=("amax", "max"))
def amax(self: Array, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Array:
    """Find the largest elements over one or more dimensions, without their indices.

    `dim` is a dimension or a tuple of them; an empty tuple, the default, reduces all.
    With `keepdim` the reduced dimensions stay, with size 1.
    Equal largest elements share the gradient evenly; `max` along a dimension gives it to one of them.
    """
    result = amax_dim(self, dims_of(dim) or (), keepdim)
    return result if out is None else written("amax", result, out)


@function(numpy=("amin", "min"))
def amin(self: Array, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Array:
    """Find the smallest elements over one or more dimensions, without their indices.

    `dim` is a dimension or a tuple of them; an empty tuple, the default, reduces all.
    With `keepdim` the reduced dimensions stay, with size 1.
    Equal smallest elements share the gradient evenly; `min` along a dimension gives it to one of them.
    """
    result = amin_dim(self, dims_of(dim) or (), keepdim)
    return result if out is None else written("amin", result, out)


def aminmax_backward(grad_min: Any, grad_max: Any, self: Any, dim: Any, keepdim: bool, low: Any, high: Any) -> Any:
    """The gradient of aminmax: of the two, whichever arrived."""
    dim = dims_of(dim)
    from_min = None if grad_min is None else share_evenly(grad_min, self, low, dim, keepdim)
    from_max = None if grad_max is None else share_evenly(grad_max, self, high, dim, keepdim)
    if from_min is None or from_max is None:
        return from_max if from_min is None else from_min
    return from_min + from_max


@op(
    outputs=("min", "max"),
    check_out=same_dtype,
    self=lambda grad_min, grad_max, self, dim, keepdim, min, max: aminmax_backward(
        grad_min, grad_max, self, dim, keepdim, min, max
    ),
    result=lambda self_t, self, dim, keepdim, min, max: (
        mean_of_extremes(self_t, self, min, dims_of(dim), keepdim),
        mean_of_extremes(self_t, self, max, dims_of(dim), keepdim),
    ),
)
def aminmax(self: Array, *, dim: int | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    """Find the smallest and the largest element in one call, of the whole tensor or along a dimension.

    Returns the named tuple `(min, max)`. `dim` is one dimension, or None for all elements.
    With `keepdim` the dimension stays, with size 1. A NaN among the elements becomes both results.
    """
    refuse_complex("aminmax_cpu", self)
    if not self.size:
        if dim is None:
            raise RuntimeError(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            )
        refuse_empty("aminmax", self, dim, colon="")
    axis = axes(dims_of(dim), self.ndim)
    return kernels.smallest(self, axis, keepdim), kernels.largest(self, axis, keepdim)


# ------------------------------------------------------------------ argmax, argmin


def where_extreme(name: str, self: Array, dim: int | None, keepdim: bool) -> Array:
    """The index of the extremum: the first where several are equal, and nan counts as the most extreme."""
    if self.dtype.kind in "cb":
        raise RuntimeError(f"{name}(): does not support {'complex' if self.dtype.kind == 'c' else 'bool'} input")
    if not self.size:
        refuse_empty(name, self, dim, IndexError)
    if dim is not None:
        dim = axes((dim,), self.ndim)
    found = position(name, self, dim, keepdim) if self.size >= LARGE else None
    return getattr(self, name)(dim, None, keepdims=keepdim) if found is None else found[1]


@op(out_dtype=exact, numpy=("argmax",), vmap="arg_reduced")
def argmax(self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find the index of the largest element, in the flattened tensor or along a dimension.

    Without `dim` the index counts through the whole tensor in row-major order; with it, there is one index for each
    slice, and with `keepdim` the dimension stays, with size 1. Among equal elements the first is taken. Returns int64.
    """
    return where_extreme("argmax", self, dim, keepdim)


@op(out_dtype=exact, numpy=("argmin",), vmap="arg_reduced")
def argmin(self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Find the index of the smallest element, in the flattened tensor or along a dimension.

    Without `dim` the index counts through the whole tensor in row-major order; with it, there is one index for each
    slice, and with `keepdim` the dimension stays, with size 1. Among equal elements the first is taken. Returns int64.
    """
    return where_extreme("argmin", self, dim, keepdim)
