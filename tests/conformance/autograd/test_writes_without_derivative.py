"""In-place ops and `out=` where there is no derivative: what becomes of histories, and which error comes first."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same

COMPARISONS = ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "less_", "not_equal_", "greater_equal_")
LOGIC = ("logical_and_", "logical_or_", "logical_xor_")


def made(torch: Any, kind: str) -> Any:
    """A leaf, a result or a view, of numbers that want gradients."""
    leaf = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    return leaf, {"leaf": leaf, "result": leaf * 1, "view": (leaf * 1)[:2]}[kind]


def seen(torch: Any, tensor: Any, leaf: Any) -> Any:
    """What a tensor shows of its history, and the gradient that comes through it."""
    found = [tensor.detach().clone(), tensor.requires_grad, tensor.grad_fn, tensor._version]
    if tensor.grad_fn is not None:
        found += [[below for below, _ in tensor.grad_fn.next_functions]]
        found += [torch.autograd.grad(tensor.sum(), leaf, allow_unused=True)]
    return found


@pytest.mark.parametrize("kind", ["leaf", "result", "view"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_in_place_writes_numbers_whose_derivative_is_zero(name: str, kind: str) -> None:
    def program(torch: Any) -> Any:
        def compared(other: Any) -> Any:
            leaf, tensor = made(torch, kind)
            return attempt(lambda: seen(torch, getattr(tensor, name)(other), leaf))

        others = (1, torch.tensor([1.0]), torch.tensor([1.0], requires_grad=True), torch.tensor(1))
        return [compared(other) for other in others]

    same(program)


def test_a_comparison_in_place_with_a_tensor_that_wants_gradients_is_recorded() -> None:
    def program(torch: Any) -> Any:
        other = torch.tensor([1.0, 2.0], requires_grad=True)
        return [seen(torch, torch.tensor([1.0, 3.0]).eq_(other), other), torch.tensor([1, 3]).ge_(other)]

    same(program)


@pytest.mark.parametrize("kind", ["leaf", "result", "view"])
@pytest.mark.parametrize("name", LOGIC)
def test_logic_in_place_leaves_the_history_alone(name: str, kind: str) -> None:
    def program(torch: Any) -> Any:
        leaf, tensor = made(torch, kind)
        before = tensor.requires_grad
        result = getattr(tensor, name)(torch.tensor([0.0, 1.0, 1.0])[: len(tensor)])
        return [before, seen(torch, result, leaf), seen(torch, tensor.logical_not_(), leaf)]

    same(program)


def test_tangents_of_comparisons_in_place_vanish_and_those_of_logic_stay() -> None:
    def program(torch: Any) -> Any:
        forward = torch.autograd.forward_ad
        with forward.dual_level():
            found = []
            for write in (
                lambda t: t.eq_(1),
                lambda t: t.lt_(t),
                lambda t: t.logical_not_(),
                lambda t: t.logical_or_(t),
            ):
                dual = forward.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
                write(dual)
                found.append(list(forward.unpack_dual(dual)))
            return found

    same(program)


@pytest.mark.parametrize(
    "call",
    [
        lambda leaf: leaf.eq_("a"),
        lambda leaf: leaf.atan2_(1),
        lambda leaf: leaf.addcmul_(leaf, 1),
        lambda leaf: leaf.tril_("a"),
        lambda leaf: leaf.cumsum_(0.5),
        lambda leaf: leaf.scatter_add_(0, leaf, 1.0),
    ],
)
def test_wrong_types_are_refused_before_leaves(call: Any) -> None:
    same(lambda torch: attempt(lambda: call(torch.ones(2, 2, requires_grad=True))))


@pytest.mark.parametrize("name", ["bitwise_and_", "bitwise_left_shift_"])
def test_a_leaf_is_refused_before_a_dtype(name: str) -> None:
    same(lambda torch: attempt(lambda: getattr(torch.ones(2, requires_grad=True), name)(torch.tensor([1, 1]))))


def test_the_derivative_of_ldexp_by_its_exponent() -> None:
    def program(torch: Any) -> Any:
        exponent = torch.tensor([1.0, 2.0], requires_grad=True)
        return (
            torch.autograd.grad(torch.ldexp(torch.tensor([1.0, 3.0]), exponent).sum(), exponent)[0]
            .double()
            .round(decimals=4)
        )

    same(program)
