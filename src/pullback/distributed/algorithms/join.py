"""`Join`: ranks with different numbers of batches train together. Who has none left does what the others wait for."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import pullback as torch
from pullback.distributed import collectives
from pullback.distributed.work import Work
from pullback.distributed.world import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]
SKEW = 1000
"""Steps after which a rank without batches says that inputs are very uneven."""


class JoinHook:
    """What a rank without batches does."""

    def main_hook(self) -> None:
        """In each step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Once no rank has batches left; `is_last_joiner`: this one was among the last that had."""


class _JoinConfig(NamedTuple):
    """What an object in a Join knows of it."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Of an object that is in none."""
        return _JoinConfig()


class Joinable(ABC):
    """What can take part in a Join: it calls `Join.notify_join_context(self)` before the collectives of a step."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without batches does for this object; all get the keywords given to Join."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors by which ranks are counted."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The ranks."""


class Join:
    """In this block ranks may have different numbers of batches. Hooks run in the order of the objects."""

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [one.join_hook(**kwargs) for one in joinables]
        self._enable, self._throw_on_early_termination = enable, throw_on_early_termination
        self._process_group, self._device = joinables[0].join_process_group, joinables[0].join_device
        if any([one.join_process_group != self._process_group for one in joinables]):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = get_rank(self._process_group)

    def __enter__(self) -> None:
        """The steps that follow are counted."""
        for number, one in enumerate(self._joinables):
            one._join_config = _JoinConfig(self._enable, self._throw_on_early_termination, number == 0)

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        """This rank has no batches left."""
        try:
            self._others_go_on(kind)
        finally:
            for one in self._joinables:
                one._join_config = _JoinConfig()

    def _others_go_on(self, kind: Any) -> None:
        """Do what the others wait for, until all are done."""
        if not self._enable or kind is not None:
            return
        steps = 0
        while self._sum(0.0):
            if self._throw_on_early_termination:
                self._sum(1.0)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            if steps > SKEW:
                warnings.warn(
                    f"Detected uneven input skew of greater than {SKEW}. This means that rank {self._rank} has at "
                    f"least {SKEW} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    stacklevel=2,
                )
            for hook in self._join_hooks:
                hook.main_hook()
            steps += 1
        for hook in self._join_hooks:
            hook.post_hook(steps == 0)

    def _sum(self, own: float) -> float:
        """How many ranks have batches, or have none while others do."""
        total = torch.full((1,), own, device=self._device)
        collectives.all_reduce(total, group=self._process_group)
        return float(total.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """This rank has a batch. The first object of a Join counts those that have: the Work ends with their number."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor")
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = collectives.all_reduce(torch.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = torch.zeros(1, device=device)
            collectives.all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
