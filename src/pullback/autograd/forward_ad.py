"""Forward-mode differentiation: dual tensors carry a tangent through every op while a dual level is open.

with dual_level():
    dual = make_dual(x, direction)
    y, dy = unpack_dual(f(dual))          # dy = J_f(x) @ direction
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback._modes import modes
from pullback._op.define import Array, op
from pullback._op.forward_mode import hold_still, laid_out_like, lies_alike, tangent_of
from pullback._runtime import messages
from pullback._runtime.interrupts import Block
from pullback._tensor import Tensor
from pullback.autograd.grad_mode import ContextDecorator

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


NESTED = "Nested forward mode AD is not supported at the moment"
LEVEL = "dual level"
"""What holds the mode."""


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open a dual level; only one can be open at a time."""
    if modes.dual_level >= 0:
        raise RuntimeError(NESTED)
    try:
        modes.hold(LEVEL)
        modes.dual_level = 0
    except BaseException:
        leave_level()
        raise
    return modes.dual_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the dual level: all tangents end."""
    if modes.dual_level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != modes.dual_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    leave_level()


def leave_level() -> None:
    """No level is open."""
    modes.dual_level = -1
    modes.dual_epoch += 1
    modes.drop(LEVEL)


class dual_level(Block, ContextDecorator):
    """A `with` block in which dual tensors exist."""

    def _before(self) -> None:
        """None must be open."""
        if modes.dual_level >= 0:
            raise RuntimeError(NESTED)

    def _begin(self, before: None) -> int:
        """Open one."""
        return enter_dual_level()

    def _end(self, before: None) -> None:
        """Close it."""
        leave_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that moves in the direction `tangent`."""
    if modes.dual_level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype!r}")
    if tensor._tangent is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            f"{modes.dual_level} is not supported."
        )
    if tangent._tangent is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level{modes.dual_level} is not "
            "supported."
        )
    if tangent._array.shape != tensor._array.shape:
        raise RuntimeError(messages.tangent_size(tensor._array.shape, tangent._array.shape))
    dual: Tensor = tensor.view_as(tensor)
    dual._tangent = tangent if lies_alike(tensor, tangent) else laid_out_like(tensor, tangent)
    return dual


@op(vmap="leading", view=True, space=None, name="_fw_primal", node="FwPrimalBackward0", self=lambda grad: grad)
def fw_primal(self: Array, level: int) -> Array:
    """The value of a dual tensor as a view of it."""
    return self[...]


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal value of a dual tensor and its tangent (None if it does not move)."""
    if modes.dual_level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    now, modes.dual_level = modes.dual_level, -1  # the view itself does not move
    try:
        primal = fw_primal(tensor, now)
    finally:
        modes.dual_level = now
    hold_still(primal)
    while hasattr(type(tensor), "run_op") and tensor._tangent is None and tensor._array.bdim is None:
        tensor = tensor._array.value  # computed inside vmap from what it does not batch
    return UnpackedDualTensor(primal, tangent_of(tensor))


def __getattr__(name: str) -> int:
    if name == "_current_level":  # -1 while none is open
        return modes.dual_level
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
