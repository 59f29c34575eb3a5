"""Convolutions on the device, forward and both backwards, as products of matrices that are never written out.

A product reads one factor from the image where two tables say: where a window begins, and where in a window an element
lies. So images of one, two and three dimensions, strides, dilations and groups are all the same kernel. The image has
its padding written around it first. The gradient of the image is a convolution of the gradient, spread apart by the
stride. float32 is rounded to tf32 as in torch, unless `torch.backends.cudnn.allow_tf32` is False.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half, widened
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, window
from pullback.kernels.cuda.native import native, reduced
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.cuda.products import ELEMENTS, MOST, Operand, Target, has_tensor_cores, multiply
from pullback.kernels.cuda.recording import lasts
from pullback.kernels.jit.language.complex_parts import from_parts
from pullback.kernels.numpy.conv import columns as oracle
from pullback.kernels.precision import cudnn

Sizes = tuple[int, ...]
KEPT = 256
BEYOND = 96
"""Zeros after the offsets of a table: kernels read some slices of the depth ahead, and only then see where it ends."""
tables: dict[Any, Any] = {}
"""Tables of offsets on the device, by the shapes they were made for."""


# ------------------------------------------------------------------ tables


def offsets(sizes: list[int], steps: list[int], place: Any) -> Any:
    """Offsets along several dimensions, the last running fastest, on the device; zeros behind them."""
    key = (tuple(sizes), tuple(steps), place, required())
    found = tables.get(key)
    if found is None:
        total: Any = np.zeros((), np.int64)
        for size, step in zip(sizes, steps, strict=True):
            total = total[..., None] + np.arange(size) * step
        if len(tables) >= KEPT:
            tables.clear()
        found = tables[key] = lasts(upload(np.append(total, np.zeros(BEYOND)).astype(np.int32), place))
    return found


def row_major(sizes: Any) -> list[int]:
    """How far apart the elements of a contiguous array are along each dimension."""
    steps = [1]
    for size in reversed(sizes[1:]):
        steps.insert(0, steps[0] * size)
    return steps if sizes else []


def may_round(kind: Any, index: int) -> bool:
    """Whether float32 is rounded to tf32."""
    return bool(kind == SINGLE and cudnn.allow_tf32 and has_tensor_cores(index))


# ------------------------------------------------------------------ three products


def convolve(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, bias: Any = None) -> Any:
    """The convolution of contiguous images."""
    counts = oracle.window_counts(x.shape[2:], w.shape[2:], stride, padding, dilation)
    images, channels = x.shape[:2]
    out = empty((images, w.shape[0], *counts), x.dtype, None, x.device)
    counted("convolution")
    if required().emulated:
        given = [widened(window(a)) for a in (x, w)]
        more = None if bias is None else widened(window(bias))
        window(out)[...] = oracle.convolve(*given, stride, padding, dilation, groups, more)
        return out
    x = surrounded(x, padding)
    sizes, steps = x.shape[2:], row_major(x.shape)
    length, plane = math.prod(counts), math.prod(sizes)
    starts = [step * s for step, s in zip(steps[2:], stride, strict=True)]
    inner = [step * d for step, d in zip(steps[2:], dilation, strict=True)]
    windows = offsets([images, *counts], [steps[0], *starts], x.device)
    taps = offsets([channels // groups, *w.shape[2:]], [plane, *inner], x.device)
    results = offsets([images, length], [w.shape[0] * length, 1], x.device)
    depth, own = w[0].size, w.shape[0] // groups
    more = None if bias is None else (bias.address, own, 1, 0)
    multiply(
        x.dtype, (groups, own, images * length, depth), Operand(w, own * depth, depth, 1),
        Operand(x, channels // groups * plane, 0, 0, windows, taps), Target(out, own * length, length, 0, results),
        more, may_round(x.dtype, x.device.index or 0),
    )  # fmt: skip
    return out


def convolve_input(
    grad: Any, w: Any, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, bias: Any = None
) -> Any:
    """The gradient of the image, and the transposed convolution."""
    images, channels = grad.shape[0], w.shape[1] * groups
    out = empty((images, channels, *sizes), grad.dtype, None, grad.device)
    counted("convolution")
    if required().emulated:
        given = [widened(window(a)) for a in (grad, w)]
        more = None if bias is None else widened(window(bias))
        window(out)[...] = oracle.convolve_input(*given, sizes, stride, padding, dilation, groups, more)
        return out
    kernel = w.shape[2:]
    apart = spread(grad, sizes, kernel, stride, padding, dilation)
    steps, plane, length = row_major(apart.shape), math.prod(apart.shape[2:]), math.prod(sizes)
    own, each = grad.shape[1] // groups, w.shape[1]
    windows = offsets([images, *sizes], [steps[0], *steps[2:]], grad.device)
    # The window of an element is walked backwards: its last tap is at its beginning.
    back = [-step * d for step, d in zip(steps[2:], dilation, strict=True)]
    last = -sum([(k - 1) * step for k, step in zip(kernel, back, strict=True)])
    taps = offsets([1, own, *kernel], [0, plane, *back], grad.device)
    results = offsets([images, length], [channels * length, 1], grad.device)
    taken = math.prod(kernel)
    turned = w.reshape(groups, own, each, taken).transpose(0, 2, 1, 3).copy("C")
    moved = apart.seen_as(apart.shape, apart.strides, None, last * apart.itemsize)
    more = None if bias is None else (bias.address, each, 1, 0)
    multiply(
        grad.dtype, (groups, each, images * length, own * taken),
        Operand(turned, each * own * taken, own * taken, 1),
        Operand(moved, own * plane, 0, 0, windows, taps),
        Target(out, each * length, length, 0, results), more, may_round(grad.dtype, grad.device.index or 0),
    )  # fmt: skip
    return out


def convolve_weight(
    x: Any, grad: Any, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Any:
    """The gradient of the weight."""
    images, channels = x.shape[:2]
    out = empty((grad.shape[1], channels // groups, *kernel), grad.dtype, None, grad.device)
    counted("convolution")
    if required().emulated:
        given = [widened(window(a)) for a in (x, grad)]
        window(out)[...] = oracle.convolve_weight(*given, kernel, stride, padding, dilation, groups)
        return out
    counts = grad.shape[2:]
    x = surrounded(x, padding)
    steps, plane, length = row_major(x.shape), math.prod(x.shape[2:]), math.prod(counts)
    starts = [step * s for step, s in zip(steps[2:], stride, strict=True)]
    inner = [step * d for step, d in zip(steps[2:], dilation, strict=True)]
    windows = offsets([images, *counts], [steps[0], *starts], x.device)
    taps = offsets([channels // groups, *kernel], [plane, *inner], x.device)
    results = offsets([images, length], [grad.shape[1] * length, 1], x.device)
    own, taken = grad.shape[1] // groups, channels // groups * math.prod(kernel)
    rows = offsets([own], [length], x.device)
    multiply(
        x.dtype, (groups, own, taken, images * length), Operand(grad, own * length, 0, 0, rows, results, "u"),
        Operand(x, channels // groups * plane, 0, 0, taps, windows, "u"), Target(out, own * taken, taken, 1),
        None, may_round(x.dtype, x.device.index or 0),
    )  # fmt: skip
    return out


def surrounded(x: Any, padding: Sizes) -> Any:
    """Images with zeros around them."""
    if not any(padding):
        return x
    shape = [*x.shape[:2], *[n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]]
    out = filled(shape, x.dtype, 0, x.device)
    out[(..., *[slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True)])] = x
    return out


def spread(grad: Any, sizes: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    """A gradient among zeros: every element of the image has its window there, of the taps that reached it."""
    reach = [(k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    shape = [*grad.shape[:2], *[n + r for n, r in zip(sizes, reach, strict=True)]]
    there: list[Any] = []
    here: list[Any] = []
    for n, count, s, p, r in zip(shape[2:], grad.shape[2:], stride, padding, reach, strict=True):
        first = max(-((r - p) // s), 0)  # the first one that is not cut off
        stop = min(count, (n - 1 - (r - p)) // s + 1)
        here.append(slice(first, max(stop, first)))
        there.append(slice(first * s + r - p, max(first * s + r - p, (stop - 1) * s + r - p + 1), s))
    if shape == list(grad.shape) and not any(reach) and all([s == 1 for s in stride]):
        return grad
    out = filled(shape, grad.dtype, 0, grad.device)
    part = grad[(..., *here)]
    if part.size:
        out[(..., *there)] = part
    return out


# ------------------------------------------------------------------ the ops


def are_images(x: Any, w: Any, *others: Any) -> bool:
    """True for what the kernels take: arrays of one dtype on the device, none of them empty."""
    arrays = [a for a in (x, w, *others) if a is not None]
    return (
        room("cuda.products") is not None
        and all([type(a) is DeviceArray and a.dtype == x.dtype and a.size for a in arrays])
        and x.dtype.name in ELEMENTS
        and (not is_half(x.dtype) or has_tensor_cores(x.device.index or 0))
        and 2 < x.ndim == w.ndim < 6
    )


def fit(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: Any, channels: int) -> bool:
    """True if shapes and settings make sense and offsets fit into 32 bits."""
    plain = all([type(n) is int for n in (*stride, *padding, *dilation, groups)])
    if not plain or not len(stride) == len(padding) == len(dilation) == w.ndim - 2:
        return False
    if min((*stride, *dilation, groups)) < 1 or min(padding) < 0 or groups > MOST or w.shape[0] % groups:
        return False
    counts = [n + 2 * p + (k - 1) * d for n, k, p, d in zip(x.shape[2:], w.shape[2:], padding, dilation, strict=True)]
    return x.shape[1] == channels and x.shape[0] * max(x.shape[1], w.shape[0]) * math.prod(counts) < 1 << 31


def contiguous(array: Any) -> Any:
    """The same in row-major order."""
    return array if array is None or array.flags.c_contiguous else array.copy("C")


def laid_out(out: Any, given: Any) -> Any:
    """A result with its channels where those of the input are: last or, as usual, before the pixels."""
    last = (0, *range(2, given.ndim), 1)
    if given.flags.c_contiguous or not given.transpose(last).flags.c_contiguous or out.ndim != given.ndim:
        return out
    new = empty([out.shape[d] for d in last], out.dtype, None, out.device).transpose(
        [last.index(d) for d in range(out.ndim)]
    )
    new[...] = out
    return new


@native("convolution_op")
def convolution(
    input: Any, weight: Any, bias: Any, sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """A convolution, or a transposed one; of complex numbers four ones of their parts."""
    if input.dtype.kind == "c" and type(input) is DeviceArray and type(weight) is DeviceArray:
        if weight.dtype != input.dtype or (bias is not None and bias.dtype != input.dtype):
            return None
        settings = (sizes, stride, padding, dilation, transposed, output_padding, groups)
        parts = [(x, w) for x in (input.real, input.imag) for w in (weight.real, weight.imag)]
        made = [convolution(x, w, None, *settings) for x, w in parts]
        if any([one is None for one in made]):
            return None
        out = pointwise(from_parts, (made[0] - made[3], made[1] + made[2], input.dtype), {})
        return out if bias is None else out + bias.reshape(-1, *[1] * (out.ndim - 2))
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if not are_images(input, weight, bias) or not fit(input, weight, stride, padding, dilation, groups, channels):
        return None
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and (bias.shape != (made,) or not bias.flags.c_contiguous):
        return None
    given = (contiguous(input), contiguous(weight))
    if transposed:
        if len(output_padding) != len(stride) or any([not 0 <= o < max(s, d) for o, s, d in
                                                      zip(output_padding, stride, dilation, strict=True)]):  # fmt: skip
            return None
        ends = oracle.transposed_sizes(input.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
        if min(ends) < 1 or input.shape[0] * made * math.prod(ends) >= 1 << 31:
            return None
        out = convolve_input(*given, ends, stride, padding, dilation, groups, bias)
    else:
        if min(oracle.window_counts(input.shape[2:], weight.shape[2:], stride, padding, dilation)) < 1:
            return None
        out = convolve(*given, stride, padding, dilation, groups, bias)
    return laid_out(out, weight if input.flags.c_contiguous else input)


@native("convolution_backward")
def convolution_backward(
    grad: Any, input: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Any,
) -> Any:  # fmt: skip
    """The gradients of a convolution's input, weight and bias: those the mask asks for."""
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if not are_images(input, weight, grad) or not fit(input, weight, stride, padding, dilation, groups, channels):
        return None
    if transposed and any([o >= s for o, s in zip(output_padding, stride, strict=True)]):
        return None
    grad, input, weight = (contiguous(a) for a in (grad, input, weight))
    settings = (stride, padding, dilation, groups)
    d_input = d_weight = d_bias = None
    if output_mask[0]:
        if transposed:
            d_input = convolve(grad, weight, *settings)
        else:
            d_input = convolve_input(grad, weight, input.shape[2:], *settings)
    if output_mask[1]:
        image, small = (grad, input) if transposed else (input, grad)
        d_weight = convolve_weight(image, small, weight.shape[2:], *settings)
    if output_mask[2]:
        d_bias = reduced("sum", grad, (0, *range(2, grad.ndim)), False)
    return [d_input, d_weight, d_bias]
