"""Communication hooks of DistributedDataParallel: what happens to a bucket of gradients instead of their mean."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from pullback.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from pullback.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD


def register(model: Any, state: Any, comm_hook: Callable[..., Any]) -> None:
    """Let a model use a hook."""
    model.register_comm_hook(state, comm_hook)


def register_powerSGD(
    model: Any,
    state: Any,
    comm_hook: Callable[..., Any],
    matrix_approximation_rank: int,
    start_powerSGD_iter: int = 1_000,
) -> None:
    """Let a model use PowerSGD; `state` is a group."""
    own = powerSGD.PowerSGDState(state, matrix_approximation_rank, start_powerSGD_iter)
    model.register_comm_hook(own, comm_hook)


class Wrapped:
    """A function as the value of an enumeration, which would make a method of it."""

    def __init__(self, call: Callable[..., Any], **given: Any) -> None:
        self.call = partial(call, **given)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


class DDPCommHookType(Enum):
    """The hooks by name: `DDPCommHookType.FP16_COMPRESS.value(model=model, state=None)`."""

    ALLREDUCE = Wrapped(register, comm_hook=default.allreduce_hook)
    FP16_COMPRESS = Wrapped(register, comm_hook=default.fp16_compress_hook)
    BF16_COMPRESS = Wrapped(register, comm_hook=default.bf16_compress_hook)
    POWER_SGD = Wrapped(register_powerSGD, comm_hook=powerSGD.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = Wrapped(register_powerSGD, comm_hook=powerSGD.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = Wrapped(
        register_powerSGD, comm_hook=powerSGD.batched_powerSGD_hook, matrix_approximation_rank=1
    )
    BATCHED_POWER_SGD_RANK2 = Wrapped(
        register_powerSGD, comm_hook=powerSGD.batched_powerSGD_hook, matrix_approximation_rank=2
    )
    NOOP = Wrapped(register, comm_hook=debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let a model use a hook by its name."""
    comm_hook_type.value(model=model, state=state)
