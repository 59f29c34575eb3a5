"""Schedulers that raise and lower the rate, and the momentum against it: CyclicLR and OneCycleLR."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    for_each_group,
    set_value,
    warn_unless_within_step,
)
from pullback.optim.optimizer import Optimizer


class CyclesMomentum(LRScheduler):
    """The momentum, or beta1, that goes down while the rate goes up."""

    def prepare_momentum(self, cycle_momentum: bool, base: Any, largest: Any, last_epoch: int) -> tuple[Any, Any]:
        """Start at the largest momentum; the base and the largest of each group."""
        self.cycle_momentum = cycle_momentum
        if not cycle_momentum:
            return None, None
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        largest_of = for_each_group("max_momentum", optimizer, largest)
        base_of = for_each_group("base_momentum", optimizer, base)
        if last_epoch == -1:
            for high, low, group in zip(largest_of, base_of, optimizer.param_groups, strict=True):
                self.set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return base_of, largest_of

    def set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        """Give a group this momentum."""
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


SCALES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda gamma, x: 1.0, "cycle"),
    "triangular2": (lambda gamma, x: 1 / (2.0 ** (x - 1)), "cycle"),
    "exp_range": (lambda gamma, x: gamma**x, "iterations"),
}
"""The height of a cycle as a function of the number of cycles, or of iterations."""


class CyclicLR(CyclesMomentum):
    """Up and down between two rates, again and again."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (float(step_size_down) if step_size_down is not None else up)
        self.step_ratio = up / self.total_size
        if mode not in SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else SCALES[mode][1]
        momenta = self.prepare_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        if cycle_momentum:
            self.base_momentums, self.max_momentums = momenta
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of the cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return SCALES[self.mode][0](self.gamma, x)

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group; also sets the momenta."""
        warn_unless_within_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                self.set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """A function is not saved; of an object that can be called, its attributes are."""
        state = super().state_dict()
        custom = state["_scale_fn_custom"]
        plain = custom is None or isinstance(custom, FunctionType)
        return state | {"_scale_fn_custom": None if plain else dict(vars(custom))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the state of another scheduler of this kind."""
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)


class OneCycleLR(CyclesMomentum):
    """One long cycle: up to the largest rate, down to the first, and far below it."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = number_of_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        largest = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, largest):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.prepare_momentum(cycle_momentum, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def between(self, start: Any, end: Any, part: float) -> Any:
        """A point on the way from one value to another."""
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group; also sets the momenta."""
        warn_unless_within_step(self)
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self.between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start_momentum, end_momentum = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self.set_momentum(group, self.between(start_momentum, end_momentum, part))
        return rates


def number_of_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    """The length of the cycle, given directly or as a product."""

    def positive(name: str, value: Any) -> int:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total_steps is not None:
        return positive("total_steps", total_steps)
    if epochs is not None and steps_per_epoch is not None:
        return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)
    raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")


def phases(total: int, start: float, three: bool) -> list[dict[str, Any]]:
    """The parts of the cycle: where each ends, and between which options of a group it runs."""

    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": rates[0],
            "end_lr": rates[1],
            "start_momentum": momenta[0],
            "end_momentum": momenta[1],
        }

    up = phase(float(start * total) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not three:
        return [up, phase(total - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
    down = phase(float(2 * start * total) - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum"))
    return [up, down, phase(total - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]
