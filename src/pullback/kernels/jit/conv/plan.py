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

from pullback._thresholds import COPY_SHARE, FEW_OUTPUTS, FEW_WEIGHTS, SERIAL_PRODUCT
from pullback.kernels import workers
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.conv import direct
from pullback.kernels.jit.conv import loops as kernels
from pullback.kernels.jit.conv import weight as turned
from pullback.kernels.jit.conv.cut import (
    Axis,
    Cut,
    Problem,
    Source,
    arranged_for,
    everything,
    grid_of,
    laid_out,
    offsets_of,
    tables,
)
from pullback.kernels.jit.conv.tables import elements, pieces, runs, spaced
from pullback.kernels.jit.gemm.product import grain, shares
from pullback.kernels.jit.gemm.tile import DEPTH, ROW_BIAS, VECTORS, borrow, give_back, steps, tiles, width
from pullback.kernels.jit.rows.programs import ELEMENTS

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
MOST = 256
"""Plans kept."""
WITH_PANELS = 16
"""The product with packed panels has at least so many arguments, the direct one fewer."""


class Planned(NamedTuple):
    """One product of weights and windows."""

    arguments: tuple[Any, ...]
    """After the flags."""
    kept: int = 0
    """Elements of partial sums."""


class Product(NamedTuple):
    """One product of weights and windows, and where its result goes if it must be spread."""

    planned: Planned
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


def arranged(x: AnyArray, source: Source, element: str) -> AnyArray:
    """The images as the kernels read them."""
    if not source.shape:
        return x
    out = np.empty(source.shape, x.dtype)
    if not kernels.arrange(element, source.together)(x, out, *source.arguments):
        raise refused()
    return out


def few_rows(element: str, threads: int, problem: Problem, source: Source, cut: Cut) -> Planned:
    """The product of the direct kernel: there are too few rows to pack anything."""
    box = tuple([spans[0] for spans in cut])
    counts, window_steps, out_steps = grid_of(problem, box, source)
    rows = pieces(*runs(counts, window_steps, out_steps), width(element), lanes(element)).rows
    a_at, x_at = offsets_of(problem, box, source)
    planes, count, windows = problem.rows * problem.groups, len(rows), prod(counts[1:])
    work = planes * len(x_at) * problem.batch * windows
    parts = 1 if planes >= 2 * threads or work < SERIAL_PRODUCT else min(-(-2 * threads // planes), count)
    share = -(-count // parts)
    parts = -(-count // share)
    return Planned((a_at, x_at, rows, problem.rows, len(x_at), count, share, parts, problem.a_row, problem.a_group,
                    problem.each * source.plane, windows, planes * parts, grain(work, planes * parts)))  # fmt: skip


def many_rows(element: str, threads: int, problem: Problem, source: Source, cut: Cut) -> Planned:
    """The product with panels."""
    windows = prod(axis.count for axis in problem.axes)
    work = problem.rows * problem.groups * problem.batch * windows * problem.each
    work *= prod(len(axis.offsets) for axis in problem.axes)
    made = tables(problem, cut, source, element, threads if work >= SERIAL_PRODUCT else 1)
    count = len(made.first) - 1
    arguments = (
        made.a_at, made.x_at, made.panels, made.pieces, made.items, made.first, steps(width(element)), tiles(element),
        problem.rows, made.blocks, problem.a_row, problem.a_group, problem.each * source.plane,
        windows * (problem.batch if source.together > 1 else 1), made.kept, threads, count, grain(work, count),
    )  # fmt: skip
    return Planned(arguments, made.kept * problem.groups)


def planned(element: str, threads: int, channels: int, problems: list[Problem]) -> tuple[int, Source, list[Planned]]:
    """How many images are taken at once, their layout, and the products."""
    if problems[0].rows <= FEW_OUTPUTS:
        both = [(problem, [[span] for span in everything(problem)]) for problem in problems]
        source = laid_out(channels, 1, both, COPY_SHARE)
        return problems[0].batch, source, [few_rows(element, threads, one, source, cut) for one, cut in both]
    source, both = arranged_for(element, channels, problems, COPY_SHARE)
    return both[0][0].batch, source, [many_rows(element, threads, one, source, cut) for one, cut in both]


def axes_of(
    sizes: Sizes, kernel: Sizes, counts: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[Axis, ...]:
    """The three dimensions of windows of the input."""
    steps = (kernel[1] * kernel[2], kernel[2], 1)
    along = zip(sizes, kernel, counts, stride, padding, dilation, steps, strict=True)
    return tuple([Axis(n, c, s, tuple(range(-p, d * k - p, d)), spaced(k, t)) for n, k, c, s, p, d, t in along])


# ------------------------------------------------------------------ the output


@lru_cache(MOST)
def plan_forward(
    element: str, threads: int, x_shape: Sizes, w_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> tuple[int, Source, Sizes, Planned]:  # fmt: skip
    """How many images are taken at once, their layout, the shape of the output and the product."""
    (batch, channels), (out_channels, each) = x_shape[:2], w_shape[:2]
    check(channels == each * groups and out_channels % groups == 0 and len(x_shape) == len(w_shape))
    sizes, kernel = three(x_shape[2:], 1), three(w_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    spans = zip(sizes, kernel, stride, padding, dilation, strict=True)
    counts = tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in spans])
    check(min(counts) > 0)
    rows, taps = out_channels // groups, prod(kernel)
    axes = axes_of(sizes, kernel, counts, stride, padding, dilation)
    problem = Problem(batch, groups, rows, each, axes, each * taps, taps, rows * each * taps)
    some, source, (product,) = planned(element, threads, channels, [problem])
    return some, source, (batch, out_channels, *counts[5 - len(x_shape) :]), product


def forward(
    x: AnyArray, w: AnyArray, bias: AnyArray | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> AnyArray:
    """The convolution of a batch."""
    element = ELEMENTS[x.dtype.char]
    threads = workers.threads()
    some, source, shape, product = plan_forward(
        element, threads, x.shape, w.shape, tuple(stride), tuple(padding), tuple(dilation), groups
    )
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    out = np.empty(shape, x.dtype)
    for image in range(0, len(x), some):
        given, here = (x, out) if some == len(x) else (x[image : image + some], out[image : image + some])
        multiply(element, threads, w, arranged(given, source, element), here, bias, source.together, product)
    return out


def multiply(
    element: str, threads: int, w: AnyArray, x: AnyArray, out: AnyArray, bias: AnyArray | None, together: int,
    product: Planned,
) -> None:  # fmt: skip
    """One product of weights and windows, of images that lie `together` element by element."""
    flags = 0 if bias is None else ROW_BIAS
    bias = w if bias is None else bias
    arguments, size = product
    if len(arguments) < WITH_PANELS:
        if not direct.rows(element)(w, x, out, bias, flags, *arguments):
            raise refused()
        return
    result = out if together == 1 else np.empty(out.shape, out.dtype)
    scratch = borrow(element, threads)
    kept = np.empty(size, out.dtype) if size else scratch
    done = kernels.columns(element)(w, x, result, bias, scratch, kept, flags, *arguments)
    give_back(element, scratch)
    if done and together > 1:
        batches, rows = len(out) // together, out.shape[1]
        windows = prod(out.shape[2:])
        count, share = batches * rows, max(1, COPY_SHARE // (windows * together))
        done = kernels.separate(element, together)(result, out, batches, rows, windows, count, share)
    if not done:
        raise refused()


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
) -> tuple[int, Source | None, bool, list[Product]]:  # fmt: skip
    """How many images are taken at once, the layout of their gradients, whether every element of the result is written,
    and the products."""
    (batch, channels), each = g_shape[:2], w_shape[1]
    group = channels // groups
    check(channels == w_shape[0] and channels % groups == 0 and len(g_shape) == len(w_shape) == len(sizes) + 2)
    sizes, kernel, given = three(sizes, 1), three(w_shape[2:], 1), three(g_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    settings = zip(sizes, kernel, stride, padding, dilation, strict=True)
    phases = [phases_of(n, k, s, p, d) for n, k, s, p, d in settings]
    met = [[phase for phase in along if phase.taps] for along in phases]
    if not all(met):
        return batch, None, False, []
    taps, tap_steps = prod(kernel), (kernel[1] * kernel[2], kernel[2], 1)
    size_steps = (sizes[1] * sizes[2], sizes[2], 1)
    combinations, problems = list(product(*met)), []
    for combination in combinations:
        along = zip(given, combination, tap_steps, strict=True)
        axes = tuple([
            Axis(n, one.count, 1, [one.first - s for s in one.shifts], [t * step for t in one.taps])
            for n, one, step in along
        ])  # fmt: skip
        problems.append(Problem(batch, groups, each, group, axes, taps, each * taps, group * each * taps))
    some, source, made = planned(element, threads, channels, problems)
    products = []
    for combination, one in zip(combinations, made, strict=True):
        start = sum(phase.start * step for phase, step in zip(combination, size_steps, strict=True))
        apart = [s * step for s, step in zip(stride, size_steps, strict=True)]
        planes, counts = some * each * groups, [phase.count for phase in combination]
        items = planes * counts[0] * counts[1]
        spread = (*counts, prod(sizes), *apart, items, max(1, COPY_SHARE // counts[2])) if max(stride) > 1 else ()
        products.append(Product(one, (some, each * groups, *counts), start, spread))
    return some, source, met == phases, products


def backward_input(
    grad: AnyArray, w: AnyArray, bias: AnyArray | None, sizes: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int,
) -> AnyArray:  # fmt: skip
    """The gradient of the input, which is also a transposed convolution of `grad`."""
    element = ELEMENTS[grad.dtype.char]
    threads = workers.threads()
    some, source, everywhere, products = plan_input(
        element, threads, grad.shape, w.shape, tuple(sizes), tuple(stride), tuple(padding), tuple(dilation), groups
    )
    shape = (grad.shape[0], w.shape[1] * groups, *sizes)
    out = (np.empty if everywhere else np.zeros)(shape, grad.dtype)
    if not everywhere and bias is not None:
        out += bias.reshape(-1, *(1,) * len(sizes))
    if source is None:
        return out
    grad, w = np.ascontiguousarray(grad), np.ascontiguousarray(w)
    for image in range(0, len(grad), some):
        given, result = (grad, out) if some == len(grad) else (grad[image : image + some], out[image : image + some])
        x, flat = arranged(given, source, element), result.reshape(-1)
        for one in products:
            here = np.empty(one.shape, grad.dtype) if one.spread else result
            multiply(element, threads, w, x, here, bias, source.together, one.planned)
            if one.spread and not kernels.spread(element)(here, flat[one.start :], *one.spread):
                raise refused()
    return out


# ------------------------------------------------------------------ the gradient of the weight


@lru_cache(MOST)
def plan_weight(
    element: str, threads: int, x_shape: Sizes, g_shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes,
    dilation: Sizes, groups: int,
) -> tuple[Source | None, Sizes, tuple[Any, ...]]:  # fmt: skip
    """The layout of the input, the shape of the partial sums and the arguments of the product."""
    (batch, channels), out_channels = x_shape[:2], g_shape[1]
    each, rows = channels // groups, out_channels // groups
    check(batch == g_shape[0] and channels % groups == out_channels % groups == 0)
    check(len(x_shape) == len(g_shape) == len(kernel) + 2)
    sizes, kernel, counts = three(x_shape[2:], 1), three(kernel, 1), three(g_shape[2:], 1)
    stride, padding, dilation = three(stride, 1), three(padding, 0), three(dilation, 1)
    axes, windows = axes_of(sizes, kernel, counts, stride, padding, dilation), prod(counts)
    problem = Problem(batch, groups, rows, each, axes, windows, 1, rows * windows)
    box = everything(problem)
    suited = turned.is_suited(rows, each, prod(kernel), batch * windows)
    if suited and turned.is_listed(axes, batch):
        return None, (), turned.plan(element, threads, problem, None, channels)
    source = laid_out(channels, 1, [(problem, [[span] for span in box])], COPY_SHARE)
    if suited:
        return source, (), turned.plan(element, threads, problem, source, channels)
    depth, wide = batch * windows, width(element)
    window_steps, x_at = grid_of(problem, box, source)[1], offsets_of(problem, box, source)[1]
    columns = len(x_at)
    work = out_channels * columns * depth
    if rows <= FEW_OUTPUTS and each == 1:
        cut = pieces(*runs((batch, *counts), window_steps, window_steps), windows, lanes(element))
        arguments = (x_at, cut.first, cut.rows, rows, columns, batch, windows, source.plane, out_channels * windows)
        return source, (1, out_channels, columns), (*arguments, out_channels, grain(work, out_channels))
    # Large images are cut one by one and all alike; small ones lie end to end.
    large = windows >= DEPTH
    span, images = (windows, batch) if large else (depth, 1)
    deep = -(-span // -(-span // DEPTH))
    each_blocks = -(-span // deep)
    blocks = images * each_blocks
    cut = pieces(*runs((1 if large else batch, *counts), window_steps, window_steps), deep, lanes(element))
    a_at = steps(1) if large else elements(spaced(batch, out_channels * windows), range(windows))
    capacity, threads = threads, threads if work >= SERIAL_PRODUCT else 1
    packing = 7.0 * len(cut.rows) * lanes(element) / span
    strip, across = shares(rows, columns, groups, threads, packing, element, VECTORS)
    across //= VECTORS
    strips, acrosses = -(-rows // strip), -(-columns // (wide * across))
    parts = 1
    if threads > 1 and groups * strips * acrosses < 2 * threads and out_channels * columns <= FEW_WEIGHTS:
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
    element = ELEMENTS[x.dtype.char]
    threads = workers.threads()
    source, shape, arguments = plan_weight(
        element, threads, x.shape, grad.shape, tuple(kernel), tuple(stride), tuple(padding), tuple(dilation), groups
    )
    x, grad = np.ascontiguousarray(x), np.ascontiguousarray(grad)
    # Not a view of anything: a gradient that owns its memory becomes the leaf's without a copy.
    out = np.empty((grad.shape[1], x.shape[1] // groups, *kernel), x.dtype)
    given = x if source is None else arranged(x, source, element)
    if isinstance(arguments, turned.Turned):
        if not turned.gradient(element, given, grad, out, arguments):
            raise refused()
        return out
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
