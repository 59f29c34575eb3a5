"""The calls of modules that steps ran in: what the page folds.

Every call of a module is a group of its own. Calls of one module inside one call of another, as in a loop, have a
group around them, so that a cell called 200 times is one row, which opens into 200.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pullback.autograd.locations import module_path, scopes


@dataclass(slots=True)
class Call:
    """One call of a module, or all calls of one module inside one call of another."""

    path: str
    """The module, from the outermost one on: net.layers.0."""
    kind: str
    """Its class."""
    parent: int
    """The call around it, by number; -1 for none."""
    key: str = ""
    """net.cell if it was called once, net.cell#3 for one call of several, net.cell#1-200 for several together."""
    which: str = ""
    """call 3 of 200, or 200 calls."""


class Calls:
    """Collects the calls of nodes, which come oldest first."""

    def __init__(self) -> None:
        self.all: list[Call] = []
        self.number: dict[int, int] = {}
        """id of a scope -> the number of its call; nodes keep the scopes alive meanwhile."""
        self.paths: dict[Any, str | None] = {}

    def of(self, node: Any) -> int:
        """The innermost call a node was made in, by number; -1 for none."""
        around = [s for s in scopes(getattr(node, "_scope", None)) if s[2] is not None and s[2]() is not None]
        number = -1
        for depth in reversed(range(len(around))):
            known = self.number.get(id(around[depth]))
            if known is None:
                path, _, kind = (self.path_of(around[depth:]) or "").partition(" ")
                known = self.number[id(around[depth])] = len(self.all)
                self.all.append(Call(path, kind.strip("()"), number))
            number = known
        return number

    def path_of(self, around: list[Any]) -> str | None:
        """The name of the innermost of some calls; those made at the same lines are looked up once."""
        key = tuple([part for code, offset, module, *_ in around for part in (code, offset, id(module))])
        if key not in self.paths:
            self.paths[key] = module_path(around)
        return self.paths[key]

    def fold(self) -> None:
        """Give every call its key, and those of one module in one call a group around them."""
        times: dict[str, int] = {}
        together: dict[tuple[int, str], list[int]] = {}
        for number, call in enumerate(self.all):
            times[call.path] = times.get(call.path, 0) + 1
            call.key = f"{call.path}#{times[call.path]}"
            together.setdefault((call.parent, call.path), []).append(number)
        for call in self.all:
            if times[call.path] == 1:
                call.key = call.path
        for (parent, path), numbers in together.items():
            if len(numbers) > 1:
                first, last = (self.all[number].key.rpartition("#")[2] for number in (numbers[0], numbers[-1]))
                for count, number in enumerate(numbers, start=1):
                    self.all[number].parent = len(self.all)
                    self.all[number].which = f"call {count} of {len(numbers)}"
                kind = self.all[numbers[0]].kind
                self.all.append(Call(path, kind, parent, f"{path}#{first}-{last}", f"{len(numbers)} calls"))

    def around(self, number: int) -> list[int]:
        """A call and those around it, outermost first."""
        out = []
        while number >= 0:
            out.append(number)
            number = self.all[number].parent
        return out[::-1]
