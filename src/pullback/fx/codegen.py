"""Python code from a graph."""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pullback as torch
from pullback.fx.code_style import PLAIN, Style, annotation, comment
from pullback.fx.namespace import _custom_builtins, _Namespace
from pullback.fx.naming import is_from_torch
from pullback.fx.node import Node, _get_qualified_name, _type_repr
from pullback.fx.tensor_type import TensorType
from pullback.utils import _pytree as pytree

TransformCodeFunc = Callable[[list[str]], list[str]]
TYPING = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006
COUNTER = re.compile(r"# COUNTER: (\d+)")

reflectable_magic_methods = {
    **{"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}"},
    **{"div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}"},
    **{"and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}"},
}
magic_methods = {
    **{"eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}"},
    **{"pos": "+{}", "neg": "-{}", "invert": "~{}"},
    **reflectable_magic_methods,
}
inplace_methods = {
    **{"iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}"},
    **{"imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}"},
    **{"isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}"},
}
"""The operators as they are written; the names are those of Python's module `operator`."""


@dataclass
class PythonCode:
    """Source of a function, the global names it needs, and which node each line is from."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The arguments of a function that takes trees, and the forms of what it takes and returns."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


def _format_target(base: str, target: str) -> str:
    """An attribute path as an expression."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


class Writer:
    """The code of one graph while it is being written."""

    def __init__(self, codegen: CodeGen, nodes: Any, root: str, namespace: _Namespace, style: Style) -> None:
        self.codegen, self.nodes, self.root, self.namespace, self.style = codegen, nodes, root, namespace, style
        self.globals: dict[str, Any] = {}
        self.free: list[str] = []
        self.body: list[str] = []
        self.wrapped: dict[str, None] = {}
        self.returns = self.last_comment = ""
        for name, known in _custom_builtins.items():
            self.add_global(name, known.obj)

    def add_global(self, hint: str, thing: Any) -> str:
        """The name by which the code reaches something outside the graph."""
        if is_from_torch(thing) and thing is not torch.device:
            return _get_qualified_name(thing)
        name = self.namespace.create_name(hint, thing)
        if name in self.globals and self.globals[name] != thing:
            raise AssertionError(f"Global name {name} already assigned to different object")
        self.globals[name] = thing
        return name

    def type_text(self, kind: Any) -> str:
        """A type as the code writes it."""
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join([self.type_text(part) for part in typing.get_args(kind)])
        origin = getattr(kind, "__origin__", None)
        if not origin:
            return self.add_global(_type_repr(kind), kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = TYPING.get(origin, origin)
        name = self.add_global(_type_repr(origin), origin)
        parts = kind.dims if isinstance(kind, TensorType) else typing.get_args(kind)
        return f"{name}[{','.join([self.type_text(part) for part in parts])}]" if parts else name

    def text(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(_get_qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, torch.Tensor):
            return f"torch.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).split('.')[-1]})"
        if isinstance(arg, tuple):
            return f"({', '.join([self.text(item) for item in arg])}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join([self.text(item) for item in arg])}]"
        if isinstance(arg, slice):
            return f"slice({self.text(arg.start)}, {self.text(arg.stop)}, {self.text(arg.step)})"
        return self.style.paint("blue", repr(arg))

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        return ", ".join([*map(self.text, args), *[f"{key} = {self.text(value)}" for key, value in kwargs.items()]])

    def last_uses(self) -> dict[Node, list[Node]]:
        """By node: the values nobody needs after it."""
        seen: set[Node] = set()
        found: dict[Node, list[Node]] = {}
        for node in reversed(self.nodes):
            for value in node._input_nodes:
                if value not in seen:
                    seen.add(value)
                    found.setdefault(node, []).append(value)
        return found

    def write(self) -> None:
        """Write the lines of all nodes."""
        last_uses = self.last_uses()
        for i, node in enumerate(self.nodes):
            if self.style.verbose:
                said = comment(node, self.style)
                if said and said != self.last_comment:
                    self.body.append(said)
                    self.last_comment = said
            self.body.append(f"# COUNTER: {i}\n")
            if node.op == "placeholder":
                self.placeholder(node)
                continue
            self.body.append(self.statement(node))
            gone = [] if node.op == "output" else [*last_uses.get(node, ()), *([] if node.users else [node])]
            freed = " = ".join([*map(repr, gone), "None"])
            self.body.append(f";  {self.style.paint('dim', freed)}\n" if gone else "\n")

    def typed(self, node: Node) -> str:
        """What stands between a name and its value: the type, or in verbose code what is known of the tensor."""
        plain = "" if node.type is None else f" : {self.type_text(node.type)}"
        return (annotation(node, self.style) or plain) if self.style.verbose else plain

    def placeholder(self, node: Node) -> None:
        """An argument of the function."""
        default = f" = {self.text(node.args[0])}" if node.args else ""
        told = node.meta.get("desc") if self.style.expanded_def else None
        told = "" if told is None else f"  # {told}"
        self.free.append(f"{node.target}{self.typed(node)}{default}{told}")
        raw = str(node.target).replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def statement(self, node: Node) -> str:
        """The line of any other node."""
        target: Any = node.target
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_text(node.type)}"
            descs = node.meta.get("desc") if self.style.expanded_def else None
            return str(supported(self.codegen.generate_output)(node.args[0], descs=descs, repr_fn=self.text))
        head = f"{node!r}{self.typed(node)} = "
        if node.op == "call_method":
            on = _format_target(self.text(node.args[0]), target)
            return f"{head}{on}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{head}{_format_target(self.root, target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return f"{head}{_format_target(self.root, target)}"
        if node.op != "call_function":
            raise NotImplementedError(f"node: {node.op} {node.target}")
        if getattr(target, "__module__", "") == "_operator":
            if target.__name__ in magic_methods:
                return head + magic_methods[target.__name__].format(*map(self.text, node.args))
            if target.__name__ in inplace_methods:
                done = inplace_methods[target.__name__].format(*map(self.text, node.args))
                return f"{done};  {head}{self.text(node.args[0])}"
        name = self.add_global(_get_qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return head + _format_target(self.text(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{head}{name}({self.arguments(node.args, node.kwargs)})"


def supported(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, called without those named arguments it does not know: a program may have its own CodeGen."""
    known = inspect.signature(method).parameters
    return lambda *args, **kwargs: method(*args, **{key: value for key, value in kwargs.items() if key in known})


class CodeGen:
    """How the function of a graph is written; programs derive from it to write it in another way."""

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The first line of the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = []
        for variable in free_vars:
            name, _, told = variable.partition("#")
            lines.append(f"    {name.rstrip()},  # {told.lstrip()}\n" if told else f"    {variable},\n")
        return f"def {self._func_name}(\n{''.join(lines)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr) -> str:
        """The return statement."""
        return f"return {many_lines(output_args, descs, repr_fn)}"

    def process_inputs(self, *args: Any) -> Any:
        """The arguments of the graph from those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function returns from what the graph does."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More names the code needs."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: _Namespace, style: Style = PLAIN) -> PythonCode:
        """The whole function."""
        writer = Writer(self, nodes, root_module, namespace, style)
        writer.write()
        body = writer.body or ["pass\n"]
        wraps = ""
        if writer.wrapped:
            wrap = writer.add_global("wrap", torch.fx.wrap)
            wraps = "\n".join([f'{wrap}("{name}")' for name in writer.wrapped])
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        head = supported(self.gen_fn_def)(writer.free, writer.returns, expanded_def=style.expanded_def)
        lines: list[str] = []
        origins: dict[int, int | None] = {}
        node_number = None
        for line in "".join(body).split("\n"):
            counted = COUNTER.search(line)
            if counted is not None:
                node_number = int(counted.group(1))
            else:
                origins[len(lines) + head.count("\n") + 1] = node_number
                lines.append(line)
        text = "\n".join(["    " + line for line in "\n".join(lines).lstrip("\n").split("\n")])
        return PythonCode(f"\n{wraps}\n\n{head}\n{text}", writer.globals, origins, wraps.count("\n") + 4)


def many_lines(values: Any, descs: Any, repr_fn: Callable[[Any], str]) -> str:
    """A value; if there is something to say about the items of a list or tuple, each on its own line."""
    if descs is None or not isinstance(values, (list, tuple)):
        return repr_fn(values)
    items = "".join([f"    {repr_fn(item)},  # {told}\n" for item, told in zip(values, descs, strict=False)])
    return f"(\n{items})" if isinstance(values, tuple) else f"[\n{items}]"


class _PyTreeCodeGen(CodeGen):
    """Writes functions whose arguments or results are trees."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        own = self.pytree_info.orig_args
        if own and own[0] == "self":
            free_vars.insert(0, "self")
        head = super().gen_fn_def(own[:], maybe_return_annotation, expanded_def=expanded_def)
        return head + self.gen_var_bindings(own, free_vars, expanded_def) if free_vars else head

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The lines that take the trees apart."""
        spec = self.pytree_info.in_spec
        given = f"[{', '.join(fn_args)}]"
        pair = spec.type is tuple and spec.num_children == 2
        if pair and spec.child(0).type is tuple and spec.child(1).type is dict:  # arguments by place and by name
            count = spec.child(0).num_children
            named = zip(spec.child(1).context, self.pytree_info.orig_args[count:], strict=False)
            keywords = ", ".join([f"'{key}':{value}" for key, value in named])
            given = f"([{', '.join(self.pytree_info.orig_args[:count])}], {{{keywords}}})"
        typed = [variable for variable in free_vars if ":" in variable]
        lines = ""
        if typed:
            lines = "\n    " + ("\n    ".join(typed) if expanded_def else "".join([f"{v}; " for v in typed]) + "\n")
        names = ", ".join([variable.split(":")[0].split("#")[0] for variable in free_vars])
        return f"{lines}\n    {names}, = fx_pytree.tree_flatten_spec({given}, self._in_spec)"

    def generate_output(self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr) -> str:
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({many_lines(output_args, descs, repr_fn)}, self._out_spec)"
