"""A node of a graph: one value, and what makes it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback.fx.immutable_collections import immutable_dict, immutable_list
from pullback.fx.naming import qualified_name as _get_qualified_name
from pullback.fx.naming import type_repr as _type_repr
from pullback.fx.operator_schemas import ArgsKwargsPair, normalize_function, normalize_module
from pullback.nn import init

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = (
    str | int | float | bool | complex | torch.dtype | torch.Tensor | torch.device | torch.memory_format | torch.layout
)
base_types = BaseArgumentTypes.__args__
_legal_ops = dict.fromkeys(("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"))
_side_effectful_functions: set[Any] = {torch._assert, operator.setitem, torch._C._set_grad_enabled}
"""Functions whose calls are kept although nobody uses their results."""
RANDOM = "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial"
_side_effectful_functions |= {getattr(torch, name) for name in RANDOM.split()}
_side_effectful_functions |= {getattr(init, name) for name in ("uniform_", "normal_", "trunc_normal_")}
DTYPES = {
    **{"bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "complex32": "c32"},
    **{"complex64": "c64", "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64"},
    **{"bool": "b8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64"},
}
dtype_abbrs = {getattr(torch, name): short for name, short in DTYPES.items() if hasattr(torch, name)}
"""Short names of dtypes."""


def has_side_effect(fn: Any) -> Any:
    """Keep the calls of a function in graphs although nobody uses their results."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply a function to everything in nested tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply a function to every node in nested tuples, lists, dicts and slices."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as graphs are printed: nodes behind a percent sign."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        items = ", ".join([_format_arg(item) for i, item in enumerate(arg) if i < max_list_len])
        more = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{more}]"
        return f"({items}{',' if len(arg) == 1 else ''}{more})"
    if isinstance(arg, dict):
        return "{" + ", ".join([f"{key}: {_format_arg(value)}" for key, value in arg.items()]) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph.

    What a node stands for is its `op`: `placeholder`, an argument of the function; `get_attr`, an attribute of the
    module; `call_function`, `call_method` and `call_module`, a call; `output`, the return statement. `target` says of
    what; `args` and `kwargs` hold the arguments, in which other nodes stand for their values.
    """

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} "
                    "but a Callable is expected"
                )
        else:
            if op not in _legal_ops:
                raise AssertionError(f"op '{op}' is not in _legal_ops")
            if not isinstance(target, str):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {torch.typename(target)} "
                    "but a str is expected"
                )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev = self._next = self
        self._erased = False
        self._place = 0
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = immutable_dict()
        self._update_args_kwargs(args, kwargs)

    # ---------------------------------------------------------------- the list of nodes

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Put a node before this one."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        self.graph._places_known = False

    def append(self, x: Node) -> None:
        """Put a node after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        """Take this node out of the list."""
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._places_known = False

    def __lt__(self, other: Node) -> bool:
        return self.graph._place_of(self) < self.graph._place_of(other)  # type: ignore[no-any-return]

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return not other < self

    def __ge__(self, other: Node) -> bool:
        return not self < other

    @property
    def _sort_key(self) -> Any:
        """What orders nodes: the place in the graph."""
        return (self.graph._place_of(self),)

    # ---------------------------------------------------------------- arguments

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments by place. Assigning new ones keeps count of who uses whom."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, new_args: Any, new_kwargs: Any) -> None:
        """Take arguments, and be a user of the nodes among them only."""

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}
        self._args, self._kwargs = map_arg(tuple(new_args), use), map_arg(dict(new_kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Change one argument by its place."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put an argument before another."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Change one argument by its name."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Use another value in place of a node."""
        change = lambda node: new_input if node is old_input else node
        self._update_args_kwargs(map_arg(self._args, change), map_arg(self._kwargs, change))

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node in place of one."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users of this node, or those a function chooses, use another; they come back."""
        if propagate_meta:
            if len(replace_with.meta) != 0:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        chosen = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    # ---------------------------------------------------------------- facts

    @property
    def stack_trace(self) -> str | None:
        """Where the step was recorded, if the tracer kept it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the step does more than make a value."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False))
        return self.op == "call_function" and self.target in _side_effectful_functions

    def normalized_arguments(
        self, root: Any, arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
    ) -> ArgsKwargsPair | None:
        """The arguments matched with the parameters of what is called; None for other nodes."""
        only = normalize_to_only_use_kwargs
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, only)
        if self.op == "call_module":
            return normalize_module(root, str(self.target), self.args, self.kwargs, only)
        return None

    def _rename(self, candidate: str) -> None:
        """Take another name, or one like it that is free."""
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "name" and "name" in self.__dict__:
            for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                for user in self.users:
                    hook(old=self, new=value, user=user)
        object.__setattr__(self, name, value)

    # ---------------------------------------------------------------- printing

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        """What is called, by the module a reader looks for it in."""
        if isinstance(target, str):
            return target
        name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
        if name is not None and module in ("builtins", "_operator"):
            return f"{module.lstrip('_')}.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of its graph."""
        typed = f"{_type_repr(self.type)} " if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names:
                again = f"{self.target}: {_type_repr(self.type)}" if self.type else ""  # twice, as torch has it
                placeholder_names.append(f"{self.target}{again}")
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            typed = typed if self.type else ""
            users = f"[num_users={len(self.users)}]"
            return f"%{self.name} : {typed}{users} = {self.op}[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        if include_tensor_metadata and self.op != "get_attr":
            typed = self._tensor_text() or typed
        head = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}"
        head += f"[target={self._pretty_print_target(self.target)}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def _tensor_text(self) -> str:
        """The dtype, shape, strides and device of the example value of a node; nothing if there is none."""
        meta = self.meta
        value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
        if not isinstance(value, torch.Tensor):
            return ""
        shape, stride = list(value.shape), list(value.stride())
        return f'Tensor "{dtype_abbrs[value.dtype]}{shape}{stride}{value.device}"'
