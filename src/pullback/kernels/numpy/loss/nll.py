"""The negative log likelihood of target classes: picking one number of each row, with weights and ignored targets."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.kinds import answered
from pullback._arrays.memory import row_major
from pullback.kernels.compiled import room
from pullback.kernels.numpy.index.subscript import which_outside
from pullback.kernels.numpy.norm.rows import number

AnyArray = np.ndarray[Any, Any]


def picked(x: AnyArray, target: AnyArray, weight: AnyArray | None, ignore_index: int) -> tuple[Any, Any, Any]:
    """Indices that pick the target's element of each row, the rows' weights, and which rows count (None: all)."""
    classes = x.shape[1] if x.ndim > 1 else x.shape[0]
    counts = None
    if ignore_index < 0 or ignore_index >= classes:
        counts = None if bad_targets(target, classes) is None else target != ignore_index
    elif (target == ignore_index).any():
        counts = target != ignore_index
    if counts is not None:
        target = np.where(counts, target, 0)
        wrong = bad_targets(target[counts], classes)
        if wrong is not None:
            raise IndexError(f"Target {wrong} is out of bounds." + which_outside(target, classes, 0, "target"))
    weights = None if weight is None else weight[target]
    if counts is not None:
        weights = counts.astype(x.dtype) if weights is None else np.where(counts, weights, weights.dtype.type(0))
    if x.ndim == 1:
        return (target,), weights, counts
    if x.ndim == 2:
        return (np.arange(x.shape[0]), target), weights, counts
    n, height, width = target.shape
    grid = (np.arange(n)[:, None, None], target, np.arange(height)[:, None], np.arange(width))
    return grid, weights, counts


@answered(meta=lambda *args: None)
def bad_targets(target: AnyArray, classes: int) -> Any:
    """The first target that is not a class; None if all are."""
    if target.size == 0 or (target.min() >= 0 and target.max() < classes):
        return None
    wrong = (target < 0) | (target >= classes)
    return target[wrong][0] if target.ndim else target


def nll_loss(
    x: AnyArray, target: AnyArray, weight: AnyArray | None, reduction: int, ignore_index: int
) -> tuple[AnyArray, AnyArray]:
    """The loss, and the weight that a mean divides by."""
    compiled = room("rows.nll") if weight is None and reduction else None
    if compiled is not None and ignore_index < 0 and x.dtype.char in "fd":
        few = compiled.picking(x.dtype.char, reduction == 1)(x, target)
        if few is not None:
            return few, number(len(x), x.dtype)
    if compiled is not None and (made := compiled.loss(x, target, reduction == 1, ignore_index, False)) is not None:
        return made[0], number(made[1], x.dtype)
    if not x.shape[1 if x.ndim > 1 else 0] and target.size and (target == ignore_index).all():
        x, weight = np.zeros((1,) if x.ndim == 1 else (len(x), 1, *x.shape[2:]), x.dtype), None  # nothing is looked at
    index, weights, counts = picked(x, target, weight, ignore_index)
    loss = np.negative(x[index])
    if weights is not None:
        # An ignored row contributes nothing, even where its log probability is infinite.
        loss = loss * weights if counts is None else np.where(counts, loss * weights, x.dtype.type(0))
    if reduction == 0 and x.ndim > 1:
        return row_major(loss), np.zeros((), x.dtype)
    add = cascade if is_half(x.dtype) else partial(np.add.reduce, axis=None)
    total_weight = np.asarray(target.size if weights is None else add(weights), x.dtype)
    total = add(loss)
    return (np.divide(total, total_weight) if reduction == 1 else total), total_weight


LEVELS = 8
"""Of partial sums, in `cascade`."""


def cascade(terms: AnyArray) -> AnyArray:
    """The sum of half precision as torch adds losses: rounded after each addition, but in groups of groups.

    The first term is a group by itself, then `step` terms make one, and so do the sums of groups on the next level.
    """
    power = max(4, max(terms.size - 1, 0).bit_length() // LEVELS)
    step = 1 << power
    parts, level = [], terms.reshape(-1)
    for _ in range(LEVELS - 1):
        level = np.concatenate((np.zeros(step - 1, terms.dtype), level))
        whole = level.size // step * step
        parts.append(in_turn(level[whole:]))
        level = in_turn(level[:whole].reshape(-1, step).T)
    return in_turn(np.stack([*parts, in_turn(level)]))


def in_turn(terms: AnyArray) -> AnyArray:
    """The sum over the first dimension, rounded after each addition."""
    total = np.zeros(terms.shape[1:], terms.dtype)
    for term in terms:
        total = total + term
    return np.asarray(total)


@answered(meta=lambda *args: None)
def cross_entropy(x: AnyArray, target: AnyArray, reduction: int, ignore_index: int) -> Any:
    """The mean or sum of log(sum(exp(x))) - x[target] over the rows of a matrix; None where that must be two steps."""
    compiled = room("rows.nll") if reduction else None
    made = None if compiled is None else compiled.loss(x, target, reduction == 1, ignore_index, True)
    return None if made is None else made[0]


def nll_loss_backward(
    grad: AnyArray,
    x: AnyArray,
    target: AnyArray,
    weight: AnyArray | None,
    reduction: int,
    ignore_index: int,
    total_weight: AnyArray,
) -> AnyArray:
    """Minus the gradient, at the target of each row that counts."""
    compiled = room("rows.nll") if weight is None and reduction and grad.ndim == 0 else None
    if compiled is not None:
        value = -grad.item() / (total_weight.item() or 1.0) if reduction == 1 else -grad.item()
        made = compiled.backward(x, target, value, ignore_index)
        if made is not None:
            return made  # type: ignore[no-any-return]
    out = np.zeros(x.shape, x.dtype)
    if not out.size:
        return out
    index, weights, counts = picked(x, target, weight, ignore_index)
    value = np.negative(grad)
    if reduction == 1:
        value = np.divide(value, total_weight)
    if weights is not None:
        value = np.multiply(value, weights) if counts is None else np.where(counts, value * weights, x.dtype.type(0))
    out[index] = value
    return out
