"""What stands in the source where a proxy is used: an unpacking says how many items it wants, an assert is known."""

from __future__ import annotations

import ast
import linecache
from itertools import islice
from types import FrameType


def statement(frame: FrameType) -> tuple[int, str]:
    """The line that a frame runs, and the part of it that asks right now; nothing where there is no source."""
    first, last, start, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return 0, ""
    lines = [linecache.getline(frame.f_code.co_filename, i, frame.f_globals) for i in range(first, last + 1)]
    pieces = [line.encode() for line in lines]
    pieces[-1] = pieces[-1][:end]
    pieces[0] = pieces[0][start:]
    return first, b"".join(pieces).decode()


def unpacked_items(frame: FrameType) -> int | None:
    """How many items `a, b = value` takes; None if a frame does something else."""
    _, text = statement(frame)
    try:
        target = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:
        return None
    plain = isinstance(target, (ast.Tuple, ast.List)) and not any([isinstance(t, ast.Starred) for t in target.elts])
    return len(target.elts) if plain else None  # type: ignore[attr-defined]


def is_assert(frame: FrameType) -> bool:
    """Whether a frame runs an assert statement."""
    line, _ = statement(frame)
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).lstrip().startswith("assert")
