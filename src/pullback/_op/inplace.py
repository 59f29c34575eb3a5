"""The in-place twin of an op: compute, write into self, count the write, and give self the new history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.kinds import read_for
from pullback._arrays.memory import overlaps, overlaps_itself, overlaps_partially
from pullback._dtype import FROM_NUMPY, can_cast
from pullback._foreign import ForeignTensor
from pullback._lazy import LazyTensor, store, stored
from pullback._modes import claim, claimed_by, is_grad_enabled, modes
from pullback._op import apply, forward_mode, overrides
from pullback._op.arguments import refuse_call
from pullback._op.constants import constant, unrounded
from pullback._op.declare import REQUIRED, Op
from pullback._op.formerly import in_todays_order
from pullback._op.out import check_partial_overlap, checked_operands
from pullback._op.readings import forward_of
from pullback._op.results import Bound, bring_up_to_date, detached_at, differentiable_inputs, record, save
from pullback._op.shown import Shown
from pullback._op.signatures import NUMPY_NAMES
from pullback._op.ufuncs import is_traced, large_forward, refused_kinds, ufunc_of
from pullback._runtime import messages
from pullback._runtime.building import made
from pullback._runtime.quiet import quiet, quietly
from pullback._tensor import INFERENCE, Parameter, Tensor, about_to_write, bump_version, counter_of, wrap
from pullback._thresholds import LARGE
from pullback.autograd import who
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import check_inplace, edge_of, rebase_history, wants_grad
from pullback.kernels.jit.pointwise.fused import overwrite
from pullback.kernels.jit.small.choose import Chooser, ufunc_chooser


@quietly
def inplace(op: Op, self: Tensor, args: tuple[Any, ...]) -> Tensor:
    """Run an op in place on `self`: nothing is changed unless everything fits."""
    bound = dict(zip(op.param_names, (self, *args), strict=True))
    if not isinstance(self, Tensor):
        raise apply.wrong_type(op, op.param_names[0], 0, self, "Tensor")
    kind = overrides.deciding_class((self, *args))
    if kind is not None:
        if hasattr(kind, "run_inplace"):
            return kind.run_inplace(op, self, args)  # type: ignore[no-any-return]
        name, (positional, kwargs) = f"{op.name}_", overrides.as_called(op, (self, *args))
        return overrides.decide(getattr(Tensor, name), positional, kwargs, f"torch.Tensor.{name}")  # type: ignore[no-any-return]
    if modes.dual_level >= 0 and claim.get() is not None:
        return claimed_by(None, inplace, op, self, args)  # type: ignore[no-any-return]
    if op.overwrites is not None:
        op = op.overwrites(*args)
        bound = dict(zip(op.param_names, bound.values(), strict=True))
    foreign = next((t for t in (self, *args) if isinstance(t, ForeignTensor)), None)
    if foreign is not None:
        done = type(foreign._array).written(op, self, bound)
        if done is not NotImplemented:
            return done  # type: ignore[no-any-return]
    tracked = is_grad_enabled() and any(
        isinstance(t, Tensor) and wants_grad(t) for t in differentiable_inputs(op, bound)
    )
    try:
        arrays = apply.operands(op, bound, twin=True)
    except RuntimeError:  # arguments of wrong types are refused first, whatever self is
        arrays = None
    # An op without any derivative leaves the history of self alone, and may even be run on leaves.
    check_inplace(self, tracked or (is_grad_enabled() and bool(op.differentiable) and wants_grad(self)))
    if tracked:
        bring_up_to_date(op, bound)
    check_overlap(op, self, args)
    if arrays is None:
        arrays = apply.operands(op, bound, twin=True)
    dual = modes.dual_level >= 0
    result, truths = None, False
    if not callable(op.inplace) or (dual and self._array.dtype.kind not in "iub"):  # which do not move
        try:
            result = apply.compute(op, arrays)
            check_result(self, result)
            truths = result.dtype.kind == "b"
            if truths:  # they become numbers, which may have a derivative: zero
                result = result.astype(self._array.dtype)
        except NotImplementedError:
            check_inplace(self, is_grad_enabled() and wants_grad(self))
            check_promoted(op, self, arrays)
            raise
        except (RuntimeError, ValueError) as error:
            who.explain(error, {name: bound[name] for name in op.tensors})
            raise
    # What the node saves of its inputs, and the tangents, are those before the write.
    carried = carrier(self._array if result is None else result)
    if tracked and op.param_names[0] in op.saved:
        bound[op.param_names[0]] = snapshot(self)
    node = record(op, bound, [carried], later=True) if tracked else None
    if dual and not truths and is_grad_enabled() and forward_mode.moves(op):
        # The rule may be recorded: it is to keep the values before the write, and a result that nobody writes to.
        carried._tangent = apply.call(op, {**bound, op.param_names[0]: snapshot(self)})._tangent
        forward_mode.note_tangent(carried)
    elif dual:
        bound[op.param_names[0]] = self
        forward_mode.push(op, bound, [carried])
    if dual and carried._tangent is None and forward_mode.stops(op, bound, self):
        carried._tangent = forward_mode.still(self)
    if result is None or (callable(op.inplace) and overlaps_itself(stored(self))):
        write_directly(op, self, arrays)
    else:
        write(self, result)
    if node is not None:
        keep_output(op, node, self)
        rebase_history(self, node)
    elif self._edge is None:  # a leaf has no history of its own to lose: what was written may have had one
        self._detached_at = detached_at(op, {**bound, op.param_names[0]: None}) or self._detached_at
    if dual and carried._tangent is not None:
        forward_mode.set_tangent_inplace(self, carried._tangent)
    return self  # type: ignore[no-any-return]


def run_inplace(op: Op, self: Any, args: tuple[Any, ...]) -> Any:
    """Run an op in place, by a quick road where nobody records it."""
    if not modes.active and (type(self) is Tensor or type(self) is Parameter) and write_made(op, self, args, {}):
        return self
    return inplace(op, self, args)


def measured(op: Op, self: Tensor, args: tuple[Any, ...]) -> Any:
    """The call, of which a profiler is told."""
    if modes.profiler is not None:
        return modes.profiler.call_inplace(op, self, args, inplace)
    return inplace(op, self, args)


def check_overlap(op: Op, self: Tensor, others: tuple[Any, ...]) -> None:
    """Raise if writing self would change another operand halfway through."""
    array = stored(self)
    if overlaps_itself(array) and array.dtype.kind not in op.may_overlap:
        raise RuntimeError(messages.OVERLAP)
    check_partial_overlap([self], checked_operands(op, (self, *others))[1:])


def write_directly(op: Op, self: Tensor, arrays: Bound) -> None:
    """Let the op write into self's memory, which touches only the elements it changes."""
    about_to_write(self)
    if op.check is not None:
        read_for(arrays.values(), op.check)(**arrays)
    first = op.param_names[0]
    for name in op.tensors[1:]:
        if isinstance(arrays[name], np.ndarray) and np.may_share_memory(arrays[name], arrays[first]):
            arrays[name] = arrays[name].copy()  # indices were checked: they must not change while they are used
        elif isinstance(arrays[name], list):
            arrays[name] = [
                item.copy() if item is not None and np.may_share_memory(item, arrays[first]) else item
                for item in arrays[name]
            ]
    try:
        if type(self) is LazyTensor:
            elements = arrays[op.param_names[0]] = self._array
            op.inplace(**arrays)
            store(self, elements)
        else:
            read_for(arrays.values(), op.inplace)(**arrays)
        bump_version(self)
    except KeyboardInterrupt:  # which may come when all is written
        bump_version(self)
        raise


def check_result(self: Tensor, result: np.ndarray[Any, Any]) -> None:
    """Raise, before anything is written, if the result does not fit into self."""
    if result.shape != self._array.shape:
        mine, its = messages.shape_text(self._array.shape), messages.shape_text(result.shape)
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {its}")
    source, target = FROM_NUMPY[result.dtype], FROM_NUMPY[self._array.dtype]
    if source is not target and not can_cast(source, target):
        raise RuntimeError(messages.cannot_cast(source.scalar_type, target.scalar_type))


def check_promoted(op: Op, self: Tensor, arrays: Bound) -> None:
    """Before an op says that it has no kernel for a dtype: whether its result would fit at all."""
    given = [arrays[name] for name in op.promote if isinstance(arrays[name], np.ndarray)]
    if len(given) > 1:
        shape = np.broadcast_shapes(*[array.shape for array in given])
        check_result(self, np.broadcast_to(np.empty((), given[0].dtype), shape))


def write(self: Tensor, result: np.ndarray[Any, Any]) -> None:
    """Overwrite the elements and count it."""
    about_to_write(self)
    try:
        if type(self) is LazyTensor:
            store(self, result)
        else:
            overwrite(self._array, result)
        bump_version(self)
    except KeyboardInterrupt:
        bump_version(self)
        raise


def snapshot(self: Tensor) -> Tensor:
    """The value, history and tangent self has before the write."""
    edge = edge_of(self)
    out = carrier(self._array.copy())
    out._edge = None if edge is self else edge
    out._requires_grad = wants_grad(self)
    if modes.dual_level >= 0 and (tangent := forward_mode.tangent_of(self)) is not None:
        out._tangent = tangent.clone()
    return out


def carrier(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor to record the node of the write on, before its history is given to self."""
    return wrap(array)


def keep_output(op: Op, node: Any, self: Tensor) -> None:
    """A node that saves its result saves self as it is now."""
    node.dtype = self._array.dtype
    if not node.saved_outputs:
        return
    now = carrier(self._array)
    now._edge, now._requires_grad, now._counter = node, True, counter_of(self)
    for name in node.saved_outputs:
        save(op, node, name, {}, [now])


def make_inplace(op: Op, operator: bool = False) -> Callable[..., Any]:
    """The public in-place function: quick roads where nobody records what is written, the full one otherwise.

    As an `operator`, such as `+=`, it gives an operand of a foreign type its chance to answer.
    """
    state: dict[str, Any] = {}
    others = [op.annotations.get(n) for n in op.declared.__code__.co_varnames[1 : op.declared.__code__.co_argcount]]
    operands = sum(annotation in ("Array", "Array | Number") for annotation in others)

    def twin(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not modes.active and (type(self) is Tensor or type(self) is Parameter):
            if not state:
                state.update(made(lambda: quick_road(op)))
            if not kwargs and len(args) == operands and write_ufunc(op, state, self, args):
                return self
            if write_made(op, self, args, kwargs):
                return self
        if operator and not apply.may_answer(args[0]):
            return NotImplemented
        try:
            return in_full(op, self, args, kwargs)
        except Exception as error:
            trim(error)
            raise

    twin.__name__ = twin.__qualname__ = f"{op.name}_"
    twin.__doc__ = f"In-place version of :func:`{op.name}`."
    twin.op = op  # type: ignore[attr-defined]
    twin.__signature__ = Shown(twin)  # type: ignore[attr-defined]
    return twin


def in_full(op: Op, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The full road: arguments in order, a profiler that measures it, and torch's word for those of wrong types."""
    begin = elsewhere.get(type(self))
    if begin is not None and (done := begin(op, self, args, kwargs)) is not NotImplemented:
        return done
    try:
        bound = bind(op, self, args, kwargs)
        if modes.dispatch is not None:
            return modes.dispatch.call_inplace(op, self, bound)
        return measured(op, self, bound)
    except Exception:
        refuse_call(f"{op.name}_", (self, *args), kwargs)
        raise


elsewhere: dict[type[Any], Callable[..., Any]] = {}
"""What may do a call, by the class of the tensor that is written, or answers NotImplemented with nothing written."""


def augmented(write: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """An in-place function as an operator such as `%=`: an operand of a foreign type gets its chance to answer."""

    def assign(self: Any, other: Any) -> Any:
        return write(self, other) if apply.may_answer(other) else NotImplemented

    return assign


def quick_road(op: Op) -> dict[str, Any]:
    """What the quick road needs to know of an op."""
    ufunc = ufunc_of(op)
    return {
        "chooser": writer(op, ufunc),
        "refused": "" if ufunc is None else refused_kinds(op, ufunc),
        "constant": unrounded if op.unrounded else constant,
        "numbers": all(op.kinds[name] == "number" for name in op.tensors[1:]),
        "ufunc": ufunc,
    }


def writer(op: Op, ufunc: Any) -> Chooser | None:
    """Who computes what is written over large arrays; None where the full road does."""
    if not is_traced(op):
        return None
    if ufunc is not None:
        return ufunc_chooser(ufunc) or Chooser(ufunc, large_forward(op))
    return Chooser(forward_of(op), large_forward(op)) if op.inplace is True else None


def write_ufunc(op: Op, state: dict[str, Any], self: Tensor, args: tuple[Any, ...]) -> bool:
    """Try the quick road: True if self was written."""
    ufunc, chooser, array = state["ufunc"], state["chooser"], self._array
    if ufunc is None and (array.size < LARGE or chooser is None or array.dtype.kind != "f"):
        return False
    if self._counter is INFERENCE or array.dtype.kind in state["refused"]:
        return False
    arrays, own, detached = [array], array.base is None, None
    tracked = self._requires_grad or self._view is not None
    for other in args:
        if type(other) is Tensor or type(other) is Parameter:
            tracked = tracked or other._requires_grad or other._view is not None
            detached = detached or other._detached_at
            value = other._array
            if value.dtype is not array.dtype or (value.shape != array.shape and value.ndim):
                return False
            if not (own and value.base is None) and overlaps_partially(array, value):
                return False
        else:
            # Some ops refuse bools: the full road knows which.
            value = state["constant"](other, array.dtype) if state["numbers"] and type(other) is not bool else None
            if value is None:
                return False
        arrays.append(value)
    if (
        (tracked and is_grad_enabled())
        or (not own and overlaps_itself(array))
        or (op.floats and array.dtype.kind not in "fc")
    ):
        return False
    try:
        if array.size < LARGE or chooser is None:
            arrays.append(array)
            quiet().run(ufunc, *arrays)
        elif not chooser.into(array, *arrays):
            return False
        bump_version(self, 3)
    except (TypeError, ValueError):
        return False
    except KeyboardInterrupt:
        bump_version(self, 3)
        raise
    if detached is not None:
        self._detached_at = detached
    return True


def write_made(op: Op, self: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Try the other quick road, on which self is overwritten by what the op makes: True if it was.

    Whatever is out of the ordinary, wrong arguments among it, is left to the full road: nothing has been changed then.
    """
    array = self._array
    if (
        op.overwrites is not None
        or (op.formerly and len(args) > sum([not p.keyword_only for p in op.params[1:]]))  # which a warning is about
        or self._counter is INFERENCE
        or array.size >= LARGE
        or (kwargs and not kwargs.keys() <= op.kinds.keys())
    ):
        return False
    own, detached = array.base is None, None
    tracked = self._requires_grad or (self._view is not None and wants_grad(self))
    for other in (*args, *kwargs.values()) if kwargs else args:
        if type(other) is Tensor or type(other) is Parameter:
            tracked = tracked or wants_grad(other)
            detached = detached or other._detached_at
            value = other._array
            if value is array or (not (own and value.base is None) and overlaps(array, value)):
                return False
        elif type(other) not in NUMBERS:
            return False
    if (tracked and is_grad_enabled()) or (not own and overlaps_itself(array)):
        return False
    try:
        made = op.call(self, *args, **kwargs)
    except Exception:  # the full road says what is wrong, with the name of the function that was called
        return False
    result = made._array
    if type(result) is not np.ndarray or result.shape != array.shape or result.dtype is not array.dtype:
        return False
    try:
        array[...] = result
        bump_version(self, 3)
    except KeyboardInterrupt:
        bump_version(self, 3)
        raise
    if detached is not None and self._edge is None:
        self._detached_at = detached
    return True


NUMBERS = frozenset({float, int, bool, type(None)})


def bind(op: Op, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments after self in the order of the declaration, defaults filled in."""
    rest = op.params[1:]
    positional = [p for p in rest if not p.keyword_only]
    if len(args) > len(positional) and op.formerly:
        tensors, numbers = in_todays_order(op, (self, *args), kwargs, twin=True)
        args, kwargs = tensors[1:], {**kwargs, **numbers}
    if len(args) > len(positional):
        raise TypeError(
            f"{op.name}_() takes {len(positional)} positional argument{'s' if len(positional) != 1 else ''} but "
            f"{len(args)} were given"
        )
    values = {p.name: a for p, a in zip(positional, args, strict=False)}
    names = {p.name for p in rest}
    for keyword, value in kwargs.items():
        name = keyword if keyword in names else NUMPY_NAMES.get(keyword, keyword)
        values[keyword if name in values else name] = value
    out = []
    for p in rest:
        if p.name in values:
            out.append(values.pop(p.name))
        elif p.default is not REQUIRED:
            out.append(p.default)
        else:
            raise TypeError(f'{op.name}_() missing 1 required positional arguments: "{p.name}"')
    if values:
        raise TypeError(f"{op.name}_() got an unexpected keyword argument '{next(iter(values))}'")
    return tuple(out)
