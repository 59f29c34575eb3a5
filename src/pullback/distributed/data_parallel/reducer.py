"""`Reducer`: averages gradients over ranks, in buckets, each as soon as its gradients are there.

Buckets are filled in the reverse order of the parameters, which is about the order in which backward finishes them.
All ranks reduce them in the same order: a bucket waits for those before it. Buckets lie in host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback._lazy import LazyTensor
from pullback.autograd.accumulate import count_write
from pullback.autograd.task import queue_callback
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.reduce_op import ReduceOp
from pullback.distributed.work import Future

FIRST_BUCKET = 1 << 20
"""Bytes of the first bucket: small, so that the first reduction begins early."""


class GradBucket:
    """What a communication hook is given: the gradients of a bucket, one behind the other."""

    def __init__(self, index: int, params: list[Tensor]) -> None:
        self._index, self._params, self._last = index, params, False
        self._buffer = torch.zeros(sum([param.numel() for param in params]), dtype=params[0].dtype)
        self._missing = len(params)
        self._future: Any = None
        self._grads: list[Tensor | None] = [None] * len(params)  # those that are reduced where they are
        self._views: list[Tensor] = []
        self._look()

    def _look(self) -> None:
        """The views of the gradients in the buffer."""
        start = 0
        self._views = []
        for param in self._params:
            self._views.append(self._buffer[start : start + param.numel()].view(param.shape))
            start += param.numel()

    def index(self) -> int:
        """Its number."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients in one tensor."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor in its place."""
        self._buffer = buffer
        self._look()

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        return self._views

    def parameters(self) -> list[Tensor]:
        """Whose gradients they are."""
        return self._params

    def is_last(self) -> bool:
        """Whether it is the last to be reduced."""
        return self._last


GradBucket.__module__ = "torch._C._distributed_c10d"


def in_buckets(params: list[Tensor], first: int, cap: int) -> list[list[Tensor]]:
    """Parameters from the last to the first, in buckets of one dtype that are full at so many bytes."""
    filling: dict[Any, list[Tensor]] = {}
    full: list[list[Tensor]] = []
    limits: dict[Any, int] = {}
    for param in reversed(params):
        bucket = filling.setdefault(param.dtype, [])
        bucket.append(param)
        if sum([one.nbytes for one in bucket]) >= limits.setdefault(param.dtype, first):
            limits[param.dtype] = cap
            full.append(filling.pop(param.dtype))
    return full + list(filling.values())


class Reducer:
    """Watches the gradients of parameters. `prepare` begins a step, the end of backward completes it."""

    def __init__(
        self,
        names: list[str],
        params: list[Tensor],
        group: ProcessGroup,
        cap: int,
        as_views: bool,
        sparse: Set[int] = frozenset(),
    ) -> None:
        self.names, self.params, self.group, self.as_views = names, params, group, as_views
        self.sparse = [param for param in params if id(param) in sparse]
        """Those whose gradients are sparse: they are added up by themselves, after the buckets."""
        dense = [param for param in params if id(param) not in sparse]
        self.buckets = [GradBucket(i, part) for i, part in enumerate(in_buckets(dense, min(FIRST_BUCKET, cap), cap))]
        if self.buckets:
            self.buckets[-1]._last = True
        self.place = {
            id(param): (bucket, index) for bucket in self.buckets for index, param in enumerate(bucket._params)
        }
        self.hook: Callable[[Any, GradBucket], Any] | None = None
        self.state: Any = None
        self.divisor = group.size()
        self.expecting, self.queued, self.next = False, False, 0
        self.ready: set[int] = set()
        self.unused: set[int] = set()
        self.find_unused = False
        self.handles = [param.register_post_accumulate_grad_hook(self.arrived) for param in params]

    # ------------------------------------------------------------------ a step

    def unfinished(self) -> list[int]:
        """The numbers of the parameters whose gradients the last step waited for in vain."""
        return [i for i, param in enumerate(self.params) if id(param) not in self.ready] if self.expecting else []

    def prepare(self, used: set[int] | None) -> None:
        """Begin a step: gradients that come from now on are reduced. `used` are the parameters that will have one."""
        self.expecting, self.queued, self.next = True, False, 0
        self.ready = set()
        for bucket in self.buckets:
            bucket._missing, bucket._future = len(bucket._params), None
            bucket._grads = [None] * len(bucket._params)
        self.unused = set() if used is None else {id(param) for param in self.params} - used

    def forget(self) -> None:
        """Gradients that come from now on are left alone."""
        self.expecting = False

    def begin_anew(self) -> None:
        """The group has other ranks than before: what had begun is forgotten."""
        self.prepare(None)
        self.expecting, self.divisor = False, self.group.size()

    def arrived(self, param: Tensor) -> None:
        """The gradient of a parameter is complete."""
        if not self.expecting:
            return
        if not self.queued:
            self.queued = True
            queue_callback(self.complete)
            for other in self.params:
                if id(other) in self.unused:
                    self.mark(other)
        self.unused.discard(id(param))
        self.mark(param)

    def mark(self, param: Tensor) -> None:
        """Put a gradient into its bucket; what is full is reduced."""
        if id(param) in self.ready:
            name = self.names[next(i for i, one in enumerate(self.params) if one is param)]
            raise RuntimeError(
                f"Expected to mark a variable ready only once. Parameter {name} has been marked as ready twice: it was "
                "used in several backward passes of one forward pass, or outside of it. Use `static_graph=True` or "
                "`no_sync()`."
            )
        self.ready.add(id(param))
        if id(param) not in self.place:
            return  # a sparse gradient waits for the end of backward
        bucket, index = self.place[id(param)]
        if self.in_place(param):
            bucket._grads[index] = param._grad
        else:
            self.fill(bucket._views[index], param.grad)
        bucket._missing -= 1
        while self.next < len(self.buckets) and not self.buckets[self.next]._missing:
            self.launch(self.buckets[self.next])
            self.next += 1

    def in_place(self, param: Tensor) -> bool:
        """Whether the gradient of a parameter can be reduced where it is, without a way through the bucket."""
        grad = param._grad
        if self.hook is not None or self.as_views or grad is None or id(param) in self.unused:
            return False
        array = grad._array
        plain = type(array) is np.ndarray and type(grad) is not LazyTensor
        return plain and array.dtype == param._array.dtype and array.flags.c_contiguous

    def fill(self, view: Tensor, grad: Tensor | None) -> None:
        """A gradient into its place."""
        if grad is None:
            view._array[...] = 0
        elif grad.layout is not torch.strided:
            raise NotImplementedError(
                "DistributedDataParallel found a sparse gradient of a parameter that is not that of an Embedding or "
                "EmbeddingBag with sparse=True: use these modules, or dense gradients"
            )
        elif grad is not view:
            np.copyto(view._array, grad._array if grad.device.type == "cpu" else grad.detach().cpu()._array)

    def launch(self, bucket: GradBucket) -> None:
        """Reduce a bucket, in the background."""
        if self.hook is not None:
            bucket._future = self.hook(self.state, bucket)
            return
        found = zip(bucket._grads, bucket._views)
        arrays = [(view if grad is None else grad)._array for grad, view in found]
        bucket._future = self.group._mean([bucket._buffer._array] if self.as_views else arrays, self.divisor)

    def complete(self) -> None:
        """Backward is over: wait for the buckets, and hand the gradients to their parameters."""
        if len(self.ready) < len(self.params):
            return  # the next forward pass says which are missing
        used = self.used_anywhere() if self.find_unused else None
        for bucket in self.buckets:
            result = bucket._future.wait()
            if self.hook is not None:
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not bucket._buffer:
                    np.copyto(bucket._buffer._array, result.detach().reshape(-1)._array)
            for param, view, grad in zip(bucket._params, bucket._views, bucket._grads):
                if used is not None and not used[id(param)]:
                    continue  # nobody has used it: its gradient stays as it is
                self.hand_over(param, view, grad)
            bucket._grads = [None] * len(bucket._params)
        for param in self.sparse:
            total = self.sparse_mean(param, param.grad)
            if used is None or used[id(param)]:
                param.grad = total
        self.expecting = False

    def sparse_mean(self, param: Tensor, grad: Tensor | None) -> Tensor:
        """The mean over ranks of a sparse gradient; a rank without one has no entries."""
        if grad is None:
            entries = torch.empty((0, *param.shape[1:]), dtype=param.dtype)
            grad = torch.sparse_coo_tensor(torch.empty((1, 0), dtype=torch.int64), entries, param.shape)
        total = grad.detach().coalesce() / self.divisor
        self.group.all_reduce([total], ReduceOp.SUM)
        return total

    def hand_over(self, param: Tensor, view: Tensor, grad: Tensor | None) -> None:
        """The reduced gradient becomes the parameter's; `grad`, if it was reduced where it is."""
        if grad is not None:
            count_write(grad)
            if param._grad is not grad:
                param.grad = grad
        elif self.as_views and param.device.type == "cpu":
            param.grad = view
        elif param.grad is None:
            param.grad = view.clone() if param.device.type == "cpu" else view.to(param.device)
        else:
            with torch.no_grad():
                param.grad.copy_(view)

    def used_anywhere(self) -> dict[int, bool]:
        """Which parameters any rank has used in this step."""
        mine = torch.tensor([int(id(param) not in self.unused) for param in self.params], dtype=torch.int32)
        self.group.all_reduce([mine], ReduceOp.MAX)
        return {id(param): bool(used) for param, used in zip(self.params, mine.tolist())}

    # ------------------------------------------------------------------ a rank without input

    def shadow(self) -> None:
        """Take part in the reductions of a step in which this rank has no gradients; those it has stay as they are."""
        twins = [GradBucket(bucket._index, bucket._params) for bucket in self.buckets]
        for bucket, twin in zip(self.buckets, twins):
            twin._last = bucket._last
            self.launch(twin)
        if self.find_unused:
            self.group.all_reduce([torch.zeros(len(self.params), dtype=torch.int32)], ReduceOp.MAX)
        for twin in twins:
            twin._future.wait()
        for param in self.sparse:
            self.sparse_mean(param, None)


def done(value: Any) -> Future:
    """A Future that has its result."""
    future = Future()
    future.set_result(value)
    return future
