"""The reference path: what an op call means, in full. Every call the fast path does not recognise comes here.

    overrides -> operands (types, promotion) -> check -> forward -> out= | wrap, record -> tangents

`PULLBACK_REFERENCE=1` sends every call here, so the two paths can be checked against each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import wrap_number
from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.kinds import as_array, foreign_among, is_sparse, laid_out, read_for
from pullback._arrays.memory import empty_in_order, order_of_result
from pullback._arrays.packed import PackedArray
from pullback._arrays.sizes import check_ints, meaning, without_bools
from pullback._device import CPU
from pullback._dtype import FROM_NUMPY, defaults, result_numpy_dtype
from pullback._lazy import stored
from pullback._modes import beyond_casts, modes
from pullback._op import forward_mode, overrides, packed
from pullback._op.arguments import refuse_wrong_types
from pullback._op.constants import constant, in_formula, unrounded
from pullback._op.declare import Op
from pullback._op.missing import MISSING, refuse_missing
from pullback._op.out import decided, refuse_recording, write_out
from pullback._op.results import Bound, bring_up_to_date, finish, present
from pullback._op.signatures import public_name
from pullback._op.ufuncs import chosen_forward, deciding, large_forward, lays_out, ufunc_of
from pullback._runtime import messages
from pullback._runtime.quiet import SILENT, catch_up, errors, quiet, waiting
from pullback._tensor import Tensor, wrap
from pullback._thresholds import LARGE, MANY
from pullback.autograd import who
from pullback.autograd.saved import unpack_slot
from pullback.kernels.jit.small.choose import Chooser, Variants

elsewhere: dict[type[Any], Any] = {}
"""Fast paths of their own, by op, of classes of tensors: see kernels/cuda/eager.py."""


def apply(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """Call an op: the meaning of every call."""
    if elsewhere and out is None and args and not beyond_casts.active:
        first: Any = args[0]
        roads = elsewhere.get(type(first[0]) if type(first) is list and first else type(first))
        if roads is not None:
            return roads[op](*args)
    return by_reference(op, args, out)


def by_reference(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """The same in full, step by step."""
    bound = dict(zip(op.param_names, args, strict=True))
    for value in args:
        if value is MISSING:
            refuse_wrong_types(op, args, out)
            refuse_missing(op.name, {public_name(name): value for name, value in bound.items()})
    if out is not None and op.out_decides:
        bound["dtype"] = decided(op, bound["dtype"], out)
        args = tuple(bound.values())
    kind = overrides.deciding_class(args)
    if kind is not None:
        return overrides.dispatch(op, kind, args, out)
    try:
        if modes.dispatch is not None:
            return modes.dispatch.call(op, bound, out)
        return measured(op, bound, out)
    except Exception as error:
        if isinstance(error, (AttributeError, TypeError)):
            counted = tuple([without_bools(value) for value in args])
            if any([value is not given for value, given in zip(counted, args, strict=True)]):
                return by_reference(op, counted, out)
        if not op.private:
            refuse_wrong_types(op, args, out)
        raise


def measured(op: Op, bound: Bound, out: Any = None) -> Any:
    """The call, of which a profiler is told."""
    if modes.profiler is not None:
        return modes.profiler.call(op, bound, out, call)
    return call(op, bound, out)


def arrays_of(op: Op, bound: Bound) -> list[Any]:
    """The arrays of the tensors an op was given. Not inside of a `try`: from Python 3.12 on an interrupt in a
    comprehension there may miss its `finally`."""
    return [value._array for name in op.tensors if isinstance(value := bound[name], Tensor)]


def as_converted(op: Op, bound: Bound, arrays: Bound) -> list[Any]:
    """The operands as they decide about the memory order: what is stretched and converted has memory of its own."""
    given = arrays_of(op, bound)
    named = [arrays[name] for name in op.tensors if isinstance(bound[name], Tensor)]
    for at, (array, converted) in enumerate(zip(given, named, strict=True)):
        if type(array) is np.ndarray is type(converted) and array.dtype is not converted.dtype and 0 in array.strides:
            given[at] = laid_out(np.empty(array.shape, converted.dtype), [array])
    return given


def call(op: Op, bound: Bound, out: Any = None) -> Any:
    """The call itself, once nobody overrides it."""
    if waiting:
        catch_up()
    loudness = errors.get()
    try:
        errors.set(SILENT)
        arrays = operands(op, bound)
        bring_up_to_date(op, bound)
        if out is not None:
            refuse_recording(op, bound, out)
        try:
            outs = arrays[op.param_names[0]] if op.flips else compute(op, arrays)
        except (RuntimeError, ValueError) as error:
            who.explain(error, {name: bound[name] for name in op.tensors})
            raise
        if lays_out(op):
            outs = laid_out(outs, deciding(op, as_converted(op, bound, arrays)))
        if out is not None:
            return write_out(op, bound, outs, out)
    finally:
        errors.set(loudness)
    tensors = finish(op, outs, bound)
    if modes.dual_level >= 0:
        forward_mode.push(op, bound, tensors)
        tensors = forward_mode.claimed(op, tensors)
    return present(op, tensors)


OPERANDS = (Tensor, int, float, complex, np.generic)
"""What Python's operators compute with; anything else may know better itself."""


def apply_operator(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """`apply` for Python operators: an operand of a foreign type gets its chance to answer."""
    for name, value in zip(op.param_names, args, strict=True):
        if op.kinds[name] in ("tensor", "number") and not may_answer(value):
            return NotImplemented
    return apply(op, args, out)


def may_answer(value: Any) -> bool:
    """Whether an operator computes with it, or asks its `__torch_function__`: that comes before methods as __radd__."""
    return isinstance(value, OPERANDS) or overrides.overrides(type(value))


# ------------------------------------------------------------------ operands

NUMBERS = ("Number", "float", "int")
"""Annotations of plain parameters for which a tensor without dimensions and gradient counts as its number."""


def operands(op: Op, bound: Bound, twin: bool = False) -> Bound:
    """The arguments with arrays for tensors, all promoted as the op asks; `twin` says it is the in-place one."""
    if op.check_operands is not None:
        op.check_operands(**bound)
    for name, value in bound.items():
        if isinstance(value, Tensor) and value.dim() == 0 and str(op.annotations.get(name)).startswith(NUMBERS):
            if not value.requires_grad:
                bound[name] = value.item()
    arrays = dict(bound)
    for position, name in enumerate(op.param_names):
        kind = op.kinds[name]
        if kind != "plain":
            arrays[name] = operand(op, name, kind, position, bound, twin)
    foreign = foreign_among(arrays.values())
    if foreign is PackedArray:
        return packed.prepared(op, arrays)
    if foreign is not None and foreign.device is not CPU:
        named = [(name, arrays[name]) for name in op.tensors]
        given = [(name, a) for name, value in named for a in (value if type(value) is list else (value,))]
        foreign.check_devices(op, [(name, a) for name, a in given if isinstance(a, np.ndarray)])
    group = [name for name in op.promote if arrays[name] is not None]
    if group:
        flat = [a for name in group for a in (arrays[name] if op.kinds[name] == "list" else [arrays[name]])]
        if op.stretched and not arrays[op.stretched].ndim:
            flat[group.index(op.stretched)] = arrays[op.stretched].reshape(1)
        if flat:
            promote(op, arrays, group, result_numpy_dtype(flat))
    elif op.floats:
        name = op.tensors[0]
        promote(op, arrays, [name], arrays[name].dtype)
    return arrays


def operand(op: Op, name: str, kind: str, position: int, bound: Bound, twin: bool = False) -> Any:
    """One argument as an array (several for a list); a Python number stays one until dtypes are known."""
    value = bound[name]
    if isinstance(value, Tensor):
        if kind == "list":
            raise wrong_type(op, name, position, value, "tuple of Tensors")
        return stored(value) if op.view and position == 0 else value._array
    if kind == "number":
        if isinstance(value, np.generic):
            value = bound[name] = value.item()
        if isinstance(value, (bool, int, float, complex)):
            return value
    if kind == "list":
        if not isinstance(value, (list, tuple)):
            raise wrong_type(op, name, position, value, "tuple of Tensors")
        bound[name] = list(value)
        for i, item in enumerate(value):
            if not isinstance(item, Tensor) and item is not None:
                found = messages.type_name(item)
                raise TypeError(f"expected Tensor as element {i} in argument {position}, but got {found}")
        return [None if item is None else item._array for item in value]
    if kind == "optional" and value is None:
        return None
    raise wrong_type(op, name, position, value, "Tensor", twin)


def wrong_type(op: Op, name: str, position: int, value: Any, wanted: str, twin: bool = False) -> TypeError:
    """Torch's TypeError for an argument of the wrong type."""
    shown = "input" if name == "self" else name
    if twin:
        return TypeError(
            f"{op.name}_(): argument '{shown}' (position {position}) must be {wanted}, not {messages.type_name(value)}"
        )
    return TypeError(
        f"{op.name}(): argument '{shown}' (position {position + 1}) must be {wanted}, not {messages.type_name(value)}"
    )


def promote(op: Op, arrays: Bound, group: list[str], dtype: np.dtype[Any]) -> None:
    """Bring a group of operands to one dtype."""
    if op.floats and FROM_NUMPY[dtype].category < 2:
        dtype = defaults.numpy
    for name in group:
        value = arrays[name]
        if name == op.unrounded and is_half(dtype):
            arrays[name] = beside_half(value, dtype)
        else:
            arrays[name] = [cast(a, dtype) for a in value] if op.kinds[name] == "list" else cast(value, dtype)


def beside_half(value: Any, dtype: np.dtype[Any]) -> Any:
    """An operand that is not rounded to half precision: a number, or a tensor without dimensions of another dtype."""
    if isinstance(value, np.ndarray):
        return cast(value, dtype if value.ndim or value.dtype is dtype else SINGLE)
    array = unrounded(value, dtype)
    return cast(value, SINGLE) if array is None else array


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """An operand in another dtype."""
    if isinstance(value, np.ndarray):
        if value.dtype is dtype:
            return value
        if 0 not in value.strides or is_sparse(value):
            return quiet().run(value.astype, dtype)
        # NumPy would take a stretched dimension for the innermost.
        out = read_for((value,), empty_in_order)(value.shape, order_of_result([value], value.shape), dtype)
        np.copyto(out, value, casting="unsafe")
        return out
    array = constant(value, dtype)
    if array is None:
        if hasattr(value, "in_dtype"):  # a number that a program computes
            return value.in_dtype(dtype)
        if isinstance(value, int) and dtype.kind in "iu":
            value = wrap_number(value, FROM_NUMPY[dtype])
        array = np.asarray(value).astype(dtype)
    return array


# ------------------------------------------------------------------ computing


def compute(op: Op, arrays: Bound) -> Any:
    """Check the operands, run the forward, and say what is wrong in torch's words if it fails."""
    try:
        return computed(op, arrays)
    except (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        plain = [
            p.name
            for p in op.params
            if p.kind == "plain" and p.name != "value" and "Number" not in str(op.annotations.get(p.name))
        ]
        check_ints(op.name, {public_name(name): arrays[name] for name in plain})
        if "C int" in str(error) and type(dim := arrays.get("dim")) is int:  # dimensions are those for NumPy
            raise IndexError(messages.dim_out_of_range(dim, np.ndim(arrays[op.tensors[0]]))) from None
        translated = meaning(error)
        if translated is not None:
            raise translated from None
        if isinstance(error, TypeError) and op.tensors:
            refuse_complex_numbers(op, arrays)
        raise


def refuse_complex_numbers(op: Op, arrays: Bound) -> None:
    """After a failure: raise torch's error if a number that is used beside real ones is complex."""
    for p in op.params:
        if p.kind == "plain" and "Number" in str(op.annotations.get(p.name)) and isinstance(arrays[p.name], complex):
            kind = "double" if arrays[op.tensors[0]].dtype.itemsize > 4 else "float"
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow") from None


def computed(op: Op, arrays: Bound) -> Any:
    """What `compute` does if nothing is wrong with the sizes."""
    if len(op.promote) > 1 and op.check is None:
        check_broadcast([arrays[name] for name in op.promote])
    positional = [arrays[p.name] for p in op.params if not p.keyword_only]
    keywords = {p.name: arrays[p.name] for p in op.params if p.keyword_only}
    kind = foreign_among(arrays.values())
    if op.check is not None and kind is None:
        op.check(*positional, **keywords)
    limit = LARGE if ufunc_of(op) is None else MANY
    large = type(positional[0]) is np.ndarray and positional[0].size >= limit if positional else False
    try:
        if kind is not None:
            return kind.computed(op, positional, keywords)
        forward = large_forward(op) if large else chosen_forward(op)
        if type(forward) is Variants:
            outs = forward(*positional, *keywords.values())
        else:
            outs = (forward.head if type(forward) is Chooser else forward)(*positional, **keywords)
    except np.exceptions.AxisError as error:
        if error.axis is None or error.ndim is None:
            raise RuntimeError("dim appears multiple times in the list of dims") from error
        raise IndexError(messages.dim_out_of_range(error.axis, error.ndim)) from None
    except ValueError as error:
        if "could not be broadcast" in str(error):
            check_broadcast([arrays[name] for name in op.tensors if isinstance(arrays[name], np.ndarray)])
        raise
    if op.multiple:
        return [None if a is None else as_array(a) for a in outs]
    if op.unrounded and is_half(dtype := arrays[op.promote[0]].dtype):
        return np.asarray(outs, dtype)
    return as_array(outs)


def check_broadcast(arrays: list[Any]) -> None:
    """Raise torch's error for shapes that do not broadcast."""
    shape: tuple[int, ...] = ()
    for array in arrays:
        other = getattr(array, "shape", ())
        ndim = max(len(shape), len(other))
        a, b = (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(other)) + other
        for dim in reversed(range(ndim)):
            if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
                raise RuntimeError(messages.size_mismatch(a[dim], b[dim], dim))
        shape = tuple([n if m == 1 else m for n, m in zip(b, a, strict=True)])


# ------------------------------------------------------------------ reading saved values in backward


def load_array(node: Any, name: str, nr: int = 0) -> Any:
    """A saved value for the array reading: the rare cases."""
    value = unpack_slot(node, name, nr)
    if isinstance(value, Tensor):
        return value._array
    if value is None or node.dtype is None:
        return value
    return saved_number(node, value)


def load_tensor(node: Any, name: str, nr: int = 0) -> Any:
    """A saved value for the tensor reading."""
    value = unpack_slot(node, name, nr)
    if value is None or isinstance(value, Tensor):
        return value
    return wrap(saved_number(node, value))


def saved_number(node: Any, value: Any) -> Any:
    """A number that a node saved, as its formulas compute with it."""
    array = in_formula(value, node.dtype) if node.op.unrounded else None
    return cast(value, node.dtype) if array is None else array
