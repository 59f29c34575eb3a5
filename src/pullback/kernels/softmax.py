"""softmax and log_softmax along one dimension of an array, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]
HALF = np.dtype(np.float16)


def centred(x: AnyArray, dim: int) -> AnyArray:
    """x minus its maximum along a dimension, so that no exponential overflows."""
    if x.dtype is HALF:
        x = x.astype(np.float32)
    if x.size == 0:
        return x.copy()
    return np.subtract(x, np.maximum.reduce(x, axis=dim, keepdims=True))


def softmax(x: AnyArray, dim: int) -> AnyArray:
    """exp(x) / sum(exp(x))."""
    if x.dtype.kind != "f":
        raise TypeError("softmax of floats only")
    out = np.asarray(centred(x, dim))
    np.exp(out, out=out)
    out /= np.add.reduce(out, axis=dim, keepdims=True)
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """output * (grad - sum(grad * output))."""
    out = np.asarray(np.multiply(grad, output))
    out -= output * np.add.reduce(out, axis=dim, keepdims=True)
    return out


def log_softmax(x: AnyArray, dim: int) -> AnyArray:
    """x - log(sum(exp(x)))."""
    if x.dtype.kind != "f":
        raise TypeError("log_softmax of floats only")
    out = np.asarray(centred(x, dim))
    out -= np.log(np.add.reduce(np.exp(out), axis=dim, keepdims=True))
    return out if out.dtype is x.dtype else out.astype(x.dtype)


def log_softmax_backward(grad: AnyArray, output: AnyArray, dim: int) -> AnyArray:
    """grad - exp(output) * sum(grad)."""
    out = np.asarray(np.exp(output))
    out *= np.add.reduce(grad, axis=dim, keepdims=True)
    return np.subtract(grad, out, out=out)
