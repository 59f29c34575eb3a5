"""A library under comparison: its names by dotted path, and torch's sample inputs turned into its own tensors."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

# Types NumPy has no name for travel as the next wider type and are converted on arrival.
CARRIERS = {"bfloat16": "float32", "complex32": "complex64"}
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.ndarray, np.generic)


class Unconvertible(Exception):
    """A sample holds something that has no counterpart outside torch (a sparse tensor, an options object)."""


class Library:
    """One of the two libraries, torch or its peer."""

    def __init__(self, module: Any, name: str | None = None):
        self.module = module
        self.name = name or module.__name__
        self.tensor_type = type(module.from_numpy(np.zeros(1)))

    def resolve(self, path: str) -> Any:
        """Follow a dotted path (`nn.functional.relu`, `Tensor.add_`); None where it leads nowhere."""
        found = self.module
        for part in path.split("."):
            # A class also answers for its metaclass: `Tensor.__ror__` would be that of `type`.
            if isinstance(found, type) and not any(part in vars(base) for base in found.__mro__):
                return None
            found = getattr(found, part, None)
            if found is None:
                return None
        return found

    def require(self, path: str) -> Any:
        """Like `resolve`, with an error that names the path."""
        found = self.resolve(path)
        if found is None:
            raise AttributeError(f"{self.name}.{path} does not exist")
        return found

    def seed(self, seed: int = 42) -> None:
        """Start the library's own random numbers from a known place."""
        manual_seed = self.resolve("manual_seed")
        if manual_seed is not None:
            manual_seed(seed)

    def counterpart(self, function: Callable) -> Callable:
        """The peer's own version of a torch callable.

        torch's op database wraps some ops in functions of its own (`lambda x, *args: x.view(*args)`). Such a wrapper
        runs unchanged here, except that the name `torch` inside it means this library.
        """
        if isinstance(function, functools.partial):
            return functools.partial(self.counterpart(function.func), *function.args, **function.keywords)
        if isinstance(function, types.FunctionType) and "torch.testing" in (function.__module__ or ""):
            return self._rebound(function)
        path = torch_path(function)
        if path is None:
            raise Unconvertible(f"no public path to {function!r}")
        return self.require(path)

    def _rebound(self, function: types.FunctionType) -> types.FunctionType:
        def wrapper_set_seed(op: Callable, *args: Any, **kwargs: Any) -> Any:
            self.seed()
            return op(*args, **kwargs)

        names = {**function.__globals__, "torch": self.module, "wrapper_set_seed": wrapper_set_seed}
        rebound = types.FunctionType(function.__code__, names, function.__name__, None, function.__closure__)
        rebound.__defaults__, rebound.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        return rebound

    def tensor(self, array: np.ndarray, dtype: str, requires_grad: bool = False) -> Any:
        """A leaf tensor over the array's memory (a copy where NumPy lacks the dtype), with the array's strides."""
        made = self.module.from_numpy(np.asarray(array, CARRIERS.get(dtype, dtype)))
        made = made.to(self.require(dtype)) if dtype in CARRIERS else made
        return made.requires_grad_() if requires_grad else made

    def is_tensor(self, value: Any) -> bool:
        """Whether the value is a tensor of this library."""
        return isinstance(value, self.tensor_type)

    def array(self, tensor: Any) -> np.ndarray:
        """The values of a tensor as a NumPy array of their own."""
        tensor, name = tensor.detach(), dtype_name(tensor.dtype)
        if name in CARRIERS:
            tensor = tensor.to(self.require(CARRIERS[name]))
        if hasattr(tensor, "_is_zerotensor") and tensor._is_zerotensor():
            return np.zeros(tuple(tensor.shape), CARRIERS.get(name, name))
        for lazy in ("resolve_conj", "resolve_neg"):
            if hasattr(tensor, lazy):
                tensor = getattr(tensor, lazy)()
        return np.array(tensor.numpy())


def dtype_name(dtype: Any) -> str:
    """`float32` for torch.float32, whichever library's dtype it is."""
    return str(dtype).rpartition(".")[2]


@functools.cache
def torch_path(function: Callable) -> str | None:
    """The dotted path below `torch` that leads to a callable, or None."""
    name = getattr(function, "__name__", "")
    module = (getattr(function, "__module__", "") or "").removeprefix("torch").removeprefix(".")
    places = ["", module, "Tensor", "nn.functional", "linalg", "special", "fft"]
    for place in places:
        path = f"{place}.{name}" if place else name
        if TORCH.resolve(path) is function:
            return path
    return None


TORCH = Library(torch)


class Conversion:
    """Turns the torch values of one sample into a library's own, sharing memory wherever the sample shares memory.

    `leaf` may replace every tensor that wants a gradient, for instance by a dual tensor.
    """

    def __init__(self, library: Library, requires_grad: bool = True, leaf: Callable[[Any, int], Any] | None = None):
        self.library = library
        self.requires_grad = requires_grad
        self.leaf = leaf
        self.inputs: list[Any] = []  # every converted tensor
        self.leaves: list[Any] = []  # those that want a gradient
        self._tensors: dict[int, Any] = {}
        self._storages: dict[int, np.ndarray] = {}
        self._carried: list[torch.Tensor] = []  # kept, so that no other tensor comes to lie at the same address

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in self._tensors:
                self._tensors[id(value)] = self._tensor(value)
            return self._tensors[id(value)]
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, (list, tuple)):
            parts = [self(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, dict):
            return {key: self(part) for key, part in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            return self.library.require(dtype_name(value))
        if isinstance(value, torch.device):
            return self.library.require("device")(str(value))
        if isinstance(value, torch.Generator):
            return self.library.require("Generator")().manual_seed(value.initial_seed())
        if isinstance(value, PLAIN):
            return value
        if callable(value) and not isinstance(value, (type, torch.nn.Module)):
            return self.library.counterpart(value)
        if value in (bool, int, float, complex):
            return value
        raise Unconvertible(f"a {type(value).__name__}")

    def _tensor(self, tensor: torch.Tensor) -> Any:
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise Unconvertible(f"a tensor with layout {tensor.layout} on {tensor.device}")
        wants_grad = tensor.requires_grad
        tensor = tensor.detach()
        conjugate, negative = tensor.is_conj(), tensor.is_neg()
        if negative:
            tensor = torch._neg_view(tensor)
        if conjugate:
            tensor = tensor.conj()
        name = dtype_name(tensor.dtype)
        carried = tensor.to(getattr(torch, CARRIERS[name])) if name in CARRIERS else tensor
        self._carried.append(carried)
        made = self.library.tensor(self._array(carried), name, wants_grad and self.requires_grad and self.leaf is None)
        if wants_grad:
            made = self.leaf(made, len(self.leaves)) if self.leaf else made
            self.leaves.append(made)
        if conjugate:
            made = made.conj()
        if negative:
            made = self.library.require("_neg_view")(made)
        self.inputs.append(made)
        return made

    def _array(self, tensor: torch.Tensor) -> np.ndarray:
        if tensor.numel() == 0:
            return np.zeros(tuple(tensor.shape), tensor.numpy().dtype)
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._storages:
            count = storage.nbytes() // tensor.element_size()
            whole = torch.as_strided(tensor, (count,), (1,), 0)
            self._storages[storage.data_ptr()] = whole.numpy().copy()
        flat = self._storages[storage.data_ptr()].view(tensor.numpy().dtype)[tensor.storage_offset() :]
        strides = [step * flat.itemsize for step in tensor.stride()]
        return np.lib.stride_tricks.as_strided(flat, tuple(tensor.shape), strides)


def tensors_in(library: Library, value: Any) -> Iterator[Any]:
    """All tensors of a nested value, in order."""
    if library.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(library, part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(library, part)
