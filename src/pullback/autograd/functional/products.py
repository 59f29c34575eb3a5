"""Products of a function's derivatives with vectors, which need no matrix: vjp, jvp, vhp, hvp.

Forward products come from backward run twice: the gradient of  v -> Jᵀv  at any v, multiplied by u, is  J u.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pullback.autograd.functional.arguments import (
    GRADIENT_CONSTANT,
    HESSIAN_CONSTANT,
    JACOBIAN_CONSTANT,
    Tensors,
    as_tensors,
    attached,
    check_depends,
    check_outputs_depend,
    detached,
    gradients,
    unpacked,
    vector_for,
    zeros_for_missing,
)
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.tracebacks import trimming
from pullback.ops.create.like import zeros_like

OUTPUTS = "outputs of the user-provided function"


@trimming
def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func` and vᵀJ, the product of `v` with its Jacobian.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        v: as the outputs; may be left out for a single number.
        create_graph: whether the results can be differentiated.
        strict: whether an output that does not depend on an input is an error instead of zeros.
    """
    with enable_grad():
        inputs_tuple, tensors = as_tensors(inputs, "inputs", "vjp")
        tensors = attached(tensors, create_graph, need_graph=True)
        outputs_tuple, outputs = as_tensors(func(*tensors), OUTPUTS, "vjp")
        check_outputs_depend(outputs, strict)
        vector = vector_for(v, outputs, outputs_tuple, create_graph, "vjp")
    with enable_grad() if create_graph else nullcontext():
        product = gradients(outputs, tensors, vector, create_graph=create_graph)
        product = zeros_for_missing(product, tensors, strict, create_graph, "vjp")
    return finished(outputs, outputs_tuple, product, inputs_tuple, create_graph)


@trimming
def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func` and J v, the product of its Jacobian with `v`, which has the form of the inputs."""
    with enable_grad():
        inputs_tuple, tensors = as_tensors(inputs, "inputs", "jvp")
        tensors = attached(tensors, create_graph, need_graph=True)
        vector = vector_for(v, tensors, inputs_tuple, create_graph, "jvp")
        outputs_tuple, outputs = as_tensors(func(*tensors), OUTPUTS, "jvp")
        check_outputs_depend(outputs, strict)
        anywhere = tuple([zeros_like(out, requires_grad=True) for out in outputs])
        transposed = gradients(outputs, tensors, anywhere, create_graph=True)
        check_depends(transposed, GRADIENT_CONSTANT, strict)
    with enable_grad() if create_graph else nullcontext():
        product = gradients(transposed, anywhere, vector, create_graph=create_graph)
        product = zeros_for_missing(product, outputs, strict, create_graph, "jvp")
    return finished(outputs, outputs_tuple, product, outputs_tuple, create_graph)


@trimming
def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and vᵀH, the product of `v` with its Hessian."""
    with enable_grad():
        inputs_tuple, tensors, vector, outputs, slope = slope_of(func, inputs, v, create_graph, strict, "vhp")
    with enable_grad() if create_graph else nullcontext():
        product = gradients(slope, tensors, vector, create_graph=create_graph)
        product = zeros_for_missing(product, tensors, strict, create_graph, "vhp")
    return finished(outputs, False, product, inputs_tuple, create_graph)


@trimming
def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and H v, the product of its Hessian with `v`.

    The Hessian is symmetric where it is continuous, so this is `vhp` at twice the cost; programs usually want vhp.
    """
    with enable_grad():
        inputs_tuple, tensors, vector, outputs, slope = slope_of(func, inputs, v, create_graph, strict, "hvp")
        anywhere = tuple([zeros_like(tensor, requires_grad=True) for tensor in tensors])
        transposed = gradients(slope, tensors, anywhere, create_graph=True)
        check_depends(slope, HESSIAN_CONSTANT, strict)
    with enable_grad() if create_graph else nullcontext():
        product = gradients(transposed, anywhere, vector, create_graph=create_graph)
        product = zeros_for_missing(product, tensors, strict, create_graph, "hvp")
    return finished(outputs, False, product, inputs_tuple, create_graph)


def slope_of(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, caller: str
) -> tuple[bool, Tensors, Tensors | None, Tensors, Tensors]:
    """The value of a scalar function and its gradient, which is itself differentiable."""
    inputs_tuple, tensors = as_tensors(inputs, "inputs", caller)
    tensors = attached(tensors, create_graph, need_graph=True)
    vector = vector_for(v, tensors, inputs_tuple, create_graph, caller)
    outputs_tuple, outputs = as_tensors(func(*tensors), OUTPUTS, caller)
    check_outputs_depend(outputs, strict)
    if outputs_tuple:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {caller} should contain a single element")
    slope = gradients(outputs, tensors, create_graph=True)
    check_depends(slope, JACOBIAN_CONSTANT, strict)
    return inputs_tuple, tensors, vector, outputs, slope


def finished(
    outputs: Tensors, outputs_tuple: bool, product: Tensors, product_tuple: bool, create_graph: bool
) -> tuple[Any, Any]:
    """Outputs and product in the form the caller gave the inputs."""
    return (
        unpacked(detached(outputs, create_graph), outputs_tuple),
        unpacked(detached(product, create_graph), product_tuple),
    )
