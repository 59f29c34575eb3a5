"""Covariances and correlations between the rows of a matrix."""

from __future__ import annotations

from operator import index

import numpy as np

from pullback._op.define import Array, function
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, wrap
from pullback.ops.linalg.matmul import mm
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.pointwise.bounds import clamp_numbers
from pullback.ops.pointwise.complex_numbers import complex_from_parts
from pullback.ops.pointwise.elementary import sqrt
from pullback.ops.reduce.sums import sum_all, sum_dim
from pullback.ops.shape.complex_views import imag, real
from pullback.ops.shape.dims import t
from pullback.ops.shape.reshape import squeeze_all, unsqueeze, view_
from pullback.ops.shape.slicing import diagonal


def check_weights(name: str, weights: Tensor, observations: int) -> None:
    """Torch's demands on the weights of observations."""
    array, whole = weights._array, name == "fweights"
    if array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {array.ndim} dimensions"
        )
    if whole and array.dtype.kind not in "iu":
        kind = weights.dtype.scalar_type
        raise RuntimeError(f"cov(): expected fweights to have integral dtype but got fweights with {kind} dtype")
    if not whole and not weights.dtype.is_floating_point:
        kind = weights.dtype.scalar_type
        raise RuntimeError(f"cov(): expected aweights to have floating point dtype but got aweights with {kind} dtype")
    if array.size != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{array.size} != {observations}"
        )
    if array.size and not array.astype(np.float64).min() >= 0:  # nor may they be NaN, of which halves would warn
        raise RuntimeError(f"cov(): {name} cannot be negative")


def observations(rows: Tensor) -> Tensor:
    """The number of columns, in a dtype that divides without promotion."""
    kind = rows._array.dtype if rows._array.dtype.kind == "f" else np.dtype(np.int64)
    return wrap(np.asarray(rows._array.shape[1], kind))


@function()
def cov(self: Array, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Array:
    """Estimate the covariance matrix of variables: rows of `input` are variables, columns observations.

    For `(n, m)` the result is `(n, n)`; a vector is one variable, whose variance is returned.
    The sum of products is divided by `m - correction`.
    `fweights` `(m,)`, integers, says how often each observation counts; `aweights` `(m,)` are its relative weights.
    """
    correction = index(correction)
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    if self._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = view_(self, (1, -1)) if self.ndim < 2 else self
    weights = None
    if fweights is not None:
        check_weights("fweights", fweights, rows._array.shape[1])
        weights = fweights
    if aweights is not None:
        check_weights("aweights", aweights, rows._array.shape[1])
        weights = aweights if weights is None else weights * aweights
    total = observations(rows) if weights is None else sum_all(weights)
    if weights is not None and not total._array:
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    average = sum_dim(rows if weights is None else rows * weights, (1,), False) / total
    if aweights is not None and correction != 0:
        degrees = total - correction * sum_all(weights * aweights) / total
    else:
        degrees = total - correction
    if degrees._array <= 0:
        warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
        )
        degrees = degrees.zero_()
    centered = rows - unsqueeze(average, 1)
    products = mm(centered, conj(t(centered if weights is None else centered * weights)))
    return squeeze_all(products / degrees)


@function()
def corrcoef(self: Array) -> Array:
    """Compute the matrix of Pearson's correlation coefficients: rows of `input` are variables, columns observations.

    They are `cov[i, j] / sqrt(cov[i, i] * cov[j, j])`, clamped to [-1, 1]; for `(n, m)` the result is `(n, n)`.
    """
    if self.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    covariances = cov(self)
    if not covariances.ndim:
        return covariances / covariances
    variances = diagonal(covariances, 0, 0, 1)
    deviations = sqrt(real(variances) if variances.is_complex() else variances)
    out = covariances / view_(deviations, (-1, 1)) / view_(deviations, (1, -1))
    if out.is_complex():
        return complex_from_parts(clamp_numbers(real(out), -1, 1), clamp_numbers(imag(out), -1, 1))
    return clamp_numbers(out, -1, 1)
