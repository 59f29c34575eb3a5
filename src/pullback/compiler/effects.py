"""Effects: what a program does to tensors that were there before, by the functions eager code does it with."""

from __future__ import annotations

from typing import Any

from pullback._tensor import wrap
from pullback.autograd.accumulate import accumulate_array


class Leaf:
    """A tensor that was there before, as an argument of an effect."""

    __slots__ = ("slot", "tensor")

    def __init__(self, tensor: Any, slot: Any = None) -> None:
        self.tensor = tensor
        self.slot = slot
        """Where the leaf stands that takes its place at a call: it is an argument."""

    def __repr__(self) -> str:
        return f"leaf{list(self.tensor.shape)}"


def arrived_at(leaf: Leaf, array: Any) -> None:
    """Add a gradient to that of a leaf."""
    tensor = leaf.tensor
    accumulate_array(tensor, {tensor: array}, tensor)


def taken_by(leaf: Leaf, array: Any) -> None:
    """The same for a leaf that has none, and an array that nobody else holds."""
    leaf.tensor._grad = wrap(array)


def grad_of(leaf: Leaf) -> Any:
    """The array of the gradient of a leaf."""
    return leaf.tensor._grad._array


def forget_grad(leaf: Leaf) -> None:
    """`tensor.grad = None`."""
    leaf.tensor._grad = None


def stepped_by(step: Any, scheduler: Any, *args: Any) -> None:
    """A step of a scheduler of rates."""
    step(scheduler, *args)


def updated_by(optimizer: Any) -> None:
    """A step of an optimizer."""
    if not optimizer._in_one_call():
        optimizer.step()
