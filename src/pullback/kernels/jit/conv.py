"""Convolutions with any stride, padding, dilation and groups as matrix products of weights and windows.

What depends on the shapes alone is planned once. The gradient of the input is a convolution of the gradient of the
output for each remainder modulo the stride: an element of the input meets every stride-th element of the kernel.
Signals and images are volumes of thickness one.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pullback.kernels import workers
from pullback.kernels.jit import conv_direct as direct
from pullback.kernels.jit import conv_kernels as kernels
from pullback.kernels.jit.conv_tables import elements, pieces, spaced
from pullback.kernels.jit.gemm import ELEMENT, SERIAL, grain, shares
from pullback.kernels.jit.gemm_tile import DEPTH, ROW_BIAS, borrow, give_back, steps, tiles, width
from pullback.kernels.jit.target import lanes

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
MOST = 256
"""Plans kept."""
FEW = 1 << 16
"""Gradients of weights up to this size may be summed in several parts, one for each thread and more."""
FEW_ROWS = 2
"""Up to so many outputs of a group, windows are not worth packing."""
WITH_PANELS = 20
"""The product with packed panels has at least so many arguments, the direct one fewer."""
ROW_WORK = 16384
"""So many elements are copied by one thread at least."""


class Source(NamedTuple):
    """How images are laid out for the kernels: the steps between planes, slices, rows, and remainders of the stride."""

    shape: Sizes
    """Of the copy with zeros around the images, () if they are read where they lie."""
    arguments: tuple[int, ...]
    plane: int
    slice: int
    row: int
    phase: int


class Product(NamedTuple):
    """The arguments of one product of weights and windows, and where its result goes if it must be spread."""

    arguments: tuple[Any, ...]
    shape: Sizes
    start: int
    spread: tuple[int, ...]


def three(values: Sizes, filler: int) -> Sizes:
    """Settings for three spatial dimensions."""
    return (filler,) * (3 - len(values)) + tuple(values)


def check(fits: bool) -> None:
    """Refuse shapes that do not belong together: the kernels would read beyond the arrays."""
    if not fits:
        raise ValueError("the shapes of a convolution do not fit")


def refused() -> RuntimeError:
    """What cannot happen: the arrays are made or checked here."""
    return RuntimeError("a convolution was given arrays that its kernel does not take")


def laid_out(planes: int, sizes: Sizes, low: Sizes, needed: Sizes, stride: int) -> Source:
    """Images with zeros before and after: `needed` elements of each dimension, from -low on."""
    if not any(low) and stride == 1 and all(a <= b for a, b in zip(needed, sizes, strict=True)):
        return Source((), (), prod(sizes), sizes[1] * sizes[2], sizes[2], 0)
    wide = -(-needed[2] // stride)
    shape = (planes, *needed[:2], stride * wide)
    arguments = (*sizes, *needed[:2], wide, stride, *low, prod(shape[:3]), max(1, ROW_WORK // (stride * wide)))
    return Source(shape, arguments, prod(shape[1:]), needed[1] * stride * wide, stride * wide, wide)


def arranged(x: AnyArray, source: Source, element: str) -> AnyArray:
    """The images as the kernels read them."""
    if not source.shape:
        return x
    out = np.empty(source.shape, x.dtype)
    kernels.arrange(element)(x, out, *source.arguments)
    return out


def taps_of(source: Source, channels: int, kernel: Sizes, stride: int, dilation: Sizes) -> AnyArray:
    """Where the elements of a window lie, from its first one on."""
    along = [t * dilation[2] % stride * source.phase + t * dilation[2] // stride for t in range(kernel[2])]
    high = spaced(kernel[1], dilation[1] * source.row)
    return elements(spaced(channels, source.plane), spaced(kernel[0], dilation[0] * source.slice), high, along)


def windows_product(
    element: str, threads: int, a_at: AnyArray, x_at: AnyArray, counts: Sizes, window_steps: Sizes, out_steps: Sizes,
    rows: int, groups: int, a_row: int, a_group: int, x_group: int,
) -> tuple[Any, ...]:  # fmt: skip
    """The arguments of a product after the flags; those of the direct kernel where there are few rows."""
    wide, depth, columns, c_row = width(element), len(x_at), prod(counts), prod(counts[1:])
    cut = pieces(counts, window_steps, out_steps, wide, lanes(element))
    work = rows * groups * depth * columns
    if rows <= FEW_ROWS:
        count, planes = len(cut.rows), rows * groups
        parts = 1 if planes >= 2 * threads or work < SERIAL else min(-(-2 * threads // planes), count)
        share = -(-count // parts)
        parts = -(-count // share)
        items = planes * parts
        return (a_at, x_at, cut.rows, rows, depth, count, share, parts, a_row, a_group, x_group, c_row, items,
                grain(work, items))  # fmt: skip
    packing = 4.0 * len(cut.rows) * lanes(element) / columns
    strip, across = shares(rows, columns, groups, threads if work >= SERIAL else 1, packing, element)
    strips, acrosses = -(-rows // strip), -(-columns // (wide * across))
    items = groups * strips * acrosses
    return (
        a_at, x_at, cut.first, cut.rows, cut.out, steps(wide), tiles(element), rows, columns, depth,
        -(-depth // -(-depth // DEPTH)), a_row, a_group, x_group, c_row, rows * c_row, threads, strip, across, strips,
        acrosses, items, grain(work, items),
    )  # fmt: skip


# ------------------------------------------------------------------ the output


@lru_cache(MOST)
def plan_forward(
    element: str, threads: int, x_shape: Sizes, w_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> tuple[Source, Sizes, tuple[Any, ...]]:  # fmt: skip
    """The layout of the input, the shape of the output and the arguments of the product."""
    (batch, channels), (out_channels, each) = x_shape[:2], w_shape[:2]
    check(channels == each * groups and out_channels % groups == 0 and len(x_shape) == len(w_shape))
    sizes, kernel = three(x_shape[2:], 1), three(w_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    reach = tuple([d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)])
    counts = tuple([(n + 2 * p - r) // s + 1 for n, p, r, s in zip(sizes, padding, reach, stride, strict=True)])
    needed = tuple([(n - 1) * s + r for n, s, r in zip(counts, stride, reach, strict=True)])
    source = laid_out(batch * channels, sizes, padding, needed, stride[2])
    check(min(counts) > 0)
    windows, depth = prod(counts), each * prod(kernel)
    window_steps = (channels * source.plane, stride[0] * source.slice, stride[1] * source.row, 1)
    out_steps = (out_channels * windows, counts[1] * counts[2], counts[2], 1)
    rows = out_channels // groups
    arguments = windows_product(
        element, threads, elements(range(depth)), taps_of(source, each, kernel, stride[2], dilation),
        (batch, *counts), window_steps, out_steps, rows, groups, depth, rows * depth, each * source.plane,
    )  # fmt: skip
    return source, (batch, out_channels, *counts[5 - len(x_shape) :]), arguments


def forward(
    x: AnyArray, w: AnyArray, bias: AnyArray | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The convolution of a batch."""
    element = ELEMENT[x.dtype.char]
    threads = workers.threads()
    source, shape, arguments = plan_forward(
        element, threads, x.shape, w.shape, tuple(stride), tuple(padding), tuple(dilation), groups
    )
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    out = np.empty(shape, x.dtype)
    multiply(element, threads, w, arranged(x, source, element), out, bias, arguments)
    return out


def multiply(
    element: str, threads: int, w: AnyArray, x: AnyArray, out: AnyArray, bias: AnyArray | None, arguments: Any
) -> None:
    """One product of weights and windows."""
    flags = 0 if bias is None else ROW_BIAS
    if len(arguments) < WITH_PANELS:
        if not direct.rows(element)(w, x, out, w if bias is None else bias, flags, *arguments):
            raise refused()
        return
    scratch = borrow(element, threads)
    if not kernels.columns(element)(w, x, out, w if bias is None else bias, scratch, flags, *arguments):
        raise refused()
    give_back(element, scratch)


# ------------------------------------------------------------------ the gradient of the input


class Phase(NamedTuple):
    """The elements of the input with one remainder modulo the stride, along one dimension."""

    first: int
    """The number of the first such element, counted from the padding on in strides."""
    count: int
    start: int
    """Where the first one lies in the input."""
    taps: Sizes
    """The elements of the kernel that meet them."""
    shifts: Sizes
    """How many windows earlier the window lies in which each of them does."""


def phases_of(size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Phase]:
    """The remainders modulo the stride along one dimension that the input has elements of."""
    found = []
    for remainder in range(stride):
        first = max(-((remainder - padding) // stride), 0)
        start = stride * first + remainder - padding
        taps = tuple([t for t in range(kernel) if t * dilation % stride == remainder])
        shifts = tuple([(t * dilation - remainder) // stride for t in taps])
        found.append(Phase(first, -(-(size - start) // stride), start, taps, shifts))
    return [phase for phase in found if phase.count > 0]


@lru_cache(MOST)
def plan_input(
    element: str, threads: int, g_shape: Sizes, w_shape: Sizes, sizes: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> tuple[Source | None, bool, list[Product]]:  # fmt: skip
    """The layout of the gradient, whether every element of the result is written, and the products."""
    (batch, channels), each = g_shape[:2], w_shape[1]
    group = channels // groups
    check(channels == w_shape[0] and channels % groups == 0 and len(g_shape) == len(w_shape) == len(sizes) + 2)
    sizes, kernel, given = three(sizes, 1), three(w_shape[2:], 1), three(g_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    settings = zip(sizes, kernel, stride, padding, dilation, strict=True)
    phases = [phases_of(n, k, s, p, d) for n, k, s, p, d in settings]
    met = [[phase for phase in along if phase.taps] for along in phases]
    if not all(met):
        return None, False, []
    low = tuple([max(max(phase.shifts) - phase.first for phase in along) for along in met])
    far = [max(phase.first + phase.count - min(phase.shifts) for phase in along) for along in met]
    source = laid_out(batch * channels, given, low, tuple([f + p for f, p in zip(far, low, strict=True)]), 1)
    hop, taps = (source.slice, source.row, 1), prod(kernel)
    tap_steps, size_steps = (kernel[1] * kernel[2], kernel[2], 1), (sizes[1] * sizes[2], sizes[2], 1)
    found = []
    for combination in product(*met):
        places = [
            tuple([(phase.first - shift + before) * step for shift in phase.shifts])
            for phase, before, step in zip(combination, low, hop, strict=True)
        ]
        turned = [tuple([t * step for t in phase.taps]) for phase, step in zip(combination, tap_steps, strict=True)]
        counts = tuple([phase.count for phase in combination])
        windows = prod(counts)
        arguments = windows_product(
            element, threads, elements(spaced(group, each * taps), *turned),
            elements(spaced(group, source.plane), *places), (batch, *counts), (channels * source.plane, *hop),
            (each * groups * windows, counts[1] * counts[2], counts[2], 1), each, groups, taps, group * each * taps,
            group * source.plane,
        )  # fmt: skip
        start = sum(phase.start * step for phase, step in zip(combination, size_steps, strict=True))
        apart = [s * step for s, step in zip(stride, size_steps, strict=True)]
        planes = batch * each * groups
        items = planes * counts[0] * counts[1]
        spread = (*counts, prod(sizes), *apart, items, max(1, ROW_WORK // counts[2])) if max(stride) > 1 else ()
        found.append(Product(arguments, (planes, *counts), start, spread))
    return source, met == phases, found


def backward_input(
    grad: AnyArray, w: AnyArray, bias: AnyArray | None, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> AnyArray:  # fmt: skip
    """The gradient of the input, which is also a transposed convolution of `grad`."""
    element = ELEMENT[grad.dtype.char]
    threads = workers.threads()
    source, everywhere, products = plan_input(
        element, threads, grad.shape, w.shape, tuple(sizes), tuple(stride), tuple(padding), tuple(dilation), groups
    )
    shape = (grad.shape[0], w.shape[1] * groups, *sizes)
    out = (np.empty if everywhere else np.zeros)(shape, grad.dtype)
    if not everywhere and bias is not None:
        out += bias.reshape(-1, *(1,) * len(sizes))
    if source is None:
        return out
    grad, w = np.ascontiguousarray(grad), np.ascontiguousarray(w)
    x, flat = arranged(grad, source, element), out.reshape(-1)
    for one in products:
        here = np.empty(one.shape, grad.dtype) if one.spread else flat
        multiply(element, threads, w, x, here, bias, one.arguments)
        if one.spread:
            kernels.spread(element)(here, flat[one.start :], *one.spread)
    return out


# ------------------------------------------------------------------ the gradient of the weight


@lru_cache(MOST)
def plan_weight(
    element: str, threads: int, x_shape: Sizes, g_shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> tuple[Source, Sizes, tuple[Any, ...]]:  # fmt: skip
    """The layout of the input, the shape of the partial sums and the arguments of the product."""
    (batch, channels), out_channels = x_shape[:2], g_shape[1]
    each, rows = channels // groups, out_channels // groups
    check(batch == g_shape[0] and channels % groups == out_channels % groups == 0)
    check(len(x_shape) == len(g_shape) == len(kernel) + 2)
    sizes, kernel, counts = three(x_shape[2:], 1), three(kernel, 1), three(g_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    spans = zip(counts, stride, dilation, kernel, strict=True)
    needed = tuple([(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in spans])
    source = laid_out(batch * channels, sizes, padding, needed, stride[2])
    windows = prod(counts)
    depth, wide = batch * windows, width(element)
    window_steps = (channels * source.plane, stride[0] * source.slice, stride[1] * source.row, 1)
    x_at = taps_of(source, each, kernel, stride[2], dilation)
    columns = len(x_at)
    work = out_channels * columns * depth
    if rows <= FEW_ROWS and each == 1:
        cut = pieces((batch, *counts), window_steps, window_steps, windows, lanes(element))
        arguments = (x_at, cut.first, cut.rows, rows, columns, batch, windows, source.plane, out_channels * windows)
        return source, (1, out_channels, columns), (*arguments, out_channels, grain(work, out_channels))
    # Large images are cut one by one and all alike; small ones lie end to end.
    large = windows >= DEPTH
    span, images = (windows, batch) if large else (depth, 1)
    deep = -(-span // -(-span // DEPTH))
    each_blocks = -(-span // deep)
    blocks = images * each_blocks
    cut = pieces((1 if large else batch, *counts), window_steps, window_steps, deep, lanes(element))
    a_at = steps(1) if large else elements(spaced(batch, out_channels * windows), range(windows))
    capacity, threads = threads, threads if work >= SERIAL else 1
    packing = 7.0 * len(cut.rows) * lanes(element) / span
    strip, across = shares(rows, columns, groups, threads, packing, element)
    strips, acrosses = -(-rows // strip), -(-columns // (wide * across))
    parts = 1
    if threads > 1 and groups * strips * acrosses < 2 * threads and out_channels * columns <= FEW:
        parts = min(4 * threads, blocks)
    share = -(-blocks // parts)
    parts = -(-blocks // share)
    arguments = (
        a_at, x_at, cut.first, cut.rows, steps(wide), tiles(element), rows, columns, span, deep, each_blocks, blocks,
        share, windows, rows * windows, each * source.plane, out_channels * windows, channels * source.plane, large,
        rows * columns, out_channels * columns, capacity, strip, across, strips, acrosses, parts,
        groups * parts * strips * acrosses, grain(work, groups * parts * strips * acrosses),
    )  # fmt: skip
    return source, (parts, out_channels, columns), arguments


def backward_weight(
    x: AnyArray, grad: AnyArray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The gradient of the weight."""
    element = ELEMENT[x.dtype.char]
    threads = workers.threads()
    source, shape, arguments = plan_weight(
        element, threads, x.shape, grad.shape, tuple(kernel), tuple(stride), tuple(padding), tuple(dilation), groups
    )
    x, grad = np.ascontiguousarray(x), np.ascontiguousarray(grad)
    # Not a view of anything: a gradient that owns its memory becomes the leaf's without a copy.
    out = np.empty((shape[1], x.shape[1] // groups, *kernel), x.dtype)
    given = arranged(x, source, element)
    if len(arguments) < WITH_PANELS:
        if not direct.taps(element)(grad, given, out, *arguments):
            raise refused()
        return out
    parts = np.empty(shape, x.dtype) if shape[0] > 1 else out
    scratch = borrow(element, threads)
    if not kernels.weights(element)(grad, given, parts, scratch, *arguments):
        raise refused()
    give_back(element, scratch)
    if parts is not out:
        np.add.reduce(parts, 0, None, out.reshape(shape[1:]))
    return out
