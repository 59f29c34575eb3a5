"""Pointwise ops in place, the short way: one kernel that writes where it reads, where nobody records it.

What is more than that (histories, casts, memory that overlaps) is done as on the host, by the op machine. A call that
came before is launched by native code, as `x * y` is: the way there is a method of tensors of the device, from the
first such call on.
"""

from __future__ import annotations

from typing import Any

from pullback._arrays.memory import overlaps_itself
from pullback._modes import detours, is_grad_enabled
from pullback._op.constants import constant, unrounded
from pullback._op.declare import REQUIRED, Op
from pullback._op.inplace import elsewhere
from pullback._op.missing import MISSING
from pullback._op.ufuncs import is_loss, is_traced, large_forward, refused_kinds, ufunc_of
from pullback._tensor import INFERENCE, Tensor
from pullback._versions import count_at
from pullback.autograd.locations import NOBODY, USER, caller_at, getframe
from pullback.autograd.tracebacks import trim
from pullback.kernels.cuda.array import DeviceArray, maker_on, reach
from pullback.kernels.cuda.device import placed
from pullback.kernels.cuda.errors import AcceleratorError, OutOfMemoryError
from pullback.kernels.cuda.front import Front
from pullback.kernels.cuda.kind import DeviceParameter, DeviceTensor
from pullback.kernels.cuda.memory import pool_of
from pullback.kernels.cuda.pointwise import written_to
from pullback.kernels.cuda.quick import remember
from pullback.kernels.cuda.recording import ARGUMENT

PLAIN = frozenset({float, int, bool, type(None), str})
"""Classes of arguments by whose values calls are told apart."""
NOTED = 3
"""How long a counter is that knows where the last write was."""
CLASSES = (DeviceTensor, DeviceParameter)
roads: dict[Op, Any] = {}
"""What begins the calls of an op in place."""


# ------------------------------------------------------------------ arrays


def launcher(op: Op) -> Any:
    """The builtin that runs an op in place on arrays; it answers () when it is done, None if no kernel can do it."""
    function = large_forward(op).function
    many = sum([not p.keyword_only for p in op.params])
    as_array = unrounded if op.unrounded else constant
    ufunc = ufunc_of(op)
    refused = "" if ufunc is None else refused_kinds(op, ufunc)
    rest = rests(op)
    recipes: dict[Any, Any] = {}

    def own(array: DeviceArray, *values: Any) -> Any:
        kind = array.dtype.kind
        if not array.size or kind in refused or overlaps_itself(array):
            return None
        if op.check_operands is not None and (kind not in "fc" or any([type(value) is bool for value in values])):
            return None
        given: list[Any] = [array]
        for name, value in zip(op.param_names[1:], (*values, *rest[len(values)]), strict=True):
            if type(value) is DeviceArray:
                # A tensor that stands for a number is read by the op machine.
                if name not in op.tensors or value.device is not array.device:
                    return None
                if (name in op.promote and value.dtype != array.dtype) or meet(array, value):
                    return None
            elif name in op.promote:
                value = as_array(value, array.dtype)
                if value is None:
                    return None
            given.append(value)
        keywords = dict(zip(op.param_names[many:], given[many:], strict=True))
        if op.check is not None:
            op.check(*given[:many], **keywords)
        done = written_to(function, given[:many], keywords, array)
        if done is None:
            return None
        if front is not None:
            remember(front, recipes, (array, *values), array, *done, ARGUMENT)
        return ()

    maker_on(placed(0))
    front = pool_of(0).front
    if not isinstance(front, Front):
        front = None
        return own
    return front.computing(own, recipes)


def rests(op: Op) -> dict[int, tuple[Any, ...]]:
    """The arguments that follow so many after the first, if all others have their defaults."""
    defaults = [p.default for p in op.params[1:]]
    return {n: tuple(defaults[n:]) for n in range(len(defaults) + 1) if REQUIRED not in defaults[n:]}


def meet(array: DeviceArray, other: DeviceArray) -> bool:
    """True if an element of one array that is written may be read for another element afterwards."""
    if (array.address, array.shape, array.strides) == (other.address, other.shape, other.strides):
        return array.itemsize != other.itemsize
    low, high = bounds(array)
    begins, ends = bounds(other)
    return begins < high and low < ends


def bounds(array: DeviceArray) -> tuple[int, int]:
    """Where the memory an array looks at begins and ends."""
    low, nbytes = reach(array.shape, array.strides, array.itemsize)
    return array.address + low, array.address + low + nbytes


# ------------------------------------------------------------------ tensors


def short(op: Op, launch: Any, full: Any, depth: int = 1) -> Any:
    """The way of an op that is written in place, called at a depth below the user's function; `full` does what is more
    than a launch."""
    params, rest = op.params[1:], rests(op)
    positional = sum([not p.keyword_only for p in params])

    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            kind = type(self)
            given: Any = args
            if kwargs:
                given = in_order(params, positional, args, kwargs)
            elif len(args) > positional or len(args) not in rest:
                given = None
            if given is None or detours.active or kind not in CLASSES:
                return full(self, *args, **kwargs)
            arrays, detached = [self._array], None
            for value in given:
                kind = type(value)
                if kind is DeviceTensor or kind is DeviceParameter:
                    view = value._view
                    if value._requires_grad or (view is not None and view.base._requires_grad):
                        return full(self, *args, **kwargs)
                    detached = detached or value._detached_at
                    arrays.append(value._array)
                elif kind in PLAIN:
                    arrays.append(value)
                else:
                    return full(self, *args, **kwargs)
            view = self._view
            wants = self._requires_grad or (view is not None and view.base._requires_grad)
            if (wants and is_grad_enabled()) or self._counter is INFERENCE:
                return full(self, *args, **kwargs)
            try:
                done = launch(*arrays)
            except (AcceleratorError, OutOfMemoryError):
                raise
            except Exception:  # the op machine says what is wrong, in the words of the function that was called
                done = None
            if done is None:
                return full(self, *args, **kwargs)
            try:
                frame: Any = getframe(depth)
            except ValueError:
                frame = NOBODY
            code, offset = frame.f_code, frame.f_lasti
            if code.co_filename not in USER:
                code, offset = caller_at(frame)
            count_at(self, code, offset)
            if detached is not None and self._edge is None:
                self._detached_at = detached
            return self
        except Exception as error:
            trim(error)
            raise

    return write


def shorter(op: Op, launch: Any, full: Any) -> Any:
    """The way of the usual call: one other operand at most, nothing by name, and memory that was written before."""
    usual = short(op, launch, full, 2)
    caller: Any = None
    """The last of the user's functions that called."""

    def write(self: Any, other: Any = MISSING, *more: Any, **named: Any) -> Any:
        nonlocal caller
        try:
            kind, counter, view = type(self), self._counter, self._view
            if (
                more or named or detours.active
                or type(counter) is not list or len(counter) != NOTED
                or (kind is not DeviceTensor and kind is not DeviceParameter)
                or ((self._requires_grad or (view is not None and view.base._requires_grad)) and is_grad_enabled())
            ):  # fmt: skip
                return usual(self, *(() if other is MISSING else (other,)), *more, **named)
            kind = type(other)
            if kind is DeviceTensor or kind is DeviceParameter:
                view, value = other._view, other._array
                wants = other._requires_grad or (view is not None and view.base._requires_grad)
                if wants or other._detached_at is not None:
                    return usual(self, other)
            elif kind is float or kind is int or other is MISSING:
                value = other
            else:
                return usual(self, other)
            frame = getframe(1)
            try:
                done = launch(self._array) if other is MISSING else launch(self._array, value)
            except (AcceleratorError, OutOfMemoryError):
                raise
            except Exception:  # as above
                done = None
            if done is None:
                return full(self) if other is MISSING else full(self, other)
            code = frame.f_code
            if code is not caller:
                if code.co_filename not in USER:
                    count_at(self, *caller_at(frame))
                    return self
                caller = code
            counter[0] += 1
            counter[1], counter[2] = code, frame.f_lasti
            return self
        except Exception as error:
            trim(error)
            raise

    return write


def in_order(params: Any, positional: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Arguments in the order of the declaration, defaults filled in; None for a call that is to be refused."""
    if len(args) > positional:
        return None
    given, left = list(args), len(kwargs)
    for p in params[len(args) :]:
        if p.name in kwargs:
            left -= 1
            given.append(kwargs[p.name])
        elif p.default is REQUIRED:
            return None
        else:
            given.append(p.default)
    return None if left else given


def refused(*args: Any, **kwargs: Any) -> Any:
    """What `full` is where whoever asks goes on by himself."""
    return NotImplemented


def road_of(op: Op) -> Any:
    """What begins the calls of an op in place: the methods of tensors of the device begin so, too, from here on."""
    found = roads.get(op)
    if found is None:
        if not is_traced(op) or is_loss(op):
            found = roads[op] = refused
        else:
            launch = launcher(op)
            found = roads[op] = short(op, launch, refused)
            attach(op, launch)
    return found


def attach(op: Op, launch: Any) -> None:
    """Let methods and operators that write in place be the op's own."""
    for name, value in list(vars(Tensor).items()):
        if getattr(value, "op", None) is not op or value.__name__ != f"{op.name}_":
            continue
        if any([name in vars(kind) for kind in DeviceParameter.__mro__[: DeviceParameter.__mro__.index(Tensor)]]):
            continue
        made = shorter(op, launch, value)
        vars(made).update(vars(value))
        made.__name__, made.__doc__, made.__module__ = value.__name__, value.__doc__, value.__module__
        made.__qualname__ = value.__qualname__
        setattr(DeviceTensor, name, made)


def written(op: Op, self: Any, bound: dict[str, Any]) -> Any:
    """Run an op in place on a tensor of the device; NotImplemented, with nothing written, to do it as on the host."""
    return road_of(op)(*bound.values())


def begun(op: Op, self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same for a function that other functions call, with what it was called with."""
    return road_of(op)(self, *args, **kwargs) if op.overwrites is None else NotImplemented


DeviceArray.written = staticmethod(written)  # type: ignore[method-assign]
elsewhere |= {DeviceTensor: begun, DeviceParameter: begun}
