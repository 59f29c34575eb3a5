"""Post-local SGD: after some steps gradients are averaged in smaller groups only, and the models now and then."""

from __future__ import annotations

from typing import Any

from pullback.distributed.algorithms.ddp_comm_hooks.default_hooks import mean
from pullback.distributed.data_parallel.reducer import GradBucket, done
from pullback.distributed.world import group_or_default, new_subgroups
from pullback.jit.futures import Future


class PostLocalSGDState:
    """Which groups average, and from which step on."""

    __slots__ = ["process_group", "subgroup", "start_localSGD_iter", "post_local_gradient_allreduce", "iter"]

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = (
            start_localSGD_iter,
            post_local_gradient_allreduce,
        )
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket is reduced."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:
    """The mean over all ranks at first, then over the subgroup."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group_or_default(state.process_group), bucket.buffer())  # type: ignore[no-any-return]
    if not state.post_local_gradient_allreduce:
        return done(bucket.buffer())
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return mean(state.subgroup, bucket.buffer())  # type: ignore[no-any-return]
