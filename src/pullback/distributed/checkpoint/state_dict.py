"""State dicts of models and optimizers by the names of parameters, whatever wraps the model and cuts it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.distributed.checkpoint.items import flattened, mapped
from pullback.distributed.objects import broadcast_object_list
from pullback.distributed.tensor.api import distribute_tensor
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.world import get_rank, is_initialized

WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")


@dataclass
class StateDictOptions:
    """How a state dict is made, or loaded."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def plain_name(model: nn.Module, name: str) -> str:
    """A name without the wrappers of modules."""
    parts, module = [], model
    for part in name.split("."):
        wrapped = part in WRAPPERS or (part == "module" and type(module).__name__ == "DistributedDataParallel")
        if not wrapped:
            parts.append(part)
        module = getattr(module, part, module)
    return ".".join(parts)


def several(optimizers: Any) -> list[Any]:
    """Optimizers, in a list."""
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def refuse_parts(submodules: Any) -> None:
    """Parts of models are models."""
    if submodules:
        raise NotImplementedError("submodules: ask for the state dict of the part itself")


def presented(state: Any, options: StateDictOptions) -> Any:
    """A state dict as it was asked for: with whole tensors, on the host, on the first rank only."""

    def change(value: Any) -> Any:
        if isinstance(value, DTensor) and options.full_state_dict:
            value = value.full_tensor()
        return value.cpu() if isinstance(value, Tensor) and options.cpu_offload else value

    out = mapped(state, change)
    if options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0:
        return type(state)()
    return out


def get_model_state_dict(model: nn.Module, *, submodules: Any = None, options: StateDictOptions | None = None) -> Any:
    """The state dict of a model, by the names its parameters have without wrappers."""
    options = options or StateDictOptions()
    refuse_parts(submodules)
    state = OrderedDict([(plain_name(model, name), value) for name, value in model.state_dict().items()])
    if options.ignore_frozen_params:
        for name, param in model.named_parameters():
            if not param.requires_grad:
                state.pop(plain_name(model, name), None)
    whole = presented(state, options)
    return OrderedDict(whole)


def names_of(model: nn.Module) -> dict[int, str]:
    """The name of each parameter."""
    return {id(param): plain_name(model, name) for name, param in model.named_parameters()}


def make_state(optimizer: Any) -> None:
    """The state of an optimizer that has done no step: by a step that changes nothing."""
    if optimizer.state:
        return
    params = [param for group in optimizer.param_groups for param in group["params"]]
    if any([param.grad is not None for param in params]):
        raise RuntimeError(
            "state_dict can only be used if the optimizer states are initialized (usually after one step() with "
            "gradients) or gradients are None."
        )
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    decays = [group.get("weight_decay") for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = torch.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
    for param in params:
        if param.requires_grad:
            param.grad = torch.zeros_like(param)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    for group, decay in zip(optimizer.param_groups, decays):
        if "lr" in group:
            group["lr"] = rates.pop(0)
        if "weight_decay" in group:
            group["weight_decay"] = decay


def get_optimizer_state_dict(
    model: nn.Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> Any:
    """The state dict of optimizers, by the names of parameters."""
    options = options or StateDictOptions()
    refuse_parts(submodules)
    names = names_of(model)
    out: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in several(optimizers):
        make_state(optimizer)
        found = optimizer.state_dict()
        params = [param for group in optimizer.param_groups for param in group["params"]]
        called = [names[id(param)] for param in params]
        for number, state in found["state"].items():
            out["state"][called[number]] = state
        for group in found["param_groups"]:
            out["param_groups"].append({**group, "params": [called[number] for number in group["params"]]})
    out = presented(out, options)
    if options.flatten_optimizer_state_dict and out:
        return flat(out)
    return out


def flat(state: Any) -> dict[str, Any]:
    """An optimizer's state dict without dicts inside: `state.weight.step`, `param_groups.weight.lr`."""
    out = {name: value for name, (_, value) in flattened({"state": state["state"]}).items()}
    for group in state["param_groups"]:
        for name in group["params"]:
            out |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return out


def unflattened(state: dict[str, Any], optimizers: list[Any], names: dict[int, str]) -> dict[str, Any]:
    """The opposite."""
    out: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            called = [names[id(param)] for param in group["params"]]
            entry: dict[str, Any] = {"params": called}
            for key in group:
                if key != "params" and called and f"param_groups.{called[0]}.{key}" in state:
                    entry[key] = state[f"param_groups.{called[0]}.{key}"]
            out["param_groups"].append(entry)
            for name in called:
                start = f"state.{name}."
                found = {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}
                if found:
                    out["state"][name] = found
    return out


def get_state_dict(
    model: nn.Module, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[Any, Any]:
    """Those of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


# ------------------------------------------------------------------ loading


def from_first(state: Any, options: StateDictOptions) -> Any:
    """The state dict of the first rank, if the others have none."""
    if not options.broadcast_from_rank0:
        return state
    if not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    box = [state]
    broadcast_object_list(box, src=0)
    return box[0]


def like(value: Any, target: Any) -> Any:
    """A whole tensor cut as another."""
    if isinstance(target, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor) and value.ndim:
        return distribute_tensor(value.detach(), target.device_mesh, target.placements, src_data_rank=None)
    return value


def set_model_state_dict(model: nn.Module, model_state_dict: Any, *, options: StateDictOptions | None = None) -> Any:
    """Load a state dict into a model, by names without wrappers."""
    options = options or StateDictOptions()
    state = from_first(model_state_dict, options)
    own = model.state_dict()
    called = {plain_name(model, name): name for name in own}
    loaded = {}
    for name, value in state.items():
        target = called.get(name, name)
        loaded[target] = like(value, own.get(target)) if options.full_state_dict else value
    return model.load_state_dict(loaded, strict=options.strict)


def set_optimizer_state_dict(
    model: nn.Module, optimizers: Any, optim_state_dict: Any, *, options: StateDictOptions | None = None
) -> None:
    """Load a state dict, by names of parameters, into optimizers."""
    options = options or StateDictOptions()
    names, each = names_of(model), several(optimizers)
    for optimizer in each:
        make_state(optimizer)
    state = from_first(optim_state_dict, options)
    if "state" not in state:
        state = unflattened(state, each, names)
    groups = {tuple(group["params"]): group for group in state["param_groups"]}
    for optimizer in each:
        numbers: dict[str, int] = {}
        out: dict[str, Any] = {"state": {}, "param_groups": []}
        for group in optimizer.param_groups:
            called = [names[id(param)] for param in group["params"]]
            found = groups.get(tuple(called)) or next(
                (one for one in groups.values() if set(called) & set(one["params"])), None
            )
            if found is None:
                raise RuntimeError(f"the state dict has no group of the parameters {called}")
            start = len(numbers)
            numbers |= {name: start + place for place, name in enumerate(called)}
            kept = {key: value for key, value in group.items() if key != "params"}
            entry = {**kept, **{key: value for key, value in found.items() if key in kept}}
            out["param_groups"].append({**entry, "params": [numbers[name] for name in called]})
            for param, name in zip(group["params"], called):
                if name in state["state"]:
                    values = state["state"][name]
                    out["state"][numbers[name]] = {key: like(value, param) for key, value in values.items()}
        optimizer.load_state_dict(out)


def set_state_dict(
    model: nn.Module,
    optimizers: Any,
    *,
    model_state_dict: Any,
    optim_state_dict: Any,
    options: StateDictOptions | None = None,
) -> Any:
    """Load those of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
