"""Hooks that average gradients as they are, or as half precision on the way."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributed.collectives import all_reduce
from pullback.distributed.data_parallel.reducer import GradBucket
from pullback.distributed.world import group_or_default
from pullback.jit.futures import Future


def mean(group: Any, tensor: Tensor) -> Any:
    """A Future of the mean of a tensor over ranks: each divides first, so that sums do not overflow."""
    tensor.div_(group.size())
    work: Any = all_reduce(tensor, group=group, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean, as without a hook."""
    return mean(group_or_default(process_group), bucket.buffer())  # type: ignore[no-any-return]


def compressed(process_group: Any, bucket: GradBucket, dtype: Any) -> Future:
    """The mean of the gradients, rounded to another dtype on the way."""
    buffer = bucket.buffer()
    future = mean(group_or_default(process_group), buffer.to(dtype))
    return future.then(lambda done: buffer.copy_(done.value()))  # type: ignore[no-any-return]


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean in float16."""
    return compressed(process_group, bucket, torch.float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean in bfloat16."""
    return compressed(process_group, bucket, torch.bfloat16)


def fp16_compress_wrapper(hook: Any) -> Any:
    """Another hook, given float16."""
    return wrapped(hook, torch.float16)


def bf16_compress_wrapper(hook: Any) -> Any:
    """Another hook, given bfloat16."""
    return wrapped(hook, torch.bfloat16)


def wrapped(hook: Any, dtype: Any) -> Any:
    """Another hook, given gradients of another dtype."""

    def rounded(state: Any, bucket: GradBucket) -> Any:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        future = hook(state, bucket)

        def back(done: Any) -> Tensor:
            value = done.value()
            buffer.copy_(value[0] if isinstance(value, (list, tuple)) else value)
            bucket.set_buffer(buffer)
            return buffer

        return future.then(back)

    return rounded
