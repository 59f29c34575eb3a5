"""From the arrays a forward returned to the tensors a caller gets: wrapping, views, the node, what it saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign, is_sparse
from pullback._arrays.memory import element_strides, geometry_of
from pullback._dtype import FROM_NUMPY
from pullback._foreign import ForeignTensor
from pullback._lazy import LazyTensor, seen, stored
from pullback._modes import is_grad_enabled
from pullback._op.declare import Op, names_of
from pullback._op.named import return_type
from pullback._op.readings import forward_of
from pullback._tensor import Tensor, counter_of, fresh, new, wrap
from pullback.autograd.locations import Detached, detached_here, here, mark
from pullback.autograd.node import Node, edge_to
from pullback.autograd.numbering import numbers
from pullback.autograd.saved import Freed, SavedTensor, default_hooks, pack_into, read_slot, unpack_slot
from pullback.autograd.view import MULTI_OUTPUT_NODE, edge_of, follow, make_view, wants_grad

Bound = dict[str, Any]
OTHERS = (ForeignTensor, LazyTensor)
"""The tensors whose elements may not be the host's, seen through a sign or not."""


def finish(op: Op, outs: Any, bound: Bound) -> list[Any]:
    """Wrap what a forward returned, make views views, record the call in the graph."""
    tensors: list[Any] = [None if a is None else fresh(a) for a in (outs if op.multiple else (outs,))]
    if op.view and not is_sparse(stored(bound[op.tensors[0]])):
        source = bound[op.tensors[0]]
        if op.flips or type(source) is LazyTensor:
            tensors = [seen(source, tensor._array, op.flips) for tensor in tensors]
        for tensor in tensors:
            make_view(tensor, source, MULTI_OUTPUT_NODE if op.variadic else 0, dtype_step(op, tuple(bound.values())))
    if record(op, bound, tensors) is None and (detached := detached_at(op, bound)) is not None:
        for tensor in tensors:
            if tensor is not None:
                tensor._detached_at = detached
    return tensors


def detached_at(op: Op, bound: Bound) -> Detached | None:
    """Where a call that was not recorded lost the history of its inputs: here, or where they did."""
    given = [t for name in op.tensors for t in items(op, name, bound) if isinstance(t, Tensor)]
    if any(t._requires_grad for t in given):
        if not is_grad_enabled():
            return here().block
        if not op.differentiable:
            return detached_here(op.name)
    return detached_among(given)


def detached_among(tensors: Any) -> Detached | None:
    """Where the first of the histories of tensors ended."""
    return next((t._detached_at for t in tensors if t is not None and t._detached_at is not None), None)


def flipped(op: Op, source: Tensor) -> Tensor:
    """The lazy view of a tensor without history: what `finish` makes, at once."""
    out = seen(source, source._array, op.flips)
    make_view(out, source, 0, dtype_step(op, (source,)))
    out._detached_at = source._detached_at
    return out


def dtype_step(op: Op, args: tuple[Any, ...]) -> Any:
    """How to make a view again that strides cannot describe, on arrays and on tensors: one that changes the dtype."""
    if not op.changes_dtype:
        return None
    rest = args[1:]
    if op.flips:
        return None, lambda tensor: op.call(tensor)
    return (lambda array: forward_of(op)(array, *rest), lambda tensor: op.call(tensor, *rest))


def present(op: Op, tensors: list[Any]) -> Any:
    """What the caller sees: one tensor, a tuple, or a named tuple."""
    if op.variadic:
        return tuple(tensors)
    if op.visible == 1:
        return tensors[0]
    if op.fields is None:
        op.fields = return_type(op.name, op.outputs[: op.visible])
    return op.fields(*tensors[: op.visible])


def recorder(op: Op) -> Callable[[Any, tuple[Any, ...]], Any]:
    """The end of the fast path of an op with several outputs."""

    def finish_call(outs: Any, args: tuple[Any, ...]) -> Any:
        return present(op, finish(op, outs, dict(zip(op.param_names, args, strict=True))))

    return finish_call


# ------------------------------------------------------------------ the node of a call


def items(op: Op, name: str, bound: Bound) -> list[Any]:
    """The tensors one parameter stands for: one, or as many as its list has."""
    value = bound[name]
    return list(value) if op.kinds[name] == "list" else [value]


def differentiable_inputs(op: Op, bound: Bound) -> Iterator[Any]:
    """Every input the node has an edge for."""
    for name in op.differentiable:
        yield from items(op, name, bound)


def bring_up_to_date(op: Op, bound: Bound) -> None:
    """Give views among the inputs their histories, before anything is computed."""
    for tensor in differentiable_inputs(op, bound):
        if isinstance(tensor, Tensor) and tensor._view is not None:
            follow(tensor)


def record(op: Op, bound: Bound, outs: list[Any], later: bool = False) -> Node | None:
    """Make the node of this call, if an input wants a gradient and grad mode is on.

    With `later` the outputs are not saved yet: an in-place op saves its inputs before the write, its output after.
    """
    if not op.differentiable or not is_grad_enabled():
        return None
    inputs = list(differentiable_inputs(op, bound))
    if not any(isinstance(t, Tensor) and wants_grad(t) for t in inputs):
        return None
    involved = [t for name in op.tensors for t in items(op, name, bound)] + outs
    elsewhere = next((stored(t) for t in involved if isinstance(t, OTHERS) and is_foreign(stored(t))), None)
    kind = node_class(op)
    if elsewhere is None:
        alone = op.multiple or len(op.tensors) == 1
        node = new(kind if alone else class_beside_double(op, kind, bound, outs[0]._array.dtype))
    else:
        node = type(elsewhere).noted(kind, inputs)  # type: ignore[attr-defined]
    node.hooks = None
    node.edges = tuple([edge_of(t) if isinstance(t, Tensor) else None for t in inputs])
    node.sequence_nr = numbers.next()
    mark(node)
    if op.multiple:
        node.shape = node.dtype = None
        node.metas = [(None, None) if t is None else (t._array.shape, t._array.dtype) for t in outs]
    else:
        node.shape, node.dtype = outs[0]._array.shape, outs[0]._array.dtype
    for nr, out in enumerate(outs):
        if out is not None and FROM_NUMPY[out._array.dtype].category >= 2:
            if op.constants and op.outputs[nr] in op.constants:
                continue
            out._requires_grad = True
            out._edge = edge_to(node, nr)
        elif out is not None:
            out._detached_at = (op.name, node._code, node._offset, node._scope)
    for name in op.saved:
        if not (later and name in op.outputs):
            save(op, node, name, bound, outs)
    return node  # type: ignore[no-any-return]


def node_class(op: Op) -> Any:
    """The node class of an op, compiled on first need."""
    if op.node is None:
        op.compile()  # type: ignore[attr-defined]
    return op.node


# ------------------------------------------------------------------ single precision with a double
#
# A double that has no dimensions counts less than the others: in every step of a formula torch brings it to their
# dtype. NumPy takes the wider one, in which two numbers that were a tie differ. So the step of such a node reads what
# was saved in the dtype of the result. (In half precision torch rounds where it compares, not where it multiplies.)

beside_double: dict[type[Any], type[Any]] = {}
"""The classes of such nodes, by those of plain ones."""


def class_beside_double(op: Op, plain: Any, bound: Bound, dtype: Any) -> Any:
    """The class of the node of a call: the plain one, unless it saves numbers of a wider dtype than its own."""
    if not any([is_wider(bound[name], dtype) for name in pointwise(op)]):
        return plain
    found = beside_double.get(plain)
    if found is None:
        names = {"__slots__": (), "__module__": "builtins", "backward": step_of(op, plain.backward)}
        found = beside_double[plain] = type(plain.__name__, (plain,), names)
    return found


def pointwise(op: Op) -> list[str]:
    """The saved operands of an op that takes several of any dtype."""
    if not (op.pointwise or op.promote):
        return []
    return [name for name in op.tensors if name in op.saved and op.kinds[name] != "list"]


def is_wider(value: Any, dtype: Any) -> bool:
    """True for a tensor of double precision without dimensions beside numbers of single, all real or all complex."""
    if not isinstance(value, Tensor) or value._array.ndim:
        return False
    return (value._array.dtype.char, dtype.char) in (("d", "f"), ("D", "F"))


def step_of(op: Op, plain: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The step of a node, in which it reads its operands in its own dtype."""

    def backward(node: Any, grad: Any) -> Any:
        return plain(Reading(node, pointwise(op)), grad)

    return backward


class Reading:
    """A node as its step reads it."""

    def __init__(self, node: Any, names: list[str]) -> None:
        self.node = node
        for name in names:
            value = unpack_slot(node, name)
            if is_wider(value, node.dtype):
                value = wrap(value._array.astype(node.dtype))
            setattr(self, f"{name}_", value)
            setattr(self, f"{name}_version", value._counter[0] if isinstance(value, Tensor) else 0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.node, name)


# ------------------------------------------------------------------ what a node keeps


def save(op: Op, node: Any, name: str, bound: Bound, outs: list[Any]) -> None:
    """Store one saved value on the node."""
    derived = op.derived_from(name)
    if name in op.outputs:
        value, counter, version = save_output(node, name, outs[op.outputs.index(name)])
        setattr(node, name + "_", value)
        setattr(node, name + "_counter", counter)
        setattr(node, name + "_version", version)
    elif derived is not None:
        source = derived[0]
        known = bound if source in bound else {source: outs[op.outputs.index(source)]}
        setattr(node, name + "_", derive(op, known, *derived))
    elif name not in op.tensors:
        setattr(node, name + "_", bound[name])
    elif op.kinds[name] == "list":
        saved = [save_input(node, name, t, nr) for nr, t in enumerate(bound[name])]
        setattr(node, name + "_", [value for value, _ in saved])
        setattr(node, name + "_version", [version for _, version in saved])
    else:
        value, version = save_input(node, name, bound[name] if needed(op, node, name) else None)
        setattr(node, name + "_", value)
        setattr(node, name + "_version", version)


def needed(op: Op, node: Node, name: str) -> bool:
    """True if some formula that will run names this input; the others would only keep it alive."""
    if op.joint is not None or any(op.kinds[t] == "list" for t in op.differentiable):
        return True
    edges = zip(op.differentiable, node.edges, strict=True)
    return any(edge is not None and name in names_of(op.formulas[t]) for t, edge in edges)


def save_input(node: Node, name: str, value: Any, nr: int = 0) -> tuple[Any, int]:
    """What to keep of an input, and the version it has now."""
    if not isinstance(value, Tensor):
        return value, 0
    version = value._counter[0]
    hooks = default_hooks()
    if hooks is None:
        return value, version
    saved = SavedTensor(node, name, value, nr)
    pack_into(saved, value, value, *hooks)
    return saved, 0


def save_output(node: Any, name: str, out: Tensor | None) -> tuple[Any, Any, int]:
    """What to keep of an output: its array, counter and version; the tensor itself would close a cycle."""
    if out is None:
        return None, None, 0
    counter = counter_of(out)
    hooks = default_hooks()
    if hooks is None:
        return out._array, counter, counter[0]
    saved = SavedTensor(node, name, out)
    pack_into(saved, out, out, *hooks)
    return saved, counter, counter[0]


def derive(op: Op, bound: Bound, source: str, suffix: str) -> Any:
    """A fact about an input that a formula asked for instead of the input."""
    value = bound[source]
    if suffix == "_shapes":
        return [t._array.shape for t in value]
    array = value._array if isinstance(value, Tensor) else np.asarray(value)
    if suffix == "_sym_sizes":
        return array.shape
    if suffix == "_sym_strides":
        return element_strides(array) if wants_grad(value) else ()
    if suffix == "_geometry":
        return geometry_of(array)
    if suffix.startswith("_sym_argsize_"):
        return array.shape[int(suffix[13:].replace("minus_", "-"))]
    return {"_sym_numel": array.size, "_dtype": array.dtype, "_dim": array.ndim}[suffix]


# ------------------------------------------------------------------ what users see of saved values


def saved_attribute(node: Any, name: str) -> Any:
    """`grad_fn._saved_<name>`."""
    op: Op = node.op
    if name not in op.tensors and name not in op.outputs:
        value = getattr(node, name + "_")
        return value if op.annotations.get(name) in ("Number", "float") else unsigned(value)
    if name in op.tensors and op.kinds[name] == "list":
        return tuple([as_tensor(unpack_slot(node, name, nr)) for nr in range(len(getattr(node, name + "_")))])
    if name in op.tensors and type(read_slot(node, name)) is Freed and not needed(op, node, name):
        return None  # nothing had been saved there
    return as_tensor(unpack_slot(node, name))


def as_tensor(value: Any) -> Any:
    """A saved Python number shows as a 0-d tensor of the widest type of its kind."""
    return wrap(np.asarray(value)) if isinstance(value, (bool, int, float, complex)) else value


def unsigned(value: Any) -> Any:
    """Torch shows saved dims as unsigned 64-bit numbers."""
    if type(value) is int and value < 0:
        return value + (1 << 64)
    if type(value) in (tuple, list) and any(type(v) is int and v < 0 for v in value):
        return tuple([unsigned(v) for v in value])
    return tuple(value) if type(value) is list else value


def raw_saved(node: Any, name: str) -> Any:
    """`grad_fn._raw_saved_<name>`: the SavedTensor on which hooks can be registered."""
    if name in node.op.tensors and node.op.kinds[name] == "list":
        return tuple([raw_item(node, name, nr) for nr in range(len(getattr(node, name + "_")))])
    return raw_item(node, name, 0)


def raw_item(node: Any, name: str, nr: int) -> SavedTensor:
    """The SavedTensor of one slot: the one hooks packed into, or one to register hooks on."""
    value = read_slot(node, name, nr)
    return value if type(value) is SavedTensor else SavedTensor(node, name, value, nr)


# ------------------------------------------------------------------ formulas on half precision


def on_halves(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula read on tensors that takes and gives arrays: only ops know which numbers half precision rounds."""

    def run(*args: Any) -> Any:
        made = formula(*[wrapped(value) for value in args])
        return made._array if isinstance(made, Tensor) else made

    return run


def wrapped(value: Any) -> Any:
    """Arrays as tensors without history; anything else as it is."""
    if isinstance(value, (np.ndarray, np.generic)):
        return wrap(np.asarray(value))
    return [wrapped(item) for item in value] if type(value) is list else value
