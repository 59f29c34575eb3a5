"""The numbers of nodes: newer nodes have larger ones. A number can also know where, and on what streams, it was given.

Every generated function calls `next_sequence_nr` by its own global name. Anomaly mode puts another function under
that name, in all of them at once; so noting where a node was made costs nothing while nobody asks for it. The first use
of a stream that is not a default one does the same.
"""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

from pullback._runtime.building import building
from pullback._runtime.builtins import stepping
from pullback.autograd.collector import Blocks
from pullback.autograd.locations import is_library, line_of, stack_text

holders: list[dict[str, Any]] = []
"""The globals of generated functions, which name `next_sequence_nr`."""
evaluating: list[Any] = []
"""The nodes whose backward is running in anomaly mode, innermost last: the parents of nodes made meanwhile."""


def hold(namespace: dict[str, Any]) -> None:
    """Let generated code number its nodes, in the way all others do."""
    with building:
        namespace["next_sequence_nr"] = numbers.next
        holders.append(namespace)


class Numbers:
    """Gives out numbers, to code that is not generated: `next` as all do now, `plain` without locations."""

    __slots__ = ("blocks", "next", "plain")

    def __init__(self) -> None:
        self.blocks = Blocks(self.renew)
        self.next = self.plain = stepping(chain.from_iterable(self.blocks))

    def renew(self) -> None:
        """Go on with the next block, after an interrupt between two."""
        before, self.plain = self.plain, stepping(chain.from_iterable(self.blocks))
        if self.next is before:
            note_locations(False)


numbers: Any = Numbers()


class Number(int):
    """A number that knows on which streams of devices it was given out, where these are not the default ones."""

    streams: Any = None


class Location(Number):
    """A number that knows where it was given out, as (code, instruction) pairs, innermost first."""

    frames: list[tuple[Any, int]]
    parent: Any


followed: list[Any] = []
"""What knows the current streams (its `current`), once one is used that is not a default one."""


def next_on_streams() -> int:
    """The next number, with the streams that work goes to."""
    current = followed[0].current
    if not current:
        return numbers.plain()  # type: ignore[no-any-return]
    number = Number(numbers.plain())
    number.streams = current
    return number


def next_location() -> Location:
    """The next number, with the place of the call."""
    number = Location(numbers.plain())
    frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    number.frames = frames
    number.parent = evaluating[-1] if evaluating else None
    if followed:
        number.streams = followed[0].current or None
    return number


def note_locations(on: bool) -> None:
    """Give out numbers that know their place, or plain ones."""
    function = next_location if on else next_on_streams if followed else numbers.plain
    with building:  # code generated meanwhile by another thread would be forgotten
        numbers.next = function
        for holder in holders:
            holder["next_sequence_nr"] = function


def follow(streams: Any) -> None:
    """From now on numbers know the streams they were given out on."""
    followed.append(streams)
    note_locations(numbers.next is next_location)


def notes_of(number: Any) -> dict[str, Any]:
    """What anomaly mode knows about the node with this number, under torch's names."""
    if type(number) is not Location:
        return {}
    notes: dict[str, Any] = {"traceback_": lines(number.frames)}
    if number.parent is not None:
        notes["parent_"] = number.parent
    return notes


def lines(frames: list[tuple[Any, int]]) -> list[str]:
    """A stack as Python prints it, without the frames of the library."""
    return stack_text(
        (code.co_filename, line_of(code, instruction), code.co_name)
        for code, instruction in reversed(frames)
        if not is_library(code.co_filename)
    )
