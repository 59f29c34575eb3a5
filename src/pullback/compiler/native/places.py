"""Memory in between the loops of a region."""

from __future__ import annotations

from bisect import bisect

ALIGNED = 64


class Places:
    """One piece of memory, of which parts are taken and given back."""

    def __init__(self) -> None:
        self.end = 0
        self.free: list[tuple[int, int]] = []
        """Where parts are free and how many bytes, in order; no two touch."""

    def take(self, size: int) -> int:
        """Where so many bytes are free: in the smallest part that has them, else at the end."""
        size = -(-size // ALIGNED) * ALIGNED
        fitting = [part for part in self.free if part[1] >= size]
        if fitting:
            at, room = min(fitting, key=lambda part: part[1])
            nr = self.free.index((at, room))
            self.free[nr : nr + 1] = [(at + size, room - size)] if room > size else []
            return at
        at = self.end
        if self.free and sum(self.free[-1]) == at:
            at, _ = self.free.pop()
        self.end = at + size
        return at

    def give_back(self, at: int, size: int) -> None:
        """They are free again."""
        size = -(-size // ALIGNED) * ALIGNED
        nr = bisect(self.free, (at, 0))
        if nr < len(self.free) and self.free[nr][0] == at + size:
            size += self.free.pop(nr)[1]
        if nr and sum(self.free[nr - 1]) == at:
            before, more = self.free.pop(nr - 1)
            nr, at, size = nr - 1, before, size + more
        self.free.insert(nr, (at, size))
