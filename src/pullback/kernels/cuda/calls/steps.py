"""All parameters of an optimizer on the device in one call: what optim/together.py asks for.

The first step of an optimizer that comes here is done by Python, which writes a plan: which arrays there are, and what
is launched. As long as arrays are alike, native code does the steps by it (kernels/jit/cuda/stepping.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._runtime.builtins import builtin
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.device import placed, required
from pullback.kernels.cuda.front import Front, places_of
from pullback.kernels.cuda.launch import BLOCK, function
from pullback.kernels.cuda.memory import pool_of
from pullback.kernels.cuda.update import Updating, columns, kernel_of, most_rows

PLANS = 64
"""How often a plan is written for one optimizer: one whose gradients are different objects each time has none."""
MOST_NUMBERS = 32
"""Numbers that a rule may have for native code."""


class Steps:
    """The steps of one optimizer. `run` takes all arrays, and then the numbers of each group."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts, self.left, self.held = parts, PLANS, ()
        self.run: Callable[..., bool] = self.do
        front = pool_of(0).front
        few = all([part.form.passed <= MOST_NUMBERS for part in parts])
        self.plan: Any = None
        if isinstance(front, Front) and few and not required().emulated:
            self.front, self.plan = front, np.zeros(self.count_words(), np.int64)
            entry = room("cuda.stepping").load(places_of(DeviceArray))
            self.run = builtin(entry, "step", (self.do, front.words, self.plan))

    def do(self, *given: Any) -> bool:
        """A step by Python; False if arrays are not what they were, with nothing changed."""
        at, rows = 0, []
        for part in self.parts:
            for size in part.sizes:
                arrays = list(given[at : at + part.many])
                at += part.many
                if not Updating.takes(arrays) or arrays[0].size != size or arrays[0].dtype != part.dtype:
                    return False
                rows.append(arrays)
        row = 0
        for part in self.parts:
            Updating.run(part.form.results, rows[row : row + len(part.sizes)], list(given[at : at + part.form.passed]))
            row += len(part.sizes)
            at += part.told
        if self.plan is not None and self.left and all([arrays[0].device is placed(0) for arrays in rows]):
            self.left -= 1
            self.write(len(given), [array for arrays in rows for array in arrays])
        return True

    def launches(self) -> list[tuple[Any, list[int]]]:
        """The group and the sizes of the parameters of each launch."""
        found = []
        for part in self.parts:
            most = most_rows(part.many)
            found += [(part, part.sizes[start : start + most]) for start in range(0, len(part.sizes), most)]
        return found

    def count_words(self) -> int:
        """How many words a plan has."""
        entry = room("cuda.stepping")
        items = sum([part.many * len(part.sizes) for part in self.parts])
        return int(entry.FACTS_FROM + items * 4 + sum([entry.HEADING + len(sizes) for _, sizes in self.launches()]))

    def write(self, arguments: int, arrays: list[DeviceArray]) -> None:
        """Write down how this step was done."""
        launches = self.launches()
        facts = [fact for a in arrays for fact in (a.dtype, a.shape, a.strides, None)]
        words = [arguments, len(arrays), len(launches), int(self.front.words[self.front.kernels.GENERATION])]
        words += [0 if fact is None else id(fact) for fact in facts]
        first, last = len(arrays), None
        for part, sizes in launches:
            if last is not None and part is not last:
                first += last.told
            last = part
            name, text, table = kernel_of(part.form.results, part.dtype, part.many, len(sizes))
            handle = required().handle(function(0, name, lambda text=text: text))  # type: ignore[misc]
            words += [handle, columns(sizes), len(sizes), BLOCK, part.many, first, part.form.passed, table, *sizes]
        before, self.held = self.held, tuple(facts)
        self.plan[:] = words
        del before  # nothing may take the place of what the plan knows


Updating.together = staticmethod(lambda parts: Steps(parts).run)  # type: ignore[attr-defined]
