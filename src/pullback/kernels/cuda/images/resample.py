"""Scaling images, and averages of uneven windows: see jit/cuda/resample.py. The tables are those of the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.conv import contiguous, laid_out
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import copied, native
from pullback.kernels.numpy.image import resample as oracle

ELEMENTS = {"float32": "float", "float64": "double"}
TABLES = 256
tables: dict[Any, Any] = {}
"""Tables on devices, by what they are of."""


def entries(table: Any, backward: bool, kind: Any) -> tuple[Any, Any, Any]:
    """Where the entries of each result start, their places and weights; backwards those of each element."""
    taps, count = table.at.shape
    weights = np.ones((taps, count), kind) if table.weights is None else table.weights.astype(kind)
    used = np.ones((taps, count), np.bool_)
    for tap, unused in enumerate(table.unused):
        if unused is not None:
            used[tap, unused] = False
    # In the order of results, and of taps within each, as the host adds them up.
    kept = used.T.reshape(-1)
    results, places = np.repeat(np.arange(count), taps)[kept], table.at.T.reshape(-1)[kept]
    values = weights.T.reshape(-1)[kept]
    rows, others, size = (places, results, table.size) if backward else (results, places, count)
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(size + 1))
    return starts.astype(np.int64), others[order].astype(np.int64), values[order]


def on_device(table: Any, backward: bool, kind: Any, place: Any) -> Any:
    """The same on a device, kept for the next time."""
    key = (table, backward, kind, place, required())
    found = tables.get(key)
    if found is None:
        if len(tables) >= TABLES:
            tables.clear()
        found = tables[key] = [upload(part, place) for part in entries(table, backward, kind)]
    return found


def resampled(x: Any, axis: int, table: Any, backward: bool) -> Any:
    """One dimension of a row-major array resampled, or the gradient of that."""
    rows = table.size if backward else table.at.shape[1]
    out = empty((*x.shape[:axis], rows, *x.shape[axis + 1 :]), x.dtype, None, x.device)
    counted("resample")
    if required().emulated:
        if table.weights is None and not backward:
            window(out)[...] = np.take(window(x), table.at[0], axis)
        else:
            window(out)[...] = (oracle.resample_backward if backward else oracle.resample)(window(x), axis, table)
        return out
    parts = on_device(table, backward, x.dtype, x.device)
    kernels, index = room("cuda.resample"), x.device.index or 0
    element = ELEMENTS[x.dtype.name]
    ready = function(index, kernels.name_of(element), lambda: kernels.text_of(element))
    addresses = [a.address for a in (x, out, *parts)]
    numbers = (out.size, rows, x.shape[axis], math.prod(x.shape[axis + 1 :]))
    launch(index, ready, (-(-out.size // BLOCK), 1, 1), "QQQQQqqqq", *addresses, *numbers)
    return out


def all_resampled(x: Any, found: Any, backward: bool = False) -> Any:
    """The last dimensions resampled, those that shrink most first; None if no kernel can."""
    if type(x) is not DeviceArray or room("cuda.resample") is None or not x.size:
        return None
    kind = SINGLE if is_half(x.dtype) else x.dtype
    if kind.name not in ELEMENTS:
        return None
    wide = contiguous(x if kind == x.dtype else copied(x, kind))
    if wide is None:
        return None

    def growth(nr: int) -> float:
        had, has = found[nr].size, found[nr].at.shape[1]
        return had / max(has, 1) if backward else has / max(had, 1)

    for nr in sorted(range(len(found)), key=growth):
        wide = resampled(wide, x.ndim - len(found) + nr, found[nr], backward)
    return wide if kind == x.dtype else copied(wide, x.dtype)


# ------------------------------------------------------------------ interpolation


def tables_of(mode: str, sizes: Any, counts: Any, align: Any, scales: Any, dtype: Any) -> Any:
    """The tables of all dimensions; None for sizes that have to be refused."""
    if len(sizes) != len(counts) or not all([type(n) is int and n > 0 for n in (*sizes, *counts)]):
        return None
    real = np.float64 if dtype == np.float64 else np.float32
    # The nearest elements are found as torch finds them on a device: always by their index.
    mode = f"{mode}_index" if mode.startswith("nearest") else mode
    return tuple(
        [oracle.interpolation(mode, n, c, bool(align), s, real) for n, c, s in zip(sizes, counts, scales, strict=True)]
    )


def scaling(mode: str, ndim: int) -> tuple[Any, Any]:
    """What scales images, and its gradient."""

    def forward(self: Any, output_size: Any, align_corners: Any, *scales: Any) -> Any:
        if type(self) is not DeviceArray or self.ndim != ndim + 2:
            return None
        found = tables_of(mode, self.shape[2:], output_size, align_corners, scales, self.dtype)
        made = None if found is None else all_resampled(self, found)
        return None if made is None else laid_out(made, self)

    def backward(grad_output: Any, input_size: Any, output_size: Any, align_corners: Any, scales: Any) -> Any:
        if type(grad_output) is not DeviceArray:
            return None
        found = tables_of(mode, tuple(input_size[2:]), output_size, align_corners, scales, grad_output.dtype)
        return None if found is None else all_resampled(grad_output, found, True)

    return forward, backward


NAMES = {
    "upsample_nearest1d": ("nearest", 1), "upsample_nearest2d": ("nearest", 2), "upsample_nearest3d": ("nearest", 3),
    "_upsample_nearest_exact1d": ("nearest_exact", 1), "_upsample_nearest_exact2d": ("nearest_exact", 2),
    "_upsample_nearest_exact3d": ("nearest_exact", 3), "upsample_linear1d": ("linear", 1),
    "upsample_bilinear2d": ("linear", 2), "upsample_trilinear3d": ("linear", 3), "upsample_bicubic2d": ("cubic", 2),
    "_upsample_bilinear2d_aa": ("linear_aa", 2), "_upsample_bicubic2d_aa": ("cubic_aa", 2),
    "_upsample_lanczos2d_aa": ("lanczos_aa", 2),
}  # fmt: skip
"""The modes and dimensions of ops."""
for _name, (_mode, _ndim) in NAMES.items():
    _forward, _backward = scaling(_mode, _ndim)
    native(_name)(_forward)
    native(f"{_name}_backward")(_backward)


# ------------------------------------------------------------------ averages of uneven windows


def averaged(x: Any, sizes: Any, counts: Any, backward: bool = False) -> Any:
    """The averages of as many windows as asked for, which may be of different sizes, or the gradient of that."""
    if len(sizes) != len(counts) or not all([type(n) is int and n > 0 for n in (*sizes, *counts)]):
        return None
    found = tuple([oracle.averaging(n, c) for n, c in zip(sizes, counts, strict=True)])
    return all_resampled(x, found, backward)
