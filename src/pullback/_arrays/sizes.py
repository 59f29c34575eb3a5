"""How much memory a shape takes: torch's errors where that is more than 64 bits can count, or than there is.

NumPy has words of its own for these (ValueError, MemoryError), and counts in doubles in places: `np.arange(2**63 - 1)`
is empty. So whoever makes an array of a size that somebody asked for checks the size here first, or asks here what
NumPy's refusal means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any, ParamSpec, TypeVar

import numpy as np

from pullback._runtime.messages import shape_text

P = ParamSpec("P")
T = TypeVar("T")

LARGEST = 2**63 - 1
UNPACKING = "Overflow when unpacking long long"
"""What torch says of an integer that does not fit into 64 bits."""
NUMPY_REFUSALS = (
    "array is too big",
    "Maximum allowed dimension exceeded",
    "Maximum allowed size exceeded",
    "broadcast dimensions too large",
    "negative dimensions are not allowed",
    "array would exceed the maximum",
    "maximum supported dimension for an ndarray",
    "function only supports up to",
)
"""How NumPy begins to refuse a shape."""


def check_sizes(size: Sequence[int]) -> None:
    """Raise for negative sizes."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {shape_text(size)}")


def check_storage(size: Sequence[int], itemsize: int) -> None:
    """Raise, as torch does, for a shape whose bytes or strides 64 bits cannot count."""
    check_sizes(size)
    if storage_overflows(size, itemsize):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={shape_text(size)}")
    check_strides(size)


def storage_overflows(size: Sequence[int], itemsize: int) -> bool:
    """True if the product of the sizes, taken from the left, leaves 64 bits on the way to the number of bytes."""
    count = 1
    for n in size:
        count *= n
        if count >= 1 << 64:
            return True
    return count * itemsize > LARGEST


def check_strides(size: Sequence[int]) -> None:
    """Raise if a stride of a contiguous tensor of this shape leaves 64 bits: an empty dimension hides it elsewhere."""
    step = 1
    for n in reversed(size[1:]):
        step *= max(n, 1)
    if step > LARGEST:
        raise RuntimeError("Stride calculation overflowed")


def check_window(size: Sequence[int], stride: Sequence[int] | None, offset: int, itemsize: int) -> None:
    """Raise for a window onto memory whose last byte 64 bits cannot count; without strides it is contiguous."""
    check_numel(size)
    if 0 in size:
        return
    if stride is None:
        reach, how = prod(size), ""
    else:
        reach = sum([(n - 1) * s for n, s in zip(size, stride, strict=True)]) + 1
        how = f" and strides={shape_text(stride)}"
    if (reach + offset) * itemsize > LARGEST or (stride is not None and min(stride, default=0) < 0):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={shape_text(size)}{how}")


def check_numel(size: Sequence[int]) -> None:
    """Raise for a view with more elements than 64 bits can count."""
    if prod(size) > LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")


def out_of_memory(nbytes: int) -> RuntimeError:
    """Torch's error for memory there is not."""
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        f"allocate {nbytes} bytes. Error code 12 (Cannot allocate memory)"
    )


def allocated(make: Callable[..., Any], size: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """`make(size, dtype)`, an array; torch's error if it cannot be made."""
    try:
        return make(size, dtype)
    except (ValueError, MemoryError, OverflowError) as error:
        check_storage(size, dtype.itemsize)
        raise translated(error) from None


def meaning(error: Exception) -> Exception | None:
    """What NumPy's refusal of a size is called in torch; None if it is something else."""
    if isinstance(error, MemoryError):
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        return out_of_memory(prod(shape) * dtype.itemsize if shape is not None and dtype is not None else 0)
    text = str(error)
    if isinstance(error, OverflowError):
        return ValueError(UNPACKING) if "int too large to convert to C" in text else None
    if not isinstance(error, (ValueError, RuntimeError)) or not any(start in text for start in NUMPY_REFUSALS):
        return None
    if "supported dimension" in text or "only supports up to" in text:
        return NotImplementedError("tensors of more than 64 dimensions are not supported: NumPy's arrays have no more")
    return RuntimeError("Storage size calculation overflowed")


def translated(error: Exception) -> Exception:
    """The error in torch's words if NumPy refused a size, else as it is."""
    other = meaning(error)
    if other is None:
        return error
    other.__suppress_context__ = True
    return other


def in_torch_words(function: Callable[P, T]) -> Callable[P, T]:
    """A function that makes arrays of sizes somebody asked for, with torch's errors for those that cannot be."""

    # Not its module: formulas read the functions of ops with other globals, and this one needs its own.
    @wraps(function, assigned=("__name__", "__doc__"))
    def refusing(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (ValueError, MemoryError, OverflowError) as error:
            raise translated(error) from None

    return refusing


def counted(n: int) -> np.ndarray[Any, Any]:
    """`np.arange(n)`, which is empty if n is nearly 2**63."""
    if n > LARGEST >> 1:
        raise ValueError(NUMPY_REFUSALS[2])
    return np.arange(n)


def bincount(values: np.ndarray[Any, Any], weights: Any, minlength: int) -> np.ndarray[Any, Any]:
    """`np.bincount`, which writes beyond its memory if so many counters cannot be had."""
    largest = int(values.max()) if values.size else -1
    allocated(np.empty, (max(largest + 1, minlength),), np.dtype(np.int64))
    return np.bincount(values, weights, minlength)


def without_bools(value: Any) -> Any:
    """A list of integers with numbers for its bools, which torch takes for integers behind the first place."""
    if not isinstance(value, (list, tuple)) or not value or isinstance(value[0], bool):
        return value
    if not all([isinstance(item, (int, np.integer)) for item in value]):
        return value
    return tuple([int(item) for item in value]) if any([isinstance(item, bool) for item in value]) else value


def check_ints(name: str, arguments: dict[str, Any]) -> None:
    """Raise torch's error if an argument, or an item of one, is an integer that does not fit into 64 bits."""
    for key, value in arguments.items():
        if type(value) is int:
            if not -LARGEST - 1 <= value <= LARGEST:
                raise ValueError(UNPACKING)
        elif isinstance(value, (tuple, list)):
            for position, item in enumerate(value):
                if type(item) is int and not -LARGEST - 1 <= item <= LARGEST:
                    raise ValueError(UNPACKING) if key == "dim" else unpacking(name, key, position)


def unpacking(name: str, key: str, position: int) -> TypeError:
    """Torch's error for an item of a list of integers; the quotation marks are torch's."""
    return TypeError(
        f"{name}(): argument '{key}' failed to unpack the object at pos {position + 1} with error \"{UNPACKING}"
    )
