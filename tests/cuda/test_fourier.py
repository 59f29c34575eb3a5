"""Fourier transforms run on the device, whatever the length, and nothing goes by the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels.compiled import room

from .agreeing import agree

fft = torch.fft
pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")


def numbers(*shape: int, dtype: Any = torch.complex64) -> Any:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("size", [1, 2, 7, 12, 16, 64, 67, 96, 128, 134])
def test_rows_of_any_length_are_transformed_on_the_device(size: int) -> None:
    """Short ones, lengths with factors, powers of two, primes, and primes times factors."""
    for dtype in (torch.complex64, torch.complex128):
        agree(fft.fft, numbers(2, size, dtype=dtype))
        agree(fft.ifft, numbers(2, size, dtype=dtype))
    agree(fft.rfft, numbers(2, size, dtype=torch.float64))
    agree(lambda x: fft.irfft(x, size), numbers(2, size // 2 + 1, dtype=torch.complex128))


FORMS: dict[str, Any] = {
    "fft2": lambda x: fft.fft2(x),
    "ifft2": lambda x: fft.ifft2(x, norm="ortho"),
    "fftn": lambda x: fft.fftn(x, norm="forward"),
    "first dimension": lambda x: fft.fft(x, dim=0),
    "two dimensions": lambda x: fft.fftn(x, dim=(2, 0)),
    "padded": lambda x: fft.fft(x, 9),
    "cut": lambda x: fft.ifft(x, 3, 1),
    "transposed": lambda x: fft.fft(x.transpose(0, 2)),
    "rfft2": lambda x: fft.rfft2(x.real),
    "rfft of columns": lambda x: fft.rfft(x.real, dim=1),
    "irfft2": lambda x: fft.irfft2(x),
    "irfftn": lambda x: fft.irfftn(x, s=(4, 5, 7)),
    "hfft": lambda x: fft.hfft(x),
    "ihfft": lambda x: fft.ihfft(x.real),
    "shifted": lambda x: fft.fftshift(fft.fft(x)),
    "convolution": lambda x: fft.ifft(fft.fft(x) * fft.fft(x.flip(0))).abs(),
}


@pytest.mark.parametrize("name", FORMS)
def test_transforms_along_several_dimensions_run_on_the_device(name: str) -> None:
    agree(FORMS[name], numbers(4, 5, 6, dtype=torch.complex128))


def test_short_time_transforms_run_on_the_device() -> None:
    def run(x: Any) -> Any:
        return torch.stft(x, 8, 4, window=torch.hann_window(8, device=x.device), return_complex=True)

    agree(run, numbers(32, dtype=torch.float32), tolerance=1e-4)


def test_transforms_lie_in_memory_as_on_the_host() -> None:
    x = numbers(4, 5, 6)
    for compute in (lambda x: fft.fft(x, dim=0), lambda x: fft.fft2(x), lambda x: fft.rfft(x.real, dim=1)):
        assert compute(x).stride() == compute(x.cuda()).stride()


def test_long_transforms_keep_their_digits_on_the_device() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        for size in (720, 1009, 1024):
            x = numbers(1, size)
            exact = np.fft.fft(x.numpy().astype(np.complex128))
            error = np.linalg.norm(fft.fft(x.cuda()).cpu().numpy() - exact) / np.linalg.norm(exact)
            assert error < 6e-7
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
