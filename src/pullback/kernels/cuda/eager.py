"""The fast path of ops, read for arrays of the device: the generated code of an op with other globals.

What the code of an op calls `Tensor` is here a tensor of the device, `UFUNC` and its kin launch a kernel, `bare_node`
makes a node whose step is read in the same way. So a call on the device does what one on the host does, line by line,
and what the code does not recognise goes to the reference path as there.

    fast(op) ....... the function of an op, for calls that came by way of `apply`
    attach(op) ..... the same as methods and operators of the tensors of the device, from the first such call on
"""

from __future__ import annotations

import math
import operator
from functools import cache, lru_cache
from itertools import repeat
from types import FunctionType
from typing import Any

import numpy as np

from pullback._arrays.kinds import kinds, laid_out
from pullback._arrays.memory import element_strides
from pullback._modes import beyond_casts, detours, modes
from pullback._op import apply
from pullback._op.declare import Op
from pullback._op.ufuncs import ARITHMETIC, deciding, is_loss, is_traced, large_forward, lays_out, ufunc_of
from pullback._runtime.builtins import bare, stepping
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor
from pullback.autograd import numbering
from pullback.autograd.api import backward, implicit_grad
from pullback.autograd.engine import execute
from pullback.autograd.node import AccumulateGrad, Node
from pullback.autograd.tracebacks import trim
from pullback.kernels.cuda import random as random  # whose draws stand for the host's
from pullback.kernels.cuda import update as update  # which does the steps of optimizers
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.calls import again as again  # which does what arrays answer
from pullback.kernels.cuda.calls import categories as categories  # which are drawn as torch draws them
from pullback.kernels.cuda.calls import steps as steps  # which does them for all parameters at once
from pullback.kernels.cuda.calls import writing as writing  # which does ops in place
from pullback.kernels.cuda.carry import has_device_arrays
from pullback.kernels.cuda.errors import AcceleratorError, OutOfMemoryError
from pullback.kernels.cuda.kind import (
    FORMULAS,
    MIXED,
    DeviceParameter,
    DeviceTensor,
    OnDevice,
    computed,
    formula_of,
    forward_of_formula,
    on_arrays,
    outlines,
)
from pullback.kernels.cuda.quick import Refused, launcher, recorder, viewer

bare_tensor, bare_array = bare(DeviceTensor), bare(DeviceArray)
functions: dict[Op, Any] = {}
failures: list[Exception] = []
"""An error of the device that the generated code is about to swallow: it would try again on the reference path."""


# ------------------------------------------------------------------ what computes


def guarded(compute: Any) -> Any:
    """A function whose errors of the device are not lost."""

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return compute(*args, **kwargs)
        except (AcceleratorError, OutOfMemoryError) as error:
            failures.append(error)
            raise

    return run


def by_reference(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """The reference path, unless the device has failed."""
    if failures:
        raise failures.pop()
    return apply.by_reference(op, args, out)


@cache
def forward_on(op: Op) -> Any:
    """The forward of an op, as its generated code calls it."""
    keywords = [p.name for p in op.params if p.keyword_only]
    if op.view:
        return windows(op) if keywords else viewer(windows(op))
    if not is_traced(op) or is_loss(op):
        if op.variadic:
            return guarded(lambda *args, **kwargs: forward(op, args, kwargs))
        given = len(op.params) - len(keywords)
        launch = recorder(
            lambda *args: forward(op, args[:given], dict(zip(keywords, args[given:], strict=True))), guarded
        )
        return by_name(launch, op.param_names, given, False) if keywords else launch
    whole, check = large_forward(op).function, op.check
    if not keywords:
        return arranged(op, whole, check)
    many, names = len(op.params) - len(keywords), op.param_names
    launch = arranged(op, by_name(whole, names, many), None if check is None else by_name(check, names, many))
    return by_name(launch, names, many, False)


def forward(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """By whatever the kind has for it."""
    places = {a.device for a in (*args, *kwargs.values()) if type(a) is DeviceArray}
    if len(places) > 1:
        raise Refused
    made = quiet().run(computed, op, list(args), kwargs)
    return laid_out(made, deciding(op, args)) if lays_out(op) and made.ndim > 1 else made


def arranged(op: Op, function: Any, check: Any = None) -> Any:
    """The launcher of a forward, its results in the memory order torch gives them.

    A check looks at dtypes, shapes and numbers, by which calls are remembered: what it has passed once is right.
    """

    def arrange(made: Any, args: Any) -> Any:
        return laid_out(made, deciding(op, args)) if lays_out(op) and made.ndim > 1 else made

    return launcher(function, None, guarded, check, arrange)


@cache
def ufunc_on(op: Op) -> Any:
    """The launcher of an op that is one ufunc."""
    ufunc = ufunc_of(op)
    if ufunc is None:
        return forward_on(op)
    return arranged(op, ufunc)


class Direct:
    """What stands for `quiet()`: kernels of the device warn of nothing, and `forward` asks for quiet itself."""

    run = staticmethod(operator.call)


direct = Direct()


@lru_cache(4096)
def steps_of(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> tuple[int, ...]:
    """Strides in elements, of arrays that lie so."""
    return element_strides(np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, strides))


def windows(op: Op) -> Any:
    """The forward of an op that makes views: what it made of an array that lies alike is known."""
    known: dict[Any, Any] = {}

    def run(array: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            key = (array.shape, array.strides, array.dtype, args, *map(type, args), *kwargs.values())
            found = known.get(key)
        except TypeError:  # a list among the arguments
            return computed(op, [array, *args], kwargs)
        if found is None:
            if any([has_device_arrays(value) for value in (*args, *kwargs.values())]):
                raise Refused
            found = seen_by(op, array, args, kwargs)
            if found is None:
                return computed(op, [array, *args], kwargs)
            if len(known) >= VIEWS:
                known.clear()
            known[key] = found
        made = [array if one is None else window(array, *one) for one in found]
        return made if op.multiple else made[0]

    return run


VIEWS = 1024
"""Views remembered of one op."""


def seen_by(op: Op, array: Any, args: Any, kwargs: Any) -> list[Any] | None:
    """Shapes, strides, dtypes and beginnings of what an op makes of an outline; None if it makes copies."""
    outline = outlines.of(array)
    made = on_arrays(op)(outline, *args, **kwargs)
    start, found = outline.__array_interface__["data"][0], []
    for one in made if op.multiple else [made]:
        if one.size and not np.may_share_memory(one, outline):
            return None
        skip = one.__array_interface__["data"][0] - start if one.size else 0
        found.append(None if one is outline else (one.shape, one.strides, one.dtype, skip))
    return found


def window(array: Any, shape: Any, strides: Any, dtype: Any, skip: int) -> Any:
    """`seen_as` of what is known to be right."""
    made = bare_array()
    made.shape, made.strides, made.dtype, made.address = shape, strides, dtype, array.address + skip
    made.base, made.device, made.memory = array if array.base is None else array.base, array.device, None
    return made


zeros: dict[Any, Any] = {}


def constants_of(constant: Any) -> Any:
    """Numbers as arrays; zeros too are the same arrays each time, so that what was launched with one is found again."""

    def run(value: Any, dtype: Any) -> Any:
        if (type(value) is not float and type(value) is not int) or value:
            return constant(value, dtype)
        key = (type(value), math.copysign(1.0, value), dtype, constant)
        found = zeros.get(key)
        if found is None:
            found = constant(value, dtype)
            if found is not None:
                found.flags.writeable = False
                zeros[key] = found
        return found

    return run


# ------------------------------------------------------------------ nodes

nodes: dict[type[Any], Any] = {}


class AllHere(OnDevice):
    """A node of an op whose operands and results are all on one device: nothing has to be moved."""

    __slots__ = ()
    places = ()


def node_of(node: type[Any]) -> Any:
    """The node class of an op, its step read for the device."""
    found = nodes.get(node)
    if found is None:
        made: Any = node.backward
        names = {name: named(name, value, node.op, made.__globals__) for name, value in made.__globals__.items()}  # type: ignore[attr-defined]
        step = FunctionType(made.__code__, names, made.__name__, made.__defaults__)
        own = {"__slots__": (), "__module__": "builtins", "backward": step, "backward_tensors": node.backward_tensors}  # type: ignore[attr-defined]
        found = nodes[node] = type(node.__name__, (AllHere, node), own)
    return found


def named(name: str, value: Any, op: Op, names: dict[str, Any]) -> Any:
    """What a name of the code of a step means here."""
    if name in ARITHMETIC:
        return launcher(ARITHMETIC[name], ARITHMETIC[name])
    if name.startswith(FORMULAS):
        _, _, part = name.partition("_")
        value = formula_of(names, op, part)
        if op.view or op.promote or "view" in op.key:
            value = Seen(value)
        value = recorder(value, lambda compute: compute)  # what was launched is done again by native code
        if part in op.formulas and is_traced(op, part) and not name.startswith("halves_"):
            return launcher(forward_of_formula(names[f"kernels_{part}"]), value)
        return value
    if name == "constant":
        return constants_of(value)
    return HERE.get(name, value)


class Seen:
    """A formula that may make views of a gradient: what it made of one that lies alike is known."""

    __slots__ = ("compute", "known")

    def __init__(self, compute: Any) -> None:
        self.compute = compute
        self.known: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        grad = args[0] if args else None
        if type(grad) is not DeviceArray:
            return self.compute(*args)
        try:
            key = (grad.shape, grad.strides, grad.dtype, *[outline_of(value) for value in args[1:]])
            found = self.known.get(key)
        except TypeError:  # a list among the arguments
            return self.compute(*args)
        if found is not None:
            return window(grad, *found) if found else self.compute(*args)
        made = self.compute(*args)
        if len(self.known) >= VIEWS:
            self.known.clear()
        self.known[key] = view_of(grad, made)
        return made


def outline_of(value: Any) -> Any:
    """What a view may depend on: how an array lies, or a number."""
    return (value.shape, value.strides, value.dtype) if type(value) is DeviceArray else (type(value), value)


def view_of(grad: DeviceArray, made: Any) -> Any:
    """Shape, strides, dtype and beginning of a view of an array; () for what is none."""
    if type(made) is not DeviceArray or not made.size:
        return ()
    if (made if made.base is None else made.base) is not (grad if grad.base is None else grad.base):
        return ()
    return made.shape, made.strides, made.dtype, made.address - grad.address


HERE: dict[str, Any] = {
    "Tensor": DeviceTensor,
    "Parameter": DeviceParameter,
    "ndarray": DeviceArray,
    "bare_tensor": bare_tensor,
    "quiet": stepping(repeat(direct)),
    "element_strides": lambda array: steps_of(array.shape, array.strides, array.dtype),
}
"""What names of generated code mean here."""


# ------------------------------------------------------------------ functions


def read(op: Op, generated: Any, handed_on: Any, watched: Any) -> Any:
    """The generated function of an op with other globals."""
    names = {**generated.__globals__, **HERE, "apply": handed_on, "modes": watched}
    if "CHOOSERS" in names:
        names |= {"UFUNC": ufunc_on(op), "KERNELS": forward_on(op), "POINTWISE": forward_on(op), "CHOOSERS": {}}
    names["FORWARD"] = forward_on(op)
    names["constant"] = constants_of(names["constant"])
    if op.differentiable:
        names["bare_node"] = bare(node_of(op.node))  # type: ignore[arg-type]
    numbering.hold(names)
    made = FunctionType(generated.__code__, names, generated.__name__, generated.__defaults__)
    made.__kwdefaults__ = generated.__kwdefaults__
    return made


def fast(op: Op) -> Any:
    """The function of an op for tensors of the device; None for one that only the reference path knows."""
    found = functions.get(op)
    if found is None:
        generated: Any = op.compile()  # type: ignore[attr-defined]
        found = functions[op] = read(op, generated, by_reference, beyond_casts)
        attach(op, generated)
    return found


def attach(op: Op, generated: Any) -> None:
    """Let methods and operators of the tensors of the device be the op's own, without the way through `apply`."""
    for name, value in list(vars(Tensor).items()):
        if getattr(value, "op", None) is not op or "COMPILE" not in getattr(value, "__globals__", ()):
            continue  # another op's, or the twin that writes in place
        if any([name in vars(kind) for kind in DeviceParameter.__mro__[: DeviceParameter.__mro__.index(Tensor)]]):
            continue
        source = generated if value is op.call else value.__globals__["COMPILE"]()  # type: ignore[attr-defined]
        made = read(op, source, handing_on(value), detours)
        made.op = op  # type: ignore[attr-defined]
        made.__doc__, made.__module__, made.__qualname__ = value.__doc__, value.__module__, value.__qualname__
        setattr(DeviceTensor, name, made)


def handing_on(function: Any) -> Any:
    """What a method does with a call that is not its own: what the method of any tensor does."""

    def run(op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
        if failures:
            raise failures.pop()
        many = sum([not p.keyword_only for p in op.params])
        rest = {p.name: value for p, value in zip(op.params[many:], args[many:], strict=True)}
        if out is not None:
            rest["out"] = out
        return function(*args[:many], **rest)

    return run


class Roads(dict[Op, Any]):
    """What does calls whose first operand is a tensor of the device, with all arguments by position: by op."""

    def __missing__(self, op: Op) -> Any:
        many, names = sum([not p.keyword_only for p in op.params]), op.param_names
        if op.name in MIXED:
            made = lambda *args: copying(op, args)
        else:
            made = fast(op) if many == len(names) else by_name(fast(op), names, many)
        self[op] = made
        return made


def copying(op: Op, args: tuple[Any, ...]) -> Any:
    """A copy, which may go to another device."""
    stays = op.name == "_to_copy" and len(args) == 4 and args[3] is None
    return fast(op)(*args) if stays else by_reference(op, args)


def by_name(function: Any, names: Any, many: int, inner: bool = True) -> Any:
    """A function of which some parameters follow keywords, called by position; or the other way round."""
    told = [*names[:many], *[f"{name}={name}" for name in names[many:]]]
    text = f"lambda {', '.join(names)}: function({', '.join(told if inner else names)})"
    return eval(compile(text, "<pullback keywords>", "eval"), {"function": function})


# ------------------------------------------------------------------ backward


def one(value: Any) -> Any:
    """The gradient of a number with respect to itself, for each element."""
    number = value.dtype.type(1)
    return np.where(value == value, number, number)


@cache
def one_like() -> Any:
    """Its launcher."""
    return launcher(one, lambda array: implicit_grad((), array.dtype, array.device)._array)


def tensor_backward(
    self: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Compute the gradient of this tensor with respect to the leaves of its graph."""
    try:
        edge, array = self._edge, self._array
        usual = isinstance(edge, Node) and not isinstance(edge, AccumulateGrad) and self._view is None
        if (
            not (usual and gradient is None and inputs is None)
            or create_graph
            or modes.active
            or array.shape
            or array.dtype.kind != "f"
        ):
            backward(self, gradient, retain_graph, create_graph, inputs=inputs)
            return
        execute([(edge, 0, one_like()(array))], bool(retain_graph), False)
    except Exception as error:
        trim(error)
        raise


DeviceTensor.backward = tensor_backward  # type: ignore[attr-defined]
DeviceArray.steps_on_arrays = True
kinds["cuda"] = DeviceArray
roads = Roads()
apply.elsewhere |= {DeviceTensor: roads, DeviceParameter: roads}
