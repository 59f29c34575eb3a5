"""Expressions of nn.functional on fixed inputs, with all their derivatives, evaluated by torch and by pullback."""

from __future__ import annotations

from typing import Any

from tests.conformance.both import same
from tests.conformance.ops.expressions import agree, given


def agree_on(expression: str) -> None:
    """Assert that an expression means the same in both libraries; `F` stands for torch.nn.functional."""
    agree(expression.replace("F.", "torch.nn.functional."))


def first_of(value: Any) -> Any:
    """The values, of a result that has indices too."""
    return value[0] if isinstance(value, tuple) else value


def derivatives(torch: Any, expression: str, forward: bool) -> Any:
    """Value, gradient, gradient of the gradient and tangent of an expression in inputs `x(2, 3)`."""
    inputs: list[Any] = []

    def x(*shape: int) -> Any:
        inputs.append(given(torch, *shape))
        return inputs[-1]

    names = {"torch": torch, "F": torch.nn.functional, "x": x}
    torch.manual_seed(0)
    value = first_of(eval(expression, names))
    cotangent = given(torch, *value.shape)
    grads = torch.autograd.grad(value, inputs, cotangent, create_graph=True)
    moving = [grad for grad in grads if grad.requires_grad]
    seconds = torch.autograd.grad(
        [(grad * grad).sum() for grad in moving], [*inputs, cotangent], allow_unused=True, retain_graph=True
    )
    found = {
        "value": value,
        "grads": grads,
        "nodes": [type(grad.grad_fn).__name__ for grad in grads],
        "seconds": seconds,
    }
    if forward:
        forward_ad = torch.autograd.forward_ad
        leaves = iter([leaf.detach() for leaf in inputs])
        torch.manual_seed(0)
        with forward_ad.dual_level():
            names["x"] = lambda *shape: forward_ad.make_dual(next(leaves), given(torch, *shape, grad=False).flip(-1))
            found["tangent"] = forward_ad.unpack_dual(first_of(eval(expression, names))).tangent
    return found


def agree_in_every_order(expression: str, forward: bool = True) -> None:
    """Assert that first and second derivatives and the tangent are torch's, with the nodes that compute them."""
    same(lambda torch: derivatives(torch, expression, forward))


def lines(text: str) -> list[str]:
    """The lines of a block of expressions."""
    return [line for line in text.split("\n") if line]
