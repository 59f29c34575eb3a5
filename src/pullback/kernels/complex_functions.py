"""Functions of complex numbers that NumPy computes otherwise than C, and so torch, does.

Kernels compute them by what their parts make of the same names: see jit/language/complex_parts.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.jit.language.expression import Stand

AnyArray = np.ndarray[Any, Any]


def from_parts(real: AnyArray, imag: AnyArray, dtype: Any) -> AnyArray:
    """Complex numbers from their parts: a product with 1j would make nan of infinite ones."""
    out = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), dtype)
    out.real, out.imag = real, imag
    return out


def log1p(z: AnyArray) -> AnyArray:
    """log(1 + z), of which NumPy forgets the digits near zero: times what 1 + z has lost of z."""
    if isinstance(z, Stand):
        return np.log1p(z)  # type: ignore[return-value]
    sum, kept = np.array(z), np.array(z)
    sum.real += 1  # a sum of complex numbers would lose the sign of an imaginary zero
    kept.real = sum.real - 1
    whole = np.log(sum)
    return np.where(sum == 1, z, np.where(kept == z, whole, whole * (z / kept)))


def power(base: AnyArray, exponent: AnyArray) -> AnyArray:
    """exp(exponent * log(base)), without exceptions: zero to the power zero is nan."""
    if isinstance(base, Stand) or isinstance(exponent, Stand):
        return np.power(base, exponent)
    logarithm = np.log(base)
    return np.exp(product(*np.broadcast_arrays(exponent, logarithm)))


def product(a: AnyArray, b: AnyArray) -> AnyArray:
    """A product that is infinite if a factor is, as in C; NumPy's is nan in both parts then."""
    plain = np.asarray(a * b)
    lost = np.isnan(plain.real) & np.isnan(plain.imag) & (infinite(a) | infinite(b))
    if not lost.any():
        return plain
    a, b = direction(a[lost].astype(plain.dtype, copy=False), b[lost].astype(plain.dtype, copy=False))
    with_infinity = np.inf * (a.real * b.real - a.imag * b.imag), np.inf * (a.real * b.imag + a.imag * b.real)
    plain[lost] = from_parts(*with_infinity, plain.dtype)
    return plain


def infinite(z: AnyArray) -> AnyArray:
    """True where a part is infinite, even if the other one is nan."""
    return np.isinf(z.real) | np.isinf(z.imag)


def direction(a: AnyArray, b: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Two factors with infinite parts made one beside parts made zero, and nan made zero."""

    def known(z: AnyArray, partner: AnyArray) -> AnyArray:
        at_infinity = infinite(z)
        other_at_infinity = infinite(partner)
        parts = []
        for part in (z.real, z.imag):
            part = np.where(at_infinity, np.copysign(np.isinf(part).astype(part.dtype), part), part)
            parts.append(np.where(other_at_infinity & np.isnan(part), np.copysign(part.dtype.type(0), part), part))
        return from_parts(*parts, z.dtype)

    return known(a, b), known(b, a)
