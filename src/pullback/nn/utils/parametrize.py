"""Parametrizations: a parameter computed by modules from an original that is learnt in its place.

A module whose tensor is parametrized gets a class of its own, in which the tensor's name is a property:

    module.weight          -> parametrizations.weight()               what the modules make of the original
    module.weight = value  -> parametrizations.weight.right_inverse() the original that gives this value
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn.modules.container import ModuleDict, ModuleList
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class Cache:
    """What parametrizations have computed while `cached()` is on."""

    depth = 0
    values: dict[tuple[int, str], Any] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once while the context lasts."""
    Cache.depth += 1
    try:
        yield
    finally:
        Cache.depth -= 1
        if Cache.depth == 0:
            Cache.values = {}


def register(module: Module, name: str, tensor: Any) -> None:
    """Add a parameter as a parameter and a tensor as a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


# ------------------------------------------------------------------ the modules of one tensor


class ParametrizationList(ModuleList):
    """The modules that make one tensor, and the original they make it from."""

    original: Any

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = self._inverted(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check_result(shape, dtype)

    def _inverted(self, value: Any) -> Any:
        """The original that the modules would make this value from; modules that cannot tell are left out."""
        with pullback.no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        continue
        return value

    def _keep_one(self, original: Tensor, new: Tensor) -> None:
        if original.dtype != new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
            )
        with pullback.no_grad():
            # The very tensor the module had, so that optimizers keep looking at the right one.
            original.set_(new)
        register(self, "original", original)

    def _keep_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, part in enumerate(new):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(part).__name__}."
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            part.requires_grad_(original.requires_grad)
            register(self, f"original{i}", part)

    def _check_result(self, shape: Any, dtype: Any) -> None:
        made = self()
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def right_inverse(self, value: Any) -> None:
        """Set the original so that the modules make this value from it."""
        with pullback.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_one(value)
            else:
                self._set_several(value)

    def _set_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                f"{self.original.dtype}"
            )
        self.original.set_(value)

    def _set_several(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(values)}."
            )
        for i, value in enumerate(values):
            original = getattr(self, f"original{i}")
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. Got element "
                    f"{i} of type {type(value).__name__}."
                )
            if original.dtype != value.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} while `original{i}` has dtype "
                    f"{original.dtype}"
                )
            original.set_(value)

    def forward(self) -> Any:
        """What the modules make of the original."""
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*[getattr(self, f"original{i}") for i in range(self.ntensors)])
        for i in range(1, len(self)):
            value = self[i](value)
        return value


# ------------------------------------------------------------------ the class of a parametrized module


def give_own_class(module: Module) -> None:
    """Give the module a class of its own, to hang properties on."""
    kind = type(module)

    def copy_with_class(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            replica = self.__new__(type(self))
            memo[id(self)] = replica
            replica.__dict__ = deepcopy(self.__dict__, memo)
        return memo[id(self)]

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members: dict[str, Any] = {"__getstate__": refuse}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = copy_with_class
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)


def add_property(module: Module, name: str) -> None:
    """Make the tensor's name a property of the module's own class."""

    def read(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not Cache.depth:
            return parametrization()
        key = (id(self), name)
        if key not in Cache.values:
            Cache.values[key] = parametrization()
        return Cache.values[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Let a module compute this tensor from now on; several are called one after the other."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            check_addition(module, tensor_name, parametrization)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            give_own_class(module)
            module.parametrizations = ModuleDict()
        add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def check_addition(module: Module, name: str, parametrization: Any) -> None:
    """Refuse another parametrization that changes dtype or shape, forward or in its inverse."""
    now = getattr(module, name)
    made = parametrization(now)
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(now, what), getattr(made, what)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {before}\nparametrization(module.{name}).{what}: {after}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        before, after = getattr(now, what), getattr(back, what)
        if before != after:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {before}\nreturned {what}: {after}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether a tensor (or any) of the module is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make the tensor an ordinary one again: what the modules make, or else the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with pullback.no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        made = getattr(module, tensor_name)
        original = Parameter(made) if made.requires_grad else made
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class the module had before it got one of its own."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give another module the same parametrizations and originals."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        names = ["original"] if hasattr(source, "original") else [f"original{i}" for i in range(source.ntensors)]
        for original in names:
            setattr(target, original, getattr(source, original))
    return to_module
