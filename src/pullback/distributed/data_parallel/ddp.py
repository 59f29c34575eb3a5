"""`DistributedDataParallel`: a module whose gradients are averaged over all ranks."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.autograd.engine import schedule
from pullback.autograd.node import Node
from pullback.distributed import objects
from pullback.distributed.algorithms.join import Join, Joinable, JoinHook
from pullback.distributed.data_parallel.reducer import GradBucket, Reducer
from pullback.distributed.reduce_op import ReduceOp
from pullback.distributed.world import group_or_default
from pullback.jit.futures import Future
from pullback.utils._pytree import tree_leaves

UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
    "\nmaking sure all `forward` function outputs participate in calculating loss. \n"
    "If you already have done the above, then the distributed data parallel module wasn't able to locate the output "
    "tensors in the return value of your module's `forward` function. Please include the loss function and the "
    "structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable).\n"
    "Parameter indices which did not receive grad for rank {rank}: {indices}\n"
    " In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out "
    "information about which particular parameters did not receive gradient on this rank as part of this error"
)
NOT_NEEDED = "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."


def counted(work: Any) -> int:
    """How many ranks have a batch."""
    work.wait()
    return int(work.result()[0].item())


class DistributedDataParallel(nn.Module, Joinable):
    """Runs a module on every rank; after backward all ranks hold the mean of the gradients."""

    def __init__(
        self,
        module: nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if mixed_precision is not None or device_mesh is not None or delay_all_reduce_named_params is not None:
            raise NotImplementedError(
                "DistributedDataParallel takes no mixed_precision, device_mesh or delay_all_reduce_named_params here: "
                "use torch.autocast, process_group and plain buckets"
            )
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(NOT_NEEDED)
        places = {param.device for _, param in named}
        if device_ids and places == {torch.device("cpu")}:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
                "multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters "
                f"{places}."
            )
        self.process_group = group_or_default(process_group)
        self._generation = self.process_group.generation
        self.module, self.dim, self.device_ids, self.output_device = module, dim, device_ids, output_device
        self.device = named[0][1].device
        self.broadcast_buffers, self.gradient_as_bucket_view = broadcast_buffers, gradient_as_bucket_view
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.parameters_to_ignore = ignored
        self.require_backward_grad_sync, self.require_forward_param_sync = True, True
        self._divide_by_initial_world_size = True
        self._seen: set[int] | None = None
        self._same_model(named)
        if init_sync:
            self._sync_module()
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * (1 << 20))
        names, params = [name for name, _ in named], [param for _, param in named]
        looked_up = [one for one in module.modules() if isinstance(one, (nn.Embedding, nn.EmbeddingBag))]
        sparse = {id(one.weight) for one in looked_up if one.sparse}
        self.reducer = Reducer(names, params, self.process_group, cap, gradient_as_bucket_view, sparse)
        self.reducer.find_unused = find_unused_parameters or static_graph

    def _same_model(self, named: list[tuple[str, Tensor]]) -> None:
        """Refuse to average different models."""
        mine = [tuple(param.shape) for _, param in named]
        everyone: list[Any] = [None] * self.process_group.size()
        objects.all_gather_object(everyone, mine, group=self.process_group)
        for rank, theirs in enumerate(everyone):
            if len(theirs) != len(everyone[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank 0 has {len(everyone[0])} params, while rank "
                    f"{rank} has inconsistent {len(theirs)} params."
                )
            for index, (one, other) in enumerate(zip(everyone[0], theirs)):
                if one != other:
                    raise RuntimeError(
                        f"[{rank}]: params[{index}] in this process with sizes {list(other)} appears not to match "
                        f"sizes of the same param in process 0."
                    )

    def _state(self) -> list[Tensor]:
        """The parameters and buffers all ranks begin with."""
        params = [p for name, p in self.module.named_parameters() if name not in self.parameters_to_ignore]
        return params + self._buffers_to_send()

    def _buffers_to_send(self) -> list[Tensor]:
        return [b for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _sync_module(self, root: int = 0) -> None:
        with torch.no_grad():
            for tensor in self._state():
                self.process_group.broadcast([tensor.detach()], root)

    # ------------------------------------------------------------------ forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module, after its buffers were made those of rank 0."""
        sync = torch.is_grad_enabled() and self.require_backward_grad_sync
        if self._generation != self.process_group.generation:  # ranks were lost, maybe in the middle of a reduction
            self._generation = self.process_group.generation
            self.reducer.begin_anew()
        if sync:
            missing = self.reducer.unfinished() if self.reducer.queued else []
            if missing:
                rank = self.process_group.rank()
                raise RuntimeError(UNFINISHED.format(rank=rank, indices=" ".join(map(str, missing))))
        joining = self._join_config.enable
        work = Join.notify_join_context(self)
        divided = work is not None and not self._divide_by_initial_world_size
        self.reducer.divisor = counted(work) if divided else self.process_group.size()
        self._sync_buffers(True)
        if joining:
            self._greatest(int(self.require_backward_grad_sync))  # whether ranks without batches must take part
        output = self.module(*inputs, **kwargs)
        if sync:
            self.require_forward_param_sync = True
            self.reducer.prepare(self._used(output))
        else:
            self.require_forward_param_sync = False
            self.reducer.forget()
        return output

    def _used(self, output: Any) -> set[int] | None:
        """The parameters that this output depends on; None for all of them."""
        if self.static_graph and self._seen is not None:
            return self._seen
        if not (self.find_unused_parameters or self.static_graph):
            return None
        roots: list[Any] = []
        for leaf in tree_leaves(output):
            if isinstance(leaf, Tensor) and leaf.requires_grad:
                node = leaf.grad_fn
                roots.append((node if isinstance(node, Node) else leaf, 0, None))
        _, waiting = schedule(roots)
        used = {id(one) for one in waiting}
        if self.static_graph:
            self._seen = used
        return used

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """In this block gradients stay as they are; the next backward outside of it averages what has gathered."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def train(self, mode: bool = True) -> Any:
        """Train or evaluate."""
        super().train(mode)
        return self

    # ------------------------------------------------------------------ hooks

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Future]) -> None:
        """Reduce buckets by a function of one's own: it gets a GradBucket, and gives a Future of one tensor."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        given = inspect.signature(hook)
        if given.parameters.get("bucket") is not None:
            wanted = given.parameters["bucket"].annotation
            if wanted not in (inspect.Parameter.empty, GradBucket, "GradBucket", "dist.GradBucket"):
                raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook, self.reducer.state = hook, state

    def _set_static_graph(self) -> None:
        """The same parameters are used in every step."""
        self.static_graph = self.reducer.find_unused = True

    # ------------------------------------------------------------------ uneven inputs

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """In this block ranks may have different numbers of batches: who has none left takes part till all are done."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without batches does: `divide_by_initial_world_size` says whether the mean is over all ranks."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return Shadow(self)

    @property
    def join_device(self) -> Any:
        """Where ranks are counted."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    def _greatest(self, own: int) -> int:
        """The greatest number of all ranks."""
        number = torch.tensor([own])
        self.process_group.all_reduce([number], ReduceOp.MAX)
        return int(number.item())

    def _sync_buffers(self, has_batch: bool) -> None:
        """Buffers become those of rank 0; where ranks have no batches any more, those of the last one that has."""
        buffers = self._buffers_to_send() if self.broadcast_buffers and self.require_forward_param_sync else []
        if buffers:
            rank = self.process_group.rank()
            root = self._greatest(rank if has_batch else -1) if self._join_config.enable else 0
            for buffer in buffers:
                self.process_group.broadcast([buffer], root)


class Shadow(JoinHook):
    """What a rank without batches does for a DistributedDataParallel."""

    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        """Take part in the collectives of a step."""
        self.ddp._sync_buffers(False)
        self.ddp.require_forward_param_sync = bool(self.ddp._greatest(0))
        if self.ddp.require_forward_param_sync:
            self.ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over what the last ones have learnt."""
        self.ddp._sync_module(self.ddp._greatest(self.ddp.process_group.rank() if is_last_joiner else -1))
