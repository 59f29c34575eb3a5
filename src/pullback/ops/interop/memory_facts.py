"""Questions about where the elements lie, and the older ways to change it: resize, shared memory, files."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from pullback._arrays.kinds import exists, is_foreign, made_on
from pullback._arrays.memory import element_strides
from pullback._arrays.sizes import allocated, check_sizes
from pullback._device import accelerators, as_device, check_device
from pullback._dtype import defaults
from pullback._lazy import stored
from pullback._op.declare import spaces
from pullback._op.define import Array, function, not_implemented, op
from pullback._op.out import exact
from pullback._runtime.building import loaded
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, channels_last, channels_last_3d, class_on, contiguous_format, memory_format, wrap
from pullback.ops.create.copy import copy_, detach
from pullback.ops.create.data import as_dtype, finished
from pullback.ops.create.storage import TypedStorage
from pullback.ops.shape.reshape import ints
from pullback.ops.storage_classes import mapped
from pullback.ops.storage_facts import shared_memory

# ------------------------------------------------------------------ questions


@function(raw=True, explained=True, space=None)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return True if both tensors have the same memory, offset, shape, strides and dtype."""
    a, b = stored(self), stored(tensor)
    same = a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    return same and a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype


@function(raw=True, space=None)
def const_data_ptr(self: Tensor) -> int:
    """Return the address of the first element, for reading only."""
    return self.data_ptr()


@function(raw=True, space=None)
def dim_order(self: Tensor, *, ambiguity_check: bool | list[memory_format] = False) -> tuple[int, ...]:
    """Return the order of the dimensions in memory, from the largest stride to the smallest.

    A contiguous tensor has `(0, 1, 2, ...)`. With `ambiguity_check` an order that the strides leave open raises an
    error; given a list of memory formats, exactly one of them has to fit.
    """
    shape, strides = self._array.shape, element_strides(self._array)
    if ambiguity_check is not False:
        formats = ambiguity_check if isinstance(ambiguity_check, list) else None
        if not unambiguous(self, formats):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    order = list(range(len(shape)))
    # Dimensions of size one lie anywhere: they stay where they are relative to the one before them.
    for i in range(1, len(order)):
        for j in range(i, 0, -1):
            before, here = order[j - 1], order[j]
            if shape[here] == 1 or shape[before] == 1 or strides[before] >= strides[here]:
                break
            order[j - 1], order[j] = here, before
    return tuple(order)


def unambiguous(self: Tensor, formats: list[memory_format] | None) -> bool:
    """True if the strides allow one order of dimensions only, or if exactly one of the formats fits."""
    if formats is None:
        strides = element_strides(self._array)
        return len(set(strides)) == len(strides) and 1 not in self._array.shape
    known = {contiguous_format: None, channels_last: 4, channels_last_3d: 5}
    fitting = [f for f in formats if known.get(f) in (None, self._array.ndim) and self.is_contiguous(memory_format=f)]
    return len(fitting) == 1


@function(raw=True, space=None)
def storage_type(self: Tensor) -> type:
    """Return the class of `self.storage()`."""
    return TypedStorage


@function(raw=True)
def is_distributed(input: Tensor) -> bool:
    """Return False: a tensor lives in one process."""
    return False


@function(raw=True)
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """True if `input.data = from_` can be: `input` then has the elements of the other, wherever they are."""
    return input.layout is from_.layout and (input.device is from_.device or class_on(input, from_) is not None)


@function(raw=True, space=None)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return True for memory that an accelerator copies from and to by itself."""
    return bool(accelerators) and not is_foreign(stored(self)) and pinning().is_pinned(self._array)  # type: ignore[no-any-return]


@function(raw=True, space=None)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return a copy in memory that an accelerator copies from and to by itself; an error where there is none."""
    if is_foreign(stored(self)):
        kind = f"{self.device.type.capitalize()}{self.dtype.scalar_type}Type"
        raise RuntimeError(f"cannot pin '{kind}' only dense CPU tensors can be pinned")
    if not exists(as_device("cuda")):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self.is_pinned():  # type: ignore[attr-defined]
        return self
    return wrap(pinning().pinned_copy(self._array))


def pinning() -> Any:
    """What knows pinned memory; loaded when it is first asked for."""
    return loaded("pullback.kernels.cuda.pinned")


@function(raw=True, method=False)
def get_device(input: Tensor) -> int:
    """Return the index of the device the tensor is on: -1, which stands for the CPU."""
    return input.get_device()


@function(raw=True, method=False, overridable=False)
def typename(obj: Any) -> str:
    """Return the name of the type of an object, with torch's names for tensors, such as "torch.FloatTensor"."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    home = getattr(named, "__module__", "") or ""
    if home in ("builtins", "__builtin__"):
        home = ""
    if home == "pullback" or home.startswith("pullback."):
        home = "torch" + home[len("pullback") :]
    return f"{home}.{named.__qualname__}" if home else str(named.__qualname__)


# ------------------------------------------------------------------ memory that processes share


@function(raw=True, space=None)
def is_shared(self: Tensor) -> bool:
    """Return True if the elements lie in memory that forked processes share; tensors of CUDA devices always say so."""
    return self.device.type == "cuda" or shared_memory(stored(self))


@function(raw=True, space=None)
def share_memory_(self: Tensor) -> Tensor:
    """Move the elements to memory that processes forked later will share, in place.

    Views made before keep looking at the old memory.
    """
    array = stored(self)
    if self.device.type == "cuda":
        return self
    if is_foreign(array):
        raise RuntimeError("_share_fd_: only available on CPU")
    if not shared_memory(array) and array.size:
        memory = np.frombuffer(mmap.mmap(-1, array.nbytes), array.dtype)
        order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
        moved = memory.reshape([array.shape[d] for d in order]).transpose(np.argsort(order))
        moved[...] = array
        self._array = moved
    return self


@function(raw=True, explained=True, method=False)
def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Create a vector of `size` elements that is mapped to the contents of a file.

    With `shared` writes to the tensor go to the file, which is created or enlarged if need be; without it they stay
    in this process. `dtype` says how the bytes are read, by default as the default dtype.
    """
    target = as_dtype("from_file", dtype) or defaults.dtype
    check_device(device)
    nbytes = (size or 0) * target.itemsize
    array = mapped(filename, bool(shared), nbytes).view(target.numpy)
    return finished("from_file", array, requires_grad)


# ------------------------------------------------------------------ other sizes


@function(raw=True, explained=True, method=False)
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Create an uninitialised tensor of shape `size` whose dimensions lie in memory in a given order.

    `physical_layout` lists the dimensions from the largest stride to the smallest: `(0, 2, 3, 1)` is channels last.
    """
    for name, position, value in (("size", 1, size), ("physical_layout", 2, physical_layout)):
        if not isinstance(value, (list, tuple)):
            kind = type(value).__name__
            raise TypeError(
                f"empty_permuted(): argument '{name}' (position {position}) must be tuple of ints, not {kind}"
            )
    target = as_dtype("empty_permuted", dtype) or defaults.dtype
    if len(physical_layout) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    check_sizes(tuple(size))
    for i, dim in enumerate(physical_layout):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} at index {i}).  "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(physical_layout)) < len(physical_layout):
        raise RuntimeError("Duplicate dim not allowed")
    memory = made_on(device, allocated, np.empty, [size[d] for d in physical_layout], target.numpy)
    return finished("empty_permuted", memory.transpose(np.argsort(physical_layout)), requires_grad)


@op(
    vmap="entries",
    view=True,
    space=None,
    name="resize",
    node="ResizeBackward",
    self=lambda grad, self_geometry: resized_view(grad, self_geometry[0]),
    result=lambda self_t, size: resized_view(self_t, size),
)
def resized_view(self: Array, size: tuple[int, ...]) -> Array:
    """The same elements in another shape."""
    return np.ascontiguousarray(self).reshape(size)


def resized(self: Tensor, size: tuple[int, ...]) -> Tensor:
    """The result of resize and resize_as."""
    count = int(np.prod(size))
    if count != self._array.size:
        wanted, given = ("x".join(map(str, shape)) for shape in (size, self._array.shape))
        raise RuntimeError(
            f"requested resize to {wanted} ({count} elements in total), but the given tensor has a size of {given} "
            f"({self._array.size} elements). autograd's resize can only change the shape of a given tensor, while "
            "preserving the number of elements. "
        )
    return resized_view(self, size)


@function(raw=True, space=None)
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the same elements in another shape. Deprecated: use `reshape`."""
    warn("non-inplace resize is deprecated")
    return resized(self, ints("resize", "size", sizes))


@function(raw=True, space=None)
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the same elements in the shape of `tensor`. Deprecated: use `reshape_as`."""
    warn("non-inplace resize_as is deprecated")
    return resized(self, tensor._array.shape)


@function(raw=True, space=None)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return what `load_state_dict` puts in the place of this tensor: its memory with the values of `other` copied in.

    With `assign` it is `other` itself, detached.
    """
    return detach(other) if assign else detach(copy_(self, other))


@op(vmap="leading", method=False, out_dtype=exact, self=not_implemented)
def detach_copy(self: Array) -> Array:
    """Copy a tensor to new memory, cut off from the graph; like `detach`, but not a view."""
    return self.copy()


IN_PLACE = ("addmv_", "fill_", "gcd_", "lcm_", "ldexp_")
"""Methods that are also functions."""
spaces["torch"].update({name: getattr(Tensor, name) for name in IN_PLACE})
