"""Convolutions that read their input at places of their own, on arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Numbers(NamedTuple):
    """How a convolution moves over its input."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    offset_groups: int


class Reading:
    """The places an input is read at, for each batch, group of offsets, point of the kernel and output."""

    def __init__(self, images: Array, kernel: tuple[int, int], offset: Array, numbers: Numbers) -> None:
        self.images = images
        batch, channels, self.height, self.width = images.shape
        self.grouped = images.reshape(batch, numbers.offset_groups, channels // numbers.offset_groups, -1)
        rows, columns = offset.shape[2:]
        moved = offset.reshape(batch, numbers.offset_groups, *kernel, 2, rows, columns)
        y = moved[..., 0, :, :] + along(kernel[0], rows, numbers, 0)[:, None, :, None]
        x = moved[..., 1, :, :] + along(kernel[1], columns, numbers, 1)[None, :, None, :]
        self.inside = (y > -1) & (y < self.height) & (x > -1) & (x < self.width)
        self.top, self.left = np.floor(y), np.floor(x)
        self.down, self.across = y - self.top, x - self.left

    def corners(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """The four elements around each place: where they lie, how much each counts, and how that changes if the place
        moves down or to the right."""
        for bottom in (0, 1):
            for right in (0, 1):
                row, column = self.top + bottom, self.left + right
                there = self.inside & (row >= 0) & (row < self.height) & (column >= 0) & (column < self.width)
                at = np.where(there, row * self.width + column, 0).astype(np.int64)
                by_row = self.down if bottom else 1 - self.down
                by_column = self.across if right else 1 - self.across
                sign_down, sign_across = 2 * bottom - 1, 2 * right - 1
                yield at, by_row * by_column * there, sign_down * by_column * there, sign_across * by_row * there

    def elements(self, at: Array) -> Array:
        """The elements at places, of all channels of a group."""
        flat = at.reshape(*at.shape[:2], 1, -1)
        return np.take_along_axis(self.grouped, flat, 3).reshape(*self.grouped.shape[:3], *at.shape[2:])

    def values(self) -> Array:
        """What is read, between the elements: batch, group, channel, the two axes of the kernel, those of outputs."""
        return sum(self.elements(at) * part[:, :, None] for at, part, _, _ in self.corners())  # type: ignore[return-value]


def along(points: int, outputs: int, numbers: Numbers, axis: int) -> Array:
    """Where each point of a kernel lies for each output, along one axis."""
    starts = np.arange(outputs) * numbers.stride[axis] - numbers.padding[axis]
    return starts + np.arange(points)[:, None] * numbers.dilation[axis]


def masked(values: Array, mask: Array | None) -> Array:
    """What is read, times the mask."""
    if mask is None:
        return values
    batch, groups, _, *rest = values.shape
    return values * mask.reshape(batch, groups, 1, *rest)


def columns_of(values: Array, groups: int) -> Array:
    """What is read as matrices: batch, group of weights, channels and points of the kernel, outputs."""
    return values.reshape(values.shape[0], groups, -1, values.shape[-2] * values.shape[-1])


def convolved(images: Array, weight: Array, offset: Array, mask: Array | None, bias: Array, numbers: Numbers) -> Array:
    """The convolution."""
    read = Reading(images, weight.shape[2:], offset, numbers)
    columns = columns_of(masked(read.values(), mask), numbers.groups)
    out = weight.reshape(numbers.groups, weight.shape[0] // numbers.groups, -1) @ columns
    return out.reshape(len(images), weight.shape[0], *offset.shape[2:]) + bias[:, None, None]


def convolved_backward(
    grad: Array, images: Array, weight: Array, offset: Array, mask: Array | None, numbers: Numbers
) -> tuple[Array, Array, Array, Array | None, Array]:
    """The gradients of images, weight, offset, mask and bias."""
    read = Reading(images, weight.shape[2:], offset, numbers)
    values = read.values()
    grads = grad.reshape(len(grad), numbers.groups, weight.shape[0] // numbers.groups, -1)
    columns = columns_of(masked(values, mask), numbers.groups)
    of_weight = (grads @ columns.swapaxes(2, 3)).sum(0).reshape(weight.shape)
    matrices = weight.reshape(numbers.groups, weight.shape[0] // numbers.groups, -1)
    of_values = (matrices.swapaxes(1, 2) @ grads).reshape(values.shape)
    of_mask = None if mask is None else (of_values * values).sum(2).reshape(mask.shape)
    of_values = masked(of_values, mask)
    of_images = np.zeros(read.grouped.shape, images.dtype)
    batch, group, channel = np.ogrid[tuple([slice(size) for size in read.grouped.shape[:3]])]
    moves = np.zeros((*values.shape[:2], *values.shape[3:5], 2, *values.shape[5:]), images.dtype)
    for at, part, down, across in read.corners():
        places = (batch[..., None], group[..., None], channel[..., None], at.reshape(*at.shape[:2], 1, -1))
        np.add.at(of_images, places, (of_values * part[:, :, None]).reshape(*values.shape[:3], -1))
        change = (of_values * read.elements(at)).sum(2)
        moves[..., 0, :, :] += change * down
        moves[..., 1, :, :] += change * across
    return of_images.reshape(images.shape), of_weight, moves.reshape(offset.shape), of_mask, grad.sum((0, 2, 3))
