"""`FullyShardedDataParallel`: `fully_shard` as a module around a module."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.distributed import collectives
from pullback.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    like,
    set_optimizer_state_dict,
)
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.fsdp.fully_shard import managed
from pullback.distributed.fsdp.options import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from pullback.distributed.fsdp.param_group import FSDPParam, FSDPParamGroup
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy
from pullback.distributed.fsdp.state import FSDPState
from pullback.distributed.fsdp.wrap import wrap_parts
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.world import get_rank, get_world_size

PREFIX = "_fsdp_wrapped_module."
KEPT = {ShardingStrategy.NO_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2}
HYBRID = {ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2}


class FullyShardedDataParallel(nn.Module):
    """A module whose parameters lie in parts on all ranks, gathered while it runs. They keep their names and shapes."""

    def __init__(
        self,
        module: nn.Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if param_init_fn is not None:
            raise NotImplementedError("param_init_fn: make the module on the host, or use fully_shard and to_empty")
        mesh = mesh_of(process_group, device_mesh, strategy)
        ignored = {part for one in ignored_modules or () for part in one.modules()}
        left_out = {param for one in ignored for param in one.parameters()}
        for one in ignored_states or ():
            left_out |= set(one.parameters()) if isinstance(one, nn.Module) else {one}
        if sync_module_states:
            for tensor in (*module.parameters(), *module.buffers()):
                if not isinstance(tensor, DTensor):
                    for dim in range(mesh.ndim):
                        collectives.broadcast(tensor.detach(), group=mesh.get_group(dim), group_src=0)
        options: dict[str, Any] = {"sharding_strategy": strategy, "mixed_precision": mixed_precision}
        options |= {"device_mesh": mesh, "ignored_states": left_out, "backward_prefetch": backward_prefetch}
        if auto_wrap_policy is not None:
            wrap_parts(module, auto_wrap_policy, ignored, lambda part, **told: type(self)(part, **{**options, **told}))
        self._fsdp_wrapped_module = module
        policy = mixed_precision or MixedPrecision()
        precision = MixedPrecisionPolicy(policy.param_dtype, policy.reduce_dtype, None, True)
        if policy.buffer_dtype is not None:
            for buffer_owner in module.modules():
                for name, buffer in buffer_owner._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        buffer_owner._buffers[name] = buffer.to(policy.buffer_dtype)
        params = [FSDPParam(one, places, mesh, 0, policy.param_dtype) for one, places in managed((self,), left_out)]
        group = FSDPParamGroup(params, mesh, precision) if params else None
        self.__dict__["_fsdp_state"] = FSDPState((self,), group, precision, strategy not in KEPT)
        self.__dict__["sharding_strategy"] = strategy
        self.__dict__["_settings"] = settings(StateDictType.FULL_STATE_DICT, None, None)
        if backward_prefetch is None:
            self._fsdp_state.backward_next = []
        for param in params:
            param.put(param.sharded)

    @property
    def module(self) -> nn.Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module inside."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        return self._fsdp_wrapped_module[key]  # type: ignore[index]

    # ------------------------------------------------------------------ parts of this kind

    @staticmethod
    def fsdp_modules(module: nn.Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """All modules of this class inside of a module, and itself."""
        found = [one for one in module.modules() if isinstance(one, FullyShardedDataParallel)]
        if not root_only:
            return found
        inner = {id(part) for one in found for part in one.modules() if part is not one}
        return [one for one in found if id(one) not in inner]

    def _groups(self) -> list[FSDPParamGroup]:
        groups = [one._fsdp_state.group for one in self.fsdp_modules(self)]
        return [group for group in groups if group is not None]

    def check_is_root(self) -> bool:
        """Whether this is the outermost one."""
        if self._fsdp_state.step is None:
            self._fsdp_state.become_root()
        return bool(self._fsdp_state.is_root)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, by the names they have without wrappers."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(PREFIX, ""), param

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers, by the names they have without wrappers."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(PREFIX, ""), buffer

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which gradients add up on each rank and are not reduced."""
        groups = self._groups()
        before = [group.sync for group in groups]
        for group in groups:
            group.sync = False
        try:
            yield
        finally:
            for group, sync in zip(groups, before):
                group.sync = sync

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all ranks so that the norm of all of them is at most `max_norm`; the norm before."""
        total = nn.utils.clip_grad_norm_(list(self.parameters()), max_norm, norm_type)
        return total.full_tensor() if isinstance(total, DTensor) else total

    # ------------------------------------------------------------------ whole parameters

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: nn.Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A block in which parameters are whole; what is written to them is kept unless `writeback=False`."""
        if with_grads:
            raise NotImplementedError("summon_full_params(with_grads=True): param.grad.full_tensor() is a gradient")
        if rank0_only and writeback:
            raise NotImplementedError("summon_full_params(rank0_only=True) needs writeback=False")
        found = FullyShardedDataParallel.fsdp_modules(module)
        groups = [one._fsdp_state.group for one in (found if recurse else found[:1])]
        groups = [group for group in groups if group is not None]
        for group in groups:
            group.unshard()
        try:
            yield
        finally:
            for group in groups:
                if writeback:
                    for param in group.params:
                        param.write_back()
                group.reshard()

    # ------------------------------------------------------------------ state dicts

    @staticmethod
    def set_state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """Say what `state_dict` gives; what it was."""
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for one in FullyShardedDataParallel.fsdp_modules(module):
            one.__dict__["_settings"] = settings(state_dict_type, state_dict_config, optim_state_dict_config)
        return before

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """What `state_dict` gives."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        return found[0].__dict__["_settings"] if found else settings(StateDictType.FULL_STATE_DICT, None, None)

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: nn.Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """A block in which `state_dict` gives something else."""
        change = FullyShardedDataParallel.set_state_dict_type
        before = change(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            change(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """The state: of whole tensors, unless `state_dict_type` says otherwise; by names without wrappers."""
        for group in self._groups():
            group.reshard()
        found = super().state_dict(*args, **kwargs)
        chosen = self.__dict__["_settings"]
        whole = chosen.state_dict_type is StateDictType.FULL_STATE_DICT
        for name in [name for name in found if PREFIX in name or isinstance(found[name], DTensor)]:
            value = found.pop(name)
            if whole and isinstance(value, DTensor):
                value = value.full_tensor()
            if not (whole and getattr(chosen.state_dict_config, "rank0_only", False) and get_rank() != 0):
                found[name.replace(PREFIX, "")] = value
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Names without wrappers, and whole tensors, are brought to the form that parameters have."""
        inside = prefix + PREFIX
        own = dict(self._fsdp_wrapped_module.named_parameters(remove_duplicate=False))
        for group in self._groups():
            group.reshard()
        for name in [name for name in state_dict if name.startswith(prefix) and not name.startswith(inside)]:
            rest = name.removeprefix(prefix)
            value = state_dict.pop(name)
            target = own.get(rest)
            if isinstance(target, DTensor):
                value = like(value, target)
            state_dict[inside + rest] = value
        super()._load_from_state_dict(state_dict, prefix, *args)

    @staticmethod
    def optim_state_dict(model: nn.Module, optim: Any, optim_state_dict: Any = None, group: Any = None) -> Any:
        """The state of an optimizer, by the names of parameters, as `state_dict_type` says."""
        whole = FullyShardedDataParallel.get_state_dict_type(model).state_dict_type is StateDictType.FULL_STATE_DICT
        return get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=whole))

    full_optim_state_dict = optim_state_dict

    @staticmethod
    def optim_state_dict_to_load(
        model: nn.Module, optim: Any, optim_state_dict: Any, is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> Any:  # fmt: skip
        """What `optim.load_state_dict` takes, of a state by the names of parameters."""
        set_optimizer_state_dict(model, optim, optim_state_dict, options=StateDictOptions(full_state_dict=True))
        return optim.state_dict()


def mesh_of(process_group: Any, device_mesh: DeviceMesh | None, strategy: ShardingStrategy) -> DeviceMesh:
    """The mesh of what was given: replicas of parts that lie on one machine, or on one rank, have two dimensions."""
    if device_mesh is not None:
        return device_mesh
    if strategy in HYBRID or strategy is ShardingStrategy.NO_SHARD:
        if process_group is not None:
            raise NotImplementedError(
                f"{strategy.name} with a process_group: pass device_mesh=init_device_mesh('cpu', (replicas, parts), "
                "mesh_dim_names=(...))"
            )
        ranks = get_world_size()
        parts = int(os.environ.get("LOCAL_WORLD_SIZE", ranks)) if strategy in HYBRID else 1
        return init_device_mesh("cpu", (ranks // parts, parts), mesh_dim_names=("replicas", "parts"))
    if process_group is not None:
        return DeviceMesh.from_group(process_group, "cpu")
    return init_device_mesh("cpu", (get_world_size(),))


def settings(kind: StateDictType, config: Any, of_optimizer: Any) -> StateDictSettings:
    """What a kind of state dict means."""
    if kind is StateDictType.LOCAL_STATE_DICT:
        raise NotImplementedError("LOCAL_STATE_DICT: use SHARDED_STATE_DICT")
    whole = kind is StateDictType.FULL_STATE_DICT
    config = config or (FullStateDictConfig() if whole else ShardedStateDictConfig())
    of_optimizer = of_optimizer or (FullOptimStateDictConfig() if whole else ShardedOptimStateDictConfig())
    return StateDictSettings(kind, config, of_optimizer)


FullyShardedDataParallel.__module__ = "torch.distributed.fsdp.fully_sharded_data_parallel"
