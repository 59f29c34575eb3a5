"""The memory behind tensors: their storages, `set_`, copies that keep aliasing, and pickling."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

from pullback._arrays.layout import strided
from pullback._arrays.memory import as_strided, contiguous_strides, data_ptr, memory_of
from pullback._arrays.packed import from_bits
from pullback._arrays.sizes import check_window
from pullback._dtype import canonical, dtype, int32, uint8
from pullback._foreign import ForeignTensor, PackedTensor
from pullback._lazy import LazyTensor, signs, stored
from pullback._modes import is_grad_enabled, is_inference_mode_enabled
from pullback._op.declare import spaces
from pullback._op.define import Array, function, not_implemented, op
from pullback._op.results import record
from pullback._runtime.warnings import warn, warn_once
from pullback._tensor import INFERENCE, Parameter, Tensor, adopt, bump_version, wrap
from pullback._tensor import new as allocate
from pullback.autograd.view import check_inplace, rebase_history, wants_grad
from pullback.ops.create.copy import copied
from pullback.ops.storage_classes import TypedStorage, UntypedStorage, on_memory, typed
from pullback.ops.supported import invalid_combination

TYPED_STORAGE = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
    "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


spaces["torch"].update(UntypedStorage=UntypedStorage, TypedStorage=TypedStorage)


@function(raw=True, space=None)
def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the storage this tensor looks at, as raw bytes; views of one another share it."""
    return on_memory(memory_of(stored(self)))


@function(raw=True, space=None)
def storage(self: Tensor) -> TypedStorage:
    """Return the storage this tensor looks at, as elements of its dtype; views of one another share it."""
    warn_once(TYPED_STORAGE)
    return typed(untyped_storage(self), self.dtype)


@op(vmap="entries", space=None, name="set_", self=not_implemented, source=not_implemented)
def set_source(self: Array, source: Array | None) -> Array:
    """What other memory holds: nobody knows what that has to do with what was there."""
    return self if source is None else source


def looking_at(self: Tensor, array: Array, source: Tensor | None = None) -> Tensor:
    """Make a tensor look at other memory; if it or the source wanted gradients, nobody can say of what from now on."""
    made = wrap(array)
    node = record(set_source.op, {"self": self, "source": source}, [made])
    self._array = array
    bump_version(self)
    if node is not None and made._requires_grad:
        rebase_history(self, node)
    return self


@function(raw=True, space=None)
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor look at the memory of `source`, in place.

    `source` is a tensor of the same dtype or a storage; without one, the tensor becomes empty. `storage_offset`, `size`
    and `stride`, all counted in elements, choose the part of that memory to see.
    """
    if source is not None and not isinstance(source, (Tensor, TypedStorage, UntypedStorage)):
        raise invalid_combination("set_", (source,))
    check_inplace(self, is_grad_enabled() and wants_grad(self))
    if source is None:
        return looking_at(self, np.empty(0, self._array.dtype))
    if isinstance(source, Tensor):
        if source.layout is not strided or self.layout is not strided:
            raise NotImplementedError(
                "Could not run 'aten::set_.source_Tensor' with arguments from the 'SparseCPU' backend."
            )
        if source._array.dtype is not self._array.dtype:
            mine, its = self.dtype.cpp_name, source.dtype.cpp_name
            raise RuntimeError(f"Could not set tensor of type {its} to a tensor of type {mine}")
        if getattr(source._array, "bdim", None) is not None and not hasattr(type(self), "run_op"):
            raise RuntimeError(
                "vmap: aten::set_(self, *extra_args) is not possible because there exists a Tensor `other` in "
                "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                f"`self` not being vmapped over at level {source._array.level}. Please try to use out-of-place "
                "operators instead of aten::set_. If said operator is being called inside the PyTorch framework, "
                "please file a bug report instead."
            )
        array = stored(source)
        return looking_at(self, array if size is None else window(array, storage_offset, size, stride), source)
    untyped = source.untyped()
    untyped._shared = True
    kind = self._array.dtype
    elements = untyped._bytes()[: untyped.nbytes() // kind.itemsize * kind.itemsize].view(kind)
    return looking_at(self, window(elements, storage_offset, (elements.size,) if size is None else size, stride))


def window(array: np.ndarray[Any, Any], offset: int, size: Any, stride: Any) -> np.ndarray[Any, Any]:
    """A window onto the memory of an array."""
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if min(size, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    check_window(size, stride, offset, array.dtype.itemsize)
    return as_strided(array, size, contiguous_strides(size) if stride is None else stride, offset)


# ------------------------------------------------------------------ copy.copy, copy.deepcopy


def copy_of(self: Tensor) -> Tensor:
    """`copy.copy`: a new leaf on the same memory."""
    out = remade(type(self), stored(self), self.requires_grad, signs(self))
    out.__dict__.update(self.__dict__)
    return out


def remade(
    kind: type, array: np.ndarray[Any, Any], requires_grad: bool, seen_as: tuple[bool, bool] = (False, False)
) -> Tensor:
    """A new leaf around an array. Torch makes it empty and sets its memory, which counts as one write."""
    out: Any = allocate(kind)
    if kind is LazyTensor:
        out._conjugate, out._negative = seen_as
    adopt(out, array)
    out._requires_grad = requires_grad
    out._counter = INFERENCE if is_inference_mode_enabled() else [0 if issubclass(kind, Parameter) else 1]
    return out


def deepcopy_of(self: Tensor, memo: dict[Any, Any]) -> Tensor:
    """`copy.deepcopy`: a new leaf on new memory; what shared memory before shares the new memory."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    if type(self) is LazyTensor:
        out = memo[id(self)] = remade(Tensor, self._array, self.requires_grad)
        return out
    if isinstance(self, Parameter):
        out = memo[id(self)] = remade(type(self), copied(self._array), self._requires_grad)
        return out
    out = memo[id(self)] = remade(type(self), copied_window(self._array, memo), self.requires_grad)
    if self._grad is not None:
        out._grad = deepcopy(self._grad, memo)
    if self.__dict__:
        out.__dict__.update(deepcopy(self.__dict__, memo))
    return out


def copied_window(array: np.ndarray[Any, Any], memo: dict[Any, Any]) -> np.ndarray[Any, Any]:
    """The same window onto a copy of the memory, which all windows onto that memory share."""
    memory = memory_of(array)
    if not memory.flags.c_contiguous and not memory.flags.f_contiguous:
        return copied(array)
    copies = memo.setdefault("memory of tensors", {})
    if id(memory) not in copies:
        copies[id(memory)] = memory.reshape(-1, order="A").copy()
    offset = data_ptr(array) - data_ptr(memory) if array.size else 0
    return np.ndarray(array.shape, array.dtype, copies[id(memory)], offset, array.strides)


# ------------------------------------------------------------------ pickle


def reduce_tensor(self: Tensor, protocol: Any) -> Any:
    """`pickle`: the memory and the window onto it. As in torch, each tensor of a pickle brings its own copy."""
    warn_about_hooks(self)
    array = stored(self)
    memory = memory_of(array)
    if isinstance(self, PackedTensor):
        return rebuild_packed, (
            self.view(BITS[self.itemsize]),
            self.dtype,
            self.requires_grad,
            type(self) is not PackedTensor,
        )
    if isinstance(self, ForeignTensor):
        attributes = dict(self.__dict__) if self.__dict__ else None
        return rebuild_foreign, (array, self.requires_grad, isinstance(self, Parameter), attributes)
    if not memory.flags.c_contiguous and not memory.flags.f_contiguous:
        array = memory = copied(array)
    offset = data_ptr(array) - data_ptr(memory) if array.size else 0
    kind: Any = None if type(self) in (Tensor, LazyTensor) else type(self)
    if kind is Parameter:
        kind = "Parameter"  # by this name, whatever module the class is said to be from
    attributes = dict(self.__dict__) if self.__dict__ else None
    flat = memory.reshape(-1, order="A")
    arguments = (flat, offset, array.shape, array.strides, self.requires_grad, kind, attributes)
    return rebuild_tensor, (*arguments, signs(self)) if any(signs(self)) else arguments


def rebuild_tensor(
    memory: np.ndarray[Any, Any],
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    kind: Any = None,
    attributes: Any = None,
    seen_as: tuple[bool, bool] = (False, False),
) -> Tensor:
    """A tensor from its pickle."""
    memory = canonical(memory)
    array = np.ndarray(shape, memory.dtype, memory, offset, strides)
    if kind == "Parameter":
        kind = Parameter
    out = remade(kind or (LazyTensor if any(seen_as) else Tensor), array, requires_grad, seen_as)
    if attributes:
        out.__dict__.update(attributes)
    return out


def rebuild_foreign(array: Any, requires_grad: bool, parameter: bool, attributes: Any) -> Tensor:
    """A tensor of another device from its pickle: its array knows where it belongs."""
    out = wrap(array)
    out = Parameter(out, requires_grad) if parameter else out.requires_grad_(requires_grad)
    if attributes:
        out.__dict__.update(attributes)
    return out


BITS = {1: uint8, 4: int32}
"""The dtypes as whose elements packed ones are pickled, by their width."""


def rebuild_packed(bits: Tensor, kind: dtype, requires_grad: bool, parameter: bool) -> Tensor:
    """A tensor of packed elements from its pickle."""
    out = wrap(from_bits(bits._array, kind.stored))
    return Parameter(out, requires_grad) if parameter else out.requires_grad_(requires_grad)


def warn_about_hooks(tensor: Tensor) -> None:
    """Warn about hooks that are lost when a tensor is pickled."""
    hooks = None if tensor._extra is None else tensor._extra.hooks
    for hook in (hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
            )


Tensor.__copy__ = copy_of  # type: ignore[attr-defined]
Tensor.__deepcopy__ = deepcopy_of  # type: ignore[attr-defined]
Tensor.__reduce_ex__ = reduce_tensor  # type: ignore[method-assign, assignment]
