"""Writing through a view of a batched tensor: what it does to the history of the tensor it looks at.

The memory below is shared, so values take care of themselves. Histories do not: after  v = y[0]; v.mul_(w)  the history
of y is that of  y + Vᵀ(v_new - V y),  where V is the view op: what was there before is gone, what was written is there.
Other views of y have their history made anew from y's when they are next used. Tangents change in the same way.

A tensor that changes its own shape, as in y.t_(), becomes a view of what it was; the views of y made before then are
views of that, too.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from pullback._modes import grad_enabled, is_grad_enabled
from pullback._op.declare import Op
from pullback._runtime import messages
from pullback._tensor import Tensor, bump_version, counter_of, wrap
from pullback.autograd.view import MULTI_OUTPUT_NODE, check_inplace, forbid, wants_grad
from pullback.batching.tensor import BatchedTensor, around, level_of, one_down
from pullback.kernels.numpy.index.strided import view_strides
from pullback.ops.shape.reshape import NOT_VIEWABLE

transposed: dict[str, Any] = {}
"""`transposed["view"](view, like, value)`: Vᵀ value. Put here by autograd/batched.py, which has an engine."""


class Source(NamedTuple):
    """Of what a batched tensor is a view: a tensor that had changed shape so often, and by which output of an op."""

    tensor: Any
    changes: int
    op: Op
    rest: list[Any]
    position: int

    @property
    def parent(self) -> Any:
        """The tensor, or what it was when the view was made."""
        formers = self.tensor.__dict__.get("formers", ())
        return formers[self.changes] if self.changes < len(formers) else self.tensor

    def seen_in(self, parent: Any) -> Any:
        """The view once more."""
        out = self.op.call(parent, *self.rest)
        return out[self.position] if self.op.variadic else out


def note_view(out: Any, source: Any, op: Op, rest: list[Any], position: int) -> None:
    """Remember what a batched tensor is a view of, and by which op."""
    out.__dict__["source"] = Source(source, len(source.__dict__.get("formers", ())), op, rest, position)
    out.__dict__["seen"] = writes(source)
    out._counter = counter_of(source)


def writes(tensor: Any) -> int:
    """How often somebody wrote to the tensor at the root of a view."""
    return root(tensor).__dict__.get("writes", 0)  # type: ignore[no-any-return]


def root(tensor: Any) -> Any:
    """The tensor a view of a view of ... looks at."""
    while "source" in tensor.__dict__:
        tensor = tensor.__dict__["source"].parent
    return tensor


def up_to_date(tensor: Any) -> None:
    """Make the history of a view anew if its root was written to since."""
    found = tensor.__dict__.get("source")
    if found is None or tensor.__dict__["seen"] == writes(tensor):
        return
    parent = found.parent
    up_to_date(parent)
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)  # the view was recorded when it was made, wherever the write is seen
        again = found.seen_in(parent)
    finally:
        grad_enabled.set(before)
    tensor._edge, tensor._requires_grad = again._edge, again._requires_grad
    tensor._tangent = again._tangent
    tensor.__dict__["seen"] = writes(tensor)


def written(tensor: Any, made: Any, tracked: bool) -> None:
    """After a write: the tensor, and everything it is a view of, get the history and tangent of what was made."""
    above = []
    while "source" in tensor.__dict__:
        source = tensor.__dict__["source"]
        above.append((tensor, made._tangent))
        made = through(source, made, tracked)
        tensor = source.parent
    adopt(tensor, made, tracked)
    tensor.__dict__["writes"] = tensor.__dict__.get("writes", 0) + 1
    bump_version(tensor)
    for view, _ in reversed(above):
        up_to_date(view)


def adopt(tensor: Any, made: Any, tracked: bool) -> None:
    """The history and tangent of what was made."""
    if tracked and (made._requires_grad or tensor._requires_grad):
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


def through(source: Source, made: Any, tracked: bool) -> Any:
    """What the parent becomes when its view becomes `made`."""
    parent, view = source.parent, source.seen_in

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


# ------------------------------------------------------------------ whose history forbids it


def check_write(tensor: Any, tracked: bool) -> None:
    """Raise unless the history of a batched tensor at its level allows a write; `tracked`: what is written has one."""
    if not (is_grad_enabled() and (tracked or tensor._requires_grad or root(tensor)._requires_grad)):
        return
    base, several = tensor, False
    while "source" in base.__dict__:
        several = several or base.__dict__["source"].op.variadic
        base = base.__dict__["source"].parent
    if several:
        up_to_date(tensor)
        forbid(tensor, MULTI_OUTPUT_NODE, "is being")
    if base is not tensor and base._edge is None and base._requires_grad:
        raise RuntimeError(messages.VIEW_OF_LEAF_INPLACE)
    if tensor._edge is None and tensor._requires_grad:
        raise RuntimeError(messages.LEAF_INPLACE)


def check_reform(tensor: Any) -> None:
    """Raise unless a tensor may change its shape, on every level: what it holds changes it, too."""
    if type(tensor) is not BatchedTensor:
        check_inplace(tensor, is_grad_enabled() and wants_grad(tensor))
        return
    check_write(tensor, False)
    one_down(level_of(tensor), check_reform, tensor._array.value)


def as_it_was(tensor: Any) -> Any:
    """A stand-in for a tensor that is about to change its shape."""
    out = around(tensor._array)
    out._edge, out._requires_grad, out._tangent = tensor._edge, tensor._requires_grad, tensor._tangent
    out._counter = counter_of(tensor)
    out.__dict__.update({key: tensor.__dict__[key] for key in ("source", "seen", "writes") if key in tensor.__dict__})
    return out


def note_reform(tensor: Any, former: Any, out: Any) -> None:
    """Remember that a tensor has become a view of what it was."""
    if tensor._requires_grad and tensor._edge is None and out._edge is None:
        return  # a leaf nobody recorded stays one
    tensor.__dict__.setdefault("formers", []).append(former)
    tensor.__dict__.update(source=out.__dict__["source"], seen=out.__dict__["seen"])


# ------------------------------------------------------------------ another shape


def view(self: BatchedTensor, *sizes: Any, **more: Any) -> Any:
    """The same memory in another shape; where formulas ask for it (see `reshaped`), elements may move as well."""
    return unmoved(self, Tensor.view(self, *sizes, **more))


def view_as(self: BatchedTensor, other: Tensor) -> Any:
    """The same in the shape of another tensor."""
    return unmoved(self, Tensor.view_as(self, other))


def unmoved(self: BatchedTensor, out: Tensor) -> Tensor:
    """What a view has made, if the elements of an entry could stay where they are."""
    shape, size = self._array.shape, out._array.shape
    if out.dtype is self.dtype and prod(shape) > 1 and view_strides(shape, self.stride(), size) is None:
        raise RuntimeError(NOT_VIEWABLE)
    return out


BatchedTensor.view = view
BatchedTensor.view_as = view_as
BatchedTensor.check_reform = staticmethod(check_reform)
BatchedTensor.as_it_was = staticmethod(as_it_was)
BatchedTensor.note_reform = staticmethod(note_reform)
