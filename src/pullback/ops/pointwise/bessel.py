"""Modified Bessel functions of the first kind, which have derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, elementwise, op
from pullback.ops.pointwise.arithmetic import abs, sgn, where_tensors
from pullback.ops.pointwise.special import scipy_special
from pullback.ops.supported import refuse, wide_floats

TINY = 2.0**-52
"""Where x counts as zero in quotients that have a limit there."""


def grown(name: str, self: Array) -> Array:
    """A scaled function times what it was scaled by: infinite, as in torch, where the exponential is."""
    x = wide_floats(self)
    return (np.exp(np.abs(x)) * scipy_special(name, x)).astype(self.dtype, copy=False)


@op(
    kernel="i0_vml_cpu",
    inplace=True,
    floats=True,
    also=("special.i0",),
    self=lambda grad, self: grad * i1(self),
    result=elementwise,
)
def i0(self: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order zero, I0(x), of each element."""
    refuse("i0_vml_cpu", self, "c")
    return grown("i0e", self)


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialI0EBackward0",
    self=lambda grad, self, result: grad * (i1e(self) - sgn(self) * result),
    result=elementwise,
)
def i0e(self: Array) -> Array:
    """Compute the exponentially scaled modified Bessel function of order zero, exp(-|x|) I0(x), of each element."""
    refuse("i0e_cpu", self, "c")
    return scipy_special("i0e", self)


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialI1Backward0",
    self=lambda grad, self, result: i1_backward(grad, self, result),
    result=elementwise,
)
def i1(self: Array) -> Array:
    """Compute the modified Bessel function of the first kind of order one, I1(x), of each element."""
    refuse("i1_cpu", self, "c")
    return grown("i1e", self)


def i1_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of i1, whose quotient by x has a limit at zero."""
    present = abs(self) > TINY
    x = where_tensors(present, self, TINY)
    return grad * where_tensors(present, i0(x) - result / x, 0.5)


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialI1EBackward0",
    self=lambda grad, self, result: i1e_backward(grad, self, result),
    result=elementwise,
)
def i1e(self: Array) -> Array:
    """Compute the exponentially scaled modified Bessel function of order one, exp(-|x|) I1(x), of each element."""
    refuse("i1e_cpu", self, "c")
    return scipy_special("i1e", self)


def i1e_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of i1e, whose quotient by x has a limit at zero."""
    present = abs(self) > TINY
    x = where_tensors(present, self, TINY)
    return grad * where_tensors(present, i0e(x) - result * (sgn(x) + 1 / x), 0.5)
