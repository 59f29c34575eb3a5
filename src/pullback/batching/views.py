"""Writing through a view of a batched tensor: what it does to the history of the tensor it looks at.

The memory below is shared, so values take care of themselves. Histories do not: after  v = y[0]; v.mul_(w)  the history
of y is that of  y + Vᵀ(v_new - V y),  where V is the view op: what was there before is gone, what was written is there.
Other views of y have their history made anew from y's when they are next used. Tangents change in the same way.
"""

from __future__ import annotations

from typing import Any

from pullback._modes import grad_enabled, is_grad_enabled
from pullback._op.declare import Op
from pullback._runtime import messages
from pullback._tensor import bump_version, counter_of, wrap
from pullback.batching.tensor import BatchedTensor

transposed: dict[str, Any] = {}
"""`transposed["view"](view, like, value)`: Vᵀ value. Put here by autograd/batched.py, which has an engine."""


def note_view(out: Any, source: Any, op: Op, rest: list[Any], position: int) -> None:
    """Remember what a batched tensor is a view of, and by which op."""
    out.__dict__["source"] = (source, op, rest, position)
    out.__dict__["seen"] = writes(source)
    out._counter = counter_of(source)


def writes(tensor: Any) -> int:
    """How often somebody wrote to the tensor at the root of a view."""
    return root(tensor).__dict__.get("writes", 0)  # type: ignore[no-any-return]


def root(tensor: Any) -> Any:
    """The tensor a view of a view of ... looks at."""
    while "source" in tensor.__dict__:
        tensor = tensor.__dict__["source"][0]
    return tensor


def seen_again(parent: Any, op: Op, rest: list[Any], position: int) -> Any:
    """The view once more."""
    out = op.call(parent, *rest)
    return out[position] if op.variadic else out


def up_to_date(tensor: Any) -> None:
    """Make the history of a view anew if its root was written to since."""
    found = tensor.__dict__.get("source")
    if found is None or tensor.__dict__["seen"] == writes(tensor):
        return
    parent, op, rest, position = found
    up_to_date(parent)
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)  # the view was recorded when it was made, wherever the write is seen
        again = seen_again(parent, op, rest, position)
    finally:
        grad_enabled.set(before)
    tensor._edge, tensor._requires_grad = again._edge, again._requires_grad
    tensor._tangent = again._tangent
    tensor.__dict__["seen"] = writes(tensor)


def written(tensor: Any, made: Any, tracked: bool) -> None:
    """After a write: the tensor, and everything it is a view of, get the history and tangent of what was made."""
    above = []
    while "source" in tensor.__dict__:
        parent, op, rest, position = tensor.__dict__["source"]
        above.append((tensor, made._tangent))
        made = through(parent, op, rest, position, made, tracked)
        tensor = parent
    adopt(tensor, made, tracked, messages.VIEW_OF_LEAF_INPLACE if above else messages.LEAF_INPLACE)
    tensor.__dict__["writes"] = tensor.__dict__.get("writes", 0) + 1
    bump_version(tensor)
    for view, _ in reversed(above):
        up_to_date(view)


def adopt(tensor: Any, made: Any, tracked: bool, refusal: str = messages.LEAF_INPLACE) -> None:
    """The history and tangent of what was made; leaves, which have no history that could change, refuse."""
    if tracked and (made._requires_grad or tensor._requires_grad):
        if tensor._edge is None and tensor._requires_grad:
            raise RuntimeError(refusal)
        tensor._edge, tensor._requires_grad = made._edge, made._requires_grad
    if made._tangent is not None or tensor._tangent is not None:
        tensor._tangent = made._tangent if is_grad_enabled() else unrecorded(tensor._tangent, made._tangent)


def unrecorded(old: Any, new: Any) -> Any:
    """The tangent after a write that nobody records: like the tensor itself it has new values and its old history."""
    if old is None or new is None:
        return new
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)
        out = old + new.detach() * 0  # a copy, with room for the batch of the new one
    finally:
        grad_enabled.set(before)
    return out.copy_(new)


def through(parent: Any, op: Op, rest: list[Any], position: int, made: Any, tracked: bool) -> Any:
    """What the parent becomes when its view becomes `made`."""

    def view(tensor: Any) -> Any:
        return seen_again(tensor, op, rest, position)

    def pasted(old: Any, new: Any) -> Any:
        return old + transposed["view"](view, old, new - view(old))

    if tracked and (made._requires_grad or parent._requires_grad):
        out = pasted(without_tangent(parent), without_tangent(made))
    else:
        out = wrap(parent._array)
    if made._tangent is not None or parent._tangent is not None:
        still = wrap(parent._array) * 0
        old = still if parent._tangent is None else parent._tangent
        new = view(still) if made._tangent is None else made._tangent
        out._tangent = pasted(old, new)
    return out


def without_tangent(tensor: Any) -> Any:
    """The same value and history."""
    if tensor._tangent is None:
        return tensor
    out = wrap(tensor._array)
    out._edge, out._requires_grad = tensor._edge, tensor._requires_grad
    return out


def is_view(tensor: Any) -> bool:
    """True for a batched tensor that looks at another."""
    return type(tensor) is BatchedTensor and "source" in tensor.__dict__
