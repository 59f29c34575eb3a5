"""Tensors that change their own shape: unsqueeze_, squeeze_, transpose_, t_, as_strided_.

Nothing is written to memory, but the tensor sees it differently from here on, so the version counts it:

    y = x.exp(); y.unsqueeze_(0)          y.grad_fn = UnsqueezeBackward1 -> ExpBackward0
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pullback._lazy import stored
from pullback._modes import is_grad_enabled
from pullback._op.define import function, op
from pullback._tensor import Tensor, bump_version, extra_of
from pullback.autograd.view import check_inplace, recorded, wants_grad
from pullback.ops.shape.dims import t, transpose
from pullback.ops.shape.reshape import ints, squeeze_all, squeeze_dim, squeeze_dims, unsqueeze
from pullback.ops.shape.slicing import as_strided_view


def renamed(view: Any, node: str) -> Any:
    """The same view op with the node name torch gives its in-place form."""
    known = view.op
    forward = FunctionType(known.declared.__code__, known.declared.__globals__, f"{known.key}_in_place")
    forward.__defaults__ = known.declared.__defaults__
    forward.__annotations__ = known.declared.__annotations__
    forward.__module__ = known.declared.__module__
    forward.__doc__ = known.doc
    facts = {"name": known.name, "check": known.check, "result": known.jvp, "vmap": known.vmap}
    declared = op(space=None, view=True, node=node, **facts, **known.formulas)
    return declared(forward)


def reform(self: Tensor, view: Any, *args: Any) -> Tensor:
    """Give a tensor the shape and history of a view of itself."""
    kind: Any = type(self)
    if hasattr(kind, "as_it_was"):  # a batched tensor: see batching/views.py
        kind.check_reform(self)
        former = kind.as_it_was(self)
        out = view(former, *args)
        kind.note_reform(self, former, out)
    else:
        check_inplace(self, is_grad_enabled() and wants_grad(self))
        out = view(self, *args)
    if self._requires_grad and self._edge is None and out._edge is None:
        extra = extra_of(self)  # gradients of what was computed from it have the shape it had
        extra.former = (*extra.former, self._array.shape)
    self._array = stored(out)
    bump_version(self)
    if out._edge is not None:
        self._edge = out._edge  # hooks and retain_grad stay with the value they were put on
        self._requires_grad = True
        if self._view is not None:
            self._view.version = self._counter[0]
    if out._tangent is not None:
        # What is not recorded here may be by a transform further out, which sees the tangent.
        self._tangent = out._tangent if is_grad_enabled() else recorded(view, self._tangent, *args)
    return self


unsqueeze_in_place = renamed(unsqueeze, "UnsqueezeBackward1")
transpose_in_place = renamed(transpose, "TransposeBackward1")
t_in_place = renamed(t, "TBackward1")
squeeze_all_in_place = renamed(squeeze_all, "SqueezeBackward3")
squeeze_dim_in_place = renamed(squeeze_dim, "SqueezeBackward4")
squeeze_dims_in_place = renamed(squeeze_dims, "SqueezeBackward5")
as_strided_in_place = renamed(as_strided_view, "AsStridedBackward1")


@function(space=None)
def unsqueeze_(self: Tensor, dim: int) -> Tensor:
    """In-place version of :func:`unsqueeze`: insert a dimension of size one at position `dim`."""
    return reform(self, unsqueeze_in_place, dim)


@function(space=None)
def squeeze_(self: Tensor, dim: Any = None) -> Tensor:
    """In-place version of :func:`squeeze`: remove the dimensions of size one, all or those in `dim`."""
    if dim is None:
        return reform(self, squeeze_all_in_place)
    if isinstance(dim, (tuple, list)):
        return reform(self, squeeze_dims_in_place, ints("squeeze_", "dim", (dim,)))
    return reform(self, squeeze_dim_in_place, dim)


@function(raw=True, space=None, aliases=("swapdims_",))
def transpose_(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place version of :func:`transpose`: swap the dimensions `dim0` and `dim1`."""
    return reform(self, transpose_in_place, dim0, dim1)


@function(raw=True, space=None)
def swapaxes_(self: Tensor, axis0: int, axis1: int) -> Tensor:
    """In-place version of :func:`swapaxes`: swap the dimensions `axis0` and `axis1`."""
    return reform(self, transpose_in_place, axis0, axis1)


@function(raw=True, space=None)
def t_(self: Tensor) -> Tensor:
    """In-place version of :func:`t`: transpose a matrix."""
    return reform(self, t_in_place)


@function(raw=True, explained=True)
def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """In-place version of :func:`as_strided`: look at the same memory with another shape, strides and offset."""
    size, stride = ints("as_strided_", "size", (size,)), ints("as_strided_", "stride", (stride,))
    return reform(self, as_strided_in_place, size, stride, storage_offset)
