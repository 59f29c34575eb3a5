"""Derivatives by finite differences: (f(x + eps) - f(x - eps)) / 2 eps, element by element or along one direction."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from pullback._tensor import Tensor
from pullback.autograd.view import wants_grad
from pullback.ops.create.filled import zeros

Tensors = tuple[Any, ...]
Direction = Any
"""One tensor, or for complex inputs (real part, imaginary part)."""


def as_tuple(value: Any) -> Tensors:
    """A value, list or tuple as a tuple."""
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)


def is_differentiable_type(value: Any) -> bool:
    """True for tensors that can have a gradient."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def wanting(inputs: Any) -> list[tuple[int, Any]]:
    """(index, tensor) of the inputs that want a gradient."""
    return [(i, t) for i, t in enumerate(inputs) if isinstance(t, Tensor) and wants_grad(t)]


def columns_like(outputs: Tensors, rows: int, dtype: Any = None) -> Tensors:
    """Zeros for the derivatives of each output: one row per element of an input."""
    kept = [t for t in outputs if is_differentiable_type(t)]
    return tuple([zeros(rows, t.numel(), dtype=dtype or t.dtype, device=t.device) for t in kept])


def numerical_jacobians(
    func: Callable[..., Any], inputs: Tensors, outputs: Tensors, eps: float, forward: bool
) -> list[Tensors]:
    """For every input that wants a gradient and every output: a tensor [input elements, output elements]."""
    if not forward and any(out.is_complex() for out in outputs):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    return [numerical_jacobian(func, inputs, tensor, outputs, eps, forward) for _, tensor in wanting(inputs)]


def numerical_jacobian(
    func: Callable[..., Any], inputs: Tensors, tensor: Any, outputs: Tensors, eps: float, forward: bool
) -> Tensors:
    """The derivatives with respect to one input, element by element."""
    complex_input = tensor.is_complex()
    jacobians = columns_like(outputs, tensor.numel(), tensor.dtype if complex_input else None)
    memory = tensor.data
    for row, index in enumerate(product(*[range(n) for n in tensor.shape])):
        difference = centered(func, inputs, memory[index], eps, f"on index {index} ")
        for jacobian, column in zip(jacobians, combined(difference, eps, complex_input, forward), strict=False):
            jacobian[row] = column
    return jacobians


def numerical_product(
    func: Callable[..., Any], inputs: Tensors, tensor: Any, direction: Direction, eps: float, forward: bool
) -> list[Any]:
    """The derivative of every output along one direction of one input."""
    memory = tensor.data
    difference = centered(func, inputs, memory, eps, "")
    if isinstance(direction, tuple):
        step = tuple([part.reshape(memory.shape) * eps for part in direction])
    else:
        step = direction.reshape(memory.shape) * eps
    return combined(difference, step, tensor.is_complex(), forward)


def centered(
    func: Callable[..., Any], inputs: Tensors, memory: Any, eps: float, place: str
) -> Callable[[Any], list[Any]]:
    """A function of a step: how the outputs change when `memory`, part of an input, moves by it."""

    def evaluate() -> list[Any]:
        return [out.detach().clone() for out in as_tuple(func(*inputs))]

    def difference(step: Any) -> list[Any]:
        before = memory.clone()
        memory.copy_(before - step)
        low = evaluate()
        memory.copy_(before + step)
        high = evaluate()
        memory.copy_(before)
        out = []
        for a, b in zip(low, high, strict=True):
            check_same_form(a, b, eps, place)
            out.append(((b - a) / (2 * eps)).reshape(-1))
        return out

    return difference


def combined(difference: Callable[[Any], list[Any]], step: Any, complex_input: bool, forward: bool) -> list[Any]:
    """The derivative of a real function of complex numbers is that along 1 plus i times that along i."""
    along_real = difference(step[0] if isinstance(step, tuple) else step)
    if not complex_input:
        if not forward and any(d.is_complex() for d in along_real):
            raise AssertionError("Expected ds_dx to be real-valued, not complex.")
        return along_real
    along_imaginary = difference((step[1] if isinstance(step, tuple) else step) * 1j)
    if any(d.is_complex() for d in along_real):
        raise AssertionError("Expected ds_dx to be real-valued, not complex")
    return [a + b * 1j for a, b in zip(along_real, along_imaginary, strict=True)]


def check_same_form(a: Any, b: Any, eps: float, place: str) -> None:
    """Raise if the outputs change shape or dtype when an input moves a little."""
    for what, one, other in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
        if one != other:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed {place}by {eps}, "
                f"but got: {what}s {one} and {other}."
            )
