"""The classes of storages: memory as bytes, and as elements of a dtype."""

from __future__ import annotations

import mmap
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from pullback import _dtype
from pullback._arrays.kinds import is_foreign, made_on
from pullback._arrays.memory import data_ptr
from pullback._arrays.packed import packed
from pullback._device import CPU, check_device, device
from pullback._dtype import FROM_NUMPY, defaults, dtype
from pullback._op.parser import no_overload, overloads, parsed
from pullback.ops.storage_facts import StorageFacts, buffered, shared_memory

Memory = np.ndarray[Any, Any]
CONSTRUCTORS = (
    "(*, int allocator=None, device device=None)(int size, *, int allocator=None, device device=None)"
    "(object sequence, *, int allocator=None, device device=None)"
)
CONVERSIONS = {
    "double": _dtype.float64, "float": _dtype.float32, "half": _dtype.float16, "bfloat16": _dtype.bfloat16,
    "long": _dtype.int64, "int": _dtype.int32, "short": _dtype.int16, "char": _dtype.int8, "byte": _dtype.uint8,
    "bool": _dtype.bool, "complex_double": _dtype.complex128, "complex_float": _dtype.complex64,
    **{kind.name: kind for kind in _dtype.EIGHTHS if kind is not _dtype.float8_e8m0fnu},
}  # fmt: skip
"""Methods that give the elements in another dtype."""


def room(count: int) -> Memory:
    """New memory of so many bytes, or torch's error."""
    if not -(2**63) <= count < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if count < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called with "
            f"negative number: {count % 2**64}"
        )
    try:
        return np.empty(count, np.uint8)
    except (MemoryError, ValueError):
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            f"allocate {count} bytes. Error code 12 (Cannot allocate memory)"
        ) from None


def mapped(name: str, shared: bool, count: int) -> Memory:
    """The first bytes of a file as memory; a shared file is made, as long as it has to be."""
    try:
        flags = (os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(name, flags, 0o600), "r+b" if shared else "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < count and not shared:
                raise RuntimeError(f"file <{name}> size <{size}> is smaller than the required mapping size <{count}>")
            if size < count:
                file.truncate(count)
            kind: Literal["r+", "c"] = "r+" if shared else "c"
            return np.memmap(file, np.uint8, kind, shape=(count,)).view(np.ndarray) if count else np.empty(0, np.uint8)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(f"unable to open file <{name}> in {mode} mode: {error.strerror} ({error.errno})") from None


def bytes_from(values: Any) -> Memory:
    """The bytes of a sequence of numbers."""
    name = type(values).__name__
    if not isinstance(values, Sequence) and not hasattr(type(values), "__getitem__"):
        raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {name}")
    for value in values:
        if not isinstance(value, int):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({name}), but one of the items "
                f"was of type {type(value).__name__} instead of int"
            )
    return np.array([value % 256 for value in values], np.uint8)


class StorageBase(StorageFacts):
    """What the storage of bytes derives from."""

    __slots__ = ()

    def __init__(self) -> None:
        raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")


class UntypedStorage(StorageBase):
    """The bytes a tensor, and everything that shares memory with it, looks at.

    Args:
        size: the number of bytes, or a sequence of bytes.
        device: where they are; there is only the CPU.
    """

    __slots__ = ("_memory", "_shared")

    def __init__(self, *args: Any, size: Any = None, device: Any = None, allocator: Any = None) -> None:
        given = args if size is None else (*args, size)
        if len(given) > 1:
            known = tuple([parsed(text) for text in overloads(CONSTRUCTORS)])
            raise no_overload("torch.UntypedStorage", known, given, {})
        check_device(device)
        first = given[0] if given else 0
        count = type(first) is not bool and hasattr(type(first), "__index__")
        self._memory = room(operator.index(first)) if count else bytes_from(first)
        self._shared = False

    @staticmethod
    def from_file(filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The bytes of a file; if they are shared, writing to them writes to the file."""
        return on_memory(mapped(os.fspath(filename), shared, nbytes), shared=False)

    @property
    def device(self) -> device:
        """Where the bytes are."""
        return self._memory.device if is_foreign(self._memory) else CPU  # type: ignore[return-value]

    is_sparse_csr = False

    def moved(self, place: device) -> UntypedStorage:  # type: ignore[override]
        """The same bytes on another device, or itself."""
        if place is self.device:
            return self
        host = self._bytes().on_host() if is_foreign(self._memory) else self._bytes()
        return on_memory(host if place is CPU else made_on(place, np.asarray, host), shared=False)

    @staticmethod
    def from_buffer(buffer: Any, *args: Any, **kwargs: Any) -> UntypedStorage:
        """A copy of the bytes of a buffer: see `buffered`."""
        return on_memory(buffered(buffer, *args, **kwargs), shared=False)

    def is_shared(self) -> bool:
        """True if the bytes lie in memory that forked processes share."""
        return shared_memory(self._memory)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to memory that processes forked later share."""
        if not self.is_shared() and self.nbytes():
            if self._shared:
                raise NotImplementedError(
                    "tensors look at this memory and would not follow; use tensor.share_memory_()"
                )
            memory = np.frombuffer(mmap.mmap(-1, self.nbytes()), np.uint8)
            memory[:] = self._bytes()
            self._memory = memory
        return self

    def mps(self) -> Any:
        """Raise: there is no such device here."""
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return data_ptr(self._memory) if self._memory.size else 0

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.nbytes

    size = nbytes
    __len__ = nbytes

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def element_size(self) -> int:
        """One: the elements are bytes."""
        return 1

    def tolist(self) -> list[int]:
        """The bytes as a list of numbers."""
        return self._bytes().tolist()

    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class."""
        if dtype is not None:
            raise NotImplementedError("a storage is converted with its methods float(), long() and so on")
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """A storage without bytes."""
        return UntypedStorage()

    def clone(self) -> UntypedStorage:
        """A copy of the bytes."""
        return on_memory(self._bytes().copy(), shared=False)

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]  # type: ignore[no-any-return]

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take over the bytes of another storage."""
        if self.nbytes() != source.nbytes():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._bytes()[:] = source.untyped()._bytes()
        return self

    def fill_(self, value: Any, /) -> UntypedStorage:
        """Make every byte the same."""
        if type(value) is not int:
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        self._bytes().fill(value % 256)
        return self

    def resize_(self, size: Any, /) -> UntypedStorage:
        """Change the number of bytes; those that stay keep their values."""
        if type(size) is not int:
            raise RuntimeError(f"resize_ expects an int, but got {type(size).__name__}")
        if size == self.nbytes():
            return self
        if self._shared:
            raise NotImplementedError(
                "memory that tensors look at keeps its size here; use tensor.resize_(), or set_() with a new storage"
            )
        memory, kept = room(size), min(size, self.nbytes())
        memory[:kept] = self._bytes()[:kept]
        self._memory = memory
        return self

    def byteswap(self, dtype: dtype) -> None:
        """Turn around the bytes of every element of a dtype."""
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        content = self._bytes()
        content[:] = content.reshape(-1, width)[:, ::-1].reshape(-1)

    def _bytes(self) -> Memory:
        return self._memory.reshape(-1, order="A").view(np.uint8)

    def _place(self, index: slice) -> Memory:
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return self._bytes()[start : max(start, stop)]

    def __getitem__(self, index: Any) -> Any:
        """A byte, or a storage on some of the bytes."""
        if isinstance(index, slice):
            self._shared = True
            return on_memory(self._place(index))
        if type(index) is bool or not hasattr(type(index), "__index__"):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        return int(self._bytes()[in_range(operator.index(index), self.nbytes())])

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice) and type(index) is not int:
            raise RuntimeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if type(value) is not int:
            kind = type(value).__name__
            raise RuntimeError(f"can only set storage content with a int types, but got {kind} instead")
        if isinstance(index, slice):
            self._place(index).fill(value % 256)
            return
        if not 0 <= index < self.nbytes():
            raise RuntimeError("out of bounds")
        self._bytes()[index] = value % 256

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        shown = "...\n" if is_foreign(self._memory) else listed(self.tolist())
        return f"{shown}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._memory is self._memory

    def __hash__(self) -> int:
        return id(self._memory)


def on_memory(memory: Memory, shared: bool = True) -> UntypedStorage:
    """The storage on given memory, which something else may look at."""
    out = object.__new__(UntypedStorage)
    out._memory, out._shared = memory, shared
    return out


def elements_of(array: Memory) -> Memory:
    """Memory as it is read and written; packed elements convert what is."""
    return packed(array, array.dtype) if FROM_NUMPY[array.dtype].packed else array


def stored_as(values: Any, kind: dtype) -> Memory:
    """Numbers as elements of a dtype."""
    return packed(values, kind.stored).view(np.ndarray) if kind.packed else np.asarray(values).astype(kind.stored)


def in_range(index: int, size: int) -> int:
    """An index counted from the front, or torch's error."""
    place = index + size if index < 0 else index
    if not 0 <= place < size:
        raise IndexError(f"index {place} out of range for storage of size {size}")
    return place


def listed(values: list[Any]) -> str:
    """One value per line."""
    return " " + "\n ".join(map(str, values)) + "\n"


class TypedStorage(StorageFacts):
    """The elements a tensor, and everything that shares memory with it, looks at.

    Args:
        size: the number of elements, or a sequence of elements.
        wrap_storage: the bytes to look at instead.
        dtype: the dtype of the elements, the default one if none is given.
        device: where they are; there is only the CPU.
    """

    __slots__ = ("_untyped", "dtype")

    def __init__(self, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None) -> None:
        self.dtype = defaults.dtype if dtype is None else dtype
        check_device(device)
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    f"No positional arguments should be given when using 'wrap_storage', got {len(args)}"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
            self._untyped = wrap_storage
        elif len(args) > 1:
            raise RuntimeError("Too many positional arguments given for storage")
        elif args and not hasattr(type(args[0]), "__index__"):
            self._untyped = on_memory(stored_as(list(args[0]), self.dtype), shared=False)
        else:
            self._untyped = UntypedStorage((operator.index(args[0]) if args else 0) * self.dtype.itemsize)

    @property
    def device(self) -> device:
        """Where the elements are."""
        return self.untyped().device

    def moved(self, place: device) -> TypedStorage:  # type: ignore[override]
        """The same elements on another device, or itself."""
        return self if place is self.device else typed(self.untyped().moved(place), self.dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> TypedStorage:
        """The elements a buffer holds, copied: see `buffered`."""
        kind = defaults.dtype if dtype is None else dtype
        return typed(on_memory(buffered(buffer, *args, dtype=kind, **kwargs), shared=False), kind)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """Raise: only the classes of a dtype know how wide the elements of a file are."""
        raise RuntimeError("from_file can only be called on derived classes")

    def is_shared(self) -> bool:
        """True if the elements lie in memory that forked processes share."""
        return self._untyped.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the elements to memory that processes forked later share."""
        self._untyped.share_memory_()
        return self

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped.nbytes()

    def size(self) -> int:
        """The number of elements."""
        return self._untyped.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def _elements(self) -> Memory:
        return elements_of(self._untyped._bytes()[: self.size() * self.dtype.itemsize].view(self.dtype.stored))

    def tolist(self) -> list[Any]:
        """The elements as a list of numbers."""
        return self._elements().tolist()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the class of old for storages of this dtype."""
        if dtype is not None:
            raise NotImplementedError("a storage is converted with its methods float(), long() and so on")
        return f"torch.{self.dtype.scalar_type}Storage"

    def pickle_storage_type(self) -> str:
        """The class by which files say the dtype."""
        return f"{self.dtype.scalar_type}Storage"

    def clone(self) -> TypedStorage:
        """A copy of the elements."""
        return typed(self._untyped.clone(), self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return typed(self._untyped.__deepcopy__(memo), self.dtype)

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        """Take over the elements of another storage."""
        self._elements()[:] = source._elements()
        return self

    def fill_(self, value: Any) -> TypedStorage:
        """Make every element the same."""
        self[:] = value
        return self

    def resize_(self, size: int) -> None:
        """Change the number of elements."""
        self._untyped.resize_(size * self.dtype.itemsize)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not hasattr(type(index), "__index__"):
            raise TypeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        return self._elements()[in_range(operator.index(index), len(self))].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (slice, int)):
            raise RuntimeError(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        if not isinstance(index, slice):
            index = in_range(index, len(self))
        self._elements()[index] = stored_as(value, self.dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{listed(self.tolist())}[{kind} of size {len(self)}]"


def typed(untyped: UntypedStorage, kind: dtype) -> TypedStorage:
    """Bytes as elements of a dtype."""
    return TypedStorage(wrap_storage=untyped, dtype=kind)


def conversion(name: str, kind: dtype) -> Any:
    """A method that gives the elements in a dtype, on new memory."""

    def converted(self: Any) -> TypedStorage:
        elements = self._bytes() if isinstance(self, UntypedStorage) else self._elements()
        return typed(on_memory(stored_as(elements, kind), shared=False), kind)

    converted.__name__, converted.__doc__ = name, f"The elements as {kind}, on memory of their own."
    return converted


for name, kind in CONVERSIONS.items():
    for storage in (UntypedStorage, TypedStorage):
        setattr(storage, name, conversion(name, kind))
UntypedStorage.__module__ = TypedStorage.__module__ = "torch.storage"
StorageBase.__module__ = "torch._C"
