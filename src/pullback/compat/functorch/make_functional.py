"""`torch._functorch.make_functional`: a module as a function of its parameters, given in order instead of by name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from pullback import Tensor, empty_like, stack
from pullback.func.replaced import swap
from pullback.nn import Module, Parameter

Extracted = tuple[tuple[Tensor, ...], tuple[str, ...], dict[str, list[str]]]
"""Tensors, their names, and all names of each, tied ones included."""


def _extract_members(module: Module, named: Callable[..., Any], made: Callable[[Tensor], Tensor]) -> Extracted:
    """Take the tensors out of a module: what stays has their shapes and no memory."""
    names_of: dict[Tensor, list[str]] = {}
    for name, tensor in named(remove_duplicate=False):
        names_of.setdefault(tensor, []).append(name)
    for tensor, names in names_of.items():
        shell = made(empty_like(tensor, device="meta"))
        for name in names:
            swap(module, name, shell)
    return tuple(names_of), tuple([names[0] for names in names_of.values()]), {n[0]: n for n in names_of.values()}


def extract_weights(mod: Module) -> Extracted:
    """Take the parameters out of a module."""
    return _extract_members(mod, mod.named_parameters, Parameter)


def extract_buffers(mod: Module) -> Extracted:
    """Take the buffers out of a module."""
    return _extract_members(mod, mod.named_buffers, lambda tensor: tensor)


def load_weights(mod: Module, names: Sequence[str], params: Sequence[Tensor], as_params: bool = False) -> None:
    """Put tensors, which may have a history, in the places with these names."""
    for name, tensor in zip(names, params, strict=True):
        swap(mod, name, Parameter(tensor) if as_params else tensor)


def load_buffers(mod: Module, names: Sequence[str], buffers: Sequence[Tensor], as_params: bool = False) -> None:
    """The same for buffers."""
    load_weights(mod, names, buffers)


def load_state(
    model: Module,
    weights: Sequence[Tensor],
    weight_names: Sequence[str],
    buffers: Sequence[Tensor] = (),
    buffer_names: Sequence[str] = (),
) -> Module:
    """Put parameters and buffers back into a module they were taken out of."""
    load_weights(model, weight_names, weights)
    load_buffers(model, buffer_names, buffers)
    return model


def _swap_state(mod: Module, names_map: dict[str, list[str]], elems: Iterable[Tensor]) -> list[Tensor]:
    """Put one tensor in the place of each name and of those tied to it; what was there before."""
    before = []
    for names, tensor in zip(names_map.values(), elems):
        before.append(swap(mod, names[0], tensor))
        for tied in names[1:]:
            swap(mod, tied, tensor)
    return before


class FunctionalModuleWithBuffers(Module):
    """What make_functional_with_buffers gives: called with parameters, buffers and the arguments of the module."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.all_names_map = {**param_names_map, **buffer_names_map}

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> Any:
        model = copy.deepcopy(model)
        params, param_names, param_names_map = extract_weights(model)
        buffers, buffer_names, buffer_names_map = extract_buffers(model)
        names = (param_names, buffer_names, param_names_map, buffer_names_map)
        return FunctionalModuleWithBuffers(model, *names), tracked(params, disable_autograd_tracking), buffers

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return called_with(self.stateless_model, self.all_names_map, chain(params, buffers), args, kwargs)


class FunctionalModule(Module):
    """What make_functional gives: called with parameters and the arguments of the module."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], names_map: dict[str, list[str]]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False) -> Any:
        model = copy.deepcopy(model)
        params, param_names, names_map = extract_weights(model)
        return FunctionalModule(model, param_names, names_map), tracked(params, disable_autograd_tracking)

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return called_with(self.stateless_model, self.names_map, params, args, kwargs)


def tracked(params: tuple[Tensor, ...], disable_autograd_tracking: bool) -> tuple[Tensor, ...]:
    """The parameters, which want no gradients if asked."""
    for param in params if disable_autograd_tracking else ():
        param.requires_grad_(False)
    return params


def called_with(
    model: Module, names_map: dict[str, list[str]], state: Iterable[Tensor], args: Any, kwargs: dict[str, Any]
) -> Any:
    """Call a module that has this state meanwhile."""
    before = _swap_state(model, names_map, state)
    try:
        return model(*args, **kwargs)
    finally:
        _swap_state(model, names_map, before)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, tuple[Tensor, ...]]:
    """A function `func(params, *args)` that does what the module does, and copies of its parameters.

    Args:
        model: a module without buffers.
        disable_autograd_tracking: whether the parameters returned want no gradients.
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)  # type: ignore[no-any-return]


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function `func(params, buffers, *args)` that does what the module does, and copies of both.

    Args:
        model: a module.
        disable_autograd_tracking: whether the parameters returned want no gradients.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)  # type: ignore[no-any-return]


def transpose_stack(tuple_of_tuple_of_tensors: Iterable[Iterable[Tensor]]) -> tuple[Tensor, ...]:
    """The first tensors of all tuples as one, the second ones, and so on."""
    return tuple([stack(shards).detach() for shards in zip(*tuple_of_tuple_of_tensors)])


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function for `vmap`, and the parameters and buffers of several modules of one class, stacked."""
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*[make_functional_with_buffers(model) for model in models])
    return functions[0], transpose_stack(params), transpose_stack(buffers)
