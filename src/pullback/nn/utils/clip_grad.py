"""Keeping gradients small: by their norm or by their values."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import GeneratorType

import pullback
from pullback import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors together, as if they were one vector."""
    each = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not each:
        return pullback.tensor(0.0)
    norm_type = float(norm_type)
    with pullback.no_grad():
        norms = [pullback.linalg.vector_norm(tensor, norm_type) for tensor in each]
        total = pullback.linalg.vector_norm(pullback.stack(norms), norm_type)
    if error_if_nonfinite and pullback.logical_or(total.isnan(), total.isinf()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients so that their norm, told as total_norm, is at most max_norm."""
    grads = gradients(parameters)
    if not grads:
        return
    with pullback.no_grad():
        factor = pullback.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for grad in grads:
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their norm is at most max_norm; returns the norm they had."""
    is_generator = isinstance(parameters, GeneratorType)
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if is_generator and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Hold every element of the gradients between -clip_value and clip_value."""
    clip_value = float(clip_value)
    with pullback.no_grad():
        for grad in gradients(parameters):
            grad.clamp_(min=-clip_value, max=clip_value)


def gradients(parameters: Tensors) -> list[Tensor]:
    """The gradients of the parameters that have one."""
    each = [parameters] if isinstance(parameters, Tensor) else parameters
    return [param.grad for param in each if param.grad is not None]
