"""What a node keeps for backward: packing, unpacking, the check that nobody has written over it since.

A saved input is kept as the tensor itself with the version it had. A saved output cannot be (tensor -> node ->
tensor would be a cycle), so its array and counter are kept, and reading it makes another tensor on the same memory.
Either becomes a `SavedTensor` where hooks decide what is stored instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._dtype import FROM_NUMPY
from pullback._modes import grad_enabled, modes, saved_tensor_hooks
from pullback._runtime import messages
from pullback._runtime.quiet import heard
from pullback._tensor import DETACHED, Tensor, counter_of, wrap
from pullback.autograd import who
from pullback.autograd.node import Node, accumulator_of, edge_to, parts


class Freed:
    """Stands where a saved tensor was, once backward has passed: the backward called there."""

    __slots__ = ("code", "offset")

    def __init__(self) -> None:
        self.code: Any = None
        self.offset = 0

    def __repr__(self) -> str:
        return "<freed>"


FREED = Freed()


class SavedTensor:
    """One saved tensor of a node: where hooks can be registered, and what they packed."""

    __slots__ = ("edge", "name", "node", "nr", "packed", "requires_grad", "unpack")
    __module__ = "torch._C._autograd"

    def __init__(self, node: Node, name: str, tensor: Any, nr: int = 0) -> None:
        self.node: Any = node
        self.name = name
        self.nr = nr
        self.packed: Any = tensor
        self.unpack: Callable[[Any], Any] | None = None
        self.edge: Any = None
        self.requires_grad = False

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Given `pack` and `unpack`: store `pack(tensor)` instead of the tensor; backward will use `unpack(packed)`."""
        if len(hooks) != 2 or not all(callable(hook) for hook in hooks):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                f"collections.abc.Callable) -> None\n\nInvoked with: {', '.join(map(repr, (self, *hooks)))}"
            )
        if self.unpack is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
                "of hooks is allowed at a time."
            )
        value = self.read()
        if type(value) is Freed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        tensor = self.load()
        given = wrap(tensor._array)
        given._counter = counter_of(tensor)
        node = self.node
        pack_into(self, tensor, given, *hooks)
        self.store(node)

    def read(self) -> Any:
        """What lies where the tensor was saved."""
        return read_slot(self.node, self.name, self.nr)

    def load(self) -> Tensor:
        """The saved tensor, checked."""
        return unpack_slot(self.node, self.name, self.nr)  # type: ignore[no-any-return]

    def store(self, node: Any) -> None:
        """Put this object where the tensor was saved: hooks decide from now on."""
        write_slot(node, self.name, self.nr, self)


def pack_into(
    saved: SavedTensor, tensor: Tensor, given: Tensor, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
) -> None:
    """Show the pack hook the tensor, as `given`, and keep what it returns."""
    version = given._counter[0]
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        saved.packed = pack(given)
    finally:
        grad_enabled.set(before)
    if given._counter[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    saved.unpack = unpack
    edge = tensor._edge
    if edge is not None and parts(edge)[0] is saved.node:
        edge = (None, parts(edge)[1])  # an output: the node is found again through the saved tensor, without a cycle
    saved.edge = edge
    saved.requires_grad = tensor._requires_grad
    if edge is None and tensor._requires_grad:
        saved.edge = accumulator_of(tensor)  # what comes back sends its gradient to that very leaf
    saved.node = None


def unpacked(saved: SavedTensor, node: Node) -> Tensor:
    """What the unpack hook gives, with the history of the tensor that was saved."""
    assert saved.unpack is not None
    value = heard(saved.unpack, saved.packed)
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
    edge = saved.edge
    if edge is None and not saved.requires_grad and not value._requires_grad:
        return value  # type: ignore[no-any-return]
    out = wrap(value._array)
    out._counter = counter_of(value)
    out._requires_grad = saved.requires_grad
    if edge is not None:
        out._edge = edge_to(node, edge[1]) if parts(edge)[0] is None else edge
    return out


def default_hooks() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """The innermost default (pack, unpack) pair, if any."""
    stack = saved_tensor_hooks.get()
    return stack[-1] if stack else None


def stale(node: Node, tensor: Tensor, saved_version: int) -> None:
    """Raise: a tensor needed for backward was written over."""
    if tensor._edge is None and tensor._counter[0] // DETACHED != saved_version // DETACHED:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, "
            "please use out-of-place `.detach()` instead"
        )
    tensor.grad_fn  # noqa: B018  # type: ignore[attr-defined]  # a view first finds out what happened to its base
    dtype = FROM_NUMPY[tensor._array.dtype]
    kind = f"CPU{dtype.scalar_type}Type" if dtype.is_complex else f"torch.{dtype.scalar_type}Tensor"
    maker = "" if tensor._edge is None else f", which is {output_of(tensor)},"
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
        "question was changed in there or anywhere later. Good luck!"
        if modes.anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {messages.shape_text(tensor._array.shape)}]{maker} is at version {tensor._version}; "
        f"expected version {saved_version % DETACHED} instead. Hint: {hint}"
        + who.overwritten(node, tensor, saved_version)
    )


def output_of(tensor: Tensor) -> str:
    """What torch's errors call a computed tensor: output 0 of Exp."""
    node, nr = parts(tensor._edge)
    return f"output {nr} of {forward_name(node)}"


def forward_name(node: Node) -> str:
    """What torch calls the op of a node in its errors: ExpBackward0 is Exp, SumBackward1 is Sum1."""
    name = node.name()
    start, found, overload = name.partition("Backward")
    return start + overload.removeprefix("0") if found and overload != "s" else name


# ------------------------------------------------------------------ slots of generated nodes
# A saved tensor `other` lies in the slots other_ and other_version, a saved output `result` in result_ (an array),
# result_counter and result_version; a list of tensors in tensors_ and tensors_version (lists).


def read_slot(node: Any, name: str, nr: int = 0) -> Any:
    """What lies in the slot of a saved tensor."""
    value = getattr(node, name + "_")
    return value[nr] if type(value) is list else value


def write_slot(node: Any, name: str, nr: int, value: Any) -> None:
    """Put something else in the slot of a saved tensor."""
    current = getattr(node, name + "_")
    if type(current) is list:
        current[nr] = value
    else:
        setattr(node, name + "_", value)


def unpack_slot(node: Any, name: str, nr: int = 0) -> Any:
    """A saved tensor as a tensor, checked; a saved number as it is. What `grad_fn._saved_<name>` gives."""
    value = getattr(node, name + "_")
    version: Any = getattr(node, name + "_version", 0)
    if name in node.saved_outputs:
        return unpack_output(node, value, getattr(node, name + "_counter"), version, node.saved_outputs[name])
    if type(value) is list:
        value, version = value[nr], version[nr]
    return unpack_input(node, value, version)


def unpack_input(node: Node, value: Any, version: int) -> Any:
    """The rare cases of reading a saved input: freed, packed by hooks, a subclass, a number, absent."""
    if isinstance(value, Tensor):
        if value._counter[0] != version:
            stale(node, value, version)
        return value
    if type(value) is Freed:
        raise RuntimeError(messages.BACKWARD_TWICE + who.freed(node, value))
    return unpacked(value, node) if isinstance(value, SavedTensor) else value


def is_constant(node: Any, nr: int) -> bool:
    """True for an output that nobody can differentiate."""
    op = getattr(node, "op", None)
    return op is not None and op.constants and op.outputs[nr] in op.constants


def unpack_output(node: Any, value: Any, counter: Any, version: int, nr: int) -> Any:
    """A saved output as a new tensor on the same memory, with this node as its history."""
    if type(value) is Freed:
        raise RuntimeError(messages.BACKWARD_TWICE + who.freed(node, value))
    if value is None:
        return None
    if isinstance(value, SavedTensor):
        return unpacked(value, node)
    out = wrap(value)
    out._counter = counter
    if FROM_NUMPY[value.dtype].category >= 2 and not is_constant(node, nr):
        out._requires_grad = True
        window = (getattr(node, "_metadata", None) or {}).get("window_")
        out._edge = edge_to(node, nr) if window is None else window(out)
    if counter[0] != version:
        stale(node, out, version)
    if modes.dual_level >= 0 and nr in (noted := node.metadata.get("tangents_", ())):
        epoch, tangent = noted[nr]
        if epoch == modes.dual_epoch:
            out._tangent = tangent
    return out
