"""`fully_shard`: parameters, gradients and optimizer state in parts on many ranks, gathered module by module."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pullback import nn
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.fsdp.param_group import FSDPParam, FSDPParamGroup
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from pullback.distributed.fsdp.state import FSDPState
from pullback.distributed.tensor.placement_types import Shard
from pullback.distributed.world import get_world_size, init_process_group, is_initialized

PLAIN = MixedPrecisionPolicy()
NO_OFFLOAD = OffloadPolicy()


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[nn.Parameter], Any] | None = None,
    mp_policy: MixedPrecisionPolicy = PLAIN,
    offload_policy: OffloadPolicy = NO_OFFLOAD,
    ignored_params: set[nn.Parameter] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Cut the parameters of a module, except those of parts that were cut before, over the ranks of a mesh."""
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for one in modules:
        if isinstance(one, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        if "_fsdp_state" in one.__dict__:
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once. fully_shard has "
                f"already been applied to the following module:\n{one}"
            )
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard(dp_mesh_dims=...): pass the part of the mesh, mesh['dp'], as mesh")
    if mesh is None:
        if not is_initialized():
            init_process_group()
        mesh = init_device_mesh("cpu", (get_world_size(),))
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError(
            "Please init the 2D mesh for HSDP with mesh_dim_names specified, as replicate and shard dimensions"
        )
    fewer = fewer_ranks(mesh, reshard_after_forward)
    if fewer is not None and fewer.size() != get_world_size():
        raise NotImplementedError("fully_shard(reshard_after_forward=<int>) on some of the ranks: pass True or False")
    params = [
        FSDPParam(param, places, mesh, cut_of(param, shard_placement_fn), mp_policy.param_dtype)
        for param, places in managed(modules, ignored_params or set())
    ]
    group = FSDPParamGroup(params, mesh, mp_policy) if params else None
    if group is not None:
        group.fewer = fewer
    stays = type(reshard_after_forward) is int and reshard_after_forward == 1  # on one rank
    state = FSDPState(modules, group, mp_policy, False if stays else reshard_after_forward)
    for param in params:
        param.put(param.sharded)
    for one in modules:
        one.__dict__["_fsdp_state"] = state
        one.__class__ = with_methods(type(one))
        one.register_state_dict_pre_hook(lambda self, prefix, keep_vars: self.reshard())
        one.register_load_state_dict_pre_hook(lambda self, *rest: self.reshard())
    return module


def fewer_ranks(mesh: DeviceMesh, wanted: Any) -> DeviceMesh | None:
    """The mesh whose rows hold all parts between forward and backward, where an int says how long these are."""
    if type(wanted) is not int:
        return None
    size = mesh.size(mesh.ndim - 1)
    if wanted < 1 or size % wanted:
        raise ValueError(f"If passing reshard_after_forward as an int, it should be a factor of {size}, not {wanted}")
    return DeviceMesh("cpu", mesh.mesh.view(-1, wanted)) if 1 < wanted < size else None


def cut_of(param: Any, choose: Any) -> int:
    """The dimension that is cut."""
    found = None if choose is None else choose(param)
    if found is not None and type(found) is not Shard:
        raise NotImplementedError(f"shard_placement_fn returned {found!r}: it may return Shard(dim) or None")
    dim = 0 if found is None else found.dim % param.ndim
    if not param.ndim:
        raise ValueError(
            "fully_shard doesn't support scalar parameters. Change a scalar parameter to a 1D tensor with numel "
            "equal to 1."
        )
    return int(dim)


def managed(modules: tuple[Any, ...], ignored: set[Any]) -> list[tuple[Any, list[tuple[Any, str]]]]:
    """The parameters of modules that nobody manages yet, each with all places where it is."""
    found: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    out = {id(param) for param in ignored}
    seen: set[int] = set()

    def visit(module: Any, top: bool) -> None:
        if id(module) in seen or (not top and "_fsdp_state" in module.__dict__):
            return
        seen.add(id(module))
        for name, param in module._parameters.items():
            if param is not None and id(param) not in out:
                found.setdefault(id(param), (param, []))[1].append((module, name))
        for part in module.children():
            visit(part, False)

    for module in modules:
        visit(module, True)
    return list(found.values())


@cache
def with_methods(kind: type) -> type:
    """The class of a module with the methods of FSDPModule."""
    made = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__deepcopy__": refuse_copy})
    made.__module__ = "torch.distributed.fsdp._fully_shard._fsdp_init"
    return made


def refuse_copy(self: Any, memo: Any) -> Any:
    """Refused: the copy would have the hooks of this one."""
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def __init__(self, group: FSDPParamGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until the parameters are whole."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


class FSDPModule:
    """The methods of a module after `fully_shard`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance of the class without them, as in `type(module)(...)`."""
        return cls.__mro__[2](*args, **kwargs)

    def _get_fsdp_state(self) -> FSDPState:
        return self.__dict__["_fsdp_state"]  # type: ignore[no-any-return]

    def _groups(self, recurse: bool = True) -> list[FSDPParamGroup]:
        parts: Any = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        states = [part.__dict__.get("_fsdp_state") for part in parts]
        return [state.group for state in states if state is not None and state.group is not None]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, not those of parts that were cut by themselves."""
        group = self._get_fsdp_state().group
        handle = UnshardHandle(group)
        if group is not None:
            group.gather()
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Give the memory of gathered parameters back."""
        group = self._get_fsdp_state().group
        if group is not None:
            group.reshard()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Whether gradients are waited for at the end of backward."""
        state = self._get_fsdp_state()
        if state.step is None:
            state.become_root()
        assert state.step is not None
        state.step.last = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward reduces gradients; if not they stay whole and add up."""
        for group in self._groups(recurse):
            group.sync = group.all_reduce = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether replicas of the shards add their gradients."""
        for group in self._groups(recurse):
            group.all_reduce = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether memory is given back between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for part in self.modules() if recurse else [self]:  # type: ignore[attr-defined]
            if "_fsdp_state" in part.__dict__:
                part._fsdp_state.reshard_wanted = reshard_after_forward
        for group in self._groups(recurse):
            group.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether memory is given back after backward."""
        for group in self._groups(recurse):
            group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Modules whose parameters are gathered in the background while this one runs."""
        self._get_fsdp_state().forward_next = states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """The same in backward; the one that ran before this one, unless told otherwise."""
        self._get_fsdp_state().backward_next = states_of(modules)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """What sums of gradients are divided by; the number of ranks, unless told otherwise."""
        group = self._get_fsdp_state().group
        if group is not None:
            group.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_all_reduce_hook(self, hook: Callable[[Any], None], *, stream: Any = None) -> None:
        """Call a hook with the reduced gradients of this module, in one tensor."""
        group = self._get_fsdp_state().group
        if group is not None:
            group.hook = hook

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether backward needs the parameters of this module."""
        self._get_fsdp_state().unshard_in_backward = unshard_in_backward

    def _set_unshard_async_op(self, async_op: bool) -> None:
        """Nothing: what is gathered ahead is gathered in the background anyway."""

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        """Parts are moved and cast, not wholes."""
        self.reshard()
        out = super()._apply(*args, **kwargs)  # type: ignore[misc]
        for group in self._groups(False):
            for param in group.params:
                param.reset()
        return out


def states_of(modules: list[Any]) -> list[FSDPState]:
    """The states of modules that were cut."""
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(module)}")
    return [module._get_fsdp_state() for module in modules]


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method gather the parameters as `forward` does."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    def gathered(*args: Any, **kwargs: Any) -> Any:
        state = module._get_fsdp_state()
        args, kwargs = state.pre_forward(module, args, kwargs)
        return state.post_forward(module, args, original(*args, **kwargs))

    setattr(module, method_name, gathered)


for public in (FSDPModule, UnshardHandle):
    public.__module__ = "torch.distributed.fsdp"
