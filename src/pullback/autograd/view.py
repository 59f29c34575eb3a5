"""Views: tensors on another tensor's memory, and what an in-place write through one does to the graph.

All views of a tensor share its version counter. A write through a view becomes a `CopySlices` on its base:

    v = base[0]; v.mul_(w)        base.grad_fn = CopySlices(fn=MulBackward0, window=v)
                                  v.grad_fn    = AsStridedBackward0 -> CopySlices

`v.grad_fn` is made anew from the base's history the next time somebody asks, because the base (or another view)
may have been written to since. See note: views.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from pullback._arrays.kinds import read_for
from pullback._arrays.memory import as_strided, element_strides, empty_strided, storage_offset
from pullback._dtype import FROM_NUMPY
from pullback._lazy import stored
from pullback._modes import grad_enabled, is_grad_enabled, is_inference_mode_enabled
from pullback._runtime import messages
from pullback._runtime.builtins import bare
from pullback._tensor import INFERENCE, PRISTINE, Tensor, new, wrap
from pullback.autograd.locations import mark
from pullback.autograd.node import AccumulateGrad, Edge, Node, hooks_of, parts
from pullback.autograd.numbering import numbers
from pullback.autograd.saved import FREED, output_of

# How a view came to be decides whether it may be written through; the values follow torch's CreationMeta.
DEFAULT, IN_CUSTOM_FUNCTION, MULTI_OUTPUT_NODE, NO_GRAD_MODE, INFERENCE_MODE, MULTI_OUTPUT_SAFE = range(6)


class View:
    """Whose memory a tensor looks at, how it came to, and at which version its history was made."""

    __slots__ = ("base", "creation", "steps", "version")

    def __init__(self, out: Tensor, source: Tensor, creation: int = DEFAULT, step: Step | None = None) -> None:
        parent = source._view
        if parent is None:
            self.base = source
            self.creation = creation
            self.steps: tuple[Step, ...] = () if step is None else (step,)
        else:
            self.base = parent.base
            sticks = creation == DEFAULT or parent.creation == INFERENCE_MODE
            self.creation = parent.creation if sticks else creation
            self.steps = parent.steps
            if step is not None or self.steps:
                self.steps = (*self.steps, step or window_step(stored(source), stored(out)))
        self.version = source._counter[0]


bare_view: Any = bare(View)
"""A view whose slots are still empty."""

Step = tuple[Callable[[Any], Any] | None, Callable[[Any], Any]]
"""How to make a view again, on arrays (None for a lazy conjugate or negative) and on tensors; needed only where strides
do not say it: the dtype or a sign changes on the way from the base."""


def window_step(source: Any, array: Any) -> Step:
    """The step of a view that strides describe."""
    size, stride = array.shape, element_strides(array)
    offset = storage_offset(array) - storage_offset(source)
    return (
        lambda a: as_strided(a, size, stride, storage_offset(a) + offset),
        lambda t: t.as_strided(size, stride, t.storage_offset() + offset),
    )


def creation_now() -> int:
    """How a single view made at this moment counts."""
    if is_grad_enabled():
        return DEFAULT
    return INFERENCE_MODE if is_inference_mode_enabled() else NO_GRAD_MODE


def make_view(out: Tensor, source: Tensor, creation: int = DEFAULT, step: Step | None = None) -> None:
    """Make `out`, which looks at the memory of `source`, a differentiable view of it."""
    counter = source._counter
    if counter is PRISTINE:
        counter = source._counter = [0]
    elif counter is INFERENCE:
        out._counter = INFERENCE
        return
    out._counter = counter
    if source._view is not None or step is not None:
        out._view = View(out, source, creation or (DEFAULT if is_grad_enabled() else creation_now()), step)
        return
    # What View() does for the usual case, without the call.
    view = out._view = bare_view()
    view.base, view.steps, view.version = source, (), counter[0]
    view.creation = creation or (DEFAULT if is_grad_enabled() else creation_now())


def regenerate(tensor: Tensor, base: Tensor) -> Edge:
    """The edge of a view from its base's history: AsStridedBackward0. Attached where the op is declared."""
    raise NotImplementedError("import pullback.ops.shape.slicing first")


def refresh(tensor: Tensor) -> None:
    """Bring a view's history up to date with its base's."""
    view = tensor._view
    assert view is not None
    version = tensor._counter[0]
    if view.version == version or (tensor._edge is None and not view.base._requires_grad):
        return
    if view.creation != DEFAULT:
        forbid(tensor, view.creation, "its base or another view of its base has been")
    view.version = version
    old = tensor._edge
    if view.steps:
        again = view.base
        for _, step in view.steps:
            again = step(again)
        tensor._edge = again._edge
    else:
        tensor._edge = edge = regenerate(tensor, view.base)
        mark(edge)
    tensor._requires_grad = True
    move_retained(tensor, old)


def follow(view: Tensor) -> bool:
    """True if a view takes part in what grad mode records; its history is then up to date."""
    if not is_grad_enabled():
        return False
    made = view._view
    assert made is not None
    if made.version != view._counter[0]:
        refresh(view)
    return view._requires_grad or made.base._requires_grad


def edge_of(tensor: Tensor) -> Any:
    """Where this tensor's gradient goes: (node, output_nr), the tensor itself if it is a leaf, or None."""
    if tensor._view is not None:
        refresh(tensor)
    # A view made under no_grad has no history and is no leaf either, though its base may want gradients.
    return tensor._edge or (tensor if tensor._requires_grad else None)


def wants_grad(tensor: Tensor) -> bool:
    """requires_grad, where a view follows its base."""
    return tensor._requires_grad or (tensor._view is not None and tensor._view.base._requires_grad)


# ------------------------------------------------------------------ in-place


def forbid(tensor: Tensor, creation: int, what: str) -> None:
    """Raise: this view may not take part in an in-place write."""
    made = tensor._edge is not None
    if creation in (NO_GRAD_MODE, INFERENCE_MODE) or not made:
        where = f"O{output_of(tensor)[1:]} is a view of a view which was" if made else "A view was"
        text = (
            f"{where} created in inference mode and {what} modified inplace in normal mode."
            if creation == INFERENCE_MODE
            else f"{where} created in no_grad mode and {what} modified inplace with grad mode enabled."
        )
    else:
        text = f"O{output_of(tensor)[1:]} is a view and {what} modified inplace."
    raise RuntimeError(f"{text} {REASONS[creation]}")


BOTH = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
REASONS = {
    NO_GRAD_MODE: BOTH.format("no_grad"),
    INFERENCE_MODE: BOTH.format("inference_mode"),
    IN_CUSTOM_FUNCTION: (
        "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
        "logic to handle view+inplace would override the custom backward associated with the custom Function, leading "
        "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
        "Function."
    ),
    MULTI_OUTPUT_NODE: (
        "This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
}
"""Why a view may not be written, by how it came to be."""


def check_inplace(tensor: Tensor, tracked: bool) -> None:
    """Raise unless `tensor` may be written to; `tracked`: the write will be recorded in the graph."""
    if tensor._counter is INFERENCE and not is_inference_mode_enabled():
        raise RuntimeError(messages.INFERENCE_INPLACE)
    if not tracked:
        return
    view = tensor._view
    if view is not None:
        if view.creation != DEFAULT:
            forbid(tensor, view.creation, "is being")
        if wants_grad(tensor) and (view.base._edge is None or type(view.base._edge) is Entry):
            raise RuntimeError(messages.VIEW_OF_LEAF_INPLACE)
    if (tensor._edge is None or type(tensor._edge) is Entry) and wants_grad(tensor):
        # Also a view nobody has used since its base got a history: torch does not look that far.
        raise RuntimeError(messages.LEAF_INPLACE)


class Entry(Node):
    """The node of a tensor at the entry of a transform: inside it is a leaf, outside part of the graph it came from."""

    __slots__ = ()

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """What arrives inside goes on outside."""
        return (grad,)

    backward_tensors = backward


def entry(tensor: Tensor) -> Tensor:
    """A tensor, on the same memory, that is a leaf of a transform; to writes that are not recorded it stays one."""
    if tensor._counter is PRISTINE:
        tensor._counter = [0]
    out = wrap(tensor._array)
    out._counter, out._requires_grad, out._tangent = tensor._counter, True, tensor._tangent
    node = out._edge = new(Entry)
    node.hooks, node.edges = None, (edge_of(tensor),)
    node.shape, node.dtype = tensor._array.shape, tensor._array.dtype
    node.sequence_nr = numbers.next()
    mark(node)
    return out


def rebase_history(tensor: Tensor, node: Node) -> None:
    """After an in-place op: from now on the tensor (or its base) has `node` as its history."""
    view = tensor._view
    old = tensor._edge
    if view is None:
        tensor._edge = node
        tensor._requires_grad = True
        move_retained(tensor, old)
        return
    base = view.base
    slices = new(CopySlices)
    slices.fn = node
    slices.base_geometry = (base._array.shape, element_strides(base._array))
    slices.steps = view.steps or (window_step(stored(base), stored(tensor)),)
    slices.edges = (edge_of(base), *node.edges[1:])
    slices.sequence_nr = numbers.next()
    mark(slices)
    slices.shape = base._array.shape
    slices.dtype = base._array.dtype
    slices.hooks = None
    if getattr(node, "saved_outputs", None):
        node.metadata["window_"] = window_of(slices, base, view)
    base_edge = base._edge
    base._edge = slices
    base._requires_grad = True
    move_retained(base, base_edge)
    refresh(tensor)


def window_of(slices: Node, base: Tensor, view: View) -> Callable[[Tensor], Edge | None]:
    """How a result that the node of a write through a view saved finds its place: it is a view of what was written.

    The node is part of `slices`, so it must not hold on to it.
    """
    whole, array, steps = weakref.ref(slices), base._array, view.steps

    def edge(result: Tensor) -> Edge | None:
        written = wrap(array)
        written._edge, written._requires_grad = whole(), True
        if not steps:
            return regenerate(result, written)
        for _, step in steps:
            written = recorded(step, written)
        return written._edge

    return edge


def recorded(view: Callable[..., Tensor], tensor: Tensor, *args: Any) -> Tensor:
    """A view of a tensor with its history, also where nothing is recorded."""
    before = grad_enabled.get()
    try:
        grad_enabled.set(True)
        return view(tensor, *args)
    finally:
        grad_enabled.set(before)


def move_retained(tensor: Tensor, old: Edge | None) -> None:
    """After the history changed: `retain_grad` follows the tensor, its hooks stay with the value they saw."""
    extra = tensor._extra
    if extra is None or tensor._edge is None or old is None:
        return
    extra.hooks = None
    before, nr = parts(old)
    if extra.retains_grad and before.hooks is not None:
        reference = before.hooks.retain.pop(nr, None)
        if reference is not None:
            node, nr = parts(tensor._edge)
            hooks_of(node).retain[nr] = reference


class CopySlices(Node):
    """Backward of a write through a view: outside the window the gradient passes, inside it goes through `fn`."""

    __slots__ = ("base_geometry", "fn", "steps")
    __module__ = "builtins"

    base_geometry: tuple[tuple[int, ...], tuple[int, ...]]
    fn: Any
    steps: tuple[Step, ...]

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Arrays in, arrays out."""
        if any(step is None for step, _ in self.steps):
            grads = self.backward_tensors(wrap(grad))
            return tuple([g._array if isinstance(g, Tensor) else g for g in grads])
        size, stride = self.base_geometry
        result = read_for((grad,), empty_strided)(size, stride, grad.dtype)
        result[...] = grad
        window = result
        for step, _ in self.steps:
            assert step is not None
            window = step(window)
        inner = self.fn.backward(window.copy())
        window[...] = 0 if inner[0] is None else inner[0]
        return (result, *inner[1:])

    def backward_tensors(self, grad: Any) -> tuple[Any, ...]:
        """Tensors in, tensors out."""
        result = grad.new_empty_strided(*self.base_geometry)
        result.copy_(grad)
        window = result
        for _, step in self.steps:
            window = step(window)
        inner = self.fn.backward_tensors(window.clone())
        if inner[0] is None:
            window.zero_()
        else:
            window.copy_(inner[0])
        return (result, *inner[1:])

    def release(self, freed: Any = FREED) -> None:
        """Drop what the node inside saved."""
        self.fn.release(freed)


# ------------------------------------------------------------------ what Tensor shows of its place in the graph


def set_requires_grad(self: Tensor, value: bool) -> None:
    """Set on leaves only, and True only on floating point and complex ones."""
    if type(value) is not bool:
        raise RuntimeError("requires_grad must be a bool")
    if self._edge is not None and type(self._edge) is not AccumulateGrad:
        hint = (
            ""
            if value
            else " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
            "var_no_grad = var.detach()."
        )
        raise RuntimeError("you can only change requires_grad flags of leaf variables." + hint)
    if value and FROM_NUMPY[self._array.dtype].category < 2:
        raise RuntimeError(messages.ONLY_FLOATS_REQUIRE_GRAD)
    if value and self._counter is INFERENCE and not is_inference_mode_enabled():
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    self._requires_grad = value


def get_grad_fn(self: Tensor) -> Node | None:
    """The node that made this tensor; None for a leaf."""
    if self._view is not None:
        refresh(self)
    edge = self._edge
    # A tensor that stands for a leaf (one unpacked by hooks) has that leaf's AccumulateGrad as its edge.
    return None if edge is None or type(edge) is AccumulateGrad else parts(edge)[0]


def get_output_nr(self: Tensor) -> int:
    """Which output of its node this tensor is."""
    return 0 if self._edge is None else parts(self._edge)[1]


Tensor.requires_grad = property(wants_grad, set_requires_grad, doc="True if gradients are wanted for this tensor.")
Tensor.grad_fn = property(get_grad_fn)
Tensor.is_leaf = property(lambda self: get_grad_fn(self) is None)
Tensor.output_nr = property(get_output_nr)
Tensor._grad_fn = property(get_grad_fn)
Tensor._base = property(lambda self: None if self._view is None else self._view.base)
