"""Special functions: error functions, gamma functions, zeta. Kernels compute most of them, SciPy the others."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.kinds import ForeignArray
from pullback._arrays.sizes import allocated
from pullback._dtype import bool_
from pullback._modes import current_task
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, Number, elementwise, function, op
from pullback._op.inplace import make_inplace
from pullback._runtime.building import loaded
from pullback._thresholds import LARGE
from pullback.autograd.node import target_of
from pullback.kernels.jit.small.choose import pointwise
from pullback.kernels.numpy.math.numbers import LOWEST_WHOLE
from pullback.kernels.numpy.math.polygamma import HIGHER, polygamma_of_halves, trigamma
from pullback.kernels.numpy.math.polygamma import zeta as zeta_sum
from pullback.kernels.workers import shared
from pullback.ops.create.copy import copied
from pullback.ops.pointwise.elementary import exp, log
from pullback.ops.pointwise.remainder import overload
from pullback.ops.supported import DOUBLE, SINGLE, floating, floats_with_number, no_derivative, refuse, wide_floats

SQRT_PI = math.sqrt(math.pi)
SHORT = 2.0**-1000
"""Below this the gamma function is one over x, which may overflow where its logarithm does not."""


found: dict[str, Any] = {}
"""The functions of scipy.special that were needed so far."""


def scipy_special(name: str, *args: Any) -> Any:
    """Call a function of scipy.special, which is imported on the first call because few programs need it."""
    function = found.get(name)
    if not isinstance(args[0], (np.ndarray, np.generic)):
        return args[0].special(name)  # a kernel is being traced, which needs the name alone
    if function is None:
        function = found[name] = getattr(loaded("scipy.special"), name)
    out = shared(function, *args)
    dtype = args[-1].dtype
    return out if out.dtype is dtype else out.astype(floating(args[-1]).dtype)


def compiled_as(name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Declare a function of arrays that kernels know by a name; what is written is for where there is no kernel."""

    def declared(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return pointwise(lambda x: function(x) if isinstance(x, (np.ndarray, np.generic)) else x.special(name))

    return declared


# ------------------------------------------------------------------ error functions


@compiled_as("erf")
def ERF(x: Any) -> Any:
    """The error function, which layers use: Python's for a few numbers, so that SciPy is not loaded."""
    if isinstance(x, ForeignArray) or x.size >= LARGE:
        return scipy_special("erf", x)
    wide = wide_floats(x)
    return np.asarray(ONE_BY_ONE(wide), wide.dtype).astype(x.dtype, copy=False)


ONE_BY_ONE = np.frompyfunc(math.erf, 1, 1)


@op(
    sparse="values",
    inplace=True,
    floats=True,
    foreach="unary",
    also=("special.erf",),
    self=lambda grad, self: 2 / SQRT_PI * exp(-(self * self)) * grad,
    result=elementwise,
)
def erf(self: Array) -> Array:
    """Compute the error function of each element: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x."""
    refuse("erf_vml_cpu", self, "c")
    return ERF(self)


@op(
    inplace=True,
    floats=True,
    foreach="unary",
    also=("special.erfc",),
    self=lambda grad, self: -2 / SQRT_PI * exp(-(self * self)) * grad,
    result=elementwise,
)
def erfc(self: Array) -> Array:
    """Compute the complementary error function 1 - erf(x) of each element, accurate where it is tiny too."""
    refuse("erfc_vml_cpu", self, "c")
    return ERFC(self)


@compiled_as("erfc")
def ERFC(x: Any) -> Any:
    """SciPy's, but for the tail in double precision."""
    out = scipy_special("erfc", x)
    return out if x.dtype is not DOUBLE else np.where((x > 1) & (x < 30), erfc_tail(x), out)


def erfc_tail(self: Array) -> Array:
    """erfcx(x) * exp(-x**2), with a square that is not rounded: its last digits are the first of a small result."""
    x = np.clip(self, 1, 30)
    head = x.astype(np.float32).astype(np.float64)
    return np.exp(-head * head) * np.exp((head - x) * (head + x)) * scipy_special("erfcx", x)


@op(
    sparse="values",
    kernel="erfinv_vml_cpu",
    inplace=True,
    floats=True,
    also=("special.erfinv",),
    self=lambda grad, self: 0.5 * SQRT_PI * exp(erfinv(self) * erfinv(self)) * grad,
    result=elementwise,
)
def erfinv(self: Array) -> Array:
    """Compute the inverse of the error function on [-1, 1]: infinite at the ends, and nan outside."""
    refuse("erfinv_vml_cpu", self, "c")
    return np.copysign(scipy_special("erfinv", self), self)


def refuse_short(kernel: str, self: Array) -> None:
    """Raise for complex numbers and for half precision, which some kernels lack."""
    refuse(kernel, self, "cV")
    if self.dtype.itemsize == 2:
        refuse(kernel, self, "f")


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialErfcxBackward0",
    self=lambda grad, self, result: (2 * self * result - 2 / SQRT_PI) * grad,
    result=elementwise,
)
def erfcx(self: Array) -> Array:
    """Compute the scaled complementary error function of each element: exp(x**2) * erfc(x)."""
    refuse_short("erfcx_cpu", self)
    return scipy_special("erfcx", self)


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialNdtriBackward0",
    self=lambda grad, result: grad * math.sqrt(2 * math.pi) * exp(result * result / 2),
    result=elementwise,
)
def ndtri(self: Array) -> Array:
    """Compute the quantile function of the standard normal distribution: the x for which `ndtr(x)` is the element."""
    refuse_short("ndtri_cpu", self)
    return scipy_special("ndtri", self)


@op(
    space="special",
    method=False,
    floats=True,
    node="SpecialLogNdtrBackward0",
    self=lambda grad, self, result: grad / math.sqrt(2 * math.pi) * exp(-(result + self * self / 2)),
    result=elementwise,
)
def log_ndtr(self: Array) -> Array:
    """Compute the logarithm of the standard normal distribution function, accurate far in the left tail too."""
    refuse_short("log_ndtr_cpu", self)
    return scipy_special("log_ndtr", self)


@op(
    sparse="product_of",
    packed="rounded",
    space=None,
    name="mul",
    node="MulBackward1",
    floats=True,
    absent_tangent="product",
    self=lambda grad, other: times_number(grad, other),
    result=elementwise,
)
def times_number(self: Array, other: Number) -> Array:
    """A product with a number, in floating point."""
    return np.multiply(floating(self), self.dtype.type(other))


@op(
    sparse="sum_of",
    packed="rounded_complex",
    kernel="add_stub",
    space=None,
    name="add",
    node="AddBackward1",
    pointwise=True,
    self=lambda grad: grad,
    result=lambda self_t: self_t.clone(),
)
def plus_number(self: Array, other: Number) -> Array:
    """A sum with a number, in floating point."""
    return np.add(self, self.dtype.type(other))


@function(space="special", method=False, out=True, out_overlap="unchecked", out_copies=True)
def ndtr(self: Array) -> Array:
    """Compute the standard normal distribution function of each element: (1 + erf(x / sqrt(2))) / 2."""
    return times_number(plus_number(erf(times_number(self, math.sqrt(0.5))), 1), 0.5)


# ------------------------------------------------------------------ gamma functions


@op(
    inplace=True,
    floats=True,
    foreach="unary",
    also=("special.gammaln",),
    self=lambda grad, self: grad * digamma(self),
    result=elementwise,
)
def lgamma(self: Array) -> Array:
    """Compute the logarithm of the absolute value of the gamma function: log|Gamma(x)|."""
    if self.dtype.kind == "c":
        refuse("lgamma_vml_cpu", self, "c")
    return log_gamma(self)


@compiled_as("gammaln")
def log_gamma(self: Array) -> Array:
    """SciPy's, except that at -inf it is inf, as at all whole numbers below one."""
    out = scipy_special("gammaln", np.maximum(self, LOWEST_WHOLE[self.dtype]))
    if self.dtype is not DOUBLE:
        return out
    size = np.abs(self)
    out = np.where(size < SHORT, -np.log(size), out)
    return np.where(near_root(self), scipy_special("loggamma", self + 0j).real + 0.0, out)


def near_root(x: Any) -> Any:
    """Close to 1 and 2, where the gamma function is one and SciPy's logarithm of it has few digits."""
    return builtins.abs(builtins.abs(x - 1.5) - 0.5) < 0.15


@op(
    kernel="digamma",
    inplace=True,
    floats=True,
    also=("special.digamma", "special.psi"),
    self=lambda grad, self: grad * polygamma_order(1, self),
    result=elementwise,
)
def digamma(self: Array) -> Array:
    """Compute the digamma function, the derivative of `lgamma`: nan at negative integers; -inf at 0.0, inf at -0.0."""
    refuse("digamma", self, "c")
    return scipy_special("psi", self)


@op(
    kernel="polygamma",
    space=None,
    name="polygamma",
    floats=True,
    untraced=True,
    self=lambda grad, n, self: grad * polygamma_order(n + 1, self),
    result=elementwise,
)
def polygamma_order(n: int, self: Array) -> Array:
    """The n-th derivative of digamma."""
    n = index(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    refuse("digamma" if n == 0 else "trigamma" if n == 1 else "polygamma", self, "c")
    whole, n = n, (n + 2**31) % 2**32 - 2**31  # torch's kernel counts in 32 bits
    if whole == 0:
        return digamma(self)
    if whole == 1:
        wide = copied(self, SINGLE) if is_half(self.dtype) else wide_floats(self)
        return trigamma(wide).astype(self.dtype, copy=False)
    if n in HIGHER:
        return HIGHER[n](copied(floating(self), DOUBLE)).astype(self.dtype, copy=False)
    if is_half(self.dtype) and n > 0:
        return polygamma_of_halves(n, self, copied(self, SINGLE))
    wide, sign = copied(floating(self), DOUBLE), (-1) ** (n + 1)
    series = np.asarray(hurwitz(np.float64(n + 1), wide))
    if not 0 <= n <= (170 if self.dtype.itemsize == 8 else 34):  # the factorial is infinite
        return np.multiply(series.astype(self.dtype), sign * self.dtype.type(np.inf))
    return (sign * math.gamma(n + 1) * series).astype(self.dtype)


@function(method=False, out=True, also=("special.polygamma",))
def polygamma(n: int, self: Array) -> Array:
    """Compute the `n`-th derivative of the digamma function at each element; `n` is a non-negative int."""
    return polygamma_order(n, self)


@function(name="polygamma", space=None)
def polygamma_method(self: Array, n: int) -> Array:
    """Compute the `n`-th derivative of the digamma function at each element; `n` is a non-negative int."""
    return polygamma_order(n, self)


@op(
    kernel="polygamma",
    space=None,
    name="polygamma",
    node="PolygammaBackward1",
    floats=True,
    untraced=True,
    self=lambda grad, self, n: grad * polygamma_order(n + 1, self),
    result=elementwise,
)
def polygamma_written(self: Array, n: int) -> Array:
    """What `polygamma_` writes."""
    return polygamma_order(n, self)


publish("polygamma_", make_inplace(polygamma_written.op), Publication(space=None))


def check_mvlgamma(self: Any, p: int) -> None:
    """Bools and complex numbers are refused, each by another part of torch."""
    if self.dtype is bool_:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    refuse("arange_cpu", self._array, "c")


@op(
    kernel="arange_cpu",
    inplace=True,
    floats=True,
    check_operands=check_mvlgamma,
    layout="row_major",
    untraced=("forward",),
    out_overlap="unchecked",
    also=("special.multigammaln",),
    self=lambda grad, self, p: grad * digamma_sum(self, p),
    result=elementwise,
)
def mvlgamma(self: Array, p: int) -> Array:
    """Compute the logarithm of the multivariate gamma function of dimension `p`.

    This is p (p - 1) / 4 * log(pi) plus the sum of lgamma(x - i / 2) for i from 0 to p - 1.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    self = floating(self)
    allocated(np.empty, (p, *self.shape), self.dtype)  # torch adds up so many at once
    wide = np.dtype(np.float32) if is_half(self.dtype) else self.dtype  # half precision is summed in single
    total: Any = wide.type(0)
    for i in reversed(range(p)):
        total = total + np.asarray(log_gamma(self - self.dtype.type(i / 2)), wide)
    total = np.asarray(total, self.dtype, order="C")
    return np.asarray(total + self.dtype.type(p * (p - 1) / 4 * math.log(math.pi)))


def digamma_sum(self: Any, p: int) -> Any:
    """The derivative of mvlgamma."""
    total = digamma(self + 0.0)  # -0.0 counts as 0.0
    for i in range(1, p):
        total = total + digamma(self - i / 2)
    return total


# ------------------------------------------------------------------ zeta and the incomplete gamma functions


def unless_unasked(what: str) -> None:
    """Torch's error for a derivative by the first operand, unless `grad(inputs=...)` asks only for the second."""
    task = current_task.get()
    if task is None or task.needed is None or target_of(task.node.edges[0]) in task.needed:
        no_derivative(what)


@op(
    space=None,
    name="zeta",
    node="SpecialZetaBackward0",
    promote=True,
    floats=True,
    pointwise=True,
    untraced=True,
    self=lambda grad, self, other: unless_unasked("zeta"),
    other=lambda grad, self, other: grad * -self * zeta_tensors(self + 1.0, other),
)
def zeta_tensors(self: Array, other: Array) -> Array:
    """The Hurwitz zeta function."""
    return hurwitz(self, other)


@op(
    space=None,
    name="zeta",
    node="SpecialZetaBackward1",
    pointwise=True,
    untraced=True,
    other=lambda grad, self, other: grad * -self * zeta_into(self + 1.0, other),
)
def zeta_into(self: Number, other: Array) -> Array:
    """The Hurwitz zeta function of a number."""
    other, number = floats_with_number(other, self)
    return hurwitz(number, other)


@op(
    space=None,
    name="zeta",
    node="SpecialZetaBackward2",
    promote=True,
    floats=True,
    pointwise=True,
    untraced=True,
    self=lambda grad: no_derivative("zeta"),
)
def zeta_number(self: Array, other: Array | Number) -> Array:
    """The Hurwitz zeta function with a number for its offset."""
    return hurwitz(self, other)


def hurwitz(self: Array, other: Array) -> Array:
    """The sum of (k + other) ** -self."""
    refuse_short("zeta_cpu", self)
    out = zeta_sum(self, other, partial(scipy_special, "zeta"))
    if not isinstance(out, (np.ndarray, np.generic)):
        return out  # a kernel is being traced
    kind = out.dtype.type
    # Where every term is zero, in double precision, torch multiplies that by a product that may be infinite.
    wide = np.asarray(self, np.float64)
    nothing = (self > 1) & (other > 1) & (np.power(other, -wide) == 0)
    product = math.prod(wide + k for k in range(23)) if nothing.any() else 1
    out = np.where(nothing, np.where(np.isinf(product), kind(np.nan), kind(0)), out)
    return np.where(np.isposinf(other) & (self != 1), kind(np.nan), out)


@function(space="special", method=False, out=True)
def zeta(self: Array | Number, other: Array | Number) -> Array:
    """Compute the Hurwitz zeta function elementwise: the sum of (k + other)**-input over k = 0, 1, 2, ...

    Either argument may be a number; with `other` equal to 1 this is the Riemann zeta function.
    """
    return overload("special_zeta", self, other, zeta_tensors, zeta_number, zeta_into)


def at_limits(out: Array, self: Array, other: Array, low: int) -> Array:
    """Torch looks at 0 and infinity before it looks for a nan: the limits are `low` and 1 - `low`."""
    if not isinstance(out, (np.ndarray, np.generic)):
        return out  # a kernel is being traced
    kind = out.dtype.type
    out = np.where(np.isnan(self) & (other == 0) | np.isposinf(self) & np.isnan(other), kind(low), out)
    return np.where(np.isnan(self) & (other == np.inf), kind(1 - low), out)


@op(
    inplace=True,
    promote=True,
    pointwise=True,
    untraced=("forward", "self"),
    also=("special.gammainc",),
    self=lambda grad, self, other: unless_unasked("igamma: input"),
    other=lambda grad, self, other: grad * exp((self - 1) * log(other) - other - lgamma(self)),
)
def igamma(self: Array, other: Array) -> Array:
    """Compute the regularised lower incomplete gamma function P(a, x), with a = `input` and x = `other`.

    This is the integral of t**(a - 1) exp(-t) from 0 to x, divided by Gamma(a): it rises from 0 to 1.
    """
    refuse("igamma_cpu", self, "iubc")
    return at_limits(scipy_special("gammainc", self, other), self, other, 0)


@op(
    inplace=True,
    promote=True,
    pointwise=True,
    untraced=("forward", "self"),
    also=("special.gammaincc",),
    self=lambda grad, self, other: unless_unasked("igammac: input"),
    other=lambda grad, self, other: -grad * exp((self - 1) * log(other) - other - lgamma(self)),
)
def igammac(self: Array, other: Array) -> Array:
    """Compute the regularised upper incomplete gamma function Q(a, x), with a = `input` and x = `other`.

    This is the integral of t**(a - 1) exp(-t) from x to infinity, divided by Gamma(a): 1 minus `igamma`.
    """
    refuse("igammac_cpu", self, "iubc")
    return at_limits(scipy_special("gammaincc", self, other), self, other, 1)
