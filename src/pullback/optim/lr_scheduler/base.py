"""LRScheduler: a rule that changes the learning rates of an optimizer, one step at a time."""

from __future__ import annotations

import functools
import types
import warnings
from typing import Any
from weakref import ref

from pullback import Tensor
from pullback.optim.optimizer import Optimizer, is_recorded

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
ADVICE = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


class LRScheduler:
    """What all schedulers share.

    A subclass gives `next_lr(lr, base_lr)`, the rate of one group after one more step, and where there is one
    `closed_form_lr(base_lr)`, the rate at `last_epoch` computed at once. A scheduler of your own may override
    `get_lr` instead, which returns the rates of all groups.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for "
                    "a fresh training run (not recommended)"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    # ---------------------------------------------------------------- the rule

    def next_lr(self, lr: Any, base_lr: Any) -> Any:
        """The learning rate of a group that has `lr` now and had `base_lr` at first."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """The next learning rates, group by group."""
        if type(self).next_lr is LRScheduler.next_lr:
            raise NotImplementedError
        warn_unless_within_step(self)
        rates = values_of(self.optimizer, "lr")
        return [self.next_lr(lr, base_lr) for lr, base_lr in zip(rates, self.base_lrs, strict=True)]

    def _get_closed_form_lr(self) -> list[Any]:
        if not hasattr(self, "closed_form_lr"):
            return self.get_lr()
        return [self.closed_form_lr(base_lr) for base_lr in self.base_lrs]

    def get_last_lr(self) -> list[Any]:
        """The learning rates of the last step."""
        return self._last_lr

    # ---------------------------------------------------------------- stepping

    def step(self, epoch: int | None = None) -> None:
        """Go one step on; call it after `optimizer.step()`."""
        if is_recorded(LRScheduler.step, self, epoch):
            return
        if self._step_count == 1:
            warn_about_order(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False
        self.assign(rates)

    def assign(self, rates: list[Any]) -> None:
        """Give the groups of the optimizer these rates."""
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    # ---------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the state of another scheduler of this kind."""
        vars(self).update(state_dict)


class _LRScheduler(LRScheduler):
    """The old name, for programs that derive from it."""


def check_optimizer(optimizer: Any) -> None:
    """A scheduler works on an optimizer only."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def own(value: Any) -> Any:
    """A value nobody else can change."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of all groups."""
    return [own(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Change an option of a group; one that is a tensor stays that tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value per group, given as a list or once for all."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {count}."
        )
    return [own(v) for v in value]


def warn_unless_within_step(scheduler: LRScheduler) -> None:
    """`get_lr` computes the next rates; who asks from outside means the last ones."""
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=3,
        )


def note_steps(optimizer: Any) -> None:
    """Let the optimizer remember that it was stepped, so that a wrong order can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function, owner = optimizer.step.__func__, ref(optimizer)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        optimizer = owner()
        optimizer._opt_called = True  # type: ignore[union-attr]
        return types.MethodType(function, optimizer)(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


def warn_about_order(optimizer: Any) -> None:
    """The scheduler goes on after the optimizer, not before."""
    if not hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, "
            "make sure to call `optimizer.step()` before `lr_scheduler.step()`. See more details at " + ADVICE,
            UserWarning,
            stacklevel=3,
        )
    elif not getattr(optimizer, "_opt_called", False):
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should "
            "call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
            "will result in PyTorch skipping the first value of the learning rate schedule. See more details at "
            + ADVICE,
            UserWarning,
            stacklevel=3,
        )
