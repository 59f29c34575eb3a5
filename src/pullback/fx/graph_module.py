"""A module made from a graph: its `forward` is the code of the graph."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pullback as torch
from pullback.fx.exporting import _format_import_block, file_of_module, in_our_names
from pullback.fx.graph import Graph, PythonCode, _PyTreeCodeGen

__all__ = ["GraphModule", "reduce_graph_module"]
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
KEPT_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
KEPT_HOOKS += ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


class _EvalCacheLoader:
    """Keeps the source of generated code, so that tracebacks can show it."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> str:
        """Keep a source; the name of the file it stands for comes back."""
        key = f"<eval_with_key>.{self.next_id}"
        self.next_id += 1
        if co_fields:
            key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name: str) -> str | None:
        """The source of such a file."""
        return self.eval_cache.get(module_name)


_loader = _EvalCacheLoader()


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Run generated code."""
    exec(compile(src, _loader.cache(src, globals, co_fields), "exec", dont_inherit=True), globals)


def _forward_from_src(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> Callable[..., Any]:
    """The function `forward` that a source defines."""
    names = globals.copy()
    _exec_with_source(src, names, co_fields)
    return names.pop("forward")  # type: ignore[no-any-return]


class _CodeOnlyModule(torch.nn.Module):
    """What a graph module was pickled or copied from: all its attributes, and no graph."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """The module from its pickle: its code is traced again."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(in_our_names(import_block) + source, {}), body)


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: Any = None) -> Any:
    """A graph module from its `forward` and its attributes."""
    _CodeOnlyModule.forward = forward
    tracer_cls: Any = body.get("_tracer_cls") or torch.fx.Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        """Submodules were calls in the graph, and stay calls."""

        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True

    com = _CodeOnlyModule(body)
    graph = KeepModules().trace(com, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    made = (graph_module_cls or GraphModule)(com, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Copy an attribute by its path; modules on the way that are not there are made."""
    *prefix, field = target.split(".")
    for item in prefix:
        inner, own = getattr(from_module, item), getattr(to_module, item, None)
        if inner is own:
            return  # a module above it was copied, and all that is in it
        if own is None:
            own = torch.nn.Module()
            setattr(to_module, item, own)
        from_module, to_module = inner, own
    put(getattr(from_module, field), to_module, field)


def put(value: Any, module: Any, name: str) -> None:
    """Give a module an attribute; a plain tensor becomes a buffer."""
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Give a module an attribute by its path; modules on the way that are not there are made."""
    *prefix, field = target.split(".")
    for item in prefix:
        inner = getattr(to_module, item, None)
        if inner is None:
            inner = torch.nn.Module()
            setattr(to_module, item, inner)
        to_module = inner
    put(from_obj, to_module, field)


def _get_attr(model: Any, attr_name: str) -> Any:
    """An attribute by its path."""
    for item in attr_name.split("."):
        model = getattr(model, item)
    return model


class _WrappedCall:
    """The call of a graph module: when its code raises, the line of the code is shown."""

    def __init__(self, cls: Any, cls_call: Any) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        """The traceback, and the lines around the one that raised."""
        number, line = frame_summary.lineno or 0, frame_summary.line or ""
        lines = linecache.getlines(frame_summary.filename)
        said = f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:"
        before, after = "".join(lines[number - 2 : number]), "\n".join(lines[number : number + 2])
        return "\n".join([traceback.format_exc(), said, before, "~" * len(line) + "~~~ <--- HERE", after])

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__))[-1]
            if "eval_with_key" in last.filename:
                print(self._generate_error_message(last), file=sys.stderr)
                raise error.with_traceback(None)  # noqa: B904
            raise


class GraphModule(torch.nn.Module):
    """A module whose `forward` is the code of its `graph`.

    Assigning another graph writes the code anew; after a change of the graph itself, call `recompile`.
    """

    _closed = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        own = next(kind for kind in cls.__mro__ if kind.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(own):  # type: ignore[misc, valid-type]
            """The class of one instance: it has a `forward` of its own."""

        GraphModuleImpl._closed = False
        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [(node, str(node.target)) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, torch.nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):  # nothing is dropped
                for members in (root.named_children(), root.named_buffers(), root.named_parameters()):
                    for name, _ in members:
                        _copy_attr(root, self, name)
            for _, target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node, target in targets:
                if target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {target} but that target was not provided in ``root``!"
                    )
            for target in sorted([target for _, target in targets], key=lambda path: path.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        tracer_cls = graph._tracer_cls
        self._tracer_cls = tracer_cls if tracer_cls and "<locals>" not in tracer_cls.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Any] = []
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self._deepcopy_hooks: list[Any] = []
        self.shape_env = None

    @property
    def graph(self) -> Graph:
        """The graph of this module."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    # ---------------------------------------------------------------- submodules

    def add_submodule(self, target: str, m: Any) -> bool:
        """Add a submodule by its path; False if something on the way is no module."""
        *prefix, field = target.split(".")
        module: Any = self
        for item in prefix:
            inner = getattr(module, item, None)
            if inner is None:
                inner = torch.nn.Module()
                setattr(module, item, inner)
            if not isinstance(inner, torch.nn.Module):
                return False
            module = inner
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take a submodule away; False if there is none of this path."""
        *prefix, field = target.split(".")
        module: Any = self
        for item in prefix:
            module = getattr(module, item, None)
            if not isinstance(module, torch.nn.Module):
                return False
        if not isinstance(getattr(module, field, None), torch.nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take the submodules away that no node calls or looks into."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), lambda path, item: f"{path}.{item}"))
                if node.op == "call_module":
                    try:
                        called = self.get_submodule(node.target)
                    except AttributeError:
                        continue  # not there, so nothing below it either
                    used.update([f"{node.target}.{name}" for name, _ in called.named_modules() if name])
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ---------------------------------------------------------------- code

    @property
    def code(self) -> str:
        """The code of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Write the code anew from the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        code = self._graph.python_code(root_module="self")
        self._code, self._lineno_map, self._prologue_start = code.src, code._lineno_map, code._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, code.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return code

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as Python code and its tensors to a folder, which can be imported."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        torch.save(self.state_dict(), folder / "state_dict.pt")
        text, pickled = file_of_module(self, folder, module_name)
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn(
                "Was not able to save the following children modules as reprs -saved as pickled files instead: "
                f"{pickled}",
                stacklevel=2,
            )

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code as classes, with what is known of every line; it is printed too."""
        options: Any = {"include_stride": include_stride, "include_device": include_device, "colored": colored}
        options["additional_meta"] = additional_meta
        text = readable(self, self._get_name(), expanded_def, options)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        told = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, told])

    # ---------------------------------------------------------------- copies

    def __reduce__(self) -> Any:
        body = self.__dict__.copy()
        imports = _format_import_block(self.recompile().globals)
        del body["_graph"]
        return reduce_graph_module, (body, imports)

    def _deepcopy_init(self) -> Callable[..., None]:
        """What makes the copy, for classes whose `__init__` takes other arguments."""
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        res = type(self).__new__(type(self))
        memo[id(self)] = res
        fake_mod = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(res, fake_mod, fake_mod.__dict__["_graph"])
        for name in KEPT_HOOKS:
            if name in self.__dict__:
                setattr(res, name, copy.deepcopy(self.__dict__[name], memo))
        res.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in res.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(res, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(res)
        return res

    def __copy__(self) -> GraphModule:
        res = GraphModule(self, self.graph)
        res.meta = getattr(self, "meta", {})
        return res

    # ---------------------------------------------------------------- hooks

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Any) -> Iterator[None]:
        """A block in which a function is called whenever a node is replaced or renamed."""
        if not callable(f):
            raise AssertionError("Replace hook must be a callable.")
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


def readable(module: Any, name: str, expanded_def: bool, options: dict[str, Any]) -> str:
    """The code of a graph module as a class, with those of its children inside."""
    code = module.graph.python_code(root_module="self", verbose=True, expanded_def=expanded_def, **options)
    text = indented(f"class {name}(torch.nn.Module):\n" + code.src.lstrip("\n"))
    children = [(n, child) for n, child in module.named_children() if isinstance(child, GraphModule)]
    return text + indented("\n".join(["", *[readable(child, n, False, options) for n, child in children]]))


def indented(text: str) -> str:
    """All lines but the first moved to the right; empty ones stay empty."""
    first, *lines = text.split("\n")
    return "\n".join([first, *[f"    {line}" if line.strip() else "" for line in lines]])


def attach_hooks() -> None:
    """Give graph modules the functions that register and take away hooks."""

    def pair(table: str) -> tuple[Any, Any]:
        def register(self: GraphModule, f: Any) -> None:
            if not callable(f):
                raise AssertionError(f"{table[1:-6]} hook must be a callable.")
            getattr(self, table).append(f)

        return register, lambda self, f: getattr(self, table).remove(f)

    for kind in ("replace_node", "create_node", "erase_node", "deepcopy"):
        table = "_replace_hooks" if kind == "replace_node" else f"_{kind}_hooks"
        register, unregister = pair(table)
        setattr(GraphModule, f"_register_{kind}_hook", register)
        setattr(GraphModule, f"_unregister_{kind}_hook", unregister)


attach_hooks()
