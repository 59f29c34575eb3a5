"""How a product of weights and windows is cut: boxes of windows, panels of them, and work items for the threads.

Windows at the border of an image meet fewer elements of the kernel: a box of them is a product with a shorter sum.
The images of a batch may lie element by element: then the windows of a row, of all images, are contiguous, and tiles
read them where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from pullback._thresholds import ENOUGH_FOR_A_CALL, FEW_ITEMS, NEAR_WEIGHTS, SERIAL_PRODUCT
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.conv.tables import Sizes, Table, elements, pieces, run_of, runs, spaced
from pullback.kernels.jit.gemm.tile import DEPTH, PANELS, ROWS, width

PACK, SCATTER = 2.5, 8.0
"""What a piece of a row costs, in multiplications of vectors: copied to a panel, for each k, and out of a tile."""
ODD = 0.1
"""What a tile of fewer vectors costs more than its share."""
READ = 1.0
"""What it costs an item to read a vector of a panel."""
ARRANGE, TURN = 0.25, 0.5
"""What an element costs that is copied, and copied between images that lie one by one and images that lie together."""
CACHES = ((1 << 19, 1.0), (1 << 21, 3.0))
"""What an element of images and results costs if so many or more are copied before the first of them is multiplied."""
CALL = 4000.0
"""What a pass over the images or the results costs at least."""
TOGETHER = 8
"""So many images at most lie element by element."""
MOST_SPANS = 6
"""Windows of an axis are cut in at most so many less one."""


class Axis(NamedTuple):
    """A spatial dimension of a product of weights and windows."""

    size: int
    """Of the source; beyond it there are zeros."""
    count: int
    stride: int
    offsets: Sequence[int]
    """Where the elements of the kernel lie, from stride times the number of the window on."""
    taps: Sequence[int]
    """Where their weights lie."""


class Span(NamedTuple):
    """Windows along an axis, and the elements of the kernel that at least one of them meets in the source."""

    start: int
    count: int
    met: Sizes


class Problem(NamedTuple):
    """c[row, window] = sum over channels and taps of weight[row, channel, tap] * source[channel, window + tap]."""

    batch: int
    groups: int
    rows: int
    each: int
    """Channels of a group."""
    axes: tuple[Axis, ...]
    a_row: int
    a_channel: int
    a_group: int


class Source(NamedTuple):
    """How images lie for the kernels, and the steps between batches, planes, slices, rows, remainders of the stride."""

    shape: Sizes
    """Of the copy with zeros around the images, () if they are read where they lie."""
    arguments: tuple[int, ...]
    image: int
    plane: int
    slice: int
    row: int
    phase: int
    together: int
    """How many images lie element by element."""
    low: Sizes
    """Zeros before the first element."""


Cut = list[list[Span]]
CUTS = ((False, False, False), (True, True, False), (True, True, True))
"""Axes that may be cut."""
FIELDS = 8
"""Numbers that describe a panel."""


def spans_of(axis: Axis, cut: bool) -> list[Span]:
    """The windows along an axis: all of them, or cut where they begin and cease to meet an element of the kernel."""
    first = [max(0, -(offset // axis.stride)) for offset in axis.offsets]
    last = [min(axis.count, (axis.size - 1 - offset) // axis.stride + 1) for offset in axis.offsets]
    inner = (max(first), min(last))
    cuts = [0, axis.count]
    if cut and inner[0] < inner[1]:
        every = sorted({0, *first, *last, axis.count})
        cuts = every if len(every) <= MOST_SPANS else sorted({0, *inner, axis.count})
    found = [
        Span(a, b - a, tuple([t for t in range(len(first)) if max(a, first[t]) < min(b, last[t])]))
        for a, b in pairwise(cuts)
    ]
    return found if all(span.met for span in found) else [Span(0, axis.count, tuple(range(len(first))))]


def everything(problem: Problem) -> tuple[Span, ...]:
    """All windows and the whole kernel."""
    return tuple([Span(0, axis.count, tuple(range(len(axis.offsets)))) for axis in problem.axes])


def laid_out(channels: int, together: int, products: list[tuple[Problem, Cut]], work: int) -> Source:
    """The source of some products, with as many zeros around the images as they read; a thread copies `work`."""
    low, needed = [], []
    sizes = tuple([axis.size for axis in products[0][0].axes])
    for nr in range(3):
        ends = [
            (span.start * axis.stride + axis.offsets[t], (span.start + span.count - 1) * axis.stride + axis.offsets[t])
            for problem, cut in products
            for axis in [problem.axes[nr]]
            for span in cut[nr]
            for t in span.met
        ]
        low.append(max(0, -min(ends)[0]))
        needed.append(low[-1] + max(end for _, end in ends) + 1)
    stride = products[0][0].axes[2].stride
    if together == stride == 1 and not any(low) and all(a <= b for a, b in zip(needed, sizes, strict=True)):
        plane = prod(sizes)
        return Source((), (), channels * plane, plane, sizes[1] * sizes[2], sizes[2], 0, 1, (0, 0, 0))
    wide = -(-needed[2] // stride)
    shape = (products[0][0].batch // together, channels, *needed[:2], stride * wide * together)
    row = shape[4]
    arguments = (channels, *sizes, *needed[:2], wide, stride, *low, prod(shape[:4]), max(1, work // row))
    plane = prod(shape[2:])
    return Source(shape, arguments, channels * plane, plane, shape[3] * row, row, wide, together, tuple(low))


def result_steps(problem: Problem, together: int) -> Sizes:
    """The steps between images, slices and rows of the result; images that lie together stay so."""
    deep, high, wide = (axis.count * size for axis, size in zip(problem.axes, (1, 1, together), strict=True))
    image = deep * high * wide * (1 if together > 1 else problem.rows * problem.groups)
    return image, high * wide, wide, 1


def grid_of(problem: Problem, box: tuple[Span, ...], source: Source) -> tuple[Sizes, Sizes, Sizes]:
    """The windows of a box as a grid: counts, steps in the source and steps in the result."""
    counts = (problem.batch // source.together, box[0].count, box[1].count, box[2].count * source.together)
    strides = [axis.stride for axis in problem.axes]
    steps = (source.image, strides[0] * source.slice, strides[1] * source.row, 1)
    return counts, steps, result_steps(problem, source.together)


def offsets_of(problem: Problem, box: tuple[Span, ...], source: Source) -> tuple[Table, Table]:
    """Where the weights of a sum lie, and the elements of a window."""
    taps, places = [], []
    for axis, span, low in zip(problem.axes, box, source.low, strict=True):
        taps.append([axis.taps[t] for t in span.met])
        places.append([axis.offsets[t] + low for t in span.met])
    stride = problem.axes[2].stride
    along = [(at % stride * source.phase + at // stride) * source.together for at in places[2]]
    deep, high = [at * source.slice for at in places[0]], [at * source.row for at in places[1]]
    weights = elements(spaced(problem.each, problem.a_channel), *taps)
    return weights, elements(spaced(problem.each, source.plane), deep, high, along)


def depths_of(problem: Problem, cut: Cut) -> list[int]:
    """How many elements the sums of each box have."""
    return [problem.each * prod(len(span.met) for span in box) for box in product(*cut)]


def blocks_of(problem: Problem, cut: Cut) -> int:
    """In how many parts sums are computed: the same number for every box, so that all read the same weights."""
    return -(-max(depths_of(problem, cut)) // DEPTH)


def reading(problem: Problem, element: str) -> float:
    """What it costs an item to read a row of weights."""
    depth = problem.each * prod(len(axis.offsets) for axis in problem.axes)
    return depth * (1 / 16 if depth * problem.rows <= NEAR_WEIGHTS else 1 / 4)


def price(problem: Problem, cut: Cut, source: Source, element: str) -> float:
    """About how many multiplications of vectors a product takes as long as."""
    wide, lane = width(element), lanes(element)
    depths = depths_of(problem, cut)
    if min(depths) < blocks_of(problem, cut):
        return float("inf")
    total = 0.0
    for box, depth in zip(product(*cut), depths, strict=True):
        counts, steps, out_steps = grid_of(problem, box, source)
        _, run = run_of(counts, steps, out_steps)
        number = prod(counts) // run
        rest = run % wide if run >= wide else run
        left = number * rest
        vectors = (number * (run - rest)) // lane + -(-left // (lane // 2)) / 2 + ODD * (left > 0)
        cuts = number * -(-rest // lane) + left // wide
        total += depth * (problem.rows * vectors + PACK * cuts)
        if rest and (rest != run or prod(map(len, cut)) > 1):
            total += problem.rows * cuts * SCATTER
    results = problem.rows * prod(axis.count for axis in problem.axes) * problem.batch
    return problem.groups * (total + (results * TURN + CALL if source.together > 1 else 0.0))


def at_once(batch: int, elements: int, work: int) -> list[int]:
    """How many images may be worked on at once, given what each has."""
    parts = [n for n in range(1, batch + 1) if batch % n == 0]
    least = min(n for n in parts if n == batch or n * work >= ENOUGH_FOR_A_CALL)
    found = {batch} | {max(n for n in parts if n == 1 or n * elements <= limit) for limit, _ in CACHES}
    return [n for n in sorted(found | {least}) if n >= least]


def arranged_for(
    element: str, channels: int, problems: list[Problem], work: int
) -> tuple[Source, list[tuple[Problem, Cut]]]:
    """The layout of the images and the boxes of each product that take least time, whatever the number of threads."""
    batch = problems[0].batch
    results = [one.rows * one.groups * prod(axis.count for axis in one.axes) for one in problems]
    depths = [one.each * prod(len(axis.offsets) for axis in one.axes) for one in problems]
    elements = channels * prod(axis.size for axis in problems[0].axes) + sum(results)
    multiplications = sum(n * k for n, k in zip(results, depths, strict=True))
    best, found = float("inf"), None
    for some in at_once(batch, elements, multiplications):
        slow = max([cost for limit, cost in CACHES if some * elements > limit], default=0.0)
        small, together = batch * multiplications < SERIAL_PRODUCT, 1
        while together <= (1 if small else min(TOGETHER, lanes(element))) and some % together == 0:
            for cutting in CUTS[: 1 if small else len(CUTS)]:
                both = []
                for problem in problems:
                    cut = [spans_of(axis, cut) for axis, cut in zip(problem.axes, cutting, strict=True)]
                    both.append((problem._replace(batch=some), cut))
                source = laid_out(channels, together, both, work)
                time = sum(price(problem, cut, source, element) for problem, cut in both)
                if source.shape:
                    time += prod(source.shape) * (TURN if together > 1 else ARRANGE) + CALL + slow * some * elements
                time *= batch // some
                if time < best:
                    best, found = time, (source, both)
            together *= 2
    assert found is not None
    return found


class Tables(NamedTuple):
    """What the kernel reads."""

    a_at: Table
    x_at: Table
    panels: Table
    """For each panel: its place in the source, -1 if it is packed; its columns; its place in the result, -1 if not in
    one piece; its first piece and the one after its last; its place among the panels whose partial sums are kept; the
    first element of its sum and how many there are."""
    pieces: Table
    items: Table
    """For each item: group, first panel, the one after the last, first row, the one after the last."""
    first: Table
    """The first item of each bundle, and how many there are in all."""
    blocks: int
    """In so many parts are sums computed."""
    kept: int
    """Elements of the partial sums."""


def tables(problem: Problem, cut: Cut, source: Source, element: str, threads: int) -> Tables:
    """Everything about one product."""
    wide, lane = width(element), lanes(element)
    a_at, x_at, panels, parts = [], [], [], []
    piece_count = depth_before = 0
    for box in product(*cut):
        for table, offsets in zip((a_at, x_at), offsets_of(problem, box, source), strict=True):
            table.append(offsets)
        counts, steps, out_steps = grid_of(problem, box, source)
        sources, results, run = runs(counts, steps, out_steps)
        sources += sum(span.start * step for span, step in zip(box, (*steps[1:3], source.together), strict=True))
        results += sum(span.start * step for span, step in zip(box, (*out_steps[1:3], source.together), strict=True))
        made, cuts = panels_of(sources, results, run, wide, lane)
        made[:, 3:5] += piece_count
        made[:, 6:8] = depth_before, len(x_at[-1])
        piece_count += len(cuts)
        depth_before += len(x_at[-1])
        panels.append(made)
        parts.append(cuts)
    every = np.concatenate(panels)
    scattered = every[:, 2] < 0
    every[:, 5] = np.where(scattered, np.cumsum(scattered) - 1, 0) * problem.rows * wide
    blocks = blocks_of(problem, cut)
    kept = int(scattered.sum()) * problem.rows * wide if blocks > 1 else 0
    items, first = shared_out(problem, every, element, threads)
    every_piece = np.concatenate(parts) if piece_count else np.zeros((1, 4), np.int64)
    return Tables(np.concatenate(a_at), np.concatenate(x_at), every, every_piece, items, first, blocks, kept)


def panels_of(sources: Table, results: Table, run: int, wide: int, lane: int) -> tuple[Table, Table]:
    """Panels of windows that are contiguous, then those of what is left of each run, and the pieces of the latter."""
    whole = run // wide
    within = np.arange(whole) * wide
    direct = np.zeros((len(sources) * whole, FIELDS), np.int64)
    direct[:, 0] = (sources[:, None] + within).reshape(-1)
    direct[:, 1] = wide
    direct[:, 2] = (results[:, None] + within).reshape(-1)
    rest = run - whole * wide
    if not rest:
        return direct, np.zeros((0, 4), np.int64)
    left = pieces(sources + whole * wide, results + whole * wide, rest, wide, lane)
    packed = np.zeros((len(left.out), FIELDS), np.int64)
    packed[:, 0] = -1
    packed[:, 1] = wide
    packed[-1, 1] = (len(sources) * rest - 1) % wide + 1
    packed[:, 2] = np.where(packed[:, 1] % (lane // 2), -1, left.out)
    packed[:, 3], packed[:, 4] = left.first[:-1], left.first[1:]
    return np.concatenate([direct, packed]), left.rows


def shared_out(problem: Problem, panels: Table, element: str, threads: int) -> tuple[Table, Table]:
    """Items and bundles of them, so that the busiest thread is done soonest."""
    rows, count, lane = problem.rows, len(panels), lanes(element)
    vectors = -(-panels[:, 1] // (lane // 2)) / 2 + ODD * (panels[:, 1] < width(element))
    multiplied = panels[:, 7] * vectors
    copied = panels[:, 7] * (panels[:, 4] - panels[:, 3]) * PACK
    read = reading(problem, element)
    best, found = float("inf"), (rows, min(PANELS, count), [[0]])
    widths = sorted({min(PANELS, -(-count // parts)) for parts in range(1, 17)}, reverse=True)
    for across in widths if threads > 1 else widths[:1]:
        begins = np.arange(0, count, across)
        works, copies = np.add.reduceat(multiplied, begins), np.add.reduceat(copied, begins)
        for strips in (1, 2, 3, 4, 6, 8) if threads > 1 else (1,):
            strip = -(-rows // strips // ROWS[0]) * ROWS[0] if strips > 1 else rows
            if strips > 1 and (rows <= (strips - 1) * strip or strips * len(begins) > 4 * FEW_ITEMS):
                break
            heights = np.diff(np.append(np.arange(0, rows, strip), rows))
            cost = heights[:, None] * (works + read) + works * READ + copies
            bundles, time = bundled(np.broadcast_to(cost, (problem.groups, *cost.shape)).reshape(-1), threads)
            if time < best:
                best, found = time, (strip, across, bundles)
    strip, across, bundles = found
    lows, begins = np.arange(0, rows, strip), np.arange(0, count, across)
    items = np.zeros((problem.groups, len(lows), len(begins), 5), np.int64)
    items[..., 0] = np.arange(problem.groups)[:, None, None]
    items[..., 1], items[..., 2] = begins, np.minimum(begins + across, count)
    items[..., 3], items[..., 4] = lows[:, None], np.minimum(lows + strip, rows)[:, None]
    order = np.concatenate([np.array(bundle, np.int64) for bundle in bundles])
    return items.reshape(-1, 5)[order], np.cumsum([0, *map(len, bundles)]).astype(np.int64)


def bundled(costs: Table, threads: int) -> tuple[list[list[int]], float]:
    """At most four bundles of items for each thread, the largest first, and the time until all are done."""
    total = float(costs.sum())
    if threads == 1:
        return [list(range(len(costs)))], total
    count = min(4 * threads, len(costs))
    if len(costs) > FEW_ITEMS:
        # Neighbours stay together. Bundles become smaller, so that all threads are done at about the same time.
        shares = np.cumsum(np.arange(count, 0, -1))
        cuts = np.searchsorted(np.cumsum(costs), shares[:-1] * (total / float(shares[-1])))
        bundles = [part.tolist() for part in np.split(np.arange(len(costs)), cuts) if len(part)]
        return bundles, total / threads + float(costs.max())
    price = costs.tolist()
    heap: list[tuple[float, int]] = [(0.0, nr) for nr in range(count)]
    bundles = [[] for _ in range(count)]
    for item in sorted(range(len(price)), key=lambda item: -price[item]):
        cost, nr = heap[0]
        bundles[nr].append(item)
        heapreplace(heap, (cost + price[item], nr))
    sums = sorted(heap, reverse=True)
    loads = [0.0] * threads
    for cost, _ in sums:
        heapreplace(loads, loads[0] + cost)
    # A little for what disturbs a thread: the others cannot help it with its last bundle.
    return [sorted(bundles[nr]) for _, nr in sums], max(loads) + max(price) / 64
