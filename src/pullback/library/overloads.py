"""`torch.ops`: ops by namespace, name and overload. `torch.ops.my.scale` is a packet, `.default` one of its overloads.

What an overload does is known to its `Definition`: the schema and what was registered for it. Ops of `aten` are the
ops of this library under torch's names: see aten.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pullback.library.binding import bind
from pullback.library.schema import FunctionSchema


class Definition:
    """What is known of one overload."""

    __slots__ = (
        "autograd", "custom", "fake", "function", "kernels", "owner", "place", "rules", "schema", "tags", "vmap",
    )  # fmt: skip

    def __init__(self, schema: FunctionSchema, tags: tuple[Any, ...] = (), place: str = "", owner: Any = None) -> None:
        self.schema, self.tags, self.place, self.owner = schema, list(tags), place, owner
        self.kernels: dict[str, Callable[..., Any]] = {}
        """What computes it, by torch's dispatch keys."""
        self.fake: Callable[..., Any] | None = None
        """What it does to tensors without elements."""
        self.autograd: Any = None
        """Its derivative: an object with `_backward_fn` and `_setup_context_fn`."""
        self.vmap: Callable[..., Any] | None = None
        self.rules: dict[type, Callable[..., Any]] = {}
        """What it does in a mode or for a subclass, by class."""
        self.custom: Any = None
        """The CustomOpDef, if it was made by `custom_op`."""
        self.function: Any = None
        """The autograd Function of its calls, made when one is first recorded."""


class OpOverload:
    """One overload of an op: `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet: OpOverloadPacket, definition: Definition) -> None:
        schema = definition.schema
        space, _, name = schema.name.partition("::")
        self._definition = definition
        self._schema = schema
        self._overloadpacket = packet
        self._namespace, self._opname = space, name
        self._overloadname = schema.overload_name or "default"
        self._name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        self.__name__ = f"{name}.{self._overloadname}"
        self.__module__ = packet.__module__
        self.__qualname__ = self._name
        self.__annotations__ = {}

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The op it is an overload of."""
        return self._overloadpacket

    op = overloadpacket

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self._namespace

    @property
    def tags(self) -> list[Any]:
        """What it says about itself."""
        return self._definition.tags

    @property
    def is_view(self) -> bool:
        """Whether a result looks at the memory of an argument."""
        return self._schema._is_view_op()

    def name(self) -> str:
        """`aten::add.Tensor`."""
        return self._name

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether something was registered for a dispatch key."""
        return str(key).removeprefix("DispatchKey.") in self._definition.kernels

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """What a composite op does; NotImplemented if it is none."""
        kernel = self._definition.kernels.get("CompositeImplicitAutograd")
        return NotImplemented if kernel is None else kernel(*args, **kwargs)

    def redispatch(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Not available: there is no set of dispatch keys."""
        raise NotImplementedError(
            f"{self}.redispatch is not available in pullback: there are no dispatch keys; call the op itself"
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call_overload(self, args, kwargs)

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return overload_named, (self._namespace, self._opname, self._overloadname)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self._opname}.{self._overloadname}"


def call_overload(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of an op. Attached by calls.py, which knows modes, batches and gradients."""
    raise NotImplementedError("import pullback.library first")


def call_packet(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of an op whose overload is still to be found. Attached by calls.py."""
    raise NotImplementedError("import pullback.library first")


def overload_named(space: str, name: str, overload: str) -> Any:
    """An overload again, by its names."""
    return getattr(getattr(getattr(ops, space), name), overload)


class OpOverloadPacket:
    """An op with its overloads: `torch.ops.aten.add`."""

    __file__ = "torch.ops"

    def __init__(self, space: str, name: str) -> None:
        self._qualified_op_name = f"{space}::{name}"
        self.__name__ = name
        self.__module__ = f"torch._ops.{space}"
        self._definitions: dict[str, Definition] = {}
        self._made: dict[str, OpOverload] = {}

    @property
    def _overload_names(self) -> list[str]:
        return ["" if name == "default" else name for name in self._definitions]

    @property
    def op(self) -> OpOverloadPacket:
        """What a call calls."""
        return self

    _op = op

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._definitions)

    def op_overloads(self) -> list[OpOverload]:
        """The overloads."""
        return [self._overload(name) for name in self._definitions]

    def _overload(self, name: str) -> OpOverload:
        """The overload of a name; there is one object of each, so that tables have them as keys."""
        made = self._made.get(name)
        if made is None:
            made = self._made.setdefault(name, OpOverload(self, self._definitions[name]))
        return made

    @property
    def _dir(self) -> list[str]:
        return list(self._made)

    def __getattr__(self, name: str) -> Any:
        shown = self._qualified_op_name.replace("::", ".")
        if name.startswith("__"):
            raise AttributeError(
                f"'{shown}' can't have an overload name beginning with '__' and the underlying op {self!r} has no "
                f"attribute {name} either."
            )
        if name not in self._definitions:
            raise AttributeError(f"The underlying op of '{shown}' has no overload name '{name}'")
        return self._overload(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._dir)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call_packet(self, args, kwargs)

    def _matching(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[OpOverload, Any]:
        """The first overload whose schema these arguments fit, and the arguments brought to it."""
        if len(self._definitions) == 1:
            (name,) = self._definitions
            return self._overload(name), bind(self._definitions[name].schema, args, kwargs)
        reasons = []
        for name, definition in self._definitions.items():
            try:
                return self._overload(name), bind(definition.schema, args, kwargs)
            except RuntimeError as error:
                reasons.append(str(error))
        told = "\n\n".join(reasons)
        raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{told}\n\n")

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        space, _, name = self._qualified_op_name.partition("::")
        return packet_named, (space, name)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualified_op_name.replace('::', '.')}')>"

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")


def packet_named(space: str, name: str) -> Any:
    """An op again, by its names."""
    return getattr(getattr(ops, space), name)


class _OpNamespace(ModuleType):
    """The ops of one library: `torch.ops.my`."""

    __file__ = "torch.ops"

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name
        self._packets: dict[str, OpOverloadPacket] = {}

    def _find(self, name: str) -> OpOverloadPacket | None:
        """The op of a name, if there is one."""
        return self._packets.get(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"Invalid attribute '{name}' for '_OpNamespace' '{self.name}'")
        found = self._find(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._packets})

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._packets))

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self.name}' from 'torch.ops'>"


class _Ops(ModuleType):
    """All namespaces: `torch.ops`."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()
        self._spaces: dict[str, _OpNamespace] = {}

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        space = self._spaces.get(name)
        if space is None:
            space = self._spaces.setdefault(name, _OpNamespace(name))
        return space

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._spaces))

    def load_library(self, path: Any) -> None:
        """Refuse, as a file that cannot be loaded does: programs catch that and do without."""
        raise OSError(f"{path}: compiled for torch's C++ interface, which pullback has not; it runs on NumPy")

    def import_module(self, module: str) -> None:
        """Not available: it looks for ops that Python functions stand for."""
        raise NotImplementedError("torch.ops.import_module is not available in pullback; import the module itself")

    def __repr__(self) -> str:
        return "<module 'torch.ops' from '_ops.py'>"


ops = _Ops()


def definition_of(qualified: str) -> Definition | None:
    """What is known of `my::scale` or `my::scale.overload`; None if there is no such op."""
    space, _, full = qualified.partition("::")
    name, _, overload = full.partition(".")
    packet = getattr(ops, space)._find(name)
    return None if packet is None else packet._definitions.get(overload or "default")


def define(definition: Definition) -> OpOverload:
    """Add an overload to its op."""
    schema = definition.schema
    space, _, name = schema.name.partition("::")
    packets = getattr(ops, space)._packets
    packet = getattr(ops, space)._find(name) or packets.setdefault(name, OpOverloadPacket(space, name))
    packet._definitions[schema.overload_name or "default"] = definition
    return packet._overload(schema.overload_name or "default")  # type: ignore[no-any-return]


def forget(definition: Definition) -> None:
    """Take an overload away, and its op with the last of them."""
    schema = definition.schema
    space, _, name = schema.name.partition("::")
    packets = getattr(ops, space)._packets
    packet = packets.get(name)
    overload = schema.overload_name or "default"
    if packet is not None and packet._definitions.get(overload) is definition:
        del packet._definitions[overload]
        packet._made.pop(overload, None)
        if not packet._definitions:
            del packets[name]
