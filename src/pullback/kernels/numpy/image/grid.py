"""Sampling images and volumes at any points: interpolation between the neighbours of each point. Arrays only.

A sample is the sum over the neighbours of its point of their values, each with a weight that is a product of one factor
for each dimension. Every derivative is such a sum too, with factors differentiated once or twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import rounded, widened

AnyArray = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


class Axis:
    """The neighbours of all points along one dimension.

    Attributes:
        places, inside: for each neighbour where it lies, and whether that is inside.
        factors: for each neighbour its weight, and the weight's first and second derivative.
        slope: how fast the point moves along this dimension when its coordinate does.
    """

    __slots__ = ("factors", "inside", "places", "slope")

    def __init__(self, places: list[AnyArray], inside: list[AnyArray], factors: list[Any], slope: AnyArray) -> None:
        self.places, self.inside, self.factors, self.slope = places, inside, factors, slope


# ------------------------------------------------------------------ points and their neighbours


def located(coordinate: AnyArray, size: int, align_corners: bool) -> tuple[AnyArray, Any]:
    """A coordinate from [-1, 1] as a place among the elements, and how fast it moves."""
    real = coordinate.dtype.type
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1), real((size - 1) / 2)
    return ((coordinate + 1) * size - 1) / 2, real(size / 2)


def confined(at: AnyArray, size: int, padding: int, align_corners: bool, volume: bool) -> tuple[AnyArray, Any]:
    """A place brought inside by the padding mode, and the derivative of that.

    As in torch, what is no number lies at the start of an image, but at the end of a volume.
    """
    if padding == ZEROS:
        return at, 1
    slope: Any = 1
    if padding == REFLECTION:
        at, slope = reflected(at, *((0, size - 1) if align_corners else (-0.5, size - 0.5)))
    moving = (at > 0) & (at < size - 1)
    at = np.where(np.isnan(at), at.dtype.type(size - 1 if volume else 0), at)
    return np.clip(at, 0, size - 1), np.where(moving, slope, 0)


def reflected(at: AnyArray, low: float, high: float) -> tuple[AnyArray, Any]:
    """A place mirrored at both ends until it lies between them, and the sign of its movement."""
    span = high - low
    if span == 0:
        return np.zeros_like(at), np.zeros_like(at)
    at = at - low
    sign = np.where(at < 0, -1, 1)
    at = np.abs(at)
    extra, flips = np.fmod(at, span), np.floor(at / span)
    odd = np.fmod(flips, 2) != 0
    return np.where(odd, span - extra, extra) + low, np.where(odd, -sign, sign)


def neighbours(coordinate: AnyArray, size: int, mode: int, padding: int, align_corners: bool, volume: bool) -> Axis:
    """The neighbours of all points along one dimension."""
    at, slope = located(coordinate, size, align_corners)
    if mode == BICUBIC:
        first = np.floor(at)
        found = [confined(first + shift, size, padding, align_corners, volume)[0] for shift in (-1, 0, 1, 2)]
        factors = cubic_factors(at - first)
    else:
        at, moving = confined(at, size, padding, align_corners, volume)
        slope = slope * moving
        if mode == NEAREST:
            found, factors = [np.rint(at)], [(np.ones_like(at), np.zeros_like(at), np.zeros_like(at))]
        else:
            first = np.floor(at)
            beyond, one, none = at - first, np.ones_like(at), np.zeros_like(at)
            found, factors = [first, first + 1], [(1 - beyond, -one, none), (beyond, one, none)]
    inside = [(place >= 0) & (place <= size - 1) for place in found]
    places = [np.where(ok, place, 0).astype(np.int64) for ok, place in zip(inside, found, strict=True)]
    return Axis(places, inside, factors, np.broadcast_to(np.asarray(slope, coordinate.dtype), coordinate.shape))


def cubic_factors(t: AnyArray, a: float = -0.75) -> list[tuple[AnyArray, AnyArray, AnyArray]]:
    """The weights of the four neighbours in a cubic convolution, with their derivatives."""

    def near(x: AnyArray, sign: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        value = ((a + 2) * x - (a + 3)) * x * x + 1
        return value, sign * (3 * (a + 2) * x - 2 * (a + 3)) * x, 6 * (a + 2) * x - 2 * (a + 3)

    def far(x: AnyArray, sign: int) -> tuple[AnyArray, AnyArray, AnyArray]:
        value = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return value, sign * ((3 * a * x - 10 * a) * x + 8 * a), 6 * a * x - 10 * a

    return [far(t + 1, 1), near(t, 1), near(1 - t, -1), far(2 - t, -1)]


def points(grid: AnyArray, sizes: Sizes, mode: int, padding: int, align_corners: bool) -> list[Axis]:
    """The neighbours of every point along each dimension; the grid names the last dimension first."""
    ndim = len(sizes)
    flat = grid.reshape(-1, ndim)
    return [
        neighbours(flat[:, ndim - 1 - dim], sizes[dim], mode, padding, align_corners, ndim == 3) for dim in range(ndim)
    ]


def corners(axes: list[Axis], sizes: Sizes, batch: int) -> Iterator[tuple[AnyArray, AnyArray, Any]]:
    """Each combination of neighbours: where it lies in all images laid end to end, whether inside, and its factors."""
    count = axes[0].slope.shape[0]
    start = np.repeat(np.arange(batch) * prod(sizes), count // max(batch, 1))
    for taps in product(*[range(len(axis.places)) for axis in axes]):
        place, inside = np.zeros_like(start), np.ones(count, bool)
        for tap, axis, n in zip(taps, axes, sizes, strict=True):
            place = place * n + axis.places[tap]
            inside = inside & axis.inside[tap]
        yield start + place, inside, [axis.factors[tap] for tap, axis in zip(taps, axes, strict=True)]


def weight(factors: Any, inside: AnyArray, *dims: int) -> AnyArray:
    """The weight of a neighbour, differentiated once for each of the dimensions named."""
    out = factors[0][dims.count(0)]
    for dim in range(1, len(factors)):
        out = out * factors[dim][dims.count(dim)]
    return np.where(inside, out, out.dtype.type(0))[:, None]


# ------------------------------------------------------------------ values as rows of channels


def rows_of(x: AnyArray) -> AnyArray:
    """(N, C, *sizes) as a row of channels for each element."""
    return np.moveaxis(x, 1, -1).reshape(x.shape[0] * prod(x.shape[2:]), x.shape[1])


def images_of(rows: AnyArray, batch: int, sizes: Sizes) -> AnyArray:
    """Rows of channels as (N, C, *sizes)."""
    return np.ascontiguousarray(np.moveaxis(rows.reshape(batch, *sizes, rows.shape[1]), -1, 1))


def only(rows: AnyArray, inside: AnyArray) -> AnyArray:
    """The rows inside, and zero for those outside, also where what stands in their stead is infinite."""
    return np.where(inside[:, None], rows, rows.dtype.type(0))


def added(target: AnyArray, place: AnyArray, rows: AnyArray) -> None:
    """Add rows at places, which may repeat."""
    channels = rows.shape[1]
    if rows.size:
        at = (place[:, None] * channels + np.arange(channels)).ravel()
        target += np.bincount(at, rows.ravel(), target.size).astype(target.dtype).reshape(target.shape)


def along(a: AnyArray, b: AnyArray) -> AnyArray:
    """The products of rows."""
    return rounded(np.einsum("lc,lc->l", widened(a), widened(b))[:, None], a.dtype)


# ------------------------------------------------------------------ sampling and its derivatives


def grid_sample(x: AnyArray, grid: AnyArray, mode: int, padding: int, align_corners: bool) -> AnyArray:
    """The samples at the points of a grid."""
    sizes, batch = x.shape[2:], x.shape[0]
    rows = rows_of(x)
    out = np.zeros((batch * prod(grid.shape[1:-1]), x.shape[1]), x.dtype)
    for place, inside, factors in corners(points(grid, sizes, mode, padding, align_corners), sizes, batch):
        share = weight(factors, inside)
        if len(sizes) == 2:  # what lies outside an image, not a volume, is multiplied by zero: points of nan show
            share += 0 * weight(factors, ~inside)
        out += share * only(rows[place], inside)
    return images_of(out, batch, grid.shape[1:-1])


def grid_sample_backward(
    grad: AnyArray, x: AnyArray, grid: AnyArray, mode: int, padding: int, align_corners: bool, wants: tuple[bool, ...]
) -> tuple[AnyArray | None, AnyArray | None]:
    """The gradients of the image and of the points."""
    sizes, batch, ndim = x.shape[2:], x.shape[0], x.ndim - 2
    axes = points(grid, sizes, mode, padding, align_corners)
    rows, grads = rows_of(x), rows_of(grad)
    to_image = np.zeros_like(rows) if wants[0] else None
    to_grid = np.zeros((grads.shape[0], ndim), grid.dtype) if wants[1] else None
    # The slope of a plane is one number that the gradient is multiplied by: an infinite one meets no other.
    at_once = ndim == 2 and mode == BILINEAR and wants[1]
    slopes = [np.zeros_like(grads) for _ in range(ndim if at_once else 0)]
    for place, inside, factors in corners(axes, sizes, batch):
        if to_image is not None:
            added(to_image, place, only(weight(factors, inside) * grads, inside))
        if to_grid is not None and mode != NEAREST:
            here = only(rows[place], inside)
            if at_once:
                for dim, slope in enumerate(slopes):
                    slope += weight(factors, inside, dim) * here
                continue
            value = along(grads, here)
            if ndim == 3:  # nobody looks outside a volume, whatever the gradient is
                value = only(value, inside)
            for dim in range(ndim):
                to_grid[:, ndim - 1 - dim] += (weight(factors, inside, dim) * value)[:, 0]
    if to_grid is not None:
        for dim in range(ndim):
            if at_once:
                to_grid[:, ndim - 1 - dim] += along(grads, slopes[dim])[:, 0]
            to_grid[:, ndim - 1 - dim] *= axes[dim].slope
        to_grid = to_grid.reshape(grid.shape)
    return None if to_image is None else images_of(to_image, batch, sizes), to_grid


def grid_sample_double_backward(
    for_image: AnyArray | None,
    for_grid: AnyArray | None,
    grad: AnyArray,
    x: AnyArray,
    grid: AnyArray,
    mode: int,
    padding: int,
    align_corners: bool,
) -> tuple[AnyArray | None, AnyArray | None, AnyArray | None]:
    """The gradients of `grid_sample_backward`: of the gradient it was given, of the image and of the points."""
    sizes, batch, ndim = x.shape[2:], x.shape[0], x.ndim - 2
    axes = points(grid, sizes, mode, padding, align_corners)
    rows, grads = rows_of(x), rows_of(grad)
    wanted = None if for_image is None else rows_of(for_image)
    moves = None
    if for_grid is not None and mode != NEAREST:
        flat = for_grid.reshape(-1, ndim)
        moves = [(flat[:, ndim - 1 - dim] * axes[dim].slope)[:, None] for dim in range(ndim)]
    if wanted is None and moves is None:
        return None, None, None
    to_grad, to_image = np.zeros_like(grads), np.zeros_like(rows)
    to_grid = np.zeros((grads.shape[0], ndim), grid.dtype)
    for place, inside, factors in corners(axes, sizes, batch):
        here = only(rows[place], inside)
        if wanted is not None:
            there = only(wanted[place], inside)
            to_grad += weight(factors, inside) * there
            value = along(grads, there)
            for dim in range(ndim if mode != NEAREST else 0):
                to_grid[:, ndim - 1 - dim] += (weight(factors, inside, dim) * value)[:, 0]
        if moves is not None:
            moved = sum(move * weight(factors, inside, dim) for dim, move in enumerate(moves))
            to_grad += moved * here
            added(to_image, place, only(moved * grads, inside))
            value = along(grads, here)
            for dim in range(ndim):
                curved = sum(move * weight(factors, inside, dim, other) for other, move in enumerate(moves))
                to_grid[:, ndim - 1 - dim] += (curved * value)[:, 0]
    for dim in range(ndim):
        to_grid[:, ndim - 1 - dim] *= axes[dim].slope
    return (
        images_of(to_grad, batch, grad.shape[2:]),
        None if moves is None else images_of(to_image, batch, sizes),
        to_grid.reshape(grid.shape),
    )


# ------------------------------------------------------------------ affine grids


def affine_base(size: Sizes, align_corners: bool, dtype: Any) -> AnyArray:
    """Every point of an image or volume, last dimension first, and a one: (points, ndim + 1)."""
    steps = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n, dtype=dtype) if n > 1 else np.zeros(1, dtype)
        steps.append(line if align_corners else line * dtype.type((n - 1) / n))
    mesh = np.meshgrid(*steps, indexing="ij")
    return np.stack([*[m.ravel() for m in reversed(mesh)], np.ones(mesh[0].size, dtype)], axis=-1)


def affine_grid(theta: AnyArray, size: Sizes, align_corners: bool) -> AnyArray:
    """Every point moved by an affine map."""
    base = affine_base(size, align_corners, theta.dtype)
    moved = rounded(np.matmul(widened(base), widened(theta).transpose(0, 2, 1)), theta.dtype)
    return moved.reshape(theta.shape[0], *size[2:], len(size) - 2)


def affine_grid_backward(grad: AnyArray, size: Sizes, align_corners: bool) -> AnyArray:
    """The gradient of the affine maps."""
    base = affine_base(size, align_corners, grad.dtype)
    flat = grad.reshape(grad.shape[0], base.shape[0], grad.shape[-1])
    return rounded(np.matmul(widened(flat).transpose(0, 2, 1), widened(base)), grad.dtype)
