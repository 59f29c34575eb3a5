"""Channels and pixels change places: pixel_shuffle, pixel_unshuffle and channel_shuffle."""

from __future__ import annotations

from operator import index
from typing import Any

from pullback._arrays.sizes import LARGEST
from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, linear, not_implemented, op
from pullback._runtime.messages import shape_text
from pullback.kernels.numpy.conv.images import laid_out_as


@op(
    vmap="leading",
    space="nn.functional",
    method=False,
    out=False,
    self=lambda grad, upscale_factor: pixel_unshuffle(grad, upscale_factor),
    result=linear,
)
def pixel_shuffle(self: Array, upscale_factor: int) -> Array:
    """Rearrange channels into pixels, which makes images larger.

    `(..., C * r ** 2, H, W)` becomes `(..., C, H * r, W * r)`, where `r` is `upscale_factor`.
    """
    r = upscale_factor
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if r * r > LARGEST:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={r}")
    *lead, c, h, w = self.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    parts = self.reshape(*lead, c // (r * r), r, r, h, w)
    n = len(lead)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return laid_out_as(parts.transpose(order).copy().reshape(*lead, c // (r * r), h * r, w * r), self)


@op(
    vmap="leading",
    space="nn.functional",
    method=False,
    out=False,
    self=lambda grad, downscale_factor: pixel_shuffle(grad, downscale_factor),
    result=linear,
)
def pixel_unshuffle(self: Array, downscale_factor: int) -> Array:
    """Rearrange pixels into channels, which makes images smaller: the inverse of `pixel_shuffle`.

    `(..., C, H * r, W * r)` becomes `(..., C * r ** 2, H, W)`, where `r` is `downscale_factor`.
    """
    r = index(downscale_factor)
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = self.shape
    for what, dim, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({dim})={size} is "
                f"not divisible by {r}"
            )
    if not self.size:
        return self.copy()  # torch leaves the sizes as they are
    parts = self.reshape(*lead, c, h // r, r, w // r, r)
    n = len(lead)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    out = parts.transpose(order).copy().reshape(*lead, c * r * r, h // r, w // r)
    return laid_out_as(out, self)


def shuffled(self: Any, groups: int) -> Any:
    """The channels dealt out again: the first of each group, then the second of each, and so on."""
    if self.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {shape_text(self.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *rest = self.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    parts = self.reshape(n, groups, c // groups, *rest)
    return laid_out_as(parts.swapaxes(1, 2).copy().reshape(self.shape), self)


@op(
    vmap="samples",
    space="nn.functional",
    method=False,
    out=False,
    self=lambda grad, groups: channel_shuffle(grad, grad.shape[1] // groups),
    result=linear,
)
def channel_shuffle(self: Array, groups: int) -> Array:
    """Interleave groups of channels, so that each new group has some of every group before.

    `input` is `(N, C, ...)`; its channels are seen as `(groups, C / groups)`, transposed, and flattened again.
    """
    return shuffled(self, groups)


@op(vmap="samples", space="nn.functional", method=False, out=False, self=not_implemented)
def native_channel_shuffle(self: Array, groups: int) -> Array:
    """Interleave groups of channels as `channel_shuffle` does, but without a derivative."""
    return shuffled(self, groups)


for call in (pixel_shuffle, pixel_unshuffle, channel_shuffle, native_channel_shuffle):
    publish(call.__name__, call, TORCH)
