"""Padding: a constant, a mirror image, the edge, or the other side around a tensor."""

from __future__ import annotations

from functools import lru_cache
from types import NoneType
from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.sizes import LARGEST, check_storage
from pullback._dtype import FROM_NUMPY
from pullback._op.apply import cast
from pullback._op.define import Array, Number, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.image import pad as kernels
from pullback.ops.create.copy import copy_
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.shape.slicing import slice_
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ a constant


def check_constant(self: Array, pad: Any) -> None:
    """Torch's demands on the widths of a constant padding."""
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * self.ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {self.ndim} dimensions."
        )
    for nr in range(len(pad) // 2):
        if self.shape[-1 - nr] + min(pad[2 * nr], 0) + min(pad[2 * nr + 1], 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if self.shape[-1 - nr] + pad[2 * nr] + pad[2 * nr + 1] > LARGEST:
            raise RuntimeError(
                f"The input size {self.shape[-1 - nr]}, plus negative padding {pad[2 * nr]} and {pad[2 * nr + 1]} "
                "resulted in a negative output size, which is invalid. Check dimension "
                f"{self.ndim - 1 - nr} of your input."
            )


@op(
    vmap="leading",
    packed="moved",
    method=False,
    out=False,
    self=lambda grad, pad: constant_pad_nd(grad, [-p for p in pad], 0),
    result=lambda self_t, pad: constant_pad_nd(self_t, pad, 0),
)
def constant_pad_nd(self: Array, pad: Any, value: Number = 0) -> Array:
    """Pad a tensor with a constant.

    `pad` holds two widths for each dimension, beginning with the last; negative ones cut off.
    """
    check_constant(self, pad)
    if max(pad, default=0) <= 0:
        value = 0  # nobody asks whether it fits
    elif value and isinstance(value, (int, float, complex)):
        value = exact_number(value, FROM_NUMPY[self.dtype])
    return laid_out_as(kernels.constant(self, pad, cast(value, self.dtype)), self)


# ------------------------------------------------------------------ a mirror image, or the edge


@lru_cache(256)
def check_edge_sizes(name: str, shape: tuple[int, ...], padding: tuple[int, ...]) -> None:
    """Torch's demands on the shape of a tensor padded with itself."""
    ndim = len(padding) // 2
    if 0 in shape[len(shape) - ndim - 1 :] or len(shape) not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape_text(shape)}"
        )
    for nr in range(ndim if name == "reflection" else 0):
        left, right, size = padding[2 * nr], padding[2 * nr + 1], shape[-1 - nr]
        if left >= size or right >= size:
            raise RuntimeError(
                f"Argument #{4 + 2 * nr}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({left}, {right}) at dimension {len(shape) - 1 - nr} of input {shape_text(shape)}"
            )
    sizes = [n + padding[2 * nr] + padding[2 * nr + 1] for nr, n in enumerate(shape[: -ndim - 1 : -1])][::-1]
    if all(n < 1 for n in sizes):
        letters = "DHW"[3 - ndim :]
        given = " ".join(f"{c}: {n}" for c, n in zip(letters, shape[-ndim:], strict=True))
        found = " ".join(f"{c}: {n}" for c, n in zip(letters, sizes, strict=True))
        raise RuntimeError(f"input ({given}) is too small. Calculated output {found}")
    made = (*shape[: len(shape) - ndim], *sizes)
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {shape_text(made)}")
    check_storage(made, 1)


def check_edges(name: str, self: Any, padding: Any) -> None:
    """Torch's demands on a tensor padded with itself."""
    check_edge_sizes(name, self.shape, tuple(padding))
    if self.dtype.kind == "b":
        refuse(f"{name}_pad{len(padding) // 2}d", self, "b")


def edge_padding(name: str, mode: str, ndim: int, autocast: str = "float32") -> tuple[Any, Any]:
    """The op that pads the last `ndim` dimensions with what the tensor holds, and the op of its derivative."""

    def pad_with_itself(self: Array, padding: Any) -> Array:
        check_edges(name, self, padding)
        out = kernels.from_edges(self, padding, mode)
        return out if self.flags.c_contiguous and out.flags.c_contiguous else laid_out_as(out, self)

    def pad_with_itself_backward(grad_output: Array, self: Array, padding: Any) -> Array:
        return kernels.from_edges_backward(grad_output, self.shape, padding, mode)

    public, node = f"{name}_pad{ndim}d", f"{name.title()}Pad{ndim}DBackward"
    pad_with_itself.__name__ = public
    pad_with_itself.__doc__ = f"Pad the last dimensions ({ndim}) in the mode {mode}."
    pad_with_itself_backward.__name__ = f"{public}_backward"
    pad_with_itself_backward.__doc__ = f"The gradient of {public}."
    forward = op(
        vmap="samples",
        space=None,
        node=f"{node}0",
        autocast=autocast,
        self=lambda grad, self, padding: edge_ops(mode, ndim)[1](grad, self, padding),
        result=lambda self_t, padding: edge_ops(mode, ndim)[0](self_t, padding),
    )(pad_with_itself)
    backward = op(
        vmap="samples",
        space=None,
        node=f"{node}Backward0",
        grad_output=lambda grad, padding: edge_ops(mode, ndim)[0](grad, padding),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self, padding: edge_ops(mode, ndim)[1](grad_output_t, self, padding),
    )(pad_with_itself_backward)
    return forward, backward


reflection_pad1d, reflection_pad1d_backward = edge_padding("reflection", "reflect", 1)
reflection_pad2d, reflection_pad2d_backward = edge_padding("reflection", "reflect", 2)
reflection_pad3d, reflection_pad3d_backward = edge_padding("reflection", "reflect", 3, autocast="")
replication_pad1d, replication_pad1d_backward = edge_padding("replication", "replicate", 1)
replication_pad2d, replication_pad2d_backward = edge_padding("replication", "replicate", 2)
replication_pad3d, replication_pad3d_backward = edge_padding("replication", "replicate", 3)


def edge_ops(mode: str, ndim: int) -> tuple[Any, Any]:
    """The op of a mode and number of dimensions, and that of its derivative."""
    if mode == "reflect" and ndim == 2:
        return reflection_pad2d, reflection_pad2d_backward
    if mode == "reflect":
        return (
            (reflection_pad1d, reflection_pad1d_backward),
            (reflection_pad2d, reflection_pad2d_backward),
            (reflection_pad3d, reflection_pad3d_backward),
        )[ndim - 1]
    return (
        (replication_pad1d, replication_pad1d_backward),
        (replication_pad2d, replication_pad2d_backward),
        (replication_pad3d, replication_pad3d_backward),
    )[ndim - 1]


# ------------------------------------------------------------------ the other side


def pad_circular(self: Tensor, padding: Any) -> Tensor:
    """What lies at one end goes around the other, dimension by dimension."""
    sizes, ndim = list(self.shape), self.ndim
    for nr in range(len(padding) // 2):
        left, right, size = padding[2 * nr], padding[2 * nr + 1], self.shape[-1 - nr]
        if left > size or right > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if left + right + size < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        sizes[-1 - nr] = left + right + size
    out = self.new_empty(sizes)  # type: ignore[attr-defined]
    target, source = out, self
    for nr in range(len(padding) // 2):
        left, right, dim = padding[2 * nr], padding[2 * nr + 1], ndim - 1 - nr
        target = slice_(target, dim, max(left, 0), sizes[dim] - max(right, 0))
        source = slice_(source, dim, max(-left, 0), self.shape[dim] - max(-right, 0))
    copy_(target, source)
    for nr in range(len(padding) // 2):
        left, right, dim = padding[2 * nr], padding[2 * nr + 1], ndim - 1 - nr
        before, after = max(left, 0), max(right, 0)
        if left > 0:
            copy_(slice_(out, dim, 0, left), slice_(out, dim, sizes[dim] - left - after, sizes[dim] - after))
        if right > 0:
            copy_(slice_(out, dim, sizes[dim] - right, sizes[dim]), slice_(out, dim, before, before + right))
    return out


# ------------------------------------------------------------------ all of them


@function(space="nn.functional", method=False)
def pad(self: Array, pad: Any, mode: str = "constant", value: float | None = None) -> Array:
    """Pad the last dimensions with a constant, or with the tensor's own elements.

    `pad` holds two widths for each dimension, beginning with the last: `(left, right, top, bottom, ...)`; negative ones
    cut off. `mode` is 'constant' (filled with `value`, 0 unless given), 'reflect' (mirrored at the edge element),
    'replicate' (the edge element repeated) or 'circular' (wrapped around from the other end). Modes other than
    'constant' pad the last 1, 2 or 3 dimensions of inputs with a channel and perhaps a batch dimension in front.
    """
    if not isinstance(pad, (tuple, list)):
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}")
    if isinstance(value, complex) or not isinstance(value, (int, float, np.generic, Tensor, NoneType)):
        raise TypeError(f"pad(): argument 'value' (position 4) must be float, not {type(value).__name__}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    dims = self.ndim
    if len(pad) > 2 * dims:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {self.ndim}"
        )
    if mode == "constant":
        if isinstance(value, int):
            value = float(value)  # as which torch takes it here, and not in constant_pad_nd
        return constant_pad_nd(self, tuple(pad), 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    ndim = len(pad) // 2
    if not 1 <= ndim <= 3 or not ndim < dims < ndim + 3:
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {self.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "circular":
        return pad_circular(self, pad)
    return edge_ops(mode, ndim)[0](self, tuple(pad))
