"""Tensors from a shape: zeros, ones, empty, full, eye."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays import memory
from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.kinds import made_on
from pullback._arrays.layout import strided
from pullback._arrays.memory import overlaps_itself
from pullback._arrays.packed import packed
from pullback._arrays.sizes import (
    LARGEST,
    UNPACKING,
    allocated,
    check_ints,
    check_numel,
    check_sizes,
    in_torch_words,
    unpacking,
    without_bools,
)
from pullback._dtype import Number, defaults, dtype
from pullback._op.define import function
from pullback._op.out import end_history, of_transform, refuse_leaf, said_by
from pullback._runtime import messages
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, bump_version, wrap
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import wants_grad
from pullback.ops.create import data
from pullback.ops.create.copy import arranged
from pullback.ops.create.data import REQUIRED, as_dtype, check_layout, claimed, finished, missing, number_dtype, pinned

# ------------------------------------------------------------------ sizes


def sizes_of(name: str, args: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """The shape from `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`."""
    if not args:
        if size is None:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        args = (size,)
    first = args[0]
    if len(args) == 1 and isinstance(first, (tuple, list)):
        args = tuple(first)
    elif not is_int(first):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(first).__name__}")
    return tuple([one_size(name, position, value) for position, value in enumerate(args)])


def is_int(value: Any) -> bool:
    """True for what counts as an integer in a shape."""
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def int_of(value: Any) -> int | None:
    """The integer that one argument stands for, None if torch takes it for none: of tensors, one without dimensions."""
    return int(value) if is_int(value) and not getattr(value, "ndim", 0) else None


def one_size(name: str, position: int, value: Any) -> int:
    """One entry of a shape."""
    if type(value) is not int:
        if not is_int(value) and not (position and isinstance(value, bool)):  # as torch has it
            kind = messages.type_name(value)
            if position == 0:
                start = f"{name}(): argument 'size' (position 1) must be tuple of ints"
                raise TypeError(f"{start}, but found element of type {kind} at pos 0")
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {position + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            )
        value = int(value)
    if not -LARGEST - 1 <= value <= LARGEST:
        raise unpacking(name, "size", position)
    return value  # type: ignore[no-any-return]


def given(
    name: str, out: Tensor | None, array: np.ndarray[Any, Any], target: dtype | None, requires_grad: bool,
    operands: tuple[Any, ...] = (),
) -> Tensor:  # fmt: skip
    """The result of a creation function from some operands: a new leaf, or `out` with these elements."""
    if out is None:
        return claimed(finished(name, array, requires_grad))
    check_given(name, out, target)
    if out._tangent is not None:
        raise NotImplementedError(f"Trying to use forward AD with aten::{name} that does not support it.")
    if requires_grad and out.dtype.category < 2:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    if said_by(name).out_overlap != "unchecked" and overlaps_itself(out._array):
        raise RuntimeError(messages.OVERLAP)
    if said_by(name).out_keeps_shape and out._array.size == array.size:
        array = array.reshape(out._array.shape)
    resized = out._array.shape != array.shape
    if resized:
        if name == "arange" and out._array.size:
            warn(
                f"The number of elements in the out tensor of shape {messages.shape_text(out._array.shape)} is "
                f"{out._array.size} which does not match the computed number of elements {array.size}. Note that this "
                "may occur as a result of rounding error. The out tensor will be resized to a tensor of shape "
                f"({array.size},).",
            )
    kind = of_transform(out)
    if kind is not None:
        kind.receive(out, wrap(array), resize)
        return out
    if resized:
        resize(out, array)
        if said_by(name).out_resized:
            bump_version(out)  # a write of its own
    if name != "empty":  # which leaves what is there
        out._array[...] = array
        bump_version(out)
        end_history(name, out, [value for value in operands if isinstance(value, Tensor)])
    if out.is_leaf:
        out.requires_grad_(requires_grad)
    return out


def resize(tensor: Tensor, array: np.ndarray[Any, Any]) -> None:
    """Give a tensor the shape of an array, if it has another."""
    if tensor._array.shape != array.shape:
        tensor._array = memory.resized(tensor._array, array.shape)


def check_given(name: str, out: Tensor, target: dtype | None) -> None:
    """Raise, before anything is drawn or written, if `out` cannot take the elements."""
    if target is not None and target is not out.dtype:
        found = out.dtype.scalar_type
        raise RuntimeError(f"dtype {target.scalar_type} does not match dtype of out parameter ({found})")
    if said_by(name).out_resized and wants_grad(out):
        raise RuntimeError("cannot resize variables that require grad")
    refuse_leaf(name, [out])


def plain(value: Any) -> Any:
    """A number out of a NumPy scalar or a tensor of one element."""
    return value.item() if isinstance(value, (np.generic, Tensor)) else value


# ------------------------------------------------------------------ constant


@function(raw=True, method=False, out_overlap="unchecked")
def zeros(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor filled with zeros.

    The shape is given as separate ints or as one tuple. `dtype` is the default dtype unless given, and
    `requires_grad` asks autograd to record operations on the result.
    """
    try:
        shape = sizes_of("zeros", args, size)
        if layout is not None and layout is not strided:
            check_sizes(shape)
            return data.without_entries("zeros", layout, shape, as_dtype("zeros", dtype), requires_grad)  # type: ignore[no-any-return]
        if any(n < 0 for n in shape):
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        target = as_dtype("zeros", dtype)
        array = made_on(device, allocated, np.zeros, shape, (target or defaults.dtype).stored)
        return given("zeros", out, pinned(array) if pin_memory else array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, out_overlap="unchecked")
def ones(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor filled with ones.

    The shape is given as separate ints or as one tuple. `dtype` is the default dtype unless given, and
    `requires_grad` asks autograd to record operations on the result.
    """
    try:
        check_layout(layout)
        shape = sizes_of("ones", args, size)
        check_sizes(shape)
        target = as_dtype("ones", dtype)
        array = made_on(device, allocated, np.ones, shape, (target or defaults.dtype).stored)
        return given("ones", out, pinned(array) if pin_memory else array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, out_overlap="unchecked", out_resized=True)
def empty(
    *args: Any, size: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Create a tensor with uninitialised memory: its elements are whatever the memory held.

    The shape is given as separate ints or as one tuple, `dtype` is the default dtype unless given, and
    `memory_format` chooses the order of the elements in memory.
    """
    try:
        shape = sizes_of("empty", args, size)
        if layout is not None and layout is not strided:
            check_sizes(shape)
            return data.without_entries("empty", layout, shape, as_dtype("empty", dtype), requires_grad)  # type: ignore[no-any-return]
        check_sizes(shape)
        target = as_dtype("empty", dtype)
        array = made_on(device, empty_array, shape, (target or defaults.dtype).stored, memory_format)
        return given("empty", out, pinned(array) if pin_memory else array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


def empty_array(shape: tuple[int, ...], dtype: np.dtype[Any], format: Any) -> np.ndarray[Any, Any]:
    """The array of `empty`."""
    array: np.ndarray[Any, Any] = arranged(allocated(np.empty, shape, dtype), format)
    return array


@function(raw=True, explained=True, method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create an uninitialised tensor of shape `size` with the given strides.

    `stride` holds the step of each dimension, counted in elements.
    """
    check_layout(layout)
    target = as_dtype("empty_strided", dtype) or defaults.dtype
    array = made_on(device, strided_array, "empty_strided", size, stride, target)
    return claimed(finished("empty_strided", pinned(array) if pin_memory else array, requires_grad))


@in_torch_words
def strided_array(name: str, size: Any, stride: Any, target: dtype) -> np.ndarray[Any, Any]:
    """The array of `empty_strided`."""
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    check_ints(name, {"size": size, "stride": stride})
    size, stride = without_bools(size), without_bools(stride)
    check_sizes(tuple(size))
    reach = sum([(n - 1) * s for n, s in zip(size, stride, strict=True)]) + 1
    if any(s < 0 for s in stride) or (0 not in size and reach * target.itemsize > LARGEST):
        shapes = f"sizes={messages.shape_text(size)} and strides={messages.shape_text(stride)}"
        raise RuntimeError(f"Storage size calculation overflowed with {shapes}")
    check_numel(size)
    return memory.empty_strided(size, stride, target.stored)


@function(raw=True, method=False)
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor without dimensions from the number `s`, of the default dtype unless `dtype` is given."""
    check_layout(layout)
    if not isinstance(s, (bool, int, float, complex, np.generic)):
        raise TypeError(f"scalar_tensor(): argument 's' (position 1) must be Number, not {type(s).__name__}")
    target = as_dtype("scalar_tensor", dtype) or defaults.dtype
    return claimed(finished("scalar_tensor", made_on(device, filled_array, (), plain(s), target), requires_grad))


def fill_number(name: str, value: Any, position: int) -> Number:
    """The value to fill with, as a Python number."""
    if isinstance(value, Tensor) and value._array.ndim == 0 and not value.requires_grad:
        return value._array.item()  # type: ignore[no-any-return]
    if isinstance(value, np.generic):
        return value.item()  # type: ignore[no-any-return]
    if not isinstance(value, (bool, int, float, complex)):
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument 'fill_value' (position {position}) must be Number, not {kind}")
    return value


@function(raw=True, method=False, out_overlap="unchecked")
def full(
    size: Any, fill_value: Any = REQUIRED, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor of shape `size` with every element equal to `fill_value`.

    Without `dtype` the type of the number decides: bool, int64, or the default float or complex dtype.
    """
    try:
        check_layout(layout)
        if fill_value is REQUIRED:
            raise missing("full", "fill_value")
        if not isinstance(size, (tuple, list)):
            raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
        shape = sizes_of("full", (tuple(size),))
        value = fill_number("full", fill_value, 2)
        check_sizes(shape)
        target = as_dtype("full", dtype)
        kind = target or (number_dtype(value) if out is None else out.dtype)
        array = made_on(device, filled_array, shape, value, kind)
        return given("full", out, pinned(array) if pin_memory else array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise


def filled_array(shape: tuple[int, ...], value: Number, target: dtype) -> np.ndarray[Any, Any]:
    """An array with every element `value`."""
    value = (convert_number if math.prod(shape) == 1 else exact_number)(value, target)
    array: np.ndarray[Any, Any] = allocated(np.empty, shape, target.stored)
    if target.packed:
        return packed(np.full(shape, value), target.stored)
    np.copyto(array, value, casting="unsafe")
    return array


@function(raw=True, explained=True, method=False, out_overlap="unchecked")
def eye(
    n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a matrix with ones on the diagonal and zeros elsewhere.

    The matrix has `n` rows and `m` columns; it is the identity matrix of size `n` if `m` is left out.
    """
    try:
        check_layout(layout)
        for position, (name, value) in enumerate((("n", n), ("m", n if m is None else m))):
            if not is_int(value):
                raise TypeError(
                    f"eye(): argument '{name}' (position {position + 1}) must be int, not {type(value).__name__}"
                )
            if int(value) > LARGEST:
                raise ValueError(UNPACKING)
            if int(value) < 0:
                raise RuntimeError(f"{name} must be greater or equal to 0, got {int(value)}")
        target = as_dtype("eye", dtype)
        kind = target or (defaults.dtype if out is None else out.dtype)
        check_numel((int(n), int(n if m is None else m)))
        array = made_on(device, in_torch_words(np.eye), int(n), None if m is None else int(m), dtype=kind.stored)
        return given("eye", out, array, target, requires_grad)
    except Exception as error:
        trim(error)
        raise
