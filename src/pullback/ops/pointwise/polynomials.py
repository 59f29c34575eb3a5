"""Orthogonal polynomials and Bessel functions of torch.special that have no derivative there."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback._dtype import result_numpy_dtype
from pullback._op.apply import cast, check_broadcast
from pullback._op.define import Array, Number, function, op
from pullback._op.out import write_result
from pullback._runtime.building import loaded
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.math import polynomials as kernels
from pullback.kernels.workers import shared
from pullback.ops.pointwise.arithmetic import NUMBERS
from pullback.ops.pointwise.power import number_of
from pullback.ops.pointwise.special import scipy_special
from pullback.ops.supported import floating, invalid_combination, refuse

# ------------------------------------------------------------------ polynomials

FAMILIES = {
    "chebyshev_polynomial_t": "Chebyshev polynomial of the first kind",
    "chebyshev_polynomial_u": "Chebyshev polynomial of the second kind",
    "chebyshev_polynomial_v": "Chebyshev polynomial of the third kind",
    "chebyshev_polynomial_w": "Chebyshev polynomial of the fourth kind",
    "hermite_polynomial_h": "Hermite polynomial of physics",
    "hermite_polynomial_he": "Hermite polynomial of probability theory",
    "laguerre_polynomial_l": "Laguerre polynomial",
    "legendre_polynomial_p": "Legendre polynomial",
    "shifted_chebyshev_polynomial_t": "Chebyshev polynomial of the first kind, on the interval from 0 to 1",
    "shifted_chebyshev_polynomial_u": "Chebyshev polynomial of the second kind, on the interval from 0 to 1",
    "shifted_chebyshev_polynomial_v": "Chebyshev polynomial of the third kind, on the interval from 0 to 1",
    "shifted_chebyshev_polynomial_w": "Chebyshev polynomial of the fourth kind, on the interval from 0 to 1",
}


def evaluated(name: str, x: Array, n: Array) -> Array:
    """The polynomial of degree n at x."""
    check_broadcast([x, n])
    refuse(f"{name}_cpu", x, "c")
    if floating(x).dtype.itemsize == 2:
        refuse(f"{name}_cpu", x, x.dtype.kind)
    return kernels.polynomial(name, x, n)


def as_tensor_beside(x: Any, n: Tensor) -> Tensor:
    """A number as a tensor of the dtype it shares with another."""
    return x if isinstance(x, Tensor) else wrap(cast(number_of(x), result_numpy_dtype((number_of(x), n._array))))


def declare_polynomial(name: str, what: str) -> None:
    """Publish one family: the op on two tensors, and the function that takes numbers as well."""

    def at_degrees(x: Array, n: Array) -> Array:
        return evaluated(name, x, n)

    def at_degree(x: Array, n: Array | Number) -> Array:
        return evaluated(name, x, n)

    at_degrees.__name__, at_degree.__name__ = f"{name}_tensors", f"{name}_number"
    said: dict[str, Any] = {"promote": True, "floats": True, "pointwise": True, "untraced": True}
    tensors = op(space=None, name=f"special_{name}", **said)(at_degrees)
    number = op(space=None, name=f"special_{name}", **said)(at_degree)

    def polynomial(x: Any, n: Any, *, out: Any = None) -> Any:
        if isinstance(n, Tensor) and isinstance(x, (Tensor, *NUMBERS)):
            result = tensors(as_tensor_beside(x, n), n)
        elif isinstance(x, Tensor) and isinstance(n, NUMBERS):
            result = number(x, number_of(n))
        else:
            raise invalid_combination(f"special_{name}", (x, n))
        return result if out is None else write_result(f"special_{name}", result, out, differentiable=False)

    polynomial.__name__, polynomial.__doc__ = name, f"The {what}, of degree n at x."
    function(raw=True, explained=True, space="special", method=False)(polynomial)


for each, description in FAMILIES.items():
    declare_polynomial(each, description)

# ------------------------------------------------------------------ Bessel functions

FAR = 1e4
"""Where SciPy's Airy function begins to lose its digits, to give nan in the end."""


def far_airy(x: Any) -> Any:
    """The Airy function far from zero: nothing on the right, and on the left a wave that slowly grows flatter."""
    size = np.abs(x).astype(np.float64)
    phase = size * np.sqrt(size) * (2 / 3)
    angle = phase + np.pi / 4
    wave = np.sin(angle) - np.cos(angle) * (5 / 72) / phase
    return np.where(x > 0, 0.0, wave / (np.sqrt(np.pi) * np.sqrt(np.sqrt(size)))).astype(x.dtype)


def spherical(x: Array) -> Array:
    """sin(x) / x, by its series near zero; in double precision, which has digits to spare for float32."""
    x = x.astype(np.float64, copy=False)
    square = x * x
    series = 1.0
    for k in range(7, 0, -1):
        series = 1 - square * series / (2 * k * (2 * k + 1))
    return np.where(np.abs(x) < 0.5, series, np.where(np.isinf(x), 0.0, np.sin(x) / x))


BESSEL: dict[str, tuple[str, Any]] = {
    "airy_ai": ("Airy function Ai", lambda special, x: np.where(np.abs(x) < FAR, special.airy(x)[0], far_airy(x))),
    "bessel_j0": ("Bessel function of the first kind of order zero", lambda special, x: special.j0(x)),
    "bessel_j1": ("Bessel function of the first kind of order one", lambda special, x: special.j1(x)),
    "bessel_y0": ("Bessel function of the second kind of order zero", lambda special, x: special.y0(x)),
    "bessel_y1": ("Bessel function of the second kind of order one", lambda special, x: special.y1(x)),
    "modified_bessel_i0": (
        "modified Bessel function of the first kind of order zero",
        lambda x: np.exp(np.abs(x)) * scipy_special("i0e", x),
    ),
    "modified_bessel_i1": (
        "modified Bessel function of the first kind of order one",
        lambda x: np.exp(np.abs(x)) * scipy_special("i1e", x),
    ),
    "modified_bessel_k0": (
        "modified Bessel function of the second kind of order zero",
        lambda special, x: special.k0(x),
    ),
    "modified_bessel_k1": (
        "modified Bessel function of the second kind of order one",
        lambda special, x: special.k1(x),
    ),
    "scaled_modified_bessel_k0": (
        "modified Bessel function of the second kind of order zero, times exp(x)",
        lambda special, x: special.k0e(x),
    ),
    "scaled_modified_bessel_k1": (
        "modified Bessel function of the second kind of order one, times exp(x)",
        lambda special, x: special.k1e(x),
    ),
    "spherical_bessel_j0": (
        "spherical Bessel function of the first kind of order zero",
        spherical,
    ),
}
NAN_AT_INFINITY = ("airy_ai", "bessel", "modified_bessel_i")
"""Torch's kernels give nan there; the limits would be zero or infinite."""
OF_X = ("airy_ai", "scaled_modified_bessel", "spherical_bessel")
"""Torch calls their argument x, that of the others input."""


def is_scipys(name: str) -> bool:
    """Those that take SciPy's module are SciPy's; kernels compute the others."""
    return BESSEL[name][1].__code__.co_argcount == 2


def bessel(name: str, self: Array) -> Array:
    """A Bessel function."""
    refuse(f"{name}_cpu", self, "c")
    if floating(self).dtype.itemsize == 2:
        refuse(f"{name}_cpu", self, self.dtype.kind)
    formula = BESSEL[name][1]
    out = shared(partial(formula, loaded("scipy.special")), self) if is_scipys(name) else formula(self)
    out = out.astype(self.dtype, copy=False)
    if name.startswith(NAN_AT_INFINITY):
        out = np.where(np.isinf(self), self.dtype.type(np.nan), out)
    return out


def declare_bessel(name: str) -> None:
    """Publish one function."""

    def call_input(self: Array) -> Array:
        return bessel(name, self)

    def call_x(x: Array) -> Array:
        return bessel(name, x)

    call = call_x if name.startswith(OF_X) else call_input
    call.__name__, call.__doc__ = name, f"The {BESSEL[name][0]}."
    op(space="special", method=False, floats=True, pointwise=True, untraced=is_scipys(name) or ())(call)


for each in BESSEL:
    declare_bessel(each)
