"""One call of a custom Function: its arguments, the history of its outputs, what it saved, and its tangents.

Outputs may be anything the user returns: new tensors, inputs as they are, inputs changed in place, views of inputs,
the same tensor twice, or no tensors at all. `with_history` says what each becomes.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.forward_mode import tangent_of
from pullback._op.results import save_input, save_output
from pullback._runtime import messages
from pullback._tensor import Tensor, bump_version, counter_of, wrap
from pullback.autograd.node import Node, edge_to, parts
from pullback.autograd.saved import FREED, Freed, SavedTensor, unpack_input, unpack_output
from pullback.autograd.view import (
    IN_CUSTOM_FUNCTION,
    MULTI_OUTPUT_NODE,
    check_inplace,
    make_view,
    rebase_history,
    wants_grad,
)

VIEW_AND_MORE = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
    "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
    "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
    "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
ONLY_INPUTS_ARE_DIRTY = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
    "passed to ctx.mark_dirty()."
)
NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
NOT_A_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."

# ------------------------------------------------------------------ arguments


def with_defaults(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a forward that has a separate setup_context, which sees the defaults too."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def in_position(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments given by name, brought to their places: each place has its gradient."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if names.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    wanted = names[len(args) : max(names.index(name) for name in kwargs) + 1]
    for name in wanted:
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {names.index(name)})")
    return (*args, *[kwargs[name] for name in wanted])


# ------------------------------------------------------------------ saved tensors


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


class RawSaved(SavedTensor):
    """`_raw_saved_tensors` of a custom node: where hooks can be registered on one saved tensor."""

    __slots__ = ("keeper",)
    __module__ = "torch._C._autograd"

    def __init__(self, node: Any, keeper: Keeper) -> None:
        super().__init__(node, "saved", keeper.value)
        self.keeper = keeper

    def read(self) -> Any:
        """What the keeper holds."""
        return self.node.kept if type(self.node.kept) is Freed else self.keeper.value

    def load(self) -> Tensor:
        """The saved tensor, checked."""
        return self.keeper.unpack(self.node)  # type: ignore[no-any-return]

    def store(self, node: Any) -> None:
        """From now on the keeper holds what the hook packed."""
        self.keeper.value = self


def raw_saved(node: Any, keeper: Keeper) -> SavedTensor:
    """The SavedTensor of one keeper."""
    return keeper.value if isinstance(keeper.value, SavedTensor) else RawSaved(node, keeper)


RawSaved.__name__ = RawSaved.__qualname__ = "SavedTensor"


def keep(ctx: Any, recorded: bool, returned: list[Any]) -> None:
    """Pack what was given to save_for_backward; `returned` are inputs a separate forward returned as they are."""
    if ctx.to_save is None:
        return
    if any(t is r for t in ctx.to_save for r in returned if t is not None):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
            "setup ctx inside the forward function itself."
        )
    for i, tensor in enumerate(ctx.to_save):
        if tensor is not None and not isinstance(tensor, Tensor):
            kind = type(tensor).__name__
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {kind}")
    if recorded:
        ctx.kept = [Keeper(ctx, t) for t in ctx.to_save]
    ctx.to_save = None


# ------------------------------------------------------------------ outputs


def check_marks(ctx: Any, raw: list[Any]) -> None:
    """Raise unless what was marked can be marked."""
    for i, tensor in enumerate(ctx.dirty_tensors or ()):
        if not isinstance(tensor, Tensor):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {i} is of type {type(tensor).__name__}"
            )
        if not any(tensor is o for o in raw):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
    for tensor in ctx.non_differentiable or ():
        if not isinstance(tensor, Tensor):
            raise RuntimeError(
                f"mark_non_differentiable only accepts variable arguments, but got {type(tensor).__name__}"
            )


def wrap_outputs(ctx: Any, inputs: list[Tensor], raw: list[Any], recorded: bool) -> list[Any]:
    """Give the outputs their history."""
    check_marks(ctx, raw)
    dirty = list(ctx.dirty_tensors or ())
    for tensor in dirty:
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
    if is_dirty:
        if not is_input and differentiable:
            warnings.warn(ONLY_INPUTS_ARE_DIRTY, UserWarning, stacklevel=6)
        return dirty_output(ctx, tensor, nr, differentiable, count)
    if is_input:
        # An input returned as it is becomes a view of it, so that it can have a history of its own.
        tensor = alias_of(tensor, differentiable)
    elif not differentiable and tensor._edge is not None:
        tensor = wrap(tensor._array)
    if tensor._view is not None:
        tensor._view.creation = MULTI_OUTPUT_NODE if count > 1 else IN_CUSTOM_FUNCTION
    if differentiable:
        tensor._edge = edge_to(ctx, nr)
        tensor._requires_grad = True
    return tensor


def alias_of(tensor: Tensor, differentiable: bool) -> Tensor:
    """An input returned as it is: a view of it, or detached if it must not lead to the input's history."""
    alias = wrap(tensor._array)
    if differentiable or not wants_grad(tensor):
        make_view(alias, tensor, IN_CUSTOM_FUNCTION if differentiable else 0)
    else:
        alias._counter = counter_of(tensor)
    return alias


def dirty_output(ctx: Any, tensor: Tensor, nr: int, differentiable: bool, count: int) -> Tensor:
    """An input changed in place: the same tensor, with the new history; an alias of it where nobody records one."""
    if not differentiable:
        return alias_of(tensor, False) if wants_grad(tensor) else tensor
    if tensor._edge is None and wants_grad(tensor):
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if tensor._view is not None and count > 1:
        raise RuntimeError(VIEW_AND_MORE)
    check_inplace(tensor, tracked=True)
    if tensor._view is None:
        tensor._edge, tensor._requires_grad = edge_to(ctx, nr), True
    else:
        rebase_history(tensor, Single(ctx))
    return tensor


class Single(Node):
    """A custom node with one output, seen as the node inside a CopySlices."""

    __slots__ = ("node",)
    _code = _scope = None

    def __init__(self, node: Any) -> None:
        self.node, self.edges = node, node.edges

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Arrays in, arrays out."""
        return self.node.backward([grad])  # type: ignore[no-any-return]

    def backward_tensors(self, grad: Any) -> tuple[Any, ...]:
        """Tensors in, tensors out."""
        return self.node.backward_tensors([grad])  # type: ignore[no-any-return]

    def release(self, freed: Freed = FREED) -> None:
        """Drop what the node saved."""
        self.node.release(freed)


# ------------------------------------------------------------------ forward mode


def push_tangents(cls: Any, ctx: Any, args: tuple[Any, ...], outputs: list[Any]) -> None:
    """Forward mode through a custom function."""
    tangents = [tangent_of(a) if isinstance(a, Tensor) else None for a in args]
    if all(t is None for t in tangents):
        return
    versions = {id(a): t._counter[0] for a, t in zip(args, tangents, strict=True) if t is not None}
    if ctx._materialize:
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
    if len(moved) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
            f"{len(moved)})"
        )
    for i, tangent in enumerate(moved):
        if tangent is not None and not isinstance(tangent, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {i}.")
    for out, tangent in zip(outputs, moved, strict=True):
        if isinstance(out, Tensor) and tangent is not None:
            set_tangent(ctx, args, out, tangent, versions)


def set_tangent(ctx: Any, args: tuple[Any, ...], out: Tensor, tangent: Tensor, versions: dict[int, int]) -> None:
    """Give one output its tangent, if that moves as the output does: in place where written, a view where a view."""
    if tangent._array.shape != out._array.shape:
        raise RuntimeError(messages.tangent_size(out._array.shape, tangent._array.shape))
    if any(out is d for d in ctx.dirty_tensors or ()):
        if id(out) in versions and tangent._counter[0] == versions[id(out)]:
            raise RuntimeError(NOT_IN_PLACE)
    elif out._view is not None and tangent._view is None:
        moving = [a for a in args if isinstance(a, Tensor) and a._tangent is not None]
        if any((a if a._view is None else a._view.base) is out._view.base for a in moving):
            raise RuntimeError(NOT_A_VIEW)
    out._tangent = tangent
