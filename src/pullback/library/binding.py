"""The arguments of a call brought to a schema: their places, their types, and torch's words where they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback._dtype as dtypes
from pullback._arrays.layout import layout, memory_format
from pullback._device import device
from pullback._tensor import Tensor
from pullback.library.schema import Argument, FunctionSchema
from pullback.library.types import (
    BoolType,
    ComplexType,
    DeviceObjType,
    FloatType,
    IntType,
    JitType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    dtype_numbered,
)

PYBIND = "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"


class Unfit(Exception):
    """An argument is not what the schema says; with the reason."""


def cannot(value: Any) -> Unfit:
    """The usual reason."""
    return Unfit(f"Cast error details: Unable to cast Python instance of type {type(value)} to C++ type '?' {PYBIND}")


def to_tensor(value: Any, numbers: bool) -> Any:
    """A tensor; None stands for one that is absent."""
    if isinstance(value, Tensor) or value is None:
        return value
    if numbers and isinstance(value, (bool, int, float, complex)):
        return value
    raise Unfit(f"Cast error details: Unable to cast {value} to Tensor")


def number_in(value: Any) -> Any:
    """The number in a scalar of NumPy or in a tensor of one element; anything else as it is."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Tensor) and value.dim() == 0 and not value.requires_grad:
        return value.item()
    return value


def to_int(value: Any, written: str) -> Any:
    """An int; dtypes, layouts and memory formats as they are."""
    value = number_in(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return dtype_numbered(value) if written.startswith("ScalarType") else value
    if isinstance(value, (dtypes.dtype, layout, memory_format)) and not written.startswith(("SymInt", "int")):
        return value
    raise cannot(value)


def to_float(value: Any) -> float:
    """A float."""
    value = number_in(value)
    if isinstance(value, (int, float)):
        return float(value)
    raise cannot(value)


def to_bool(value: Any) -> bool:
    """A bool."""
    value = number_in(value)
    if isinstance(value, int):
        return bool(value)
    raise cannot(value)


def to_number(value: Any) -> Any:
    """A number."""
    found = number_in(value)
    if isinstance(found, (bool, int, float, complex)):
        return found
    raise Unfit(f"Cast error details: Cannot cast {value} to number")


def to_string(value: Any) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise cannot(value)


def to_device(value: Any) -> device:
    """A device, which its name may stand for."""
    if isinstance(value, (device, str)):
        return device(value)
    raise cannot(value)


def to_complex(value: Any) -> complex:
    """A complex number."""
    value = number_in(value)
    if isinstance(value, (int, float, complex)):
        return complex(value)
    raise cannot(value)


READERS: dict[type[JitType], Callable[[Any], Any]] = {
    FloatType: to_float,
    BoolType: to_bool,
    NumberType: to_number,
    StringType: to_string,
    DeviceObjType: to_device,
    ComplexType: to_complex,
}


def brought(value: Any, kind: JitType, argument: Argument, numbers: bool) -> Any:
    """A value as the schema wants it."""
    if isinstance(kind, OptionalType):
        return None if value is None else brought(value, kind.element, argument, numbers)
    if isinstance(kind, TensorType):
        return to_tensor(value, numbers)
    if isinstance(kind, ListType):
        return items(value, kind, argument, numbers)
    if isinstance(kind, IntType):
        return to_int(value, argument.written)
    read = READERS.get(type(kind))
    return value if read is None else read(value)


def items(value: Any, kind: ListType, argument: Argument, numbers: bool) -> list[Any]:
    """A list of values; where the length is known, one number stands for all."""
    if str(kind.element) == "t":  # of TorchScript alone
        raise Unfit("Cast error details: toIValue() cannot handle converting to type: t")
    if argument.N is not None and isinstance(value, (int, float)):
        return [brought(value, kind.element, argument, numbers)] * argument.N
    if isinstance(value, (list, tuple)):
        try:
            return [brought(item, kind.element, argument, numbers) for item in value]
        except Unfit:
            if isinstance(kind.element, IntType):  # sizes are read one by one, the others as a whole
                raise
            raise cannot(value) from None
    if isinstance(kind.element, (IntType, FloatType, BoolType)) and not isinstance(value, Tensor):
        raise Unfit(f" Python error details: TypeError: '{type(value).__name__}' object is not iterable")
    raise cannot(value)


def converted(schema: FunctionSchema, argument: Argument, position: int, value: Any, numbers: bool) -> Any:
    """One argument, or torch's error."""
    try:
        return brought(value, argument.type, argument, numbers)
    except Unfit as reason:
        raise RuntimeError(
            f"{schema.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
            f"found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: {schema}\n"
            f"{reason}"
        ) from None


NUMBERS = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")
"""Ops of torch's library that take a number for a tensor."""


def takes_numbers(name: str) -> bool:
    """Whether a number may stand for a tensor in an op of this full name."""
    space, _, op = name.partition("::")
    return space == "aten" and (op.removesuffix("_") in NUMBERS or op in ("to", "_to_copy", "copy", "copy_"))


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the keyword-only arguments of a call, without those at the end left at their defaults."""
    numbers = takes_numbers(schema.name)
    arguments = schema.arguments
    if len(args) + len(kwargs) > len(arguments) and not schema.is_vararg:
        unknown(schema, args, kwargs) if len(args) <= len(arguments) else None
        raise RuntimeError(
            f"{schema.name}() expected at most {len(arguments)} argument(s) but received {len(args) + len(kwargs)} "
            f"argument(s). Declaration: {schema}"
        )
    places = sum([not argument.kwarg_only for argument in arguments])
    if len(args) > places:
        raise RuntimeError(
            f"{schema.name}() takes {places} positional argument(s) but {len(args)} was/were given.  "
            f"Declaration: {schema}"
        )
    positional: list[Any] = []
    named: dict[str, Any] = {}
    used = 0
    kept = 0
    for position, argument in enumerate(arguments):
        if position < len(args):
            value = converted(schema, argument, position, args[position], numbers)
        elif argument.name in kwargs:
            used += 1
            value = converted(schema, argument, position, kwargs[argument.name], numbers)
        elif argument.has_default_value():
            value = argument.default_value
        else:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
            )
        default = argument.has_default_value() and same(value, argument.default_value)
        if argument.kwarg_only:
            if not default:
                named[argument.name] = value
            continue
        positional.append(value)
        kept = kept if default else len(positional)
    if used != len(kwargs):
        unknown(schema, args, kwargs)
    return positional[:kept], named


def same(value: Any, default: Any) -> bool:
    """Whether a value is the default."""
    if isinstance(value, Tensor) or isinstance(default, Tensor):
        return False
    return value is default or (type(value) is type(default) and bool(value == default))


def unknown(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise for a keyword that the schema has not, or that was given by position."""
    names = [argument.name for argument in schema.arguments]
    for name in kwargs:
        if name not in names:
            raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {schema}")
        if names.index(name) < len(args):
            raise RuntimeError(f"Argument '{name}' specified both as positional and keyword argument. Schema: {schema}")


def with_defaults(
    schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with those filled in that were left at their defaults."""
    places = [argument for argument in schema.arguments if not argument.kwarg_only]
    named = [argument for argument in schema.arguments if argument.kwarg_only]
    positional = [*args, *[argument.default_value for argument in places[len(args) :]]]
    return tuple(positional), {a.name: kwargs.get(a.name, a.default_value) for a in named}
