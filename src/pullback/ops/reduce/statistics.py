"""Variances, standard deviations, norms and distances."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from pullback._op.define import Array, Number, function, op
from pullback._op.missing import UNNAMED
from pullback._op.named import plain_tuple
from pullback._runtime.warnings import warn
from pullback.kernels.complex_functions import from_parts
from pullback.kernels.numpy.norm import moments as kernels
from pullback.ops.pointwise.arithmetic import conj, real_part
from pullback.ops.reduce.sums import axes, dims_of, expand_reduced, mean_dim, reduced_size, restore, sum_dim, zero_where

# ------------------------------------------------------------------ variance


def spread(name: str, self: Array, dim: Any, keepdim: bool, correction: Number | None) -> tuple[Array, Array]:
    """The variance and the mean in double precision, with torch's errors and warning."""
    if self.dtype.kind in "iub":
        whose = name if name.endswith("_mean") else "std and var"
        raise RuntimeError(f"{whose} only support floating point and complex dtypes")
    if dim is not None and len(dim) == 1 and -self.ndim <= dim[0] < self.ndim:
        axis = dim[0]
        count = self.shape[axis]
    else:
        axis = axes(dim, self.ndim)
        count = reduced_size(self.shape, dim)
    correction = 1 if correction is None else correction
    if (count if self.size else 0) - correction <= 0:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
        )
    return kernels.variance(self, axis, keepdim, count, correction if count else 0)  # that of nothing is NaN


def running(mean: Array, self: Array, dim: Any) -> Array:
    """A mean as torch finds it beside the variance, element by element: what follows an infinite one makes it nan."""
    if self.dtype.kind == "c":
        return from_parts(running(mean.real, self.real, dim), running(mean.imag, self.imag, dim), mean.dtype)
    if not np.isinf(mean).any():
        return mean
    axis = axes(dim, self.ndim)
    axis = tuple(range(self.ndim)) if axis is None else (axis,) if type(axis) is int else axis
    rows = np.moveaxis(self, axis, range(-len(axis), 0))
    rows = rows.reshape(*rows.shape[: self.ndim - len(axis)], -1)
    return np.where(np.isinf(rows[..., :-1]).any(-1).reshape(mean.shape), np.nan, mean)


def real_dtype(self: Array) -> np.dtype[Any]:
    """The dtype of the elements' absolute values."""
    return self.real.dtype if self.dtype.kind == "c" else self.dtype


@op(vmap="aligned", space=None)
def without_freedom(self: Array, mean: Array) -> Array:
    """What the derivative of the variance tends to as the degrees of freedom vanish."""
    return np.where(self == mean, np.nan, np.inf).astype(real_dtype(self))


def var_slope(self: Any, dim: Any, correction: Number | None) -> Any:
    """The derivative of the variance with respect to each element."""
    freedom = reduced_size(self.shape, dim) - (1 if correction is None else correction)
    mean = mean_dim(self, dim, True)
    if freedom <= 0 and (dim is None or not self.ndim):
        return without_freedom(self, mean)
    return (self - mean) * (2.0 / freedom if freedom else inf)


def var_backward(grad: Any, self: Any, dim: Any, correction: Number | None, keepdim: bool) -> Any:
    """The gradient of the variance."""
    return restore(grad, self.ndim, dim, keepdim) * var_slope(self, dim, correction)


def var_tangent(self_t: Any, self: Any, dim: Any, correction: Number | None, keepdim: bool) -> Any:
    """The tangent of the variance."""
    return sum_dim(real_part(conj(var_slope(self, dim, correction)) * self_t), dim, keepdim)


def std_backward(grad: Any, self: Any, result: Any, dim: Any, correction: Number | None, keepdim: bool) -> Any:
    """The gradient of the standard deviation; zero where it is zero."""
    return var_backward(zero_where(grad / (result * 2), result == 0), self, dim, correction, keepdim)


def std_tangent(self_t: Any, self: Any, result: Any, dim: Any, correction: Number | None, keepdim: bool) -> Any:
    """The tangent of the standard deviation; zero where it is zero."""
    return zero_where(var_tangent(self_t, self, dim, correction, keepdim) / (result * 2), result == 0)


@op(
    kernel="std_cpu",
    space=None,
    name="var",
    self=lambda grad, self, dim, correction, keepdim: var_backward(grad, self, dim, correction, keepdim),
    result=lambda self_t, self, dim, correction, keepdim: var_tangent(self_t, self, dim, correction, keepdim),
)
def var_dim(self: Array, dim: Any = None, correction: Number | None = None, keepdim: bool = False) -> Array:
    """The variance over the dimensions `dim`."""
    return spread("var", self, dim, keepdim, correction)[0].astype(real_dtype(self))


@op(
    space=None,
    name="std",
    self=lambda grad, self, result, dim, correction, keepdim: std_backward(
        grad, self, result, dim, correction, keepdim
    ),
    result=lambda self_t, self, result, dim, correction, keepdim: std_tangent(
        self_t, self, result, dim, correction, keepdim
    ),
)
def std_dim(self: Array, dim: Any = None, correction: Number | None = None, keepdim: bool = False) -> Array:
    """The standard deviation over the dimensions `dim`."""
    return root(spread("std", self, dim, keepdim, correction)[0], self)


def root(var: Array, self: Array) -> Array:
    """The standard deviation; that of complex numbers from a variance which is rounded first."""
    dtype = real_dtype(self)
    return (np.sqrt(var.astype(dtype)) if self.dtype.kind == "c" else np.sqrt(var)).astype(dtype)


def add_mean_gradient(grad: Any, grad_mean: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    """A gradient of var or std, or None, plus the one that came to the mean, or None."""
    if grad_mean is None:
        return grad
    of_mean = expand_reduced(grad_mean, self.shape, dim, keepdim) / reduced_size(self.shape, dim)
    return of_mean if grad is None else grad + of_mean


@op(
    space=None,
    name="var_mean",
    outputs=("result0", "result1"),
    self=lambda grad_result0, grad_result1, self, dim, correction, keepdim: add_mean_gradient(
        None if grad_result0 is None else var_backward(grad_result0, self, dim, correction, keepdim),
        grad_result1,
        self,
        dim,
        keepdim,
    ),
    result=lambda self_t, self, dim, correction, keepdim: (
        var_tangent(self_t, self, dim, correction, keepdim),
        mean_dim(self_t, dim, keepdim),
    ),
)
def var_mean_dim(
    self: Array, dim: Any = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Array, Array]:
    """The variance and the mean over the dimensions `dim`."""
    var, mean = spread("var_mean", self, dim, keepdim, correction)
    mean = running(mean, self, dim)
    return var.astype(real_dtype(self)), mean.astype(self.dtype)


@op(
    space=None,
    name="std_mean",
    outputs=("result0", "result1"),
    self=lambda grad_result0, grad_result1, self, result0, dim, correction, keepdim: add_mean_gradient(
        None if grad_result0 is None else std_backward(grad_result0, self, result0, dim, correction, keepdim),
        grad_result1,
        self,
        dim,
        keepdim,
    ),
    result=lambda self_t, self, result0, dim, correction, keepdim: (
        std_tangent(self_t, self, result0, dim, correction, keepdim),
        mean_dim(self_t, dim, keepdim),
    ),
)
def std_mean_dim(
    self: Array, dim: Any = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Array, Array]:
    """The standard deviation and the mean over the dimensions `dim`."""
    var, mean = spread("std_mean", self, dim, keepdim, correction)
    mean = running(mean, self, dim)
    return root(var, self), mean.astype(self.dtype)


var_mean_dim.op.fields = std_mean_dim.op.fields = plain_tuple


def arguments(name: str, dim: Any, unbiased: bool | None, correction: Number | None) -> tuple[Any, Number | None]:
    """Torch's three ways to ask for a variance, as dim and correction."""
    if type(dim) is int and unbiased is None:
        return (dim,), 1 if correction is None else correction
    named = dim is not UNNAMED
    dim = dim if named else None
    if type(dim) is bool and unbiased is None:
        dim, unbiased = None, dim
    if unbiased is None:
        return dims_of(dim), (1 if correction is None and named else correction)
    if correction is not None or type(dim) is bool:
        raise TypeError(f"{name}() received an invalid combination of arguments: give either unbiased or correction")
    return dims_of(dim), int(unbiased)


@function(out=True, numpy=("var",))
def var(
    self: Array,
    dim: Any = UNNAMED,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Array:
    """Compute the variance of all elements, or along one or more dimensions.

    The formula is `sum((x - mean(x)) ** 2) / max(0, N - correction)` for N elements.
    `correction` is 1 by default (Bessel's correction, the unbiased estimate); 0 gives the variance of the population.
    `unbiased` is the older way to say so: True means a correction of 1, False of 0.
    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    """
    dim, correction = arguments("var", dim, unbiased, correction)
    return var_dim(self, dim, correction, keepdim)


@function(out=True, numpy=("std",))
def std(
    self: Array,
    dim: Any = UNNAMED,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> Array:
    """Compute the standard deviation of all elements, or along one or more dimensions.

    The formula is `sqrt(sum((x - mean(x)) ** 2) / max(0, N - correction))` for N elements.
    `correction` is 1 by default (Bessel's correction); 0 gives the standard deviation of the population.
    `unbiased` is the older way to say so: True means a correction of 1, False of 0.
    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    """
    dim, correction = arguments("std", dim, unbiased, correction)
    return std_dim(self, dim, correction, keepdim)


@function(method=False)
def var_mean(
    self: Array,
    dim: Any = UNNAMED,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Array, Array]:
    """Compute the variance and the mean in one call, of all elements or along one or more dimensions.

    Returns the tuple `(var, mean)`. The squared deviations of N elements are divided by `N - correction`: 1 by default,
    which `unbiased=True` says too; `unbiased=False` is a correction of 0.
    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    """
    dim, correction = arguments("var_mean", dim, unbiased, correction)
    return var_mean_dim(self, dim, correction, keepdim)  # type: ignore[no-any-return]


@function(method=False)
def std_mean(
    self: Array,
    dim: Any = UNNAMED,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: Number | None = None,
) -> tuple[Array, Array]:
    """Compute the standard deviation and the mean in one call, of all elements or along one or more dimensions.

    Returns the tuple `(std, mean)`. The squared deviations of N elements are divided by `N - correction`: 1 by default,
    which `unbiased=True` says too; `unbiased=False` is a correction of 0.
    `dim` is a dimension or a tuple of them; None reduces all. With `keepdim` the reduced dimensions stay, with size 1.
    """
    dim, correction = arguments("std_mean", dim, unbiased, correction)
    return std_mean_dim(self, dim, correction, keepdim)  # type: ignore[no-any-return]
