"""Other arrays: sharing memory with NumPy and with buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._device import check_device
from pullback._dtype import canonical, defaults
from pullback._lazy import signs
from pullback._modes import is_grad_enabled
from pullback._op.define import function
from pullback._runtime.warnings import warn, warn_once
from pullback._tensor import Tensor, fresh, wrap
from pullback.autograd.locations import detached_here, own_stack
from pullback.autograd.tracebacks import trim
from pullback.ops.create.cast import converted
from pullback.ops.create.copy import clone, detach, requires_grad_
from pullback.ops.create.data import REQUIRED, array_of, as_dtype, finished, missing, shared
from pullback.ops.interop.dlpack import from_dlpack

# ------------------------------------------------------------------ NumPy arrays


@function(raw=True, method=False, overridable=False)
def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """Create a tensor that shares the memory of a NumPy array.

    Nothing is copied: writes to one are seen by the other. The dtype is that of the array.
    """
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        name = f"numpy.{kind.__name__}" if isinstance(ndarray, np.generic) else kind.__name__
        raise TypeError(f"expected np.ndarray (got {name})")
    return fresh(shared(ndarray))


@function(raw=True, space=None)
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """Return a NumPy array that shares the memory of this tensor: writes to one are seen by the other.

    Tensors that require a gradient and lazy conjugates or negatives are refused, unless `force` is set.
    """
    try:
        if type(force) is not bool:
            raise TypeError(f"numpy(): argument 'force' must be bool, not {type(force).__name__}")
        if not force and self.requires_grad and is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        for lazy, what, name in zip(signs(self), ("conjugate", "negative"), ("conj", "neg"), strict=True):
            if lazy and not force:
                raise RuntimeError(
                    f"Can't call numpy() on Tensor that has {what} bit set. "
                    f"Use tensor.resolve_{name}().numpy() instead."
                )
        if self._array.dtype.kind == "V":
            raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_type}")
        if self._detached_at is not None or self._requires_grad:
            own_stack().left = detached_here(".numpy()")
        return self._array.view()
    except Exception as error:
        trim(error)
        raise


def to_array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """`np.asarray(tensor)`: the same memory unless a copy or another dtype is asked for."""
    array = numpy(self)
    if copy is False and dtype is not None and np.dtype(dtype) != array.dtype:
        raise ValueError(
            "Unable to avoid copy while creating an array as requested.\nIf using `np.array(obj, copy=False)` replace "
            "it "
            "with `np.asarray(obj)` to allow a copy when needed (no behavior change in NumPy 1.x).\nFor more details, "
            "see "
            "https://numpy.org/devdocs/numpy_2_0_migration_guide.html#adapting-to-changes-in-the-copy-keyword."
        )
    return array.astype(array.dtype if dtype is None else dtype, copy=bool(copy))


def from_result(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions make of a tensor is a tensor; bools come as bytes, as in torch."""
    array = canonical(np.asarray(array))
    return wrap(array.astype(np.uint8) if array.dtype == np.bool_ else array)


Tensor.__array__ = to_array  # type: ignore[attr-defined]
Tensor.__array_wrap__ = from_result  # type: ignore[attr-defined]

# ------------------------------------------------------------------ buffers

NOT_WRITABLE_BUFFER = (
    "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to "
    "the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its "
    "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the rest "
    "of this program."
)


@function(raw=True, method=False, overridable=False)
def frombuffer(
    buffer: Any, *, dtype: Any = REQUIRED, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """Create a vector that shares the memory of a Python buffer, such as bytes or a bytearray.

    `dtype` says how the bytes are read, `offset` how many bytes to skip, and `count` how many elements to take, all of
    them if it is -1.
    """
    if dtype is REQUIRED:
        raise missing("frombuffer", "dtype")
    target = as_dtype("frombuffer", dtype)
    assert target is not None
    return finished("frombuffer", buffer_array(buffer, target, count, offset), requires_grad)


def buffer_array(buffer: Any, target: Any, count: int, offset: int) -> np.ndarray[Any, Any]:
    """The array of `frombuffer`."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, size = view.nbytes, target.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({size})"
            )
        count = (length - offset) // size
    if view.readonly:
        warn_once(NOT_WRITABLE_BUFFER)
    return np.frombuffer(buffer, target.numpy, count, offset)


@function(raw=True, method=False, overridable=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Convert an object to a tensor, sharing its memory where possible.

    Tensors, NumPy arrays and objects with DLPack or buffers share theirs, unless `dtype` differs; sequences and numbers
    are copied. `copy=True` copies in any case, `copy=False` raises an error where a copy would be needed.
    """
    target = as_dtype("asarray", dtype)
    check_device(device)
    if isinstance(obj, Tensor):
        out, aliasing = obj, True
        if requires_grad is None and obj.requires_grad and not copy:
            warn(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                "requires_grad=False explicitly to get the old behavior and silence this warning.",
            )
    elif isinstance(obj, (np.ndarray, np.generic)):
        out, aliasing = fresh(shared(np.asarray(obj))), True
    elif hasattr(type(obj), "__dlpack__"):
        out, aliasing = from_dlpack(obj), True
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        out, aliasing = fresh(buffer_array(obj, target or defaults.dtype, -1, 0)), True
    else:
        out, aliasing = fresh(array_of(obj, target)), False
    if copy is False:
        if not aliasing:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        if target is not None and target is not out.dtype:
            raise ValueError(
                f"can't alias tensor with dtype '{out.dtype.scalar_type}' into dtype '{target.scalar_type}'."
            )
    before = out
    out = converted(out, target)
    if copy and aliasing and out is before:
        out = clone(out)
    if requires_grad is False and out.requires_grad:
        return detach(out)
    return requires_grad_(out) if requires_grad and not out.requires_grad else out
