"""Kinds of branches that programs add to trees, and forms of trees as text."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache, wraps
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

from pullback import Size
from pullback._pytree import LEAF, NODES, ConstantNode, GetAttrKey, NodeDef, TreeSpec

PyTree = Context = DumpableContext = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[Any, Any]], Any]]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


def deprecated(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function warns when it is called."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def warning(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warning

    return decorate


def private(name: str) -> str:
    """What torch says of a name that has lost its underscore."""
    return (
        f"torch.utils._pytree.{name} is private and will be removed in a future release. "
        f"Please use torch.utils._pytree.{name.removeprefix('_')} instead."
    )


# ------------------------------------------------------------------ more kinds of branches


class _SerializeNodeDef(NamedTuple):
    """How a kind of branch is written to a file."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Make a class a branch."""
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    writing = (serialized_type_name, to_dumpable_context, from_dumpable_context)
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, *writing, flatten_with_keys_fn)


def _private_register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Make a class a branch, also one that is so already."""
    if cls in NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=3
        )
    NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    writable(cls, serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND, to_dumpable_context, from_dumpable_context)


def writable(cls: Any, name: str, to: ToDumpableContextFn | None = None, back: Any = None) -> None:
    """Say under which name a kind of branch is written to files."""
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to, back)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


@deprecated(
    "`torch.utils._pytree._register_pytree_node` is deprecated. "
    "Please use `torch.utils._pytree.register_pytree_node` instead."
)
def _register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **kwargs: Any,
) -> None:
    """`register_pytree_node` as it was called before, with two arguments that do nothing any more."""
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and "
            "`from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=3,
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Let the forms of a class of named tuples be written to files."""
    by_name = NODES[namedtuple]
    _private_register_pytree_node(
        cls, by_name.flatten_fn, by_name.unflatten_fn, serialized_type_name, named_to_text, named_from_text
    )


def _deregister_pytree_node(cls: type) -> None:
    """Make a class a leaf again."""
    del NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a dataclass a branch: its fields are its children."""
    fields = [field.name for field in dataclasses.fields(cls) if field.init] if dataclasses.is_dataclass(cls) else None
    if field_names is None and fields is None:
        raise ValueError(
            f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
            "dataclass."
        )
    if field_names is not None and fields is not None:
        wanted, given = set(fields) - set(drop_field_names or ()), set(field_names)
        if wanted != given:
            text = "field_names does not include all dataclass fields.\n"
            if missing := wanted - given:
                text += (
                    f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, "
                    "please add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
                )
            if unexpected := given - wanted:
                text += (
                    f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
                    "`drop_field_names`.\n"
                )
            raise ValueError(text)
    names = fields if field_names is None else field_names

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        kept = [name for name in names or () if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in kept], [kept, [name for name in names or () if name not in kept]]

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    def with_keys(obj: Any) -> tuple[list[Any], Any]:
        values, context = flatten(obj)
        return [(GetAttrKey(name), value) for name, value in zip(context[0], values, strict=True)], context[0]

    _private_register_pytree_node(cls, flatten, unflatten, serialized_type_name, flatten_with_keys_fn=with_keys)


def register_constant(cls: type) -> None:
    """Make a class a part of the form: a branch without children."""
    for method, missing in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, method) is missing:
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{method}` implementation.")
    flatten: Any = lambda x: ([], ConstantNode(x))
    _private_register_pytree_node(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


# ------------------------------------------------------------------ forms in files

PROTOCOL = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """JSON that can also name the members of enumerations."""

    def default(self, obj: object) -> Any:
        """A member by its class and its name."""
        if isinstance(obj, Enum):
            kind = type(obj)
            return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The member that `EnumEncoder` named."""
    if "__enum__" not in obj:
        return obj
    module, _, names = obj["fqn"].partition(":")
    return found_in(module, names)[obj["name"]]


def found_in(module: str, names: str) -> Any:
    """What a module has under a dotted name."""
    return attrgetter(names)(import_module(module))


def named_to_text(context: Any) -> str:
    """A class of named tuples by the name it was registered with."""
    what = f"Can't serialize TreeSpec of namedtuple class {context} because we"
    if context not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(
            f"{what} didn't register a serializated_type_name. Please register using `_register_namedtuple`."
        )
    return SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name


def named_from_text(name: str) -> Any:
    """The class of named tuples that was registered with a name."""
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def default_to_json(context: Any) -> dict[str, Any]:
    """What a defaultdict keeps: where its factory is found, and its keys."""
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def default_from_json(written: dict[str, Any]) -> list[Any]:
    """The factory and the keys again."""
    factory = found_in(written["default_factory_module"], written["default_factory_name"])
    return [factory, written["dict_context"]]


for kind in (tuple, list, dict, OrderedDict, deque):
    writable(kind, f"{kind.__module__}.{kind.__name__}")
writable(Size, "torch.Size")
writable(namedtuple, "collections.namedtuple", named_to_text, named_from_text)
writable(defaultdict, "collections.defaultdict", default_to_json, default_from_json)


def to_json(spec: TreeSpec) -> dict[str, Any]:
    """A form as JSON has it."""
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    how = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if how is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if how.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. "
            "Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if how.to_dumpable_context is not None:
        context = how.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom "
                "serializer using _register_pytree_node."
            ) from error
    children = [to_json(child) for child in spec.children()]
    return {"type": how.serialized_type_name, "context": context, "children_spec": children}


def from_json(written: dict[str, Any]) -> TreeSpec:
    """A form from JSON."""
    name, context, children = written["type"], written["context"], written["children_spec"]
    if name is None and context is None and not children:
        return LEAF
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    back = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    kept = json.loads(context, object_hook=enum_object_hook) if back is None else back(context)
    return TreeSpec(kind, kept, [from_json(child) for child in children])


def check_protocol(protocol: int) -> None:
    """Refuse a way of writing that is not known."""
    if protocol != PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[PROTOCOL]}")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A form as text."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    check_protocol(PROTOCOL if protocol is None else protocol)
    return json.dumps((PROTOCOL, to_json(treespec)), cls=EnumEncoder)


@cache
def treespec_loads(serialized: str) -> TreeSpec:
    """A form from its text."""
    protocol, written = json.loads(serialized)
    check_protocol(protocol)
    return from_json(written)
