"""Counting writes to memory: the counters tensors share, and where the last write was.

A counter is a list, [writes, code, offset]: the line of the last write follows the first. Memory that nobody has
written to or aliased shares one constant; tensors made in inference mode count nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pullback._modes import before_write, is_inference_mode_enabled, modes
from pullback._runtime import messages
from pullback.autograd.locations import NOBODY, USER, caller_at, getframe

if TYPE_CHECKING:
    from pullback._tensor import Tensor

PRISTINE: Any = (0,)
"""The counter of memory nobody has aliased or written to: reads as version 0, replaced by a list on first need."""


class InferenceCounter:
    """The counter of tensors made in inference mode, whose writes nobody counts: saving one for backward raises."""

    __slots__ = ()

    def __getitem__(self, index: int) -> int:
        raise RuntimeError(messages.INFERENCE_SAVED)


INFERENCE: Any = InferenceCounter()


DETACHED = 1 << 40
"""What the counter of a tensor detached in place adds: nothing saved of it before then has the right version."""


class DetachedCounter:
    """The counter of a tensor that lost its history in place: writes count as before, saved versions no longer fit."""

    __slots__ = ("shared",)

    def __init__(self, shared: list[int]) -> None:
        self.shared = shared

    def __getitem__(self, index: int) -> int:
        return self.shared[0] + DETACHED

    def __setitem__(self, index: int, value: int) -> None:
        self.shared[0] = value - DETACHED


def counter_of(tensor: Tensor) -> list[int]:
    """The counter this tensor shares with all that look at its memory, made on first need."""
    if tensor._counter is PRISTINE:
        tensor._counter = [0]
    return tensor._counter


def about_to_write(tensor: Tensor) -> None:
    """Tell whoever watches that the tensor's memory is going to change."""
    if modes.active and (watcher := before_write.get()) is not None:
        watcher(tensor)


def bump_version(tensor: Tensor, depth: int = 2) -> None:
    """Count one write to the tensor's memory, and note where: the user's frame is at this depth or beyond."""
    if tensor._counter is INFERENCE:
        if not is_inference_mode_enabled():
            raise RuntimeError(messages.INFERENCE_INPLACE)
        return
    try:
        frame: Any = getframe(depth)
    except ValueError:
        frame = NOBODY
    code, offset = frame.f_code, frame.f_lasti
    if code.co_filename not in USER:
        code, offset = caller_at(frame)
    count_at(tensor, code, offset)


def count_at(tensor: Tensor, code: Any, offset: int) -> None:
    """Count one write to memory that is no inference tensor's, by this line."""
    counter: Any = tensor._counter
    if counter is PRISTINE:
        tensor._counter = [1, code, offset]
        return
    counter[0] += 1
    notes = counter if type(counter) is list else counter.shared
    if len(notes) == 1:
        notes.extend((code, offset))
    else:
        notes[1], notes[2] = code, offset
