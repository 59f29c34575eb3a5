"""Proxies: stand-ins for values that write down what is done with them."""

from __future__ import annotations

import collections
import copy
import enum
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from types import FrameType
from typing import Any, NoReturn

import pullback as torch
from pullback import overrides
from pullback.fx import traceback as fx_traceback
from pullback.fx.call_forms import as_passed_on
from pullback.fx.graph import Graph, magic_methods, reflectable_magic_methods
from pullback.fx.naming import name_of, names
from pullback.fx.node import Node, Target, base_types, map_arg
from pullback.fx.positions import is_assert, unpacked_items
from pullback.ops.interop.overriding import install
from pullback.utils._pytree import tree_leaves

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]
KEPT_NOTES = ("nn_module_stack", "torch_fn", "source_fn_stack", "custom", "quantization_tag", "partitioner_tag")
"""The notes a node has from the node it was made of."""
OWN_FILES = tuple([__file__.rpartition("fx")[0] + part for part in ("fx", "_op", "ops", "nn")])


class Scope:
    """The module whose `forward` runs: its path and its type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """A block in which another module's `forward` runs."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._prev_scope, self._scope = copy.copy(scope), scope
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: object) -> None:
        before = self._prev_scope
        self._scope.module_path, self._scope.module_type = before.module_path, before.module_type


class TraceError(ValueError):
    """The program does something with a value that cannot be written down."""


class TracerBase:
    """What writes down the nodes. A `Tracer` does it while a program runs; a `GraphAppendingTracer` at any time."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Write down a node."""
        if kind == "call_function" and self.check_mutable_operations:
            raise NotImplementedError("Tracer.check_mutable_operations is not available in pullback; leave it False")
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            notes = fx_traceback.get_current_meta()
            if notes.get("stack_trace"):
                node.stack_trace = notes["stack_trace"]
            node.meta.update({key: copy.copy(notes[key]) for key in KEPT_NOTES if key in notes})
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(OWN_FILES)]
            first = next((i for i, frame in enumerate(frames) if frame.name == "forward"), len(frames))
            if first < len(frames):
                node.stack_trace = "".join(traceback.format_list(frames[first:])).strip()
        return node

    def proxy(self, node: Node) -> Proxy:
        """A stand-in for the value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Write down a node; a stand-in for its value comes back."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def _find_user_frame(self) -> FrameType | None:
        """The frame of the program that is being traced."""
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_code.co_filename.startswith(OWN_FILES):
            frame = frame.f_back
        return frame

    def create_arg(self, a: Any) -> Any:
        """What is written down for an argument: nodes for proxies, and values that can be printed."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self.create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if is_dataclass(a) and not isinstance(a, type):
            values = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), values)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def create_key(self, key: Any) -> Any:
        """The key of a dict, in which there may be no node."""

        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        if isinstance(key, str):
            return key
        key = self.create_arg(key)
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a value is true: not known while tracing; a tracer of your own may know."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a value: not known while tracing; a tracer of your own may know."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a value, as `**value` asks for them."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Writes down what is done with proxies outside of a trace."""

    def __init__(self, graph: Graph) -> None:
        install()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """An assert of the traced program."""
    if not x:
        raise AssertionError("Assertion failed")


class Proxy:
    """A stand-in for the value of a node: operators, methods and torch's functions make new nodes of it.

    It cannot be iterated and is neither true nor false: there is no value yet. What depends on one goes into a
    function that is not traced, with `fx.wrap`.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        return Attribute(self, k)  # written down when it is used: it may be a method that is called

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return Proxy(copy.deepcopy(self.node, memo), copy.deepcopy(self.tracer, memo))

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = unpacked_items(sys._getframe(1))
        if count is not None:  # `a, b = proxy` says how many items there are
            return (self[i] for i in range(count))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and is_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys, as `**proxy` asks for them."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers = {leaf.tracer: None for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, cls)}
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer: TracerBase = next(iter(tracers))
        if orig_method not in names() and overrides.is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        args, kwargs = as_passed_on(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(name_of(orig_method))
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, otherwise a value."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the value, written down when first needed."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A stand-in for a parameter whose shape may be asked: see `Tracer(param_shapes_constant=True)`."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions of the parameter."""
        return self.param.ndim  # type: ignore[no-any-return]

    def size(self) -> Any:
        """The shape of the parameter."""
        return self.param.size()

    def dim(self) -> int:
        """The number of dimensions of the parameter."""
        return self.param.dim()  # type: ignore[no-any-return]

    def numel(self) -> int:
        """The number of elements of the parameter."""
        return self.param.numel()  # type: ignore[no-any-return]

    def nelement(self) -> int:
        """The number of elements of the parameter."""
        return self.param.nelement()  # type: ignore[no-any-return]


def attach_operators() -> None:
    """Give proxies Python's operators."""

    def straight(target: Any) -> Any:
        return lambda *args, **kwargs: args[0].tracer.create_proxy("call_function", target, args, kwargs)

    def reflected(target: Any) -> Any:
        return lambda self, other: self.tracer.create_proxy("call_function", target, (other, self), {})

    for name in magic_methods:
        target = getattr(operator, name, None)
        if target is not None:
            setattr(Proxy, f"__{name.strip('_')}__", straight(target))
            if name in reflectable_magic_methods:
                setattr(Proxy, f"__r{name.strip('_')}__", reflected(target))


attach_operators()
