"""Schedules: in which order a rank runs the parts of a batch through its stages, forwards and backwards.

A schedule is a list of (backwards, stage, part); everything else is one loop. Stages send without waiting and receive
by tag, so every order in which a part comes to a stage after the stage before it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks, split_tensor
from pullback.distributed.pipelining.stage import PipelineStage

Order = list[tuple[bool, int, int]]


class _PipelineSchedule:
    """What all schedules have in common; `order` says what they differ in."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: Any,
        kwargs_chunk_spec: Any,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        self._stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec, self.scale_grads = output_merge_spec, scale_grads
        self._has_backward = loss_fn is not None
        self._num_stages = stages[0].num_stages

    def order(self) -> Order:
        """What this rank does, one after the other."""
        raise NotImplementedError

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a whole batch: the first rank gives arguments, the last one targets and gets outputs and losses."""
        if self._has_backward and not torch.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        count = self._n_microbatches
        arguments: list[Any] = [()] * count
        keywords: list[Any] = [{}] * count
        if args or kwargs:
            arguments, keywords = split_args_kwargs_into_chunks(
                args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
            )
        targets = None if target is None else split_tensor(target, 0, count)
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        found = self._run(arguments, keywords, targets, return_outputs, loss_kwargs or {})
        last = self._stages[-1]
        if last.is_last and losses is not None and self._loss_fn is not None:
            losses[:] = found
        if last.is_last and return_outputs:
            return merge_chunks(last.output_chunks, self._output_merge_spec)
        return None

    def _run(
        self, args: list[Any], kwargs: list[Any], targets: Any, keep: bool, loss_kwargs: dict[str, Any]
    ) -> list[Tensor]:
        stages = {stage.stage_index: stage for stage in self._stages}
        losses: list[Tensor] = []
        here: dict[Any, Any] = {}
        left = dict.fromkeys(stages, self._n_microbatches)
        for backwards, index, part in self.order():
            stage = stages[index]
            if backwards:
                if self._has_backward:
                    left[index] -= 1
                    loss = losses[part] if stage.is_last else None
                    stage.backward_one_chunk(part, loss, not left[index], here)
                continue
            output = stage.forward_one_chunk(part, args[part], kwargs[part], here, keep)
            if stage.is_last and self._loss_fn is not None:
                losses.append(self._loss_fn(output, None if targets is None else targets[part], **loss_kwargs))
        for stage in self._stages:
            stage.finish_sends()
            if self._has_backward and self.scale_grads:
                stage.scale_grads(self._n_microbatches)
        return losses

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Run a whole batch forwards only."""
        before, self._has_backward = self._has_backward, False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule with one stage on each rank."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__([stage], n_microbatches, loss_fn, *specs, scale_grads)
        self._stage = stage


class ScheduleGPipe(PipelineScheduleSingle):
    """All parts forwards, then all backwards."""

    def order(self) -> Order:
        """Forwards and backwards in the order of parts."""
        index = self._stage.stage_index
        return [(backwards, index, part) for backwards in (False, True) for part in range(self._n_microbatches)]


class Schedule1F1B(PipelineScheduleSingle):
    """Once the pipeline is full, one backwards and one forwards: fewer parts are kept at a time."""

    def __init__(self, stage: PipelineStage, n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stage, n_microbatches, *args, **kwargs)
        if n_microbatches < self._num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages "
                f"({self._num_stages})."
            )

    def order(self) -> Order:
        """Some forwards, then in turns, then the rest backwards."""
        index, count = self._stage.stage_index, self._n_microbatches
        ahead = min(count, self._num_stages - index)
        order: Order = [(False, index, part) for part in range(ahead)]
        for part in range(count):
            order.append((True, index, part))
            if ahead + part < count:
                order.append((False, index, ahead + part))
        return order


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule with several stages on each rank: stage i lives on rank i modulo the number of ranks."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__(stages, n_microbatches, loss_fn, *specs, scale_grads)
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All parts through one stage after the other."""

    def order(self) -> Order:
        """Forwards by stage, backwards by stage from the last."""
        indices, parts = [stage.stage_index for stage in self._stages], range(self._n_microbatches)
        order: Order = [(False, index, part) for index in indices for part in parts]
        return order + [(True, index, part) for index in reversed(indices) for part in reversed(parts)]


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B in which a part goes around the ranks several times."""

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        self.n_local_stages = len(stages)
        self.number_of_rounds = max(1, n_microbatches // self.pp_group_size)
        self.microbatches_per_round = n_microbatches // self.number_of_rounds
        if n_microbatches % self.number_of_rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.number_of_rounds}), but got {n_microbatches}."
            )

    def order(self) -> Order:
        """Some forwards, then in turns, then the rest backwards; a round of parts through each stage in turn."""
        local, each = self.n_local_stages, self.microbatches_per_round
        total = local * self._n_microbatches
        ahead = min((local - 1) * each + 2 * (self.pp_group_size - 1 - self.rank), total)
        seen: dict[tuple[bool, int], int] = {}

        def action(backwards: bool, number: int) -> tuple[bool, int, int]:
            place = number // each % local
            index = (local - 1 - place if backwards else place) * self.pp_group_size + self.rank
            part = seen.get((backwards, index), 0)
            seen[backwards, index] = part + 1
            return backwards, index, part

        order = [action(False, number) for number in range(ahead)]
        for number in range(total):
            if ahead + number < total:
                order.append(action(False, ahead + number))
            order.append(action(True, number))
        return order


class Missing(PipelineScheduleMulti):
    """A schedule that parts the gradients of inputs from those of weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} parts backward in two, which is not here: use ScheduleInterleaved1F1B"
        )


class ScheduleInterleavedZeroBubble(Missing):
    """Not here."""


class ScheduleZBVZeroBubble(Missing):
    """Not here."""


class ScheduleDualPipeV(Missing):
    """Not here."""


BY_NAME: dict[str, Any] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name: str) -> Any:
    """The schedule of a name, in whatever case."""
    found = {name.lower(): one for name, one in BY_NAME.items()}
    if schedule_name.lower() not in found:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(BY_NAME)}")
    return found[schedule_name.lower()]


for _one in (_PipelineSchedule, *BY_NAME.values()):
    _one.__module__ = "torch.distributed.pipelining.schedules"
