"""Many gradients through one graph at once: the gradients are batched tensors, the steps run on them as usual."""

from __future__ import annotations

from typing import Any

from pullback._modes import grad_enabled, modes
from pullback._tensor import wrap
from pullback.autograd import engine
from pullback.autograd.api import captured, input_key, root_edges, starting_grads
from pullback.autograd.function import BackwardCFunction
from pullback.autograd.node import AccumulateGrad, Node
from pullback.autograd.view import edge_of, wants_grad
from pullback.batching import run  # noqa: F401 (attaches how ops run on batches)
from pullback.batching.physical import front
from pullback.batching.tensor import BatchedTensor, at_level, batched, entered
from pullback.batching.views import transposed
from pullback.ops.shape.reshape import expand, unsqueeze


def gradients(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...], starts: tuple[Any, ...], retain_graph: bool, create_graph: bool
) -> list[Any]:
    """The gradients of the inputs, None for those not used; outputs, inputs and starts may be batched."""
    grads = starting_grads(outputs, starts)
    on_tensors = (
        create_graph or modes.dual_level >= 0 or any(type(t) is BatchedTensor for t in (*outputs, *inputs, *grads))
    )
    keys = [input_key(tensor) for tensor in inputs]
    captures: dict[Any, Any] = dict.fromkeys(keys)
    engine.execute(root_edges(outputs, grads, on_tensors), retain_graph, on_tensors, captures, record=create_graph)
    return [captured(captures, key) for key in keys]


def batched_gradients(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...], starts: tuple[Any, ...], retain_graph: bool, create_graph: bool
) -> list[Any]:
    """One gradient of each input for every row of the starting gradients."""
    size = next(start._array.shape[0] for start in starts if start is not None)
    with entered(size) as level:
        rows = tuple([None if start is None else batched(start, 0, level.number) for start in starts])
        results = gradients(outputs, inputs, rows, retain_graph, create_graph)
        return [None if result is None else unbatched(result, level.number, size) for result in results]


def unbatched(result: Any, level: int, size: int) -> Any:
    """What a batched tensor holds, with the batch in front; the same for every entry if it has none."""
    value, dim = at_level(result, level)
    return expand(unsqueeze(value, 0), (size, *value._array.shape)) if dim is None else front(value, dim)


def transposed_view(view: Any, like: Any, value: Any) -> Any:
    """What `value`, the gradient of a view of a tensor, is as a gradient of the tensor."""
    leaf = wrap(like._array)
    leaf._requires_grad = True
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)
        seen = view(leaf)
        return gradients((seen,), (leaf,), (value,), False, True)[0]
    finally:
        grad_enabled.set(before)


transposed["view"] = transposed_view


def graph_allows_batches(outputs: tuple[Any, ...]) -> bool:
    """True if nobody would notice that several gradients pass at once: no hooks, no backward written by hand."""
    seen: set[Any] = set()
    stack: list[Any] = [edge_of(out) for out in outputs if wants_grad(out)]
    while stack:
        edge = stack.pop()
        node = edge[0] if type(edge) is tuple else edge
        if node is None or node in seen:
            continue
        seen.add(node)
        if not isinstance(node, Node) or type(node) is AccumulateGrad:
            leaf: Any = node.variable if type(node) is AccumulateGrad else node
            if leaf._extra is not None and (leaf._extra.hooks or leaf._extra.post_accumulate):
                return False
            continue
        if node.hooks is not None or isinstance(node, BackwardCFunction) or not hasattr(node, "op"):
            return False
        stack.extend(node.edges)
    return True
