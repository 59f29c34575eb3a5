"""Orthogonal polynomials of arrays: by recurrence, or by cosines where these are exact enough and quicker.

A family is known by its first two members and its recurrence r = next(x, q, p, k) from the members q of degree k and p
of degree k - 1. All functions take x and the degrees n as arrays of one shape and floating point dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered

AnyArray = np.ndarray[Any, Any]
Step = Callable[[AnyArray, AnyArray, AnyArray, int], AnyArray]

TOO_LARGE = 2.0**63
LOOKED_AT = 256
"""After so many steps it is asked whether all are nan: degrees may be as large as integers are."""
HERMITE_LIMIT = {"f": 128, "d": 512}
"""The degree above which torch's Hermite polynomials are nan."""


def recurrence(x: AnyArray, n: AnyArray, first: AnyArray, step: Step, wanted: AnyArray) -> AnyArray:
    """The members of the degrees n, where `wanted`: one for degree 0, `first` for degree 1, then step by step."""
    if n.ndim == 0:
        return one_degree(x, int(n) if wanted.any() else min(int(n), 0), first, step)
    out = np.where(n == 0, x.dtype.type(1), np.where(n == 1, first, x.dtype.type(0)))
    top = int(np.where(wanted, n, 0).max(initial=0))
    p, q = np.ones_like(x), first
    for k in range(1, top):
        p, q = q, step(x, q, p, k)
        out = np.where(n == k + 1, q, out)
        if k % LOOKED_AT == 0 and not (wanted & (n > k) & ~np.isnan(q)).any():
            return np.where(wanted & (n > k), q, out)  # what is no number stays none
    return out


def one_degree(x: AnyArray, n: int, first: AnyArray, step: Step) -> AnyArray:
    """The member of one degree."""
    if n < 1:
        return np.full(x.shape, 1 if n == 0 else 0, x.dtype)
    p, q = x.dtype.type(1), first
    for k in range(1, n):
        p, q = q, step(x, q, p, k)
        if k % LOOKED_AT == 0 and np.isnan(q).all():
            break  # what is no number stays none
    return q


def chebyshev_step(x: AnyArray, q: AnyArray, p: AnyArray, k: int) -> AnyArray:
    """The recurrence of all four kinds."""
    return (x + x) * q - p


def sign_of_degree(n: AnyArray) -> AnyArray:
    """One for even degrees, minus one for odd ones."""
    return 1 - 2 * (n % 2)


def chebyshev(kind: str, x: AnyArray, n: AnyArray, by_cosines: int) -> AnyArray:
    """The Chebyshev polynomials of the kinds t, u, v, w; above the degree `by_cosines` by cosines inside (-1, 1)."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    sign = sign_of_degree(n)
    right, left = {
        "t": (one, sign),
        "u": (n + 1, sign * (n + 1)),
        "v": (one, sign * (2 * n + 1)),
        "w": (2 * n + 1, sign),
    }[kind]
    first = {"t": x, "u": x + x, "v": x + x - 1, "w": x + x + 1}[kind]
    quick = (n > by_cosines) & (np.abs(x) < 1)
    edge = np.abs(x) == 1
    out = recurrence(x, n, first, chebyshev_step, ~quick & ~edge)
    if quick.any():
        out = np.where(quick, by_angles(kind, x, n, right, left), out)
    out = np.where(edge, np.where(x > 0, right, left), out)
    return np.where(n < 0, zero, out).astype(x.dtype, copy=False)


def by_angles(kind: str, x: AnyArray, n: AnyArray, right: AnyArray, left: AnyArray) -> AnyArray:
    """The same polynomials as functions of the angle whose cosine is x."""
    angle = np.arccos(np.clip(x, -1, 1))
    if kind == "t":
        return np.cos(n * angle)
    if kind == "u":
        sine = np.sin(angle)
        return np.where(sine != 0, np.sin((n + 1) * angle) / sine, (n + 1) * np.cos((n + 1) * angle) / x)
    half, turned = angle / 2, (n + x.dtype.type(0.5)) * angle
    if kind == "v":
        return np.where(np.sin(half) != 1, np.cos(turned) / np.cos(half), left)
    return np.where(np.cos(half) != 1, np.sin(turned) / np.sin(half), right)


def hermite(kind: str, x: AnyArray, n: AnyArray) -> AnyArray:
    """The Hermite polynomials of physics (h) and of probability (he)."""
    if kind == "h":
        first, step = x + x, lambda x, q, p, k: (x + x) * q - (2 * k) * p
    else:
        first, step = x, lambda x, q, p, k: x * q - k * p
    limit = HERMITE_LIMIT[x.dtype.char]
    out = recurrence(x, n, first, step, n <= limit)
    return np.where(n > limit, x.dtype.type(np.nan), out)


def laguerre(x: AnyArray, n: AnyArray) -> AnyArray:
    """The Laguerre polynomials."""
    out = recurrence(x, n, 1 - x, lambda x, q, p, k: ((2 * k + (1 - x)) * q - k * p) / (k + 1), x != 0)
    return np.where((x == 0) & (n >= 0), x.dtype.type(1), out)


def legendre(x: AnyArray, n: AnyArray) -> AnyArray:
    """The Legendre polynomials."""
    edge = np.abs(x) == 1
    out = recurrence(x, n, x, lambda x, q, p, k: ((2 * k + 1) * x * q - k * p) / (k + 1), ~edge)
    out = np.where(edge, np.where(x > 0, x.dtype.type(1), sign_of_degree(n)), out)
    return np.where(n < 0, x.dtype.type(0), out).astype(x.dtype, copy=False)


# Torch takes the cosines from these degrees on.
CHEBYSHEV = {"t": 6, "u": 8, "v": 8, "w": 8}
SHIFTED = {"t": 6, "u": 6, "v": 6, "w": 4}


@answered(meta=lambda name, x, n: np.empty(np.broadcast_shapes(x.shape, n.shape), x.dtype))
def polynomial(name: str, x: AnyArray, n: AnyArray) -> AnyArray:
    """A polynomial by torch's name; degrees are rounded towards zero. What no integer can hold counts as negative."""
    n = np.where(np.abs(n) < TOO_LARGE, np.trunc(n), n.dtype.type(-1))
    if name.startswith("hermite"):
        return hermite(name.rpartition("_")[2], x, n)
    if name.startswith("laguerre"):
        return laguerre(x, n)
    if name.startswith("legendre"):
        return legendre(x, n)
    if name.startswith("shifted"):
        return chebyshev(name[-1], x + x - 1, n, SHIFTED[name[-1]])
    return chebyshev(name[-1], x, n, CHEBYSHEV[name[-1]])
