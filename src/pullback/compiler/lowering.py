"""The graph of a function whose recording is of no use: its nodes saved traced arrays, and must hold plain ones."""

from __future__ import annotations

from typing import Any

from pullback._lazy import LazyTensor
from pullback._tensor import Tensor
from pullback.autograd.node import Node
from pullback.compiler.arrays import TracedArray


def lower_lazy(tensor: Any) -> None:
    """A lazy conjugate or negative holds an array of its own."""
    if type(tensor) is LazyTensor and type(tensor._stored) is TracedArray:
        tensor._stored = tensor._stored.value


def lower_graph(recorder: Any, results: list[Any]) -> None:
    """Put plain arrays for traced ones into every node made while a function was recorded."""
    for result in results:
        lower_lazy(result)
    seen: set[int] = set()
    stack: list[Any] = [edge for tensor in (*recorder.holders, *results) for edge in edges_of(tensor)]
    while stack:
        node = stack.pop()
        if type(node) is tuple:
            node = node[0]
        if not isinstance(node, Node) or id(node) in seen or node.sequence_nr < recorder.began:
            continue
        seen.add(id(node))
        for kind in type(node).__mro__:
            for name in vars(kind).get("__slots__", ()):
                value = getattr(node, name, None)
                if type(value) is TracedArray:
                    setattr(node, name, value.value)
                elif type(value) is list and any([type(item) is TracedArray for item in value]):
                    setattr(node, name, [item.value if type(item) is TracedArray else item for item in value])
                elif isinstance(value, Node):
                    stack.append(value)
                elif isinstance(value, (Tensor, list)):
                    for item in value if isinstance(value, list) else (value,):
                        lower_lazy(item)
        for value in getattr(node, "__dict__", {}).values():
            lower_keepers(value)
        stack.extend(getattr(node, "edges", ()))


def edges_of(tensor: Any) -> list[Any]:
    """Where histories begin that a tensor knows."""
    view = tensor._view
    return [tensor._edge] if view is None else [tensor._edge, view.base._edge]


def lower_keepers(value: Any) -> None:
    """What a custom Function saved."""
    for item in value if type(value) in (list, tuple) else (value,):
        if not isinstance(item, Tensor) and type(getattr(item, "value", None)) is TracedArray:
            item.value = item.value.value
