"""Products and running products, with derivatives that hold where factors are zero.

Without zeros the derivative is a quotient. With zeros it is written without division, in terms of the products of
the elements before and after each one, and of the recurrence y[k] = value[k] + factor[k] * y[k - 1], whose
derivative is a recurrence again: so derivatives of every order are exact.
"""

from __future__ import annotations

from math import prod as prod_of
from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._dtype import FROM_NUMPY, bool_, named_dtype
from pullback._op.define import Array, function, linear, op
from pullback._op.missing import UNNAMED, missing_dim
from pullback._tensor import normal_dim
from pullback.kernels.jit.small.choose import Scanning
from pullback.kernels.numpy.reduce import scan as kernels
from pullback.kernels.numpy.reduce.dims import product
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.reduce.sums import all_dim, axes, in_dtype, restore, sum_dim
from pullback.ops.shape.reshape import clone_contiguous, reshape_to
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ what the derivatives are made of


@op(
    space=None,
    self=lambda grad, dim, by: shifted(grad, dim, -by, 0),
    result=lambda self_t, dim, by: shifted(self_t, dim, by, 0),
)
def shifted(self: Array, dim: int, by: int, fill: float) -> Array:
    """The elements moved one place along `dim`, with `fill` where nothing moved to."""
    return kernels.shifted(self, dim, by, fill)


@op(
    space=None,
    factor=lambda grad, factor, dim, reverse, result: (
        recurrence_backward(grad, factor, dim, reverse) * conj(shifted(result, dim, -1 if reverse else 1, 0))
    ),
    value=lambda grad, factor, dim, reverse: recurrence_backward(grad, factor, dim, reverse),
    result=lambda factor_t, value_t, factor, dim, reverse, result: recurrence(
        factor, value_t + factor_t * shifted(result, dim, -1 if reverse else 1, 0), dim, reverse
    ),
)
def recurrence(factor: Array, value: Array, dim: int, reverse: bool) -> Array:
    """y[k] = value[k] + factor[k] * y[k - 1] along `dim`, or from the end with y[k + 1]."""
    return kernels.recurrence(factor, value, dim, reverse)


def recurrence_backward(grad: Any, factor: Any, dim: int, reverse: bool) -> Any:
    """The gradient of the values: the same recurrence run the other way."""
    return recurrence(conj(shifted(factor, dim, 1 if reverse else -1, 0)), grad, dim, not reverse)


@op(
    space=None,
    self=lambda grad, self, dim, reverse, result: cumprod_backward(grad, self, result, dim, reverse),
    result=lambda self_t, self, dim, reverse, result: cumprod_tangent(self_t, self, result, dim, reverse),
)
def running_product(self: Array, dim: int, reverse: bool) -> Array:
    """The product of the elements so far, from either end."""
    return kernels.accumulate(np.multiply, self, dim, reverse)


@op(
    space=None,
    node="FlipBackward0",
    self=lambda grad, dim, reverse: running_sum(grad, dim, not reverse),
    result=linear,
)
def running_sum(self: Array, dim: int, reverse: bool) -> Array:
    """The sum of the elements so far, from either end."""
    return kernels.accumulate(np.add, self, dim, reverse)


def divisible(self: Any) -> Any:
    """True if the product can be divided by each factor: none is zero. Inside vmap nobody can say."""
    return not hasattr(type(self), "run_op") and all_dim(self)


def cumprod_backward(grad: Any, self: Any, result: Any, dim: int, reverse: bool = False) -> Any:
    """The sum over all later products of their gradient times their other factors."""
    if prod_of(self.shape) <= 1 or self.shape[dim] == 1:
        return grad
    if divisible(self):
        return running_sum(grad * conj(result), dim, not reverse) / conj(self)
    by = -1 if reverse else 1
    later = recurrence(conj(shifted(self, dim, -by, 0)), grad, dim, not reverse)
    return conj(shifted(result, dim, by, 1)) * later


def cumprod_tangent(self_t: Any, self: Any, result: Any, dim: int, reverse: bool = False) -> Any:
    """Each factor's tangent times the product before it, carried on by the factors after it."""
    if not self.ndim:
        return clone_contiguous(self_t)
    return recurrence(self, self_t * shifted(result, dim, -1 if reverse else 1, 1), dim, reverse)


def product_of_others(self: Any, dim: int) -> Any:
    """For each element the product of all others along `dim`."""
    before = running_product(shifted(self, dim, 1, 1), dim, False)
    after = running_product(shifted(self, dim, -1, 1), dim, True)
    return before * after


# ------------------------------------------------------------------ prod


def multiplied(self: Array, axis: Any, keepdim: bool) -> Array:
    """The product in the array's own dtype."""
    return row_major(product(self, axis, keepdim))


def prod_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient times the product of all other elements."""
    if not self.ndim:
        return grad
    if divisible(self):
        return grad * conj(result / self)
    return grad * conj(reshape_to(product_of_others(reshape_to(self, (-1,)), 0), self.shape))


def prod_dim_backward(grad: Any, self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    """The gradient times the product of all other elements along `dim`."""
    if not self.ndim:
        return grad
    return restore(grad, self.ndim, dim, keepdim) * conj(other_factors(self, result, dim, keepdim))


def other_factors(self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    """The product of all other elements along `dim`, by division where that is possible."""
    return restore(result, self.ndim, dim, keepdim) / self if divisible(self) else product_of_others(self, dim)


@op(
    kernel="prod_out_cpu",
    space=None,
    node="ProdBackward0",
    name="prod",
    vmap="reduced",
    along="prod_dim",
    self=lambda grad, self, result: prod_backward(grad, self, result),
    result=lambda self_t, self, result: conj(sum_dim(conj(self_t) * prod_backward(1, self, result), None)),
)
def prod_all(self: Array, dtype: Any = None) -> Array:
    """The product of all elements."""
    return multiplied(in_dtype(self, dtype), None, False)


@op(
    kernel="prod_out_cpu",
    space=None,
    node="ProdBackward1",
    name="prod",
    self=lambda grad, self, result, dim, keepdim: prod_dim_backward(grad, self, result, dim, keepdim),
    result=lambda self_t, self, result, dim, keepdim: (
        sum_dim(self_t * other_factors(self, result, dim, keepdim), (dim,), keepdim)
        if self.ndim
        else clone_contiguous(self_t)
    ),
)
def prod_dim(self: Array, dim: int, keepdim: bool = False, dtype: Any = None) -> Array:
    """The product along `dim`."""
    return multiplied(in_dtype(self, dtype), axes((dim,), self.ndim), keepdim)


@function(out=True, out_decides="computed", autocast="float32", numpy=("prod",))
def prod(self: Array, dim: int | Any = UNNAMED, keepdim: bool = False, *, dtype: Any = None) -> Array:
    """Multiply all elements, or those along a dimension.

    `dim` is one dimension; without it the result has no dimensions. With `keepdim` the dimension stays, with size 1.
    `dtype` converts the elements first; without it, integers and bools are multiplied in int64.
    """
    if dim is UNNAMED:
        if keepdim is not False:
            missing_dim("prod")
        return prod_all(self, dtype)
    return prod_dim(self, as_index(dim), keepdim, dtype)


def scan_into(name: str, ufunc: np.ufunc) -> Any:
    """The write of a running sum or product in place, in the dtype it finds: there is none of bools."""

    def write(self: Array, dim: int, dtype: Any = None) -> None:
        if dtype is not None and dtype.numpy != self.dtype:
            mine, its = FROM_NUMPY[self.dtype].cpp_name, dtype.cpp_name
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {mine} and output tensor dtype {its} should match"
            )
        if self.dtype.kind == "b" and self.ndim and self.size:
            refuse(f"{name}_out_cpu", self, "b")
        self[...] = kernels.accumulate(ufunc, self, normal_dim(dim, self.ndim))

    return write


@op(
    kernel="cumprod_out_cpu",
    inplace=scan_into("cumprod", np.multiply),
    out_decides="computed",
    numpy=("cumprod",),
    self=lambda grad, self, dim, result: cumprod_backward(grad, self, result, dim),
    result=lambda self_t, self, dim, result: cumprod_tangent(self_t, self, result, dim),
)
def cumprod(self: Array, dim: int, *, dtype: Any = None) -> Array:
    """Compute the running product along a dimension: `y[i] = x[0] * x[1] * ... * x[i]`.

    The result has the shape of `input`. `dtype` converts the elements first; without it, integers become int64.
    """
    if dtype is None and (dim == -1 or dim == self.ndim - 1) and self.dtype.char in "fd":
        return RUNNING_PRODUCT.head(self)
    if named_dtype(dtype) is bool_ and self.ndim and self.size:
        raise NotImplementedError("\"cumprod_out_cpu\" not implemented for 'Bool'")
    return kernels.accumulate(np.multiply, in_dtype(self, dtype), dim)


RUNNING_PRODUCT = Scanning(lambda self: kernels.accumulate(np.multiply, self, -1), True)
