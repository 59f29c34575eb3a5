"""The names that stand in a checkpoint for torch's things, and what they mean here.

A pickle names what it needs as (module, name). A file made by torch names torch's modules, and files made here do
the same, so that either library reads what the other wrote.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback import _dtype
from pullback._arrays.layout import Size
from pullback._arrays.memory import as_strided
from pullback._arrays.packed import packed
from pullback._device import device
from pullback._dtype import dtype
from pullback._lazy import seen, stored
from pullback._op.overrides import as_subclass
from pullback._tensor import Parameter, Tensor, wrap
from pullback.ops.create.filled import empty_strided
from pullback.ops.sparse.pickles import layout_named, rebuild_sparse
from pullback.ops.storage_classes import TypedStorage, UntypedStorage

YOUNG = ("uint16", "uint32", "uint64", "complex32")
STORAGES: dict[str, dtype] = {f"{kind.scalar_type}Storage": kind for kind in _dtype.ALL if kind.name not in YOUNG}
"""The storage classes of old, by which files say the dtype of their elements."""


def storage_name(kind: dtype) -> str | None:
    """The class by which a file says a dtype; None for dtypes younger than those classes."""
    name = f"{kind.scalar_type}Storage"
    return name if name in STORAGES else None


# ------------------------------------------------------------------ what a file may call


def rebuild_tensor(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = False,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A tensor on a storage of the file."""
    if not isinstance(storage, TypedStorage):
        raise ValueError(f"a tensor needs a storage, got {type(storage).__name__}")
    return rebuild_on(storage.untyped(), storage.dtype, storage_offset, size, stride, requires_grad, metadata)


def rebuild_tensor_of_dtype(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any,
    backward_hooks: Any,
    kind: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor of a dtype that has no storage class."""
    if not isinstance(storage, (TypedStorage, UntypedStorage)) or not isinstance(kind, dtype):
        raise ValueError("a tensor needs a storage and a dtype")
    untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
    return rebuild_on(untyped, kind, storage_offset, size, stride, requires_grad, metadata)


def rebuild_on(
    storage: UntypedStorage, kind: dtype, offset: Any, size: Any, stride: Any, requires_grad: Any, metadata: Any
) -> Tensor:
    """Look at the bytes of a storage; every number is checked, because a file may say anything."""
    size, stride = tuple(size), tuple(stride)
    numbers = (offset, *size, *stride)
    if len(size) != len(stride) or not all(type(n) is int and 0 <= n < 2**62 for n in numbers):
        raise ValueError("a tensor needs whole numbers, none negative, as its offset, sizes and strides")
    elements = storage._bytes()
    usable = len(elements) // kind.itemsize * kind.itemsize
    window = as_strided(elements[:usable].view(kind.stored), size, stride, offset)
    out = wrap(packed(window, kind.stored) if kind.packed else window)
    if metadata is not None:
        if not isinstance(metadata, dict) or not metadata.keys() <= {"conj", "neg"}:
            raise ValueError("a tensor has no such properties: only conj and neg")
        for word, sign in (("conj", "conjugate"), ("neg", "negative")):
            out = seen(out, stored(out), sign) if metadata.get(word) else out
    if requires_grad:
        out.requires_grad_(True)
    return out


def rebuild_meta_tensor(kind: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor on the meta device: nothing of it is in the file but its shape."""
    if not isinstance(kind, dtype):
        raise ValueError("a tensor needs a dtype")
    made: Tensor = empty_strided(tuple(size), tuple(stride), dtype=kind, device="meta")
    return made.requires_grad_(True) if requires_grad else made


def rebuild_parameter(data: Any, requires_grad: Any = True, backward_hooks: Any = None) -> Parameter:
    """A parameter around a tensor of the file."""
    if not isinstance(data, Tensor):
        raise ValueError(f"a parameter needs a tensor, got {type(data).__name__}")
    return Parameter(data.detach(), bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Tensor:
    """A parameter with attributes."""
    return with_attributes(rebuild_parameter(data, requires_grad), state)


def rebuild_from_type(function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
    """A tensor of a class of its own, or with attributes."""
    if function not in (rebuild_tensor, rebuild_tensor_of_dtype, rebuild_parameter, rebuild_sparse):
        raise ValueError("a tensor can only be rebuilt by a function made for it")
    out = function(*arguments)
    if kind is not type(out):
        if not (isinstance(kind, type) and issubclass(kind, Tensor)):
            raise ValueError("a tensor can only be of a class of tensors")
        out = as_subclass(out, kind)
    return with_attributes(out, state)


def with_attributes(tensor: Tensor, state: Any) -> Tensor:
    """Set what a program had hung on a tensor."""
    if isinstance(state, tuple) and len(state) == 2:
        state = state[0]
    if state:
        if not isinstance(state, dict) or not all(type(key) is str for key in state):
            raise ValueError("attributes of a tensor must be a dict")
        tensor.__dict__.update(state)
    return tensor


def encoded(text: Any, encoding: Any) -> bytes:
    """Bytes, which old pickles write as text."""
    if type(text) is not str or encoding != "latin1":
        raise ValueError("bytes are written as latin1 text")
    return text.encode("latin1")


def byte_array(content: Any = b"", encoding: Any = "latin-1") -> bytearray:
    """A bytearray of given bytes; never of a given length."""
    return bytearray(content.encode("latin-1") if type(content) is str else bytes_only(content))


def bytes_only(content: Any) -> bytes:
    """Its argument, if it is bytes."""
    if type(content) is not bytes:
        raise ValueError("expected bytes")
    return content


def default_dict(factory: Any = None, *content: Any) -> defaultdict[Any, Any]:
    """A defaultdict whose default is an empty container or zero."""
    if factory not in (None, dict, list, set, int, float, OrderedDict):
        raise ValueError("the default of a defaultdict can only be an empty container or zero")
    return defaultdict(factory, *content)


FUNCTIONS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): rebuild_tensor_of_dtype,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): rebuild_meta_tensor,
    ("torch._utils", "_rebuild_sparse_tensor"): rebuild_sparse,
    ("torch.serialization", "_get_layout"): layout_named,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild_from_type,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("collections", "defaultdict"): default_dict,
    ("_codecs", "encode"): encoded,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): byte_array,
}
"""What a file may call."""

VALUES: dict[tuple[str, str], Any] = {
    **{("torch", name): kind for name, kind in _dtype.NAMES.items()},
    **{("torch", name): kind for name, kind in STORAGES.items()},
    ("torch", "UntypedStorage"): UntypedStorage,
    ("torch.storage", "UntypedStorage"): UntypedStorage,
    ("torch", "Tensor"): Tensor,
    ("torch._tensor", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
    **{("builtins", kind.__name__): kind for kind in (dict, list, int, float)},
}
"""What a file may mention, but not call. A storage class stands for its dtype."""

safe: dict[tuple[str, str], Any] = {}
"""Further classes and functions the program has declared safe."""


def qualified(thing: Any) -> tuple[str, str]:
    """The name by which a pickle refers to a class or function."""
    if isinstance(thing, tuple) and len(thing) == 2:
        module, _, name = thing[1].rpartition(".")
        return module, name
    return thing.__module__, thing.__qualname__


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files use these classes and functions; loading one may then run them."""
    safe.update({qualified(thing): thing[0] if isinstance(thing, tuple) else thing for thing in safe_globals})


def get_safe_globals() -> list[Any]:
    """What the program has declared safe."""
    return list(safe.values())


def clear_safe_globals() -> None:
    """Forget what was declared safe."""
    safe.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """Within the block, let files use these classes and functions."""
    before = dict(safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        safe.clear()
        safe.update(before)
