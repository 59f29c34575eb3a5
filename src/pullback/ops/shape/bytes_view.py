"""`x.view(dtype)`: the bytes of a tensor read as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.packed import packed
from pullback._dtype import FROM_NUMPY, dtype
from pullback._lazy import signs
from pullback._op.define import Array
from pullback._tensor import INFERENCE, Tensor, counter_of, fresh

DTYPE = dtype


def no_view(given: tuple[Any, ...]) -> TypeError:
    """Torch's error for arguments that are neither a dtype nor sizes."""
    kinds = ["torch.dtype" if type(value) is DTYPE else type(value).__name__ for value in given]
    marks = (
        f"      didn't match because some of the arguments have invalid types: (!{kinds[0]}!)\n"
        if len(kinds) == 1
        else ""
    )
    return TypeError(
        f"view() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:\n"
        f" * (torch.dtype dtype)\n{marks} * (tuple of ints size)\n{marks}"
    )


def view_dtype(self: Tensor, dtype: dtype) -> Tensor:
    """The bytes of a tensor read as another dtype. Not differentiable: the result is a new leaf."""
    refuse_lazy(self)
    array, target = self._array, dtype.stored
    if target.itemsize != array.dtype.itemsize:
        check_view_dtype(array, target)
    seen = array.view(np.ndarray).view(target)
    out = fresh(packed(seen, target) if dtype.packed else seen)
    out._counter = INFERENCE if self._counter is INFERENCE else counter_of(self)
    return out


def refuse_lazy(self: Tensor) -> None:
    """Raise torch's error for a tensor whose bytes are not those of its elements."""
    for lazy, what in zip(signs(self), ("conjugate view tensors", "tensors with negative bit set"), strict=True):
        if lazy:
            raise RuntimeError(f"torch.Tensor.view is not supported for {what} when converting to a different dtype.")


def check_view_dtype(array: Array, target: Any) -> None:
    """Raise torch's errors for bytes that cannot be regrouped."""
    size, stride = target.itemsize, array.dtype.itemsize
    text = (
        f"to view {FROM_NUMPY[array.dtype].scalar_type} as {FROM_NUMPY[target].scalar_type} (different element sizes)"
    )
    if array.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 {text}")
    if array.strides[-1] != stride:
        raise RuntimeError(f"self.stride(-1) must be 1 {text}, but got {array.strides[-1] // stride}")
    ratio = size // stride
    if ratio > 1 and array.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {text}, but got {array.shape[-1]}")
