"""Window functions as torch.* has them: `hann_window` and its like, periodic by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import answered, made_on
from pullback._arrays.sizes import LARGEST, UNPACKING, check_storage, in_torch_words
from pullback._dtype import defaults, dtype
from pullback._op.define import function
from pullback._runtime.messages import type_name
from pullback._tensor import Tensor, strided
from pullback.kernels.numpy.math import windows as kernels
from pullback.ops.create.data import as_dtype, claimed, finished
from pullback.ops.create.filled import int_of


def window_arguments(name: str, window_length: Any, wanted: Any, layout: Any) -> tuple[int, dtype]:
    """The length of a window and its dtype, once torch's demands on them are met."""
    length = int_of(window_length)
    if length is None:
        kind = type_name(window_length)
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {kind}")
    target = as_dtype(name, wanted) or defaults.dtype
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: layout={layout}")
    if target.category < 2:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={target.cpp_name}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if target.is_complex and length > 1:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{target.scalar_type}'")
    return length, target


def made(name: str, shape: Any, length: int, periodic: bool, target: dtype, requires_grad: bool, place: Any) -> Tensor:
    """The window `shape` draws; a periodic one is the symmetric one of the next length without its last point."""
    if length > LARGEST:
        raise ValueError(UNPACKING)
    if length < 2:
        return claimed(finished(name, made_on(place, np.ones, length, target.numpy), requires_grad))
    check_storage((length + 1,), target.itemsize)
    array = made_on(place, window, in_torch_words(shape), length, length + 1 if periodic else length, target)
    return claimed(finished(name, array, requires_grad))


@answered(meta=lambda shape, length, points, target: np.empty(length, target.numpy))
def window(shape: Any, length: int, points: int, target: dtype) -> np.ndarray[Any, Any]:
    """The first `length` points that `shape` draws; float16 and bfloat16 are computed in float32 and rounded once."""
    wide = target.numpy if target.itemsize > 2 else np.dtype(np.float32)
    array: np.ndarray[Any, Any] = shape(points, wide)[:length].astype(target.numpy, copy=False)
    return array


@function(raw=True, explained=True, method=False)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a Bartlett window: a triangle that begins and ends at zero.

    w(n) = 1 - |2 n / (N - 1) - 1| for n from 0 to N - 1, with N = `window_length`.
    `periodic` windows, for spectral analysis, have N = `window_length + 1` and drop the last point.
    """
    length, target = window_arguments("bartlett_window", window_length, dtype, layout)
    return made("bartlett_window", kernels.bartlett, length, periodic, target, requires_grad, device)


@function(raw=True, explained=True, method=False)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a Blackman window.

    w(n) = 0.42 - 0.5 cos(2 pi n / (N - 1)) + 0.08 cos(4 pi n / (N - 1)) for n from 0 to N - 1 and N = `window_length`.
    `periodic` windows, for spectral analysis, have N = `window_length + 1` and drop the last point.
    """
    length, target = window_arguments("blackman_window", window_length, dtype, layout)
    return made("blackman_window", kernels.blackman, length, periodic, target, requires_grad, device)


@function(raw=True, explained=True, method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a Hamming window.

    w(n) = alpha - beta cos(2 pi n / (N - 1)) for n from 0 to N - 1, with N = `window_length`.
    `periodic` windows, for spectral analysis, have N = `window_length + 1` and drop the last point.
    """
    length, target = window_arguments("hamming_window", window_length, dtype, layout)
    shape = lambda n, kind: kernels.raised_cosine(n, alpha, beta, kind)
    return made("hamming_window", shape, length, periodic, target, requires_grad, device)


@function(raw=True, explained=True, method=False)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a Hann window.

    w(n) = (1 - cos(2 pi n / (N - 1))) / 2 for n from 0 to N - 1, with N = `window_length`.
    `periodic` windows, for spectral analysis, have N = `window_length + 1` and drop the last point.
    """
    length, target = window_arguments("hann_window", window_length, dtype, layout)
    shape = lambda n, kind: kernels.raised_cosine(n, 0.5, 0.5, kind)
    return made("hann_window", shape, length, periodic, target, requires_grad, device)


@function(raw=True, explained=True, method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a Kaiser window, which concentrates its energy in the main lobe as far as `beta` asks.

    w(n) = I0(beta sqrt(1 - t**2)) / I0(beta) with t = 2 n / (N - 1) - 1, for n from 0 to N - 1 and N = `window_length`;
    I0 is the modified Bessel function of order zero. A larger `beta` has lower side lobes and a wider main lobe.
    `periodic` windows, for spectral analysis, have N = `window_length + 1` and drop the last point.
    """
    length, target = window_arguments("kaiser_window", window_length, dtype, layout)
    shape = lambda n, kind: kernels.kaiser(n, beta, kind)
    return made("kaiser_window", shape, length, periodic, target, requires_grad, device)
