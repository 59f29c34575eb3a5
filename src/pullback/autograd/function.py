"""Custom functions: a forward and a backward written by hand, as one node of the graph.

    class Exp(Function):
        @staticmethod
        def forward(ctx, i):
            result = i.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad_output):
            (result,) = ctx.saved_tensors
            return grad_output * result

`ctx` is the node itself. The tensors given to save_for_backward are packed once the outputs are known, since an
output must not be kept as it is (it would keep its node alive, and the node it).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._device import CPU, device
from pullback._modes import grad_enabled, is_grad_enabled, modes
from pullback._runtime import messages
from pullback._runtime.quiet import heard
from pullback._tensor import Tensor, wrap
from pullback.autograd import who
from pullback.autograd.function_call import in_position, keep, push_tangents, raw_saved, with_defaults, wrap_outputs
from pullback.autograd.locations import here, mark
from pullback.autograd.node import Node, edge_to
from pullback.autograd.numbering import numbers
from pullback.autograd.saved import FREED, Freed
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import edge_of, wants_grad


class FunctionCtx:
    """What `forward` and `backward` see as ctx."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward, where they are `ctx.saved_tensors`. Inputs and outputs belong here."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say that forward changed these inputs in place; they must be returned as well."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say that these outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (True, the default) or None for outputs nobody used."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Nothing to mark: tensors that share memory are known."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom Function. Each Function class has its own subclass."""

    multiple = True
    takes_none = True
    _forward_cls: Any

    _materialize = True
    kept: Any = ()
    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    needs_input_grad: tuple[bool, ...] = ()

    def output_meta(self, nr: int) -> Any:
        """Shape and dtype of output `nr`."""
        return self.metas[nr]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was given to save_for_backward (in jvp: to save_for_forward)."""
        if self.in_jvp:
            return tuple(self.saved_for_forward or ())
        if type(self.kept) is Freed:
            raise RuntimeError(messages.BACKWARD_TWICE + who.freed(self, self.kept))
        return tuple([keeper.unpack(self) for keeper in self.kept])

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors as objects on which hooks can be registered."""
        if type(self.kept) is Freed:
            raise RuntimeError(messages.BACKWARD_TWICE + who.freed(self, self.kept))
        return tuple([raw_saved(self, keeper) for keeper in self.kept])

    @property
    def materialize_grads(self) -> bool:
        """Set only: see set_materialize_grads."""
        raise AttributeError("attribute 'materialize_grads' of 'torch._C._FunctionBase' objects is not readable")

    @materialize_grads.setter
    def materialize_grads(self, value: bool) -> None:
        self._materialize = bool(value)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of saved_tensors."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    in_jvp = False
    metas: list[Any]

    def release(self, freed: Freed = FREED) -> None:
        """Drop the saved tensors."""
        self.kept = freed

    def maybe_clear_saved_tensors(self) -> None:
        """Drop the saved tensors."""
        self.release()

    def backward(self, grads: Any) -> tuple[Any, ...]:
        """Arrays in, arrays out."""
        tensors = None if grads is None else [None if g is None else wrap(g) for g in grads]
        return tuple([None if t is None else t._array for t in self.backward_tensors(tensors)])

    def backward_tensors(self, grads: Any) -> tuple[Any, ...]:
        """Tensors in, tensors out, through the user's backward."""
        if grads is None:
            grads = [None] * len(self.metas)
        if self._materialize:
            place = next((g.device for g in grads if g is not None), CPU)
            grads = [zeros_of(meta, place) if g is None else g for g, meta in zip(grads, self.metas, strict=True)]
        return self.checked(self.apply(*grads))

    def apply(self, *args: Any) -> Any:
        """Call the user's backward."""
        cls = self._forward_cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        stack = here()
        scope = stack.scope
        if scope is None or not scope[4]:
            return heard(self.formula(), self, *args)
        stack.scope = (*scope[:4], False)  # the lines of the user's backward count for themselves
        try:
            return heard(self.formula(), self, *args)
        finally:
            stack.scope = scope

    def formula(self) -> Any:
        """The user's backward."""
        cls = self._forward_cls
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    def checked(self, outs: Any) -> tuple[Any, ...]:
        """The gradients of the tensor inputs, if the user's backward returned something that fits."""
        outs = outs if isinstance(outs, tuple) else (outs,)
        expected, name = len(self.is_variable), self.name()
        if len(outs) > expected and all(o is None for o in outs[expected:]):
            outs = outs[:expected]
        if len(outs) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(outs)})"
                + who.defined(self.formula(), "its backward")
            )
        kept = []
        for i, (out, is_variable) in enumerate(zip(outs, self.is_variable, strict=True)):
            if not is_variable:
                if out is not None:
                    raise RuntimeError(
                        f"function {name} returned a gradient different than None at position {i + 1}, but the "
                        "corresponding forward input was not a Variable" + who.defined(self.formula(), "its backward")
                    )
                continue
            if out is not None and not isinstance(out, Tensor):
                text = f"expected Variable or None (got {type(out).__name__})"
                raise RuntimeError(text + who.defined(self.formula(), f"the backward of {name}"))
            kept.append(out)
        return tuple(kept)

    is_variable: tuple[bool, ...]

    def __call__(self, *grads: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


def zeros_of(meta: Any, place: device) -> Tensor | None:
    """Zeros for an output nobody used, where the gradients of the others are."""
    return None if meta is None or meta[0] is None else wrap(made_on(place, np.zeros, meta[0], meta[1]))


class FunctionMeta(type):
    """Gives each Function class a node class named after it."""

    _backward_cls: Any

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._backward_cls.__module__ = "torch.autograd.function"


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom functions: subclass it, write static `forward` and `backward`, call `apply`."""

    generate_vmap_rule = boxed_grads_call = clear_saved_tensors_on_access = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; `forward(ctx, *args)`, or `forward(*args)` together with setup_context."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for backward what the separate forward could not."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the inputs from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """How to run on a batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and record this call as one node."""
        try:
            for arg in args:
                if type(arg) is not Tensor and hasattr(
                    type(arg), "run_function"
                ):  # inside vmap: see batching/custom.py
                    return type(arg).run_function(cls, Function, args, kwargs, call)
            return call(cls, args, kwargs)
        except Exception as error:
            trim(error)
            raise


for name in (
    "dirty_tensors", "materialize_grads", "maybe_clear_saved_tensors", "metadata", "name", "needs_input_grad",
    "next_functions", "non_differentiable", "register_hook", "register_prehook", "requires_grad", "saved_for_forward",
    "saved_tensors", "saved_variables", "to_save",
):  # fmt: skip
    # Torch derives both its nodes and these classes from one base, so that what a node has can be named here, too.
    if not hasattr(Function, name):
        setattr(Function, name, getattr_static(BackwardCFunction, name))

# ------------------------------------------------------------------ one call


def call(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Function.apply."""
    separate = cls.setup_context is not Function.setup_context
    if separate:
        args = with_defaults(cls.forward, args, kwargs)
    elif kwargs:
        args = in_position(cls.forward, args, kwargs)
    ctx = object.__new__(cls._backward_cls)
    ctx.hooks = None
    ctx.shape = ctx.dtype = None
    ctx.sequence_nr = numbers.next()
    mark(ctx)
    ctx.is_variable = tuple([isinstance(a, Tensor) for a in args])
    inputs = [a for a in args if isinstance(a, Tensor)]
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and wants_grad(a) for a in args])
    recorded = is_grad_enabled() and any(ctx.needs_input_grad)
    ctx.edges = tuple([edge_of(t) for t in inputs]) if recorded else ()
    outputs = run_forward(cls, ctx, args, separate)
    is_tuple = isinstance(outputs, tuple)
    raw = list(outputs) if is_tuple else [outputs]
    wrapped = wrap_outputs(ctx, inputs, raw, recorded)
    dirty = ctx.dirty_tensors or ()
    returned = [o for o in raw if any(o is i for i in inputs) and not any(o is d for d in dirty)]
    keep(ctx, recorded, returned if separate else [])
    if modes.dual_level >= 0:
        push_tangents(cls, ctx, args, wrapped)
    return tuple(wrapped) if is_tuple else wrapped[0]


def run_forward(cls: Any, ctx: Any, args: tuple[Any, ...], separate: bool) -> Any:
    """The user's forward, with gradients and forward mode off: the node stands for all that happens inside."""
    before, level = grad_enabled.get(), modes.dual_level
    modes.dual_level = -1
    try:
        grad_enabled.set(False)
        if not separate:
            return cls.forward(ctx, *args)
        outputs = cls.forward(*args)
        cls.setup_context(ctx, args, outputs)
        return outputs
    finally:
        modes.dual_level = level
        grad_enabled.set(before)


# ------------------------------------------------------------------ once_differentiable


class Error(Node):
    """The node of gradients that must not be differentiated again."""

    __slots__ = ("message", "metas")
    __module__ = "builtins"
    multiple = True

    message: str
    metas: list[Any]

    def output_meta(self, nr: int) -> Any:
        """Shape and dtype of output `nr`."""
        return self.metas[nr]

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Refuse."""
        raise RuntimeError(self.message)

    backward_tensors = backward


def once_differentiable(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that cannot itself be differentiated."""

    @functools.wraps(formula)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        before = grad_enabled.get()
        try:
            grad_enabled.set(False)
            outputs = formula(ctx, *args, **kwargs)
        finally:
            grad_enabled.set(before)
        if not is_grad_enabled() or not any(isinstance(a, Tensor) and wants_grad(a) for a in args):
            return outputs
        guarded = not_again(outputs if isinstance(outputs, tuple) else (outputs,))
        return tuple(guarded) if len(guarded) > 1 else guarded[0]

    return wrapper


def not_again(outputs: tuple[Any, ...]) -> list[Any]:
    """The same values with a history that refuses to be differentiated."""
    node = Error()
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    node.sequence_nr, node.hooks = numbers.next(), None
    mark(node)
    node.shape = node.dtype = None
    node.metas = [(None, None) if t is None else (t._array.shape, t._array.dtype) for t in outputs]
    leaves = [None if t is None else wrap(t._array) for t in outputs]
    guarded = [None if t is None else wrap(t._array) for t in outputs]
    for nr, (leaf, out) in enumerate(zip(leaves, guarded, strict=True)):
        if leaf is not None and out is not None:
            leaf._requires_grad = out._requires_grad = True
            out._edge = edge_to(node, nr)
    node.edges = tuple(leaves)
    return guarded


class NestedIOFunction(Function):
    """Kept for old programs: use Function."""


class InplaceFunction(Function):
    """Kept for old programs: use Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
