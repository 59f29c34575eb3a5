"""Marks for NVIDIA's profilers. No tool listens here, so that they do nothing; they need a device, as torch's do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.cuda.devices import is_available

MISSING = "NVTX functions not installed. Are you sure you have a CUDA build?"
depth: list[str] = []
begun: list[str] = []


def check() -> None:
    """Raise where there is no device."""
    if not is_available():
        raise RuntimeError(MISSING)


def range_push(msg: str) -> int:
    """Begin a range inside the others; returns how many there are around it."""
    check()
    depth.append(msg)
    return len(depth) - 1


def range_pop() -> int:
    """End the innermost range; returns how many there are around it."""
    check()
    if not depth:
        return -2
    depth.pop()
    return len(depth)


def range_start(msg: str) -> int:
    """Begin a range that ends anywhere; returns its number."""
    check()
    begun.append(msg)
    return len(begun)


def range_end(range_id: int) -> None:
    """End it."""
    check()


def mark(msg: str) -> None:
    """A moment."""
    check()


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A block that is a range."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
