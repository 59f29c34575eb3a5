"""An op called with a batched tensor: run it on what the tensors hold, wrap the results, record them at this level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._arrays.memory import memory_of, overlaps_itself
from pullback._dtype import FROM_NUMPY, can_cast, result_numpy_dtype
from pullback._modes import is_grad_enabled, modes
from pullback._op import forward_mode
from pullback._op.declare import Op, called
from pullback._op.out import as_list, check_fits, write
from pullback._op.results import present, record
from pullback._runtime.messages import RESIZED_DUAL, cannot_cast, shape_text
from pullback._tensor import Tensor, counter_of
from pullback.autograd.view import wants_grad
from pullback.batching import custom, physical, rules_index, rules_nn  # noqa: F401 (they attach what they know)
from pullback.batching.physical import Call, EmptyBatch, Results, front, invoke
from pullback.batching.strategies import aligns, number_beside, of_nothing, rule_of, seen_array
from pullback.batching.tensor import BatchedTensor, at_level, batched, level_of, lifted, one_down
from pullback.batching.views import check_write, is_view, note_view, up_to_date, written
from pullback.ops.shape.reshape import expand, unsqueeze


def run_op(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """What an op call with a batched tensor among its arguments means."""
    if out is None and aligns(op) and not op.multiple:
        quick = run_pointwise(op, args)
        if quick is not None:
            return quick
    outs = run(op, list(args))
    if out is None:
        return present(op, outs)
    targets = as_list(out)
    if op.check_out is not None:
        arrays = [value._array for value in outs[: len(targets)]]
        op.check_out(targets, arrays, dict(zip(op.param_names, args, strict=True)))
    for target, value in zip(targets, outs, strict=False):
        if op.out_dtype is not None:
            op.out_dtype(op.name, target, value._array, len(targets) == 1)
        check_fits(target, value._array)
    for target, value in zip(targets, outs, strict=False):
        write(target, value, op)
    return out


def receive(target: Any, value: Any, resize: Callable[[Tensor, Any], None]) -> None:
    """Write a result into a tensor given as `out=`, where one of the two belongs to a transform."""
    if target._array.shape != value._array.shape:
        make_room(target, value._array, resize)
    target.copy_(value)


def make_room(target: Any, array: Any, resize: Callable[[Tensor, Any], None]) -> None:
    """Give a tensor the shape of what is to be written into it, on all levels."""
    if type(target) is not BatchedTensor:
        resize(target, array)
        return
    held: Any = target._array
    if held.bdim is not None:
        raise RuntimeError("vmap: out= has a batch and would have to be resized: use the function without out=")
    if target._tangent is not None:
        raise RuntimeError(RESIZED_DUAL)
    make_room(held.value, array, resize)
    target._array = batched(held.value, None, held.level)._array


def run_pointwise(op: Op, args: tuple[Any, ...]) -> Any:
    """A pointwise op on operands that need not move: the same dtype, the batch in front; None for any other call."""
    first: Any = None
    values, others = [], []
    tracked = modes.dual_level >= 0
    for arg in args:
        if type(arg) is BatchedTensor:
            array: Any = arg._array
            if first is None:
                first = array
            elif array.bdim is None and array.level == first.level and is_constant(arg):
                others.append(array)
                values.append(array.value)
                continue
            if array.level != first.level or array.bdim != 0 or array.ndim != first.ndim or array.dtype != first.dtype:
                return None
            if "source" in arg.__dict__:
                up_to_date(arg)
            tracked = tracked or arg._requires_grad
            values.append(array.value)
        else:
            if isinstance(arg, Tensor):
                others.append(arg._array)
            values.append(arg)
    for array in others:
        if array.ndim > first.ndim or array.dtype != first.dtype:
            return None
    result = batched(one_down(first.level, called, op, values), 0, first.level)
    if tracked:
        note(op, list(args), [result], first.level)
    return result


def is_constant(tensor: BatchedTensor) -> bool:
    """True for a tensor of this level that does not differ between entries, and neither moves nor wants a gradient."""
    return not tensor._requires_grad and tensor._tangent is None and "source" not in tensor.__dict__


def note(op: Op, args: list[Any], outs: list[Any], level: int) -> None:
    """Record a call at its level, and push its tangents."""
    tracked = is_grad_enabled() and any(wants_at(arg, level) for arg in args)
    if not tracked and modes.dual_level < 0:
        return
    own = [at(arg, p.kind, level) for p, arg in zip(op.params, args, strict=True)]
    bound = dict(zip(op.param_names, own, strict=True))
    if tracked:
        record(op, bound, outs)
    if modes.dual_level >= 0:
        forward_mode.push(op, bound, outs)


def run(op: Op, args: list[Any]) -> list[Any]:
    """Every output of the op, batched at the highest level among its arguments."""
    level = 0
    for arg in args:
        if type(arg) is BatchedTensor:
            level = max(level, arg._array.level)
            if "source" in arg.__dict__:
                up_to_date(arg)
        elif type(arg) is list or type(arg) is tuple:
            for item in arg:
                if type(item) is BatchedTensor:
                    level = max(level, item._array.level)
                    up_to_date(item)
    results = one_down(level, run_physically, physical_call(op, args, level))
    outs = [None if out is None else batched(out, dim, level) for out, dim in results]
    note(op, args, outs, level)
    if op.view and type(args[0]) is BatchedTensor and level_of(args[0]) == level:
        for position, out in enumerate(outs):
            note_view(out, args[0], op, args[1:], position)
    return outs


def wants_at(arg: Any, level: int) -> bool:
    """True if an argument wants a gradient at this level."""
    if type(arg) in (list, tuple):
        return any(wants_at(item, level) for item in arg)
    return type(arg) is BatchedTensor and arg._requires_grad and level_of(arg) == level


def at(arg: Any, kind: str, level: int) -> Any:
    """An argument as the record of this level sees it: tensors of lower levels want no gradient here."""
    if kind == "list":
        return [item if item is None else recorded_at(item, level) for item in arg]
    return recorded_at(arg, level) if isinstance(arg, Tensor) else arg


def recorded_at(tensor: Tensor, level: int) -> Any:
    """A tensor as a node of this level saves it: one of a lower level keeps count of what is written to it there."""
    out = lifted(tensor, level)
    if out is not tensor:
        out._counter = counter_of(tensor)
    return out


def physical_call(op: Op, args: list[Any], level: int) -> Call:
    """The call on what the tensors hold."""
    values: list[Any] = []
    dims: list[Any] = []
    size, some = 0, False
    for parameter, arg in zip(op.params, args, strict=True):
        if parameter.kind == "list":
            pairs = [at_level(item, level) for item in arg]
            values.append([value for value, _ in pairs])
            dims.append([dim for _, dim in pairs])
            for value, dim in pairs:
                if dim is not None:
                    size, some = value._array.shape[dim], True
            continue
        value, dim = at_level(arg, level)
        if dim is not None:
            size, some = value._array.shape[dim], True
        values.append(value)
        dims.append(dim)
    return Call(op, values, dims, size, some)


def run_physically(call: Call) -> Results:
    """The results on what the tensors hold, and where the batch is in each."""
    if not call.batched:
        return [(out, None) for out in invoke(call.op, call.args)]
    op = call.op
    if len(op.promote) > 1 and op.vmap != "boxed":
        promote(call)
    try:
        return rule_of(op)(call)
    except EmptyBatch:
        return of_nothing(call)


def promote(call: Call) -> None:
    """Dtypes are promoted by what the program sees: a batch of numbers counts as numbers, not as a vector."""
    op = call.op
    places = [op.param_names.index(name) for name in op.promote if op.kinds[name] != "list"]
    tensors = [i for i in places if isinstance(call.args[i], Tensor)]
    if len({call.args[i]._array.dtype for i in tensors}) < 2:
        return
    if op.check_operands is not None and call.size and not number_beside(call):
        op.check_operands(**dict(zip(op.param_names, call.entry(0), strict=True)))
    seen = [seen_array(call, i) if isinstance(call.args[i], Tensor) else call.args[i] for i in places]
    dtype = FROM_NUMPY[result_numpy_dtype(seen)]
    for i in tensors:
        call.args[i] = call.args[i].to(dtype)


# ------------------------------------------------------------------ in place


def run_inplace(op: Op, self: Any, args: tuple[Any, ...]) -> Any:
    """An in-place op with a batched tensor among its operands: computed as usual, then written into what self holds."""
    level = max(level_of(item) for arg in (self, *args) for item in (arg if type(arg) in (list, tuple) else (arg,)))
    outs = run(op, [one_down(level_of(self), before_write, op, self), *args])
    recorded = is_grad_enabled() and (bool(op.differentiable) or op.overwrites is not None)
    one_down(level, write_below, op, self, outs[0], level, recorded)
    if level_of(self) == level:  # else it was written to as what it is
        written(self, outs[0], recorded)
    return self


def write_below(op: Op, self: Any, out: Any, level: int, recorded: bool) -> None:
    """Write a result into what a tensor holds."""
    value, bdim = at_level(self, level)
    result, where = at_level(out, level)
    if bdim is None and where is not None:
        raise RuntimeError(too_small(op, self, result, level))
    if bdim is not None:
        result = unsqueeze(result, 0) if where is None else front(result, where)
        value = front(value, bdim)
        result = expand(result, value._array.shape) if result._array.shape != value._array.shape else result
    if level_of(self) < level and (out._tangent is not None or out._requires_grad):
        raise RuntimeError(captured(op))
    if memory_below(value) is memory_below(result):
        result = result.clone()  # `x[1:] += y` copies a view onto itself, in the end
    if level_of(self) == level and recorded:
        check_write(self, out._requires_grad)
    if not can_cast(result.dtype, value.dtype) and op.name != "copy":
        raise RuntimeError(cannot_cast(result.dtype.scalar_type, value.dtype.scalar_type))
    stretched = overlaps_itself(value._array) and value._array.dtype.kind in op.may_overlap
    forward_mode.write_stretched(value, result) if stretched else value.copy_(result)


def memory_below(tensor: Any) -> Any:
    """The memory that holds the elements, below all levels."""
    while type(tensor) is BatchedTensor:
        tensor = tensor._array.value
    return memory_of(tensor._array)


def before_write(op: Op, self: Any) -> Any:
    """Self, or a copy with its history where the node, or a recorded tangent, will need the value it has now."""
    if type(self) is not BatchedTensor or not is_grad_enabled():
        return self
    if op.param_names[0] not in op.saved and modes.dual_level < 0:
        return self
    if is_view(self):
        up_to_date(self)
    array: Any = self._array
    out = batched(array.value.clone(), array.bdim, array.level)
    out._edge, out._requires_grad, out._tangent = self._edge, self._requires_grad, self._tangent
    return out


def captured(op: Op) -> str:
    """The text for a tensor from outside a transform that something inside it is written into."""
    return (
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"(aten::{op.name}_) that would mutate a captured Tensor. This is not supported; please rewrite the function "
        "being transformed to explicitly accept the mutated Tensor(s) as inputs."
    )


def too_small(op: Op, self: Any, result: Any, level: int) -> str:
    """The text for a tensor without batch that a batched one is written into."""
    if op.name == "add":
        mine, its = shape_text(self._array.shape), shape_text(result._array.shape)
        return f"output with shape {mine} doesn't match the broadcast shape {its}"
    shown, where = f"aten::{op.name}_", f"at level {level}"
    if op.promote or op.vmap_inplace:
        shown, where = op.vmap_inplace or "inplace arithmetic", "in a vmap"
    return (
        f"vmap: {shown}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that "
        "has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
        f"over {where}. Please try to use out-of-place operators instead of {shown}. If said operator is being called "
        "inside the PyTorch framework, please file a bug report instead."
    )


def wants(tensor: Any) -> bool:
    """True if a gradient is wanted for a tensor, at its level or below."""
    while type(tensor) is BatchedTensor:
        if tensor._requires_grad:
            return True
        tensor = tensor._array.value
    return wants_grad(tensor)


physical.attached["run"] = run
BatchedTensor.receive = receive
BatchedTensor.run_op = staticmethod(run_op)
BatchedTensor.run_inplace = staticmethod(run_inplace)
