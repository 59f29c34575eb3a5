"""x log y, and what is made of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, Number, elementwise, function, op
from pullback._op.inplace import make_inplace
from pullback._tensor import Tensor
from pullback.kernels.numpy.math.numbers import no_zero
from pullback.ops.pointwise.arithmetic import where_tensors
from pullback.ops.pointwise.compare import logical_and
from pullback.ops.pointwise.elementary import log
from pullback.ops.pointwise.remainder import overload
from pullback.ops.reduce.sums import zero_where
from pullback.ops.supported import floats_with_number, refuse


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialEntrBackward0",
    self=lambda grad, self: grad * (-log(self) - 1),
    result=elementwise,
)
def entr(self: Array) -> Array:
    """Compute the entropy -x log(x) of each element: 0 at zero, and -inf for negative numbers."""
    refuse("entr_cpu", self, "c")
    below_zero = np.where(self == 0, self.dtype.type(0), self.dtype.type(-np.inf))
    return np.where(self <= 0, below_zero, -x_log(self, self, np.log))


def x_log(self: Array, other: Array, ufunc: Any) -> Array:
    """self times a logarithm of other; zero where self is zero and other is a number."""
    if self.dtype.kind == "c":
        refuse("xlogy_cpu" if ufunc is np.log else "xlog1py_cpu", self, "c")
    if no_zero(self):
        return np.multiply(self, ufunc(other))
    return np.where((self == 0) & ~np.isnan(other), self.dtype.type(0), self * ufunc(other))


def x_log_backward(product: Any, self: Any, other: Any, edge: Any) -> Any:
    """The gradient of x log y for x, a product that is zero where the gradient is.

    None where both x and the argument of the logarithm have vanished.
    """
    return zero_where(product, logical_and(self == 0, other <= edge))


# ------------------------------------------------------------------ xlogy


@op(
    space=None,
    name="xlogy",
    node="XlogyBackward0",
    promote=True,
    floats=True,
    pointwise=True,
    self=lambda grad, self, other: x_log_backward(xlogy_tensors(grad, other), self, other, 0.0),
    other=lambda grad, self, other: grad * self / other,
    result=lambda self_t, other_t, self, other: (
        x_log_backward(xlogy_tensors(self_t, other), self, other, 0.0) + other_t * self / other
    ),
)
def xlogy_tensors(self: Array, other: Array) -> Array:
    """self * log(other)."""
    return x_log(self, other, np.log)


@op(
    space=None,
    name="xlogy",
    node="XlogyBackward1",
    pointwise=True,
    other=lambda grad, self, other: grad * self / other,
    result=lambda other_t, self, other: other_t * self / other,
)
def xlogy_into(self: Number, other: Array) -> Array:
    """A number times log(other)."""
    other, number = floats_with_number(other, self)
    return x_log(number, other, np.log)


@op(
    space=None,
    name="xlogy",
    node="XlogyBackward2",
    self=lambda grad, self, other: number_edge(xlogy_number(grad, other), self, not other > 0),
    result=elementwise,
)
def xlogy_number(self: Array, other: Number) -> Array:
    """self times log(other) of a number."""
    self, number = floats_with_number(self, other)
    return x_log(self, number, np.log)


@function(out=True, also=("special.xlogy",))
def xlogy(self: Array | Number, other: Array | Number) -> Array:
    """Compute `input * log(other)` elementwise, with 0 where `input` is 0 even if the logarithm is infinite.

    Either argument may be a number. The result is nan where `other` is nan.
    """
    if type(self) is type(other) is Tensor:
        return xlogy_tensors(self, other)
    return overload("xlogy", self, other, xlogy_tensors, xlogy_number, xlogy_into)


def number_edge(grad: Any, self: Any, vanished: bool) -> Any:
    """`x_log_backward` for a number: it has vanished or not."""
    return where_tensors(self != 0, grad, 0) if vanished else grad


xlogy_tensors_ = make_inplace(xlogy_tensors.op)
xlogy_number_ = make_inplace(xlogy_number.op)


@function(name="xlogy_")
def xlogy_inplace(self: Array, other: Array | Number) -> Array:
    """In-place version of :func:`xlogy`."""
    return overload("xlogy_", self, other, xlogy_tensors_, xlogy_number_)


# ------------------------------------------------------------------ xlog1py


@op(
    space=None,
    name="xlog1py",
    node="SpecialXlog1PyBackward0",
    promote=True,
    floats=True,
    pointwise=True,
    self=lambda grad, self, other: x_log_backward(xlog1py_tensors(grad, other), self, other, -1.0),
    other=lambda grad, self, other: grad * self / (other + 1),
    result=lambda self_t, other_t, self, other: (
        x_log_backward(xlog1py_tensors(self_t, other), self, other, -1.0) + other_t * self / (other + 1)
    ),
)
def xlog1py_tensors(self: Array, other: Array) -> Array:
    """self * log1p(other)."""
    return x_log(self, other, np.log1p)


@op(
    space=None,
    name="xlog1py",
    node="SpecialXlog1PyBackward1",
    pointwise=True,
    other=lambda grad, self, other: grad * self / (other + 1),
    result=lambda other_t, self, other: other_t * self / (other + 1),
)
def xlog1py_into(self: Number, other: Array) -> Array:
    """A number times log1p(other)."""
    other, number = floats_with_number(other, self)
    return x_log(number, other, np.log1p)


@op(
    space=None,
    name="xlog1py",
    node="SpecialXlog1PyBackward2",
    self=lambda grad, self, other: number_edge(xlog1py_number(grad, other), self, not other > -1),
    result=elementwise,
)
def xlog1py_number(self: Array, other: Number) -> Array:
    """self times log1p(other) of a number."""
    self, number = floats_with_number(self, other)
    return x_log(self, number, np.log1p)


@function(space="special", method=False, out=True)
def xlog1py(self: Array | Number, other: Array | Number) -> Array:
    """Compute `input * log1p(other)` elementwise, with 0 where `input` is 0 even if the logarithm is infinite.

    Either argument may be a number. The result is nan where `other` is nan.
    """
    return overload("special_xlog1py", self, other, xlog1py_tensors, xlog1py_number, xlog1py_into)
