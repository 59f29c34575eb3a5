"""What happens at the end of the graph: a gradient is added to `.grad` of its leaf.

The first gradient is taken over if nobody else holds it and its strides are those the leaf promises, else copied; later
ones are added in place, or out of place where they are part of a graph.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign, is_sparse
from pullback._arrays.layout import strided
from pullback._arrays.memory import is_non_overlapping_and_dense, overlaps_itself
from pullback._lazy import store
from pullback._modes import grad_layout_enforced, is_grad_enabled
from pullback._op.overrides import is_told
from pullback._runtime import messages
from pullback._runtime.building import guarded
from pullback._runtime.warnings import warn_once
from pullback._tensor import OWN_DTYPE, PRISTINE, Tensor, bump_version, ndarray, wrap
from pullback._thresholds import LARGE
from pullback.autograd import run_hooks
from pullback.autograd.fit import fit
from pullback.autograd.node import AccumulateGrad, accumulator_of
from pullback.kernels.jit.pointwise.fused import overwrite
from pullback.kernels.jit.small.choose import ADD

accumulate_lock = guarded(threading.RLock())


def in_grad_dtype(leaf: Tensor, grad: Any) -> Any:
    """A gradient in the dtype its leaf asks for, where that is not its own."""
    extra = leaf._extra
    if grad is None or extra is None or extra.grad_dtype is OWN_DTYPE:
        return grad
    return fit(grad, accumulator_of(leaf), 0, None, 0)


def accumulate_by_hand(self: AccumulateGrad, *grads: Any, **kwargs: Any) -> tuple[()]:
    """Call an AccumulateGrad like any node: adds a gradient to that of its leaf."""
    (grad,) = self.checked_call(grads, kwargs)
    if grad is not None:
        if is_grad_enabled():
            accumulate_tensor(self.variable, grad)
        else:
            accumulate_array(self.variable, {self.variable: grad._array}, self.variable)
    run_hooks.after_accumulation(self.variable)
    return ()


AccumulateGrad.__call__ = accumulate_by_hand  # type: ignore[method-assign, assignment]


def accumulate_array(variable: Tensor, arrived: dict[Any, Any], leaf: Tensor) -> None:
    """Add an array to `variable.grad`: in place if there is one, else by taking it over or copying it."""
    with accumulate_lock:
        present = variable._grad
        array = arrived.pop(leaf, None)
        if array is None or variable._edge is not None or not variable._requires_grad:
            if array is not None:
                still_wanted(variable)
            return
        kind: Any = type(array)
        by_steps = kind is not ndarray and getattr(kind, "steps_on_arrays", False)
        if by_steps and present is None and kind is type(variable._array):
            shared = sys.getrefcount(array) > SOLE_OWNER or (array.base is not None and is_shared(array))
            if shared or array.strides != variable._array.strides:
                array = copy_like(array, variable._array)
            variable._grad = array.tensor()
            return
        if kind is not ndarray and is_sparse(array):
            variable._grad = joined(present, array)
            return
        if present is not None:
            sum: Any = present._array
            strides = sum.strides
            if type(sum) is not ndarray and is_sparse(sum):
                variable._grad = joined(present, array)
                return
            if 0 in strides or strides != variable._array.strides:
                check_layout(present, variable)
            count_write(present)  # an interrupt after the sum must not leave it uncounted
            if type(sum) is not ndarray and is_foreign(sum):
                sum.gather(array)
            elif array.size < LARGE or kind is not ndarray:
                np.add(sum, array, sum)
            else:
                ADD.into(sum, sum, array)
            if sum is not present._array:
                store(present, sum)
            return
        if type(array) is not ndarray:
            if not is_foreign(array):
                array = np.asarray(array)
            else:
                array = copy_like(array, variable._array)  # what lies elsewhere, or steps on tensors
        else:
            shared = sys.getrefcount(array) > SOLE_OWNER or (array.base is not None and is_shared(array))
            like = variable._array
            plain = type(like) is ndarray and array.flags.c_contiguous and like.flags.c_contiguous
            if shared or (not plain and must_move(array, like)):
                array = copy_like(array, like)
        variable._grad = wrap(array)


def joined(present: Tensor | None, array: Any) -> Tensor:
    """A sum of gradients of which one is sparse, or a first one that is: dense if one of them is."""
    if present is None:
        return wrap(array.uncoalesced())  # torch takes the parts over, and forgets whether they are in order
    sum = present._array
    if type(sum) is ndarray and sum.dtype == array.dtype:
        count_write(present)
        np.add(sum, array, sum)
        return present
    return wrap(sum + array)


def is_shared(array: Any) -> bool:
    """True unless a view is the only one of an array that owns its memory and looks at all of it."""
    base = array.base
    whole = type(base) is type(array) and base.base is None and base.size == array.size
    return not whole or sys.getrefcount(base) > SOLE_VIEW


SOLE_VIEW = 3
"""References to an array in `is_shared`: its view's, the local name, the count's own argument."""


def check_layout(grad: Tensor, variable: Tensor) -> None:
    """Raise if a gradient cannot be written to; warn, once, if it does not lie in memory as its leaf does."""
    if overlaps_itself(grad._array):
        raise RuntimeError(messages.OVERLAP)
    if must_move(grad._array, variable._array):
        shown = [f"sizes() = {list(t.shape)}, strides() = {list(t.stride())}" for t in (grad, variable)]
        text = (
            "grad and param do not obey the gradient layout contract. This is not an error, but may impair performance."
        )
        warn_once(f"{text}\ngrad.{shown[0]}\nparam.{shown[1]}", kind=text)


def accumulate_tensor(variable: Tensor, grad: Any) -> None:
    """Add a tensor to `variable.grad`, out of place: it is part of a graph."""
    if grad is None or not still_wanted(variable):
        return
    if not is_grad_enabled():
        array: Any
        for array in (variable._array, grad._array):
            if is_foreign(array) and type(array).accumulated(variable, grad):
                return
    with accumulate_lock:
        present = variable._grad
        if present is not None:
            variable._grad = present + grad
        elif grad.layout is not strided or variable.layout is not strided:
            variable._grad = grad.clone()
        elif is_non_overlapping_and_dense(variable._array) and not is_told(type(grad)):
            variable._grad = wrap(np.empty_like(variable._array)).copy_(grad)
        else:
            variable._grad = grad.clone()


def count_write(grad: Tensor) -> None:
    """`bump_version` without noting where: gradients are written by backward."""
    counter: Any = grad._counter
    if type(counter) is list and len(counter) == 1:
        counter[0] += 1
    elif counter is PRISTINE:
        grad._counter = [1]
    else:
        bump_version(grad)


def still_wanted(variable: Tensor) -> bool:
    """False if gradients of the leaf were switched off since it was used; an error if it is no leaf any more."""
    if variable._edge is not None:
        raise RuntimeError("leaf variable has been moved into the graph interior")
    return variable._requires_grad


def keeps_layout(array: Any, like: Any) -> bool:
    """True if a gradient's strides are those its leaf promises: the leaf's own where it is dense, else contiguous."""
    if type(like) is not ndarray and is_sparse(like):
        return bool(array.flags.c_contiguous)
    if array.flags.c_contiguous and like.flags.c_contiguous:
        return True
    if is_non_overlapping_and_dense(like):
        return bool(array.strides == like.strides)
    return bool(array.flags.c_contiguous)


def must_move(array: Any, like: Any) -> bool:
    """True if a gradient does not lie as its leaf asks, and nobody has said that this does not matter."""
    return not keeps_layout(array, like) and grad_layout_enforced.get()


def copy_like(array: Any, like: Any) -> Any:
    """A copy of a gradient in the layout of its leaf."""
    if is_sparse(like):
        return array.copy()
    if array.shape != like.shape:  # the leaf was given another shape since
        return array.copy() if keeps_layout(array, like) else wrap(np.empty_like(like)).copy_(wrap(array))._array
    made = array.by(laid_as, like) if type(array) is not ndarray and is_foreign(array) else None
    return laid_as(array, like) if made is None else made


def laid_as(array: Any, like: Any) -> Any:
    """A copy of an array in the layout of another of its shape."""
    out = np.empty_like(like, dtype=array.dtype, order="K" if is_non_overlapping_and_dense(like) else "C")
    overwrite(out, array)
    return out


def measure_sole_owner() -> int:
    """The reference count `accumulate_array` sees of an array that nobody but the engine holds.

    It depends on how the interpreter counts its own references, so it is measured, not assumed.
    """
    seen = []

    def look(arrived: dict[int, Any]) -> None:
        array = arrived.pop(0)
        if type(array) is ndarray:
            seen.append(sys.getrefcount(array))

    outs = (np.zeros(1),)  # the loop in `propagate` holds what the node returned
    look({0: outs[0]})
    return int(seen[0])


SOLE_OWNER = measure_sole_owner()
