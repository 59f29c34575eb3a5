"""Discrete Fourier transforms of arrays: complex to complex, real to complex, complex to real.

The number `normalization` is torch's: 0 leaves the sums as they are, 1 divides by the root of the number of points,
2 by the number itself, whatever the direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]

LARGE = 1 << 14
"""From so many elements on SciPy is quicker: it transforms several rows at once. NumPy is quicker to call."""

FORWARD_NORM = ("backward", "ortho", "forward")
INVERSE_NORM = ("forward", "ortho", "backward")
"""NumPy's names for the same: which direction it divides in."""


def library(array: AnyArray) -> Any:
    """The library to transform an array with: both have the same functions."""
    if array.size < LARGE:
        return np.fft
    import scipy.fft

    return scipy.fft


def c2c(array: AnyArray, dim: tuple[int, ...], normalization: int, forward: bool) -> AnyArray:
    """The transform of complex numbers along the dimensions `dim`, or its inverse."""
    if not dim:
        return array.copy()
    if not array.size:
        return np.zeros(array.shape, array.dtype)
    norm = (FORWARD_NORM if forward else INVERSE_NORM)[normalization]
    if array.size >= LARGE and len(dim) > 1:
        return (library(array).fftn if forward else library(array).ifftn)(array, axes=dim, norm=norm)
    transform = library(array).fft if forward else library(array).ifft
    for d in reversed(dim):
        array = transform(array, None, d, norm)
    return array


def r2c(array: AnyArray, dim: tuple[int, ...], normalization: int, onesided: bool) -> AnyArray:
    """The transform of real numbers; with `onesided` without the half that repeats the other."""
    if not array.size:
        shape = list(array.shape)
        shape[dim[-1]] = array.shape[dim[-1]] // 2 + 1 if onesided else array.shape[dim[-1]]
        return np.zeros(shape, np.result_type(array.dtype, np.complex64))
    norm = FORWARD_NORM[normalization]
    out = (library(array).rfft if onesided else library(array).fft)(array, None, dim[-1], norm)
    return out if len(dim) == 1 else c2c(out, dim[:-1], normalization, True)


def c2r(array: AnyArray, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> AnyArray:
    """The inverse transform to real numbers, from the half that `r2c` gives."""
    if not array.size:
        shape = list(array.shape)
        shape[dim[-1]] = last_dim_size
        return np.zeros(shape, array.real.dtype)
    if len(dim) > 1:
        array = c2c(array, dim[:-1], normalization, False)
    return library(array).irfft(array, last_dim_size, dim[-1], INVERSE_NORM[normalization])
