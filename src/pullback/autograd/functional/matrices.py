"""Whole matrices of derivatives: jacobian and hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.autograd.batched import batched_gradients, graph_allows_batches, unbatched
from pullback.autograd.forward_ad import dual_level, make_dual, unpack_dual
from pullback.autograd.functional.arguments import (
    JACOBIAN_CONSTANT,
    NOT_ALLOWED,
    Tensors,
    as_tensors,
    attached,
    check_depends,
    check_outputs_depend,
    detached,
    gradients,
    unpacked_matrix,
)
from pullback.autograd.functional.products import OUTPUTS
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.tracebacks import trimming
from pullback.autograd.view import wants_grad
from pullback.batching.strategies import quiet
from pullback.batching.tensor import batched, entered
from pullback.ops.create.filled import eye, zeros
from pullback.ops.create.like import zeros_like
from pullback.ops.shape.join import stack

STRATEGIES = ("forward-mode", "reverse-mode")


@trimming
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output and input a tensor of shape output.shape + input.shape.

    Args:
        func: takes tensors, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple of tensors.
        create_graph: whether the result can be differentiated.
        strict: whether an output that does not depend on an input is an error instead of zeros.
        vectorize: whether to insist on one batched pass; without it, rows are batched where that changes nothing.
        strategy: "reverse-mode", or "forward-mode" for functions with more outputs than inputs.
    """
    if strategy not in STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not '
                'supported together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        return forward_jacobian(func, inputs, strict, vectorize)
    with enable_grad():
        inputs_tuple, tensors = as_tensors(inputs, "inputs", "jacobian")
        tensors = attached(tensors, create_graph, need_graph=True)
        outputs_tuple, outputs = as_tensors(func(*tensors), OUTPUTS, "jacobian")
        check_outputs_depend(outputs, strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
                "Please either set `strict=False` or `vectorize=False`."
            )
        at_once = vectorize or (graph_allows_batches(outputs) and not any(out.is_complex() for out in outputs))
        rows = [
            jacobian_rows(out, i, tensors, create_graph, strict, at_once, vectorize) for i, out in enumerate(outputs)
        ]
    return unpacked_matrix(detached(tuple(rows), create_graph), outputs_tuple, inputs_tuple)


def jacobian_rows(
    out: Any, index: int, inputs: Tensors, create_graph: bool, strict: bool, at_once: bool, insist: bool
) -> Tensors:
    """The derivatives of one output with respect to every input: a backward pass per element, or one for all.

    Unless somebody insists on one pass, what goes wrong with it goes wrong again, or right, with one per element.
    """
    if at_once and out.numel() > 1:
        before = quiet.get()
        try:
            quiet.set(not insist)
            return batched_rows(out, index, inputs, create_graph, strict)
        except (RuntimeError, TypeError, ValueError, IndexError):
            if insist:
                raise
        finally:
            quiet.set(before)
    columns: list[list[Any]] = [[] for _ in inputs]
    flat = out.reshape(-1)
    for element in range(out.numel()):
        grads = gradients((flat[element],), inputs, retain_graph=True, create_graph=create_graph)
        for i, (column, tensor, given) in enumerate(zip(columns, grads, inputs, strict=True)):
            check_row(tensor, index, i, create_graph, strict)
            column.append(zeros_like(given) if tensor is None else tensor)
    return tuple([stack(c).view(out.shape + given.shape) for c, given in zip(columns, inputs, strict=True)])


def batched_rows(out: Any, index: int, inputs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """All rows in one backward pass, whose gradients are batched."""
    numel = out.numel()
    unit = eye(numel, dtype=out.dtype, device=out.device).view(numel, *out.shape)
    grads: Any = (None,) * len(inputs)
    if wants_grad(out):
        grads = batched_gradients((out,), inputs, (unit,), True, create_graph)
    rows = []
    for i, (tensor, given) in enumerate(zip(grads, inputs, strict=True)):
        check_row(tensor, index, i, create_graph, strict)
        shape = out.shape + given.shape
        rows.append(zeros(shape, dtype=given.dtype) if tensor is None else tensor.reshape(shape))
    return tuple(rows)


def check_row(tensor: Any, output: int, input: int, create_graph: bool, strict: bool) -> None:
    """Strict mode: the output depends on the input, and with create_graph its derivative does too."""
    if not strict:
        return
    if tensor is None:
        raise RuntimeError(
            f"Output {output} of the user-provided function is independent of input {input}. {NOT_ALLOWED}."
        )
    if create_graph and not wants_grad(tensor):
        raise RuntimeError(
            f"The jacobian of the user-provided function is independent of input {output}. {NOT_ALLOWED} when "
            "create_graph=True."
        )


def forward_jacobian(func: Callable[..., Any], inputs: Any, strict: bool, vectorize: bool) -> Any:
    """The Jacobian column by column, each from one direction of one input."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    inputs_tuple, tensors = as_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )
    outputs_tuple, per_output = all_columns(func, tensors)
    rows = tuple([tuple([as_matrix(c, t) for c, t in zip(columns, tensors, strict=True)]) for columns in per_output])
    return unpacked_matrix(rows, outputs_tuple, inputs_tuple)


def all_columns(func: Callable[..., Any], inputs: Tensors) -> tuple[bool, list[list[Any]]]:
    """For every output and input the columns of the Jacobian, [columns, *output.shape]: one pass for all columns."""
    counts = [given.numel() for given in inputs]
    total = sum(counts)
    directions = []
    for i, (given, count) in enumerate(zip(inputs, counts, strict=True)):
        unit = zeros(total, count, dtype=given.dtype)
        start = sum(counts[:i])
        unit[start : start + count] = eye(count, dtype=given.dtype, device=given.device)
        directions.append(unit.view(total, *given.shape))
    with entered(total, claims=False) as level:
        moving = [batched(direction, 0, level.number) for direction in directions]
        outputs_tuple, tangents = pushed(func, inputs, moving)
        columns = [unbatched(tangent, level.number, total) for tangent in tangents]
    return outputs_tuple, [list(column.split(counts, 0)) for column in columns]


def as_matrix(columns: Any, given: Any) -> Any:
    """Columns for every element of an input as a tensor of shape output.shape + input.shape."""
    return columns.movedim(0, -1).reshape(columns.shape[1:] + given.shape)


def pushed(func: Callable[..., Any], inputs: Tensors, tangents: list[Any]) -> tuple[bool, list[Any]]:
    """The tangents of the outputs when the inputs move in the given directions."""
    with dual_level():
        duals = [make_dual(tensor, tangent) for tensor, tangent in zip(inputs, tangents, strict=True)]
        outputs_tuple, outputs = as_tensors(func(*duals), OUTPUTS, "jacobian")
        pairs = [unpack_dual(out) for out in outputs]
        return outputs_tuple, [zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs]


@trimming
def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: for each pair of inputs a tensor of shape input_i.shape + input_j.shape."""
    inputs_tuple, tensors = as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*given: Any) -> Any:
        out = func(*given)
        is_tuple, outputs = as_tensors(out, OUTPUTS, "hessian")
        check_outputs_depend(outputs, strict)
        if is_tuple:
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return out.squeeze()

    def slope(*given: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            given = tuple([tensor.requires_grad_(True) for tensor in given])
        out = jacobian(scalar, given, create_graph=True)
        check_depends(out, JACOBIAN_CONSTANT, strict)
        return out

    rows = jacobian(slope, tensors, create_graph, strict, vectorize, outer_jacobian_strategy)
    return unpacked_matrix(rows, inputs_tuple, inputs_tuple)
