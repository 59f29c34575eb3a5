"""Window functions as torch.* has them: `hann_window` and its like, periodic by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._device import check_device
from pullback._dtype import defaults, dtype
from pullback._op.define import function
from pullback._tensor import Tensor, strided
from pullback.kernels import windows as kernels
from pullback.ops.construct import as_dtype, finished

TYPE_NAMES = {
    "torch.uint8": "unsigned char", "torch.int8": "signed char", "torch.int16": "short int", "torch.int32": "int",
    "torch.int64": "long int", "torch.bool": "bool",
}  # fmt: skip


def window_dtype(name: str, length: Any, wanted: Any, layout: Any, device: Any) -> dtype:
    """The dtype of a window, once torch's demands on its arguments are met."""
    if type(length) is not int:
        kind = type(length).__name__
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {kind}")
    target = as_dtype(name, wanted) or defaults.dtype
    check_device(device)
    if layout is not None and layout is not strided:
        raise RuntimeError(f"{name} is not implemented for sparse types, got: layout={layout}")
    if target.category < 2:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={TYPE_NAMES.get(str(target), target)}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if target.is_complex and length > 1:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{target.scalar_type}'")
    return target


def made(name: str, shape: Any, length: int, periodic: bool, target: dtype, requires_grad: bool) -> Tensor:
    """The window `shape` draws; a periodic one is the symmetric one of the next length without its last point."""
    if length < 2:
        return finished(name, np.ones(length, target.numpy), requires_grad)
    # float16 and bfloat16 are computed in float32 and rounded once.
    wide = target.numpy if target.itemsize > 2 else np.dtype(np.float32)
    values = shape(length + 1 if periodic else length, wide)[:length]
    return finished(name, values.astype(target.numpy, copy=False), requires_grad)


@function(raw=True, method=False)
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle that begins and ends at zero."""
    target = window_dtype("bartlett_window", window_length, dtype, layout, device)
    return made("bartlett_window", kernels.bartlett, window_length, periodic, target, requires_grad)


@function(raw=True, method=False)
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos x + 0.08 cos 2x."""
    target = window_dtype("blackman_window", window_length, dtype, layout, device)
    return made("blackman_window", kernels.blackman, window_length, periodic, target, requires_grad)


@function(raw=True, method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta cos x."""
    target = window_dtype("hamming_window", window_length, dtype, layout, device)
    shape = lambda n, kind: kernels.raised_cosine(n, alpha, beta, kind)
    return made("hamming_window", shape, window_length, periodic, target, requires_grad)


@function(raw=True, method=False)
def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """(1 - cos x) / 2."""
    target = window_dtype("hann_window", window_length, dtype, layout, device)
    shape = lambda n, kind: kernels.raised_cosine(n, 0.5, 0.5, kind)
    return made("hann_window", shape, window_length, periodic, target, requires_grad)


@function(raw=True, method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window with the most energy in its main lobe, as far as Bessel functions can say it."""
    target = window_dtype("kaiser_window", window_length, dtype, layout, device)
    shape = lambda n, kind: kernels.kaiser(n, beta, kind)
    return made("kaiser_window", shape, window_length, periodic, target, requires_grad)


# ------------------------------------------------------------------ torch.signal.windows


def signal_dtype(name: str, M: int, wanted: Any, layout: Any, device: Any) -> dtype:
    """The dtype of a window of torch.signal, which says its own errors."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    target = as_dtype(name, wanted) or defaults.dtype
    check_device(device)
    if str(target) not in ("torch.float32", "torch.float64"):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {target}")
    return target


def positive(what: str, value: float) -> None:
    """Raise unless a parameter is positive."""
    if value <= 0:
        raise ValueError(f"{what} must be positive, got: {value} instead.")


@function(raw=True, space="signal.windows", method=False)
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau)."""
    target = signal_dtype("exponential", M, dtype, layout, device)
    positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    return finished("exponential", kernels.exponential(M, center, tau, target.numpy), requires_grad)


@function(raw=True, space="signal.windows", method=False)
def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a period of the sine."""
    target = signal_dtype("cosine", M, dtype, layout, device)
    values = kernels.half_sine(M, M + 1 if not sym and M > 1 else M, target.numpy)
    return finished("cosine", values, requires_grad)


@function(raw=True, space="signal.windows", method=False)
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The bell curve with the standard deviation `std`."""
    target = signal_dtype("gaussian", M, dtype, layout, device)
    positive("Standard deviation", std)
    center = (M if not sym and M > 1 else M - 1) / 2.0
    return finished("gaussian", kernels.gaussian(M, center, std, target.numpy), requires_grad)


@function(raw=True, space="signal.windows", method=False)
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The Kaiser window."""
    target = signal_dtype("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return made("kaiser", lambda n, kind: kernels.kaiser(n, beta, kind), M, not sym, target, requires_grad)


@function(raw=True, space="signal.windows", method=False)
def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle that begins and ends at zero."""
    target = signal_dtype("bartlett", M, dtype, layout, device)
    return made("bartlett", kernels.bartlett, M, not sym, target, requires_grad)


def cosine_sum(name: str, M: int, a: Any, sym: bool, target: dtype, requires_grad: bool) -> Tensor:
    """A sum of cosines with the weights `a`."""
    return made(name, lambda n, kind: kernels.cosine_sum(n, a, kind), M, not sym, target, requires_grad)


@function(raw=True, space="signal.windows", method=False)
def general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A sum of cosines of multiples of x with the weights `a`, whose signs alternate."""
    target = signal_dtype("general_cosine", M, dtype, layout, device)
    if M > 1:
        if not hasattr(a, "__iter__"):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
    return cosine_sum("general_cosine", M, a, sym, target, requires_grad)


@function(raw=True, space="signal.windows", method=False)
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos x."""
    target = signal_dtype("general_cosine", M, dtype, layout, device)
    return cosine_sum("general_hamming", M, (alpha, 1.0 - alpha), sym, target, requires_grad)


WEIGHTS = {
    "hamming": (0.54, 0.46),
    "hann": (0.5, 0.5),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
}


def fixed_cosine_sum(name: str) -> None:
    """Publish a window that is a sum of cosines with known weights."""
    checked_as = "blackman" if name == "blackman" else "general_cosine"

    def window(
        M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:  # fmt: skip
        target = signal_dtype(checked_as, M, dtype, layout, device)
        return cosine_sum(name, M, WEIGHTS[name], sym, target, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"A sum of cosines with the weights {WEIGHTS[name]}."
    function(raw=True, space="signal.windows", method=False)(window)


for each in WEIGHTS:
    fixed_cosine_sum(each)
