"""Pooling on the device: see jit/cuda/pools.py. On the emulated device the kernels of the host compute it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.conv import contiguous, laid_out
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.images import resample
from pullback.kernels.cuda.index import Numbers, put
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import native
from pullback.kernels.cuda.products import ELEMENTS
from pullback.kernels.numpy.pool import sliding as oracle
from pullback.kernels.numpy.pool import uneven

Sizes = tuple[int, ...]


def run(how: str, x: Any, out: Any, places: Any, sizes: Any, divisor: int = 0, padded: bool = True) -> None:
    """Launch a kernel; `sizes` are those of results, images, windows, strides, paddings and dilations."""
    kernels, index = room("cuda.pools"), x.device.index or 0
    key = (how, ELEMENTS[x.dtype.name])
    ready = function(index, kernels.name_of(*key), lambda: kernels.text_of(*key))
    neutral = (1, 1, 1, 1, 0, 1)
    numbers = [out.size]
    for given, one in zip(sizes, neutral, strict=True):
        numbers += [one] * (3 - len(given)) + list(given)
    addresses = (x.address, out.address, out.address if places is None else places.address)
    grid = (-(-out.size // BLOCK), 1, 1)
    launch(index, ready, grid, "QQQ" + "q" * (len(numbers) + 2), *addresses, *numbers, int(padded), divisor)


def counts_of(sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """How many windows there are along each dimension; None for settings that have to be refused."""
    given = (*kernel, *stride, *padding, *dilation)
    if not all([type(n) is int and 0 <= n < 1 << 31 for n in given]) or min((*kernel, *stride, *dilation)) < 1:
        return None
    if not len(sizes) == len(kernel) == len(stride) == len(padding) == len(dilation):
        return None
    if any([p > k // 2 for p, k in zip(padding, kernel, strict=True)]):
        return None
    found = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        left = n + 2 * p - d * (k - 1) - 1
        count = (left + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        found.append(count)
    return tuple(found) if min(found) > 0 else None


def is_image(x: Any, ndim: int) -> bool:
    """True for what the kernels take."""
    known = type(x) is DeviceArray and x.dtype.name in ELEMENTS and room("cuda.pools") is not None
    return known and x.ndim in (ndim + 1, ndim + 2) and x.size > 0


def maxima(ndim: int) -> Any:
    """max_pool2d and max_pool3d."""

    def pool(self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        stride = stride or kernel_size
        if not is_image(self, ndim) or len(kernel_size) != ndim:
            return None
        counts = counts_of(self.shape[-ndim:], kernel_size, stride, padding, dilation, ceil_mode)
        if counts is None:
            return None
        x = contiguous(self)
        out, places = (empty((*x.shape[:-ndim], *counts), kind, None, x.device) for kind in (x.dtype, np.int64))
        counted("pool")
        if required().emulated:
            made = oracle.max_pool(widened(window(x)), counts, kernel_size, stride, padding, dilation)
            window(out)[...], window(places)[...] = made
        else:
            run("max", x, out, places, (counts, x.shape[-ndim:], kernel_size, stride, padding, dilation))
        return [laid_out(out, self), laid_out(places, self)]

    return pool


def maxima_backward(ndim: int) -> Any:
    """The gradients go where the maxima came from."""

    def backward(
        grad: Any, self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
    ) -> Any:
        if not is_image(grad, ndim) or type(indices) is not DeviceArray:
            return None
        sizes = self.shape[-ndim:]
        grad, indices = contiguous(grad), contiguous(indices)
        out = filled((*grad.shape[:-ndim], *sizes), grad.dtype, 0, grad.device)
        planes, inner = math.prod(grad.shape[:-ndim]), math.prod(grad.shape[-ndim:])
        size = out.itemsize
        pixels, shape = math.prod(sizes), (planes, inner)
        numbers = Numbers(indices.reshape(shape), (inner * 8, 8), pixels, size, False)
        apart = all([s > (k - 1) * d for k, s, d in zip(kernel, stride or kernel, dilation, strict=True)])
        return out if put(out, grad.reshape(shape), [pixels * size, 0], [numbers], not apart) else None

    return backward


def averages(ndim: int) -> Any:
    """avg_pool2d and avg_pool3d."""

    def pool(
        self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor: Any
    ) -> Any:
        stride, ones = stride or kernel, (1,) * ndim
        if (
            not is_image(self, ndim)
            or len(kernel) != ndim
            or not (divisor is None or (type(divisor) is int and divisor))
        ):
            return None
        counts = counts_of(self.shape[-ndim:], kernel, stride, padding, ones, ceil_mode)
        return None if counts is None else averaged(self, counts, kernel, stride, padding, count_include_pad, divisor)

    return pool


def averaged(self: Any, counts: Any, kernel: Any, stride: Any, padding: Any, padded: bool, divisor: Any) -> Any:
    """The means of windows."""
    ndim = len(counts)
    x = contiguous(self)
    out = empty((*x.shape[:-ndim], *counts), x.dtype, None, x.device)
    counted("pool")
    if required().emulated:
        made = oracle.avg_pool(widened(window(x)), counts, kernel, stride, padding, padded, divisor)
        window(out)[...] = made
    else:
        run(
            "average",
            x,
            out,
            None,
            (counts, x.shape[-ndim:], kernel, stride, padding, (1,) * ndim),
            divisor or 0,
            padded,
        )
    return laid_out(out, self)


def averages_backward(ndim: int) -> Any:
    """The gradient of every window, shared among its elements."""

    def backward(
        grad: Any, self: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, padded: bool, divisor: Any
    ) -> Any:
        if not is_image(grad, ndim):
            return None
        return shared(grad, self.shape[-ndim:], kernel, stride or kernel, padding, padded, divisor)

    return backward


def shared(grad: Any, sizes: Any, kernel: Any, stride: Any, padding: Any, padded: bool, divisor: Any) -> Any:
    """What the elements of images have of the gradients of their windows' means."""
    ndim = len(sizes)
    g = contiguous(grad)
    out = empty((*g.shape[:-ndim], *sizes), g.dtype, None, g.device)
    if not out.size:
        return out
    counted("pool")
    if required().emulated:
        made = oracle.avg_pool_backward(widened(window(g)), sizes, kernel, stride, padding, padded, divisor)
        window(out)[...] = made
    else:
        shapes = (g.shape[-ndim:], sizes, kernel, stride, padding, (1,) * ndim)
        run("average_backward", g, out, None, shapes, divisor or 0, padded)
    return out


def even(sizes: Any, wanted: Any) -> Sizes | None:
    """The windows of an adaptive pooling, if they are all of one size beside each other; else None."""
    if len(sizes) != len(wanted) or any(
        [type(n) is not int or n < 1 or m % n for m, n in zip(sizes, wanted, strict=True)]
    ):
        return None
    return tuple([m // n for m, n in zip(sizes, wanted, strict=True)])


def adaptive(ndim: int) -> Any:
    """Adaptive averages: of windows that are all alike, or of uneven ones."""

    def pool(self: Any, output_size: Any) -> Any:
        kernel = even(self.shape[-ndim:], output_size) if is_image(self, ndim) else None
        if kernel is not None:
            return averaged(self, tuple(output_size), kernel, kernel, (0,) * ndim, True, None)
        if not is_image(self, ndim):
            return None
        made = resample.averaged(self, self.shape[-ndim:], tuple(output_size))
        return None if made is None else laid_out(made, self)

    return pool


def adaptive_backward(ndim: int) -> Any:
    """Their gradients."""

    def backward(grad: Any, self: Any) -> Any:
        kernel = even(self.shape[-ndim:], grad.shape[-ndim:]) if is_image(grad, ndim) else None
        if kernel is None:
            sizes = (self.shape[-ndim:], grad.shape[-ndim:])
            return resample.averaged(grad, *sizes, True) if is_image(grad, ndim) else None
        return shared(grad, self.shape[-ndim:], kernel, kernel, (0,) * ndim, True, None)

    return backward


def adaptive_maxima(ndim: int) -> Any:
    """Adaptive maxima and their places, of windows that may be uneven."""

    def pool(self: Any, output_size: Any) -> Any:
        counts = tuple(output_size)
        if not is_image(self, ndim) or len(counts) != ndim or any([type(n) is not int or n < 1 for n in counts]):
            return None
        x = contiguous(self)
        out, places = (empty((*x.shape[:-ndim], *counts), kind, None, x.device) for kind in (x.dtype, np.int64))
        counted("pool")
        if required().emulated:
            window(out)[...], window(places)[...] = uneven.adaptive_max(widened(window(x)), counts)
        else:
            ones, none = (1,) * ndim, (0,) * ndim
            run("adaptive_max", x, out, places, (counts, x.shape[-ndim:], ones, ones, none, ones))
        return [laid_out(out, self), laid_out(places, self)]

    return pool


def adaptive_maxima_backward(ndim: int) -> Any:
    """The gradients go where the maxima came from; of windows that meet, several may go to one place."""
    to_places = maxima_backward(ndim)

    def backward(grad: Any, self: Any, indices: Any) -> Any:
        apart = even(self.shape[-ndim:], grad.shape[-ndim:]) is not None
        return to_places(grad, self, (1 if apart else 2,) * ndim, (1,) * ndim, (), (1,) * ndim, False, indices)

    return backward


for _ndim in (2, 3):
    native(f"_adaptive_max_pool{_ndim}d")(adaptive_maxima(_ndim))
    native(f"adaptive_max_pool{_ndim}d_backward")(adaptive_maxima_backward(_ndim))
    native(f"max_pool_{_ndim}d")(maxima(_ndim))
    native(f"max_pool{_ndim}d_with_indices_backward")(maxima_backward(_ndim))
    native(f"avg_pool_{_ndim}d")(averages(_ndim))
    native(f"avg_pool{_ndim}d_backward")(averages_backward(_ndim))
    native(f"_adaptive_avg_pool{_ndim}d")(adaptive(_ndim))
    native(f"_adaptive_avg_pool{_ndim}d_backward")(adaptive_backward(_ndim))
