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
from typing import Any

import numpy as np

from pullback import _messages as messages
from pullback._dtype import FROM_NUMPY
from pullback._modes import grad_enabled, is_grad_enabled, modes
from pullback._op.forward_mode import strip
from pullback._op.results import note_traceback, save_input, save_output
from pullback._tensor import Tensor, bump_version, wrap
from pullback.autograd.node import Node, edge_to, next_sequence_nr, parts
from pullback.autograd.saved import FREED, unpack_input, unpack_output
from pullback.autograd.view import (
    IN_CUSTOM_FUNCTION,
    MULTI_OUTPUT_NODE,
    edge_of,
    make_view,
    rebase_history,
    wants_grad,
)


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


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom Function. Each Function class has its own subclass."""

    multiple = True
    takes_none = True
    _forward_cls: Any

    materialize_grads = True
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
        kept = self.__dict__.get("kept")
        if kept is FREED:
            raise RuntimeError(messages.BACKWARD_TWICE)
        return tuple([keeper.unpack(self) for keeper in kept or ()])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of saved_tensors."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    in_jvp = False
    metas: list[Any]

    def release(self) -> None:
        """Drop the saved tensors."""
        if self.__dict__.get("kept"):
            self.kept = FREED

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
        if self.materialize_grads:
            grads = [zeros_of(meta) if g is None else g for g, meta in zip(grads, self.metas, strict=True)]
        return self.checked(self.apply(*grads))

    def apply(self, *args: Any) -> Any:
        """Call the user's backward."""
        cls = self._forward_cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        formula = cls.vjp if cls.vjp is not Function.vjp else cls.backward
        return formula(self, *args)

    def checked(self, outs: Any) -> tuple[Any, ...]:
        """The gradients of the tensor inputs, if the user's backward returned something that fits."""
        outs = outs if isinstance(outs, tuple) else (outs,)
        expected, name = len(self.is_variable), self.name()
        if len(outs) > expected and all(o is None for o in outs[expected:]):
            outs = outs[:expected]
        if len(outs) != expected:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(outs)})"
            )
        kept = []
        for i, (out, is_variable) in enumerate(zip(outs, self.is_variable, strict=True)):
            if not is_variable:
                if out is not None:
                    raise RuntimeError(
                        f"function {name} returned a gradient different than None at position {i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if out is not None and not isinstance(out, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(out).__name__})")
            kept.append(out)
        return tuple(kept)

    is_variable: tuple[bool, ...]

    def __call__(self, *grads: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


class Keeper:
    """One tensor of save_for_backward: an input as it is, an output as memory and counter."""

    __slots__ = ("counter", "nr", "value", "version")

    def __init__(self, node: Any, tensor: Any) -> None:
        maker, nr = (None, 0) if tensor is None else parts(tensor._edge)
        self.nr = nr if maker is node else None
        if self.nr is None:
            self.value, self.version = save_input(node, "saved", tensor)
        else:
            self.value, self.counter, self.version = save_output(node, "saved", tensor)

    def unpack(self, node: Any) -> Any:
        """The tensor, checked for writes since."""
        if self.nr is None:
            return unpack_input(node, self.value, self.version)
        return unpack_output(node, self.value, self.counter, self.version, self.nr)


def zeros_of(meta: Any) -> Tensor | None:
    """Zeros for an output nobody used."""
    return None if meta is None or meta[0] is None else wrap(np.zeros(meta[0], meta[1]))


class FunctionMeta(type):
    """Gives each Function class a node class named after it."""

    _backward_cls: Any

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls})
        cls._backward_cls.__module__ = "torch.autograd.function"


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base class of custom functions: subclass it, write static `forward` and `backward`, call `apply`."""

    generate_vmap_rule = False

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
        return call(cls, args, kwargs)


# ------------------------------------------------------------------ one call


def call(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Function.apply."""
    ctx = object.__new__(cls._backward_cls)
    ctx.hooks = None
    ctx.shape = ctx.dtype = None
    ctx.sequence_nr = next_sequence_nr()
    ctx.is_variable = tuple([isinstance(a, Tensor) for a in args])
    inputs = [a for a in args if isinstance(a, Tensor)]
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and wants_grad(a) for a in args])
    recorded = is_grad_enabled() and any(ctx.needs_input_grad)
    ctx.edges = tuple([edge_of(t) for t in inputs]) if recorded else ()
    stripped = tuple([strip(a) for a in args]) if modes.dual_level >= 0 else args
    token = grad_enabled.set(False)
    try:
        if cls.setup_context is not Function.setup_context:
            outputs = cls.forward(*stripped, **kwargs)
            cls.setup_context(ctx, stripped, outputs)
        else:
            outputs = cls.forward(ctx, *stripped, **kwargs)
    finally:
        grad_enabled.reset(token)
    is_tuple = isinstance(outputs, tuple)
    raw = list(outputs) if is_tuple else [outputs]
    wrapped = wrap_outputs(ctx, inputs, raw, recorded)
    keep(ctx, recorded)
    if recorded and modes.anomaly:
        note_traceback(ctx)
    if modes.dual_level >= 0:
        push_tangents(cls, ctx, args, wrapped)
    return tuple(wrapped) if is_tuple else wrapped[0]


def wrap_outputs(ctx: Any, inputs: list[Tensor], raw: list[Any], recorded: bool) -> list[Any]:
    """Give the outputs their history."""
    dirty = list(ctx.dirty_tensors or ())
    for tensor in dirty:
        if not any(tensor is o for o in raw):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        bump_version(tensor)
    passive = {id(t) for t in ctx.non_differentiable or ()}
    count = sum(isinstance(o, Tensor) for o in raw)
    ctx.metas = []
    out = []
    for nr, tensor in enumerate(raw):
        if not isinstance(tensor, Tensor):
            ctx.metas.append((None, None))
            out.append(tensor)
            continue
        is_input = any(tensor is i for i in inputs)
        is_dirty = any(tensor is d for d in dirty)
        differentiable = recorded and id(tensor) not in passive and FROM_NUMPY[tensor._array.dtype].category >= 2
        ctx.metas.append((tensor._array.shape, tensor._array.dtype))
        out.append(with_history(ctx, tensor, nr, is_input, is_dirty, differentiable, count))
    return out


def with_history(
    ctx: Any, tensor: Tensor, nr: int, is_input: bool, is_dirty: bool, differentiable: bool, count: int
) -> Tensor:
    """One output as the caller gets it."""
    if is_dirty and is_input:
        return dirty_output(ctx, tensor, nr, differentiable, count)
    if is_input:
        # An input returned as it is becomes a view of it, so that it can have a history of its own.
        alias = wrap(tensor._array)
        make_view(alias, tensor, IN_CUSTOM_FUNCTION if differentiable else 0)
        tensor = alias
    elif not differentiable and tensor._edge is not None:
        tensor = wrap(tensor._array)
    if tensor._view is not None:
        tensor._view.creation = MULTI_OUTPUT_NODE if count > 1 else IN_CUSTOM_FUNCTION
    if differentiable:
        tensor._edge = edge_to(ctx, nr)
        tensor._requires_grad = True
    return tensor


def dirty_output(ctx: Any, tensor: Tensor, nr: int, differentiable: bool, count: int) -> Tensor:
    """An input changed in place: the same tensor, with the new history."""
    if not differentiable:
        return tensor
    if tensor._edge is None and tensor._requires_grad:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if tensor._view is not None and count > 1:
        raise RuntimeError(VIEW_AND_MORE)
    if tensor._view is None:
        tensor._edge, tensor._requires_grad = edge_to(ctx, nr), True
    else:
        rebase_history(tensor, Single(ctx))
    return tensor


VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)


class Single(Node):
    """A custom node with one output, seen as the node inside a CopySlices."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node, self.edges = node, node.edges

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Arrays in, arrays out."""
        return self.node.backward([grad])  # type: ignore[no-any-return]

    def backward_tensors(self, grad: Any) -> tuple[Any, ...]:
        """Tensors in, tensors out."""
        return self.node.backward_tensors([grad])  # type: ignore[no-any-return]

    def release(self) -> None:
        """Drop what the node saved."""
        self.node.release()


def keep(ctx: Any, recorded: bool) -> None:
    """Pack what was given to save_for_backward."""
    if ctx.to_save is None:
        return
    for i, tensor in enumerate(ctx.to_save):
        if tensor is not None and not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {kind}")
    if recorded:
        ctx.kept = [Keeper(ctx, t) for t in ctx.to_save]
    ctx.to_save = None


def push_tangents(cls: Any, ctx: Any, args: tuple[Any, ...], outputs: list[Any]) -> None:
    """Forward mode through a custom function."""
    tangents = [a._tangent if isinstance(a, Tensor) else None for a in args]
    if all(t is None for t in tangents):
        return
    if ctx.materialize_grads:
        tangents = [
            wrap(np.zeros_like(a._array)) if t is None and isinstance(a, Tensor) else t
            for a, t in zip(args, tangents, strict=True)
        ]
    ctx.in_jvp = True
    try:
        moved = cls.jvp(ctx, *tangents)
    finally:
        ctx.in_jvp = False
    moved = moved if isinstance(moved, tuple) else (moved,)
    for out, tangent in zip(outputs, moved, strict=True):
        if isinstance(out, Tensor) and tangent is not None:
            out._tangent = tangent


# ------------------------------------------------------------------ once_differentiable


class Error(Node):
    """The node of gradients that must not be differentiated again."""

    __slots__ = ("message",)

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Refuse."""
        raise RuntimeError(self.message)

    backward_tensors = backward


def once_differentiable(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a backward that cannot itself be differentiated."""

    @functools.wraps(formula)
    def wrapper(ctx: Any, *args: Any) -> Any:
        token = grad_enabled.set(False)
        try:
            outputs = formula(ctx, *args)
        finally:
            grad_enabled.reset(token)
        if not is_grad_enabled() or not any(isinstance(a, Tensor) and wants_grad(a) for a in args):
            return outputs
        out = []
        for tensor in outputs if isinstance(outputs, tuple) else (outputs,):
            if tensor is not None:
                tensor = wrap(tensor._array)
                node = Error()
                node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
                node.edges = tuple([edge_of(a) for a in args if isinstance(a, Tensor)])
                node.sequence_nr, node.hooks = next_sequence_nr(), None
                node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
                tensor._edge, tensor._requires_grad = node, True
            out.append(tensor)
        return tuple(out) if isinstance(outputs, tuple) else out[0]

    return wrapper
