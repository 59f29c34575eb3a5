"""Values that meet at one place, reduced to their sum, product, mean, maximum or minimum: scatter_reduce, index_reduce.

The two differ only in how a source is spread over self and how a gradient is collected back; their derivatives are
one formula with these two steps as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._modes import is_grad_enabled
from pullback._op.define import Array, function, linear, op
from pullback._op.inplace import inplace
from pullback._op.out import exact
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor
from pullback.kernels.numpy.index import gather as kernels
from pullback.kernels.numpy.index import slices
from pullback.kernels.numpy.index.subscript import scalar_type
from pullback.ops.index.gather import gather, index_add, index_fill_value, index_select, scatter_add, scatter_value
from pullback.ops.index.masked import masked_fill_value
from pullback.ops.pointwise.arithmetic import conj, where_tensors
from pullback.ops.pointwise.compare import logical_and
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import refuse


def check_reduce(self: Array, reduce: str) -> None:
    """Raise torch's error for an unknown reduction, or one the dtype does not have."""
    if reduce not in kernels.COMBINE:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if (reduce in ("amax", "amin") and self.dtype.kind == "c") or (reduce == "mean" and self.dtype.kind == "b"):
        raise NotImplementedError(
            f"\"scatter_gather_tensor_cpu_reduce_{reduce}\" not implemented for '{scalar_type(self)}'"
        )


def write_reduced(self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> None:
    """Reduce the elements of src into self."""
    check_reduce(self, reduce)
    kernels.scatter_reduce_into(self, dim, index, src, reduce, include_self)


@op(
    inplace=write_reduced,
    out_overlap="apart",
    backward=lambda grad, self, dim, index, src, reduce, include_self, result: scatter_reduce_backward(
        grad, self, dim, index, src, reduce, include_self, result
    ),
    self=None,
    src=None,
    result=lambda self_t, src_t, self, dim, index, src, reduce, include_self, result: scatter_reduce_tangent(
        self_t, src_t, self, dim, index, src, reduce, include_self, result
    ),
    out_dtype=exact,
)
def scatter_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str, *, include_self: bool = True) -> Array:
    """Copy a tensor and reduce into it the elements of another that `index` sends to the same place along a dimension.

    For three dimensions and `dim=0`, `src[i][j][k]` goes to `out[index[i][j][k]][j][k]`.
    `reduce` is "sum", "prod", "mean", "amax" or "amin".
    With `include_self` what `input` holds there takes part; without, it only stays where nothing is sent.
    """
    return kernels.on_copy(write_reduced, self, dim, index, src, reduce, include_self)


def scatter_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """The gradients of self and src."""
    d_self, d_src = reduce_gradients(
        "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src",
        grad,
        self,
        src,
        result,
        reduce,
        include_self,
        lambda target, source: scatter_add(target, dim, index, source),
        lambda spread: gather(spread, dim, index),
        lambda this, source: scatter_reduce(this, dim, index, source, reduce, include_self=include_self),
    )
    return (d_self if include_self else scatter_value(d_self, dim, index, 0)), d_src


def write_reduced_slices(self: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool) -> None:
    """Reduce the slices of source into those of self."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    if self.dtype is source.dtype:
        if not include_self:
            refuse("index_reduce_func_exclude_input_init", self, "bc")
        if self.ndim < 2:
            refuse("index_func_", self, "bc")
        elif reduce in ("amax", "amin"):
            refuse("maximum_cpu" if reduce == "amax" else "minimum_cpu", self, "c", idle=not index.size)
        elif reduce == "mean":
            refuse("div_floor_cpu", self, "b")
    slices.index_reduce_into(self, dim, index, source, reduce, include_self)


@op(
    vmap="entries",
    space=None,
    name="index_reduce",
    inplace=write_reduced_slices,
    out_overlap="apart",
    backward=lambda grad, self, dim, index, source, reduce, include_self, result: index_reduce_backward(
        grad, self, dim, index, source, reduce, include_self, result
    ),
    self=None,
    source=None,
)
def index_reduce_slices(
    self: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """The slices of source reduced into those of self."""
    return kernels.on_copy(write_reduced_slices, self, dim, index, source, reduce, include_self)


@function(out=True, out_overlap="apart", out_dtype=exact)
def index_reduce(
    self: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """Copy a tensor and reduce into it the slices of another that `index` sends to the same place along a dimension.

    For `dim=0`, `source[i]` goes to `out[index[i]]`; `source` has size `len(index)` along `dim`.
    `reduce` is "prod", "mean", "amax" or "amin".
    With `include_self` what `input` holds there takes part; without, it only stays where nothing is sent.
    """
    warn_beta()
    return index_reduce_slices(self, dim, index, source, reduce, include_self=include_self)


@function(space=None)
def index_reduce_(
    self: Array, dim: int, index: Array, source: Array, reduce: str, *, include_self: bool = True
) -> Array:
    """In-place version of :func:`index_reduce`: reduce slices of `source` into those that `index` names along `dim`."""
    warn_beta()
    return inplace(index_reduce_slices.op, self, (dim, index, source, reduce, include_self))


def warn_beta() -> None:
    """Warn, the first time, as torch does."""
    warn_once("index_reduce() is in beta and the API may change at any time.")


def index_reduce_backward(
    grad: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool, result: Any
) -> tuple[Any, Any]:
    """The gradients of self and source."""
    d_self, d_source = reduce_gradients(
        "index_reduce(): Double backward is unsupported for source when >1 zeros in source",
        grad,
        self,
        source,
        result,
        reduce,
        include_self,
        lambda target, spread: index_add(target, dim, index, spread),
        lambda spread: index_select(spread, dim, index),
        lambda this, other: index_reduce_slices(this, dim, index, other, reduce, include_self=include_self),
    )
    return (d_self if include_self else index_fill_value(d_self, dim, index, 0)), d_source


# ------------------------------------------------------------------ the derivative of both


def reduce_gradients(
    complaint: str,
    grad: Any,
    self: Any,
    source: Any,
    result: Any,
    reduce: str,
    include_self: bool,
    spread: Callable[[Any, Any], Any],
    collect: Callable[[Any], Any],
    again: Callable[[Any, Any], Any],
) -> tuple[Any, Any]:
    """The gradients of self (as if it were included) and of the source.

    Args:
        complaint: what the second derivative of a product of several zeros raises.
        spread: adds a source to a target where the indices say.
        collect: reads back, in the shape of the source, where the indices point.
        again: the reduction itself, of another self and source.
    """
    if reduce == "sum":
        return grad, collect(grad)
    if reduce == "mean":
        met = zeros_of(grad, grad.shape)
        met = spread(met + 1 if include_self else met, zeros_of(source, source.shape) + 1)
        met = masked_fill_value(met, met == 0, 1)
        return grad / met, collect(grad) / collect(met)
    if reduce == "prod":
        return product_gradient(grad, self, again, source), source_product_gradient(
            complaint, grad, self, source, result, spread, collect, again
        )
    chosen = indicator(self == result, self)
    source_chosen = indicator(source == collect(result), source)
    share = grad / spread(chosen, source_chosen)
    return chosen * share, source_chosen * collect(share)


def indicator(mask: Any, like: Any) -> Any:
    """1 where the mask is True and 0 elsewhere, in the dtype of another tensor."""
    return masked_fill_value(zeros_of(like, like.shape), mask, 1)


def product_gradient(grad: Any, self: Any, again: Callable[[Any, Any], Any], source: Any) -> Any:
    """The gradient of self: the product of what met it. A zero is left out of the product it is divided out of."""
    safe = masked_fill_value(self, self == 0, 1)
    return grad * conj(again(safe, source)) / conj(safe)


@op(
    space=None,
    pointwise=True,
    untraced=True,
    node="Error",
    self=lambda grad, complaint: refuse_second(grad, complaint),
    result=linear,
)
def differentiable_once(self: Array, complaint: str) -> Array:
    """A gradient whose own derivative is not known."""
    return self.copy()


def refuse_second(grad: Any, complaint: str) -> Any:
    """Raise what torch says of such a derivative."""
    raise RuntimeError(f"{complaint} are scattered to the same position in self")


def source_product_gradient(
    complaint: str,
    grad: Any,
    self: Any,
    source: Any,
    result: Any,
    spread: Callable[[Any, Any], Any],
    collect: Callable[[Any], Any],
    again: Callable[[Any, Any], Any],
) -> Any:
    """The gradient of the source: result / source, except where one zero alone makes the product zero."""
    zero = source == 0
    met = collect(spread(zeros_of(self, self.shape), indicator(zero, source)))
    single = logical_and(zero, met == 1)
    without = collect(grad * conj(again(self, masked_fill_value(source, single, 1))))
    divided = collect(grad * conj(result)) / conj(masked_fill_value(source, zero, 1))
    out = where_tensors(single, without, divided)
    if isinstance(met, Tensor) and is_grad_enabled() and bool((met > 1).any()):
        return differentiable_once(out, complaint)
    return out


def scatter_reduce_tangent(
    self_t: Any,
    src_t: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
) -> Any:
    """The tangent of scatter_reduce: extrema share theirs among all that reach them."""
    if reduce in ("sum", "mean"):
        return scatter_reduce(self_t, dim, index, src_t, reduce, include_self=include_self)
    if reduce == "prod":
        raise NotImplementedError(
            "Trying to use forward AD with scatter_reduce that does not support it because it has not been implemented "
            "yet."
        )
    chosen = indicator(self == result, self)
    src_chosen = indicator(src == gather(result, dim, index), src)
    moved = scatter_reduce(chosen * self_t, dim, index, src_chosen * src_t, "sum", include_self=include_self)
    return moved / scatter_reduce(chosen, dim, index, src_chosen, "sum", include_self=include_self)
