"""What can change the meaning of an op call: grad mode, inference mode, saved-tensor hooks, anomaly, forward mode.

Grad mode is asked on every op, so it is a bare context variable: local to the thread and to the asyncio task.
Everything rarer hides behind one flag: `modes.active` is True while any rare mode is on anywhere, and sends every
op to the reference path, where the particular mode is looked up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pullback._runtime.building import building
from pullback._runtime.interrupts import Block

grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)
is_grad_enabled = grad_enabled.get

inference: ContextVar[bool] = ContextVar("inference", default=False)
is_inference_mode_enabled = inference.get

SavedHooks = tuple[Callable[[Any], Any], Callable[[Any], Any]]

current_task: ContextVar[Any] = ContextVar("current_task", default=None)
"""The backward pass that is running, a Task of the engine."""

saved_tensor_hooks: ContextVar[tuple[SavedHooks, ...]] = ContextVar("saved_tensor_hooks", default=())
"""The stack of default (pack, unpack) pairs; the innermost is last."""

saved_tensor_hooks_disabled: ContextVar[str | None] = ContextVar("saved_tensor_hooks_disabled", default=None)
"""The message to raise when somebody sets default hooks while they are forbidden."""

grad_layout_enforced: ContextVar[bool] = ContextVar("grad_layout_enforced", default=True)
"""Whether a gradient must lie in memory as its leaf does."""

claim: ContextVar[Callable[[Any], Any] | None] = ContextVar("claim", default=None)
"""What a tensor that a program makes becomes inside a transform: one of its own, which can hold what moves there."""


def claimed_by(own: Callable[[Any], Any] | None, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in which new tensors become something else."""
    before = claim.get()
    try:
        claim.set(own)
        return function(*args)
    finally:
        claim.set(before)


dispatch_modes: ContextVar[tuple[Any, ...]] = ContextVar("dispatch_modes", default=())
"""The modes that are told of every op below autograd, the innermost last."""

classes_told: ContextVar[bool] = ContextVar("classes_told", default=True)
"""Whether classes with `__torch_dispatch__` are told of ops of their instances."""

in_transform: ContextVar[bool] = ContextVar("in_transform", default=False)
"""Whether the running code is a function that grad, vjp, jvp or vmap calls: torch composes some functions there."""

before_write: ContextVar[Callable[[Any], None] | None] = ContextVar("before_write", default=None)
"""Called with a tensor just before it is written to, while saved tensors may be mutated."""


class Detours:
    """Whether anything stands in the way of a direct call: a rare mode, or a function that does something else first.

    Methods of tensors on other devices, which no patch reaches, look here.
    """

    __slots__ = ("active", "holders")

    def __init__(self) -> None:
        self.holders: dict[Any, None] = {}
        self.active = False

    def hold(self, who: Any) -> None:
        """Something does."""
        self.holders[who] = None
        self.active = True

    def drop(self, who: Any) -> None:
        """The matching end of `hold`; once more does no harm."""
        self.holders.pop(who, None)
        self.active = bool(self.holders)


detours = Detours()
beyond_casts = Detours()
"""Rare modes other than autocast, which is over with once the operands of an op are cast."""


class Modes:
    """The rare modes that are not local to a thread, and the flag that says whether any rare mode is on."""

    __slots__ = ("active", "anomaly", "check_nan", "dispatch", "dual_epoch", "dual_level", "holders", "profiler",
                 "recorders")  # fmt: skip

    def __init__(self) -> None:
        self.holders: dict[Any, None] = {}
        """Who is in a rare mode."""
        self.active = False
        self.anomaly = False
        self.check_nan = True
        self.dual_level = -1
        self.dual_epoch = 0
        """Counts dual levels: a tangent belongs to the one it was made in and ends with it."""
        self.profiler: Any = None
        self.recorders: dict[int, Any] = {}
        """Who records the functions that threads run, by the number of the thread: see compiler/capture.py."""
        self.dispatch: Any = None
        """Who is told of every op below autograd, once anybody wants to be: see library/dispatch.py."""

    def hold(self, who: Any, casts: bool = False) -> None:
        """Somebody entered a rare mode, which may do no more than cast: from here on every op takes the reference
        path."""
        with building:
            self.holders[who] = None
            self.active = True
            detours.hold(who)
            if not casts:
                beyond_casts.hold(who)

    def drop(self, who: Any) -> None:
        """The matching end of `hold`; once more does no harm."""
        with building:
            self.holders.pop(who, None)
            self.active = bool(self.holders)
            detours.drop(who)
            beyond_casts.drop(who)


class transforming(Block):
    """A `with` block that counts as the inside of a transform."""

    def _before(self) -> bool:
        """Whether there is one around."""
        return in_transform.get()

    def _begin(self, before: bool) -> None:
        """Inside."""
        in_transform.set(True)

    def _end(self, before: bool) -> None:
        """As it was."""
        in_transform.set(before)


modes = Modes()
if os.environ.get("PULLBACK_REFERENCE") == "1":
    modes.hold("PULLBACK_REFERENCE")

deterministic = {"enabled": False, "warn_only": False}
"""Whether deterministic algorithms were asked for: only sums on a CUDA device know others."""
