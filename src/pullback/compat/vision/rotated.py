"""Boxes that are turned: (centre x, centre y, width, height, degrees)."""

from __future__ import annotations

from typing import Any

import numpy as np

TURNS = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
CLOSE = 1e-9
"""Points this near to an edge, in units of the box, are on it."""


def overlaps(one: Any, two: Any) -> Any:
    """The area of intersection over that of the union, for every box of `one` and every box of `two`."""
    out = np.zeros((len(one), len(two)), np.float32)
    if len(two):
        for row, box in zip(out, one, strict=True):
            row[:] = overlap(np.broadcast_to(box, two.shape), two)
    return out


def overlap(one: Any, two: Any) -> Any:
    """The same for pairs of boxes: the corners of each that lie in the other and the points where edges cross are the
    corners of what they share."""
    middle = (one[:, :2] + two[:, :2]) / 2  # shared coordinates near zero lose fewer digits
    first, second = corners(one, middle), corners(two, middle)
    crossings, crossing = crossed(first, second)
    points = np.concatenate([first, second, crossings], 1)
    kept = np.concatenate([within(first, two, middle), within(second, one, middle), crossing], 1)
    areas = one[:, 2] * one[:, 3], two[:, 2] * two[:, 3]
    shared = area(points, kept)
    some = (areas[0] >= 1e-14) & (areas[1] >= 1e-14)
    return np.where(some, shared / np.where(some, areas[0] + areas[1] - shared, 1), 0)


def axes(boxes: Any) -> Any:
    """The directions of width and height, as the rows of a matrix."""
    angle = np.deg2rad(boxes[:, 4])
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cosine, -sine], 1), np.stack([sine, cosine], 1)], 1)


def corners(boxes: Any, middle: Any) -> Any:
    """The four corners, one after another around the box."""
    return (TURNS * boxes[:, None, 2:4]) @ axes(boxes) + (boxes[:, :2] - middle)[:, None]


def within(points: Any, boxes: Any, middle: Any) -> Any:
    """Which points lie in the box, or on its edge."""
    local = (points - (boxes[:, :2] - middle)[:, None]) @ axes(boxes).swapaxes(1, 2)
    return (np.abs(local) <= boxes[:, None, 2:4] * (0.5 + CLOSE)).all(2)


def crossed(first: Any, second: Any) -> tuple[Any, Any]:
    """Where each edge of one box meets each edge of the other, and whether it does."""
    start, other = first[:, :, None], second[:, None]
    along, across = (np.roll(c, -1, 1) - c for c in (first, second))
    along, across = along[:, :, None], across[:, None]
    slant = cross(along, across)
    some = np.abs(slant) > 1e-14
    slant = np.where(some, slant, 1)
    here, there = (cross(other - start, edge) / slant for edge in (across, along))
    met = some & (np.abs(here - 0.5) <= 0.5 + CLOSE) & (np.abs(there - 0.5) <= 0.5 + CLOSE)
    points = start + here[..., None] * along
    return points.reshape(len(first), 16, 2), met.reshape(len(first), 16)


def cross(one: Any, two: Any) -> Any:
    """The area that two vectors span."""
    return one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0]


def area(points: Any, kept: Any) -> Any:
    """The area of the polygon of the points that are kept, taken in the order of their angles."""
    count = np.maximum(kept.sum(1), 1)
    middle = (points * kept[..., None]).sum(1) / count[:, None]
    points = np.where(kept[..., None], points - middle[:, None], 0)
    order = np.argsort(np.where(kept, np.arctan2(points[..., 1], points[..., 0]), np.inf), 1)
    sorted_points = np.take_along_axis(points, order[..., None], 1)
    last = np.arange(points.shape[1]) >= count[:, None]
    ring = np.where(last[..., None], sorted_points[:, :1], sorted_points)
    return np.abs(cross(ring, np.roll(ring, -1, 1)).sum(1)) / 2
