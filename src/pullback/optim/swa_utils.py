"""Averages of weights over training: a model that follows another, and the schedule that goes with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

import pullback as torch
from pullback import Tensor, nn
from pullback.optim.lr_scheduler.base import LRScheduler, for_each_group, warn_unless_within_step
from pullback.optim.optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Any], Tensor]
AverageOfAll = Callable[[list[Tensor], list[Tensor], Any], None]


def check_decay(decay: float) -> None:
    """A decay is a part of one."""
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The exponential moving average, one parameter at a time."""
    check_decay(decay)
    return torch.no_grad()(lambda average, current, count: decay * average + (1 - decay) * current)  # type: ignore[no-any-return]


def get_swa_avg_fn() -> Average:
    """The mean of all weights so far, one parameter at a time."""
    return torch.no_grad()(lambda average, current, count: average + (current - average) / (count + 1))  # type: ignore[no-any-return]


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageOfAll:
    """The exponential moving average, of all parameters at once."""
    check_decay(decay)

    @torch.no_grad()
    def update(averages: list[Tensor], currents: list[Tensor], count: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return update  # type: ignore[no-any-return]


def get_swa_multi_avg_fn() -> AverageOfAll:
    """The mean of all weights so far, of all parameters at once."""

    @torch.no_grad()
    def update(averages: list[Tensor], currents: list[Tensor], count: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, float(1 / (count + 1)))
            else:
                average.copy_(average + (current - average) / (count + 1))

    return update  # type: ignore[no-any-return]


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are averages of the model's; call `update_parameters` after each step."""

    n_averaged: Tensor

    def __init__(
        self,
        model: nn.Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: AverageOfAll | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: nn.Module) -> None:
        """Take the present weights of the model into the averages."""
        averages, currents = [
            [p.detach() for p in (chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]
            for m in (self.module, model)
        ]
        if self.n_averaged.item() == 0:
            for average, current in zip(averages, currents):
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            kinds = {(p.device, p.dtype) for p in averages}
            for kind in kinds:
                pairs = [(a, c) for a, c in zip(averages, currents) if (a.device, a.dtype) == kind]
                self.multi_avg_fn([a for a, _ in pairs], [c for _, c in pairs], self.n_averaged)
        else:
            mean = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
            for average, current in zip(averages, currents):
                average.copy_(mean(average, current, self.n_averaged))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach())
        self.n_averaged += 1


@torch.no_grad()
def update_bn(loader: Iterable[Any], model: nn.Module, device: Any = None) -> None:
    """Compute the running statistics of all batch norms anew from the data."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for norm, momentum in zip(norms, momenta):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rate of now to a constant one, within a few epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(for_each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def progress(self, step: int) -> float:
        """How much of the way to the constant rate is done after a step."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group."""
        warn_unless_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self.progress(step - 1), self.progress(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, target = group["lr"], group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
