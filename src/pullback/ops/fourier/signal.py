"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.kinds import made_on
from pullback._op.define import Array, function
from pullback._runtime.messages import dim_out_of_range, shape_text
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, fresh
from pullback.ops.create.copy import copy_
from pullback.ops.fourier.transforms import fft_c2c, fft_c2r, fft_r2c
from pullback.ops.nn.image.pad import constant_pad_nd, pad
from pullback.ops.pointwise.arithmetic import div, mul
from pullback.ops.pointwise.power import pow
from pullback.ops.shape.complex_views import view_as_complex, view_as_real
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.reshape import expand, squeeze_dim, unsqueeze, view_
from pullback.ops.shape.slicing import as_strided_view, slice_, unfold_backward

WARNINGS = {
    "stft window": "A window was not provided. A rectangular window will be applied,which is known to cause spectral "
    "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
    "leakage.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
    "device=<device>)`.",
    "real stft": "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
    "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
    "torch.view_as_real on the complex output to recover the old return format.",
    "istft window": "A window was not provided. A rectangular window will be applied.Please provide the same window "
    "used by stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly "
    "set `window=torch.ones(n_fft, device=<device>)`.",
    "istft length": "The length of signal is shorter than the length parameter. Result is being padded with zeros in "
    "the tail. Please check your center and hop_length settings.",
}


def type_text(self: Tensor) -> str:
    """A tensor as torch's errors of these functions write it."""
    kind = self.dtype.scalar_type
    return f"CPU{kind}Type" if self.dtype.is_complex else f"torch.{kind}Tensor"


def described(name: str, self: Tensor, window: Tensor | None, /, **arguments: Any) -> str:
    """The call, as the beginning of an error."""
    text = [f"{name}({type_text(self)}{shape_text(self._array.shape)}"]
    for key, value in arguments.items():
        if key == "window":
            value = None if window is None else f"{type_text(window)}{{{shape_text(window._array.shape)}}}"
        text.append(f"{key}={int(value) if isinstance(value, bool) else value}")
    return ", ".join(text) + ")"


# ------------------------------------------------------------------ stft


@function(numpy_names=False, autocast="float32")
def stft(
    self: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:
    """Compute the short-time Fourier transform: the spectra of overlapping windows of a signal.

    `input` is `(L,)` or a batch `(B, L)`. Frames of `n_fft` samples begin every `hop_length` (`n_fft // 4` by default).
    `window` `(win_length,)` weighs each frame, centred in it if shorter; all ones by default.
    With `center` the signal is padded by `n_fft // 2` as `pad_mode` says, so that frame t is centred on
    `t * hop_length`.
    The result is `(B, N, T)`, N being `n_fft`, or `n_fft // 2 + 1` if `onesided` (the default for real signals).
    `normalized` divides by `sqrt(n_fft)`. `return_complex` must be given for real signals; False returns pairs instead.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if center:
        self = padded(self, n_fft // 2, pad_mode)
    if window is None:
        warn_once(WARNINGS["stft window"])
    hop = n_fft >> 2 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    complex_values = self.is_complex() or (window is not None and window.is_complex())
    if not (complex_values if return_complex is None else return_complex):
        if return_complex is None:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        warn_once(WARNINGS["real stft"])
    check_stft(
        self, window, n_fft=n_fft, hop_length=hop, win_length=length, window=None, normalized=normalized,
        onesided=onesided, return_complex=complex_values if return_complex is None else return_complex,
        align_to_window=align_to_window,
    )  # fmt: skip
    signal = unsqueeze(self, 0) if self.ndim == 1 else self
    frames = windows_of(signal, n_fft, hop, length, bool(align_to_window))
    window = centered_window(window, length, n_fft, self)
    if window is not None:
        frames = mul(frames, window)
    if is_half(frames._array.dtype):
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {frames.dtype.scalar_type}")
    out = transformed(frames, normalized, onesided)
    out = out.transpose_(1, 2)
    if self.ndim == 1:
        out = out.squeeze_(0)
    return out if return_complex is None or return_complex else view_as_real(out)


def padded(self: Tensor, by: int, mode: str) -> Tensor:
    """The signal with something at both ends, so that windows are centered on their samples."""
    ndim = self._array.ndim
    out = pad(view_(self, (1,) * (3 - ndim) + self._array.shape), [by, by], mode)
    return view_(out, out._array.shape[-ndim:])


def check_stft(self: Tensor, window: Tensor | None, /, **arguments: Any) -> None:
    """Torch's demands on the arguments of stft."""
    n_fft, hop, length = arguments["n_fft"], arguments["hop_length"], arguments["win_length"]
    problem = None
    size = self._array.shape[-1] if self._array.ndim else 0
    if self.dtype.category < 2:
        problem = "expected a tensor of floating point or complex values"
    elif self._array.ndim not in (1, 2):
        problem = "expected a 1D or 2D tensor"
    elif not 0 < n_fft <= size:
        problem = f"expected 0 < n_fft < {size}, but got n_fft={n_fft}"
    elif hop <= 0:
        problem = f"expected hop_length > 0, but got hop_length={hop}"
    elif not 0 < length <= n_fft:
        problem = f"expected 0 < win_length <= n_fft, but got win_length={length}"
    elif window is not None and window._array.shape != (length,):
        problem = (
            f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{shape_text(window._array.shape)}"
        )
    if problem:
        raise RuntimeError(f"{described('stft', self, window, **arguments)} : {problem}")


def windows_of(signal: Tensor, n_fft: int, hop: int, length: int, align: bool) -> Tensor:
    """The windows as a view of the signal: batch, frames, samples of a frame."""
    batch, size = signal._array.shape
    if align and length < n_fft:
        # Frames begin where their window does, so the signal must reach to both sides.
        left = (n_fft - length) // 2
        signal = constant_pad_nd(signal, (left, n_fft - length - left))
        size = signal._array.shape[1]
    by_batch, by_sample = signal.stride()
    count = 1 + (size - n_fft) // hop
    return as_strided_view(signal, (batch, count, n_fft), (by_batch, hop * by_sample, by_sample))


def centered_window(window: Tensor | None, length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window with zeros at both sides, as long as the transform."""
    if length == n_fft:
        return window
    left = (n_fft - length) // 2
    out = fresh(made_on(like.device, np.zeros, n_fft, (like if window is None else window)._array.dtype))
    if window is None:
        out._array[left : left + length] = 1
        return out
    copy_(slice_(out, 0, left, left + length), window)
    return out


def transformed(frames: Tensor, normalized: bool, onesided: bool | None) -> Tensor:
    """The transform of every frame."""
    mode = 1 if normalized else 0
    if not frames.is_complex():
        return fft_r2c(frames, (2,), mode, True if onesided is None else onesided)
    if onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return fft_c2c(frames, (2,), mode, True)


# ------------------------------------------------------------------ istft


@function()
def istft(
    self: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Array:
    """Invert `stft`: compute a signal from its short-time Fourier transform by weighted overlap-add.

    `input` is complex, `(N, T)` or a batch `(B, N, T)`; the result is `(L,)` or `(B, L)`.
    The arguments must be those of `stft`. The frames are transformed back, weighted by `window`, added, and divided by
    the sum of the squares of the windows, which must nowhere be zero.
    `length` is that of the signal; without it, samples beyond the last frame are missing.
    `return_complex` is for complex signals, whose transforms are not `onesided`.
    """
    if window is None:
        warn_once(WARNINGS["istft window"])
    hop = n_fft >> 2 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if not self.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    call = described(
        "istft", self, window, n_fft=n_fft, hop_length=hop, win_length=size, window=None, center=center,
        normalized=normalized, onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip
    half = check_istft(self, window, call, n_fft, hop, size, onesided)
    weights = window if window is not None else fresh(made_on(self.device, np.ones, size, self._array.real.dtype))
    if size != n_fft:
        left = (n_fft - size) // 2
        weights = constant_pad_nd(weights, (left, n_fft - size - left))
    parts = view_as_real(self)
    if self.ndim == 2:
        parts = unsqueeze(parts, 0)
    spectra = view_as_complex(transpose(parts, 1, 2))
    frames = back_transformed(spectra, n_fft, 1 if normalized else 2, half, return_complex, window)
    total = n_fft + hop * (frames._array.shape[1] - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else (-(n_fft // 2) if center else total)
    out = mul(frames, view_(weights, (1, 1, n_fft)))
    out = slice_(unfold_backward(out, (out._array.shape[0], total), 1, n_fft, hop), 1, start, end)
    squares = expand(pow(weights, 2), (1, frames._array.shape[1], n_fft))
    envelope = slice_(unfold_backward(squares, (1, total), 1, n_fft, hop), 1, start, end)
    if np.abs(whole(envelope)).min() < 1e-11:
        raise RuntimeError(f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    out = div(out, envelope)
    if self.ndim == 2:
        out = squeeze_dim(out, 0)
    if end > total:
        warn_once(WARNINGS["istft length"])
        out = constant_pad_nd(out, (0, end - total))
    return out


def whole(tensor: Tensor) -> Any:
    """The elements of a tensor, inside vmap of all its entries."""
    array: Any = tensor._array
    while isinstance(inner := getattr(array, "value", None), Tensor):
        array = inner._array
    return array


def check_istft(
    self: Tensor, window: Tensor | None, call: str, n_fft: int, hop: int, length: int, onesided: bool | None
) -> bool:
    """Torch's demands on the arguments of istft; whether the input is only half of each transform."""
    ndim = self._array.ndim + 1
    problem = None
    if not self._array.size:
        problem = "input tensor cannot be empty."
    elif ndim not in (3, 4):
        problem = f"expected a tensor with 3 or 4 dimensions, but got {ndim}"
    if ndim < 3:
        raise IndexError(dim_out_of_range(-3, 2) if ndim == 2 else dim_out_of_range(-2, 1))
    if problem:
        raise RuntimeError(f"{call} : {problem}")
    found = self._array.shape[-2]
    half = found != n_fft if onesided is None else onesided
    wanted, how = (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True") if half else (n_fft, "n_fft when onesided=False")
    if found != wanted:
        problem = (
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {how}, but got {found}"
        )
    elif not 0 < hop <= length:
        problem = "expected 0 < hop_length <= win_length"
    elif not 0 < length <= n_fft:
        problem = "expected 0 < win_length <= n_fft"
    elif window is not None and window._array.shape != (length,):
        problem = "Invalid window shape. window has to be 1D and length of `win_length`"
    if problem:
        raise RuntimeError(f"{call} : {problem}")
    return half


def back_transformed(
    spectra: Tensor, n_fft: int, mode: int, half: bool, return_complex: bool, window: Tensor | None
) -> Tensor:
    """The samples of every frame."""
    if return_complex:
        if half:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return fft_c2c(spectra, (2,), mode, False)
    if window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if not half:
        spectra = slice_(spectra, -1, 0, n_fft // 2 + 1)
    return fft_c2r(spectra, (2,), mode, n_fft)
