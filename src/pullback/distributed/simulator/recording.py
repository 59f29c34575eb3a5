"""A step of training, recorded: when each gradient was there, when backward and the optimizer were done, and bytes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from pullback import Tensor
from pullback.distributed.data_parallel.reducer import FIRST_BUCKET, in_buckets
from pullback.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

WARM_UP = 2
"""Steps that are not counted: kernels are compiled in them."""
BUCKET = 25 << 20


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

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


class Recorder:
    """Watches optimizers: a step is what lies between the ends of two of their steps.

    `best` is the quickest one, `usual` one of middling length. `meet` is called once, when the steps begin that count.
    """

    def __init__(self, meet: Callable[[], None] | None = None) -> None:
        self.began, self.meet = 0.0, meet
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

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """The step is over, and the next one begins."""
        now = time.perf_counter()
        took = now - self.began
        self.steps.append(took)
        if len(self.steps) > WARM_UP and self.ready:
            self.found.append(self.made(took, optimizer))
        if len(self.steps) == WARM_UP and self.meet is not None:
            self.meet()
        self.began = time.perf_counter()

    def by_length(self) -> list[Recording]:
        """What was recorded, the quickest step first."""
        return sorted(self.found, key=lambda one: one.step)

    @property
    def best(self) -> Recording:
        """The quickest step."""
        return self.by_length()[0]

    @property
    def usual(self) -> Recording:
        """A step than which half of the others are quicker."""
        return self.by_length()[len(self.found) // 2]

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


def resident() -> int:
    """Bytes of memory this process holds; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
