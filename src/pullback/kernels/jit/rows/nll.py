"""The negative log likelihood of target classes, and cross entropy, in one pass over the rows.

A target that is no class and is not ignored makes the answer None: the caller's NumPy path says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.kernels.jit.language import elementary
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, fold, scalar, share, spread, vector_of, write_row
from pullback.kernels.jit.runtime import calls
from pullback.kernels.jit.runtime.entries import Entry, again

Array = np.ndarray[Any, Any]
BLOCK = 256
"""Rows whose losses are added in one place before the places are."""


@cache
def loss_kernel(element: str, from_scores: bool) -> Callable[..., bool]:
    """For each block of rows: minus the sum of x at the targets, how many rows count, and whether a target is wrong.

    With `from_scores`, x are scores, and the logarithm of the sum of their exponentials is added for each row.
    """
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, x: Value, targets: Value, out: Value, n: Value, classes: Value, *more: Value) -> None:
        _, ignored = more
        with code.loop(code.begin, code.end) as block:
            total, count, wrong = (code.variable(code.const(0.0, "double")) for _ in range(3))
            last = code.select((block + 1) * BLOCK < n, (block + 1) * BLOCK, n)
            with code.loop(block * BLOCK, last) as row:
                target = code.load(targets, row, "i64")
                with code.when(code.compare("ne", target, ignored)):
                    inside = (target >= 0) & (target < classes)
                    with code.when(inside ^ 1):
                        wrong.set(code.const(1.0, "double"))
                    with code.when(inside):
                        source = code.at(x, row * classes, element)
                        picked = code.load(source, target, element)
                        loss = -picked
                        if from_scores:
                            (top,) = fold(code, classes, element, lambda i: (code.load(source, i, type),), ["top"])
                            high = spread(code, top)
                            (powers,) = fold(
                                code, classes, element,
                                lambda i: (elementary.exp(code, code.load(source, i, type) - high),), ["add"], 2,
                            )  # fmt: skip
                            loss = scalar(code, elementary.log, powers) - (picked - top)
                        total.set(total.get() + code.convert(loss, "double"))
                        count.set(count.get() + 1.0)
            for place, slot in enumerate((total, count, wrong)):
                code.store(slot.get(), out, block * 3 + place)

    params = [
        calls.array(dtype, "n*classes"),
        calls.array("int64", "n"),
        calls.array("float64", "blocks*3", write=True),
    ]
    params += [calls.integer(name) for name in ("n", "classes", "blocks", "ignored")]
    return calls.kernel(f"{'cross_entropy' if from_scores else 'nll'}_{dtype}", params, describe)


@cache
def picking(char: str, mean: bool) -> Callable[..., Any]:
    """A builtin that makes the loss of few rows, all of which count, from log probabilities; None for others."""
    element = ELEMENTS[char]
    name, dtype = f"nll_of_few_{DTYPES[element]}_{'mean' if mean else 'sum'}", DTYPES[element]
    note, otherwise = "minus the numbers at targets", lambda *args: None
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 2)
    code = entry.code
    x, target = entry.array(0, dtype), entry.array(1, "int64")
    (n, classes), (count,) = x.shape(2), target.shape(1)
    entry.require(code.compare("eq", n, count) & (n > 0) & (n <= BLOCK))
    places, numbers = entry.data(target.object), entry.data(x.object)
    total, inside = code.variable(code.const(0.0, "double")), code.variable(code.const(1, "i1"))
    with code.loop(0, n) as row:
        place = code.load(places, row, "i64")
        within = (place >= 0) & (place < classes)
        inside.set(inside.get() & within)
        with code.when(within):
            total.set(total.get() - code.convert(code.load(numbers, row * classes + place, element), "double"))
    entry.require(inside.get())
    loss = total.get() / code.convert(n, "double") if mean else total.get()
    made = entry.result(dtype, 0, [])
    code.store(code.convert(loss, element), entry.data(made), 0)
    return entry.builtin(made, note, otherwise)


def loss(x: Array, target: Array, mean: bool, ignore_index: int, from_scores: bool) -> tuple[Array, float] | None:
    """The sum or mean over the rows that count, and how many do; None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.ndim != 2 or not x.size or target.shape != x.shape[:1]:  # cross_entropy has not asked yet
        return None
    n, classes = x.shape
    blocks = -(-n // BLOCK)
    parts = np.empty(3 * blocks)
    grain = max(1, share(classes) // BLOCK)
    if not loss_kernel(element, from_scores)(x, target, parts, n, classes, blocks, ignore_index, blocks, grain):
        return None
    total, count, wrong = parts.tolist() if blocks == 1 else np.add.reduce(parts.reshape(-1, 3)).tolist()
    if wrong:
        return None
    if mean:
        total = total / count if count else float("nan")
    return np.array(total, x.dtype), count


@cache
def backward_kernel(element: str) -> Callable[..., bool]:
    """Rows of zeros with one value at the target; rows that are ignored have none."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(
        code: Code, targets: Value, out: Value, n: Value, classes: Value, ignored: Value, value: Value
    ) -> None:
        zero = code.const(0.0, type)
        with code.loop(code.begin, code.end) as row:
            place = code.at(out, row * classes, element)
            write_row(code, classes, element, lambda i: code.store(zero, place, i), 4)
            target = code.load(targets, row, "i64")
            inside = (target >= 0) & (target < classes)
            with code.when(inside & code.compare("ne", target, ignored)):
                code.store(value, place, target)

    params = [calls.array("int64", "n"), calls.array(dtype, "n*classes", write=True)]
    params += [calls.integer("n"), calls.integer("classes"), calls.integer(), calls.number()]
    return calls.kernel(f"nll_backward_{dtype}", params, describe, element=element)


def backward(x: Array, target: Array, value: float, ignore_index: int) -> Array | None:
    """The gradient of x: `value` at each target; None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.ndim != 2 or not x.size:
        return None
    n, classes = x.shape
    out = np.empty(x.shape, x.dtype)
    done = backward_kernel(element)(target, out, n, classes, ignore_index, value, n, share(classes))
    return out if done else None
