"""Symbolic tracing: a program is run with stand-ins for its arguments, and what it does is written down."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable
from itertools import chain
from threading import RLock, get_ident
from types import FunctionType, ModuleType
from typing import Any

import pullback as torch
from pullback.fx._lazy_graph_module import _make_graph_module
from pullback.fx.graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from pullback.fx.node import base_types, map_aggregate
from pullback.fx.patching import (
    _autowrap_check,
    _new_patcher,
    _patch_wrapped_functions,
    _wrapped_fns_to_patch,
)
from pullback.fx.patching import _create_wrapped_func as _create_wrapped_func
from pullback.fx.patching import _find_proxy as _find_proxy
from pullback.fx.patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from pullback.fx.patching import _Patcher as _Patcher
from pullback.fx.patching import _wrapped_methods_to_patch as _wrapped_methods_to_patch
from pullback.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from pullback.ops.interop.overriding import CallsAsWritten
from pullback.utils import _pytree as pytree

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_is_fx_tracing_flag = False
one_at_a_time = RLock()
"""Held while modules and methods are exchanged: two traces at once would give each other's back."""


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return _is_fx_tracing_flag


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The metaclass of classes whose instances may be made while tracing: the call is written down."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxies: list[Proxy] = []
        if is_fx_tracing():
            map_aggregate((args, kwargs), lambda item: proxies.append(item) if isinstance(item, Proxy) else None)
        if proxies:
            return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class PHBase:
    """In `concrete_args`: a leaf that stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A leaf that stays an argument, with a key to know it by."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    """Copy plain attributes from one object to another that has none of the name."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """The function with `*args` and `**kwargs` as two plain parameters, so that stand-ins can be passed for them."""
    code = fn.__code__
    plain = code.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(plain, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class Tracer(TracerBase):
    """Traces modules and functions. Derive from it to decide what is a leaf and what is written down.

    Args:
        autowrap_modules: modules whose functions are written down, not run, when called with a stand-in.
        autowrap_functions: more such functions.
        param_shapes_constant: whether the shapes of parameters are known while tracing.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        members = chain.from_iterable([vars(module).items() for module in autowrap_modules])
        self._autowrap_function_ids = {id(v) for name, v in members if not name.startswith("_") and callable(v)}
        self._autowrap_function_ids |= {id(function) for function in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Any, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with this beginning that no attribute of the root has."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        number = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._qualname_counter[prefix] = number + 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """What is written down for an argument: for parameters, buffers and modules, where to find them."""
        if isinstance(a, torch.nn.Parameter):
            found = path_to(a, self.root.named_parameters())
            if found is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", found, (), {})
        if isinstance(a, (torch.Tensor, torch.nn.Module)):
            members = self.root.named_buffers() if isinstance(a, torch.Tensor) else self.root.named_modules()
            found = path_to(a, members)
            if found is not None:
                return self.create_node("get_attr", found, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple([self.create_arg(item) for item in a]), {})
        if isinstance(a, (torch.Tensor, pytree.TreeSpec)):
            name = self.tensor_attrs.get(a)
            if not name:  # a constant: the root keeps it
                tensor = isinstance(a, torch.Tensor)
                name = self.get_fresh_qualname("_tensor_constant" if tensor else "_tree_spec_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a call of a module is written down and not traced: so it is for those of torch.nn."""
        return m.__module__.startswith(("pullback.nn", "torch.nn")) and not isinstance(m, torch.nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """Where in the root a module is."""
        path = self.submodule_paths.get(mod) if self.submodule_paths else path_to(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What happens when a module is called: a leaf is written down, others run."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            leaf = self.is_leaf_module(m, path)
            result = self.create_proxy("call_module", path, args, kwargs) if leaf else forward(*args, **kwargs)
            last, _ = self.module_stack.popitem(last=True)
            if last != key:
                raise AssertionError(f"Unexpected key {last}, expected {key}")
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What an attribute of a module is while tracing: a stand-in for a parameter, otherwise itself."""
        if isinstance(attr_val, torch.nn.Parameter):
            members = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            members = self.root.named_buffers()
        else:
            return attr_val
        name = path_to(attr_val, members)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            kwargs: dict[str, Any] = {}
            if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                make = lambda node: ParameterProxy(self, node, name, attr_val)
                kwargs["proxy_factory_fn"] = make if self.param_shapes_constant else None
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **kwargs)
        return parameter_proxy_cache[name]

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Write down the arguments; the function to run and the stand-ins for them come back."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        signature = inspect.signature(analysed)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & HAS_VARSTUFF and total == 1:
            for i, concrete in enumerate(concrete_args):
                made = self.create_proxy("placeholder", f"input_{i}", (), {})
                if isinstance(concrete, PHBase) and concrete != PH:
                    _transfer_attrs(fr=concrete, to=made.node)
                args.append(made)
            return root_fn, args
        wanted = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(wanted) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(wanted)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(wanted, concrete_args, strict=True))
        args.extend([self._proxy_placeholder(name, concrete_args, signature, analysed) for name in wanted])
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            stars = [
                s for flag, s in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")) if code.co_flags & flag
            ]
            for star, name in zip(stars, names[total:], strict=False):
                args.append(self._proxy_placeholder(star + name, concrete_args, signature, analysed))
            root_fn = _patch_function(root_fn, len(args))
        flat_args, in_spec = pytree.tree_flatten(tuple(args))
        if all([child.is_leaf() for child in in_spec.children()]):
            return root_fn, args
        codegen = self.graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names[:total], in_spec, None))

        def flatten_fn(*args):  # type: ignore[no-untyped-def]  # its annotations would be those of the graph
            outs, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(args), in_spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return outs

        return flatten_fn, flat_args

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Run a module or a function with stand-ins for its arguments; the graph of what it did comes back.

        Args:
            root: a module or a function. Constants a function uses are kept by a module, `self.root`.
            concrete_args: arguments that are no stand-ins but values.
        """
        global _is_fx_tracing_flag
        was_tracing, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            is_module = isinstance(root, torch.nn.Module)
            self.root = root if is_module else torch.nn.Module()
            fn = root
            if is_module:
                if not hasattr(type(root), self.traced_func_name):
                    raise AssertionError(
                        f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}"
                    )
                fn = getattr(type(root), self.traced_func_name)
                self.root_module_name = root._get_name()
                self.submodule_paths = {module: name for name, module in root.named_modules()}
            self.graph = Graph(tracer_cls=type(self))
            if hasattr(fn, "__code__"):
                names = ("co_name", "co_filename", "co_firstlineno")
                self.graph._co_fields = {name: getattr(fn.__code__, name) for name in names}
            self.tensor_attrs: dict[Any, str] = dict(constants(self.root, ""))
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            fn_globals = fn.__globals__
            fn, args = self.create_args_for_root(fn, is_module, concrete_args)
            self.run(fn, args, fn_globals)
            self.submodule_paths = None
        finally:
            _is_fx_tracing_flag = was_tracing
        return self.graph

    def run(self, fn: Any, args: list[Any], fn_globals: dict[str, Any]) -> None:
        """Run the function with stand-ins, and write down what it returns."""
        module_getattr = inspect.unwrap(torch.nn.Module.__getattr__)  # not those of a trace around this one
        module_call = inspect.unwrap(torch.nn.Module.__call__)
        cache: dict[str, Any] = {}
        thread = get_ident()

        @functools.wraps(module_getattr)
        def getattr_wrapper(mod: Any, attr: str) -> Any:
            found = module_getattr(mod, attr)
            return self.getattr(attr, found, cache) if get_ident() == thread else found

        @functools.wraps(module_call)
        def call_wrapper(mod: Any, *args: Any, **kwargs: Any) -> Any:
            if get_ident() != thread:
                return module_call(mod, *args, **kwargs)

            def forward(*args: Any, **kwargs: Any) -> Any:
                return module_call(mod, *args, **kwargs)

            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        with one_at_a_time, CallsAsWritten(), _new_patcher() as patcher:
            patcher.patch_method(torch.nn.Module, "__getattr__", getattr_wrapper, deduplicate=False)
            patcher.patch_method(torch.nn.Module, "__call__", call_wrapper, deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            returns = annotations_of(inspect.unwrap(fn)).get("return")
            self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=returns)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        new = Tracer.__new__(Tracer)
        for key, value in self.__dict__.items():
            new.__dict__[key] = copy.copy(value) if key == "_autowrap_search" else copy.deepcopy(value, memo)
        return new

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn_for_analysis: Any) -> Any:
        """A stand-in for an argument; for a concrete one its value, and a check that it is the one given later."""
        default: tuple[Any, ...] = ()
        if name[0] != "*" and sig.parameters[name].default is not inspect.Parameter.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            kind = annotations_of(fn_for_analysis).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        numbers = iter(range(1, sys.maxsize))
        text = f"{name} has been specialized to have value {{}} but got another value"

        def replaced(x: Any) -> Any:
            out = self.create_proxy("placeholder", f"{name}_{next(numbers)}", default, {})
            if isinstance(x, PHBase):
                if x != PH:
                    _transfer_attrs(fr=x, to=out.node)
                return out
            if type(x) in base_types and type(x) is not torch.Tensor:
                self.create_proxy("call_function", torch._assert, (out == x, text.format(x)), {})
            elif x is None:
                self.create_proxy("call_function", _assert_is_none, (out, text.format(None)), {})
            else:
                warnings.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is "
                    "up to the user to make sure that your inputs match the inputs you specialized the function with.",
                    stacklevel=2,
                )
            return x

        return pytree.tree_map(replaced, concrete_args[name])


def annotations_of(function: Any) -> dict[str, Any]:
    """The types a program gives parameters; those of our own modules say less than torch's, and are not shown."""
    return {} if (function.__module__ or "").startswith("pullback.") else inspect.get_annotations(function)


def path_to(wanted: Any, members: Iterable[tuple[str, Any]]) -> str | None:
    """The name of something among named things; None if it is not there."""
    return next((name for name, member in members if member is wanted), None)


def constants(module: Any, prefix: str) -> Iterable[tuple[Any, str]]:
    """The tensors that are plain attributes of a module and of those below it, and where they are."""
    for name, value in vars(module).items():
        if isinstance(value, (torch.Tensor, pytree.TreeSpec)):
            yield value, f"{prefix}{name}"
    for name, child in module.named_children():
        yield from constants(child, f"{prefix}{name}.")


def wrap(fn_or_name: Any) -> Any:
    """Let calls of a function of this module be written down, not traced; call it at the top level of the module.

    It takes the function or its name, and can be used as a decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """A `GraphModule` of what a module or a function does, found by running it with stand-ins for its arguments.

    Args:
        root: the module or function.
        concrete_args: arguments with fixed values, so that the program may look at them; in trees of arguments
            `fx.PH` stands for leaves that stay arguments.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


@wrap
def _assert_is_none(value: Any, msg: str) -> None:
    """Raise if a value is not None."""
    if value is not None:
        raise AssertionError(msg)
