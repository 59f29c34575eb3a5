"""torch.fft: the public functions."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._arrays.memory import row_major
from pullback._arrays.sizes import check_storage, in_torch_words
from pullback._dtype import defaults, dtype
from pullback._op.define import Array, function
from pullback._op.out import write_result
from pullback._tensor import Tensor, normal_dim
from pullback.ops.create.data import as_dtype
from pullback.ops.create.filled import given
from pullback.ops.fourier import transforms as fourier
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.shape.rearrange import roll_dims

COMPLEX, REAL = "a complex", "a floating point"


def check_arguments(name: str, self: Any, norm: Any, out: Any, wanted: str, **numbers: Any) -> None:
    """Torch's errors for arguments of the wrong type."""
    if out is norm is None and isinstance(self, Tensor):
        for value in numbers.values():
            if type(value) is not int and value is not None:
                break
        else:
            return
    if not isinstance(self, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(self).__name__}")
    for position, (argument, value) in enumerate(numbers.items()):
        if type(value) is int or value is None:
            continue
        try:
            as_index(value)
        except TypeError:
            place = f" (position {position + 2})" if isinstance(value, (float, complex)) else ""
            kind = type(value).__name__
            raise TypeError(f"fft_{name}(): argument '{argument}'{place} must be int, not {kind}") from None
    if norm is not None and not isinstance(norm, str):
        raise TypeError(f"fft_{name}(): argument 'norm' must be str, not {type(norm).__name__}")
    if out is not None and (out.is_complex() if wanted is REAL else not out.is_complex()):
        raise RuntimeError(f"{name} expects {wanted} output tensor, but got {out.dtype.scalar_type}")


def delivered(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    """The result, or `out` with the result in it, by rows if it had to be resized."""
    if out is None:
        return result
    if type(result) is not Tensor:  # a lazy conjugate, which is computed into it
        return write_result("conj_physical", result, out)
    result._array = row_major(result._array)
    return write_result(f"fft_{name}", result, out)


# ------------------------------------------------------------------ one dimension


def usual_dim(self: Any, n: Any, dim: Any, norm: Any, out: Any) -> tuple[int] | None:
    """The dimension, counted from the front, if real numbers are to be transformed as they are; None otherwise."""
    if n is norm is out is None and type(dim) is int and isinstance(self, Tensor):
        array = self._array
        if array.dtype.char in "fd" and -array.ndim <= dim < array.ndim and array.size:
            return (dim if dim >= 0 else dim + array.ndim,)
    return None


@function(space="fft", method=False, autocast="float32")
def fft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the discrete Fourier transform along one dimension: `X[k] = sum_j x[j] * exp(-2 pi i j k / n)`.

    `n` is the length of the transform: the signal is cut or padded with zeros to it. The result is complex, with size
    `n` along `dim`; the frequencies are those of `fftfreq(n)`.
    `norm` is "backward" (the default, no scaling), "ortho" (divide by `sqrt(n)`) or "forward" (divide by `n`).
    """
    usual = usual_dim(self, n, dim, norm, out)
    if usual is not None:
        return fourier.fft_r2c(self, usual, 0, False)
    check_arguments("fft", self, norm, out, COMPLEX, n=n, dim=dim)
    if self._array.dtype.kind == "c":
        return delivered("fft", fourier.complex_to_complex(self, n, dim, norm, True), out)
    return delivered("fft", fourier.real_to_complex("fft", self, n, dim, norm, True, False), out)


@function(space="fft", method=False, autocast="float32")
def ifft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the inverse Fourier transform along one dimension: `x[j] = sum_k X[k] * exp(2 pi i j k / n) / n`.

    `n` is the length of the transform: the signal is cut or padded with zeros to it. The result is complex, with size
    `n` along `dim`.
    `norm` is "backward" (the default, divide by `n`), "ortho" (divide by `sqrt(n)`) or "forward" (no scaling).
    """
    usual = usual_dim(self, n, dim, norm, out)
    if usual is not None:
        return conj(fourier.fft_r2c(self, usual, 2, False))
    check_arguments("ifft", self, norm, out, COMPLEX, n=n, dim=dim)
    if self._array.dtype.kind == "c":
        return delivered("ifft", fourier.complex_to_complex(self, n, dim, norm, False), out)
    return delivered("ifft", fourier.real_to_complex("ifft", self, n, dim, norm, False, False), out)


@function(space="fft", method=False, autocast="float32")
def rfft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the discrete Fourier transform of a real signal, without the redundant negative frequencies.

    The result is complex, with size `n // 2 + 1` along `dim`: the other half would be its mirrored conjugate.
    `n` is the length of the transform: the signal is cut or padded with zeros to it.
    `norm` is "backward" (the default, no scaling), "ortho" (divide by `sqrt(n)`) or "forward" (divide by `n`).
    """
    usual = usual_dim(self, n, dim, norm, out)
    if usual is not None:
        return fourier.fft_r2c(self, usual, 0, True)
    check_arguments("rfft", self, norm, out, COMPLEX, n=n, dim=dim)
    return delivered("rfft", fourier.real_to_complex("rfft", self, n, dim, norm, True, True), out)


@function(space="fft", method=False, autocast="float32")
def irfft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `rfft`: compute the real signal from the non-negative half of its spectrum.

    `n` is the length of the signal, `2 * (m - 1)` by default for size m along `dim`; give it if the signal's was odd.
    Imaginary parts that contradict a real signal, as that of the zero frequency, are ignored.
    `norm` is "backward" (the default, divide by `n`), "ortho" (divide by `sqrt(n)`) or "forward" (no scaling).
    """
    check_arguments("irfft", self, norm, out, REAL, n=n, dim=dim)
    return delivered("irfft", fourier.complex_to_real(self, n, dim, norm, False), out)


@function(space="fft", method=False, autocast="float32")
def hfft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the real Fourier transform of a signal with Hermitian symmetry, given by its non-negative half.

    `n` is the length of the result along `dim`, `2 * (m - 1)` by default for m given elements.
    `norm` is "backward" (the default, no scaling), "ortho" (divide by `sqrt(n)`) or "forward" (divide by `n`).
    """
    check_arguments("hfft", self, norm, out, REAL, n=n, dim=dim)
    return delivered("hfft", fourier.complex_to_real(self, n, dim, norm, True), out)


@function(space="fft", method=False, autocast="float32")
def ihfft(self: Array, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `hfft`: compute the non-negative half, of size `n // 2 + 1`, of the inverse transform of a real signal.

    `n` is the length of the transform: the signal is cut or padded with zeros to it.
    `norm` is "backward" (the default, divide by `n`), "ortho" (divide by `sqrt(n)`) or "forward" (no scaling).
    """
    check_arguments("ihfft", self, norm, out, COMPLEX, n=n, dim=dim)
    return delivered("ihfft", fourier.real_to_complex("ihfft", self, n, dim, norm, False, True), out)


# ------------------------------------------------------------------ several dimensions


@function(space="fft", method=False, autocast="float32")
def fftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the discrete Fourier transform along several dimensions, all by default.

    `s` is the size of the transform in each of them: the signal is cut or padded with zeros to it; -1 keeps the size.
    Without `dim`, `s` belongs to the last `len(s)` dimensions.
    `norm` is "backward" (the default, no scaling), "ortho" (divide by `sqrt(n)`) or "forward" (divide by `n`), where n
    is the product of the sizes.
    """
    check_arguments("fftn", self, norm, out, COMPLEX)
    return delivered("fftn", fourier.several_complex(self, s, dim, norm, True), out)


@function(space="fft", method=False, autocast="float32")
def ifftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the inverse discrete Fourier transform along several dimensions, all by default.

    `s` is the size of the transform in each of them: the signal is cut or padded with zeros to it; -1 keeps the size.
    Without `dim`, `s` belongs to the last `len(s)` dimensions.
    `norm` is "backward" (the default, divide by `n`), "ortho" (divide by `sqrt(n)`) or "forward" (no scaling), where n
    is the product of the sizes.
    """
    check_arguments("ifftn", self, norm, out, COMPLEX)
    return delivered("ifftn", fourier.several_complex(self, s, dim, norm, False), out)


@function(space="fft", method=False, autocast="float32")
def rfftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the discrete Fourier transform of a real signal along several dimensions, all by default.

    Only the non-negative frequencies of the last one are kept: its size becomes `s[-1] // 2 + 1`.
    `s` is the size of the transform in each of them: the signal is cut or padded with zeros to it; -1 keeps the size.
    Without `dim`, `s` belongs to the last `len(s)` dimensions. `norm` is "backward" (no scaling), "ortho" or "forward".
    """
    check_arguments("rfftn", self, norm, out, COMPLEX)
    return delivered("rfftn", fourier.several_to_halved(self, s, dim, norm), out)


@function(space="fft", method=False, autocast="float32")
def irfftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `rfftn`: compute the real signal from the half of its spectrum with non-negative last frequencies.

    `s` is the size of the signal in each dimension; the last is `2 * (m - 1)` by default for the given size m, so give
    it if the signal's was odd. Without `dim`, `s` belongs to the last `len(s)` dimensions.
    `norm` is "backward" (the default, divide by the product of the sizes), "ortho" or "forward" (no scaling).
    """
    check_arguments("irfftn", self, norm, out, REAL)
    return delivered("irfftn", fourier.several_to_real(self, s, dim, norm), out)


@function(space="fft", method=False)
def hfftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the real Fourier transform, along several dimensions, of a signal with Hermitian symmetry.

    The signal is given by the non-negative half of its last dimension.
    `s` is the size of the result in each dimension; the last is `2 * (m - 1)` by default for m given elements.
    Without `dim`, `s` belongs to the last `len(s)` dimensions; without either, all are transformed.
    `norm` is "backward" (the default, no scaling), "ortho" or "forward" (divide by the product of the sizes).
    """
    check_arguments("hfftn", self, norm, out, REAL)
    return delivered("hfftn", fourier.several_hermitian(self, s, dim, norm), out)


@function(space="fft", method=False)
def ihfftn(self: Array, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `hfftn`: compute half of the inverse transform, along several dimensions, of a real signal.

    The size of the last dimension becomes `s[-1] // 2 + 1`. `s` is the size of the transform in each dimension: the
    signal is cut or padded with zeros to it.
    `norm` is "backward" (the default, divide by the product of the sizes), "ortho" or "forward" (no scaling).
    """
    check_arguments("ihfftn", self, norm, out, COMPLEX)
    return delivered("ihfftn", fourier.several_from_hermitian(self, s, dim, norm), out)


LAST_TWO = (-2, -1)


@function(space="fft", method=False, autocast="float32")
def fft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the two-dimensional discrete Fourier transform, along the last two dimensions by default.

    The arguments are those of `fftn`.
    """
    check_arguments("fft2", self, norm, out, COMPLEX)
    return delivered("fft2", fourier.several_complex(self, s, dim, norm, True), out)


@function(space="fft", method=False, autocast="float32")
def ifft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the two-dimensional inverse discrete Fourier transform, along the last two dimensions by default.

    The arguments are those of `ifftn`.
    """
    check_arguments("ifft2", self, norm, out, COMPLEX)
    return delivered("ifft2", fourier.several_complex(self, s, dim, norm, False), out)


@function(space="fft", method=False, autocast="float32")
def rfft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the two-dimensional Fourier transform of a real signal, along the last two dimensions by default.

    Only the non-negative frequencies of the last one are kept. The arguments are those of `rfftn`.
    """
    check_arguments("rfft2", self, norm, out, COMPLEX)
    return delivered("rfft2", fourier.several_to_halved(self, s, dim, norm), out)


@function(space="fft", method=False, autocast="float32")
def irfft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `rfft2`: compute the real two-dimensional signal from half of its spectrum.

    The arguments are those of `irfftn`; give `s` if the last size of the signal was odd.
    """
    check_arguments("irfft2", self, norm, out, REAL)
    return delivered("irfft2", fourier.several_to_real(self, s, dim, norm), out)


@function(space="fft", method=False)
def hfft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Compute the real two-dimensional Fourier transform of a signal with Hermitian symmetry, given by its half.

    The dimensions are the last two by default. The arguments are those of `hfftn`.
    """
    check_arguments("hfft2", self, norm, out, REAL)
    return delivered("hfft2", fourier.several_hermitian(self, s, dim, norm), out)


@function(space="fft", method=False)
def ihfft2(self: Array, s: Any = None, dim: Any = LAST_TWO, norm: str | None = None, *, out: Any = None) -> Array:
    """Invert `hfft2`: compute half of the two-dimensional inverse transform of a real signal.

    The dimensions are the last two by default. The arguments are those of `ihfftn`.
    """
    check_arguments("ihfft2", self, norm, out, COMPLEX)
    return delivered("ihfft2", fourier.several_from_hermitian(self, s, dim, norm), out)


# ------------------------------------------------------------------ shifts and frequencies


def shift_dims(self: Tensor, dim: Any) -> tuple[int, ...]:
    """The dimensions to shift: those named, or all."""
    if dim is None:
        return tuple(range(self._array.ndim))
    return tuple([normal_dim(d, self._array.ndim) for d in fourier.as_tuple(dim)])


@function(space="fft", method=False)
def fftshift(self: Array, dim: Any = None) -> Array:
    """Move the zero frequency to the middle: swap the halves along the dimensions `dim`, all by default.

    The negative frequencies then come before the positive ones.
    """
    dims = shift_dims(self, dim)
    return roll_dims(self, tuple([self._array.shape[d] // 2 for d in dims]), dims)


@function(space="fft", method=False)
def ifftshift(self: Array, dim: Any = None) -> Array:
    """Undo `fftshift`: move the zero frequency back to the front of the dimensions `dim`, all by default.

    It differs from `fftshift` for odd sizes only.
    """
    dims = shift_dims(self, dim)
    return roll_dims(self, tuple([(self._array.shape[d] + 1) // 2 for d in dims]), dims)


def frequencies_dtype(name: str, wanted: Any, out: Tensor | None) -> dtype:
    """The dtype of frequencies: as asked, or that of `out`, or the default."""
    target = as_dtype(name, wanted) or (defaults.dtype if out is None else out.dtype)
    if target.category < 2:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if target.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{target.scalar_type}'")
    return target


def scale(n: int, d: float) -> float:
    """The step between frequencies; infinite for a window of no length."""
    return 1.0 / (n * d) if n * d else float("inf")


def frequencies(count: int, n: int, dtype: np.dtype[Any], step: float) -> np.ndarray[Any, Any]:
    """So many frequencies of n points; torch counts in the dtype asked for and rounds the step to it."""
    whole = np.arange(count)
    whole[(n + 1) // 2 :] -= n
    array: np.ndarray[Any, Any] = whole.astype(dtype) * dtype.type(step)
    return array


@function(raw=True, explained=True, space="fft", method=False)
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of `fft`, for a signal of `n` samples with the distance `d`.

    They are `[0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (d * n)`: the positive half, then the negative one.
    """
    target = frequencies_dtype("fftfreq", dtype, out)
    check_storage((n,), target.itemsize)
    values = made_on(device, in_torch_words(frequencies), n, n, target.numpy, scale(n, d))
    return given("fft_fftfreq", out, values, None, requires_grad)


@function(raw=True, explained=True, space="fft", method=False)
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return the frequencies of the elements of `rfft`, for a signal of `n` samples with the distance `d`.

    They are `[0, 1, ..., n // 2] / (d * n)`.
    """
    target = frequencies_dtype("rfftfreq", dtype, out)
    count = (n // 2 if n >= 0 else -(-n // 2)) + 1
    check_storage((count,), target.itemsize)
    values = made_on(device, in_torch_words(frequencies), count, 2 * n + 2, target.numpy, scale(n, d))
    return given("fft_rfftfreq", out, values, None, requires_grad)
