"""Models made faster for inference by changing their graphs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from pullback import nn
from pullback.fx._symbolic_trace import symbolic_trace
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.interpreter import Transformer
from pullback.fx.node import Node
from pullback.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
PAIRS = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the module above, and the name in it."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[Any], node: Node, modules: dict[str, Any]) -> bool:
    """Whether a node calls a module of the second class with what a module of the first class gave."""
    if len(node.args) == 0:
        return False
    for expected, current in zip(pattern, (node.args[0], node), strict=False):
        if not isinstance(current, Node) or current.op != "call_module" or current.target not in modules:
            return False
        if type(modules[str(current.target)]) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Any) -> None:
    """Let a node call another module."""
    parent, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Any, inplace: bool = False, no_trace: bool = False) -> Any:
    """A model in which batch norms are part of the convolutions and linear layers before them; for inference."""
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, fused in PAIRS:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules) or len(node.args[0].users) > 1:
                continue
            norm = modules[node.target]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, fused(modules[node.args[0].target], norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class DropoutRemover(Transformer):
    """Leaves dropout out."""

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            if len(args) != 1:
                raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Any) -> Any:
    """A model without its dropout."""
    return DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: Any, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """A module of some nodes only."""
    graph = Graph()
    env = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output([env[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(*args: Any, **kwargs: Any) -> Any:
    """Not available: it converts tensors to a layout of oneDNN."""
    raise NotImplementedError(
        "torch.fx.experimental.optimization.optimize_for_inference is not available in pullback; use fuse and "
        "remove_dropout"
    )
