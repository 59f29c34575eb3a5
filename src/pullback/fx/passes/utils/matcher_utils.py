"""Finding a small graph in a larger one."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pullback as torch
from pullback.fx.graph import Graph
from pullback.fx.graph_module import _get_attr
from pullback.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """One place where a pattern was found."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        lists = self.placeholder_nodes.copy(), self.returning_nodes.copy()
        return InternalMatch(self.anchors, self.nodes_map.copy(), *lists)


class SubgraphMatcher:
    """Finds a pattern in graphs.

    The pattern is followed backwards from its results: a value has many users, but is made in one place only.

    Args:
        pattern: the graph to look for; its arguments stand for anything.
        match_output: whether its return statement must be one too.
        match_placeholder: whether its arguments must be arguments too.
        remove_overlapping_matches: whether a node may be in one place only.
        ignore_literals: whether numbers and other constants may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and len(node.users) == 0:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        sinks = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors: list[Node] = [output] if match_output else sinks

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether both look at an attribute of the same type; tensors may differ."""
        ours, theirs = [_get_attr(node.graph.owning_module, str(node.target)) for node in (pn, gn)]
        if type(ours) is not type(theirs):
            return False
        if not isinstance(ours, torch.Tensor):
            raise RuntimeError(f"Unsupported type {ours} when matching attributes")
        return True

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether a node of the pattern and one of the graph do the same, apart from their arguments."""
        if (not self.match_placeholder and pn.op == "placeholder") or (node_name_match and node_name_match in gn.name):
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody outside uses a value inside, but for those returned."""
        inside = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        hidden = [gn for gn, pn in inside.items() if pn not in self.pattern_returning_nodes]
        return all([user in inside for gn in hidden for user in gn.users])

    def _match_values(self, ours: Any, theirs: Any, match: InternalMatch) -> bool:
        """Whether two arguments match."""
        if isinstance(ours, Node) and isinstance(theirs, Node):
            return self._match_nodes(ours, theirs, match)
        if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
            same = len(ours) == len(theirs)
            return same and all(self._match_values(a, b, match) for a, b in zip(ours, theirs, strict=True))
        if isinstance(ours, Node) and ours.op == "placeholder":
            if ours not in match.nodes_map:
                match.nodes_map[ours] = theirs
                return True
            return bool(match.nodes_map[ours] == theirs) or self.ignore_literals
        plain = not isinstance(ours, Node) and not isinstance(theirs, Node)
        return (plain and type(ours) is type(theirs) and bool(ours == theirs)) or self.ignore_literals

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether a node of the pattern and one of the graph match, with all they are made of."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is other for other in match.nodes_map.values()) or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if len(pn.args) != len(gn.args) or list(pn.kwargs) != list(gn.kwargs):
            return False
        ours, theirs = [[*node.args, *node.kwargs.values()] for node in (pn, gn)]
        return self._match_values(ours, theirs, match)

    def _found(
        self, anchors: list[tuple[Node, list[Node]]], match: InternalMatch, name: str
    ) -> Iterator[InternalMatch]:
        """All ways to match the anchors that are left."""
        if not anchors:
            match.placeholder_nodes = [match.nodes_map[pn] for pn in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[pn] for pn in self.pattern_returning_nodes]
            yield match
            return
        (anchor, candidates), *rest = anchors
        for node in candidates:
            tried = copy.copy(match)
            if self._match_nodes(anchor, node, tried, name):
                yield from self._found(rest, tried, name)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All places of a graph where the pattern is."""
        equal = self._nodes_are_equal
        pairs = [(a, [node for node in graph.nodes if equal(a, node, node_name_match)]) for a in self.pattern_anchors]
        anchors = [(anchor, candidates) for anchor, candidates in pairs if candidates]
        if not anchors:
            return []
        found = list(self._found(anchors, InternalMatch(anchors=self.pattern_anchors), node_name_match))
        found = [match for match in found if self._is_contained(match.nodes_map)]
        found = [match for match in found if validate_partition(self.inside(match))]
        if not self.remove_overlapping_matches:
            return found
        taken: set[Node] = set()
        apart = []
        for match in found:
            nodes = self.inside(match)
            if taken.isdisjoint(nodes):
                apart.append(match)
                taken.update(nodes)
        return apart

    def inside(self, match: InternalMatch) -> list[Node]:
        """The nodes of the graph that compute what the pattern does."""
        return [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]


def validate_partition(partition: Iterable[Node]) -> bool:
    """Whether some nodes may be made one: no value of theirs comes back to them from outside."""
    inside = set(partition)
    seen: set[Node] = set()
    queue = [user for node in inside for user in node.users if user not in inside]
    while queue:
        node = queue.pop()
        if node in inside:
            return False
        seen.add(node)
        queue.extend([user for user in node.users if user not in seen])
    return True
