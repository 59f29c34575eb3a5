"""Keeping Python's cycle collector from walking over large graphs again and again.

Graphs have no cycles: they die by reference counting. But the collector does not know, and visits every node about
seven times while a graph of a million nodes grows, which doubles the time of an op. So whenever a block of nodes has
been made *and is still alive*, everything allocated so far is set aside with `gc.freeze()`; the end of the next
backward pass (or the first block that dies young) gives it back with `gc.unfreeze()`. Both only relink lists.
Programs that freeze for themselves are left alone. See note: memory.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from pullback._runtime.interrupts import covered

BLOCK = 8192
"""Nodes between two looks at the collector."""
GROWTH = 2 * BLOCK // 700 // 2
"""Young collections during a block that say its nodes (two containers each) are mostly still alive."""


class Collector:
    """Whether we have set objects aside, and how many young collections there had been at the last look."""

    __slots__ = ("frozen", "seen")

    def __init__(self) -> None:
        self.frozen = False
        self.seen = 0

    def look(self) -> None:
        """A block of nodes has been made: set it aside if it lives, else take back what was set aside."""
        runs = gc.get_stats()[0]["collections"]
        grew, self.seen = runs - self.seen >= GROWTH, runs
        if grew and gc.isenabled():
            if self.frozen or gc.get_freeze_count() == 0:
                gc.freeze()
                self.frozen = True
        elif self.frozen:
            self.thaw()

    def thaw(self) -> None:
        """Take back what was set aside."""
        gc.unfreeze()
        self.frozen = False


collector = Collector()


class Blocks:
    """The sequence numbers, in blocks, with a look at the collector between two.

    Whoever runs through them without Python's help forgets them when they raise, as an interrupt does: `forgotten` is
    called then.
    """

    __slots__ = ("forgotten", "start")

    def __init__(self, forgotten: Callable[[], None]) -> None:
        self.start, self.forgotten = 0, forgotten

    def __iter__(self) -> Blocks:
        return self

    @covered
    def __next__(self) -> range:
        try:
            start = self.start
            self.start = start + BLOCK
            if start:
                collector.look()
            return range(start, start + BLOCK)
        except BaseException:
            self.forgotten()
            raise
