"""Blocks that an interrupt can neither leave half entered nor half left.

Python raises KeyboardInterrupt between two instructions: on entering a function, after a call, at the end of a loop's
turn; never after an assignment. So a mode that is set by a call is set inside of the `try` that sets it back, one
`finally` for each; and what sets it back does no harm when it runs twice.

`__exit__` is a function too: an interrupt on entering it, before any line of it has run, would leave the mode as it is.
`covered` lets its `try` begin with its very first instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def covered(function: F) -> F:
    """The function, whose body is one `try`, with the handler in charge from the first instruction on."""
    code = function.__code__
    table = getattr(code, "co_exceptiontable", b"")
    if table:
        entries = list(entries_of(table))
        start, size, *rest = entries[0]
        entries[0] = (0, start + size, *rest)
        function.__code__ = code.replace(co_exceptiontable=b"".join(map(encoded, entries)))
    return function


def entries_of(table: bytes) -> Iterator[tuple[int, ...]]:
    """What an exception table says: (start, size, handler, depth) for each range of instructions."""
    numbers, value = [], 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:  # more bits follow
            numbers.append(value)
            value = 0
    return zip(*[iter(numbers)] * 4, strict=True)


def encoded(entry: tuple[int, ...]) -> bytes:
    """An entry of an exception table: six bits a byte, the highest first; its first byte is marked."""
    out = bytearray()
    for number in entry:
        groups = [number >> shift & 63 for shift in range(30, -1, -6)]
        while len(groups) > 1 and not groups[0]:
            del groups[0]
        out += bytes([group | 64 for group in groups[:-1]] + groups[-1:])
    out[0] |= 128
    return bytes(out)


class Block:
    """A context manager: what was before is looked at, something is changed, and on leaving changed back."""

    _records: Any = ()
    """What was before, for each time it was entered: (the last, those around it)."""

    def _before(self) -> Any:
        """What `_end` has to know. Nothing is changed yet."""
        return None

    def _begin(self, before: Any) -> Any:
        """What happens on entering; what it returns is what `as` gives."""
        raise NotImplementedError

    def _end(self, before: Any) -> None:
        """What happens on leaving and when `_begin` was interrupted; called again, it finishes what it began."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        before = self._before()
        try:
            out = self._begin(before)
            self._records = before, self._records
        except BaseException:
            self._end(before)
            raise
        return out

    @covered
    def __exit__(self, *error: object) -> None:
        try:
            if not self._records:
                raise RuntimeError("trying to pop from empty mode stack")
            before, around = self._records
            self._end(before)
            self._records = around
        except BaseException:
            if self._records:
                before, around = self._records
                self._end(before)
                self._records = around
            raise
