"""Making graph modules: the place torch has for it."""

from __future__ import annotations

from typing import Any

from pullback.fx.graph_module import GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> Any:
    """A GraphModule, or an instance of another class derived from it."""
    return (graph_module_cls or GraphModule)(*args, **kwargs)
