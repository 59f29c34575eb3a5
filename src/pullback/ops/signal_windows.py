"""torch.signal.windows: symmetric by default, written in terms of ops as torch's are. With `requires_grad` a window is
a result, whose history begins at the line of points it was computed from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback._device import check_device
from pullback._dtype import defaults, dtype
from pullback._op.define import function
from pullback._tensor import Tensor, fresh, strided
from pullback.ops.create.data import as_dtype, finished, tensor
from pullback.ops.create.ranges import arange, linspace
from pullback.ops.pointwise.arithmetic import abs, neg, sub
from pullback.ops.pointwise.bessel import i0
from pullback.ops.pointwise.elementary import exp, sqrt
from pullback.ops.pointwise.power import pow
from pullback.ops.pointwise.trigonometric import cos, sin
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import unsqueeze


def checked(name: str, M: int, wanted: Any, layout: Any, device: Any) -> dtype:
    """The dtype of a window, once its arguments are what torch demands."""
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


def drawn(
    start: float, end: float, M: int, target: dtype, requires_grad: bool, shape: Callable[[Tensor], Tensor], few: int
) -> Tensor:
    """A function of M points on a line; fewer points than `few` are ones."""
    if few > M or not M:
        return finished("window", np.ones(M, target.numpy), requires_grad)
    return shape(linspace(start, end, M, dtype=target, requires_grad=requires_grad))


@function(raw=True, space="signal.windows", method=False)
def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = strided, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau)."""
    target = checked("exponential", M, dtype, layout, device)
    positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / tau
    return drawn(-center * scale, (-center + (M - 1)) * scale, M, target, requires_grad, lambda k: exp(neg(abs(k))), 0)


@function(raw=True, space="signal.windows", method=False)
def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a period of the sine."""
    target = checked("cosine", M, dtype, layout, device)
    scale = math.pi / ((M + 1 if not sym and M > 1 else M) or 1)
    return drawn(0.5 * scale, (0.5 + (M - 1)) * scale, M, target, requires_grad, sin, 0)


@function(raw=True, space="signal.windows", method=False)
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The bell curve with the standard deviation `std`."""
    target = checked("gaussian", M, dtype, layout, device)
    positive("Standard deviation", std)
    start, scale = -(M if not sym and M > 1 else M - 1) / 2.0, 1 / (std * math.sqrt(2))
    return drawn(start * scale, (start + (M - 1)) * scale, M, target, requires_grad, lambda k: exp(neg(pow(k, 2))), 0)


@function(raw=True, space="signal.windows", method=False)
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The window with the most energy in its main lobe, as far as Bessel functions can say it."""
    target = checked("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    number = target.numpy.type
    end = number(beta)
    step = number(2) * end / number(max(M if not sym else M - 1, 1))
    last = min(end, -end + number(M - 1) * step) if M else end
    whole = fresh(np.asarray(end))
    shape = lambda k: i0(sqrt(sub(whole * whole, pow(k, 2)))) / i0(whole)
    return drawn(-float(end), float(last), M, target, requires_grad, shape, 2)


@function(raw=True, space="signal.windows", method=False)
def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle that begins and ends at zero."""
    target = checked("bartlett", M, dtype, layout, device)
    step = 2 / max(M if not sym else M - 1, 1)
    return drawn(-1, -1 + (M - 1) * step, M, target, requires_grad, lambda k: 1 - abs(k), 2)  # type: ignore[operator]


def cosine_sum(M: int, a: Any, sym: bool, target: dtype, requires_grad: bool) -> Tensor:
    """A sum of cosines with the weights `a`, whose signs alternate."""

    def shape(k: Tensor) -> Tensor:
        weights = tensor([(-1) ** i * w for i, w in enumerate(a)], dtype=target, requires_grad=requires_grad)
        i = arange(weights.shape[0], dtype=target, requires_grad=requires_grad)
        return sum_dim(unsqueeze(weights, -1) * cos(unsqueeze(i, -1) * k), (0,))  # type: ignore[no-any-return]

    step = 2 * math.pi / max(M if not sym else M - 1, 1)
    return drawn(0, (M - 1) * step, M, target, requires_grad, shape, 2)


@function(raw=True, space="signal.windows", method=False)
def general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A sum of cosines of multiples of x with the weights `a`, whose signs alternate."""
    target = checked("general_cosine", M, dtype, layout, device)
    if M > 1:
        if not isinstance(a, Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        if not a:
            raise ValueError("Coefficients cannot be empty")
    return cosine_sum(M, a, sym, target, requires_grad)


@function(raw=True, space="signal.windows", method=False)
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos x."""
    target = checked("general_cosine", M, dtype, layout, device)
    return cosine_sum(M, (alpha, 1.0 - alpha), sym, target, requires_grad)


WEIGHTS = {
    "hamming": (0.54, 1.0 - 0.54),
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
        target = checked(checked_as, M, dtype, layout, device)
        return cosine_sum(M, WEIGHTS[name], sym, target, requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"A sum of cosines with the weights {WEIGHTS[name]}."
    function(raw=True, space="signal.windows", method=False)(window)


for each in WEIGHTS:
    fixed_cosine_sum(each)
