"""The storages of old, a class for each dtype: `torch.FloatStorage`. What they make are typed storages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import _dtype as dtypes
from pullback._dtype import dtype
from pullback._op.declare import spaces
from pullback.ops.storage_classes import StorageBase, TypedStorage, UntypedStorage, typed

FORMS = (
    "{}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n "
    "* (Sequence data)\n * (*, UntypedStorage wrap_storage)\n{}"
)


class LegacyStorageMeta(type):
    """The class of these classes: isinstance asks for the dtype."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype


class LegacyStorage(TypedStorage, metaclass=LegacyStorageMeta):
    """Storages of one dtype."""

    __slots__ = ()

    def __new__(cls, *args: Any, wrap_storage: Any = None, **kwargs: Any) -> Any:
        """A typed storage of this dtype."""
        if kwargs:
            raise RuntimeError(FORMS.format(cls, f"Keyword argument '{next(iter(kwargs))}' cannot be specified"))
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    FORMS.format(cls, "No positional arguments should be given when using 'wrap_storage'")
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    FORMS.format(cls, f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
                )
            return typed(wrap_storage, cls.dtype)
        if len(args) > 1:
            raise RuntimeError(FORMS.format(cls, "Too many positional arguments"))
        if args and not isinstance(args[0], (int, Sequence)):
            raise TypeError(FORMS.format(cls, f"Argument type not recognized: {type(args[0])}"))
        return TypedStorage(*args, dtype=cls.dtype)

    @classmethod
    def from_buffer(cls, buffer: Any, *args: Any, **kwargs: Any) -> TypedStorage:
        """The elements a buffer holds, copied."""
        return TypedStorage.from_buffer(buffer, *args, dtype=cls.dtype, **kwargs)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The elements of a file; if they are shared, writing to them writes to the file."""
        return typed(UntypedStorage.from_file(filename, shared, size * cls.dtype.itemsize), cls.dtype)


KINDS = (
    dtypes.float64, dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.int64, dtypes.int32, dtypes.int16,
    dtypes.int8, dtypes.uint8, dtypes.bool_, dtypes.complex128, dtypes.complex64,
)  # fmt: skip
for kind in KINDS:
    name, text = f"{kind.scalar_type}Storage", f"Makes storages of dtype {kind}."
    names = {"dtype": kind, "__module__": "torch", "__doc__": text, "__slots__": ()}
    spaces["torch"][name] = LegacyStorageMeta(name, (LegacyStorage,), names)
spaces["torch"].update(Storage=spaces["torch"]["FloatStorage"], StorageBase=StorageBase)
LegacyStorage.__name__ = LegacyStorage.__qualname__ = "_LegacyStorage"
LegacyStorage.__module__ = "torch.storage"
