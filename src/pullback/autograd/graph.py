"""Looking at and steering the graph: saved-tensor hooks, multi-gradient hooks, gradient edges, versions."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from pullback._arrays.memory import memory_of
from pullback._device import CPU
from pullback._lazy import stored
from pullback._modes import before_write, current_task, modes, saved_tensor_hooks, saved_tensor_hooks_disabled
from pullback._runtime.interrupts import Block
from pullback._tensor import Tensor, wrap
from pullback._versions import count_at
from pullback.autograd.api import GradientEdge
from pullback.autograd.engine import target_of
from pullback.autograd.hooks import RemovableHandle
from pullback.autograd.locations import caller_at, getframe
from pullback.autograd.node import Node, accumulator_of, parts
from pullback.autograd.task import Task
from pullback.autograd.tensor_hooks import register_hook
from pullback.autograd.view import edge_of, wants_grad

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place in the graph where this tensor's gradient arrives."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    edge = edge_of(tensor)
    return GradientEdge(accumulator_of(tensor), 0) if edge is tensor else GradientEdge(*parts(edge))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that autograd could not see."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    code, offset = caller_at(getframe(1))
    for item in tensors:
        if not isinstance(item, Tensor):
            raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
        if not item.is_inference():
            count_at(item, code, offset)


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Accepted for torch's sake: there are no streams here."""


def region_activation_memory_budget(budget: float) -> None:
    """Only for compiled regions in torch; an error elsewhere, as there."""
    name = "torch.autograd.graph.region_activation_memory_budget"
    if isinstance(budget, bool) or not isinstance(budget, (int, float)):
        raise TypeError(f"{name}: expects a float, got {type(budget).__name__}")
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(f"{name} can only be used inside a torch.compile region; it has no effect in eager mode.")


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted for torch's sake: there are no streams here to mismatch."""


class saved_tensors_hooks(Block):
    """Inside, what ops save for backward is given to `pack_hook`, and comes back through `unpack_hook`."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def _before(self) -> Any:
        """The hooks around."""
        return object(), saved_tensor_hooks.get()

    def _begin(self, before: Any) -> None:
        """Put these inside of them."""
        if not callable(self.pack_hook) or not callable(self.unpack_hook):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types "
                "are "
                "supported:\n    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> "
                "None\n\nInvoked "
                f"with: {self.pack_hook!r}, {self.unpack_hook!r}"
            )
        message = saved_tensor_hooks_disabled.get()
        if message is not None:
            raise RuntimeError(message)
        modes.hold(before[0])
        saved_tensor_hooks.set((*before[1], (self.pack_hook, self.unpack_hook)))

    def _end(self, before: Any) -> None:
        """Those around again."""
        saved_tensor_hooks.set(before[1])
        modes.drop(before[0])


class save_on_cpu(saved_tensors_hooks):
    """Keep saved tensors on the CPU until backward needs them; with `pin_memory` each is copied, as torch does."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> Any:
            if tensor.device is not CPU:
                return tensor.device, tensor.detach().cpu()
            return CPU, wrap(tensor._array.copy()) if pin_memory else tensor

        super().__init__(pack, lambda packed: packed[1].to(packed[0]))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, setting default saved-tensor hooks raises `error_message`."""
    before = saved_tensor_hooks_disabled.get()
    try:
        saved_tensor_hooks_disabled.set(error_message)
        if saved_tensor_hooks.get():
            raise RuntimeError(error_message)
        yield
    finally:
        saved_tensor_hooks_disabled.set(before)


# ------------------------------------------------------------------ hooks on several tensors


class MultiHandle(RemovableHandle):
    """Removes the hooks of register_multi_grad_hook from all tensors."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hook everywhere."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` once per backward: with all gradients when all have come ("all"), or with the first ("any")."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    return on_first(tensors, fn, lock) if mode == "any" else on_all(tensors, fn, lock)


def on_first(tensors: Sequence[Tensor], fn: Callable[..., None], lock: threading.Lock) -> RemovableHandle:
    """Call `fn(grad)` with the first gradient of each backward."""
    seen: WeakSet[Any] = WeakSet()

    def hook(grad: Tensor) -> None:
        task = current_task.get()
        with lock:
            first = task not in seen
            seen.add(task)
        if first:
            fn(grad)

    return MultiHandle(tuple([register_hook(t, hook) for t in tensors if wants_grad(t)]))


def on_all(tensors: Sequence[Tensor], fn: Callable[..., None], lock: threading.Lock) -> RemovableHandle:
    """Call `fn(grads)` when all gradients a backward will bring have come; None stands for those it will not."""
    if not all(wants_grad(t) for t in tensors):
        raise AssertionError("Expected gradient function to be set")
    targets = [target_of(edge_of(t)) for t in tensors]
    arrived: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    missing: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def collect(index: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            task = current_task.get()
            assert task is not None
            with lock:
                if task not in missing:
                    missing[task] = sum(will_run(task, target) for target in targets)
                    arrived[task] = [None] * len(tensors)
                arrived[task][index] = grad
                missing[task] -= 1
                done = missing[task] == 0
            if done:
                fn(arrived.pop(task))

        return hook

    return MultiHandle(tuple([register_hook(t, collect(i)) for i, t in enumerate(tensors)]))


def will_run(task: Task, target: Any) -> bool:
    """True if a backward pass will come by this node or leaf."""
    if target not in task.reached():
        return False
    if isinstance(target, Tensor) and task.captures is not None and (target, 0) in task.captures:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return True


MultiHandle.__name__ = MultiHandle.__qualname__ = "_MultiHandle"

# ------------------------------------------------------------------ writing to saved tensors


class Handle:
    """Stands for a saved tensor."""

    __slots__ = ("__weakref__",)


class SavedCopies:
    """What `allow_mutation_on_saved_tensors` knows: the saved tensors as they are, and copies of those written to."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[Handle, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[Handle, Tensor] = WeakKeyDictionary()
        self.handles: dict[int, WeakSet[Handle]] = defaultdict(WeakSet)
        self.open = True

    def clear(self) -> None:
        """Forget everything."""
        self.cloned.clear()
        self.original.clear()
        self.handles.clear()

    def pack(self, tensor: Tensor) -> Handle:
        """Keep a tensor, detached: with its history it would hold the node that holds the handle."""
        handle = Handle()
        self.handles[memory_key(tensor)].add(handle)
        self.original[handle] = wrap(tensor._array)
        return handle

    def unpack(self, handle: Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        found = self.cloned.get(handle, self.original.get(handle)) if self.open else None
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded."
            )
        return found

    def copy_before_write(self, tensor: Tensor) -> None:
        """A write is coming: copy what was saved of that memory."""
        for handle in self.handles.pop(memory_key(tensor), ()):
            original = self.original.pop(handle, None)
            if original is not None:
                self.cloned[handle] = wrap(original._array.copy())


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[SavedCopies]:
    """Inside, tensors saved for backward may be written to: each is copied just before the first write."""
    if before_write.get() is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    copies = SavedCopies()
    before = before_write.get()
    try:
        before_write.set(copies.copy_before_write)
        with saved_tensors_hooks(copies.pack, copies.unpack):
            yield copies
    finally:
        before_write.set(before)
        copies.open = False
        copies.clear()


def memory_key(tensor: Tensor) -> int:
    """The same for all tensors on the same memory."""
    return id(memory_of(stored(tensor)))
