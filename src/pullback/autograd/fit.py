"""Fitting a gradient to the edge it travels: undoing broadcasting, casting, or saying what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign
from pullback._dtype import FROM_NUMPY
from pullback._modes import is_grad_enabled
from pullback._runtime import messages
from pullback._tensor import Tensor, extra_of, ndarray, wrap
from pullback._thresholds import LARGE
from pullback.autograd import who
from pullback.autograd.node import AccumulateGrad, Node, accumulator_of
from pullback.kernels.numpy.reduce.dims import column_sums, total


def fit(grad: Any, target: Node, nr: int, source: Node | None, index: int) -> Any:
    """A gradient in the shape and dtype of output `nr` of `target`."""
    shape, dtype = target.output_meta(nr)
    if shape is None:
        return grad
    array = grad._array if issubclass(type(grad), Tensor) else grad
    if array.shape == shape and array.dtype is dtype:
        return grad
    if array.shape != shape and not was_of(target, array.shape):
        if not expands_to(shape, array.shape):
            who = "Function" if source is None else f"Function {source.name()}"
            raise RuntimeError(
                f"{who} returned an invalid gradient at index {index} - got {messages.shape_text(array.shape)} but "
                f"expected shape compatible with {messages.shape_text(shape)}" + backward_of(source)
            )
        grad = sum_to(grad, shape)
    array = grad._array if isinstance(grad, Tensor) else grad
    if dtype is not None and array.dtype != dtype:
        grad = cast_to(grad, array.dtype, dtype, source, index)
    return grad


def was_of(target: Node, shape: tuple[int, ...]) -> bool:
    """Whether a leaf had this shape when it was used, and was given another one in place since."""
    return type(target) is AccumulateGrad and shape in extra_of(target.variable).former


def fit_leaf(grad: Any, leaf: Tensor, source: Node, index: int) -> Any:
    """A gradient in the shape and dtype of a leaf; most often that of a bias, the sum over a batch."""
    like = leaf._array
    if leaf._extra is None and type(grad) is ndarray and grad.ndim == 2:
        if grad.shape[1:] == like.shape and grad.dtype is like.dtype:
            return column_sums(grad)
    elif leaf._extra is None and type(grad) is not Tensor and is_foreign(grad) and grad.ndim == 2:
        if grad.shape[1:] == like.shape and grad.dtype is like.dtype:
            summed = grad.by(column_sums)
            if summed is not None:
                return summed
    elif isinstance(grad, Tensor) and is_foreign(array := grad._array) and not is_grad_enabled() and array.ndim == 2:
        if array.shape[1:] == like.shape and array.dtype is like.dtype:
            summed = array.by(column_sums)
            if summed is not None:
                return wrap(summed)
    return fit(grad, accumulator_of(leaf), 0, source, index)


def backward_of(source: Any) -> str:
    """Where the node that returned a gradient was made, and its backward is defined."""
    if source is None:
        return ""
    return (who.defined(source.formula(), "its backward") if hasattr(source, "formula") else "") + who.made(source)


def expands_to(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """True if a tensor of shape `small` broadcasts to shape `large`."""
    if len(small) > len(large):
        return False
    pairs = zip(reversed(small), reversed(large), strict=False)
    return all(n == m or n == 1 for n, m in pairs)


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Undo broadcasting: sum over the dimensions along which `shape` was stretched."""
    have = grad._array.shape if isinstance(grad, Tensor) else grad.shape
    lead = len(have) - len(shape)
    dims = (*range(lead), *(i for i, n in enumerate(shape, lead) if n == 1 and have[i] != 1))
    if isinstance(grad, Tensor):
        if is_foreign(grad._array) and not is_grad_enabled():
            summed = grad._array.by(sum_to, shape)
            if summed is not None:
                return wrap(summed)
        if not shape:
            return grad.sum()
        return grad.sum(dims, True).view(shape) if lead else grad.sum(dims, True)
    if type(grad) is not ndarray and is_foreign(grad):
        return sum_to(wrap(grad), shape)._array
    few = grad.size < LARGE and grad.itemsize != 2  # half precision is summed in single
    summed = np.add.reduce(grad, axis=dims, keepdims=True) if few else total(grad, dims, True)
    return summed.reshape(shape)


def cast_to(grad: Any, have: np.dtype[Any], wanted: np.dtype[Any], source: Node | None, index: int) -> Any:
    """A gradient in another dtype; a complex one reaching a real input keeps its real part."""
    if have.kind == "c" and wanted.kind != "c":
        grad = grad.real
    if isinstance(grad, Tensor):
        return grad.to(FROM_NUMPY[wanted])
    return grad.astype(wanted, copy=False)


def summed(before: Any, grad: Any) -> Any:
    """The sum of two gradients of any kind."""
    if isinstance(before, Tensor) and is_foreign(before._array) and is_foreign(grad._array) and not is_grad_enabled():
        made = before._array.by(np.add, grad._array)
        if made is not None:
            return wrap(made)
    return before + grad
