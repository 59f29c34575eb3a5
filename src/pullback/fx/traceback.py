"""The notes of the node that is being run, for nodes made meanwhile: how a transformation keeps them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

current_meta: ContextVar[dict[str, Any] | None] = ContextVar("current_meta", default=None)
preserving: ContextVar[bool] = ContextVar("preserving", default=False)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which new nodes get the notes of the node that is being run."""
    before, known = preserving.get(), current_meta.get()
    try:
        preserving.set(enable)
        current_meta.set(dict(known or {}))
        yield
    finally:
        preserving.set(before)
        current_meta.set(known)


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block in which this node is being run."""
    before = current_meta.get()
    if not (preserving.get() and node.meta):
        yield
        return
    try:
        current_meta.set(copy.copy(node.meta))
        yield
    finally:
        current_meta.set(before)


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block in which new nodes get these notes, if notes are kept."""
    before = current_meta.get()
    try:
        known = dict(before or {})
        known["custom"] = {**known.get("custom", {}), **annotation_dict}
        current_meta.set(known)
        yield
    finally:
        current_meta.set(before)


def has_preserved_node_meta() -> bool:
    """Whether notes are kept."""
    return preserving.get()


def get_current_meta() -> dict[str, Any]:
    """The notes of the node that is being run."""
    return current_meta.get() or {}


def set_stack_trace(stack: list[str]) -> None:
    """Note where the node that is being run was recorded."""
    if preserving.get() and stack:
        current_meta.set({**(current_meta.get() or {}), "stack_trace": "".join(stack)})


def format_stack() -> list[str]:
    """Where the node that is being run was recorded."""
    return [get_current_meta().get("stack_trace", "")] if preserving.get() else []
