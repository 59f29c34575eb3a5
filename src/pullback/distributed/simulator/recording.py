"""A step of training, recorded: when each gradient was there, when backward and the optimizer were done, and bytes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any

from pullback import Tensor
from pullback.distributed import world
from pullback.distributed.data_parallel.reducer import FIRST_BUCKET, Reducer, in_buckets
from pullback.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

WARM_UP = 2
"""Steps that are not counted: kernels are compiled in them."""
BUCKET = 25 << 20
STRETCH, LEAST = 0.2, 10
"""Seconds, and steps at least, of a stretch whose mean counts."""


@dataclass
class Recording:
    """Times are seconds from the beginning of the step, sizes bytes."""

    step: float = 0.0
    backward: float = 0.0
    """When all gradients were there; the optimizer takes the rest."""
    buckets: list[tuple[int, float]] = field(default_factory=list)
    """The bytes of each bucket of gradients, and when it was complete."""
    parameters: int = 0
    state: int = 0
    activations: int = 0
    tensors: int = 0
    """How many parameters there are."""
    steps: list[float] = field(default_factory=list)
    """How long each of the steps took that count."""

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    def lasting(self, step: float) -> Recording:
        """The same step, if it took so long."""
        factor = step / self.step
        buckets = [(size, ready * factor) for size, ready in self.buckets]
        return replace(self, step=step, backward=self.backward * factor, buckets=buckets)


class Recorder:
    """Watches optimizers: a step is what lies between the ends of two of their steps.

    `between` is called after every step that is not to warm up. With `averaged`, the gradients of a program that does
    not do so itself are averaged over the ranks it was started on.
    """

    def __init__(self, between: Callable[[], None] | None = None, averaged: bool = False) -> None:
        self.began, self.between, self.averaged = 0.0, between, averaged
        self.reducer: Reducer | None = None
        self.ready: dict[int, float] = {}
        self.params: list[Tensor] = []
        self.steps: list[float] = []
        self.found: list[Recording] = []
        self.peak = self.start = resident()
        self.handles: list[Any] = []

    def __enter__(self) -> Recorder:
        self.handles = [register_optimizer_step_pre_hook(self.before), register_optimizer_step_post_hook(self.after)]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()

    def arrived(self, param: Tensor) -> None:
        """The gradient of a parameter is there."""
        self.ready[id(param)] = time.perf_counter()

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Backward is over."""
        self.backward = time.perf_counter()
        self.peak = max(self.peak, resident())
        if not self.params:
            self.params = [param for group in optimizer.param_groups for param in group["params"]]
            self.handles += [param.register_post_accumulate_grad_hook(self.arrived) for param in self.params]
            if self.averaged and not world.is_initialized():
                world.init_process_group("gloo")
                names = [str(number) for number in range(len(self.params))]
                self.reducer = Reducer(names, self.params, world.group_or_default(None), BUCKET, False)

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """The step is over, and the next one begins."""
        now = time.perf_counter()
        took = now - self.began
        self.steps.append(took)
        if len(self.steps) > WARM_UP and self.ready:
            self.found.append(self.made(took, optimizer))
        if len(self.steps) >= WARM_UP and self.between is not None:
            self.between()
        if self.reducer is not None:
            self.reducer.prepare(None)
        self.began = time.perf_counter()

    @property
    def best(self) -> Recording:
        """The quickest step, and what all of them took."""
        return replace(min(self.found, key=lambda one: one.step), steps=self.steps[WARM_UP:])

    def made(self, took: float, optimizer: Any) -> Recording:
        """What was seen of the step that is over."""
        parts = in_buckets(self.params, min(FIRST_BUCKET, BUCKET), BUCKET)
        buckets = []
        for part in parts:
            known = [self.ready[id(param)] for param in part if id(param) in self.ready]
            buckets.append((sum([param.nbytes for param in part]), max(known) - self.began if known else 0.0))
        parameters = sum([param.nbytes for param in self.params])
        held = optimizer.state.values()
        state = sum([one.nbytes for each in held for one in each.values() if isinstance(one, Tensor)])
        activations = max(self.peak - self.start - 2 * parameters - state, 0)
        return Recording(
            took, self.backward - self.began, buckets, parameters, state, activations, tensors=len(self.params)
        )


def pace(several: list[Recording], cores: int) -> float:
    """The seconds of a step of ranks that compute as these do, in their quickest stretch of steps.

    Ranks share cores evenly, one after the other on each, and wait for each other: the slowest core counts.
    """
    shares = [range(core, len(several), cores) for core in range(min(cores, len(several)))]
    rounds = zip(*[one.steps for one in several])
    times = [max(sum([took[rank] for rank in share]) for share in shares) for took in rounds]
    if len(times) < LEAST:
        raise ValueError(f"the program has to make {LEAST + WARM_UP} steps at least, and made {len(times) + WARM_UP}")
    count = min(max(LEAST, math.ceil(STRETCH / (sum(times) / len(times)))), len(times))
    ends = [0.0, *accumulate(times)]
    return min(later - sooner for sooner, later in zip(ends, ends[count:])) / count


def resident() -> int:
    """Bytes of memory this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
