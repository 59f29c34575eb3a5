"""Tangents: what an op does to the directions its inputs move in. Used while a dual level is open."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import geometry_of, memory_of, overlaps_itself
from pullback._dtype import FROM_NUMPY, int64
from pullback._modes import claim, claimed_by, modes
from pullback._op.declare import Op, elementwise, linear, names_of
from pullback._op.results import Bound, items
from pullback._op.still import absent, place_among, zeros
from pullback._tensor import Tensor, extra_of, wrap
from pullback.autograd.node import accumulator_of, parts
from pullback.autograd.view import edge_of, window_step


def push(op: Op, bound: Bound, outs: list[Any]) -> None:
    """Give the outputs of a call their tangents, if an input has one."""
    tensors = [t for name in op.tensors for t in items(op, name, bound) if isinstance(t, Tensor)]
    if all(tangent_of(t) is None for t in tensors):
        return
    if op.jvp is None:
        if op.differentiable:
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented "
                "yet."
            )
        return
    if not moves_result(op, bound):
        return
    tangents = claimed_by(None, tangents_of, op, bound, outs)  # a tangent belongs where its tensor does
    for out, tangent in zip(outs, tangents, strict=False):
        if out is not None and tangent is not None and out._array.dtype.kind not in "iub":
            out._tangent = in_dtype_of(out, tangent, bool(op.promote))
            if type(out._tangent) is not Tensor and not op.view:
                out._tangent = out._tangent.resolve_conj().resolve_neg()
            note_tangent(out)


def in_dtype_of(out: Tensor, tangent: Tensor, promoted: bool) -> Tensor:
    """A tangent in the dtype of its tensor, or in a wider one that an op which does not promote has given it.

    Beside inputs that hold still a rule may promote to less than the op does, and beside integers to more.
    """
    of, own = tangent._array.dtype, out._array.dtype
    if of.kind == "c" and own.kind != "c":  # complex numbers written into real ones
        return tangent.real.to(out.dtype)
    if (of.kind == "c") == (own.kind == "c") and (of.itemsize < own.itemsize or (promoted and of != own)):
        return tangent.to(out.dtype)
    return tangent


def claimed(op: Op, outs: list[Any]) -> list[Any]:
    """The outputs of a call as the transform around it has them: its own, unless they show what was captured."""
    own = claim.get()
    if own is None or op.view:
        return outs
    return [out if out is None or FROM_NUMPY[out._array.dtype].category < 2 else own(out) for out in outs]


def note_tangent(out: Tensor) -> None:
    """A node that saved this output gives it back with its tangent: gradients move as well."""
    node, nr = parts(out._edge)
    if getattr(node, "saved_outputs", None):
        node.metadata.setdefault("tangents_", {})[nr] = (modes.dual_epoch, out._tangent)


def moves(op: Op) -> bool:
    """True if the rule of an op asks for tangents; that of random numbers does not."""
    return op.jvp is not None and (not callable(op.jvp) or any(name.endswith("_t") for name in names_of(op.jvp)))


def moves_result(op: Op, bound: Bound) -> bool:
    """False if no input whose tangent the rule names has one: the sign of copysign does not move its result."""
    if not callable(op.jvp):
        return True
    named = [name[:-2] for name in names_of(op.jvp) if name.endswith("_t")]
    given = [t for name in named for t in items(op, name, bound)]
    return not named or any(isinstance(t, Tensor) and t._tangent is not None for t in given)


def stops(op: Op, bound: Bound, self: Tensor) -> bool:
    """True if a write in place leaves nothing that moves of a tensor that did: `x[0] = 2.5`."""
    return op.jvp is not None and tangent_of(self) is not None and not moves_result(op, bound)


def still(tensor: Tensor) -> Tensor:
    """A tangent of zeros."""
    return wrap(np.zeros_like(tensor._array))


def tangents_of(op: Op, bound: Bound, outs: list[Any]) -> tuple[Any, ...]:
    """The tangents of the outputs, by the op's rule."""
    if op.jvp is linear:
        moved = [linear_argument(op, p.name, bound) for p in op.params if not p.keyword_only]
        result = op.call(*moved, **{p.name: bound[p.name] for p in op.params if p.keyword_only})
        return tuple(result) if op.multiple else (result,)
    values = dict(bound)
    for name in op.tensors:
        values[name] = primals(op, name, bound)
        values[f"{name}_t"] = tangent_argument(op, name, bound)
        shape_facts(values, name)
    values.update({name: strip(out) for name, out in zip(op.outputs, outs, strict=False)})
    if op.jvp is elementwise:
        (name,) = op.differentiable
        formula = op.formulas[name]
        values["grad"] = conjugate(values[f"{name}_t"])
        tangent = formula(*[values[n] for n in names_of(formula)])
        return (tangent.conj_physical() if tangent._array.dtype.kind == "c" else tangent,)
    result = op.jvp(*[values[n] for n in names_of(op.jvp)])
    place = place_among(bound.values())
    return tuple(zeros(part, place) for part in (result if op.multiple else (result,)))


def conjugate(tensor: Any) -> Any:
    """Complex derivatives are conjugated on the way back, so the tangent is conjugated around the same formula."""
    return tensor.conj() if tensor._array.dtype.kind == "c" else tensor


def shape_facts(values: Bound, name: str) -> None:
    """What formulas may ask of an input instead of the input."""
    value = values[name]
    if isinstance(value, Tensor):
        values[f"{name}_sym_sizes"] = value._array.shape
        values[f"{name}_sym_numel"] = value._array.size
        values[f"{name}_dtype"] = value._array.dtype
    elif isinstance(value, list):
        values[f"{name}_shapes"] = [None if t is None else t._array.shape for t in value]


def primals(op: Op, name: str, bound: Bound) -> Any:
    """The inputs without their tangents."""
    value = bound[name]
    if op.kinds[name] == "list":
        return [strip(t) for t in value]
    return strip(value)


def linear_argument(op: Op, name: str, bound: Bound) -> Any:
    """What a linear op gets for an argument: its tangent, but indices and masks as they are."""
    value = bound[name]
    if isinstance(value, Tensor) and value._array.dtype.kind in "iub" and name not in op.promote:
        return value
    return tangent_argument(op, name, bound)


def tangent_argument(op: Op, name: str, bound: Bound) -> Any:
    """The tangent of an input; a zero if it has none; plain arguments as they are."""
    value = bound[name]
    if op.kinds[name] == "list":
        return [tangent_or_absent(t) for t in value]
    return tangent_or_absent(value) if op.kinds[name] != "plain" else value


def tangent_or_absent(value: Any) -> Any:
    """The tangent of a tensor, or what stands for one that is absent."""
    return value._tangent if isinstance(value, Tensor) and value._tangent is not None else absent(value)


def strip(value: Any) -> Any:
    """The same tensor, value and history, without its tangent: what a rule means by `self`."""
    if not isinstance(value, Tensor) or value._tangent is None:
        return value
    out = wrap(value._array)
    out._requires_grad, out._counter = value._requires_grad, value._counter
    edge = edge_of(value)
    if edge is value:
        edge = accumulator_of(value)  # gradients of the stand-in go to the leaf it stands for
    out._edge = edge
    return out


def tangent_of(tensor: Tensor) -> Tensor | None:
    """The tangent of a tensor. A view made before a write let its base move finds its own there."""
    view = tensor._view
    if view is None or tensor._tangent is not None or view.base._tangent is None:
        return tensor._tangent
    extra = tensor._extra
    if extra is not None and extra.epoch == modes.dual_epoch:
        return None  # it was made to hold still
    return tangent_through_base(tensor)


def hold_still(view: Tensor) -> None:
    """A view of a dual tensor that does not move: its primal value."""
    extra = extra_of(view)
    extra.tangent, extra.epoch = None, modes.dual_epoch


def lies_alike(tensor: Tensor, tangent: Tensor) -> bool:
    """True if both lie the same way in memory of the same size: then a view of one is a view of the other."""
    a, b = tensor._array, tangent._array
    return bool(geometry_of(a) == geometry_of(b) and memory_of(a).size == memory_of(b).size)


def laid_out_like(tensor: Tensor, tangent: Tensor) -> Tensor:
    """A copy of a tangent, part of its graph, in the layout of its tensor."""
    return tangent.new_empty_strided(*geometry_of(tensor._array)[:2]).copy_(tangent)


def set_tangent_inplace(tensor: Tensor, tangent: Tensor) -> None:
    """After an in-place op: the new tangent, in the memory of the old one, so that views of it see the change too."""
    before = tensor._tangent
    if before is None and tensor._view is not None:
        before = tangent_through_base(tensor)
    if before is None:
        copy = tangent.clone()
        alike = geometry_of(tensor._array)[:2] == geometry_of(copy._array)[:2]
        tensor._tangent = copy if alike or type(copy) is not Tensor else laid_out_like(tensor, tangent)
    elif before._array is not tangent._array:
        same_memory = type(tangent) is Tensor and memory_of(before._array) is memory_of(tangent._array)
        tangent = tangent.clone() if same_memory else tangent
        if overlaps_itself(tensor._array):
            write_stretched(before, tangent)
        else:
            before.copy_(tangent)


def write_stretched(target: Tensor, result: Tensor) -> None:
    """Write where several indices may name one element: what one of them changed it to is what it becomes."""
    for dim in reversed(range(target.ndim)):
        if target.stride(dim) == 0 and target.shape[dim] > 1:
            first = (result != target).to(int64).argmax(dim, keepdim=True)
            result, target = result.gather(dim, first).select(dim, 0), target.select(dim, 0)
    target.copy_(result)


def tangent_through_base(view: Tensor) -> Tensor | None:
    """The tangent of a view as a window onto its base's, which is made if there is none."""
    assert view._view is not None
    base = view._view.base
    if base._tangent is None:
        base._tangent = still(base)
    tangent = base._tangent
    for _, step in view._view.steps or (window_step(base._array, view._array),):
        tangent = step(tangent)
    view._tangent = tangent
    return tangent
