"""Derivatives by backward: grad, grad_and_value, vjp, linearize.

A transform makes its inputs leaves of a graph of its own. Inside vmap that graph is recorded on batched tensors, so
that gradients are those of each entry; outside it is the ordinary graph, and connected to what is around it where the
inputs are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pullback._modes import is_grad_enabled, transforming
from pullback._pytree import drawn, tree_flatten, tree_map, tree_unflatten
from pullback._tensor import Parameter, Tensor, wrap
from pullback.autograd.batched import gradients
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.graph import disable_saved_tensors_hooks
from pullback.autograd.node import AccumulateGrad, Node
from pullback.autograd.tracebacks import trimming
from pullback.autograd.view import edge_of, entry, wants_grad
from pullback.batching.run import wants
from pullback.batching.tensor import BatchedTensor, current_level, lifted
from pullback.func.arguments import check_outputs, positions, selected, with_aux
from pullback.ops.create.like import zeros_like

NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use "
    "case."
)


# ------------------------------------------------------------------ leaves


def leaf(value: Any) -> Any:
    """A tensor as a leaf of this transform's graph; still connected to the graph around, if it is part of one."""
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    level = current_level()
    tensor = value if level is None else lifted(value, level.number)
    if wants_grad(tensor):
        return entry(tensor) if type(tensor) in (Tensor, Parameter) else tensor.view_as(tensor)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    out = wrap(tensor._array)
    out._tangent = tensor._tangent
    out._requires_grad = True
    return out


def depends_outside(outputs: list[Any], leaves: list[Any]) -> bool:
    """True if the outputs also depend on something that a graph around this transform could want a gradient for."""
    own = {id(x) for x in leaves if x._edge is None}
    seen: set[Any] = set()
    stack: list[Any] = []
    for out in outputs:
        if type(out) is BatchedTensor and wants(out._array.value):
            return True
        stack.append(edge_of(out))
    while stack:
        edge = stack.pop()
        node = edge[0] if type(edge) is tuple else edge
        if node is None or node in seen:
            continue
        seen.add(node)
        if type(node) is AccumulateGrad:
            node = node.variable
        if isinstance(node, Node):
            stack.extend(node.edges)
        elif id(node) not in own:
            return True
    return False


def released(value: Any, connected: bool) -> Any:
    """A result as the caller gets it: without this transform's graph, unless a graph around needs it."""
    return value if connected or not isinstance(value, Tensor) else detached(value)


def detached(tensor: Any) -> Any:
    """The same value and tangent without history."""
    if not wants_grad(tensor):
        return tensor
    out = wrap(tensor._array)
    tangent = tensor._tangent
    out._tangent = tangent if tangent is None or not wants_grad(tangent) else detached(tangent)
    return out


def or_zeros(grads: list[Any], inputs: list[Any]) -> list[Any]:
    """Gradients with zeros for inputs that were not used."""
    return [zeros_like(x) if g is None else g for g, x in zip(grads, inputs, strict=True)]


# ------------------------------------------------------------------ grad


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of `func`, which returns one number.

    Args:
        func: the function; with has_aux it returns (number, anything else).
        argnums: for which arguments: a number, or several.
        has_aux: whether the gradient comes with the second output of func.
    """

    @trimming
    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        grads, value = value_and_gradient(func, argnums, has_aux, args, kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the gradient of `func` and its value: (gradient, value), or (gradient, (value, aux))."""

    @trimming
    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        return value_and_gradient(func, argnums, has_aux, args, kwargs)

    return both


def value_and_gradient(
    func: Callable[..., Any], argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The gradient and the value (with has_aux: and the rest)."""
    around = is_grad_enabled()
    which = positions(argnums, len(args))
    with disable_saved_tensors_hooks(NO_HOOKS), enable_grad(), transforming():
        wanted = tree_map(leaf, selected(args, which))
        output = func(*replaced(args, which, wanted), **kwargs)
        aux = None
        if has_aux:
            output, aux = with_aux(output, "grad_and_value(f)(*args)")
        if not isinstance(output, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim() != 0:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        leaves, spec = tree_flatten(wanted)
        connected = around and depends_outside([output], leaves)
        if wants_grad(output):
            grads = or_zeros(gradients((output,), tuple(leaves), (None,), connected, connected), leaves)
        else:
            grads = [zeros_like(x) for x in leaves]
    grads = [released(g, connected) for g in grads]
    value = released(output, connected)
    return tree_unflatten(grads, spec), (value, tree_map(lambda x: released(x, connected), aux)) if has_aux else value


def replaced(args: tuple[Any, ...], which: Any, values: Any) -> tuple[Any, ...]:
    """The arguments with some replaced."""
    out = list(args)
    if isinstance(which, int):
        out[which] = values
    else:
        for i, value in zip(which, values, strict=True):
            out[i] = value
    return tuple(out)


# ------------------------------------------------------------------ vjp


@trimming
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """func(*primals), and a function that multiplies a vector by the Jacobian there: (output, vjp_fn[, aux])."""
    output, pull, aux = pulled(func, primals, tuple(range(len(primals))), has_aux)

    def single(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return pull(cotangents, retain_graph, create_graph)

    return (output, single, aux) if has_aux else (output, single)


def pulled(func: Callable[..., Any], args: tuple[Any, ...], which: Any, has_aux: bool = False) -> tuple[Any, Any, Any]:
    """The output, the function from cotangents to gradients of the arguments `which`, and aux."""
    around = is_grad_enabled()
    with disable_saved_tensors_hooks(NO_HOOKS), enable_grad(), transforming():
        wanted = tree_map(leaf, selected(args, which))
        output = func(*replaced(args, which, wanted))
        aux = None
        if has_aux:
            output, aux = with_aux(output, "vjp(f, *primals)")
        outputs, out_spec = tree_flatten(output)
        check_outputs(outputs, "vjp(f, *primals)")
        for out in outputs:
            if not (out.is_floating_point() or out.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{out.dtype}"
                )
        leaves, spec = tree_flatten(wanted)
        connected = depends_outside(outputs, leaves)
    results = [released(out, around and connected) for out in outputs]

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        starts, given_spec = tree_flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {drawn(given_spec)}, primal output: {drawn(out_spec)}"
            )
        record = is_grad_enabled() if create_graph is None else create_graph
        record = record and (connected or any(wants(start) for start in starts if isinstance(start, Tensor)))
        pairs = [(out, start) for out, start in zip(outputs, starts, strict=True) if wants_grad(out)]
        if not pairs:
            return tree_unflatten([zeros_like(x) for x in leaves], spec)
        roots, begin = zip(*pairs, strict=True)
        grads = or_zeros(gradients(roots, tuple(leaves), begin, retain_graph, record), leaves)
        return tree_unflatten([released(g, record) for g in grads], spec)

    return tree_unflatten(results, out_spec), pull, tree_map(lambda x: released(x, around and connected), aux)
