"""A call of an op as its physical operands see it, and the moves that bring a batch where a strategy wants it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._modes import modes
from pullback._op import apply, forward_mode
from pullback._op.declare import Op, called
from pullback._op.results import finish
from pullback._tensor import Tensor
from pullback.batching.tensor import BatchedTensor
from pullback.ops.shape.dims import permute_dims
from pullback.ops.shape.reshape import expand, unsqueeze
from pullback.ops.shape.slicing import select_int

Results = list[tuple[Any, int | None]]
"""The outputs of an op (None for one that was not made), and where the batch is in each."""

attached: dict[str, Callable[..., list[Any]]] = {}
"""`run`: how an op runs on tensors that are batched at a lower level; put here by run.py, which builds on this file."""


class Call:
    """An op, its arguments at one level, and where the batch is in each: None where there is none."""

    __slots__ = ("args", "batched", "dims", "op", "places", "size")

    def __init__(self, op: Op, args: list[Any], dims: list[Any], size: int, batched: bool = True) -> None:
        self.op, self.args, self.dims, self.size, self.batched = op, args, dims, size, batched
        self.places: list[tuple[int, int | None]] | None = None

    def tensors(self) -> list[tuple[int, int | None]]:
        """Where the tensors are: (argument, item of its list)."""
        if self.places is None:
            self.places = []
            for i, (parameter, arg) in enumerate(zip(self.op.params, self.args, strict=True)):
                if parameter.kind == "list":
                    self.places += [(i, j) for j, item in enumerate(arg) if isinstance(item, Tensor)]
                elif parameter.kind != "plain" and isinstance(arg, Tensor):
                    self.places.append((i, None))
        return self.places

    def at(self, i: int, j: int | None) -> tuple[Any, int | None]:
        """One tensor and its batch dimension."""
        return (self.args[i], self.dims[i]) if j is None else (self.args[i][j], self.dims[i][j])

    def ndim_of(self, i: int, j: int | None) -> int:
        """How many dimensions the program sees of one tensor."""
        value, dim = self.at(i, j)
        return value._array.ndim - (dim is not None)  # type: ignore[no-any-return]

    def shape_of(self, i: int, j: int | None) -> tuple[int, ...]:
        """The shape the program sees of one tensor."""
        value, dim = self.at(i, j)
        return tuple(size for at, size in enumerate(value._array.shape) if at != dim)

    def with_tensors(self, place: Callable[[Any, int | None], Any]) -> list[Any]:
        """The arguments with every tensor replaced by `place(tensor, batch dimension)`."""
        args = list(self.args)
        for i, j in self.tensors():
            value = place(*self.at(i, j))
            if j is None:
                args[i] = value
            else:
                if args[i] is self.args[i]:
                    args[i] = list(args[i])
                args[i][j] = value
        return args

    def whole(self, value: Any, dim: int | None) -> Any:
        """A tensor with its batch in front, stretched to one if it has none."""
        if dim is not None:
            return front(value, dim)
        return expand(unsqueeze(value, 0), (self.size, *value._array.shape))

    def entry(self, i: int) -> list[Any]:
        """The arguments of one entry of the batch."""
        return self.with_tensors(lambda value, dim: value if dim is None else select_int(value, dim, i))


# ------------------------------------------------------------------ moving the batch


def front(value: Any, dim: int) -> Any:
    """The batch dimension first."""
    if dim == 0:
        return value
    order = list(range(value._array.ndim))
    order.insert(0, order.pop(dim))
    return permute_dims(value, tuple(order))


def in_front(outs: list[Any]) -> Results:
    """Outputs whose batch is their first dimension."""
    return [(out, None if out is None else 0) for out in outs]


def padded(value: Any, batched: bool, ndim: int) -> Any:
    """A batched operand with dimensions of size one after the batch, so that it broadcasts."""
    shape = value._array.shape
    if not batched or len(shape) >= ndim:
        return value
    return value.reshape((shape[0], *(1,) * (ndim - len(shape)), *shape[1:]))


def merged(value: Any) -> Any:
    """The first two dimensions as one."""
    shape = value._array.shape
    return value.reshape((shape[0] * shape[1], *shape[2:]))


class EmptyBatch(Exception):
    """Raised where a batch became part of a dimension and cannot be found again, because there is none."""


def unmerged(value: Any, size: int) -> Any:
    """The first dimension as two."""
    if not size:
        raise EmptyBatch
    shape = value._array.shape
    return value.reshape((size, shape[0] // size, *shape[1:]))


# ------------------------------------------------------------------ running


def invoke(op: Op, args: list[Any]) -> list[Any]:
    """Every output of an op, also those callers do not see but the node saves."""
    for arg in args:
        if type(arg) is BatchedTensor or (type(arg) is list and has_batched(arg)):
            return attached["run"](op, args)
    if op.visible == len(op.outputs) and not op.variadic:
        result = called(op, args)
        return list(result) if op.multiple else [result]
    bound = dict(zip(op.param_names, args, strict=True))
    tensors = finish(op, apply.compute(op, apply.operands(op, bound)), bound)
    if modes.dual_level >= 0:
        forward_mode.push(op, bound, tensors)
    return tensors


def has_batched(items: list[Any]) -> bool:
    """True if a list of operands has a batched one."""
    return any(type(item) is BatchedTensor for item in items)
