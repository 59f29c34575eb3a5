"""Hooks as the engine runs them: around nodes and leaves, on tensors even when gradients travel as arrays."""

from __future__ import annotations

from typing import Any

from pullback._runtime.quiet import heard
from pullback._tensor import Tensor, wrap
from pullback.autograd.node import Node
from pullback.autograd.who import defined

HOOK = "the hook"


def as_tensor(grad: Any) -> Any:
    """A gradient as hooks see it."""
    return grad if grad is None or isinstance(grad, Tensor) else wrap(grad)


def as_travelling(tensor: Any, create_graph: bool) -> Any:
    """A gradient as the engine carries it."""
    return tensor if tensor is None or create_graph else tensor._array


def before(node: Node, grad: Any, create_graph: bool) -> Any:
    """Tensor hooks, retain_grad, then pre-hooks; gives the gradient (or list of them) the node will see."""
    hooks = node.hooks
    assert hooks is not None
    grads = see_tensors(node, grad)
    grads = call_pre_hooks(hooks.pre, grads)
    return together(node, grads, create_graph)


def before_capture(node: Node, grad: Any, create_graph: bool) -> Any:
    """Tensor hooks and retain_grad of a node that does not run: its gradient was asked for, nothing beyond it."""
    return together(node, see_tensors(node, grad), create_graph)


def see_tensors(node: Node, grad: Any) -> list[Any]:
    """The gradients of a node's outputs as tensors, after the hooks of the tensors they belong to."""
    hooks = node.hooks
    assert hooks is not None
    if node.multiple:
        grads = [None] * len(node.metas) if grad is None else [as_tensor(g) for g in grad]  # type: ignore[attr-defined]
    else:
        grads = [as_tensor(grad)]
    for nr, table in list(hooks.tensor_pre):
        grads[nr] = call_tensor_hooks(table, grads[nr])
    for nr, reference in hooks.retain.items():
        tensor = reference()
        grad = grads[nr]
        if tensor is not None and grad is not None:
            retain(tensor, grad)
    return grads


def together(node: Node, grads: list[Any], create_graph: bool) -> Any:
    """Gradients as the engine carries them to a node: one, a list of several, None if there are none at all."""
    back = [as_travelling(g, create_graph) for g in grads]
    if not node.multiple:
        return back[0]
    return None if all(g is None for g in back) else back


def call_tensor_hooks(table: Any, grad: Any) -> Any:
    """The hooks of one tensor, in order; each may replace the gradient, which is None where none arrived."""
    for hook in list(table.values()):
        result = heard(hook, grad)
        if result is not None:
            check_replacement(hook, grad, result)
            grad = result
    return grad


def check_replacement(hook: Any, before: Any, after: Any) -> None:
    """Raise unless a hook's result can stand for the gradient it got."""
    name = getattr(hook, "__name__", "<unknown>")
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'" + defined(hook, HOOK))
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value" + defined(hook, HOOK))
    if after._array.dtype != before._array.dtype:
        old, new = (f"torch.{t.dtype.scalar_type}Tensor" for t in (before, after))
        text = f"hook '{name}' has changed the type of value (was {old} got {new})"
        raise RuntimeError(text + defined(hook, HOOK))
    if after._array.shape != before._array.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value" + defined(hook, HOOK))


def retain(tensor: Tensor, grad: Tensor) -> None:
    """retain_grad: keep the gradient that passes."""
    if tensor._grad is None:
        tensor._grad = grad.clone()
    else:
        tensor._grad = tensor._grad + grad


def check_replacements(hook: Any, before: Any, result: Any) -> None:
    """Raise unless a node hook returned a tuple whose entries can stand for the gradients it got."""
    expected = len(before)
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'" + defined(hook, HOOK))
    if len(result) != expected:
        name = getattr(hook, "__name__", "<unknown>")
        raise RuntimeError(
            f"hook '{name}' has returned an incorrect number of values (got {len(result)}, but expected {expected})"
            + defined(hook, HOOK)
        )
    for old, new in zip(before, result, strict=True):
        if new is not None:
            check_replacement(hook, old, new)


def call_pre_hooks(tables: list[Any], grads: list[Any]) -> list[Any]:
    """register_prehook: see and may replace all gradients coming in."""
    for table in tables:
        for hook in list(table.values()):
            result = heard(hook, tuple(grads))
            if result is None:
                continue
            check_replacements(hook, grads, result)
            grads = list(result)
    return grads


def after(node: Node, outs: tuple[Any, ...], grad: Any, create_graph: bool) -> tuple[Any, ...]:
    """register_hook on the node: see what went in and what comes out, may replace what comes out."""
    assert node.hooks is not None
    incoming = tuple([as_tensor(g) for g in (grad if node.multiple else [grad])])
    outgoing = tuple([as_tensor(o) for o in outs])
    for table in node.hooks.post:
        for hook in list(table.values()):
            result = heard(hook, outgoing, incoming)
            if result is None:
                continue
            check_replacements(hook, outgoing, result)
            outgoing = result
    return tuple([as_travelling(o, create_graph) for o in outgoing])


def before_leaf(leaf: Any, grad: Any, create_graph: bool, captured: bool) -> Any:
    """The hooks of a leaf tensor and, unless its gradient is only captured, the pre-hooks of its AccumulateGrad."""
    extra = leaf.variable._extra
    tensor = as_tensor(grad)
    if extra is not None and extra.hooks:
        tensor = call_tensor_hooks(extra.hooks, tensor)
    if leaf.hooks is not None and not captured:
        (tensor,) = call_pre_hooks(leaf.hooks.pre, [tensor])
    return as_travelling(tensor, create_graph)


def after_leaf(leaf: Any, grad: Any, create_graph: bool) -> None:
    """register_post_accumulate_grad_hook, then the post-hooks of the AccumulateGrad."""
    after_accumulation(leaf.variable)
    if leaf.hooks is not None:
        for table in leaf.hooks.post:
            for hook in list(table.values()):
                heard(hook, (), (as_tensor(grad),))


def after_accumulation(variable: Tensor) -> None:
    """register_post_accumulate_grad_hook."""
    extra = variable._extra
    if extra is not None and extra.post_accumulate:
        for hook in list(extra.post_accumulate.values()):
            result = heard(hook, variable)
            if result is variable:
                continue
            if isinstance(result, Tensor):
                raise RuntimeError("Tensor post accumulate grad hooks should return None." + defined(hook, HOOK))
            if result is not None:
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'" + defined(hook, HOOK))
