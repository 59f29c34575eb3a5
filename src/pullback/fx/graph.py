"""A graph: the steps of a function in order, each a node."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pullback as torch
from pullback.fx.code_style import PLAIN, Style
from pullback.fx.codegen import CodeGen as CodeGen
from pullback.fx.codegen import PythonCode as PythonCode
from pullback.fx.codegen import TransformCodeFunc
from pullback.fx.codegen import _format_target as _format_target
from pullback.fx.codegen import _PyTreeCodeGen as _PyTreeCodeGen
from pullback.fx.codegen import _PyTreeInfo as _PyTreeInfo
from pullback.fx.codegen import inplace_methods as inplace_methods
from pullback.fx.codegen import magic_methods as magic_methods
from pullback.fx.codegen import reflectable_magic_methods as reflectable_magic_methods
from pullback.fx.namespace import _custom_builtins as _custom_builtins
from pullback.fx.namespace import _is_magic as _is_magic
from pullback.fx.namespace import _Namespace, target_name
from pullback.fx.namespace import _register_custom_builtin as _register_custom_builtin
from pullback.fx.namespace import _snake_case as _snake_case
from pullback.fx.node import Node, Target, map_arg
from pullback.fx.node import _get_qualified_name as _get_qualified_name
from pullback.fx.node import _type_repr as _type_repr

__all__ = ["CodeGen", "Graph", "PythonCode"]
_legal_ops = dict.fromkeys(("call_function", "call_method", "get_attr", "call_module", "placeholder", "output"))


class _InsertPoint:
    """A place where new nodes go; as a block, until its end."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        """Nothing to do: the place counts already."""

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph in order. They may be moved and erased while one looks at them."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Any]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> Iterator[Any]:
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class Graph:
    """The steps of a function: arguments, calls and the result. A `GraphModule` makes a module of it."""

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None) -> None:
        self._places_known = False
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The module made of this graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order."""
        return _node_list(self)

    def _place_of(self, node: Node) -> int:
        """The number of a node in order."""
        if not self._places_known:
            for i, each in enumerate(self.nodes):
                each._place = i
            self._places_known = True
        return node._place

    def output_node(self) -> Node:
        """The return statement."""
        node: Node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Any]:
        """The nodes with this `op`, and this target if one is given; calls of functions need one."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ---------------------------------------------------------------- copies

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of another graph to here; what it returns comes back, as a value of this graph.

        `val_map` holds the copy of every node; nodes that are in it are not copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Copy a node of another graph to here; the function makes its arguments into ours."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        memo = memo if memo else {}
        g = Graph(tracer_cls=self._tracer_cls)
        output = g.graph_copy(self, val_map=memo, return_output_node=True)
        g._codegen = copy.deepcopy(self._codegen)
        if output is not None:
            value, old = output
            g.output(value, type_expr=getattr(old, "type", None)).meta = copy.copy(old.meta)
        return g

    # ---------------------------------------------------------------- making and erasing nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node at the place where new nodes go."""
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        """The name a node gets from what it calls."""
        return target_name(target)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node away that nobody uses."""
        if len(to_erase.users) > 0:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph != self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True  # who looks at the nodes right now may still hold it
        self._len -= 1
        nothing = lambda node: None
        to_erase._update_args_kwargs(map_arg(to_erase._args, nothing), map_arg(to_erase._kwargs, nothing))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go before this one, or to the beginning; in a `with` statement until its end."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph != self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go after this one, or to the end; in a `with` statement until its end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph != self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty) -> Node:
        """Add an argument of the function."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the look at an attribute of the module."""
        if self.owning_module is not None and not is_reference(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a submodule."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the return statement."""
        return self.create_node(op="output", target="output", args=(result,), type_expr=type_expr)

    # ---------------------------------------------------------------- code

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph from those of its function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the function returns from what the graph does."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write code in another way."""
        self._codegen = codegen

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The function as Python code; `root_module` is the name of the module in it, usually `self`."""
        if record_func:
            raise NotImplementedError("record_func is not available in pullback; use pullback.profiler.record_function")
        meta = tuple(additional_meta or ())
        plain = not (verbose or include_stride or include_device or colored or expanded_def or meta)
        style = PLAIN if plain else Style(verbose, include_stride, include_device, colored, expanded_def, meta)
        namespace = _Namespace()
        nodes = list(self.nodes)
        before = [node._repr_fn for node in nodes]
        for node in nodes:  # in the code, names must also differ from those of the functions it calls
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, style)
        finally:
            for node, known in zip(nodes, before, strict=True):
                node._repr_fn = known

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> AbstractContextManager[None]:
        """Let a function change the lines of the code whenever it is written; in a `with` statement until its end."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def block() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return block()

    def __str__(self) -> str:
        lines = [node.format_node([]) for node in self.nodes]
        return "\n    ".join(["graph():", *[line for line in lines if line]])

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [[str(cell) for cell in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes]
        print(table(["opcode", "name", "target", "args", "kwargs"], rows))

    # ---------------------------------------------------------------- checks

    def lint(self) -> None:
        """Look whether the graph is sound: every value is made before it is used, and every target exists."""
        names: set[str] = set()
        values: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an "
                        "argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` "
                        f"on node_copy() to remap values\n{self}"
                    )
                if arg not in values:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            values.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module:
            for node in self.nodes:
                check_target(self.owning_module, node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase the nodes nobody uses, unless they do more than make a value; whether there were any."""
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            kept = is_impure_node(node) if is_impure_node is not None else node.is_impure()
            if not kept and len(node.users) == 0:
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                if name in used and isinstance(getattr(child, "graph", None), Graph):
                    changed |= child.graph.eliminate_dead_code()
                    child.recompile()
        return changed

    def _clear_nodes(self) -> None:
        """Erase all nodes."""
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)


def is_reference(module: Any, name: str) -> bool:
    """Whether a name leads to a submodule, a parameter or a buffer."""
    path, _, last = name.rpartition(".")
    try:
        owner = module.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    found = getattr(owner, last, None)
    return isinstance(found, (torch.nn.Module, torch.nn.Parameter)) or (hasattr(owner, last) and last in owner._buffers)


def check_target(module: Any, node: Node) -> None:
    """Raise if what a node calls or looks at does not exist."""
    target: Any = node.target
    if node.op == "call_function":
        if not callable(target):
            kind = torch.typename(target)
            raise ValueError(f"Node {node} target {target} has type {kind} but a Callable is expected")
    elif not isinstance(target, str):
        raise ValueError(f"Node {node} target {target} has type {torch.typename(target)} but a str is expected")
    if node.op in ("get_attr", "call_module"):
        atoms = target.split(".")
        for i, atom in enumerate(atoms):
            found, path = getattr(module, atom, None), ".".join(atoms[:i])
            if found is None:
                raise RuntimeError(f"Node {node} target {target} references nonexistent attribute {atom} of {path}")
            if node.op == "call_module" and not isinstance(found, torch.nn.Module):
                raise RuntimeError(f"Node {node} target {target} {atom} of {path} does not reference an nn.Module")
            module = found


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Columns under their headings."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines])
