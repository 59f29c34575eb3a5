"""Sliding blocks of images as columns, and back: unfold and fold."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.sizes import check_storage
from pullback._op.define import Array, function, op
from pullback._runtime.messages import dim_out_of_range, shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv import columns as kernels
from pullback.ops.nn.pool.checks import numbers
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ what torch demands


def pairs(**given: Any) -> list[tuple[int, ...]]:
    """Every argument as two numbers."""
    out = []
    for name, value in given.items():
        sizes = numbers(value)
        sizes = sizes * 2 if isinstance(value, int) else sizes
        if len(sizes) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(sizes)}")
        out.append(sizes)
    return out


def check_blocks(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    """Blocks have a size, and there is something between them."""
    for what, short, values, low in (
        ("kernel size", "kernel", kernel_size, 1),
        ("dilation", "dilation", dilation, 1),
        ("padding", "pad", padding, 0),
        ("stride", "stride", stride, 1),
    ):
        if min(values) < low:
            wanted = "greater than zero" if low else "non-negative"
            raise RuntimeError(
                f"{what} should be {wanted}, but got {short}_height: {values[0]} {short}_width: {values[1]}"
            )


def check_unfold(self: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    """Torch's demands on images to cut into blocks."""
    check_blocks(kernel_size, dilation, padding, stride)
    if self.ndim < 3:
        raise IndexError(dim_out_of_range(self.ndim, self.ndim))
    if self.ndim > 4 or 0 in self.shape[self.ndim - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape_text(self.shape)}"
        )
    counts = kernels.window_counts(self.shape[-2:], kernel_size, stride, padding, dilation)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {self.shape[-2:]}, kernel_size={kernel_size}, dilation={dilation}, "
            f"padding={padding}, calculated shape of the array of sliding blocks as {counts}, but its components must "
            "be at least one."
        )
    refuse("im2col_out_cpu", self, "iu")


def check_fold(self: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    """Torch's demands on blocks to make images of."""
    check_blocks(kernel_size, dilation, padding, stride)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape_text(self.shape)}"
        )
    height, width = self.shape[-2:]
    if height % (kernel_size[0] * kernel_size[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{height} and kernel_size={kernel_size}."
        )
    rows, columns = kernels.window_counts(output_size, kernel_size, stride, padding, dilation)
    if width != rows * columns or rows < 1 or columns < 1:
        raise RuntimeError(
            f"Given output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, "
            f"stride={stride}, expected size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{rows} * {columns} = {rows * columns}, but got input.size(2)={width}."
        )
    refuse("col2im_out_cpu", self, "iu")


# ------------------------------------------------------------------ the ops


@op(
    vmap="samples",
    space=None,
    node="Im2ColBackward0",
    self=lambda grad, self_sym_argsize_minus_2, self_sym_argsize_minus_1, kernel_size, dilation, padding, stride: (
        col2im(grad, (self_sym_argsize_minus_2, self_sym_argsize_minus_1), kernel_size, dilation, padding, stride)
    ),
    result=lambda self_t, kernel_size, dilation, padding, stride: blocks_of(
        self_t, kernel_size, dilation, padding, stride
    ),
)
def im2col(
    self: Array,
    kernel_size: Any,
    dilation: Any,
    padding: Any,
    stride: Any,
    self_sym_argsize_minus_2: int,
    self_sym_argsize_minus_1: int,
) -> Array:
    """Each block as a column; the last two arguments are the size of the images, for the way back."""
    check_unfold(self, kernel_size, dilation, padding, stride)
    if not self.size:
        counts = kernels.window_counts(self.shape[-2:], kernel_size, stride, padding, dilation)
        shape = (0, self.shape[1] * prod(kernel_size), prod(counts))
        check_storage(shape[1:], 1)
        return np.empty(shape, self.dtype)
    batch = self if self.ndim == 4 else self[None]
    columns = kernels.blocks(batch, kernel_size, stride, padding, dilation)
    if np.may_share_memory(columns, self):  # windows of one element lie as the images do
        columns = columns.copy()
    return columns if self.ndim == 4 else columns[0]


def blocks_of(self: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """im2col with the size of the images filled in."""
    height, width = self.shape[-2:] if len(self.shape) > 2 else (0, 0)
    return im2col(self, kernel_size, dilation, padding, stride, height, width)


@op(
    vmap="samples",
    space=None,
    node="Col2ImBackward0",
    self=lambda grad, kernel_size, dilation, padding, stride: blocks_of(grad, kernel_size, dilation, padding, stride),
    result=lambda self_t, output_size, kernel_size, dilation, padding, stride: col2im(
        self_t, output_size, kernel_size, dilation, padding, stride
    ),
)
def col2im(self: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Images with each column added where its block lies."""
    check_fold(self, output_size, kernel_size, dilation, padding, stride)
    if not self.size:
        return np.zeros((0, self.shape[1] // prod(kernel_size), *output_size), self.dtype)
    batch = self if self.ndim == 3 else self[None]
    images = kernels.images_of_blocks(batch, output_size, kernel_size, stride, padding, dilation)
    return images if self.ndim == 3 else images[0]


@function(raw=True, space="nn.functional", method=False)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Extract sliding blocks from images, and lay each out as a column.

    `input` is `(N, C, H, W)` or `(C, H, W)`; `kernel_size`, `dilation`, `padding` and `stride` are ints or pairs, as in
    a convolution. Returns `(N, C * kH * kW, L)`, where `L` is the number of blocks.
    """
    kernel, spread, pads, steps = pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    return blocks_of(input, kernel, spread, pads, steps)


@function(raw=True, space="nn.functional", method=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Put columns of sliding blocks back together into images; where blocks overlap they are added.

    `input` is `(N, C * kH * kW, L)`, as `unfold` returns it, and `output_size` is `(H, W)`; the other arguments are
    those of `unfold`. Returns `(N, C, H, W)`.
    """
    sizes, kernel, spread, pads, steps = pairs(
        output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    return col2im(input, sizes, kernel, spread, pads, steps)
