"""Who is told of every op below autograd: `TorchDispatchMode`, and subclasses of Tensor with `__torch_dispatch__`.

An op asks `__torch_function__` first, then records itself, and what computes is told to a dispatch mode, under the name
it has in torch's library: `torch.ops.aten.mul.Tensor`. Ops of the backward pass are told as well: while a mode is on,
formulas run on tensors. Nothing of this costs anything before the first mode is entered, or the first such class
defined: then `modes.dispatch` is set, which the reference path looks at.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

import numpy as np

from pullback._device import device as Device
from pullback._dtype import dtype as Dtype
from pullback._modes import classes_told, dispatch_modes, grad_enabled, is_grad_enabled, modes
from pullback._op import apply, inplace
from pullback._op.declare import Op
from pullback._op.overrides import default_torch_function, disabled_torch_function, is_told
from pullback._op.results import Bound, present, record
from pullback._runtime.interrupts import Block
from pullback._runtime.quiet import heard
from pullback._tensor import Tensor, adopt, new, wrap
from pullback.autograd.api import foreign_backward
from pullback.library.names import Telling, telling
from pullback.library.overloads import OpOverload
from pullback.library.steps import Step, is_whole

# ------------------------------------------------------------------ asking


def tensors_in(values: Any) -> list[Any]:
    """The tensors among arguments, and in lists among them."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif type(value) in (list, tuple):
            found += tensors_in(value)
    return found


def classes_among(tensors: list[Any]) -> list[type]:
    """The classes that are told, subclasses before their bases, otherwise in the order given."""
    found: list[type] = []
    for tensor in tensors:
        kind = type(tensor)
        if kind not in found and is_told(kind):
            place = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
            found.insert(place, kind)
    return found


def anybody(values: Any) -> bool:
    """Whether a mode, or a class among the arguments, is told of a call."""
    if dispatch_modes.get():
        return True
    return any([is_told(type(tensor)) for tensor in tensors_in(values)])


def ask(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the innermost mode, or a class among the arguments, makes of an op."""
    stack = dispatch_modes.get()
    kinds = classes_among(tensors_in((*args, *kwargs.values())))
    rules = func._definition.rules
    if stack:
        mode = stack[-1]
        rule = rules.get(type(mode))
        try:
            dispatch_modes.set(stack[:-1])
            if rule is not None:
                result = heard(rule, mode, func, tuple(kinds), args, kwargs)
            else:
                result = heard(mode.__torch_dispatch__, func, tuple(kinds), args, kwargs)
        finally:
            dispatch_modes.set(stack)
        if result is not NotImplemented:
            return result
    for kind in kinds:
        rule = rules.get(kind)
        if rule is not None:
            result = heard(rule, kind, func, tuple(kinds), args, kwargs)
        else:
            result = heard(kind.__torch_dispatch__, func, tuple(kinds), args, kwargs)  # type: ignore[attr-defined]
        if result is not NotImplemented:
            return result
    asked = [f"mode object {mode}" for mode in stack[-1:]] + [f"tensor subclass {kind}" for kind in kinds]
    raise TypeError(
        f"Multiple dispatch failed for 'torch._ops.{func}'; all __torch_dispatch__ handlers returned "
        "NotImplemented:\n\n"
        + "".join([f"  - {one}\n" for one in asked])
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


# ------------------------------------------------------------------ ops of this library


class Dispatcher:
    """What the reference path tells of ops. Installed as `modes.dispatch`."""

    def call(self, op: Op, bound: Bound, out: Any) -> Any:
        """An op is called."""
        if not anybody(bound.values()):
            return apply.measured(op, bound, out)
        told = Telling(op, bound, out, False)
        if out is not None or op.visible != len(op.outputs) or modes.dual_level >= 0:
            # What the node saves is not among what the handler returns, or tangents move: whoever computes records.
            return tell(told)
        result = unrecorded(told)
        if not is_grad_enabled():
            return presented(op, result)
        if op.view:
            made = view_again(op, bound, result)
            if made is not None:
                return made
        flat = list(result) if isinstance(result, (tuple, list)) else [result]
        if not all([item is None or isinstance(item, Tensor) for item in flat]) or (
            not op.variadic and len(flat) != op.visible
        ):
            return result
        given = tensors_in(bound.values())
        flat = [wrap(item._array) if any([item is one for one in given]) else item for item in flat]
        record(op, bound, flat)
        return present(op, flat)

    def call_inplace(self, op: Op, self_: Tensor, args: tuple[Any, ...]) -> Any:
        """An op is called in place: whoever writes records."""
        if not anybody((self_, *args)):
            return inplace.measured(op, self_, args)
        tell(Telling(op, dict(zip(op.param_names, (self_, *args), strict=True)), None, True))
        return self_

    def step(self, node: Any, grad: Any) -> Any:
        """A node takes its step on tensors."""
        if not dispatch_modes.get() or not is_whole(node):
            return node.backward_tensors(grad)
        result = tell(Step(node, grad))
        return tuple(result)[: len(node.edges)]


def tell(told: Any) -> Any:
    """Ask about a call of an op; the overload that is told is that op."""
    before = telling.get()
    try:
        telling.set(told)
        return ask(told.func, told.args, told.kwargs)
    finally:
        telling.set(before)


def unrecorded(told: Telling) -> Any:
    """Ask below autograd: what handlers compute is not recorded."""
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        return tell(told)
    finally:
        grad_enabled.set(before)


def presented(op: Op, result: Any) -> Any:
    """What a handler returned, as the op's callers expect it."""
    if op.variadic or op.visible == 1 or not isinstance(result, (tuple, list)) or len(result) != op.visible:
        return tuple(result) if op.variadic and isinstance(result, list) else result
    return present(op, list(result))


def view_again(op: Op, bound: Bound, result: Any) -> Any:
    """The view with its history, if a handler returned the view that the op makes."""
    if any([is_told(type(tensor)) for tensor in tensors_in(bound.values())]):
        return None
    made = apply.call(op, bound)
    pairs = list(zip(tensors_in([made]), tensors_in([result]), strict=False))
    same = [
        a._array.shape == b._array.shape
        and a._array.strides == b._array.strides
        and a._array.__array_interface__["data"] == b._array.__array_interface__["data"]
        for a, b in pairs
    ]
    return made if pairs and all(same) else None


dispatcher = Dispatcher()


def begin_telling(who: Any) -> None:
    """From now on the reference path tells of ops. Functions that are none are patched by unlisted.py."""
    modes.dispatch = dispatcher


def end_telling(who: Any) -> None:
    """The matching end for functions that are no ops."""


def prepare(cls: Any) -> None:
    """A class with `__torch_dispatch__` is defined: ops of its instances are told to it, backward runs on tensors."""
    begin_telling("the classes")
    if getattr(cls.__torch_function__, "__func__", None) is default_torch_function:
        cls.__torch_function__ = staticmethod(disabled_torch_function)  # as torch: it decides below autograd only
    if cls.backward is Tensor.backward:
        cls.backward = foreign_backward


# ------------------------------------------------------------------ modes


class TorchDispatchMode(Block):
    """A block in which `__torch_dispatch__` of this object is told of every op, below autograd."""

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode(_dispatch_key=...): there are no dispatch keys in pullback")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What to do instead of calling `func`; inside, the mode itself is not asked."""
        raise NotImplementedError

    def _before(self) -> Any:
        """The modes around."""
        return dispatch_modes.get()

    def _begin(self, before: Any) -> Any:
        """Tell this one first."""
        who = "dispatch mode", get_ident(), len(before)
        begin_telling(who)
        modes.hold(who)
        dispatch_modes.set((*before, self))
        return self

    def _end(self, before: Any) -> None:
        """Tell those around."""
        who = "dispatch mode", get_ident(), len(before)
        dispatch_modes.set(before)
        modes.drop(who)
        end_telling(who)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """The old way to make one."""
        return cls(*args, **kwargs)

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether what a compiler calls is not told; there is none."""
        return False

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it belongs to torch itself."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every op as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _disable_current_modes(Block):
    """A block in which no mode is told of anything."""

    def _before(self) -> Any:
        """The modes around."""
        return dispatch_modes.get()

    def _begin(self, before: Any) -> Any:
        """Nobody."""
        dispatch_modes.set(())
        return list(before)

    def _end(self, before: Any) -> None:
        """Those around again."""
        dispatch_modes.set(before)


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    stack = dispatch_modes.get()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """All modes, the innermost last."""
    return list(dispatch_modes.get())


def _len_torch_dispatch_stack() -> int:
    """How many modes there are around."""
    return len(dispatch_modes.get())


# ------------------------------------------------------------------ subclasses


class _DisableTorchDispatch(Block):
    """A block in which neither modes nor the classes of tensors are told: tensors of such classes count as plain."""

    def _before(self) -> Any:
        """Whether classes are told, and the modes around."""
        return classes_told.get(), dispatch_modes.get()

    def _begin(self, before: Any) -> None:
        """Nobody."""
        classes_told.set(False)
        dispatch_modes.set(())

    def _end(self, before: Any) -> None:
        """As it was."""
        classes_told.set(before[0])
        dispatch_modes.set(before[1])


def _make_wrapper_subclass(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **unused: Any,
) -> Any:
    """A tensor of a subclass that has a shape and a dtype and no elements: what it is made of, the class knows."""
    check_class(cls)
    if device is not None and Device(device).type not in ("cpu", "meta"):
        raise NotImplementedError(f"_make_wrapper_subclass on {device}: pullback has the devices cpu and meta")
    wanted = dtype if isinstance(dtype, Dtype) else wrap(np.empty(0, np.float32)).dtype
    shape = tuple([int(n) for n in size])
    array: Any = np.zeros(shape, wanted.numpy)
    if strides is not None:
        steps = tuple([int(s) * array.itemsize for s in strides])
        extent = 1 + sum([(n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n])
        array = np.lib.stride_tricks.as_strided(np.zeros(extent, array.dtype), shape, steps)
    out = new(cls)
    adopt(out, array)
    out._requires_grad = bool(requires_grad)
    return out


def check_class(cls: Any) -> None:
    """Raise unless instances of a class can do without elements."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not is_told(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
