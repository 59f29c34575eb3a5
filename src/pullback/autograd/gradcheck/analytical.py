"""Derivatives as autograd computes them: rows by backward, columns by forward mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from pullback.autograd.api import grad
from pullback.autograd.forward_ad import dual_level, make_dual, unpack_dual
from pullback.autograd.gradcheck.errors import NOT_REENTRANT, GradcheckError
from pullback.autograd.gradcheck.numerical import Tensors, as_tuple, columns_like, is_differentiable_type, wanting
from pullback.ops.create.filled import eye, zeros
from pullback.ops.create.like import zeros_like


def backward_jacobians(
    inputs: Tensors, output: Any, nondet_tol: float, check_grad_dtypes: bool, v: Any = None
) -> list[Any]:
    """For every input that wants one the Jacobian of `output` [input elements, output elements], computed twice.

    With `v` only the product: [input elements, 1].
    """
    tensors = [tensor for _, tensor in wanting(inputs)]
    runs = [rows_of(tensors, output, v) for _ in range(2)]
    for row in runs[0]:
        check_row(tensors, row, check_grad_dtypes)
    first, second = (assembled(tensors, run) for run in runs)
    for a, b in zip(first, second, strict=True):
        if a.numel() and (a - b).abs().max() > nondet_tol:
            raise GradcheckError(NOT_REENTRANT.format(nondet_tol))
    return first


def rows_of(tensors: list[Any], output: Any, v: Any) -> list[Tensors]:
    """The gradients of the inputs for each starting gradient: `v`, or one element of the output after the other.

    They are copied at once, since a backward may return memory that is written to again.
    """

    def backward(start: Any) -> Tensors:
        grads = grad(output, tensors, start, retain_graph=True, allow_unused=True)
        return tuple([None if g is None else g.clone() for g in grads])

    if v is not None:
        return [backward(v.reshape(output.shape))]
    starts = eye(output.numel(), dtype=output.dtype, device=output.device).view(-1, *output.shape)
    return [backward(start) for start in starts.unbind(0)]


def check_row(tensors: list[Any], row: Tensors, check_grad_dtypes: bool) -> None:
    """Raise if a gradient is not like its input."""
    for tensor, gradient in zip(tensors, row, strict=True):
        if gradient is None:
            continue
        if gradient.shape != tensor.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        if gradient.dtype != tensor.dtype and check_grad_dtypes:
            raise GradcheckError("Gradient has dtype mismatch")


def assembled(tensors: list[Any], rows: list[Tensors]) -> list[Any]:
    """Rows of gradients as one matrix per input."""
    out = []
    for i, tensor in enumerate(tensors):
        matrix = zeros(len(rows), tensor.numel(), dtype=tensor.dtype, device=tensor.device)
        for line, row in zip(matrix.unbind(0), rows, strict=True):
            if row[i] is not None:
                line.copy_(row[i].reshape(-1))
        out.append(matrix.t())
    return out


def forward_jacobians(
    func: Callable[..., Any], inputs: Tensors, outputs: Tensors, check_grad_dtypes: bool = False, directions: Any = None
) -> list[Tensors]:
    """For every input that wants one and every output: [input elements, output elements], by forward mode.

    With `directions` one row each: the derivative along the direction.
    """
    tensors = [tensor for _, tensor in wanting(inputs)]
    if any(tensor.is_complex() for tensor in tensors):
        raise ValueError("Expected inputs to be non-complex for _get_analytical_jacobian_forward_ad.")
    with dual_level():
        duals, tangents = [], []
        for tensor in inputs:
            if any(tensor is t for t in tensors):
                tensor = make_dual(tensor.detach(), zeros_like(tensor))
                tangents.append(unpack_dual(tensor).tangent)
            duals.append(tensor)
        if directions is not None:
            return [
                along(func, duals, outputs, tangent, u, check_grad_dtypes)
                for tangent, u in zip(tangents, directions, strict=True)
            ]
        return [element_by_element(func, duals, outputs, tangent, check_grad_dtypes) for tangent in tangents]


def along(func: Callable[..., Any], duals: list[Any], outputs: Tensors, tangent: Any, u: Any, check: bool) -> Tensors:
    """The derivative of every output along one direction of one input."""
    jacobians = tuple([j.squeeze(0) for j in columns_like(outputs, 1)])
    tangent.copy_(u.view_as(tangent))
    for jacobian, column in zip(jacobians, pushed(func, duals, check), strict=False):
        if column is not None:
            jacobian.copy_(column)
    tangent.zero_()
    return jacobians


def element_by_element(
    func: Callable[..., Any], duals: list[Any], outputs: Tensors, tangent: Any, check: bool
) -> Tensors:
    """The derivative of every output along every element of one input."""
    jacobians = columns_like(outputs, tangent.numel())
    for row, index in enumerate(product(*[range(n) for n in tangent.shape])):
        tangent[index] = 1.0
        for jacobian, column in zip(jacobians, pushed(func, duals, check), strict=False):
            if column is not None:
                jacobian[row] = column
        tangent[index] = 0.0
    return jacobians


def pushed(func: Callable[..., Any], duals: list[Any], check_grad_dtypes: bool) -> list[Any]:
    """The tangents of the outputs, flat; None where an output does not move."""
    out = []
    for dual in filter(is_differentiable_type, as_tuple(func(*duals))):
        value, tangent = unpack_dual(dual)
        if check_grad_dtypes and tangent is not None and value.is_complex() != tangent.is_complex():
            raise GradcheckError("Forward AD gradient has dtype mismatch.")
        out.append(None if tangent is None else tangent.reshape(-1))
    return out
