"""What jacobian, hessian and the vector products share: tensors as tuples, zeros, strict mode's complaints."""

from __future__ import annotations

from typing import Any

from pullback._tensor import Tensor
from pullback.autograd.api import grad
from pullback.autograd.view import wants_grad
from pullback.ops.create.like import zeros_like

Tensors = tuple[Any, ...]


def as_tensors(value: Any, what: str, caller: str) -> tuple[bool, Tensors]:
    """Whether a tuple was given, and the tensors as one."""
    given_tuple = isinstance(value, tuple)
    tensors = value if given_tuple else (value,)
    for i, item in enumerate(tensors):
        if not isinstance(item, Tensor):
            where = f"value at index {i}" if given_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {caller} must be either a Tensor or a tuple of Tensors but the {where} has type "
                f"{type(item)}."
            )
    return given_tuple, tensors


def attached(tensors: Tensors, create_graph: bool, need_graph: bool) -> Tensors:
    """The inputs as the function gets them: part of their graph with create_graph, leaves of a new one without.

    With create_graph they are views, so that gradients asked for here are those of this use of the input alone.
    """
    out = []
    for tensor in tensors:
        if create_graph and wants_grad(tensor):
            out.append(tensor.view_as(tensor))
        else:
            out.append(tensor.detach().requires_grad_(need_graph))
    return tuple(out)


def detached(tensors: Any, create_graph: bool) -> Any:
    """The results as the caller gets them: without history unless it was asked for."""
    if create_graph:
        return tensors
    return tuple([t.detach() if isinstance(t, Tensor) else detached(t, create_graph) for t in tensors])


def unpacked(results: Tensors, was_tuple: bool) -> Any:
    """One tensor if one was given, else the tuple."""
    return results if was_tuple else results[0]


def unpacked_matrix(rows: Any, outer_tuple: bool, inner_tuple: bool) -> Any:
    """Rows of results with the tuples that were not given taken away."""
    return unpacked(tuple([unpacked(row, inner_tuple) for row in rows]), outer_tuple)


def check_vector(v: Tensors, like: Tensors, like_was_tuple: bool) -> None:
    """Raise unless v has the form of what it multiplies."""
    if len(v) != len(like):
        if like_was_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (ours, theirs) in enumerate(zip(v, like, strict=True)):
        if ours.shape != theirs.shape:
            entry = f"Entry {i} in " if like_was_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {theirs.shape!r} but got {ours.shape!r}.")


def vector_for(v: Any, like: Tensors, like_was_tuple: bool, create_graph: bool, caller: str) -> Tensors | None:
    """The checked vector, or None where one element makes it unnecessary."""
    if v is not None:
        _, given = as_tensors(v, "v", caller)
        given = attached(given, create_graph, need_graph=False)
        check_vector(given, like, like_was_tuple)
        return given
    if len(like) != 1 or like[0].numel() != 1:
        who = (
            "user-provided function returns a single Tensor with a single element"
            if caller == "vjp"
            else "input to the user-provided function is a single Tensor with a single element"
        )
        raise RuntimeError(f"The vector v can only be None if the {who}.")
    return None


def gradients(outputs: Tensors, inputs: Tensors, v: Any = None, **options: Any) -> Tensors:
    """`autograd.grad` of the outputs that want one; None where an input was not used."""
    given = (None,) * len(outputs) if v is None else v
    pairs = [(out, g) for out, g in zip(outputs, given, strict=True) if out is not None and wants_grad(out)]
    if not pairs:
        return (None,) * len(inputs)
    roots, starts = zip(*pairs, strict=True)
    return grad(roots, inputs, starts, allow_unused=True, **options)


# ------------------------------------------------------------------ strict mode

NOT_ALLOWED = "This is not allowed in strict mode"


def check_outputs_depend(outputs: Tensors, strict: bool) -> None:
    """Strict mode: every output was computed from the inputs."""
    for i, out in enumerate(outputs if strict else ()):
        if not wants_grad(out):
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def check_depends(grads: Tensors, complaint: str, strict: bool) -> None:
    """Strict mode: every gradient exists and depends on the inputs in turn; `complaint` names the input as {}."""
    for i, tensor in enumerate(grads if strict else ()):
        if tensor is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. {NOT_ALLOWED}.")
        if not wants_grad(tensor):
            raise RuntimeError(complaint.format(i))


GRADIENT_CONSTANT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided function. "
    f"{NOT_ALLOWED}."
)
JACOBIAN_CONSTANT = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    f"independent of the input. {NOT_ALLOWED}. You should ensure that your function is twice differentiable and that "
    "the jacobian depends on the inputs (this would be violated by a linear function for example)."
)
HESSIAN_CONSTANT = (
    "The hessian of the user-provided function with respect to input {} is independent of the input. "
    f"{NOT_ALLOWED}. You should ensure that your function is thrice differentiable and that the hessian depends on the "
    "inputs."
)
UNUSED = {
    "vjp": f"The output of the user-provided function is independent of input {{}}. {NOT_ALLOWED}.",
    "jvp": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the "
    f"double backward trick to compute forward mode gradients. {NOT_ALLOWED}.",
    "vhp": f"The jacobian of the user-provided function is independent of input {{}}. {NOT_ALLOWED}.",
    "hvp": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. "
    f"{NOT_ALLOWED} as it prevents from using the double backward trick to replace forward mode AD.",
}
"""Strict mode: what is wrong when an input has no part in the product."""


def zeros_for_missing(grads: Tensors, like: Tensors, strict: bool, create_graph: bool, caller: str) -> Tensors:
    """The products with zeros where nothing came; strict mode raises instead."""
    out = []
    for i, tensor in enumerate(grads):
        if tensor is None:
            if strict:
                raise RuntimeError(UNUSED[caller].format(i))
            tensor = zeros_like(like[i])
        elif strict and create_graph and not wants_grad(tensor):
            which = "hessian" if caller in ("vhp", "hvp") else "jacobian"
            raise RuntimeError(
                f"The {which} of the user-provided function is independent of input {i}. {NOT_ALLOWED} when "
                "create_graph=True."
            )
        out.append(tensor)
    return tuple(out)
