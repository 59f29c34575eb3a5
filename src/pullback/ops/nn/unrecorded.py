"""Calls that leave no history: functions torch records op by op may then compute on arrays at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._modes import is_grad_enabled, modes
from pullback._runtime.quiet import quiet
from pullback._tensor import Parameter, Tensor, wrap
from pullback.autograd.locations import here
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.norm.rows import DOUBLE, SINGLE


def unrecorded(kernel: Callable[..., Any], *args: Any) -> Any:
    """What a kernel makes of arrays, as a tensor. It is the first of several, where formulas want to save the others.

    None where the kernel says by it that the arrays are not for it.
    """
    made = quiet().run(kernel, *args)
    if type(made) is tuple:
        made = made[0]
    return None if made is None else without_history(made)


def without_history(array: Any) -> Tensor:
    """A tensor such a call returns: in a block that records nothing, it remembers the block."""
    out = wrap(array)
    if not is_grad_enabled():
        out._detached_at = here().block
    return out


def arrays_of(*tensors: Tensor | None) -> list[Any] | None:
    """The arrays of tensors, if nothing is recorded, no rare mode is on, and all are of one dtype, float32 or float64.

    None otherwise: then the function goes through its ops one by one.
    """
    if modes.active:
        return None
    recording, dtype, out = is_grad_enabled(), None, []
    for tensor in tensors:
        if tensor is None:
            out.append(None)
            continue
        if type(tensor) is not Tensor and type(tensor) is not Parameter:
            return None
        if recording and (
            tensor._detached_at is not None or tensor._requires_grad or (tensor._view and wants_grad(tensor))
        ):
            return None  # a history that was cut is remembered op by op as well
        array = tensor._array
        if array.dtype is not dtype:
            if dtype is not None or (array.dtype is not SINGLE and array.dtype is not DOUBLE):
                return None
            dtype = array.dtype
        out.append(array)
    return out
