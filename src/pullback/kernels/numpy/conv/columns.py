"""Convolutions as matrix products: windows of the input become columns, piece by piece so that they stay in the cache.

    x       (N, groups * Cg, *sizes)        w (groups * Og, Cg, *kernel)       out (N, groups * Og, *counts)
    columns (groups, Cg * K, windows)       for K = the elements of the kernel

The three products of a convolution are here: the output, the gradient of the input (which is also what a transposed
convolution computes) and the gradient of the weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback._arrays.kinds import answered
from pullback._thresholds import COLUMNS_AT_A_TIME, FEW_WINDOWS
from pullback.kernels import far_windows
from pullback.kernels.compiled import room
from pullback.kernels.numpy.conv import depthwise
from pullback.kernels.numpy.index.strided import restride
from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE
from pullback.kernels.numpy.pool.sliding import offsets

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]


def window_counts(sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """How many windows fit along each dimension."""
    spans = zip(sizes, kernel, stride, padding, dilation, strict=True)
    return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in spans])


def transposed_sizes(
    sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_padding: Sizes, dilation: Sizes
) -> Sizes:
    """The size of each dimension after a transposed convolution."""
    spans = zip(sizes, kernel, stride, padding, output_padding, dilation, strict=True)
    return tuple([(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, o, d in spans])


def is_compiled(*arrays: AnyArray) -> bool:
    """True if these arrays are of one dtype, float32 or float64, none is empty, and there are compiled kernels.

    Those are quicker from the smallest images on: 4 us for (2, 3, 8, 8) by (4, 3, 3, 3) where NumPy takes 17.
    """
    dtype = arrays[0].dtype
    if dtype is not SINGLE and dtype is not DOUBLE:
        return False
    for array in arrays:
        if array.dtype is not dtype or not array.size or not array.flags.aligned:
            return False
    return room("conv.plan") is not None


def plus_bias(out: AnyArray, bias: AnyArray | None, dtype: Any) -> AnyArray:
    """A result in its own dtype, with a number added to each channel."""
    out = out if out.dtype is dtype else out.astype(dtype)
    if bias is not None:
        out += bias.reshape(-1, *(1,) * (out.ndim - 2))
    return out


def surrounded(x: AnyArray, padding: Sizes) -> AnyArray:
    """The input with zeros around its spatial dimensions."""
    if not any(padding):
        return x
    inside = tuple([slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True)])
    out = np.zeros((*x.shape[:2], *[n + 2 * p for p, n in zip(padding, x.shape[2:], strict=True)]), x.dtype)
    out[(..., *inside)] = x
    return out


def windows_of(x: AnyArray, counts: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes) -> AnyArray:
    """Every window as a view: (N, C, *kernel, *counts)."""
    steps = x.strides[2:]
    across = [s * d for s, d in zip(steps, dilation, strict=True)]
    apart = [s * t for s, t in zip(steps, stride, strict=True)]
    return restride(x, (*x.shape[:2], *kernel, *counts), (*x.strides[:2], *across, *apart))


def pieces(batch: int, rows: int, windows: int, bytes_per_window: int) -> Iterator[tuple[slice, slice]]:
    """Split the work: several images at a time if they have few windows, else some rows of one image."""
    fitting = max(COLUMNS_AT_A_TIME // max(bytes_per_window, 1), 1)
    if windows <= FEW_WINDOWS:
        step = max(fitting // max(windows, 1), 1)
        for n in range(0, batch, step):
            yield slice(n, min(n + step, batch)), slice(0, rows)
        return
    per_row = windows // rows
    step = min(max(fitting // per_row, 1), rows)
    step = -(-rows // -(-rows // step))
    for n in range(batch):
        for r in range(0, rows, step):
            yield slice(n, n + 1), slice(r, min(r + step, rows))


def columns_of(views: AnyArray, images: slice, rows: slice, groups: int, ndim: int) -> AnyArray:
    """The windows of a piece as columns: (groups, Cg * K, windows)."""
    piece = views[images]
    if rows.stop - rows.start != views.shape[2 + ndim]:
        piece = piece[(slice(None),) * (2 + ndim) + (rows,)]
    count = images.stop - images.start
    height = views.shape[1] // groups * prod(views.shape[2 : 2 + ndim])
    if count == 1:
        return piece[0].reshape(groups, height, -1)
    order = (*range(1, 2 + ndim), 0, *range(2 + ndim, 2 + 2 * ndim))
    return piece.transpose(order).reshape(groups, height, -1)


def joined(x: AnyArray, images: slice, rows: slice, groups: int) -> AnyArray:
    """A piece of an output as a matrix for each group: (groups, channels, windows)."""
    piece = x[images]
    if rows.stop - rows.start != x.shape[2]:
        piece = piece[:, :, rows]
    if images.stop - images.start == 1:
        return piece[0].reshape(groups, x.shape[1] // groups, -1)
    return piece.swapaxes(0, 1).reshape(groups, x.shape[1] // groups, -1)


def is_pointwise(x: AnyArray, kernel: Sizes, stride: Sizes, padding: Sizes, groups: int) -> bool:
    """True if every window is one element of the input: the convolution is a product of matrices as it stands."""
    return groups == 1 and max(kernel) == max(stride) == 1 and not any(padding) and x.size > 0 and x.flags.c_contiguous


def convolved(x: AnyArray, w: AnyArray, stride: Sizes, padding: Sizes, dilation: Sizes, *rest: Any) -> AnyArray:
    """The shape of a convolution."""
    counts = window_counts(x.shape[2:], w.shape[2:], stride, padding, dilation)
    return np.empty((x.shape[0], w.shape[0], *counts), x.dtype)


def input_of(grad: AnyArray, w: AnyArray, sizes: Sizes, *rest: Any) -> AnyArray:
    """The shape of the gradient of its input."""
    return np.empty((grad.shape[0], w.shape[1] * rest[3], *sizes), grad.dtype)


def weight_of(x: AnyArray, grad: AnyArray, kernel: Sizes, *rest: Any) -> AnyArray:
    """The shape of the gradient of its weight."""
    return np.empty((grad.shape[1], x.shape[1] // rest[3], *kernel), grad.dtype)


@answered(meta=convolved)
def convolve(
    x: AnyArray,
    w: AnyArray,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    bias: AnyArray | None = None,
) -> AnyArray:
    """The sum over each window of the input, weighted, plus a number for each channel."""
    dtype = x.dtype
    if not x.shape[1]:  # torch's answer for images without channels
        return np.empty((x.shape[0], 0, *window_counts(x.shape[2:], w.shape[2:], stride, padding, dilation)), dtype)
    x, w = widened(x), widened(w)
    if is_compiled(x, w):
        if bias is None or (bias.dtype is x.dtype and bias.flags.c_contiguous):
            out = room("conv.plan").forward(x, w, bias, stride, padding, dilation, groups)
            return out if out.dtype is dtype else out.astype(dtype)
        return plus_bias(room("conv.plan").forward(x, w, None, stride, padding, dilation, groups), bias, dtype)
    return plus_bias(convolve_numpy(x, w, stride, padding, dilation, groups), bias, dtype)


def convolve_numpy(x: AnyArray, w: AnyArray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> AnyArray:
    """The same by products of columns."""
    dtype = x.dtype
    if is_pointwise(x, w.shape[2:], stride, padding, groups):
        images = x.reshape(*x.shape[:2], -1)
        out = np.matmul(w.reshape(w.shape[:2]), images).reshape(x.shape[0], w.shape[0], *x.shape[2:])
        return out if out.dtype is dtype else out.astype(dtype)
    kernel, channels, ndim = w.shape[2:], w.shape[0], w.ndim - 2
    counts = window_counts(x.shape[2:], kernel, stride, padding, dilation)
    x = surrounded(x, padding)
    if groups > 1 and w.shape[1] == 1:
        return depthwise.convolve(x, w, counts, stride, dilation).astype(dtype, copy=False)
    weight = w.reshape(groups, channels // groups, w.shape[1] * prod(kernel))
    out = np.empty((x.shape[0], channels, *counts), x.dtype)
    views = windows_of(x, counts, kernel, stride, dilation)
    bytes_per_window = x.shape[1] * prod(kernel) * x.itemsize
    for images, rows in pieces(x.shape[0], counts[0], prod(counts), bytes_per_window):
        columns = columns_of(views, images, rows, groups, ndim)
        if images.stop - images.start == 1:
            # The rows of one image: a view, written by the product itself.
            np.matmul(weight, columns, out=out[images.start, :, rows].reshape(groups, channels // groups, -1))
            continue
        product = np.matmul(weight, columns)
        shape = (channels, images.stop - images.start, rows.stop - rows.start, *counts[1:])
        out[images, :, rows] = product.reshape(shape).swapaxes(0, 1)
    return out.astype(dtype, copy=False)


@answered(meta=input_of)
def convolve_input(
    grad: AnyArray,
    w: AnyArray,
    sizes: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    bias: AnyArray | None = None,
) -> AnyArray:
    """The gradient of the input from that of the output: every window's share is added where it came from.

    This is a transposed convolution, too, which may have a bias.
    """
    dtype = grad.dtype
    grad, w = widened(grad), widened(w)
    if is_compiled(grad, w) and 0 not in sizes:
        if bias is None or (bias.dtype is grad.dtype and bias.flags.c_contiguous):
            out = room("conv.plan").backward_input(grad, w, bias, sizes, stride, padding, dilation, groups)
            return out if out.dtype is dtype else out.astype(dtype)
        out = room("conv.plan").backward_input(grad, w, None, sizes, stride, padding, dilation, groups)
        return plus_bias(out, bias, dtype)
    return plus_bias(convolve_input_numpy(grad, w, sizes, stride, padding, dilation, groups), bias, dtype)


def convolve_input_numpy(
    grad: AnyArray, w: AnyArray, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The same by products, added window by window."""
    dtype = grad.dtype
    if is_pointwise(grad, w.shape[2:], stride, padding, groups) and sizes == grad.shape[2:]:
        images = grad.reshape(*grad.shape[:2], -1)
        out = np.matmul(w.reshape(w.shape[:2]).T, images).reshape(grad.shape[0], w.shape[1], *sizes)
        return out if out.dtype is dtype else out.astype(dtype)
    kernel, counts = w.shape[2:], grad.shape[2:]
    per_group = w.shape[1]
    reach = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(counts, stride, dilation, kernel, strict=True)]
    whole = [max(r, p + n) for r, p, n in zip(reach, padding, sizes, strict=True)]
    out = np.zeros((grad.shape[0], per_group * groups, *whole), grad.dtype)
    inside = (..., *[slice(p, p + n) for p, n in zip(padding, sizes, strict=True)])
    if groups > 1 and per_group == 1:
        depthwise.add_input(out, grad, w, stride, dilation)
        return np.ascontiguousarray(out[inside]).astype(dtype, copy=False)
    weight = w.reshape(groups, -1, per_group * prod(kernel)).transpose(0, 2, 1)
    parts = offsets(counts, kernel, stride, dilation)
    bytes_per_window = per_group * groups * prod(kernel) * grad.itemsize
    for images, rows in pieces(grad.shape[0], counts[0], prod(counts), bytes_per_window):
        product = np.matmul(weight, joined(grad, images, rows, groups))
        count = images.stop - images.start
        shares = product.reshape(per_group * groups, len(parts), count, rows.stop - rows.start, *counts[1:])
        target = out[images]
        for nr, (_, first, *others) in enumerate(parts):
            at = slice(first.start + rows.start * stride[0], first.start + (rows.stop - 1) * stride[0] + 1, stride[0])
            target[(slice(None), slice(None), at, *others)] += shares[:, nr].swapaxes(0, 1)
    return np.ascontiguousarray(out[inside]).astype(dtype, copy=False)


@answered(meta=weight_of)
def convolve_weight(
    x: AnyArray, grad: AnyArray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The gradient of the weight: what each of its elements was multiplied with, times the gradient of the output."""
    dtype = grad.dtype
    x, grad = widened(x), widened(grad)
    if is_compiled(x, grad) and 0 not in kernel:
        out = room("conv.plan").backward_weight(x, grad, kernel, stride, padding, dilation, groups)
    else:
        out = convolve_weight_numpy(x, grad, kernel, stride, padding, dilation, groups)
    return out if out.dtype is dtype else out.astype(dtype)


def convolve_weight_numpy(
    x: AnyArray, grad: AnyArray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The same by products of gradients and columns."""
    dtype = grad.dtype
    if is_pointwise(x, kernel, stride, padding, groups) and x.shape[2:] == grad.shape[2:]:
        products = np.matmul(grad.reshape(*grad.shape[:2], -1), x.reshape(*x.shape[:2], -1).transpose(0, 2, 1))
        out = np.add.reduce(products, 0) if len(x) > 1 else products[0]
        return out.reshape(*out.shape, *kernel).astype(dtype, copy=False)
    counts, ndim, channels = grad.shape[2:], grad.ndim - 2, grad.shape[1]
    x = surrounded(x, padding)
    if groups > 1 and x.shape[1] == groups:
        return depthwise.weight(x, grad, kernel, stride, dilation).astype(dtype, copy=False)
    views = windows_of(x, counts, kernel, stride, dilation)
    out = np.zeros((groups, channels // groups, x.shape[1] // groups * prod(kernel)), grad.dtype)
    bytes_per_window = x.shape[1] * prod(kernel) * x.itemsize
    for images, rows in pieces(x.shape[0], counts[0], prod(counts), bytes_per_window):
        columns = columns_of(views, images, rows, groups, ndim)
        out += np.matmul(joined(grad, images, rows, groups), columns.transpose(0, 2, 1))
    return out.reshape(channels, x.shape[1] // groups, *kernel).astype(dtype, copy=False)


def blocks(x: AnyArray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> AnyArray:
    """Every window of every image as a column: (N, C * K, windows)."""
    counts = window_counts(x.shape[2:], kernel, stride, padding, dilation)
    if not x.shape[0] and prod(counts) < 1 << 62:  # however far the windows would reach
        return np.zeros((0, x.shape[1] * prod(kernel), prod(counts)), x.dtype)
    if far_windows.is_far(stride, padding, dilation):
        return far_windows.columns(far_windows.gathered(x, counts, kernel, stride, padding, dilation), counts, kernel)
    views = windows_of(surrounded(x, padding), counts, kernel, stride, dilation)
    return views.reshape(x.shape[0], x.shape[1] * prod(kernel), prod(counts))


def images_of_blocks(
    columns: AnyArray, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> AnyArray:
    """Images with every column added where its window lies."""
    counts = window_counts(sizes, kernel, stride, padding, dilation)
    if far_windows.is_far(stride, padding, dilation):
        parts = far_windows.side_by_side(columns, counts, kernel)
        return far_windows.scattered(parts, sizes, counts, kernel, stride, padding, dilation)
    shares = columns.reshape(columns.shape[0], columns.shape[1] // prod(kernel), prod(kernel), *counts)
    out = np.zeros((*shares.shape[:2], *[n + 2 * p for n, p in zip(sizes, padding, strict=True)]), columns.dtype)
    for nr, part in enumerate(offsets(counts, kernel, stride, dilation)):
        out[part] += shares[:, :, nr]
    return np.ascontiguousarray(out[(..., *[slice(p, p + n) for p, n in zip(padding, sizes, strict=True)])])
