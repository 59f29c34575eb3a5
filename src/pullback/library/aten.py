"""`torch.ops.aten`: the ops of this library under the names and with the schemas they have in torch's.

The schemas are in aten.txt. A name that torch has and that nothing here computes can be named too, as a key of a table;
calling it raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from pullback._op.declare import Op, called, registry, spaces
from pullback._tensor import Tensor
from pullback.library.names import returns_list
from pullback.library.overloads import Definition, OpOverload, OpOverloadPacket, _OpNamespace, ops
from pullback.library.schema import FunctionSchema, parse_schema
from pullback.ops import load_all
from pullback.ops.create.cast import to


@cache
def texts() -> dict[str, list[str]]:
    """The schemas of each op, in torch's order."""
    found: dict[str, list[str]] = {}
    for line in files("pullback.library").joinpath("aten.txt").read_text().splitlines():
        found.setdefault(line.partition("(")[0].partition(".")[0], []).append(line)
    return found


def schema_from(line: str) -> FunctionSchema:
    """A schema of the table, which shows as it is written there."""
    schema = parse_schema(line, "aten")
    schema.text = f"aten::{line}"
    return schema


class AtenNamespace(_OpNamespace):
    """`torch.ops.aten`."""

    def _find(self, name: str) -> OpOverloadPacket | None:
        packet = self._packets.get(name)
        if packet is None and name in texts():
            packet = OpOverloadPacket("aten", name)
            for line in texts()[name]:
                schema = schema_from(line)
                packet._definitions[schema.overload_name or "default"] = Definition(schema)
            packet = self._packets.setdefault(name, packet)
        return packet

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *texts()})


ops._spaces["aten"] = AtenNamespace("aten")

# ------------------------------------------------------------------ calling

PREFIXES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}
"""Ops that stand in a namespace of their own here."""


def without_flag(name: str) -> Callable[..., Any]:
    """A function whose last argument only matters on other devices."""

    def run(self: Any, dim: int, half_to_float: bool = False) -> Any:
        return spaces["torch"][name](self, dim)

    return run


def to_copy(self: Any, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **unused: Any) -> Any:
    """A copy in another dtype, on another device or in another order."""
    options = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return to(self, copy=True, **{name: value for name, value in options.items() if value is not None})


def same(self: Any) -> Any:
    """The tensor itself, new as it is."""
    return self


OTHERWISE: dict[str, Callable[..., Any]] = {
    "_softmax": without_flag("softmax"),
    "_log_softmax": without_flag("log_softmax"),
    "_to_copy": to_copy,
    "_local_scalar_dense": lambda self: self.item(),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "lift_fresh": same,
    "lift": same,
    "lift_fresh_copy": lambda self: self.clone(),
    "slice": lambda self, dim=0, start=None, end=None, step=1: self[
        (slice(None),) * (dim % self.dim()) + (slice(start, end, step),)
    ],
    "index": lambda self, indices: self[tuple([slice(None) if i is None else i for i in indices])],
    "sym_size": lambda self, dim=None: self.size() if dim is None else self.size(dim),
    "sym_stride": lambda self, dim=None: self.stride() if dim is None else self.stride(dim),
    "sym_numel": lambda self: self.numel(),
    "sym_storage_offset": lambda self: self.storage_offset(),
    "is_non_overlapping_and_dense": lambda self: self.is_contiguous() or self.t().is_contiguous(),
    "cross_entropy_loss": lambda self, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0: spaces[
        "nn.functional"
    ]["cross_entropy"](
        self,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=("none", "mean", "sum")[reduction],
        label_smoothing=label_smoothing,
    ),
}
"""Ops that are something else here than the function of their name."""


@cache
def function_of(name: str) -> Any:
    """The function of torch that an op of this name is; None if there is none."""
    load_all()
    if name in OTHERWISE:
        return OTHERWISE[name]
    for prefix, space in PREFIXES.items():
        if name.startswith(prefix) and name.removeprefix(prefix) in spaces[space]:
            return spaces[space][name.removeprefix(prefix)]
    return spaces["torch"].get(name)


@cache
def other_of(name: str) -> Any:
    """What else may compute an op of this name: a function of torch.nn or a method; None if nothing does."""
    method = getattr(Tensor, name, None)
    return spaces["nn.functional"].get(name) or (method if callable(method) else None)


@cache
def ops_named(name: str) -> list[Op]:
    """The ops of this name, those with many parameters first."""
    load_all()
    found = [op for op in registry.values() if op.name == name]
    return sorted(found, key=lambda op: -len(op.params))


IGNORED = ("half_to_float", "input_dtype", "self_is_result", "is_result", "bias_sizes")
"""Arguments that only matter elsewhere: to other devices, to in-place forms."""


def by_name(overload: OpOverload, given: dict[str, Any]) -> Any:
    """The call of an op whose parameters have the names of the schema, and take all that was given; None if none do."""
    arguments = {argument.name: argument.default_value for argument in overload._schema.arguments} | given
    for op in ops_named(overload._opname):
        names = set(op.param_names)
        if names <= arguments.keys() and given.keys() - set(IGNORED) <= names:
            values = [arguments[name] for name in op.param_names]
            plain = [op.kinds[name] == "plain" for name in op.param_names]
            spread = [tuple(v) if p and type(v) is list else v for v, p in zip(values, plain, strict=True)]
            return lambda: called(op, spread)
    return None


def run(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what computes an op, with arguments brought to its schema."""
    name, arguments = overload._opname, overload._schema.arguments
    outs = [argument.name for argument in arguments if argument.is_out]
    target = function_of(name)
    if target is None and not outs:
        call = by_name(overload, {**dict(zip([a.name for a in arguments], args, strict=False)), **kwargs})
        if call is not None:
            return as_torch_returns(overload, call())
    target = target or other_of(name)
    if target is None:
        raise NotImplementedError(f"torch.ops.{overload} is not available in pullback: no op here computes it")
    written = [kwargs.pop(name) for name in outs if name in kwargs]
    if written:
        kwargs["out"] = written[0] if len(outs) == 1 else tuple(written)
    return as_torch_returns(overload, target(*args, **kwargs))


def as_torch_returns(overload: OpOverload, result: Any) -> Any:
    """What an op here returned, as torch's library returns it: plain tuples, and lists where the schema has them."""
    if isinstance(result, tuple) and returns_list(overload._schema):
        return list(result)
    return tuple(result) if isinstance(result, tuple) else result
