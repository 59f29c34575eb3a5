"""Sums over dimensions, and the questions any, all, count_nonzero and logsumexp that are sums in disguise."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._arrays.memory import row_major
from pullback._dtype import FROM_NUMPY, bool_, named_dtype
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, elementwise, function, linear, op
from pullback._op.missing import UNNAMED, missing_dim
from pullback._runtime.messages import shape_text
from pullback._thresholds import LARGE
from pullback.kernels.jit.small.choose import Adding
from pullback.kernels.numpy.index.subscript import INT64, UINT8
from pullback.kernels.numpy.math.direct import count_nonzero as nonzeros
from pullback.kernels.numpy.math.numbers import no_zero
from pullback.kernels.numpy.norm import softmax
from pullback.kernels.numpy.reduce.dims import total
from pullback.kernels.numpy.reduce.extremum import largest, smallest
from pullback.ops.create.copy import warn_imaginary_part
from pullback.ops.pointwise.arithmetic import conj, div_number
from pullback.ops.shape.reshape import expand, unsqueeze_multiple
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ dimensions


def dims_of(dim: Any) -> tuple[int, ...] | None:
    """Torch's `dim` as reductions save it: None, or a tuple."""
    if type(dim) is int:
        return (dim,)
    if dim is None or (type(dim) is tuple and not (len(dim) == 1 and type(dim[0]) is float)):
        return dim
    return tuple([as_index(d) for d in dim]) if isinstance(dim, (list, tuple)) else (as_index(dim),)


def axes(dim: Any, ndim: int) -> Any:
    """Torch's `dim` as NumPy's axis: None and an empty tuple mean all, and a 0-d array has the dimensions 0 and -1."""
    if not dim:
        return None
    if ndim == 0:
        for d in dim:
            if d not in (0, -1):
                raise np.exceptions.AxisError(d, 0)
    if len(dim) == 1:
        if ndim and not -ndim <= dim[0] < ndim:
            raise np.exceptions.AxisError(dim[0], ndim)
        return dim[0] if ndim else None
    seen = set()
    for d in dim:
        if not -ndim <= d < ndim and ndim:
            raise np.exceptions.AxisError(d, ndim)
        place = d % ndim if ndim else 0
        if place in seen:
            raise RuntimeError(f"dim {place} appears multiple times in the list of dims")
        seen.add(place)
    return tuple(dim)


def reduced_size(sizes: tuple[int, ...], dim: Any) -> int:
    """How many elements a reduction over `dim` makes one of."""
    n = 1
    for d in dim if dim else range(len(sizes)):
        n *= sizes[d] if sizes else 1
    return n


def restore(grad: Any, ndim: int, dim: Any, keepdim: bool) -> Any:
    """Bring back the reduced dimensions as dimensions of size one."""
    return grad if keepdim or not ndim else unsqueeze_multiple(grad, dim, ndim)


def expand_reduced(grad: Any, sizes: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Undo a reduction: bring back the reduced dimensions and stretch over them."""
    return expand(restore(grad, len(sizes), dim, keepdim), sizes)


@op(
    space=None,
    node="MaskedFillBackward0",
    pointwise=True,
    self=lambda grad, mask: zero_where(grad, mask),
    result=lambda self_t, mask: zero_where(self_t, mask),
)
def zero_where(self: Array, mask: Array) -> Array:
    """self, but zero where the mask is true."""
    return np.where(mask, np.zeros((), self.dtype), self)


# ------------------------------------------------------------------ sum


def in_dtype(self: Array, dtype: Any) -> Array:
    """The summands in the dtype of the sum: as asked, int64 for integers and bools, else their own."""
    if dtype is not None:
        dtype = named_dtype(dtype)
        if self.dtype.kind == "c" and not dtype.is_complex and dtype is not bool_:
            warn_imaginary_part()
            self = self.real
        return self if self.dtype == dtype.numpy else self.astype(dtype.numpy)
    return self.astype(np.int64) if self.dtype.kind in "iub" and self.dtype != np.int64 else self


def added(self: Array, axis: Any, keepdim: bool) -> Array:
    """The sum in the array's own dtype; half precision is summed in float32."""
    dtype = self.dtype
    if dtype.itemsize == 2 and FROM_NUMPY[dtype].category == 2:
        return row_major(total(self.astype(np.float32), axis, keepdim).astype(dtype))
    return row_major(total(self, axis, keepdim))


@op(
    sparse="total",
    space=None,
    node="SumBackward0",
    name="sum",
    vmap="reduced",
    along="sum_dim",
    self=lambda grad, self_sym_sizes: expand(grad, self_sym_sizes),
    result=linear,
)
def sum_all(self: Array, dtype: Any = None) -> Array:
    """The sum of all elements."""
    return SUM.head(self) if dtype is None else added(in_dtype(self, dtype), None, False)


def plain_sum(self: Array) -> Array:
    """The sum of all elements by NumPy."""
    if self.dtype.char in "fdFDl":
        return np.add.reduce(self, None) if self.size < LARGE else total(self, None, False)
    return added(in_dtype(self, None), None, False)


SUM = Adding(plain_sum)


@op(
    sparse="sums_along",
    space=None,
    node="SumBackward1",
    name="sum",
    self=lambda grad, self_sym_sizes, dim, keepdim: expand_reduced(grad, self_sym_sizes, dim, keepdim),
    result=linear,
)
def sum_dim(self: Array, dim: Any, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum over the dimensions `dim`."""
    if dtype is None and self.dtype.char in "fdFDl":
        axis = axes(dim, self.ndim)
        if self.ndim == 1 and not keepdim:
            return SUM.head(self)
        out = np.add.reduce(self, axis, None, None, keepdim) if self.size < LARGE else total(self, axis, keepdim)
        return out if out.ndim < 2 else row_major(out)
    return added(in_dtype(self, dtype), axes(dim, self.ndim), keepdim)


@function(out=True, out_decides="computed", numpy=("sum",))
def sum(self: Array, dim: Any = UNNAMED, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Sum the elements of a tensor, all of them or those along one or more dimensions.

    `dim` is a dimension or a tuple of them; None or an empty tuple reduces all of them to a tensor without dimensions.
    With `keepdim` the reduced dimensions stay, with size 1; otherwise they are dropped from the shape.
    `dtype` converts the elements before they are added; without it, integers and bools are summed in int64.
    """
    if dim is UNNAMED:
        if keepdim is not False:
            missing_dim("sum")
        return sum_all(self, dtype)
    return sum_dim(self, dims_of(dim), keepdim, dtype)


@op(
    space=None,
    name="nansum",
    self=lambda grad, self, dim, keepdim: expand_reduced(grad, self.shape, dim, keepdim) * (self == self),
    result=lambda self_t, self, dim, keepdim, dtype: sum_dim(self_t * (self == self), dim, keepdim, dtype),
)
def nansum_dim(self: Array, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The sum over the dimensions `dim`, with nan counted as zero."""
    if self.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    self = in_dtype(np.where(self == self, self, np.zeros((), self.dtype)), dtype)
    refuse("nansum_cpu", self, "c")
    return added(self, axes(dim, self.ndim), keepdim)


@function(out=True, out_decides="computed")
def nansum(self: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Sum the elements of a tensor, counting NaN as zero.

    `dim` is a dimension or a tuple of them; None reduces all of them to a tensor without dimensions.
    With `keepdim` the reduced dimensions stay, with size 1.
    `dtype` converts the elements before they are added; without it, integers and bools are summed in int64.
    """
    return nansum_dim(self, dims_of(dim), keepdim, dtype)


# ------------------------------------------------------------------ mean


def check_mean(self: Array, dtype: Any) -> None:
    """Raise for a mean that would be an integer."""
    given = FROM_NUMPY[self.dtype] if dtype is None else dtype
    if given.category < 2:
        whose = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {whose} dtype must be either a floating point or complex dtype. "
            f"Got: {given.scalar_type}"
        )


def averaged(self: Array, axis: Any, keepdim: bool, n: int, dtype: Any) -> Array:
    """The sum divided by `n`; half precision is averaged in float32."""
    if dtype is None and not keepdim and (axis is None or self.ndim == 1):
        return MEAN.head(self)
    return plain_mean(self, axis, keepdim, n, dtype)


def plain_mean(self: Array, axis: Any, keepdim: bool, n: int, dtype: Any) -> Array:
    """The same by NumPy."""
    check_mean(self, dtype)
    self = in_dtype(self, dtype)
    if self.dtype.itemsize == 2:
        summed = total(self.astype(np.float32), axis, keepdim)
        return row_major((summed / np.float32(n)).astype(self.dtype))
    summed = np.add.reduce(self, axis, None, None, keepdim) if self.size < LARGE else total(self, axis, keepdim)
    if summed.ndim > 1:
        summed = row_major(summed)
    return summed / n if n else np.true_divide(summed, n)


MEAN = Adding(lambda self: plain_mean(self, None, False, self.size, None), True)


@op(
    kernel="sum_cpu",
    space=None,
    node="MeanBackward0",
    name="mean",
    vmap="reduced",
    along="mean_dim",
    self=lambda grad, self_sym_sizes, self_sym_numel: div_number(expand(grad, self_sym_sizes), self_sym_numel),
    result=linear,
)
def mean_all(self: Array, dtype: Any = None) -> Array:
    """The mean of all elements."""
    return averaged(self, None, False, self.size, dtype)


@op(
    kernel="sum_cpu",
    space=None,
    node="MeanBackward1",
    name="mean",
    self=lambda grad, self_sym_sizes, self_sym_numel, dim, keepdim: div_number(
        expand_reduced(grad, self_sym_sizes, dim, keepdim), reduced_size(self_sym_sizes, dim)
    ),
    result=linear,
)
def mean_dim(self: Array, dim: Any, keepdim: bool = False, dtype: Any = None) -> Array:
    """The mean over the dimensions `dim`."""
    if dtype is not None or self.dtype.char not in "fd":
        check_mean(self, dtype)
    axis = axes(dim, self.ndim)
    return averaged(self, axis, keepdim, reduced_size(self.shape, dim), dtype)


@function(out=True, out_decides="checked", numpy=("mean",))
def mean(self: Array, dim: Any = UNNAMED, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Compute the mean of all elements, or along one or more dimensions.

    `dim` is a dimension or a tuple of them; None reduces all of them to a tensor without dimensions.
    With `keepdim` the reduced dimensions stay, with size 1; otherwise they are dropped from the shape.
    The elements must be floating point or complex numbers; `dtype` converts others first. The mean of nothing is NaN.
    """
    if dim is UNNAMED:
        if keepdim is not False:
            missing_dim("mean")
        return mean_all(self, dtype)
    return mean_dim(self, dims_of(dim), keepdim, dtype)


@function(out=True, out_decides="checked")
def nanmean(self: Array, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Compute the mean of the elements that are not NaN, of all or along one or more dimensions.

    The sum of those elements is divided by their number; where there are none, the result is NaN.
    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    `dtype` converts the elements before they are added.
    """
    if self.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_type}"
        )
    if dtype is not None and dtype.category < 2:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.scalar_type}"
        )
    dim = dims_of(dim)
    return nansum_dim(self, dim, keepdim, dtype) / sum_dim(self == self, dim, keepdim)


# ------------------------------------------------------------------ logsumexp


@op(space=None, node="ExpBackward0", self=lambda grad, result: grad * conj(result), result=elementwise)
def exponential(self: Array) -> Array:
    """The exponential of floating point numbers."""
    return np.exp(self)


@op(
    kernel="max_values_cpu",
    space=None,
    name="logsumexp",
    floats=True,
    self=lambda grad, self, result, dim, keepdim: (
        restore(grad, self.ndim, dim, keepdim) * conj(exponential(self - restore(result, self.ndim, dim, keepdim)))
    ),
    result=lambda self_t, self, result, dim, keepdim: sum_dim(
        self_t * exponential(self - restore(result, self.ndim, dim, keepdim)), dim, keepdim
    ),
)
def logsumexp_dim(self: Array, dim: Any, keepdim: bool = False) -> Array:
    """The logarithm of the sum of exponentials over the dimensions `dim`."""
    axis = axes(dim, self.ndim)
    if (made := softmax.logsumexp(self, axis, keepdim)) is not None:
        return made
    if not self.size:
        return np.log(np.add.reduce(np.exp(self), axis, None, None, keepdim))
    real = self.real if self.dtype.kind == "c" else self
    top = largest(real, axis, True)
    top = np.where(np.isfinite(top), top, np.zeros((), top.dtype))
    total = np.log(added(np.exp(self - top), axis, True)) + top
    return row_major(total if keepdim else total.squeeze(axis))


@function(out=True)
def logsumexp(self: Array, dim: Any, keepdim: bool = False) -> Array:
    """Compute the logarithm of the sum of exponentials along one or more dimensions, without overflow.

    The result is `log(sum(exp(input)))`, computed as `m + log(sum(exp(input - m)))` where `m` is the largest element.
    `dim` is a dimension or a tuple of them; with `keepdim` the reduced dimensions stay, with size 1.
    Integers are converted to floating point numbers.
    """
    if dim is None:
        raise TypeError("logsumexp(): argument 'dim' must be tuple of ints, not NoneType")
    dims = dims_of(dim)
    if not dims and not keepdim:
        refuse_no_dimensions(self)
    return logsumexp_dim(self, dims, keepdim)


def refuse_no_dimensions(self: Array) -> None:
    """Raise as torch does where no dimension is named: it adds along all and keeps them."""
    if self.ndim and self.numel():
        kept = shape_text((1,) * self.ndim)
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape {kept}")


publish("logsumexp", logsumexp, Publication("special", method=False))


# ------------------------------------------------------------------ any, all, count_nonzero


def answer(self: Array, found: Array) -> Array:
    """The result of any and all: bool, but uint8 for uint8."""
    return found.astype(np.uint8) if self.dtype is UINT8 else found


def question_axes(dim: Any, ndim: int) -> Any:
    """The axis of any and all, for which an empty list means no dimension at all."""
    return () if dim is not None and not dim else axes(dim, ndim)


def bools_or_bytes(name: str, target: Any, result: Array, lone: bool) -> None:
    """Raise unless an answer can be written as it is."""
    if target.dtype.name not in ("bool", "uint8"):
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {target.dtype.scalar_type}")


def asked(extreme: Any, ufunc: np.ufunc, self: Array, axis: Any, keepdim: bool) -> Array:
    """A question about many bools is one for their extremum, about anything else one for NumPy."""
    if self.dtype.kind == "b" and self.size >= LARGE and axis != ():
        return extreme(self, axis, keepdim)
    return ufunc.reduce(self, axis, None, None, keepdim)


def reduced_question(self: Array, dim: Any, keepdim: bool) -> Array:
    """The shape of an answer."""
    axis = None if dim is None else question_axes(dim, self.ndim)
    return answer(self, np.logical_or.reduce(self, axis, None, None, keepdim))


@op(sparse="any_of", packed="compared", space=None, name="any")
@answered(meta=lambda self, dim=None, keepdim=False: reduced_question(self, dim, keepdim))
def any_dim(self: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether an element along `dim` is not zero."""
    if dim is None and not keepdim:
        return answer(self, np.bool_(nonzeros(self)))
    return answer(self, row_major(asked(largest, np.logical_or, self, question_axes(dim, self.ndim), keepdim)))


@function(out=True, out_dtype=bools_or_bytes)
def any(self: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Test whether any element is nonzero, of the whole tensor or along one or more dimensions.

    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    NaN counts as true. The result is bool, or uint8 if `input` is uint8; over no elements at all it is False.
    """
    return any_dim(self, dims_of(dim), keepdim)


@op(packed="compared", space=None, name="all")
@answered(meta=lambda self, dim=None, keepdim=False: reduced_question(self, dim, keepdim))
def all_dim(self: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Whether all elements along `dim` are not zero."""
    if dim is None and not keepdim:
        return answer(self, np.bool_(no_zero(self)))
    return answer(self, row_major(asked(smallest, np.logical_and, self, question_axes(dim, self.ndim), keepdim)))


@function(out=True, out_dtype=bools_or_bytes)
def all(self: Array, dim: Any = None, keepdim: bool = False) -> Array:
    """Test whether all elements are nonzero, of the whole tensor or along one or more dimensions.

    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    NaN counts as true. The result is bool, or uint8 if `input` is uint8; over no elements at all it is True.
    """
    return all_dim(self, dims_of(dim), keepdim)


@op(packed="compared", space=None, name="count_nonzero")
def count_nonzero_dim(self: Array, dim: Any = None) -> Array:
    """How many elements along `dim` are not zero."""
    if not dim and self.dtype.char in "fdl?":
        return np.array(nonzeros(self), INT64)
    return row_major(np.add.reduce(self != 0, axes(dim, self.ndim), np.int64))


@function()
def count_nonzero(self: Array, dim: Any = None) -> Array:
    """Count the elements that are not zero, in the whole tensor or along one or more dimensions.

    `dim` is a dimension or a tuple of them, which are dropped from the shape; None counts all elements. Returns int64.
    """
    return count_nonzero_dim(self, dims_of(dim))
