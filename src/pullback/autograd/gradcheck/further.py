"""The other promises of a derivative: zero in gives zero out, undefined gradients, batches of gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pullback._tensor import Tensor
from pullback.autograd.api import grad
from pullback.autograd.batched import unbatched
from pullback.autograd.forward_ad import dual_level, make_dual, unpack_dual
from pullback.autograd.function import Function
from pullback.autograd.gradcheck.compare import random_directions
from pullback.autograd.gradcheck.errors import (
    BATCHED_BACKWARD,
    BATCHED_FORWARD,
    UNDEFINED,
    UNDEFINED_WARNING,
    GradcheckError,
    batched_mismatch,
)
from pullback.autograd.gradcheck.numerical import Tensors, as_tuple, is_differentiable_type, wanting
from pullback.autograd.view import wants_grad
from pullback.batching.tensor import batched, entered
from pullback.ops.create.like import zeros_like
from pullback.ops.pointwise.compare import allclose
from pullback.ops.random.draw import randn_like
from pullback.ops.shape.join import stack


class UndefinedGrad(Function):
    """The identity, through which no gradient comes back."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        """The same tensor."""
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Nothing."""
        return None


def differentiable(outputs: Any) -> Tensors:
    """The outputs that want a gradient."""
    return tuple([out for out in as_tuple(outputs) if wants_grad(out)])


def check_zero_in_zero_out(outputs: Tensors, inputs: Tensors, masked: bool) -> None:
    """A backward is linear in grad_output, so zeros give zeros, like the inputs."""
    tensors = [tensor for _, tensor in wanting(inputs)]
    grads = grad(outputs, tensors, [zeros_like(out) for out in outputs], allow_unused=True)
    for gradient, tensor in zip(grads, tensors, strict=True):
        if gradient is None:
            continue  # type: ignore[unreachable]
        zero = allclose(gradient, zeros_like(gradient)) if masked else gradient.eq(0).all()
        if not zero:
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient.dtype != tensor.dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient.shape != tensor.shape:
            raise GradcheckError("grad is incorrect size")


def check_undefined_backward(func: Callable[..., Any], outputs: Tensors, inputs: Tensors) -> None:
    """Outputs nobody uses count as zero: all of them at once, then each of several."""
    tensors = [tensor for _, tensor in wanting(inputs)]
    check_all_zero([UndefinedGrad.apply(out) for out in differentiable(func(*inputs))], tensors)
    if len(outputs) > 1:
        for i in range(len(outputs)):
            outs = differentiable(func(*inputs))
            check_all_zero([UndefinedGrad.apply(out) if i == j else out for j, out in enumerate(outs)], tensors)


def check_all_zero(outputs: list[Any], tensors: list[Any]) -> None:
    """Backward with undefined and zero gradients runs, and gives nothing or zeros."""
    try:
        grads = grad(outputs, tensors, [zeros_like(out) for out in outputs], allow_unused=True)
    except RuntimeError as error:
        warnings.warn(UNDEFINED_WARNING, stacklevel=2)
        raise GradcheckError(f"Expected backward function to handle undefined output grads. {UNDEFINED}") from error
    if any(gradient is not None and not gradient.eq(0).all() for gradient in grads):
        warnings.warn(UNDEFINED_WARNING, stacklevel=2)
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero. " + UNDEFINED
        )


def check_undefined_forward(func: Callable[..., Any], inputs: Tensors, outputs: Any) -> None:
    """An input without tangent is as one whose tangent is zero."""
    _, directions = random_directions(inputs, as_tuple(outputs), forward=True)
    moving = dict(zip([i for i, _ in wanting(inputs)], directions, strict=True))
    with dual_level():
        duals = [make_dual(t.detach(), moving[i].view_as(t)) if i in moving else t for i, t in enumerate(inputs)]
        for i in moving:
            before, still = duals[i], inputs[i].detach()
            duals[i] = make_dual(inputs[i].detach(), zeros_like(inputs[i]))
            with_zeros = list(filter(is_differentiable_type, as_tuple(func(*duals))))
            duals[i] = still
            without = list(filter(is_differentiable_type, as_tuple(func(*duals))))
            duals[i] = before
            for index, (a, b) in enumerate(zip(with_zeros, without, strict=True)):
                one, other = unpack_dual(a).tangent, unpack_dual(b).tangent
                if one is not None and other is not None and not allclose(one, other):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ", index, " when input: ", inputs[i],
                        " has an undefined tangent value. ", " Got: ", one, " but expected: ", other,
                    )  # fmt: skip


def check_batched_forward(func: Callable[..., Any], inputs: Tensors) -> None:
    """Two tangents at once give what each gives alone."""
    for which, tensor in wanting(inputs):
        if not is_differentiable_type(tensor):
            continue
        still = [t.detach() if isinstance(t, Tensor) else t for t in inputs]

        def push(tangent: Any, which: int = which, still: list[Any] = still) -> list[Any]:
            with dual_level():
                moving = [make_dual(t, tangent) if i == which else t for i, t in enumerate(still)]
                pairs = [unpack_dual(out) for out in as_tuple(func(*moving)) if out is not None]
                return [zeros_like(p.primal) if p.tangent is None else p.tangent for p in pairs]

        tangents = [randn_like(still[which]) for _ in range(2)]
        expected = [stack(list(rows)) for rows in zip(*[push(t) for t in tangents], strict=True)]
        try:
            with entered(2, claims=False) as level:
                result = [unbatched(t, level.number, 2) for t in push(batched(stack(tangents), 0, level.number))]
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED_FORWARD}") from error
        for i, (got, wanted) in enumerate(zip(result, expected, strict=True)):
            if not allclose(got, wanted):
                raise GradcheckError(batched_mismatch(i, i, got, wanted, forward=True))


def check_batched_backward(inputs: Tensors, output: Any, index: int) -> None:
    """Two gradients at once give what each gives alone."""
    tensors = [tensor for _, tensor in wanting(inputs)]
    starts = [randn_like(output) for _ in range(2)]

    def backward(start: Any, batched: bool) -> list[Any]:
        grads = grad(output, tensors, start, retain_graph=True, allow_unused=True, is_grads_batched=batched)
        return [
            zeros_like(stack([t, t]) if batched else t) if g is None else g for g, t in zip(grads, tensors, strict=True)
        ]

    expected = [stack(list(rows)) for rows in zip(*[backward(s, False) for s in starts], strict=True)]
    try:
        result = backward(stack(starts), True)
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{BATCHED_BACKWARD}") from error
    for i, (got, wanted) in enumerate(zip(result, expected, strict=True)):
        if not allclose(got, wanted):
            raise GradcheckError(batched_mismatch(index, i, got, wanted, forward=False))
