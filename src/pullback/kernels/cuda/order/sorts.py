"""Sorting on the device: see jit/cuda/sorts.py. The emulated device sorts by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import widened
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.index import each, put_into, read, take
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import INT64, arranged_like, copied, native
from pullback.kernels.cuda.order.extrema import ELEMENTS
from pullback.kernels.cuda.order.masks import comparable, places_of
from pullback.kernels.cuda.order.scans import running
from pullback.kernels.cuda.pointwise import copy_into


def order(rows: Any, descending: bool) -> Any:
    """Where the elements of sorted rows [count, length] come from; equal ones keep their order."""
    places = empty(rows.shape, INT64, None, rows.device)
    counted("sort")
    if required().emulated:
        window(places)[...] = stable_order(widened(window(rows)), descending)
        return places
    kernels, index = room("cuda.sorts"), rows.device.index or 0
    count, length = rows.shape
    element, tiles = ELEMENTS[rows.dtype.name], -(-length // kernels.TILE)
    ready = function(index, kernels.tile_name(element, descending), lambda: kernels.tile_text(element, descending))
    keys = empty(rows.shape, INT64, None, rows.device)
    stages = (min(length, kernels.TILE) - 1).bit_length()
    addresses = [a.address for a in (rows, keys, places)]
    launch(index, ready, (count * tiles, 1, 1), "QQQqqq", *addresses, length, tiles, stages)
    run = kernels.TILE
    while run < length:
        merge = function(index, kernels.MERGE, kernels.merge_text)
        after = [empty(rows.shape, INT64, None, rows.device) for _ in range(2)]
        addresses = [a.address for a in (keys, places, *after)]
        launch(index, merge, (-(-rows.size // BLOCK), 1, 1), "QQQQqqq", *addresses, rows.size, length, run)
        keys, places = after
        run *= 2
    return places


def stable_order(rows: Any, descending: bool) -> Any:
    """The same by NumPy, whose sort has nan last and keeps the order of equal elements."""
    if not descending:
        return np.argsort(rows, -1, kind="stable")
    turned = np.flip(rows, -1)
    found = np.flip(np.argsort(turned, -1, kind="stable"), -1)
    return rows.shape[-1] - 1 - found


def takes(array: Any, dim: Any) -> bool:
    """True for what can be sorted here."""
    known = type(array) is DeviceArray and room("cuda.sorts") is not None and array.dtype.name in ELEMENTS
    return known and array.size > 0 and array.ndim > 0 and type(dim) is int and -array.ndim <= dim < array.ndim


def sorted_places(array: Any, dim: int, descending: bool) -> Any:
    """The places of the elements in order along a dimension, with the dimension last."""
    rows = contiguous(np.moveaxis(array, dim, -1))
    return order(rows.reshape((-1, array.shape[dim])), descending).reshape(rows.shape)


def picked(array: Any, dim: int, places: Any) -> list[Any] | None:
    """The elements at places along a dimension, and the places; `places` has the dimension last."""
    at = np.moveaxis(places, -1, dim)
    found = each(array, dim, at)
    values = None if found is None else read(array, at.shape, *found)
    return None if values is None else [values, contiguous(at)]


def places_among(rows: Any, values: Any, right: bool) -> Any:
    """Where values belong in a sorted row, or each row of values in its own of as many sorted rows."""
    out = empty(values.shape, INT64, None, values.device)
    length, each = rows.shape[-1], 0 if rows.ndim == 1 else values.shape[-1]
    if not out.size:
        return out
    counted("sort")
    if required().emulated:
        side: Any = "right" if right else "left"
        sorted_rows, given = (widened(window(a)).reshape((-1, a.shape[-1])) if each else widened(window(a)) for a in
                              (rows, values))  # fmt: skip
        found = (
            np.stack([np.searchsorted(s, v, side) for s, v in zip(sorted_rows, given, strict=True)])
            if each
            else np.searchsorted(sorted_rows, given, side)
        )
        window(out)[...] = found.reshape(out.shape)
        return out
    kernels, index = room("cuda.sorts"), values.device.index or 0
    element = ELEMENTS[rows.dtype.name]
    ready = function(index, kernels.search_name(element, right), lambda: kernels.search_text(element, right))
    addresses = [a.address for a in (rows, values, out)]
    launch(index, ready, (-(-out.size // BLOCK), 1, 1), "QQQqqq", *addresses, out.size, length, each)
    return out


@native("places")
def searchsorted(
    rows: Any, values: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
) -> Any:
    """Where values belong in sorted rows."""
    if type(values) is not DeviceArray or sorter is not None or not takes(rows, -1) or rows.dtype != values.dtype:
        return None
    if side not in (None, "left", "right") or (rows.ndim > 1 and rows.shape[:-1] != values.shape[:-1]):
        return None
    found = places_among(contiguous(rows), contiguous(values), right or side == "right")
    return copied(found, np.dtype(np.int32)) if out_int32 else found


@native("sort_any", "sort_stable")
def sort(self: Any, dim: int = -1, descending: bool = False) -> Any:
    """Sorted elements, and where they come from."""
    if not takes(self, dim):
        return None
    made = picked(self, dim, sorted_places(self, dim, descending))
    if made is None or self.flags.c_contiguous:
        return made
    outs = []
    for one in made:  # in the order of memory of the input
        out = arranged_like(self, one.dtype, None)
        if not copy_into(out, one):
            return None
        outs.append(out)
    return outs


@native("argsort")
def argsort(self: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Where the sorted elements come from."""
    made = sort(self, dim, descending)
    return None if made is None else made[1]


@native("topk")
def topk(self: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest elements, or the smallest."""
    if not takes(self, dim) or self.dtype.kind == "b" or type(k) is not int or not 0 <= k <= self.shape[dim]:
        return None
    return picked(self, dim, sorted_places(self, dim, largest)[..., :k])


@native("kthvalue")
def kthvalue(self: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element."""
    if not takes(self, dim) or self.dtype.kind == "b" or type(k) is not int or not 1 <= k <= self.shape[dim]:
        return None
    made = picked(self, dim, sorted_places(self, dim, False)[..., k - 1 : k])
    if made is None or keepdim:
        return made
    return [one.reshape([n for d, n in enumerate(one.shape) if d != dim % self.ndim]) for one in made]


@native("median_dim")
def median(self: Any, dim: int, keepdim: bool = False) -> Any:
    """The lower of the two elements in the middle."""
    if not takes(self, dim) or self.dtype.kind == "b":
        return None
    n = self.shape[dim]
    places = sorted_places(self, dim, False)
    parts = [picked(self, dim, places[..., at : at + 1]) for at in ((n - 1) // 2, n - 1)]
    if parts[0] is None or parts[1] is None:
        return None
    (middle, where), (last, where_last) = parts
    if self.dtype.kind not in "iu":
        wide = copied(last, np.dtype(np.float64))
        if wide is None:
            return None
        bad = wide != wide
        middle, where = np.where(bad, last, middle), np.where(bad, where_last, where)
    made = [middle, where]
    return made if keepdim else [o.reshape([m for d, m in enumerate(o.shape) if d != dim % self.ndim]) for o in made]


@native("unique_elements")
def unique(self: Any) -> Any:
    """The distinct elements in order, which of them every element is, and how often each is there."""
    flat = contiguous(self).reshape(-1) if takes(self, 0) else None
    if flat is None:
        return None
    places = order(flat.reshape((1, -1)), False)[0]
    made = picked(flat, 0, places)
    if made is None:
        return None
    values, first = made[0], filled(flat.shape, np.dtype(np.bool_), True, flat.device)
    distinct = comparable(values)
    first[1:] = distinct[1:] != distinct[:-1]
    starts = places_of(first)
    numbers = running(first, 0, INT64, False)
    if starts is None or numbers is None:
        return None
    starts = starts[:, 0]
    inverse = empty(flat.shape, INT64, None, flat.device)
    if not put_into(inverse, places, numbers - 1):
        return None
    counts = filled(starts.shape, INT64, flat.size, flat.device)
    counts[:-1] = starts[1:]
    found = take(values, starts)
    return None if found is None else [found, inverse.reshape(self.shape), counts - starts]
