"""New tensors after the pattern of another: zeros_like and its family, new_zeros and its family."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.kinds import made_on
from pullback._arrays.layout import strided
from pullback._arrays.packed import packed
from pullback._arrays.sizes import allocated, check_sizes, in_torch_words
from pullback._dtype import Number, dtype
from pullback._op.declare import spaces
from pullback._op.define import function
from pullback._op.overrides import overriding_class
from pullback._tensor import Parameter, Tensor
from pullback.ops.create import data
from pullback.ops.create.copy import order_of_memory
from pullback.ops.create.data import REQUIRED, as_dtype, check_layout, claimed, finished, missing, pinned
from pullback.ops.create.filled import fill_number, filled_array, sizes_of, strided_array


def pattern(name: str, input: Any) -> Tensor:
    """The tensor to make another like, or torch's TypeError."""
    if input is REQUIRED:
        raise missing(name, "input")
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


@in_torch_words
def array_like(array: np.ndarray[Any, Any], target: np.dtype[Any], format: Any = None) -> np.ndarray[Any, Any]:
    """An uninitialised array of the same shape, and the same order of memory unless `format` says otherwise."""
    if array.flags.c_contiguous and format is None:
        return np.empty(array.shape, target)
    order = order_of_memory(array, format)
    return np.empty([array.shape[d] for d in order], target).transpose(np.argsort(order))


def new_like(
    name: str, input: Any, value: Number | None, dtype: Any, device: Any, requires_grad: bool, memory_format: Any,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The work of the _like functions: a new leaf filled with `value`, or not at all."""
    source = pattern(name, input)
    if layout is None:
        layout = source.layout
    if layout is not strided:
        if value:
            raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
        kind = as_dtype(name, dtype) or source.dtype
        dense = source.dense_dim() if source.layout is layout else 0  # type: ignore[attr-defined]
        return data.without_entries(name, layout, source.shape, kind, requires_grad, dense)  # type: ignore[no-any-return]
    kind = None if type(source) in (Tensor, Parameter) else overriding_class((source,))
    if kind is not None:
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "memory_format": memory_format}
        args = (source, value) if name == "full_like" else (source,)
        return kind.__torch_function__(spaces["torch"][name], (kind,), args, options)  # type: ignore[attr-defined, no-any-return]
    target = as_dtype(name, dtype) or source.dtype
    place = source.device if device is None else device
    array = made_on(place, filled_like, source._array, value, target, memory_format)
    out = finished(name, pinned(array) if pin_memory else array, requires_grad)
    return claimed(out) if type(source) in (Tensor, Parameter) else out


def filled_like(pattern: np.ndarray[Any, Any], value: Number | None, target: dtype, format: Any) -> Any:
    """An array like another, every element `value` if there is one."""
    array = array_like(pattern, target.stored, format)
    if target.packed:
        array = packed(array, target.stored)  # which converts what is written
    if value is not None:
        array[...] = (convert_number if array.size == 1 else exact_number)(value, target) if value else value
    return array


@function(nested="shape", raw=True, method=False, vmap="like")
def zeros_like(
    input: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Create a tensor of zeros with the shape, dtype and device of `input`, as far as no others are given.

    The strides are those of the input too, unless `memory_format` asks for another order.
    """
    return new_like("zeros_like", input, 0, dtype, device, requires_grad, memory_format, layout, pin_memory)


@function(nested="shape", raw=True, method=False, vmap="like")
def ones_like(
    input: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Create a tensor of ones with the shape, dtype and device of `input`, as far as no others are given.

    The strides are those of the input too, unless `memory_format` asks for another order.
    """
    return new_like("ones_like", input, 1, dtype, device, requires_grad, memory_format, layout, pin_memory)


@function(nested="shape", raw=True, method=False, vmap="like")
def empty_like(
    input: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Create an uninitialised tensor with the shape, dtype and device of `input`, as far as no others are given.

    The strides are those of the input too, unless `memory_format` asks for another order.
    """
    return new_like("empty_like", input, None, dtype, device, requires_grad, memory_format, layout, pin_memory)


@function(nested="shape", raw=True, method=False, vmap="like")
def full_like(
    input: Any = REQUIRED, fill_value: Any = REQUIRED, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Create a tensor with the shape, dtype and device of `input`, filled with the number `fill_value`.

    `dtype` and `device` replace those of the input; `memory_format` asks for another order in memory.
    """
    pattern("full_like", input)
    if fill_value is REQUIRED:
        raise missing("full_like", "fill_value")
    value = fill_number("full_like", fill_value, 2)
    return new_like("full_like", input, value, dtype, device, requires_grad, memory_format, layout, pin_memory)


# ------------------------------------------------------------------ methods


def overridden(self: Tensor, name: str) -> bool:
    """True for a tensor of a transform whose method of that name was passed by: `Tensor.new_zeros(batch, 3)`."""
    return type(self) is not Tensor and getattr(type(self), name) is not getattr(Tensor, name)


@function(raw=True, space=None)
def new_zeros(
    self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor of zeros of the given shape, with the dtype and device of this one unless given."""
    if overridden(self, "new_zeros"):
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout}
        return type(self).new_zeros(self, *args, **options, **({} if size is None else {"size": size}))
    if (kept := self.layout if layout is None else layout) is not strided:
        shape, kind = sizes_of("new_zeros", args, size), as_dtype("new_zeros", dtype) or self.dtype
        return data.without_entries("new_zeros", kept, shape, kind, requires_grad)  # type: ignore[no-any-return]
    shape = sizes_of("new_zeros", args, size)
    check_sizes(shape)
    target = as_dtype("new_zeros", dtype) or self.dtype
    array = made_on(self.device if device is None else device, allocated, np.zeros, shape, target.stored)
    return claimed(finished("new_zeros", pinned(array) if pin_memory else array, requires_grad))


@function(raw=True, space=None)
def new_ones(
    self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor of ones of the given shape, with the dtype and device of this one unless given."""
    if overridden(self, "new_ones"):
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout}
        return type(self).new_ones(self, *args, **options, **({} if size is None else {"size": size}))
    if (self.layout if layout is None else layout) is not strided:
        raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
    shape = sizes_of("new_ones", args, size)
    check_sizes(shape)
    target = as_dtype("new_ones", dtype) or self.dtype
    array = made_on(self.device if device is None else device, allocated, np.ones, shape, target.stored)
    return claimed(finished("new_ones", pinned(array) if pin_memory else array, requires_grad))


@function(raw=True, space=None)
def new_empty(
    self: Tensor, *args: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create an uninitialised tensor of the given shape, with the dtype and device of this one unless given."""
    if overridden(self, "new_empty"):
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout}
        return type(self).new_empty(self, *args, **options, **({} if size is None else {"size": size}))
    if (kept := self.layout if layout is None else layout) is not strided:
        shape, kind = sizes_of("new_empty", args, size), as_dtype("new_empty", dtype) or self.dtype
        return data.without_entries("new_empty", kept, shape, kind, requires_grad)  # type: ignore[no-any-return]
    shape = sizes_of("new_empty", args, size)
    check_sizes(shape)
    target = as_dtype("new_empty", dtype) or self.dtype
    array = made_on(self.device if device is None else device, allocated, np.empty, shape, target.stored)
    return claimed(finished("new_empty", pinned(array) if pin_memory else array, requires_grad))


@function(raw=True, explained=True, space=None)
def new_full(
    self: Tensor, size: Any, fill_value: Any = REQUIRED, *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor of shape `size` filled with `fill_value`, with the dtype and device of this one unless given."""
    if overridden(self, "new_full") and fill_value is not REQUIRED:
        options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout}
        return type(self).new_full(self, size, fill_value, **options)
    if (self.layout if layout is None else layout) is not strided:
        raise NotImplementedError("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
    if fill_value is REQUIRED:
        raise missing("new_full", "fill_value")
    shape = sizes_of("new_full", (tuple(size),))
    value = fill_number("new_full", fill_value, 2)
    check_sizes(shape)
    target = as_dtype("new_full", dtype) or self.dtype
    array = made_on(self.device if device is None else device, filled_array, shape, value, target)
    return claimed(finished("new_full", pinned(array) if pin_memory else array, requires_grad))


@function(raw=True, explained=True, space=None)
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create an uninitialised tensor of shape `size` with strides `stride` (counted in elements).

    It has the dtype and device of this tensor unless others are given.
    """
    check_layout(layout)
    target = as_dtype("new_empty_strided", dtype) or self.dtype
    place = self.device if device is None else device
    array = made_on(place, strided_array, "new_empty_strided", size, stride, target)
    return claimed(finished("new_empty_strided", pinned(array) if pin_memory else array, requires_grad))
