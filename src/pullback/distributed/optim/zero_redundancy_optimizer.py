"""`ZeroRedundancyOptimizer`: every rank keeps the state of some parameters, updates those, and sends them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import Tensor
from pullback.distributed import objects
from pullback.distributed.algorithms.join import Join, Joinable, JoinHook, _JoinConfig
from pullback.distributed.world import get_global_rank, group_or_default
from pullback.optim import Optimizer


def divided(groups: list[dict[str, Any]], size: int) -> list[list[list[Tensor]]]:
    """The parameters of each rank, by group: the largest first, each to the rank that has least."""
    loads = [0] * size
    parts: list[list[list[Tensor]]] = [[] for _ in range(size)]
    for group in groups:
        for part in parts:
            part.append([])
        for param in sorted(group["params"], key=lambda param: param.numel(), reverse=True):
            rank = loads.index(min(loads))
            parts[rank][-1].append(param)
            loads[rank] += param.numel()
    return parts


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer of another class on each rank, for its part of the parameters."""

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp is not here: leave it out, and call step() after backward")
        self.process_group = group_or_default(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        params = list(params)
        if not params:
            raise ValueError("params argument given to optimizer has no elements")
        self._optimizer_class, self._defaults = optimizer_class, defaults
        super().__init__(params, dict(optimizer_class(params, **defaults).defaults))
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._all_state_dicts: list[dict[str, Any]] = []
        self._join_config = _JoinConfig()
        self._divide()

    def _divide(self) -> None:
        """Give each rank its part, and this one an optimizer for its own."""
        self._parts = divided(self.param_groups, self.world_size)
        own = [
            {**{key: value for key, value in group.items() if key != "params"}, "params": params}
            for group, params in zip(self.param_groups, self._parts[self.rank])
        ]
        self.optim = self._optimizer_class([group for group in own if group["params"]] or own, **self._defaults)
        self._own = [index for index, params in enumerate(self._parts[self.rank]) if params]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """More parameters; all are divided anew, and states begin anew."""
        super().add_param_group(param_group)
        if hasattr(self, "optim"):
            self._divide()

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Update this rank's parameters, and receive the others'."""
        Join.notify_join_context(self)
        for index, group in zip(self._own, self.optim.param_groups):  # such as a learning rate that was changed
            group.update({key: value for key, value in self.param_groups[index].items() if key != "params"})
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        works = [
            self.process_group.broadcast([param.detach()], rank, later=True)
            for rank, part in enumerate(self._parts)
            for params in part
            for param in params
        ]
        for work in works:
            work.wait()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A rank without batches makes the steps of the others, with the gradients it has."""
        return Steps(self)

    @property
    def join_device(self) -> Any:
        """Where ranks are counted."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The ranks."""
        return self.process_group

    # ------------------------------------------------------------------ states

    def _numbers(self) -> dict[int, int]:
        """The number of each parameter among all."""
        return {id(p): i for i, p in enumerate([p for group in self.param_groups for p in group["params"]])}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks together on one of them."""
        numbers = self._numbers()
        mine = {numbers[id(param)]: dict(state) for param, state in self.optim.state.items()}
        at = self.process_group.rank() if get_global_rank(self.process_group, self.rank) == to else -1
        everyone: list[Any] | None = [None] * self.world_size if at >= 0 else None
        objects.gather_object(mine, everyone, to, group=self.process_group)
        self._all_state_dicts = everyone or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, on the rank where it was brought together."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        numbers = self._numbers()
        groups = [{**group, "params": [numbers[id(param)] for param in group["params"]]} for group in self.param_groups]
        state = {number: one for part in self._all_state_dicts for number, one in part.items()}
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's part of the state of all parameters."""
        for group, saved in zip(self.param_groups, state_dict["param_groups"]):
            group.update({key: value for key, value in saved.items() if key != "params"})
        numbers = self._numbers()
        own = [param for group in self.optim.param_groups for param in group["params"]]
        places = {numbers[id(param)]: place for place, param in enumerate(own)}
        local = self.optim.state_dict()
        local["state"] = {places[n]: one for n, one in state_dict["state"].items() if n in places}
        for index, group in zip(self._own, local["param_groups"]):
            group.update({k: v for k, v in state_dict["param_groups"][index].items() if k != "params"})
        self.optim.load_state_dict(local)


class Steps(JoinHook):
    """What a rank without batches does for a ZeroRedundancyOptimizer."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """Update this rank's parameters, and send them."""
        self.zero.step()
