"""Nodes: the backward steps of the graph, and the leaf node that accumulates into `.grad`.

    z = x * y          z._edge = MulBackward0
                       MulBackward0.edges = (x, y)
                       MulBackward0.next_functions = ((AccumulateGrad of x, 0), (AccumulateGrad of y, 0))

An edge is a node (its output 0), or (node, output_nr), or a leaf itself, or None where no gradient is wanted. Most
programs never look at the AccumulateGrad nodes of leaves, so these are made only when somebody asks for
`next_functions`.

A node is always newer than the nodes it points to, so its `sequence_nr` is larger: sorting by it, newest first, is
a topological order (see autograd/engine.py).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from pullback._device import CPU
from pullback._dtype import FROM_NUMPY
from pullback._tensor import Tensor, extra_of, new
from pullback.autograd.hooks import NodeHooks, RemovableHandle, register
from pullback.autograd.leaf import dtype_of_grad
from pullback.autograd.numbering import notes_of

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LAST",
    "AccumulateGrad",
    "Edge",
    "Node",
    "accumulator_of",
    "edge_to",
    "hooks_of",
    "leaf_of",
    "parts",
    "target_of",
]

Edge = Any
"""None | Node | (Node, output_nr) | Tensor: where a gradient goes."""

LAST = (1 << 64) - 1
"""The sequence number of leaf nodes: newer than everything."""


HAND_WRITTEN = {"AccumulateGrad", "CopyBackwards", "CopySlices", "Error", "NotImplemented"}
"""The nodes torch does not generate; their names carry a namespace."""


class InputMetadata:
    """The shape and dtype a gradient must have."""

    __slots__ = ("dtype", "shape")

    device = CPU
    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape = list(shape)
        self.dtype = None if dtype is None else FROM_NUMPY[dtype]


class Node:
    """One backward step: gradients of the outputs in, gradients of the inputs out.

    `edges[i]` is where the gradient of input i goes: see above.
    """

    __slots__ = (
        "__weakref__", "_code", "_metadata", "_offset", "_scope", "dtype", "edges", "hooks", "sequence_nr", "shape",
    )  # fmt: skip

    multiple = False
    """True for nodes with several outputs; their gradients travel as lists, and `shape` is None."""
    takes_none = False
    """True for nodes that run even when no gradient arrived (custom Functions)."""

    edges: tuple[Any, ...]
    sequence_nr: int
    shape: tuple[int, ...] | None
    dtype: np.dtype[Any] | None
    hooks: NodeHooks | None

    def backward(self, grad: Any) -> tuple[Any, ...]:
        """Arrays in, arrays out."""
        raise NotImplementedError(f"{self.name()} cannot run backward")

    def backward_tensors(self, grad: Any) -> tuple[Any, ...]:
        """Tensors in, tensors out; differentiable."""
        raise NotImplementedError(f"{self.name()} cannot run backward")

    def backward_for(self, grad: Any, wanted: tuple[bool, ...], on_tensors: bool) -> tuple[Any, ...]:
        """A step of which the gradients of some inputs alone are wanted; a node that can leave none out makes all."""
        return self.backward_tensors(grad) if on_tensors else self.backward(grad)

    def release(self, freed: Any = None) -> None:
        """Drop what was saved for backward; `freed` stands in its place."""

    def name(self) -> str:
        """The name of the node."""
        name = type(self).__name__
        return f"torch::autograd::{name}" if name in HAND_WRITTEN else name

    def output_meta(self, nr: int) -> tuple[tuple[int, ...] | None, Any]:
        """Shape and type of output `nr`: what a gradient arriving there must look like."""
        return self.shape, self.dtype

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradients of the inputs go: (node, output_nr) for each, (None, 0) where none is wanted."""
        if any(isinstance(edge, Tensor) for edge in self.edges):
            # From here on the node holds the AccumulateGrad: hooks put on it must live as long as the graph.
            self.edges = tuple([accumulator_of(e) if isinstance(e, Tensor) else e for e in self.edges])
        return tuple([parts(edge) for edge in self.edges])

    @property
    def metadata(self) -> dict[str, Any]:
        """Notes on this node, for whoever wants to leave some."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = notes_of(getattr(self, "sequence_nr", 0))
            return self._metadata

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """What the gradient of each output must look like."""
        count = len(self.metas) if self.multiple else 1  # type: ignore[attr-defined]
        return tuple([InputMetadata(*self.output_meta(nr)) for nr in range(count) if self.takes_gradient(nr)])

    @property
    def requires_grad(self) -> bool:
        """Always True: what wants no gradient has no node."""
        return True

    def _sequence_nr(self) -> int:
        return self.sequence_nr

    def _set_sequence_nr(self, nr: int) -> None:
        self.sequence_nr = nr

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after this node has run; a return value replaces grad_inputs."""
        hooks = hooks_of(self)
        if not hooks.post:
            hooks.post.append(OrderedDict())
        return register(hooks.post[0], fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before this node runs; a return value replaces grad_outputs."""
        hooks = hooks_of(self)
        if not hooks.pre:
            hooks.pre.append(OrderedDict())
        return register(hooks.pre[0], fn)

    def _register_hook_dict(self, tensor: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError("_register_hook_dict expected a variable")
        if tensor._extra is not None and tensor._extra.hooks is not None:
            nr = 0 if tensor._edge is None else parts(tensor._edge)[1]
            hooks_of(self).tensor_pre.append((nr, tensor._extra.hooks))

    def __call__(self, *grads: Any, **kwargs: Any) -> Any:
        """Run this node by hand on gradients of its outputs; what comes out is differentiable."""
        given = iter(self.checked_call(grads, kwargs))
        if all(g is None for g in grads) and not self.takes_none:
            outs: tuple[Any, ...] = (None,) * len(self.edges)
        elif self.multiple:
            nrs = range(len(self.metas))  # type: ignore[attr-defined]
            outs = self.backward_tensors([next(given) if self.takes_gradient(nr) else None for nr in nrs])
        else:
            outs = self.backward_tensors(grads[0])
        return outs[0] if len(outs) == 1 else tuple(outs)

    def checked_call(self, grads: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The gradients of a call by hand: one tensor or None for each output that can have one."""
        if kwargs:
            raise TypeError("keyword arguments are not supported")
        expected = sum(self.takes_gradient(nr) for nr in range(len(self.metas))) if self.multiple else 1  # type: ignore[attr-defined]
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for i, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {i} is not a Variable")
        return grads

    def takes_gradient(self, nr: int) -> bool:
        """True if output `nr` can have a gradient: indices and masks cannot."""
        dtype = self.output_meta(nr)[1]
        return dtype is not None and FROM_NUMPY[dtype].category >= 2

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def hooks_of(node: Node) -> NodeHooks:
    """The hooks of a node, made on first need."""
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


class AccumulateGrad(Node):
    """The end of the graph at a leaf: adds what arrives to `variable.grad`."""

    __slots__ = ("variable",)

    variable: Tensor
    edges = ()
    sequence_nr = LAST
    _code = _scope = None
    __module__ = "builtins"


def accumulator_of(tensor: Tensor) -> AccumulateGrad:
    """The one AccumulateGrad of a leaf. It keeps the leaf alive, so the leaf refers to it only weakly."""
    extra = extra_of(tensor)
    node = None if extra.accumulator is None else extra.accumulator()
    if node is None:
        node = new(AccumulateGrad)
        node.variable = tensor
        node.shape = tensor._array.shape
        wanted = dtype_of_grad(tensor)
        node.dtype = None if wanted is None else wanted.numpy
        node.hooks = None
        extra.accumulator = ref(node)
    return node


def leaf_of(edge: Edge) -> Tensor | None:
    """The leaf an edge leads to, in either form; None if it leads elsewhere."""
    if isinstance(edge, Tensor):
        return edge  # type: ignore[no-any-return]
    return edge.variable if type(edge) is AccumulateGrad else None


def target_of(edge: Any) -> Any:
    """The node or leaf an edge leads to."""
    if type(edge) is tuple:
        return edge[0]
    return edge.variable if type(edge) is AccumulateGrad else edge


def edge_to(node: Node, nr: int) -> Edge:
    """The edge to one output of a node."""
    return (node, nr) if nr else node


def parts(edge: Edge) -> tuple[Any, int]:
    """An edge as torch shows it: (node, output_nr), (None, 0) for None."""
    return edge if type(edge) is tuple else (edge, 0)
