"""Sums of products on the device, as einsum says them: two operands at a time, by a product of matrices."""

from __future__ import annotations

import math
from typing import Any

from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.native import reduced
from pullback.kernels.cuda.products import product


def contracted(equation: str, operands: Any) -> Any:
    """The sums of products an equation names, `bi,oij,bj->bo`; None if no kernels can give them."""
    given, _, result = equation.replace(" ", "").partition("->")
    names = given.split(",")
    if "->" not in equation or "." in equation or len(names) != len(operands):
        return None
    if any([type(a) is not DeviceArray or a.dtype != operands[0].dtype or not a.size for a in operands]):
        return None
    if any([len(set(own)) != len(own) or len(own) != a.ndim for own, a in zip(names, operands, strict=True)]):
        return None
    known = list(zip(names, operands, strict=True))
    while len(known) > 1:
        (one, a), (other, b), *rest = known
        kept = {*result, *"".join([own for own, _ in rest])}
        made = multiplied(one, a, other, b, kept)
        if made is None:
            return None
        known = [made, *rest]
    own, out = known[0]
    out = summed(own, out, set(result))
    own = "".join([name for name in own if name in result])
    return None if out is None or len(own) != len(result) else contiguous(out.transpose([own.index(n) for n in result]))


def summed(names: str, array: Any, kept: set[str]) -> Any:
    """Sums over the dimensions that nobody asks for."""
    away = [d for d, name in enumerate(names) if name not in kept]
    return reduced("sum", array, away, False) if away else array


def multiplied(one: str, a: Any, other: str, b: Any, kept: set[str]) -> tuple[str, Any] | None:
    """Two operands as one, without the dimensions that both have and nobody asks for any more."""
    a, b = summed(one, a, kept | {*other}), summed(other, b, kept | {*one})
    if a is None or b is None:
        return None
    one, other = "".join([n for n in one if n in kept | {*other}]), "".join([n for n in other if n in kept | {*one}])
    size = dict(zip(one, a.shape, strict=True)) | dict(zip(other, b.shape, strict=True))
    both = [n for n in one if n in other and n in kept]
    inner = [n for n in one if n in other and n not in kept]
    left, right = [n for n in one if n not in other], [n for n in other if n not in one]
    names = "".join([*both, *left, *right])

    def ordered(own: str, array: Any, wanted: list[str]) -> Any:
        return array.transpose([own.index(n) for n in wanted])

    if not inner or (not left and not right):  # nothing to share between rows and columns
        first = ordered(one, a, [*both, *left, *inner])
        second = ordered(other, b, [*both, *right, *inner])
        m, n, k = len(both), len(both) + len(left), len(both) + len(right)
        first = first.reshape((*first.shape[:n], *[1] * len(right), *first.shape[n:]))
        second = second.reshape((*second.shape[:m], *[1] * len(left), *second.shape[m:k], *second.shape[k:]))
        out = first * second
        return names, reduced("sum", out, list(range(out.ndim - len(inner), out.ndim)), False) if inner else out

    def matrices(own: str, array: Any, rows: list[str], columns: list[str]) -> Any:
        shape = [math.prod([size[n] for n in part]) for part in (both, rows, columns)]
        return ordered(own, array, [*both, *rows, *columns]).reshape(shape)

    made = product(matrices(one, a, left, inner), matrices(other, b, inner, right))
    return None if made is None else (names, made.reshape([size[n] for n in names]))
