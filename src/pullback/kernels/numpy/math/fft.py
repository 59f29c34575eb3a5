"""Discrete Fourier transforms of arrays: complex to complex, real to complex, complex to real.

The number `normalization` is torch's: 0 leaves the sums as they are, 1 divides by the root of the number of points,
2 by the number itself, whatever the direction.
"""

from __future__ import annotations

from functools import lru_cache
from math import isfinite, prod, sqrt
from typing import Any

import numpy as np

from pullback._arrays.kinds import answered
from pullback._runtime.building import loaded
from pullback._thresholds import FEW_TO_TRANSFORM, LARGE_TRANSFORM, SHORT_TRANSFORM
from pullback.kernels.numpy.conv.small_maps import is_finite

AnyArray = np.ndarray[Any, Any]


FORWARD_NORM = ("backward", "ortho", "forward")
INVERSE_NORM = ("forward", "ortho", "backward")
"""NumPy's names for the same: which direction it divides in."""


COMPLEX_OF = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
REAL_OF = {kind: part for part, whole in COMPLEX_OF.items() for kind in (part, whole)}


def is_short(array: AnyArray, dim: tuple[int, ...]) -> bool:
    """True for few finite numbers transformed along their last dimensions, which have few points."""
    if not 0 < array.size <= FEW_TO_TRANSFORM or not dim or not array.flags.c_contiguous:
        return False
    first = array.ndim - len(dim)
    if prod(array.shape[first:]) > SHORT_TRANSFORM or dim != tuple(range(first, array.ndim)):
        return False
    return is_finite(array.view(REAL_OF[array.dtype]))


@lru_cache(256)
def fourier_matrix(
    sizes: tuple[int, ...], normalization: int, forward: bool, onesided: bool, dtype: np.dtype[Any]
) -> AnyArray:
    """The matrix of a transform along dimensions of these sizes, flattened; `onesided` leaves out half of the last."""
    out = np.ones((1, 1), np.complex128)
    for nr, size in enumerate(sizes):
        points = np.arange(size)
        kept = points[: size // 2 + 1] if onesided and nr == len(sizes) - 1 else points
        angle = (-2 if forward else 2) * np.pi / size * (points[:, None] * kept % size)
        one = np.cos(angle) + 1j * np.sin(angle)
        one.real[np.abs(one.real) < 1e-15] = 0  # the quarters of the circle are exact
        one.imag[np.abs(one.imag) < 1e-15] = 0
        out = np.kron(out, one)
    out /= (1, sqrt(prod(sizes)), prod(sizes))[normalization]
    return np.ascontiguousarray(out.astype(dtype))


@lru_cache(256)
def real_matrix(size: int, normalization: int, onesided: bool, dtype: np.dtype[Any]) -> tuple[AnyArray, np.dtype[Any]]:
    """The matrix of a transform of real numbers, its real and imaginary parts side by side; the dtype of the result."""
    kind = COMPLEX_OF[dtype]
    return fourier_matrix((size,), normalization, True, onesided, kind).view(dtype), kind


def library(array: AnyArray) -> Any:
    """The library to transform an array with: both have the same functions."""
    return np.fft if array.size < LARGE_TRANSFORM else loaded("scipy.fft")


def transformed(array: AnyArray, dim: tuple[int, ...], normalization: int, how: bool) -> AnyArray:
    """The shape of a transform of complex numbers."""
    return np.empty(array.shape, array.dtype)


def halved(array: AnyArray, dim: tuple[int, ...], normalization: int, onesided: bool) -> AnyArray:
    """The shape of a transform of real numbers."""
    shape = list(array.shape)
    shape[dim[-1]] = array.shape[dim[-1]] // 2 + 1 if onesided else array.shape[dim[-1]]
    return np.empty(shape, np.result_type(array.dtype, np.complex64))


def doubled(array: AnyArray, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> AnyArray:
    """The shape of a transform to real numbers."""
    shape = list(array.shape)
    shape[dim[-1]] = last_dim_size
    return np.empty(shape, array.real.dtype)


@answered(meta=transformed)
def c2c(array: AnyArray, dim: tuple[int, ...], normalization: int, forward: bool) -> AnyArray:
    """The transform of complex numbers along the dimensions `dim`, or its inverse."""
    if not dim:
        return array.copy()
    if not array.size:
        return np.zeros(array.shape, array.dtype)
    if is_short(array, dim):
        matrix = fourier_matrix(array.shape[array.ndim - len(dim) :], normalization, forward, False, array.dtype)
        return array.dot(matrix) if len(dim) == 1 else array.reshape(-1, len(matrix)).dot(matrix).reshape(array.shape)
    norm = (FORWARD_NORM if forward else INVERSE_NORM)[normalization]
    if array.size >= LARGE_TRANSFORM and len(dim) > 1:
        return (library(array).fftn if forward else library(array).ifftn)(array, axes=dim, norm=norm)
    transform = library(array).fft if forward else library(array).ifft
    for d in reversed(dim):
        array = transform(array, None, d, norm)
    return array


@answered(meta=halved)
def r2c(array: AnyArray, dim: tuple[int, ...], normalization: int, onesided: bool) -> AnyArray:
    """The transform of real numbers; with `onesided` without the half that repeats the other."""
    if not array.size:
        shape = list(array.shape)
        shape[dim[-1]] = array.shape[dim[-1]] // 2 + 1 if onesided else array.shape[dim[-1]]
        return np.zeros(shape, np.result_type(array.dtype, np.complex64))
    if (
        len(dim) == 1
        and dim[0] == array.ndim - 1
        and array.shape[-1] <= SHORT_TRANSFORM
        and array.size <= FEW_TO_TRANSFORM
    ):
        matrix, kind = real_matrix(array.shape[-1], normalization, onesided, array.dtype)
        out = array.dot(matrix)
        # The first element of a row is its sum: finite if all its elements are, and then no zero met an infinity.
        if isfinite(out.item(0)) if array.ndim == 1 else is_finite(out):
            return out.view(kind)
    norm = FORWARD_NORM[normalization]
    out = (library(array).rfft if onesided else library(array).fft)(array, None, dim[-1], norm)
    return out if len(dim) == 1 else c2c(out, dim[:-1], normalization, True)


@answered(meta=doubled)
def c2r(array: AnyArray, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> AnyArray:
    """The inverse transform to real numbers, from the half that `r2c` gives."""
    if not array.size:
        shape = list(array.shape)
        shape[dim[-1]] = last_dim_size
        return np.zeros(shape, array.real.dtype)
    if len(dim) > 1:
        array = c2c(array, dim[:-1], normalization, False)
    return library(array).irfft(array, last_dim_size, dim[-1], INVERSE_NORM[normalization])
