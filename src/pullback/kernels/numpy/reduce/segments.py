"""Reductions over segments: neighbouring elements of a dimension, of lengths that may differ."""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]

UFUNCS = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
STARTS = {"sum": 0.0, "mean": 0.0, "max": -np.inf, "min": np.inf, "prod": 1.0}


def segment_numbers(lengths: AnyArray) -> AnyArray:
    """For each element the number of its segment, counted over all rows of `lengths`."""
    flat = lengths.reshape(-1)
    return np.repeat(np.arange(flat.size), flat)


def rows_of(data: AnyArray, lengths: AnyArray) -> AnyArray:
    """The elements that belong to segments, all rows one after the other."""
    axis = lengths.ndim - 1
    rows = data.reshape(-1, *data.shape[axis:]) if axis else data[None]
    totals = np.add.reduce(lengths.reshape(-1, lengths.shape[-1]), axis=1)
    return np.concatenate([row[:total] for row, total in zip(rows, totals)]) if len(rows) else rows.reshape(0, 1)


def reduce(data: AnyArray, how: str, lengths: AnyArray, initial: float | None) -> AnyArray:
    """The sum, mean, max, min or product of each segment."""
    tail = data.shape[lengths.ndim :]
    start = STARTS[how] if initial is None else initial
    out = np.full((lengths.size, *tail), start, data.dtype)
    UFUNCS[how].at(out, segment_numbers(lengths), rows_of(data, lengths))
    if how == "mean":
        count = lengths.reshape(-1, *[1] * len(tail))
        empty = data.dtype.type(np.nan if initial is None else initial)
        out = np.where(count == 0, empty, out / count.astype(data.dtype))
    return out.reshape(*lengths.shape, *tail)


def reduce_backward(
    grad: AnyArray, result: AnyArray, data: AnyArray, how: str, lengths: AnyArray, initial: float | None
) -> AnyArray:
    """The gradient of the elements."""
    tail = data.shape[lengths.ndim :]
    numbers, elements = segment_numbers(lengths), rows_of(data, lengths)
    grad, result = grad.reshape(-1, *tail), result.reshape(-1, *tail)
    parts = grad[numbers]
    if how == "mean":
        parts = parts / lengths.reshape(-1)[numbers].reshape(-1, *[1] * len(tail)).astype(data.dtype)
    elif how in ("max", "min"):
        reached = (elements == result[numbers]) | np.isnan(elements)
        count = np.zeros(grad.shape, data.dtype)
        np.add.at(count, numbers, reached)
        parts = np.where(reached, parts / np.maximum(count, 1)[numbers], data.dtype.type(0))
    elif how == "prod":
        parts = parts * other_factors(elements, result, numbers, 1.0 if initial is None else initial)
    return scattered(parts, data, lengths)


def other_factors(elements: AnyArray, result: AnyArray, numbers: AnyArray, initial: float) -> AnyArray:
    """The product of all other elements of the segment: by division, or one by one where an element is zero."""
    out = result[numbers] / elements
    for place in zip(*np.nonzero((elements == 0) | np.isnan(elements))):
        others = numbers == numbers[place[0]]
        others[place[0]] = False
        out[place] = initial * np.multiply.reduce(elements[(others, *place[1:])])
    return out


def scattered(parts: AnyArray, data: AnyArray, lengths: AnyArray) -> AnyArray:
    """The rows of `rows_of` back in their places; elements of no segment have no gradient."""
    axis = lengths.ndim - 1
    out = np.zeros(data.shape, data.dtype)
    rows = out.reshape(-1, *data.shape[axis:]) if axis else out[None]
    at = 0
    for row, total in zip(rows, np.add.reduce(lengths.reshape(-1, lengths.shape[-1]), axis=1)):
        row[:total] = parts[at : at + total]
        at += total
    return out
