"""`out=`: results written into tensors the caller brought."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign
from pullback._arrays.memory import overlaps, overlaps_itself, overlaps_partially, resized
from pullback._device import CPU
from pullback._dtype import FROM_NUMPY, bool_, can_cast
from pullback._dtype import dtype as DTYPE
from pullback._lazy import store, stored
from pullback._modes import is_grad_enabled, modes
from pullback._op.declare import Declaration, Op, functions, spaces
from pullback._op.named import ReturnType, return_type, returned_out
from pullback._op.results import Bound, differentiable_inputs, record
from pullback._runtime import messages
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, about_to_write, bump_version, new, wrap
from pullback.autograd.locations import mark
from pullback.autograd.node import Node
from pullback.autograd.numbering import numbers
from pullback.autograd.view import check_inplace, edge_of, rebase_history, wants_grad


def check_targets(name: str, out: Any, count: int | None = 1) -> None:
    """Raise unless results go into so many tensors; None stands for any number."""
    several, name = isinstance(out, (tuple, list)), name.lstrip("_")
    if several is (count == 1) or not all(isinstance(target, Tensor) for target in as_list(out)):
        wanted = "Tensor" if count == 1 else "tuple of Tensors"
        raise TypeError(f"{name}(): argument 'out' must be {wanted}, not {messages.type_name(out)}")
    if several and count is not None and len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")


def refuse_number_first(declared: Declaration, name: str, given: tuple[Any, ...]) -> None:
    """Raise if there is no such op with `out=`."""
    if declared.out_tensor_first and not isinstance(given[0], Tensor):
        kinds = ", ".join([messages.type_name(value) for value in given])
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}, out=Tensor), but expected one of:\n"
            " * (Tensor input, Tensor other, *, Tensor out = None)\n * (Number self, Tensor other)\n"
            " * (Tensor input, Number other, *, Tensor out = None)\n"
        )


def refuse_recording(op: Op, bound: Bound, out: Any) -> None:
    """Raise if gradients are wanted: what is written into `out` has no history."""
    check_targets(op.name, out, None if op.variadic else op.visible)
    refuse_number_first(op, op.name, tuple(bound.values()))
    if op.check_target is not None:
        op.check_target(out)
    ends = op.node_name == "NotImplemented" or op.out_ends_history
    if is_grad_enabled() and not ends and (op.differentiable or op.out_name):
        inputs = [t for t in differentiable_inputs(op, bound) if isinstance(t, Tensor)]
        if any(wants_grad(t) for t in inputs) or any(wants_grad(t) for t in as_list(out)):
            raise RuntimeError(messages.out_requires_grad(op.out_name or op.name))
    elif ends:
        refuse_leaf(op.name, as_list(out))
    if modes.dual_level >= 0:
        given = [item for value in bound.values() for item in (value if type(value) in (list, tuple) else (value,))]
        if not op.differentiable and op.path.startswith("special."):
            given = []  # torch asks only whether what is written to moves
        refuse_tangents(op.name, [*given, *as_list(out)])


def refuse_tangents(name: str, given: list[Any]) -> None:
    """Raise if something moves: what is written into `out` would have to move with it."""
    if any(isinstance(value, Tensor) and value._tangent is not None for value in given):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )


def refuse_leaf(name: str, targets: list[Any]) -> None:
    """Raise if a function torch has no derivative of would write to a leaf whose gradient is wanted."""
    for target in targets:
        written = target if target._view is None else target._view.base
        if is_grad_enabled() and written.is_leaf and wants_grad(written):
            raise RuntimeError(messages.out_requires_grad(f"aten::{name}"))


class Overwritten(Node):
    """The node of a tensor that such a function has written to."""

    __slots__ = ("function",)
    __module__ = "builtins"

    function: str

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Refuse."""
        raise RuntimeError(f"derivative for aten::{self.function} is not implemented")

    backward_tensors = backward


Overwritten.__name__ = Overwritten.__qualname__ = "NotImplemented"


def end_history(name: str, target: Tensor, operands: list[Tensor] | None = None) -> None:
    """After the write: the history of what was there before, and of operands, ends in a node without a derivative."""
    involved = [target, *(operands or [])]
    if is_grad_enabled() and target.dtype.category >= 2 and any(wants_grad(tensor) for tensor in involved):
        node = new(Overwritten)
        node.function, node.hooks, node.edges = name, None, tuple([edge_of(tensor) for tensor in involved])
        node.shape, node.dtype = target._array.shape, target._array.dtype
        node.sequence_nr = numbers.next()
        mark(node)
        rebase_history(target, node)


def write_out(op: Op, bound: Bound, outs: Any, out: Any) -> Any:
    """Write what a forward returned into `out` (a tensor, or a tuple of them) and return it."""
    arrays = outs if op.variadic else outs[: op.visible] if op.multiple else [outs]
    targets = as_list(out)
    if len(targets) != len(arrays):
        raise TypeError(f"expected tuple of {len(arrays)} elements but got {len(targets)}")
    if op.check_out is not None:
        op.check_out(targets, arrays, bound)
    else:
        check_partial_overlap(targets, checked_operands(op, tuple(bound.values())))
    for target, array in zip(targets, arrays, strict=True):
        if op.out_dtype is not None:
            op.out_dtype(op.name, target, array, len(targets) == 1)
        check_fits(target, array)
        if op.out_overlap != "self" or bound[op.params[0].name] is target:
            check_not_stretched(target, array, tuple(bound.values()))
    node = record(op, bound, [wrap(array) for array in arrays]) if op.node_name == "NotImplemented" else None
    for target, array in zip(targets, arrays, strict=True):
        write(target, array, op)
        if node is not None and FROM_NUMPY[target._array.dtype].category >= 2:
            rebase_history(target, node)
        elif op.node_name == "NotImplemented":
            end_history(op.name, target)
        elif op.out_ends_history:
            end_history(op.name, target, [t for t in differentiable_inputs(op, bound) if isinstance(t, Tensor)])
    if op.variadic:
        return None
    if op.visible == 1 or (op.fields is not None and not isinstance(op.fields, type)):
        return out
    return returned_out(op.fields or return_type(op.name, op.outputs[: op.visible]), targets)


EXPECTED = "Expected out tensor to have dtype {c_wanted}, but got {c_got} instead"
"""What torch says of most targets that would have to be converted to."""


def exactly(text: str) -> Callable[..., None]:
    """The demand that `out` has the dtype of the result, with what torch says of others."""

    def check(name: str, target: Tensor, array: np.ndarray[Any, Any], lone: bool) -> None:
        if target._array.dtype != array.dtype:
            wanted, got = FROM_NUMPY[array.dtype], target.dtype
            names = {"wanted": wanted.scalar_type, "got": got.scalar_type}
            raise RuntimeError(text.format(**names, c_wanted=wanted.cpp_name, c_got=got.cpp_name))

    return check


def each(demand: Callable[..., None]) -> Callable[..., None]:
    """A demand on one target as the check of all."""

    def check(targets: list[Any], arrays: list[Any], bound: Bound) -> None:
        for target, array in zip(targets, arrays, strict=True):
            demand("", target, array, len(targets) == 1)

    return check


exact = exactly(EXPECTED)


def decided(declared: Declaration, dtype: Any, out: Any) -> Any:
    """The dtype to compute in, where `out=` has a say in it."""
    if isinstance(out, Tensor) and isinstance(dtype, DTYPE):
        exact(declared.name, out, np.empty(0, dtype.numpy), True)
    elif isinstance(out, Tensor) and dtype is None and declared.out_decides == "computed":
        return out.dtype
    return dtype


found = exactly("Found dtype {got} but expected {wanted}")
as_input = exactly("result dtype {got} does not match input dtype {wanted}")


def exact_beside_indices(name: str, target: Tensor, array: np.ndarray[Any, Any], lone: bool) -> None:
    """The same, but the largest of all elements, which comes alone, is converted."""
    if not lone:
        exact(name, target, array, lone)


def checked_operands(declared: Declaration, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands that what is written may not overlap in part; those in a list it may not overlap at all."""
    if declared.out_overlap == "apart":
        apart = [item for value in given[1:] for item in (value if isinstance(value, (list, tuple)) else (value,))]
        return (given[0], apart)
    return () if declared.out_overlap == "unchecked" else given[:1] if declared.out_overlap == "self" else given


def check_partial_overlap(targets: list[Any], given: tuple[Any, ...]) -> None:
    """Raise if writing a result would change an operand halfway through; what is joined may not be written at all."""
    for target in targets:
        for value in given:
            if isinstance(value, Tensor):
                if overlaps_partially(stored(target), stored(value)):
                    raise RuntimeError(messages.PARTIAL_OVERLAP)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    # A tensor is not apart from itself, even if it has no elements.
                    if item is target or (isinstance(item, Tensor) and overlaps(stored(target), stored(item))):
                        raise RuntimeError(messages.PARTIAL_OVERLAP)


def no_overlap(targets: list[Any], arrays: list[Any], bound: Bound) -> None:
    """The check of an op that reads its inputs while it writes: not even an input itself may be written to."""
    for target in targets:
        if overlaps_itself(target._array):
            raise RuntimeError(messages.OVERLAP)
        for value in bound.values():
            for given in value if isinstance(value, (list, tuple)) else (value,):
                shared = (
                    isinstance(given, Tensor) and target.numel() and np.shares_memory(stored(target), stored(given))
                )
                if given is target or shared:
                    raise RuntimeError(messages.PARTIAL_OVERLAP)


UNSAID = Declaration()


def said_by(name: str) -> Declaration:
    """What the function of a name declares, here or in torch's namespace; nothing if both know it by another."""
    if name in functions:
        return functions[name]
    declared: Declaration = getattr(spaces["torch"].get(name), "op", UNSAID)
    return declared


def write_result(name: str, result: Any, out: Any, given: tuple[Any, ...] = (), differentiable: bool = True) -> Any:
    """The same for a function written in terms of ops: its result, made of what was `given`, goes into `out`."""
    declared = said_by(name)
    targets, results = as_list(out), as_list(result)
    check_targets(name, out, len(results) if isinstance(result, (tuple, list)) else 1)
    refuse_number_first(declared, name, given)
    copies = declared.out_copies(given) if callable(declared.out_copies) else declared.out_copies
    moving = modes.dual_level >= 0 and any(t._tangent is not None for t in (*targets, *results))
    if copies and (moving or (is_grad_enabled() and (wants_grad(result) or wants_grad(out)))):
        if declared.out_dtype is not None:
            declared.out_dtype(name, out, result._array, True)
        check_fits(out, result._array)
        make_room(out, result._array, declared)
        return out.copy_(result)
    if results[0].dtype is bool_ and declared.out_dtype is not None:  # of questions, which have no derivative
        declared.out_dtype(name, targets[0], results[0]._array, len(targets) == 1)
    if declared.out_ends_history:
        refuse_leaf(name, targets)
    elif is_grad_enabled() and differentiable and any(wants_grad(t) for t in (*targets, *results)):
        raise RuntimeError(messages.out_requires_grad(name))
    if moving and of_transform(*targets, *results) is None and FROM_NUMPY[results[0]._array.dtype].category >= 2:
        refuse_tangents(name, [*targets, *results])
    check_partial_overlap(targets, checked_operands(declared, given))
    if declared.out_overlap == "resized" and targets[0]._array.shape != results[0]._array.shape:
        check_partial_overlap(targets, (given if targets[0]._array.size else given[1:],))
    for target, value in zip(targets, results, strict=True):
        if declared.out_dtype is not None:
            declared.out_dtype(name, target, value._array, len(targets) == 1)
        check_fits(target, value._array)
        check_not_stretched(target, value._array, given)
    for target, value in zip(targets, results, strict=True):
        write(target, value, declared)
        if moving and value._tangent is None:
            target._tangent = None  # integers do not move, nor does what they are written into
        if declared.out_ends_history:
            end_history(name, target, [value])
    return returned_out(type(result), targets) if isinstance(result, ReturnType) else out


def as_list(out: Any) -> list[Any]:
    """One tensor or several, as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def check_fits(target: Tensor, array: np.ndarray[Any, Any]) -> None:
    """Raise, before anything is written, if the result's type cannot go there."""
    source, wanted = FROM_NUMPY[array.dtype], target.dtype
    if not can_cast(source, wanted):
        raise RuntimeError(messages.cannot_cast(source.scalar_type, wanted.scalar_type))
    if is_foreign(array) or is_foreign(target._array):
        here = array.device if is_foreign(array) else CPU
        if target.device is not here:
            raise RuntimeError(messages.two_devices(*sorted([here, target.device], key=lambda place: place is CPU)))
    if overlaps_itself(target._array):
        raise RuntimeError(messages.OVERLAP)
    check_inplace(target, False)


def check_not_stretched(target: Tensor, array: np.ndarray[Any, Any], given: tuple[Any, ...]) -> None:
    """Raise if the result goes where an operand is that was stretched to make it."""
    if target._array.shape == array.shape or not any(value is target for value in given):
        return
    mine, its = messages.shape_text(target._array.shape), messages.shape_text(array.shape)
    shapes = [value._array.shape for value in given if isinstance(value, Tensor)]
    try:
        stretched = np.broadcast_shapes(*shapes) == array.shape
    except ValueError:
        return
    if stretched:
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {its}")


def write(target: Tensor, result: Any, declared: Declaration) -> None:
    """Write one result, a tensor or an array, resizing the tensor it goes into if its shape differs."""
    kind = of_transform(target, result)
    if kind is not None:
        value = result if isinstance(result, Tensor) else wrap(result)
        kind.receive(target, value, lambda tensor, array: make_room(tensor, array, declared))
        return
    array = result._array if isinstance(result, Tensor) else result
    make_room(target, array, declared)
    about_to_write(target)
    store(target, array)
    bump_version(target)


def of_transform(*given: Any) -> Any:
    """The class among those of some tensors that says what it is to write into `out=`: of tensors of transforms."""
    return next((type(value) for value in given if hasattr(type(value), "receive")), None)


def make_room(target: Tensor, array: np.ndarray[Any, Any], declared: Declaration) -> None:
    """Give a tensor the shape of what is to be written into it."""
    if target._array.shape != array.shape:
        if target._tangent is not None:
            raise RuntimeError(messages.RESIZED_DUAL)
        if target._array.size:
            warn(
                f"An output with one or more elements was resized since it had shape "
                f"{messages.shape_text(target._array.shape)}, which does not match the required output shape "
                f"{messages.shape_text(array.shape)}. This behavior is deprecated, and in a future PyTorch release "
                "outputs will not be resized unless they have zero elements. You can explicitly reuse an out tensor t "
                "by resizing it, inplace, to zero elements with t.resize_(0).",
            )
        room = resized(stored(target), array.shape)
        rows = declared.out_by_rows
        by_rows = declared.out_overlap == "unchecked" or rows == "always" or (rows == "filled" and target._array.size)
        target._array = room if by_rows else in_order_of(array, room)


def in_order_of(array: np.ndarray[Any, Any], room: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Contiguous memory as a tensor whose dimensions lie in the order of the result's, where that leaves no gaps."""
    if array.flags.c_contiguous:
        return room
    order = sorted(range(array.ndim), key=lambda dim: -array.strides[dim])
    if not array.transpose(order).flags.c_contiguous:
        return room
    return room.reshape([array.shape[dim] for dim in order]).transpose(np.argsort(order))
