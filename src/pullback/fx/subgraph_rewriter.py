"""Replacing a pattern in a graph by something else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pullback as torch
from pullback.fx._symbolic_trace import symbolic_trace
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node
from pullback.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place where the pattern was: the node it was found from, and which nodes matched."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place where the pattern was, and the nodes that are there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace all calls that do what one function does by what another does.

    Both are functions or graph modules with the same arguments; places that overlap are replaced once.
    """
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, for the places some functions choose, and with a replacement that may depend on the place."""
    graph, pattern_graph = gm.graph, graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = matcher.match(graph, node_name_match=node_name_match)
    matches = [m for m in matches if all([accept(m, graph, pattern_graph) for accept in match_filters or ()])]
    common = None
    if isinstance(replacement, Graph) or callable(replacement):
        common = graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    changed: dict[Node, Node] = {}
    replaced = []
    for match in matches:
        new = common if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        replacements = replace(graph, match, new, changed)
        for node in reversed(pattern_graph.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        replaced.append(ReplacedPatterns(match.anchors[0], match.nodes_map, replacements))
    gm.recompile()
    if isinstance(replacement, torch.nn.Module):
        _replace_attributes(gm, replacement)
    return replaced


def graph_of(thing: Any) -> Graph:
    """The graph of a graph module, or of a function, which is traced."""
    if isinstance(thing, Graph):
        return thing
    return (thing if isinstance(thing, GraphModule) else symbolic_trace(thing)).graph  # type: ignore[no-any-return]


def replace(graph: Graph, match: InternalMatch, new: Any, changed: dict[Node, Node]) -> list[Node]:
    """Put a copy of a graph in one place, and let all use its results; the new nodes come back."""
    arguments = [node for node in new.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(arguments):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(arguments)}")
    values: dict[Node, Any] = {}
    for i, (argument, given) in enumerate(zip(arguments, match.placeholder_nodes, strict=True)):
        values[argument] = given
        if isinstance(given, Node) and given in changed:  # what was replaced before
            values[argument] = match.placeholder_nodes[i] = changed[given]
            key = next(pn for pn, gn in match.nodes_map.items() if gn is given)
            match.nodes_map[key] = changed[given]
    with graph.inserting_before(first_after(graph, match)):
        results = graph.graph_copy(new, values)
    results = (results,) if isinstance(results, Node) else results
    made = [value for value in values.values() if not any(value is known for known in match.placeholder_nodes)]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, result in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(result)
        changed[old] = result
    return made


def first_after(graph: Graph, match: InternalMatch) -> Node:
    """The first node that uses a result of the pattern, or the one after the last result if none does."""
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    last = next(node for node in reversed(graph.nodes) if node in match.returning_nodes)
    if last.next is graph._root:
        raise AssertionError("The insert point can't be None")
    return last.next  # type: ignore[no-any-return]


def _replace_attributes(gm: GraphModule, replacement: Any) -> None:
    """Give a module the submodules and attributes that its new nodes name."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or attribute(gm, node.target) is not None:
            continue
        found = attribute(replacement, node.target)
        if found is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                '" node during subgraph rewriting '
                f"with target {node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule",
            )
        if isinstance(found, torch.nn.Module):
            gm.add_submodule(node.target, copy.deepcopy(found))
        else:
            setattr(gm, node.target, copy.deepcopy(found))
    gm.graph.lint()


def attribute(module: Any, target: str) -> Any:
    """An attribute by its path; None if it is not there."""
    path, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(path), name, None)
    except AttributeError:
        return None
