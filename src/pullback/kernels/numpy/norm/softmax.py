"""softmax and log_softmax along one dimension of an array, and their derivatives; logsumexp over any."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np

from pullback._half import rounded, widened
from pullback.kernels.compiled import room
from pullback.kernels.numpy.math.numbers import few, total_of_few
from pullback.kernels.numpy.norm import rows

AnyArray = np.ndarray[Any, Any]
FEW = 16
"""Up to this many elements, Python's own numbers are quicker than arrays. A nan makes every sum nan, as it should."""
SMALL = 512
"""Up to this size, finding where the maximum is and reading it there beats a reduction."""

HARMLESS = 20.0
"""The exponentials of numbers up to this size keep all their digits, and so do sums of them."""
NEAR = 4.0
"""Up to this size numbers lose no digits by not being taken relative to their maximum."""


def centred(x: AnyArray, dim: int) -> AnyArray:
    """x minus its maximum along a dimension, so that no exponential overflows."""
    x = widened(x)
    if x.size == 0:
        return np.subtract(x, np.add.reduce(x, dim, None, None, True))
    if x.ndim == 1 and x.size <= SMALL and dim in (0, -1):
        return np.subtract(x, x[x.argmax(), ...])
    return np.subtract(x, np.maximum.reduce(x, dim, None, None, True))


def total(x: AnyArray, dim: int) -> AnyArray:
    """The sum along a dimension, which stays with size one; of a short vector a number."""
    if few(x):
        return total_of_few(x)
    return np.add.reduce(x, dim, None, None, True)


def softmax(x: AnyArray, dim: int) -> AnyArray:
    """exp(x) / sum(exp(x))."""
    if x.ndim > 1 and not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("softmax", dim, x)) is not None:
        return made  # type: ignore[no-any-return]
    if (dim == -1 or dim == 1) and rows.are_few(x):
        if rows.lie_within(x, HARMLESS):
            out = np.exp(x)
        else:
            out = np.subtract(x, rows.spread_maxima(x))
            np.exp(out, out)
        return np.true_divide(out, rows.spread_sums(out), out)
    if x.dtype.kind not in "fV":
        if not x.size:  # no kernel runs, so none is missing
            return (
                x.astype(x.dtype) if x.ndim == 0 else np.moveaxis(x, dim, dim).copy()
            )  # a dim that is not there raises
        raise TypeError("softmax of floats only")
    if x.ndim == 1 and 0 < x.size <= FEW and dim in (0, -1) and x.dtype.kind == "f":
        numbers = x.tolist()
        top = max(numbers)
        powers = [exp(number - top) for number in numbers]
        scale = sum(powers)
        return np.array([power / scale for power in powers], x.dtype)
    out = centred(x, dim)
    if type(out) is not np.ndarray:
        out = np.asarray(out)
    np.exp(out, out)
    np.true_divide(out, total(out, dim), out)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """output * (grad - sum(grad * output))."""
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("softmax_backward", dim, grad, output)) is not None:
        return made  # type: ignore[no-any-return]
    if (dim == -1 or dim == 1) and rows.are_few(output):
        out = np.multiply(grad, output)
        return np.subtract(out, output * rows.spread_sums(out), out)
    dtype, grad, output = grad.dtype, widened(grad), widened(output)
    out = np.asarray(np.multiply(grad, output))
    out -= output * np.add.reduce(out, axis=dim, keepdims=True)
    return rounded(out, dtype)


def log_softmax(x: AnyArray, dim: int) -> AnyArray:
    """x - log(sum(exp(x)))."""
    if x.ndim > 1 and not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("log_softmax", dim, x)) is not None:
        return made  # type: ignore[no-any-return]
    if (dim == -1 or dim == 1) and rows.are_few(x):
        if rows.lie_within(x, NEAR):
            out = np.exp(x)
            return np.subtract(x, np.log(rows.spread_sums(out), out), out)
        out = np.subtract(x, rows.spread_maxima(x))
        return np.subtract(out, np.log(rows.spread_sums(np.exp(out))), out)
    if x.dtype.kind not in "fV":
        if not x.size:  # no kernel runs, so none is missing
            return (
                x.astype(x.dtype) if x.ndim == 0 else np.moveaxis(x, dim, dim).copy()
            )  # a dim that is not there raises
        raise TypeError("log_softmax of floats only")
    if x.ndim == 1 and 0 < x.size <= FEW and dim in (0, -1) and x.dtype.kind == "f":
        numbers = x.tolist()
        top = max(numbers)
        scale = log(sum([exp(number - top) for number in numbers]))
        return np.array([number - top - scale for number in numbers], x.dtype)
    out = centred(x, dim)
    if type(out) is not np.ndarray:
        out = np.asarray(out)
    np.subtract(out, np.log(total(np.exp(out), dim)), out)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def log_softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """grad - exp(output) * sum(grad)."""
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("log_softmax_backward", dim, grad, output)) is not None:
        return made  # type: ignore[no-any-return]
    if (dim == -1 or dim == 1) and rows.are_few(grad) and output.dtype is grad.dtype:
        out = np.exp(output)
        out *= rows.spread_sums(grad)
        return np.subtract(grad, out, out)
    dtype, grad, output = grad.dtype, widened(grad), widened(output)
    out = np.asarray(np.exp(output))
    out *= np.add.reduce(grad, axis=dim, keepdims=True)
    return rounded(np.subtract(grad, out, out=out), dtype)


def logsumexp(x: AnyArray, axis: Any, keepdim: bool) -> AnyArray | None:
    """log(sum(exp(x))) over `axis`, None for all, by a compiled kernel; None where NumPy has to do it."""
    compiled = room("rows.softmax")
    if compiled is None or not x.ndim:
        return None
    dims = range(x.ndim) if axis is None else [d % x.ndim for d in (axis if type(axis) is tuple else (axis,))]
    return compiled.logsumexp(x, dims, keepdim)  # type: ignore[no-any-return]
