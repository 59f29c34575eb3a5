"""How many floating point operations a call does, for the ops where most of them happen."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from pullback._op.declare import functions, registry
from pullback._tensor import Tensor


@cache
def counted(known: int) -> dict[str, str]:
    """What ops declare about their operations, by the names of their events; again when more functions are known."""
    return {f"aten::{one.name}": one.flops for one in (*registry.values(), *functions.values()) if one.flops}


def flops_of(name: str, inputs: list[Any]) -> int:
    """The count of one call, as the op of that name declares it; 0 for those that declare nothing."""
    way = counted(len(functions)).get(name, "")
    shapes: list[tuple[int, ...]] = [tuple(t._array.shape) for t in inputs if isinstance(t, Tensor)]
    if way == "product" and len(shapes) == 2:
        return 2 * prod(shapes[0]) * shapes[1][-1]
    if way == "product_and_sum" and len(shapes) == 3:
        return 2 * prod(shapes[1]) * shapes[2][-1]
    if way == "elements" and shapes:
        return prod(shapes[0])
    if way == "convolution" and len(shapes) >= 2 and len(shapes[0]) == 4:
        return convolution(shapes[0], shapes[1], inputs)
    return 0


def convolution(image: tuple[int, ...], weight: tuple[int, ...], inputs: list[Any]) -> int:
    """Two for every weight, at every place of the output, for every sample."""
    settings = [value for value in inputs[3:] if not isinstance(value, (Tensor, str))]
    stride, padding, dilation = (
        (pair(value) for value in (*settings, 1, 0, 1)[:3]) if settings else ((1, 1), (0, 0), (1, 1))
    )
    places = 1
    for size, kernel, step, pad, gap in zip(image[2:], weight[2:], stride, padding, dilation, strict=True):
        places *= (size + 2 * pad - gap * (kernel - 1) - 1) // step + 1
    return 2 * image[0] * places * prod(weight)


def pair(value: Any) -> tuple[int, int]:
    """One number for both dimensions, or one for each."""
    return (value, value) if isinstance(value, int) else (value[0], value[-1])
