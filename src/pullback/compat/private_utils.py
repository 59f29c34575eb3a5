"""`torch._utils`: small functions that packages take from torch's inside."""

from __future__ import annotations

import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any

import pullback as torch
from pullback import Tensor

# ------------------------------------------------------------------ many tensors in one


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of such a row, in the shapes of the tensors."""
    out, start = [], 0
    for tensor in tensors:
        out.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(out)


def _flatten_sparse_tensors(tensors: Iterable[Any]) -> tuple[Tensor, Tensor]:
    """The indices and the values of all sparse tensors, one after the other."""
    tensors = list(tensors)
    return _flatten_dense_tensors([t._indices() for t in tensors]), _flatten_dense_tensors(
        [t._values() for t in tensors]
    )


def _reorder_tensors_as(tensors: Iterable[Any], ordered_tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Tensors that are in order within their types, in the order of others of the same types."""
    waiting: dict[Any, list[Any]] = defaultdict(list)
    for tensor in tensors:
        waiting[tensor.type()].append(tensor)
    rows = {kind: iter(row) for kind, row in waiting.items()}
    return tuple([next(rows[tensor.type()]) for tensor in ordered_tensors])


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """The tensors in lists of one type each, none with more bytes than the limit unless it holds only one."""
    lists: dict[Any, list[Any]] = {}
    sizes: dict[Any, int] = {}
    for tensor in tensors:
        parts = [tensor._indices(), tensor._values()] if tensor.is_sparse else [tensor]
        size = sum([part.numel() * part.element_size() for part in parts])
        kind = tensor.type()
        if sizes.get(kind, 0) > 0 and sizes[kind] + size > size_limit:
            yield lists[kind]
            lists[kind], sizes[kind] = [], 0
        lists.setdefault(kind, []).append(tensor)
        sizes[kind] = sizes.get(kind, 0) + size
    yield from lists.values()


def _handle_complex(tensor: Any) -> Any:
    """A complex tensor as pairs of real numbers; anything else as it is."""
    return torch.view_as_real(tensor) if isinstance(tensor, Tensor) and tensor.is_complex() else tensor


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    if not isinstance(dtype, torch.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return int(dtype.itemsize)


# ------------------------------------------------------------------ tensors from their parts


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on a storage."""
    return torch.empty(0, dtype=storage.dtype).set_(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor on a storage, with what it had besides."""
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter on a tensor."""
    parameter = torch.nn.Parameter(data, requires_grad)
    parameter._backward_hooks = backward_hooks
    return parameter


# ------------------------------------------------------------------ errors of other threads and processes


class KeyErrorMessage(str):
    """A text that a KeyError shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again elsewhere."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type that shows where it came from."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:  # its class wants other arguments, and nobody knows which
            raise RuntimeError(text) from None
        raise error


# ------------------------------------------------------------------ devices


def _get_available_device_type() -> None:
    """There is no accelerator."""


def _get_all_device_indices() -> None:
    """There is no accelerator."""


def _get_current_device_index() -> None:
    """There is no accelerator."""


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The number of a device; -1 for the CPU."""
    if isinstance(device, str):
        device = torch.device(device)
    index = device if isinstance(device, int) else None
    if isinstance(device, torch.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device."""
    module = getattr(torch, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return module


def cpu_count() -> int | None:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


# ------------------------------------------------------------------ Python


class _ClassPropertyDescriptor:
    """An attribute that is computed from the class."""

    def __init__(self, fget: Any, fset: Any = None) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> Any:
    """A decorator: the method is an attribute of the class."""
    return _ClassPropertyDescriptor(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


class CallbackRegistry:
    """Functions to be called when something happens."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.callback_list: list[Callable[..., None]] = []

    def add_callback(self, cb: Callable[..., None]) -> None:
        """One more."""
        self.callback_list.append(cb)

    def fire_callbacks(self, *args: Any, **kwargs: Any) -> None:
        """Call all of them."""
        for callback in self.callback_list:
            callback(*args, **kwargs)


def annotate(ret: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that writes annotations."""

    def decorate(function: Any) -> Any:
        function.__annotations__ = dict(kwargs, **{"return": ret})
        return function

    return decorate


def render_call(fn: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
    """A call as text, tensors by their shapes."""
    name = torch.overrides.resolve_name(fn) or str(fn)

    def shown(value: Any) -> str:
        if not isinstance(value, Tensor):
            return repr(value)
        dtype = "" if value.dtype == torch.get_default_dtype() else f", dtype={value.dtype}"
        return f"tensor([...], size={tuple(value.shape)}{dtype})"

    parts = [shown(value) for value in args] + [f"{key}={shown(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(parts)})"


def is_compiling() -> bool:
    """Nothing is compiled."""
    return False


def _import_dotted_name(name: str) -> Any:
    """What a dotted name leads to, whose first part is a module that is loaded."""
    first, _, rest = name.partition(".")
    found: ModuleType = sys.modules[first]
    return attrgetter(rest)(found) if rest else found
