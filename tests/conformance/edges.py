"""Numbers at the edges of what functions take, and how far two results are apart there.

Torch computes long vectors with other instructions than single elements, and the two disagree here and there. Elements
that lie apart in memory take the second way: pullback may agree with either.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import pullback

Array = np.ndarray[Any, Any]
MANY = 70_000  # enough for the kernels of large arrays
NAN, INF = float("nan"), float("inf")


def real_numbers(dtype: str) -> Array:
    """Zeros, ones, halves, whole numbers, poles, overflows, denormals, and the neighbours of some."""
    kind = np.dtype(dtype).type
    limits = np.finfo(kind)
    beside = [1, 0.5, 2, 3, 8, np.pi / 2, 0.25, 88.5, 171, 709.5, 2.0**24, 2.0**53]
    plain = [0, INF, NAN, limits.max, limits.tiny, limits.smallest_subnormal, 1.5, 2.5, 3.5, 20, 100, 1e5, 1e-3, 1e-8]
    near = [np.nextafter(kind(x), kind(to)) for x in beside for to in (-INF, INF)]
    numbers = np.array([*plain, *beside, *near], kind)
    return np.concatenate([numbers, -numbers])


def few_real_numbers(dtype: str) -> Array:
    """The same for all pairs of them."""
    kind = np.dtype(dtype).type
    limits = np.finfo(kind)
    numbers = [0, 0.3, 0.5, 1, 1.5, 2, 3, 7, 100, 2.0**24 + 1, 2.0**53, INF, NAN, limits.max, limits.tiny]
    return np.concatenate([np.array(numbers, kind), -np.array(numbers, kind)])


def integers(dtype: str) -> Array:
    """Small ones, powers of two and their neighbours, and the limits."""
    if dtype == "bool":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    wanted = [0, 1, 2, 3, 7, 8, 31, 64, 100, 127, 2**15, 2**24 + 1, 2**31 - 1, 2**53 + 1, limits.max, limits.max - 1]
    both = {*wanted, *[-x for x in wanted], limits.min, limits.min + 1}
    return np.array(sorted(x for x in both if limits.min <= x <= limits.max), dtype)


def complex_numbers(dtype: str, parts: tuple[float, ...]) -> Array:
    """All pairs of parts."""
    made = np.empty(len(parts) ** 2, dtype)
    made.real, made.imag = np.array(list(itertools.product(parts, parts))).T
    return made


PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.25, 50.0, -100.0, 1e-3, 1e-20, INF, -INF, NAN)
FEW_PARTS = (0.0, -0.0, 1.0, -1.0, 0.5, -3.0, INF, NAN)


def numbers(dtype: str, few: bool = False) -> Array:
    """The numbers to try in a dtype."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return few_real_numbers(dtype) if few else real_numbers(dtype)
    if kind == "c":
        return complex_numbers(dtype, FEW_PARTS if few else PARTS)
    return integers(dtype)


def distance(a: Array, b: Array) -> Array:
    """How many units in the last place two results are apart; infinitely many if one is not finite or of another sign.

    Of complex numbers the unit is that of the larger part, because neither library rounds the smaller one by itself.
    """
    if a.dtype.kind == "c":
        unit = np.spacing(np.maximum(np.abs(a.real), np.abs(a.imag)))
        apart = np.maximum(part_distance(a.real, b.real, unit), part_distance(a.imag, b.imag, unit))
        return apart
    if a.dtype.kind != "f":
        return np.where(a == b, 0.0, INF)
    return part_distance(a, b, np.spacing(np.maximum(np.abs(a), np.finfo(a.dtype).tiny)))


def part_distance(a: Array, b: Array, unit: Array) -> Array:
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.longdouble) - b.astype(np.longdouble)) / unit
    apart = np.where((a == b) & (np.signbit(a) == np.signbit(b)), 0.0, np.where((a == 0) & (b == 0), INF, apart))
    apart = np.where(np.isfinite(a) & np.isfinite(b), apart, np.where(a == b, 0.0, INF))
    return np.where(np.isnan(a) | np.isnan(b), np.where(np.isnan(a) & np.isnan(b), 0.0, INF), apart).astype(np.float64)


def outcome(call: Callable[..., Any], module: Any, tensors: list[Any], gradients: bool) -> Any:
    """The results as arrays, with the gradients of their sum if asked for; or the error."""
    try:
        made = call(module, *tensors)
        results = list(made) if isinstance(made, (tuple, list)) else [made]
        if gradients and results[0].requires_grad:
            wanted = [tensor for tensor in tensors if tensor.requires_grad]
            ones = module.ones_like(results[0])
            results += [g for g in module.autograd.grad(results[0], wanted, ones, allow_unused=True) if g is not None]
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    return [result.numpy(force=True) for result in results]


def tensors_of(module: Any, arrays: list[Array], apart: bool, gradients: bool) -> list[Any]:
    """Tensors of arrays; `apart`, with a hole after each element."""
    made = []
    for array in arrays:
        tensor = module.from_numpy(np.repeat(array, 2))[::2] if apart else module.from_numpy(array.copy())
        made.append(tensor.requires_grad_() if gradients and array.dtype.kind in "fc" else tensor)
    return made


def differences(call: Callable[..., Any], arrays: list[Array], tolerance: float, gradients: bool = False) -> list[str]:
    """Where pullback agrees with torch in neither of its ways: for these numbers, with holes between them, and many."""
    ways = [outcome(call, torch, tensors_of(torch, arrays, apart, gradients), gradients) for apart in (False, True)]
    repeats = MANY // len(arrays[0]) + 1
    found: list[str] = []
    for layout in ("close", "apart", "many") if arrays[0].dtype.kind in "fc" else ("close", "apart"):
        given = [np.tile(array, repeats) for array in arrays] if layout == "many" else arrays
        ours = outcome(call, pullback, tensors_of(pullback, given, layout == "apart", gradients), gradients)
        if isinstance(ours, tuple) or isinstance(ways[0], tuple):
            if ours != ways[0]:
                found.append(f"{layout}: torch {ways[0]}, pullback {ours}")
            continue
        for place, mine in enumerate(ours):
            theirs = [way[place] for way in ways]
            if mine.dtype != theirs[0].dtype:
                found.append(f"{layout}: dtype {theirs[0].dtype} in torch, {mine.dtype} here")
                continue
            if layout == "many" and mine.shape == given[0].shape:
                if distance(mine, np.tile(mine[: len(arrays[0])], repeats)).any():
                    found.append(f"{layout}: equal numbers give different results")
                mine = mine[: len(arrays[0])]
            if mine.shape != theirs[0].shape:
                found.append(f"{layout}: shape {theirs[0].shape} in torch, {mine.shape} here")
                continue
            apart = np.minimum(*[distance(np.atleast_1d(way), np.atleast_1d(mine)) for way in theirs])
            for where in np.flatnonzero(apart > tolerance)[:2]:
                at = [array[where] for array in arrays] if mine.shape == arrays[0].shape else where
                found.append(
                    f"{layout} result {place} at {at}: {theirs[0].flat[where]} in torch, {mine.flat[where]} here"
                    f" ({apart[where]:.3g} units apart)"
                )
    return found
