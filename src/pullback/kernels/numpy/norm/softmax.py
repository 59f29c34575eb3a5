"""softmax and log_softmax along one dimension of an array, and their derivatives; logsumexp over any."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import is_half, rounded, widened
from pullback.kernels.compiled import room

AnyArray = np.ndarray[Any, Any]


def as_array(made: Any) -> AnyArray:
    """What NumPy computed, an array also where it has no dimensions."""
    return made if made.ndim else np.asarray(made)


def centred(x: AnyArray, dim: int) -> AnyArray:
    """x minus its maximum along a dimension, so that no exponential overflows."""
    x = widened(x)
    top = (np.maximum if x.size else np.add).reduce(x, dim, None, None, True)
    return as_array(np.subtract(x, top))


def of_integers(name: str, x: AnyArray, dim: int) -> AnyArray:
    """No kernel takes integers; but where there are none to take, none is missing."""
    if x.size:
        raise TypeError(f"{name} of floats only")
    return x.astype(x.dtype) if x.ndim == 0 else np.moveaxis(x, dim, dim).copy()  # a dim that is not there raises


def softmax(x: AnyArray, dim: int) -> AnyArray:
    """exp(x) / sum(exp(x))."""
    if x.ndim > 1 and not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("softmax", dim, x)) is not None:
        return made  # type: ignore[no-any-return]
    if x.dtype.kind not in "fV":
        return of_integers("softmax", x, dim)
    out = centred(x, dim)
    np.exp(out, out)
    np.true_divide(out, np.add.reduce(out, dim, None, None, True), out)
    return rounded(out, x.dtype)


def softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """output * (grad - sum(grad * output))."""
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("softmax_backward", dim, grad, output)) is not None:
        return made  # type: ignore[no-any-return]
    dtype, grad, output = grad.dtype, widened(grad), widened(output)
    out = as_array(np.multiply(grad, output))
    out -= output * np.add.reduce(out, axis=dim, keepdims=True)
    return rounded(out, dtype)


def log_softmax(x: AnyArray, dim: int) -> AnyArray:
    """x - log(sum(exp(x)))."""
    if x.ndim > 1 and not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("log_softmax", dim, x)) is not None:
        return made  # type: ignore[no-any-return]
    if x.dtype.kind not in "fV":
        return of_integers("log_softmax", x, dim)
    out = centred(x, dim)
    total = np.add.reduce(np.exp(out), dim, None, None, True)
    if is_half(x.dtype) and dim in (-1, x.ndim - 1):  # along the last dimension torch keeps both in half precision
        total = widened(np.log(widened(total.astype(x.dtype))).astype(x.dtype))
    else:
        total = np.log(total)
    np.subtract(out, total, out)
    return rounded(out, x.dtype)


def log_softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """grad - exp(output) * sum(grad)."""
    compiled = room("rows.softmax")
    if compiled is not None and (made := compiled.run("log_softmax_backward", dim, grad, output)) is not None:
        return made  # type: ignore[no-any-return]
    dtype, grad, output = grad.dtype, widened(grad), widened(output)
    out = as_array(np.exp(output))
    out *= np.add.reduce(grad, axis=dim, keepdims=True)
    return rounded(np.subtract(grad, out, out=out), dtype)


def logsumexp(x: AnyArray, axis: Any, keepdim: bool) -> AnyArray | None:
    """log(sum(exp(x))) over `axis`, None for all, by a compiled kernel; None where NumPy has to do it."""
    compiled = room("rows.softmax")
    if compiled is None or not x.ndim:
        return None
    dims = range(x.ndim) if axis is None else [d % x.ndim for d in (axis if type(axis) is tuple else (axis,))]
    return compiled.logsumexp(x, dims, keepdim)  # type: ignore[no-any-return]
