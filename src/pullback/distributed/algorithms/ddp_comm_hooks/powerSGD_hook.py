"""PowerSGD: gradients travel as products of two thin matrices; what is lost is added to the next gradient.

Each bucket is reduced before the next: all ranks must begin the same sums in the same order.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback.distributed.algorithms.ddp_comm_hooks.default_hooks import mean
from pullback.distributed.collectives import all_reduce
from pullback.distributed.data_parallel.reducer import GradBucket, done
from pullback.distributed.world import default_group, group_or_default
from pullback.jit.futures import Future

logger = logging.getLogger("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")


class PowerSGDState:
    """What PowerSGD is told, and what it keeps from one step to the next."""

    __slots__ = [
        "process_group", "matrix_approximation_rank", "start_powerSGD_iter", "min_compression_rate",
        "orthogonalization_epsilon", "use_error_feedback", "warm_start", "batch_tensors_with_same_shape", "rng",
        "error_dict", "p_memory_dict", "q_memory_dict", "iter", "total_numel_before_compression",
        "total_numel_after_compression", "compression_stats_logging_frequency", "next_stats_report",
    ]  # fmt: skip

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {slot: getattr(self, slot) for slot in self.__slots__ if slot != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = default_group()
        logger.warning(
            "NOTE: Process group will be set to a default group (i.e. the world size). If a different group is "
            "desired, please set `self.process_group` after PowerSGD state is loaded."
        )
        for slot, value in state.items():
            setattr(self, slot, value)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step when its last bucket is reduced."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How much shorter gradients have become, and their numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after > 0 else 0, before, after

    def feed_back(self, index: int, tensor: Tensor) -> Tensor | None:
        """Add what was lost in the last step; a copy, to find out what is lost in this one."""
        if not self.use_error_feedback:
            return None
        if index in self.error_dict:
            tensor.add_(self.error_dict[index])
        return tensor.detach().clone()

    def remember(self, index: int, before: Tensor | None, after: Tensor) -> None:
        """Keep what was lost."""
        if before is not None:
            self.error_dict[index] = before - after
        if not self.warm_start:
            self.p_memory_dict.clear()
            self.q_memory_dict.clear()

    def report(self, bucket: GradBucket) -> None:
        """Log how much shorter gradients have become, now and then."""
        if bucket.is_last() and self.iter >= self.next_stats_report:
            logger.info("Compression stats: iter %s, rate %s", self.iter, self.compression_stats()[0])
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency


def orthogonalize(matrices: Tensor, epsilon: float) -> None:
    """Make the columns of matrices orthogonal, each of length one, in place."""
    if epsilon == 0:
        matrices.copy_(torch.linalg.qr(matrices)[0])
        return
    for i in range(matrices.shape[2]):
        column = matrices[:, :, i : i + 1]
        column /= torch.norm(column, dim=1, keepdim=True) + epsilon
        rest = matrices[:, :, i + 1 :]
        rest -= torch.sum(column * rest, dim=1, keepdim=True) * column


def shorter(rows: int, columns: int, rank: int, rate: float) -> tuple[bool, int, int]:
    """Whether a matrix is worth it, and its numbers of elements before and after."""
    before, after = rows * columns, (rows + columns) * rank
    return after * rate < before, before, after


def random_like(state: PowerSGDState, *targets: Tensor) -> None:
    """Fill tensors with the same random numbers on all ranks, others in every step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(state.rng.randint(1_000_000_000))
        for target in targets:
            target.copy_(torch.randn(*target.shape, dtype=target.dtype))
            orthogonalize(target, state.orthogonalization_epsilon)


def batches(matrices: list[Tensor], together: bool) -> Iterator[tuple[Tensor, list[Tensor]]]:
    """Matrices by shape: those of one shape in one batch if asked for, with what they are made of."""
    by_shape: dict[Any, list[Tensor]] = {}
    for matrix in matrices:
        by_shape.setdefault(tuple(matrix.shape), []).append(matrix)
    for found in by_shape.values():
        if together and len(found) > 1:
            yield torch.stack(found), found
        else:
            for matrix in found:
                yield matrix.unsqueeze(0), []


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """The mean, each large gradient as a product of two thin matrices."""
    group, flat, index = group_or_default(state.process_group), bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, flat)  # type: ignore[no-any-return]
    before = state.feed_back(index, flat)
    large, small, rank = [], [], state.matrix_approximation_rank
    for tensor in bucket.gradients():
        matrix = tensor.view(tensor.shape[0], -1)
        n, m = matrix.shape
        worth, count, less = shorter(n, m, min(n, m, rank), state.min_compression_rate)
        (large if worth else small).append(matrix if worth else tensor)
        state.total_numel_before_compression += count
        state.total_numel_after_compression += less if worth else count
    state.report(bucket)
    if small:
        rest = torch.cat([tensor.view(-1) for tensor in small])
        all_reduce(rest, group=group)
        rest.div_(group.size())
        start = 0
        for tensor in small:
            tensor.copy_(rest[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()
    work = list(batches(large, state.batch_tensors_with_same_shape))
    sizes = [(one.shape[0], one.shape[1], one.shape[2], min(one.shape[1], one.shape[2], rank)) for one, _ in work]
    fresh = not state.warm_start or index not in state.p_memory_dict
    if fresh:
        state.p_memory_dict[index] = torch.empty(sum([b * n * k for b, n, _, k in sizes]), dtype=flat.dtype)
        state.q_memory_dict[index] = torch.empty(sum([b * m * k for b, _, m, k in sizes]), dtype=flat.dtype)
    p_flat, q_flat = state.p_memory_dict[index], state.q_memory_dict[index]
    ps, qs, p_at, q_at = [], [], 0, 0
    for b, n, m, k in sizes:
        ps.append(p_flat[p_at : p_at + b * n * k].view(b, n, k))
        qs.append(q_flat[q_at : q_at + b * m * k].view(b, m, k))
        p_at, q_at = p_at + b * n * k, q_at + b * m * k
    if fresh:
        random_like(state, *qs)
    else:
        for q in qs:
            orthogonalize(q, state.orthogonalization_epsilon)
    for (tensor, _), p, q in zip(work, ps, qs):
        p.copy_(torch.bmm(tensor, q))
    all_reduce(p_flat, group=group)
    for (tensor, _), p, q in zip(work, ps, qs):
        orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(torch.bmm(tensor.transpose(1, 2), p))
    all_reduce(q_flat, group=group)
    q_flat.div_(group.size())
    for (tensor, parts), p, q in zip(work, ps, qs):
        tensor.copy_(torch.bmm(p, q.transpose(1, 2)))
        for part, result in zip(parts, tensor):
            part.copy_(result)
    state.remember(index, before, flat)
    state.maybe_increase_iter(bucket)
    return done(flat)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future:
    """The mean, the whole bucket as one square matrix."""
    group, flat, index = group_or_default(state.process_group), bucket.buffer(), bucket.index()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return mean(group, flat)  # type: ignore[no-any-return]
    total, rank = flat.shape[0], state.matrix_approximation_rank
    side = math.ceil(math.sqrt(total))
    state.total_numel_before_compression += total
    state.total_numel_after_compression += side * rank * 2
    state.report(bucket)
    padded = torch.zeros(side * side, dtype=flat.dtype)
    padded[:total] = flat
    before = state.feed_back(index, padded)
    matrix = padded.view(side, side)
    if not state.warm_start or index not in state.p_memory_dict:
        state.p_memory_dict[index] = torch.empty(side, rank, dtype=flat.dtype)
        state.q_memory_dict[index] = q = torch.empty(side, rank, dtype=flat.dtype)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(state.rng.randint(1_000_000_000))
            q.copy_(torch.randn(side, rank, dtype=flat.dtype))
    p, q = state.p_memory_dict[index], state.q_memory_dict[index]
    orthogonalize(q.unsqueeze(0), 0)
    p.copy_(matrix @ q)
    all_reduce(p, group=group)
    orthogonalize(p.unsqueeze(0), 0)
    q.copy_(matrix.t() @ p)
    all_reduce(q, group=group)
    q.div_(group.size())
    matrix.copy_(p @ q.t())
    state.remember(index, before, padded)
    state.maybe_increase_iter(bucket)
    flat.copy_(padded[:total])
    return done(flat)


for _one in (PowerSGDState, powerSGD_hook, batched_powerSGD_hook):
    _one.__module__ = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"
