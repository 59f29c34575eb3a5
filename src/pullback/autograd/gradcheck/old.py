"""Entries that old programs still call: single Jacobians, numerical and analytical."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pullback.autograd.gradcheck.analytical import assembled, rows_of
from pullback.autograd.gradcheck.numerical import Tensors, as_tuple, numerical_jacobian, wanting

DEPRECATED = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
    "in a future version of PyTorch. If you have a specific use for this or feature request for this to be a stable "
    "API, please file us an issue at https://github.com/pytorch/pytorch/issues/new"
)


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> Tensors:
    """The derivatives of the first output of `fn(inputs)` by finite differences, one matrix per input."""
    warnings.warn(DEPRECATED.format("get_numerical_jacobian"), FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    given = as_tuple(inputs)

    def packed(*tensors: Any) -> Any:
        return fn(tensors)

    outputs = as_tuple(packed(*given))
    if any(out.is_complex() for out in outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    moving = wanting(given if target is None else as_tuple(target))
    return tuple([numerical_jacobian(packed, given, tensor, outputs, eps, False)[0] for _, tensor in moving])


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[Tensors, bool, bool, bool]:
    """The derivatives of `output` by backward: matrices, whether two runs agree, and whether sizes and types fit."""
    warnings.warn(DEPRECATED.format("get_analytical_jacobian"), FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    tensors = [tensor for _, tensor in wanting(as_tuple(inputs))]
    first, second = (assembled(tensors, rows_of(tensors, output, None)) for _ in range(2))
    agree = all(not a.numel() or bool((a - b).abs().max() <= nondet_tol) for a, b in zip(first, second, strict=True))
    return tuple(first), agree, True, True
