"""Fourier transforms on the device, as products with small Fourier matrices and tables of roots of one.

A length that has factors is taken as a table of two: columns are transformed, turned by roots of one, then rows (Cooley
and Tukey). Short lengths are products with a matrix; a large prime is a convolution of a length that has factors
(Bluestein). Matrices and tables are made on the host in double precision, once.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.carry import NoKernel
from pullback.kernels.cuda.composed.keys import numbers_there
from pullback.kernels.cuda.composed.reading import known
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.native import copied
from pullback.kernels.cuda.products import product
from pullback.kernels.jit.language.expression import COMPLEX
from pullback.kernels.numpy.math import fft

SHORT = 64
"""The longest transform that is one product with a matrix."""
WHOLE = {part: kind for kind, part in COMPLEX.items()}
"""The complex numbers made of real ones."""


# ------------------------------------------------------------------ tables


def roots(steps: Any, size: int, forward: bool, dtype: Any) -> Any:
    """exp(-2 pi i k / n) of whole numbers k, on the host, where nobody can change them."""
    angle = (-2 if forward else 2) * np.pi / size * (steps % size)
    out = (np.cos(angle) + 1j * np.sin(angle)).astype(dtype)
    out.flags.writeable = False
    return out


@lru_cache(64)
def matrix_of(size: int, forward: bool, dtype: Any) -> Any:
    """The matrix of a transform."""
    return roots(np.outer(np.arange(size), np.arange(size)), size, forward, dtype)


@lru_cache(64)
def turns_of(rows: int, columns: int, forward: bool, dtype: Any) -> Any:
    """What the elements of a table are turned by between the transforms of its columns and of its rows."""
    return roots(np.outer(np.arange(rows), np.arange(columns)), rows * columns, forward, dtype)


@lru_cache(64)
def chirp_of(size: int, long: int, forward: bool, dtype: Any) -> tuple[Any, Any]:
    """The roots of one at halves of squares, and the transform of their conjugates around zero, in a longer row."""
    half = roots(np.arange(size) ** 2, 2 * size, forward, np.complex128)
    around = np.zeros(long, np.complex128)
    around[:size] = half.conj()
    around[long - size + 1 :] = half[:0:-1].conj()
    both = half.astype(dtype), np.fft.fft(around).astype(dtype)
    for one in both:
        one.flags.writeable = False
    return both


@lru_cache(1024)
def factor_of(size: int) -> int:
    """The largest factor that is short, or else the smallest of all; the number itself if it is prime."""
    short = [n for n in range(2, min(SHORT, size - 1) + 1) if size % n == 0]
    if short:
        return max(short)
    return next((n for n in range(SHORT + 1, math.isqrt(size) + 1) if size % n == 0), size)


# ------------------------------------------------------------------ rows


def rows_transformed(x: Any, forward: bool) -> Any:
    """The transforms of the rows of a matrix."""
    count, size = x.shape
    if size == 1:
        return x
    if size <= SHORT:
        made = product(x, numbers_there(matrix_of(size, forward, x.dtype), x.device), exact=True)
        if made is None:
            raise NoKernel("a product of complex matrices")
        return made
    rows = factor_of(size)
    if rows == size:
        return prime_transformed(x, forward)
    columns = size // rows
    turned = x.reshape(count, rows, columns).transpose(0, 2, 1).reshape(count * columns, rows)
    table = rows_transformed(turned, forward).reshape(count, columns, rows)
    table = table * numbers_there(turns_of(columns, rows, forward, x.dtype), x.device)
    made = rows_transformed(table.transpose(0, 2, 1).reshape(count * rows, columns), forward)
    return made.reshape(count, rows, columns).transpose(0, 2, 1).reshape(count, size)


def prime_transformed(x: Any, forward: bool) -> Any:
    """The transforms of rows whose length has no factors, as a convolution."""
    count, size = x.shape
    long = 1 << (2 * size - 2).bit_length()
    chirp, kernel = (numbers_there(table, x.device) for table in chirp_of(size, long, forward, x.dtype))
    wide = filled((count, long), x.dtype, 0, x.device)
    wide[:, :size] = x * chirp
    spread = rows_transformed(rows_transformed(wide, True) * kernel, False)
    return spread[:, :size] * (chirp * chirp.dtype.type(1 / long))


def along(x: Any, dim: int, forward: bool) -> Any:
    """A transform along one dimension."""
    moved = np.moveaxis(x, dim, -1)
    made = rows_transformed(contiguous(moved).reshape(-1, moved.shape[-1]), forward)
    return np.moveaxis(made.reshape(moved.shape), -1, dim)


def scaled(x: Any, count: int, normalization: int) -> Any:
    """Sums as they are, or over the root of the number of points, or over the number."""
    return x if not normalization else x * x.dtype.type(1 / (math.sqrt(count) if normalization == 1 else count))


# ------------------------------------------------------------------ the three transforms


def points(shape: Any, dim: Any) -> int:
    """How many points are transformed together."""
    return math.prod([shape[d] for d in dim])


def c2c(array: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """The transform of complex numbers, or its inverse."""
    if not dim or not array.size:
        return array.copy()
    out = array if array.dtype in COMPLEX else copied(array, WHOLE[array.dtype])
    for d in reversed(dim):
        out = along(out, d, forward)
    return scaled(out, points(array.shape, dim), normalization)


def r2c(array: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    """The transform of real numbers; with `onesided` without the half that repeats the other."""
    size, kind = array.shape[dim[-1]], WHOLE[array.dtype]
    shape = [size // 2 + 1 if d == dim[-1] % array.ndim and onesided else n for d, n in enumerate(array.shape)]
    if not array.size:
        return filled(shape, kind, 0, array.device)
    out = along(copied(array, kind), dim[-1], True)
    if onesided:
        out = contiguous(np.moveaxis(np.moveaxis(out, dim[-1], -1)[..., : size // 2 + 1], -1, dim[-1]))
    for d in reversed(dim[:-1]):
        out = along(out, d, True)
    return scaled(out, points(array.shape, dim), normalization)


def c2r(array: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    """The inverse transform to real numbers, from the half that `r2c` gives."""
    shape = [last_dim_size if d == dim[-1] % array.ndim else n for d, n in enumerate(array.shape)]
    if not array.size:
        return filled(shape, COMPLEX[array.dtype], 0, array.device)
    half = np.moveaxis(c2c(array, dim[:-1], 0, False), dim[-1], -1)
    kept = last_dim_size // 2 + 1
    whole = empty((*half.shape[:-1], last_dim_size), array.dtype, None, array.device)
    whole[..., :kept] = half[..., :kept]
    if last_dim_size > kept:
        whole[..., kept:] = np.conjugate(half[..., last_dim_size - kept : 0 : -1])
    made = rows_transformed(whole.reshape(-1, last_dim_size), False).reshape(whole.shape)
    real = contiguous(np.moveaxis(made, -1, dim[-1]).real)
    return scaled(real, points(shape, dim), normalization)


def on_device(compute: Any, otherwise: Any) -> Any:
    """A transform of arrays of the device that kernels take; others need the host."""

    def run(array: Any, *args: Any) -> Any:
        if type(array) is not DeviceArray or (array.dtype not in COMPLEX and array.dtype not in WHOLE):
            return otherwise(array, *args)
        return compute(array, *args)

    return run


known |= {fft.c2c: on_device(c2c, fft.c2c), fft.r2c: on_device(r2c, fft.r2c), fft.c2r: on_device(c2r, fft.c2r)}
