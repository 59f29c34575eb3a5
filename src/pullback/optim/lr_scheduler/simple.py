"""Schedulers of one formula each: steps, factors, lines, powers, cosines, and functions you give."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from pullback.optim.lr_scheduler.base import LRScheduler, warn_unless_within_step
from pullback.optim.optimizer import Optimizer, is_recorded


class OfFunctions(LRScheduler):
    """What the schedulers of functions you give have in common: one function of the epoch for each group."""

    lr_lambdas: list[Any]

    def take_functions(self, optimizer: Optimizer, lr_lambda: Any) -> None:
        """Keep one function for each group of the optimizer."""
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)

    def state_dict(self) -> dict[str, Any]:
        """Functions are not saved; of objects that can be called, their attributes are."""
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        functions = [None if isinstance(f, FunctionType) else dict(vars(f)) for f in self.lr_lambdas]
        return state | {"lr_lambdas": functions}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the state of another scheduler of this kind."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                vars(function).update(attributes)


class LambdaLR(OfFunctions):
    """The first rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.take_functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group."""
        warn_unless_within_step(self)
        return [
            base_lr * function(self.last_epoch)
            for base_lr, function in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(OfFunctions):
    """The last rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.take_functions(optimizer, lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group."""
        warn_unless_within_step(self)
        groups = self.optimizer.param_groups
        if self._is_initial:
            return [group["lr"] for group in groups]
        return [group["lr"] * f(self.last_epoch) for group, f in zip(groups, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size != 0 else lr * self.gamma

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        return base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Times gamma at each of the milestones."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        if self.last_epoch not in self.milestones:
            return lr
        return lr * self.gamma ** self.milestones[self.last_epoch]

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        return base_lr * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(LRScheduler):
    """A fraction of the rate for the first epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        if self.last_epoch == 0:
            return lr * self.factor
        return lr if self.last_epoch != self.total_iters else lr * (1.0 / self.factor)

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        return base_lr * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(LRScheduler):
    """From one fraction of the rate to another, in equal steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        rise, done = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return base_lr * (self.start_factor + rise * done / self.total_iters)


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        return lr if self._is_initial else lr * self.gamma

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        return base_lr * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """Down to zero along a power of what is left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left, left_before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (left / left_before) ** self.power

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        return base_lr * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` along half a cosine of `T_max` epochs, and up again along the other half."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group after one more step."""
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return lr
        if self._step_count == 1 and epoch > 0:
            return low + (base_lr - low) * (1 + math.cos(epoch * math.pi / period)) / 2
        if (epoch - 1 - period) % (2 * period) == 0:
            return lr + (base_lr - low) * (1 - math.cos(math.pi / period)) / 2
        now, before = 1 + math.cos(math.pi * epoch / period), 1 + math.cos(math.pi * (epoch - 1) / period)
        return now / before * (lr - low) + low

    def closed_form_lr(self, base_lr: Any) -> Any:
        """The learning rate at this epoch."""
        low = self.eta_min
        return low + (base_lr - low) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along half a cosine, then at once up again, with periods that grow `T_mult`-fold."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min = T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group at this point of its period."""
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def step(self, epoch: float | None = None) -> None:
        """Go one step on, or to a point within an epoch."""
        if is_recorded(CosineAnnealingWarmRestarts.step, self, epoch):
            return
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            self.find_period(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self.assign(rates)

    def find_period(self, epoch: float) -> None:
        """In which period an epoch lies, and where in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            periods = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**periods - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**periods
