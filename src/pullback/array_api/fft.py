"""The extension `fft` of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import fft as transforms

ALONG_ONE = ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")
ALONG_SEVERAL = ("fftn", "ifftn", "irfftn", "rfftn")

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq", *ALONG_ONE, *ALONG_SEVERAL]


def along_one(name: str) -> Callable[..., torch.Tensor]:
    """A transform along one dimension."""
    transform = getattr(transforms, name)

    def function(x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> torch.Tensor:
        return transform(x, n=n, dim=axis, norm=norm).resolve_conj()  # a lazy conjugate cannot be exported

    return named(function, name)


def along_several(name: str) -> Callable[..., torch.Tensor]:
    """A transform along several dimensions."""
    transform = getattr(transforms, name)

    def function(x: torch.Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> torch.Tensor:
        return transform(x, s=s, dim=axes, norm=norm).resolve_conj()

    return named(function, name)


def named(function: Callable[..., torch.Tensor], name: str) -> Callable[..., torch.Tensor]:
    """The function under its own name, with the first sentence of torch's."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(transforms, name).__doc__
    return function


globals().update({name: along_one(name) for name in ALONG_ONE})
globals().update({name: along_several(name) for name in ALONG_SEVERAL})


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """The frequencies of a transform of n samples, d apart."""
    return transforms.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """The frequencies of a transform of n real samples, d apart."""
    return transforms.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: torch.Tensor, /, *, axes: Any = None) -> torch.Tensor:
    """The frequency zero in the middle."""
    return transforms.fftshift(x, dim=axes)


def ifftshift(x: torch.Tensor, /, *, axes: Any = None) -> torch.Tensor:
    """The frequency zero back in front."""
    return transforms.ifftshift(x, dim=axes)
