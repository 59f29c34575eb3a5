"""Padding with a constant: `constant_pad_nd`, which with negative amounts also cuts away."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY, wrap_number
from pullback._op.define import Array, Number, function, op
from pullback._tensor import C_NAMES
from pullback.ops.shape import ints


def check_pad(self: Array, pad: tuple[int, ...], value: Number) -> None:
    """Torch's demands on the amounts."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)}while the input has {self.ndim}dimensions."
        )
    for size, (before, after) in zip(self.shape, amounts(self.ndim, pad)):
        if size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    if isinstance(value, complex) and self.dtype.kind != "c" and any(n > 0 for n in pad):
        kind = C_NAMES[FROM_NUMPY[self.dtype].scalar_type]
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def amounts(ndim: int, pad: tuple[int, ...]) -> list[tuple[int, int]]:
    """How much to add before and after each dimension; torch lists them from the last dimension on."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


@op(
    space=None,
    name="constant_pad_nd",
    check=check_pad,
    self=lambda grad, pad: padded_with(grad, tuple([-n for n in pad])),
    result=lambda self_t, pad: padded_with(self_t, pad),
)
def padded_with(self: Array, pad: tuple[int, ...], value: Any = 0) -> Array:
    """The elements with `value` around them."""
    pairs = amounts(self.ndim, pad)
    kept = tuple([slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(self.shape, pairs)])
    inner = self[kept]
    if max(pad, default=0) <= 0:
        return inner.copy()
    pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    shape = tuple([n + before + after for n, (before, after) in zip(inner.shape, pairs)])
    if self.dtype.kind in "iu" and isinstance(value, int):
        value = wrap_number(value, FROM_NUMPY[self.dtype])
    # New memory of zeros is free where the system hands it out zeroed.
    out = np.zeros(shape, self.dtype) if not value else np.full(shape, value, self.dtype)
    out[tuple([slice(before, before + n) for n, (before, _) in zip(inner.shape, pairs)])] = inner
    return out


@function(method=False, out=True)
def constant_pad_nd(self: Array, pad: Any, value: Any = 0) -> Array:
    """Pad with `value` by the amounts `pad`, before and after, from the last dimension on; negative ones cut away."""
    return padded_with(self, ints("constant_pad_nd", "pad", (pad,)), value.item() if hasattr(value, "item") else value)
