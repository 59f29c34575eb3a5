"""When parameters are gathered and given back: the hooks of a module that was `fully_shard`ed."""

from __future__ import annotations

import weakref
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback._modes import current_task
from pullback.autograd.task import queue_callback
from pullback.distributed.fsdp.param_group import FSDPParamGroup
from pullback.utils._pytree import tree_map


class Step:
    """What the modules under one root have in common: the order in which they ran, and what backward will do."""

    def __init__(self) -> None:
        self.states: list[FSDPState] = []
        self.order: list[FSDPState] = []
        self.queued = False
        self.last = True

    def begin(self) -> None:
        """A forward pass begins: nothing is left of a backward pass that has raised."""
        self.order, self.queued = [], False
        for state in self.states:
            if state.group is not None:
                state.group.arrived = set()


class FSDPState:
    """One `fully_shard` call: its modules and its group of parameters, None if it has none."""

    def __init__(self, modules: tuple[Any, ...], group: FSDPParamGroup | None, policy: Any, reshard: Any) -> None:
        self.modules, self.group, self.policy = [weakref.ref(module) for module in modules], group, policy
        self.reshard_wanted: bool | None = reshard
        self.step: Step | None = None
        self.is_root = False
        self.forward_next: list[FSDPState] = []
        self.backward_next: list[FSDPState] | None = None
        self.unshard_in_backward = True
        self.inside = 0
        modules[0].register_forward_pre_hook(self.pre_forward, prepend=True, with_kwargs=True)
        modules[-1].register_forward_hook(self.post_forward, prepend=False)

    # ------------------------------------------------------------------ the first forward

    def become_root(self) -> None:
        """The first module that runs is the root of those inside of it."""
        self.is_root, self.step = True, Step()
        for module in self.modules:
            for one in module().modules():  # type: ignore[union-attr]
                state = one.__dict__.get("_fsdp_state")
                if state is not None and state not in self.step.states:
                    if state.step is not None and state is not self:
                        raise RuntimeError(
                            "FSDP state has already been lazily initialized: forward passes must begin at the root "
                            "module, or at modules that are not inside of one another"
                        )
                    state.step = self.step
                    self.step.states.append(state)
        for state in self.step.states:
            if state.group is not None:
                wanted = state.reshard_wanted
                state.group.reshard_after_forward = not state.is_root if wanted is None else bool(wanted)

    # ------------------------------------------------------------------ forward

    def pre_forward(self, module: Any, args: Any, kwargs: Any) -> Any:
        """Gather, and cast what goes in."""
        if self.step is None:
            self.become_root()
        in_backward = current_task.get() is not None
        if self.is_root and not in_backward and self.step is not None:
            self.step.begin()
        if self.policy.cast_forward_inputs and self.policy.param_dtype is not None:
            args, kwargs = tree_map(lambda one: as_dtype(one, self.policy.param_dtype), (args, kwargs))
        if self.group is not None:
            self.group.unshard()
        for state in self.forward_next:
            if state.group is not None:
                state.group.gather()
        return args, kwargs

    def post_forward(self, module: Any, args: Any, output: Any) -> Any:
        """Give the memory back; ask to be told when backward comes."""
        assert self.step is not None
        in_backward = current_task.get() is not None
        if self.group is not None and self.group.reshard_after_forward and not in_backward:
            self.group.reshard(between=True)
        if not in_backward:
            self.step.order.append(self)
        if self.policy.output_dtype is not None:
            output = tree_map(lambda one: as_dtype(one, self.policy.output_dtype), output)
        if torch.is_grad_enabled():
            tree_map(self.watch, output)
        return output

    def watch(self, value: Any) -> Any:
        """Be told when the gradient of an output is there."""
        if isinstance(value, Tensor) and value.requires_grad:
            value.register_hook(self.pre_backward)
        return value

    # ------------------------------------------------------------------ backward

    def pre_backward(self, grad: Any) -> None:
        """Gather, and what comes next in the background."""
        step = self.step
        assert step is not None
        if not step.queued:
            step.queued = True
            queue_callback(self.end_of_backward)
        if self.group is None or not self.unshard_in_backward:
            return
        if not self.group.whole:
            self.group.unshard()
        before = self.backward_next
        if before is None:
            place = step.order.index(self) if self in step.order else 0
            before = step.order[place - 1 : place] if place else []
        for state in before:
            if state.group is not None and any([param.wanted for param in state.group.params]):
                state.group.gather()

    def end_of_backward(self) -> None:
        """Reduce what is left, wait for all gradients, give all memory back."""
        step = self.step
        assert step is not None
        step.queued = False
        for state in step.states:
            if state.group is not None:
                state.group.post_backward()
        if step.last:
            for state in step.states:
                if state.group is not None:
                    state.group.finish()


def as_dtype(value: Any, dtype: Any) -> Any:
    """A floating point tensor in another dtype."""
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value
