"""x[...] = value: the views of the subscript are made first, then one of them is overwritten.

    x[0] = value        select(0).copy_(value)          x.grad_fn = CopySlices
    x[idx] = value      index_put_([idx], value)        x.grad_fn = IndexPutBackward0
    x[0, idx] = value   select(0).index_put_(...)       x.grad_fn = CopySlices

A number is written as a tensor without dimensions. A tensor that nobody records is written to at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number
from pullback._arrays.memory import memory_of, overlaps_itself
from pullback._dtype import TYPE_NAME
from pullback._modes import is_grad_enabled, modes
from pullback._op.inplace import inplace
from pullback._tensor import INFERENCE, Parameter, Tensor, bump_version, wrap
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.index.subscript import BOOL, INT64
from pullback.ops.create.copy import copy_, fill_with_tensor
from pullback.ops.index.read import END, index_put_values, parts_of, select_at, sliced, take_apart
from pullback.ops.shape.reshape import expand, unsqueeze, view_
from pullback.ops.supported import warn_if_expanded


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """x[key] = value."""
    try:
        if assign_at_once(self, key, value):
            return
        if not isinstance(value, Tensor):
            value = number_tensor(self, value)
        if key is False:
            return
        kind = type(key)
        if key is Ellipsis:
            overwrite(self, value)
        elif key is None or key is True:
            overwrite(unsqueeze(self, 0), value)
        elif kind is int:
            overwrite(select_at(self, 0, key, 0), value)
        elif kind is slice:
            if not self._array.ndim:
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            overwrite(sliced(self, 0, key), value)
        else:
            view, indices = take_apart(self, parts_of(key))
            if indices:
                warn_if_expanded("index_put_", view, "indices] = tensor")
                inplace(index_put_values.op, view, (indices, without_leading_ones(value), False))
            else:
                overwrite(view, value)
    except Exception as error:
        trim(error)
        raise


def number_tensor(self: Tensor, value: Any) -> Tensor:
    """A number as a tensor without dimensions, of the dtype it is assigned to.

    Of NumPy's, torch takes the integers and those that are Python's own floats and complex numbers too.
    """
    if isinstance(value, (np.integer, np.float64, np.complex128)):
        value = value.item()
    if not isinstance(value, (bool, int, float, complex)) or isinstance(value, np.generic):
        kind = type(value)
        shown = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        raise TypeError(f"can't assign a {shown} to a {TYPE_NAME[self.dtype]}")
    if type(value) is int and not -END - 1 <= value <= END:
        raise ValueError("Overflow when unpacking long long")
    return wrap(np.asarray(convert_number(value, self.dtype), self._array.dtype))


def without_leading_ones(value: Tensor) -> Tensor:
    """A value without the dimensions of size one that broadcasting would add."""
    shape = value._array.shape
    first = 0
    while first < len(shape) and shape[first] == 1:
        first += 1
    return view_(value, shape[first:]) if first else value


def overwrite(view: Tensor, value: Tensor) -> None:
    """Write a value, broadcast, over all of a view."""
    shape = view._array.shape
    if shape == value._array.shape:
        copy_(view, value)
    elif not value._array.ndim:
        inplace(fill_with_tensor.op, view, (value,))
    else:
        kept = value._array.shape
        while kept and kept[0] == 1:
            kept = kept[1:]
        value = view_(value, kept)
        copy_(view, value if kept == shape else expand(value, shape))


# ------------------------------------------------------------------ the quick way


def assign_at_once(self: Tensor, key: Any, value: Any) -> bool:
    """Write straight into the array where nobody records and nothing needs torch's care. True if it was done."""
    if modes.active or (type(self) is not Tensor and type(self) is not Parameter) or self._counter is INFERENCE:
        return False
    array = self._array
    dtype = array.dtype
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        source = value._array
        if source.dtype is not dtype or (self._counter is value._counter and memory_of(source) is memory_of(array)):
            return False
    elif kind is float:
        if dtype.kind != "f" or not -65504.0 <= value <= 65504.0:
            return False
        source = value
    elif kind is int:
        if (dtype.kind != "f" and dtype is not INT64) or not -65504 <= value <= 65504:
            return False
        source = value
    else:
        return False
    if is_grad_enabled() and (wants_grad(self) or (source is not value and wants_grad(value))):
        return False
    plain = plain_key(key, array)
    if plain is None or (not array.flags.c_contiguous and overlaps_itself(array)):
        return False
    try:
        array[plain] = source
    except (IndexError, TypeError, ValueError):
        return False
    bump_version(self)
    return True


def plain_key(key: Any, array: Any) -> Any:
    """The subscript for NumPy, if it means the same there; None if torch's own rules are needed."""
    kind = type(key)
    if kind is int or key is Ellipsis:
        return key
    if kind is slice:
        return key if key.step is None or (type(key.step) is int and key.step > 0) else None
    if kind is Tensor:
        index = key._array
        return index if index.ndim and (index.dtype is INT64 or index.dtype is BOOL) else None
    if kind is not tuple or len(key) > array.ndim:
        return None
    parts = []
    for part in key:
        kind = type(part)
        if kind is Tensor:
            part = part._array
            if part.dtype is not INT64 or not part.ndim:
                return None
        elif kind is slice:
            if part.step is not None and (type(part.step) is not int or part.step <= 0):
                return None
        elif kind is not int:
            return None
        parts.append(part)
    if any(type(part) is np.ndarray for part in parts) and any(type(part) is int for part in parts):
        return None  # next to an index array NumPy takes an integer for one too, and may place dimensions otherwise
    return tuple(parts)


Tensor.__setitem__ = setitem  # type: ignore[attr-defined]
