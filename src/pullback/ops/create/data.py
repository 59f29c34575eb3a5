"""Tensors from data: `tensor` and its relatives, from numbers, nested sequences, NumPy arrays and other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.element import convert_number
from pullback._arrays.kinds import exists, is_foreign, made_on
from pullback._arrays.layout import strided
from pullback._arrays.memory import on_own_memory
from pullback._arrays.packed import packed
from pullback._device import accelerators, place_of
from pullback._dtype import FROM_NUMPY, PYTHON_DTYPES, Number, defaults, dtype, promote_types
from pullback._modes import claim
from pullback._op.define import function
from pullback._runtime import messages
from pullback._runtime.building import loaded
from pullback._runtime.quiet import quiet
from pullback._runtime.warnings import warn, warn_once
from pullback._tensor import Tensor, fresh
from pullback.autograd.locations import detached_here
from pullback.autograd.tracebacks import trim
from pullback.ops.create.cast import converted
from pullback.ops.create.copy import copied
from pullback.ops.storage_classes import TypedStorage, UntypedStorage

MOST_DIMENSIONS = 128
FOREIGN = 256
"""The first number of the dtypes that are not NumPy's own."""

COPY_CONSTRUCT = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor)."
)
SLOW_LIST = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
    "single "
    "numpy.ndarray with numpy.array() before converting to a tensor."
)


REQUIRED: Any = object()
"""Stands for an argument that was not given."""


def missing(name: str, argument: str) -> TypeError:
    """Torch's TypeError for an argument that was not given."""
    return TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')


def as_dtype(name: str, value: Any) -> dtype | None:
    """The dtype an argument `dtype=` names; Python's number types name their widest."""
    if value is None or type(value) is dtype:
        return value
    if isinstance(value, type) and value in PYTHON_DTYPES:
        return PYTHON_DTYPES[value]
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {messages.type_name(value)}")


def finished(name: str, array: Any, requires_grad: bool) -> Tensor:
    """A new leaf around an array."""
    if array.dtype.num >= FOREIGN and FROM_NUMPY[array.dtype].packed:
        array = packed(array, array.dtype)
    out = fresh(array)
    if requires_grad is not False:
        if type(requires_grad) is not bool:
            raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        if FROM_NUMPY[out._array.dtype].category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        out._requires_grad = True
    return out


def pinned(array: Any) -> Any:
    """The array in memory that an accelerator copies from by itself, as `pin_memory=True` asks for."""
    if is_foreign(array):
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if not exists(place_of("cuda")):
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    return loaded("pullback.kernels.cuda.pinned").pinned_copy(array)


def claimed(out: Tensor) -> Tensor:
    """A tensor made from nothing, as the transform around it has it: a write of what moves there must leave a trace."""
    own = claim.get()
    return out if own is None or out._requires_grad or FROM_NUMPY[out._array.dtype].category < 2 else own(out)


def check_layout(layout: Any) -> None:
    """Raise for a layout other than strided."""
    if layout is not None and layout is not strided:
        raise RuntimeError(f"this is not implemented for sparse layout {layout}; use layout=torch.strided")


def without_entries(name: str, layout: Any, shape: Any, target: Any, requires_grad: bool, dense: int = 0) -> Any:
    """A sparse tensor of zeros, none of which is there. Attached by ops/sparse/compressed.py."""
    raise NotImplementedError("import pullback.ops.sparse.compressed first")


@function(raw=True, method=False, overridable=False)
def tensor(
    data: Any = REQUIRED, *more: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor from Python numbers, (nested) sequences of them, a NumPy array or another tensor.

    The data is always copied and the result is a leaf of the graph. Without `dtype` it is inferred: floats take
    the default dtype, ints become int64, and arrays and tensors keep theirs.
    `requires_grad` asks autograd to record operations on the result.
    """
    try:
        if data is REQUIRED:
            raise missing("tensor", "data")
        if more:
            raise TypeError(f"tensor() takes 1 positional argument but {1 + len(more)} were given")
        target = as_dtype("tensor", dtype)
        if isinstance(data, Tensor):
            warn(COPY_CONSTRUCT.format("torch.tensor"))
            device = data.device if device is None else device
        array = made_on(device, array_of, data, target)
        out = finished("tensor", pinned(array) if pin_memory else array, requires_grad)
        first = data[0] if type(data) is list and data else data
        if isinstance(first, Tensor):
            out._detached_at = detached_here("torch.tensor()") if first._requires_grad else first._detached_at
        return claimed(out)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, overridable=False)
def as_tensor(data: Any = REQUIRED, dtype: Any = None, device: Any = None) -> Tensor:
    """Convert data to a tensor, copying only if necessary.

    A tensor of the right `dtype` and `device` is returned as it is and keeps its graph, a NumPy array shares its
    memory with the result, and anything else is copied as by `tensor`.
    """
    try:
        if data is REQUIRED:
            raise missing("as_tensor", "data")
        target = as_dtype("as_tensor", dtype)
        if isinstance(data, Tensor):
            return converted(data, target, place=device)
        place = place_of(device)
        if isinstance(data, np.ndarray):
            return claimed(converted(fresh(shared(data)), target, place=place))
        if accelerators and hasattr(data, "__cuda_array_interface__"):
            there = fresh(loaded("pullback.kernels.cuda.dlpack").of_interface(data))
            return converted(there, target, place=None if device is None else place)
        return claimed(fresh(made_on(place, array_of, data, target)))
    except Exception as error:
        trim(error)
        raise


@function(raw=True, space=None)
def new_tensor(
    self: Tensor, data: Any = REQUIRED, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Create a tensor from `data`, with the dtype and device of this tensor unless others are given.

    The data is always copied and the result is a new leaf of the graph.
    """
    check_layout(layout)
    if data is REQUIRED:
        raise missing("new_tensor", "data")
    target = as_dtype("new_tensor", dtype)
    if isinstance(data, Tensor):
        warn(COPY_CONSTRUCT.format("tensor.new_tensor"))
    place = self.device if device is None else device
    array = made_on(place, array_of, data, target or self.dtype)
    return claimed(finished("new_tensor", pinned(array) if pin_memory else array, requires_grad))


# ------------------------------------------------------------------ from data to an array


def array_of(data: Any, target: dtype | None) -> np.ndarray[Any, Any]:
    """An array with the elements of `data`, in the dtype asked for or the one the elements have: a new one, but what is
    made of a storage looks at its memory."""
    if target is not None and target.packed:
        return packed(array_of(data, dtypes.complex64 if target.is_complex else dtypes.float64), target.stored)
    kind = type(data)
    if kind is float or kind is int:
        return np.asarray(elements([data], target or number_dtype(data))).reshape(())
    if isinstance(data, Tensor):
        return copied(data._array, None if target is None else target.numpy)
    if isinstance(data, np.ndarray):
        data = checked(data)
        return data.astype(data.dtype if target is None else target.numpy, order="C", subok=False)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if isinstance(data, (UntypedStorage, TypedStorage)):
        return on_storage(data, target)
    sizes = sizes_of_data(data)
    if target is None:
        target = infer_dtype(data)
    leaves: list[Any] = [data]
    for dim, size in enumerate(sizes):
        leaves = flattened(leaves, size, dim)
    return np.asarray(elements(leaves, target), target.numpy).reshape(sizes)


def on_storage(storage: Any, target: dtype | None) -> np.ndarray[Any, Any]:
    """The elements of a storage where they are; bytes are taken for elements of the dtype asked for, or of integers."""
    if isinstance(storage, TypedStorage):
        if target is not None and target is not storage.dtype:
            raise RuntimeError(
                f"Expected a Storage of type {target.scalar_type} or an UntypedStorage, but got "
                f"{storage.dtype.scalar_type}"
            )
        target = storage.dtype
    elif target is None:
        target = dtypes.int64 if storage.nbytes() else defaults.dtype
    untyped, kind = storage.untyped(), target.numpy
    untyped._shared = True
    return untyped._bytes()[: untyped.nbytes() // kind.itemsize * kind.itemsize].view(kind)  # type: ignore[no-any-return]


def checked(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, as tensors have them; raises for those torch does not take."""
    array = dtypes.canonical(array)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    return array


NOT_WRITABLE = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
    "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
    "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)


def shared(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array itself, checked to be one a tensor can look at."""
    array = checked(array)
    if not array.flags.writeable:
        warn_once(NOT_WRITABLE)
    return on_own_memory(array.view(np.ndarray) if type(array) is not np.ndarray else array)


def is_sequence(value: Any) -> bool:
    """True for what torch iterates over; tensors count as numbers."""
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (Tensor, dict, set, frozenset, np.generic)):
        return False
    return hasattr(type(value), "__getitem__") and hasattr(type(value), "__len__")


def sizes_of_data(data: Any) -> list[int]:
    """The shape of nested sequences, read along their first elements."""
    sizes: list[int] = []
    while is_sequence(data):
        sizes.append(len(data))
        if len(sizes) > MOST_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not sizes[-1]:
            break
        data = data[0]
    return sizes


def flattened(items: list[Any], size: int, dim: int) -> list[Any]:
    """One level of nesting less, every sequence checked to have the same length."""
    out: list[Any] = []
    for item in items:
        if not is_sequence(item):
            raise TypeError("not a sequence")
        if len(item) != size:
            raise ValueError(f"expected sequence of length {size} at dim {dim} (got {len(item)})")
        if isinstance(item, (list, tuple)):
            if size and isinstance(item[0], np.ndarray):
                warn_slow_list()
            out += item
        else:
            out += list(item)
    return out


def warn_slow_list() -> None:
    """Warn, the first time, about lists of NumPy arrays."""
    warn_once(SLOW_LIST)


def number_dtype(value: Number) -> dtype:
    """The dtype of a tensor made from a Python number."""
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.int64
    return defaults.dtype if isinstance(value, float) else defaults.complex_dtype


def infer_dtype(data: Any) -> dtype:
    """The dtype all elements promote to."""
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.of(data.dtype)
    if isinstance(data, (bool, int, float, complex)):
        return number_dtype(data)
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if len(data) == 0:
        return defaults.dtype
    kinds = set(map(type, data))
    if kinds <= PYTHON_DTYPES.keys():
        found = [number_dtype(kind()) for kind in kinds]
    else:
        found = [infer_item(data, item) for item in data]
    result = found[0]
    for other in found[1:]:
        result = promote_types(result, other)
    return result


def infer_item(sequence: Any, item: Any) -> dtype:
    """The dtype of one element of a sequence."""
    if item is sequence:
        raise TypeError("new(): self-referential lists are incompatible")
    return infer_dtype(item)


def elements(leaves: list[Any], target: dtype) -> Any:
    """The leaves as an array or list of numbers that fit the dtype."""
    kinds = set(map(type, leaves))
    if not kinds <= PYTHON_DTYPES.keys():
        leaves = [number_of(leaf, target) for leaf in leaves]
        kinds = set(map(type, leaves))
    if target.category == dtypes.INT and kinds - {bool}:
        return integers(leaves, kinds, target)
    if target is dtypes.bool_:
        return np.array([bool(leaf) for leaf in leaves], np.bool_)
    if complex in kinds and target.category == dtypes.FLOAT:
        raise TypeError("must be real number, not complex")
    return quiet().run(np.array, leaves, target.numpy)


def number_of(leaf: Any, target: dtype) -> Number:
    """An element that is no plain number, as one."""
    if isinstance(leaf, Tensor):
        if leaf._array.size != 1:
            if target.category == dtypes.INT:
                raise TypeError("only integer tensors of a single element can be converted to an index")
            raise ValueError("only one element tensors can be converted to Python scalars")
        if target.category == dtypes.INT and leaf._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        kind = leaf._array.dtype.kind
        return int(leaf) if kind in "iub" else complex(leaf) if kind == "c" else float(leaf)
    name = type(leaf).__name__
    if isinstance(leaf, (bool, int, float, complex)):
        return leaf
    if isinstance(leaf, np.inexact) and target.category == dtypes.INT:
        name = f"numpy.{name}"
    elif isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.item()  # type: ignore[no-any-return]
    if target.category == dtypes.INT:
        raise TypeError(f"'{name}' object cannot be interpreted as an integer")
    raise TypeError(f"must be real number, not {name}")


def integers(leaves: list[Any], kinds: set[type], target: dtype) -> np.ndarray[Any, Any]:
    """Numbers as integers of a dtype: fractions are cut off, what does not fit is an error."""
    if kinds <= {int, bool} and target is dtypes.int64:
        try:
            return np.array(leaves, np.int64)
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
    return np.array([integer(leaf, target) for leaf in leaves], target.numpy)


def integer(value: Any, target: dtype) -> int:
    """One number as an integer of a dtype."""
    if isinstance(value, complex):
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if target is dtypes.uint64:
        if isinstance(value, int) and not 0 <= value < 2**64:
            raise OverflowError("can't convert negative int to unsigned" if value < 0 else "int too big to convert")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    try:
        return int(convert_number(value, target))  # type: ignore[arg-type]
    except RuntimeError:
        raise RuntimeError(f"value cannot be converted to type {target.name} without overflow") from None
