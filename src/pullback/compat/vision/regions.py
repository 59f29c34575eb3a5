"""Regions of images, on arrays: the best boxes, and pooling of what lies in them.

A region is read along each axis by itself: how much of each row, and of each column, goes into an output is a small
matrix, so the output is the product of one with the region and with the other, and its derivative the same transposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def best_boxes(boxes: Array, scores: Array, threshold: float) -> Array:
    """The boxes that no better one overlaps by more than the threshold, best first."""
    order = np.argsort(-scores, kind="stable")
    x1, y1, x2, y2 = boxes[order].T
    areas = (x2 - x1) * (y2 - y1)
    gone = np.zeros(len(order), bool)
    kept = []
    for i in range(len(order)):
        if gone[i]:
            continue
        kept.append(order[i])
        width = np.maximum(np.minimum(x2[i], x2[i + 1 :]) - np.maximum(x1[i], x1[i + 1 :]), 0)
        height = np.maximum(np.minimum(y2[i], y2[i + 1 :]) - np.maximum(y1[i], y1[i + 1 :]), 0)
        shared = width * height
        gone[i + 1 :] |= shared / (areas[i] + areas[i + 1 :] - shared) > threshold
    return np.array(kept, np.int64)


# ------------------------------------------------------------------ means of points between the elements


class Axis:
    """How much of each element along one axis of a region goes into each output."""

    def __init__(self, start: Any, length: Any, outputs: int, points: int, elements: int) -> None:
        kind = type(start)
        count = points if points > 0 else int(np.ceil(length / outputs))
        bins = np.arange(outputs, dtype=kind)[:, None] * (length / kind(outputs))
        within = (np.arange(count, dtype=kind) + kind(0.5)) * (length / kind(outputs)) / kind(max(count, 1))
        at = start + bins + within
        inside = (at >= -1) & (at <= elements)
        at = np.clip(at, 0, elements - 1)
        low = at.astype(np.int64)
        high = np.minimum(low + 1, elements - 1)
        part = np.where(low >= elements - 1, 0, at - low).astype(kind)
        self.count = count
        self.first = int(low.min(initial=elements - 1))
        self.end = int(high.max(initial=self.first)) + 1
        self.weights = np.zeros((outputs, self.end - self.first), kind)
        rows = np.broadcast_to(np.arange(outputs)[:, None], at.shape)
        np.add.at(self.weights, (rows, low - self.first), np.where(inside, 1 - part, 0))
        np.add.at(self.weights, (rows, high - self.first), np.where(inside, part, 0))


def between(
    shape: tuple[int, ...], rois: Array, scale: float, size: tuple[int, int], points: int, offset: float, least: float
) -> Iterator[tuple[int, Axis, Axis]]:
    """For each region its image, and its two axes with weights that sum up to a mean."""
    kind = rois.dtype.type
    for image, *corners in rois:
        x1, y1, x2, y2 = [kind(corner * kind(scale) - kind(offset)) for corner in corners]
        height, width = kind(max(y2 - y1, kind(least))), kind(max(x2 - x1, kind(least)))
        down = Axis(y1, height, size[0], points, shape[2])
        across = Axis(x1, width, size[1], points, shape[3])
        yield int(image), down, across


ANY = -np.inf


def aligned(images: Array, rois: Array, scale: float, size: tuple[int, int], points: int, half: bool) -> Array:
    """The means of points in the bins of each region."""
    out = np.zeros((len(rois), images.shape[1], *size), images.dtype)
    regions = between(images.shape, rois, scale, size, points, 0.5 if half else 0.0, ANY if half else 1.0)
    for target, (image, down, across) in zip(out, regions, strict=True):
        window = images[image, :, down.first : down.end, across.first : across.end]
        count = max(down.count * across.count, 1)
        target[...] = down.weights @ window @ across.weights.T / count
    return out


def aligned_backward(grad: Array, rois: Array, scale: float, shape: tuple[int, ...], points: int, half: bool) -> Array:
    """What `aligned` does to a gradient."""
    out = np.zeros(shape, grad.dtype)
    size = (grad.shape[2], grad.shape[3])
    regions = between(shape, rois, scale, size, points, 0.5 if half else 0.0, ANY if half else 1.0)
    for one, (image, down, across) in zip(grad, regions, strict=True):
        count = max(down.count * across.count, 1)
        window = out[image, :, down.first : down.end, across.first : across.end]
        window += down.weights.T @ (one / count) @ across.weights
    return out


def by_position(channels: int, size: tuple[int, int], regions: int) -> Array:
    """The channel each output of position-sensitive pooling is read from: every place in a region has its own."""
    return np.broadcast_to(
        np.arange(channels, dtype=np.int32).reshape(-1, *size), (regions, channels // (size[0] * size[1]), *size)
    ).copy()


def positioned(images: Array, rois: Array, scale: float, size: tuple[int, int], points: int) -> tuple[Array, Array]:
    """`aligned`, each output from a channel of its own."""
    channels = by_position(images.shape[1], size, len(rois))
    out: Array = np.zeros(channels.shape, images.dtype)
    for i, (image, down, across) in enumerate(between(images.shape, rois, scale, size, points, 0.5, ANY)):
        window = images[image, :, down.first : down.end, across.first : across.end]
        window = window.reshape(-1, *size, *window.shape[1:])
        sums = np.einsum("ph,cpqhw,qw->cpq", down.weights, window, across.weights)
        out[i] = sums / images.dtype.type(down.count * across.count)
    return out, channels


def positioned_backward(grad: Array, rois: Array, scale: float, shape: tuple[int, ...], points: int) -> Array:
    """What `positioned` does to a gradient."""
    out = np.zeros(shape, grad.dtype)
    size = (grad.shape[2], grad.shape[3])
    for one, (image, down, across) in zip(grad, between(shape, rois, scale, size, points, 0.5, ANY), strict=True):
        window = out[image, :, down.first : down.end, across.first : across.end]
        part = np.einsum("ph,cpq,qw->cpqhw", down.weights, one, across.weights)
        window += part.reshape(window.shape) / grad.dtype.type(down.count * across.count)
    return out


# ------------------------------------------------------------------ whole elements


def rounded(values: Any) -> Any:
    """To whole numbers, halves away from zero."""
    return np.copysign(np.floor(np.abs(values) + type(values)(0.5)), values)


def bins(rois: Array, scale: float, size: tuple[int, int], shape: tuple[int, ...], extra: int) -> Iterator[Any]:
    """For each bin of each region: its place in the output, the image, and the rows and columns it covers."""
    kind = rois.dtype.type
    for i, (image, *corners) in enumerate(rois):
        x1, y1, x2, y2 = [int(rounded(kind(corner * kind(scale)))) for corner in corners]
        spans = []
        for start, end, outputs, elements in ((y1, y2, size[0], shape[2]), (x1, x2, size[1], shape[3])):
            step = kind(max(end - start + extra, 1)) / kind(outputs)
            last = elements if extra else elements - 1
            edges = [(int(np.floor(kind(p) * step)), int(np.ceil(kind(p + 1) * step))) for p in range(outputs)]
            spans.append([(min(max(a + start, 0), last), min(max(b + start, 0), last)) for a, b in edges])
        for p, (top, bottom) in enumerate(spans[0]):
            for q, (left, right) in enumerate(spans[1]):
                yield (i, p, q), int(image), top, bottom, left, right


def largest(images: Array, rois: Array, scale: float, size: tuple[int, int]) -> tuple[Array, Array]:
    """The largest element in each bin of each region, and where it is; -1 for an empty bin."""
    out = np.zeros((len(rois), images.shape[1], *size), images.dtype)
    places = np.full(out.shape, -1, np.int32)
    for (i, p, q), image, top, bottom, left, right in bins(rois, scale, size, images.shape, 1):
        if bottom > top and right > left:
            window = images[image, :, top:bottom, left:right].reshape(images.shape[1], -1)
            best = window.argmax(1)
            out[i, :, p, q] = window[np.arange(len(best)), best]
            rows, columns = np.divmod(best, right - left)
            places[i, :, p, q] = (top + rows) * images.shape[3] + left + columns
    return out, places


def largest_backward(grad: Array, rois: Array, places: Array, shape: tuple[int, ...]) -> Array:
    """What `largest` does to a gradient."""
    out = np.zeros((shape[0], shape[1], shape[2] * shape[3]), grad.dtype)
    image = rois[:, 0].astype(np.int64)[:, None, None, None]
    image, channel, place = np.broadcast_arrays(image, np.arange(shape[1])[:, None, None], places)
    there = places >= 0
    np.add.at(out, (image[there], channel[there], place[there]), grad[there])
    return out.reshape(shape)


def averaged(images: Array, rois: Array, scale: float, size: tuple[int, int]) -> tuple[Array, Array]:
    """The mean of each bin of each region, each from a channel of its own."""
    channels = by_position(images.shape[1], size, len(rois))
    out = np.zeros(channels.shape, images.dtype)
    for (i, p, q), image, top, bottom, left, right in bins(rois, scale, size, images.shape, 0):
        if bottom > top and right > left:
            out[i, :, p, q] = images[image, channels[i, :, p, q], top:bottom, left:right].mean((1, 2))
    return out, channels


def averaged_backward(grad: Array, rois: Array, channels: Array, scale: float, shape: tuple[int, ...]) -> Array:
    """What `averaged` does to a gradient."""
    out = np.zeros(shape, grad.dtype)
    for (i, p, q), image, top, bottom, left, right in bins(rois, scale, (grad.shape[2], grad.shape[3]), shape, 0):
        if bottom > top and right > left:
            part = grad[i, :, p, q] / grad.dtype.type((bottom - top) * (right - left))
            out[image, channels[i, :, p, q], top:bottom, left:right] += part[:, None, None]
    return out
