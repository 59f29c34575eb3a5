"""The name an op of this library has in torch's: from a call of an op to the overload that is told to dispatch modes.

A handler calls the overload it was told of, most often with what it was told: that is the op again, with the arguments
it had. Where the handler gives something else in the place of an argument, so does the op get it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pullback._dtype import FROM_NUMPY
from pullback._modes import modes
from pullback._op import apply
from pullback._op.declare import Op
from pullback._op.overrides import as_called
from pullback._op.results import Bound
from pullback.library.binding import bind
from pullback.library.overloads import Definition, OpOverload, OpOverloadPacket, define, ops
from pullback.library.schema import FunctionSchema, parse_schema
from pullback.library.types import BoolType, ListType

TYPES = {"tensor": "Tensor", "number": "Tensor", "optional": "Tensor?", "list": "Tensor?[]"}
"""What schemas call the parameters of ops."""
FILLED: dict[str, Callable[[Bound], Any]] = {
    "half_to_float": lambda bound: False,
    "input_dtype": lambda bound: FROM_NUMPY[bound["grad_output"]._array.dtype],
    "bias_sizes": lambda bound: [bound["grad_output"].shape[1]] if bound["output_mask"][2] else [0],
}
"""Arguments that torch wants said and that follow here from the others."""


RENAMED = {"reshape_alias": "view"}
"""Ops that torch calls otherwise."""


class Telling:
    """One call of an op as it is told: the overload with its arguments, and which parameter each of them is."""

    __slots__ = ("args", "bound", "func", "kwargs", "op", "origins", "out", "twin")

    def __init__(self, op: Op, bound: Bound, out: Any, twin: bool) -> None:
        self.op, self.bound, self.out, self.twin = op, bound, out, twin
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        self.origins: list[str] = []
        self.func: OpOverload = self.find()

    def find(self) -> OpOverload:
        """The overload, and with it the arguments."""
        op = self.op
        name = RENAMED.get(op.name, op.name)
        packet = ops.aten._find(name + "_" * self.twin) or ops.aten._find(f"special_{op.name}")
        if packet is not None:
            given, named = as_called(op, tuple(self.bound.values()))
            if self.out is not None:
                named["out"] = self.out
            spread = tuple([list(a) if type(a) is tuple else a for a in given])
            try:
                overload, (positional, rest) = packet._matching(spread, named)
                self.args, self.kwargs, self.origins = tuple(positional), rest, list(op.param_names)
                return overload
            except RuntimeError:
                found = self.by_name(packet)
                if found is not None:
                    return found
        self.args, self.kwargs = as_called(op, tuple(self.bound.values()))
        self.origins = list(op.param_names)
        return own(op, self.twin)

    def by_name(self, packet: OpOverloadPacket) -> OpOverload | None:
        """The first overload whose arguments all have the names of parameters, or can be filled in."""
        for overload in packet.op_overloads() if self.out is None else ():
            arguments = overload._schema.arguments
            known = [a.name in self.bound or a.name in FILLED or a.has_default_value() for a in arguments]
            if all(known) and self.bound.keys() & {a.name for a in arguments}:
                self.origins = [a.name for a in arguments]
                values = [self.value(argument) for argument in arguments]
                self.args = tuple([v for a, v in zip(arguments, values, strict=True) if not a.kwarg_only])
                self.kwargs = {a.name: v for a, v in zip(arguments, values, strict=True) if a.kwarg_only}
                try:
                    positional, self.kwargs = bind(overload._schema, self.args, self.kwargs)
                except RuntimeError:
                    return None
                self.args = tuple(positional)
                return overload
        return None

    def value(self, argument: Any) -> Any:
        """What is told for an argument of the schema."""
        if argument.name in self.bound:
            value = self.bound[argument.name]
            if isinstance(argument.type, BoolType):  # an op may be told more: the name of the function, for its errors
                return bool(value)
            return list(value) if type(value) is tuple else value
        return FILLED[argument.name](self.bound) if argument.name in FILLED else argument.default_value

    def again(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The op itself, with these arguments."""
        values = dict(self.bound)
        told = (*zip(self.origins, self.args, strict=False), *self.kwargs.items())
        asked = (*zip(self.origins, args, strict=False), *kwargs.items())
        before = dict(told)
        out = self.out
        for name, value in asked:
            if name == "out":
                out = value
            elif name in values and (name not in before or not unchanged(value, before[name])):
                plain = self.op.kinds[name] == "plain" and type(value) is list
                values[name] = tuple(value) if plain else value
        if self.twin:
            first, *rest = values.values()
            return modes.dispatch.call_inplace(self.op, first, tuple(rest))
        return apply.apply(self.op, tuple(values.values()), out)


def unchanged(value: Any, before: Any) -> bool:
    """Whether an argument is the one that was told; lists were brought to the schema anew."""
    if value is before:
        return True
    if type(value) is list and type(before) is list:
        return len(value) == len(before) and all([unchanged(a, b) for a, b in zip(value, before, strict=True)])
    plain = (bool, int, float, complex, str)
    return type(value) is type(before) and isinstance(value, plain) and value == before


telling: ContextVar[Any] = ContextVar("telling", default=None)
"""The call that a handler is being told of: an object with the overload as `func`, which `again` computes."""


def own(op: Op, twin: bool) -> OpOverload:
    """The name of an op that torch has not: `torch.ops.pullback.zero_where`."""
    name = op.key + "_" * twin
    packet = ops.pullback._find(name)
    if packet is None:
        define(Definition(parse_schema(f"{name}{own_schema(op)}", "pullback")))
        packet = ops.pullback._find(name)
    return packet._overload("default")  # type: ignore[union-attr]


def own_schema(op: Op) -> str:
    """What an op takes and gives."""
    params, star = [], False
    for p in op.params:
        if p.keyword_only and not star:
            params.append("*")
            star = True
        params.append(f"{TYPES.get(p.kind, 'Any')} {p.name}=None")
    several = f"({', '.join(['Tensor'] * op.visible)})"
    return f"({', '.join(params)}) -> {'Tensor[]' if op.variadic else 'Tensor' if op.visible == 1 else several}"


def returns_list(schema: FunctionSchema) -> bool:
    """Whether what comes back is a list."""
    return len(schema.returns) == 1 and isinstance(schema.returns[0].type, ListType)
