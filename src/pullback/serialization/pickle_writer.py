"""Writing a pickle that names torch's things, so that torch reads it."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from pullback._arrays.layout import Size, layout
from pullback._arrays.memory import contiguous_strides, element_strides, memory_of, storage_offset
from pullback._device import device
from pullback._dtype import dtype
from pullback._foreign import ForeignTensor, PackedTensor
from pullback._lazy import LazyTensor, signs, stored
from pullback._sparse.tensor import SparseTensor
from pullback._tensor import Parameter, Tensor
from pullback.ops.sparse.pickles import parts_of
from pullback.serialization.names import storage_name

Keep = Callable[[np.ndarray[Any, Any], dtype], str]


def keeper(memories: dict[int, tuple[str, np.ndarray[Any, Any], dtype]]) -> Keep:
    """A function that numbers memories and puts them into a dict."""

    def keep(memory: np.ndarray[Any, Any], kind: dtype) -> str:
        key, _, known = memories.setdefault(id(memory), (str(len(memories)), memory, kind))
        if known is not kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return key

    return keep


class Name:
    """A global of torch, as a pickle names it."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> None:
        raise TypeError(f"{self.module}.{self.name} stands for a function of torch and cannot be called")


class Storage:
    """The memory of a tensor, which the pickle mentions by its number in the file."""

    __slots__ = ("key", "kind", "length", "place")

    def __init__(self, key: str, kind: Name, length: int, place: str) -> None:
        self.key, self.kind, self.length, self.place = key, kind, length, place


NAMES: dict[str, Name] = {}


def name(module: str, name: str) -> Name:
    """The one object for a name, so that a pickle mentions it by number the second time."""
    key = f"{module} {name}"
    if key not in NAMES:
        NAMES[key] = Name(module, name)
    return NAMES[key]


PythonPickler: Any = pickle._Pickler
"""Python's own pickler in Python: only it can write names freely."""


class Writer(PythonPickler):  # type: ignore[misc]
    """Pickles objects; `keep` takes the memory of tensors and gives the key it is found by."""

    def __init__(self, file: BinaryIO, protocol: int, keep: Keep, more: tuple[Any, ...] = ()) -> None:
        super().__init__(file, protocol)
        self.keep = keep
        self.more = more
        """What old files say of a storage beside its place and length."""

    def persistent_id(self, obj: Any) -> Any:
        """Storages are written beside the pickle."""
        if type(obj) is Storage:
            return ("storage", obj.kind, obj.key, obj.place, obj.length, *self.more)
        return None

    def reducer_override(self, obj: Any) -> Any:
        """How torch describes its things."""
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        kind = type(obj)
        if kind is Name or kind is dtype:
            return obj.name
        if kind is Size:
            return name("torch", "Size"), (tuple(obj),)
        if kind is device:
            return name("torch", "device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is layout:
            return name("torch.serialization", "_get_layout"), (f"torch.{obj.name}",)
        return NotImplemented

    def reduce_tensor(self, tensor: Tensor) -> Any:
        """A tensor: its storage, and how it looks at it."""
        if type(tensor) not in (Tensor, Parameter, LazyTensor) and not isinstance(
            tensor, (ForeignTensor, PackedTensor)
        ):
            return NotImplemented
        attributes = dict(tensor.__dict__)
        if isinstance(tensor, Parameter):
            attributes.pop("_is_param", None)
            data, no_hooks = tensor.detach(), OrderedDict()  # type: ignore[var-annotated]
            if attributes:
                function = name("torch._utils", "_rebuild_parameter_with_state")
                return function, (data, tensor.requires_grad, no_hooks, attributes)
            return name("torch._utils", "_rebuild_parameter"), (data, tensor.requires_grad, no_hooks)
        function, arguments = self.rebuild(tensor)
        if attributes:
            return name("torch._tensor", "_rebuild_from_type_v2"), (function, Tensor, arguments, attributes)
        return function, arguments

    def rebuild(self, tensor: Tensor) -> tuple[Name, tuple[Any, ...]]:
        """The call that makes the tensor again."""
        if isinstance(tensor, SparseTensor):
            layout, parts = parts_of(tensor)
            return name("torch._utils", "_rebuild_sparse_tensor"), (layout, parts)
        array = stored(tensor)
        if tensor.is_meta:
            said, size, steps = name("torch", tensor.dtype.name), tuple(array.shape), element_strides(array)
            return name("torch._utils", "_rebuild_meta_tensor_no_storage"), (said, size, steps, tensor.requires_grad)
        memory = memory_of(array)
        if not memory.flags.forc:
            memory = array = np.ascontiguousarray(array)
        offset = storage_offset(array) if array.size else 0
        strides = element_strides(array) if array.size else contiguous_strides(array.shape)
        kind = tensor.dtype
        length = memory.nbytes // kind.itemsize
        class_name = storage_name(kind)
        key = self.keep(memory, kind)
        start: tuple[Any, ...] = (offset, tuple(array.shape), strides, tensor.requires_grad, OrderedDict())
        shown = {word: True for word, lazy in zip(("conj", "neg"), signs(tensor), strict=True) if lazy}
        rest = (shown,) if shown else ()
        if class_name is not None:
            storage = Storage(key, name("torch", class_name), length, str(tensor.device))
            return name("torch._utils", "_rebuild_tensor_v2"), (storage, *start, *rest)
        storage = Storage(key, name("torch.storage", "UntypedStorage"), memory.nbytes, str(tensor.device))
        return name("torch._utils", "_rebuild_tensor_v3"), (storage, *start, name("torch", kind.name), *rest)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """A class or function by its name; those of this library under torch's."""
        if type(obj) is Name:
            self.write_name(obj, obj.module, obj.name)
        elif type(obj) is dtype:
            self.write_name(obj, "torch", obj.name)
        elif obj is Tensor:
            self.write_name(obj, "torch._tensor", "Tensor")
        elif obj is Parameter:
            self.write_name(obj, "torch.nn.parameter", "Parameter")
        elif (getattr(obj, "__module__", None) or "").partition(".")[0] == "pullback":
            module = "torch" + obj.__module__.removeprefix("pullback")
            self.write_name(obj, module, str(getattr(obj, "__qualname__", name)))
        else:
            super().save_global(obj, name)

    def write_name(self, obj: Any, module: str, name: str) -> None:
        """The opcode for a global, in the form every protocol has."""
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)
