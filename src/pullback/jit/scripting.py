"""`torch.jit.script`: functions and modules in TorchScript's dress. What runs is their Python code.

`code` is that code, and `graph` says that there is none. What only a compiler could give raises NotImplementedError
with its name.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import textwrap
import warnings
from typing import Any, NoReturn

from pullback import nn
from pullback.jit.marks import is_tracing

NOTE = "# pullback runs this Python code: there is no TorchScript compiler.\n"


class Error(RuntimeError):
    """What TorchScript raises."""


class ScriptWarning(Warning):
    """What TorchScript warns of."""


USE_COMPILE = "Please use `torch.compile` instead."


def deprecated(name: str, instead: str = "Please switch to `torch.compile` or `torch.export`.") -> None:
    """Warn as torch does."""
    warnings.warn(f"`torch.jit.{name}` is deprecated. {instead}", DeprecationWarning, stacklevel=3)


def refuse(name: str, instead: str) -> NoReturn:
    """Say what is missing."""
    raise NotImplementedError(f"{name} is not available in pullback, which has no TorchScript compiler; {instead}")


def source(function: Any) -> str:
    """The Python code of a function, and a line that says so."""
    try:
        return NOTE + textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):
        return NOTE + f"# The source of {getattr(function, '__qualname__', function)!r} cannot be found.\n"


class NoGraph:
    """Stands where TorchScript has a graph."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"# no graph: pullback runs the Python code of {self._name}"

    __repr__ = __str__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"the TorchScript graph of {self._name} ({name})", "use pullback.fx.symbolic_trace for a graph")


class Scripted:
    """What scripted functions and modules have in common."""

    @property
    def graph(self) -> NoGraph:
        """Says that there is no graph."""
        return NoGraph(self._script_name)  # type: ignore[attr-defined]

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The Python code that runs."""
        return source(self._script_function)  # type: ignore[attr-defined]

    @property
    def code_with_constants(self) -> tuple[str, dict[str, Any]]:
        """The Python code that runs, and no constants."""
        return self.code, {}

    def graph_for(self, *args: Any, **kwargs: Any) -> NoGraph:
        """Says that there is no graph."""
        return self.graph


class ScriptFunction(Scripted):
    """A function made by `script` or `trace`; its Python code runs."""

    def __init__(self, function: Any, call: Any = None) -> None:
        functools.update_wrapper(self, function)
        self._script_function, self._call = function, call or function
        self.name = self._script_name = getattr(function, "__name__", type(function).__name__)
        module = getattr(function, "__module__", "__main__")
        self.qualified_name = f"__torch__.{self.name}" if module == "__main__" else f"__torch__.{module}.{self.name}"
        self._torchdynamo_inline = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method it gets its object, as any function does."""
        return self if instance is None else functools.partial(self, instance)

    @property
    def schema(self) -> Any:
        """Not available: types are not inferred."""
        refuse(f"the schema of {self.name}", "use inspect.signature")

    def save(self, f: Any, **kwargs: Any) -> None:
        """Not available: a file would need TorchScript's code."""
        refuse("ScriptFunction.save", "keep the Python function in a module and import it")

    def __reduce__(self) -> Any:
        raise RuntimeError("ScriptFunction cannot be pickled")


class ScriptModule(Scripted, nn.Module):
    """The base of modules written for TorchScript; they are Python modules here."""

    @property
    def _script_function(self) -> Any:
        return type(self).forward

    @property
    def _script_name(self) -> str:
        return self.original_name

    @property
    def original_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write the module to a file that `torch.jit.load` of pullback reads."""
        save_module(self, f, **kwargs)


def save_module(module: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Write a module to a file. Attached by saving.py, which can load it too."""
    raise NotImplementedError("import pullback.jit.saving first")


OWN = {"_original", "_modules", "_call", "training", "_has_hooks"}
"""What a scripted module has for itself; all else is that of the Python module."""


class RecursiveScriptModule(ScriptModule):
    """A module made by `script` or `trace`: it shares everything with the Python module, whose code runs."""

    def __init__(self, original: Any, memo: dict[int, Any] | None = None, call: Any = None) -> None:
        memo = {} if memo is None else memo
        super().__init__()
        memo[id(original)] = self
        self.__dict__["_original"], self.__dict__["_call"] = original, call or original
        for name in ("_parameters", "_buffers", "_non_persistent_buffers_set"):
            self.__dict__[name] = original.__dict__[name]
        for name, child in original._modules.items():
            known = memo.get(id(child)) if child is not None else None
            wrap = known is None and child is not None and not builtins.isinstance(child, ScriptModule)
            self._modules[name] = self.child_kind()(child, memo) if wrap else child if known is None else known
        del self.__dict__["training"]

    @classmethod
    def child_kind(cls) -> Any:
        """The class of the modules inside."""
        return cls

    @property
    def training(self) -> bool:  # type: ignore[override]
        """Whether the Python module is in training mode."""
        return bool(self._original.training)

    @training.setter
    def training(self, mode: bool) -> None:
        self._original.training = mode

    @property
    def original_name(self) -> str:
        """The name of the Python module's class."""
        return type(self._original).__name__

    @property
    def _script_function(self) -> Any:
        return type(self._original).forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the Python module gives."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in OWN:
                raise
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name in OWN or not hasattr(self.__dict__.get("_original"), name):
            super().__setattr__(name, value)
        else:
            setattr(self._original, name, value)

    def extra_repr(self) -> str:
        """The name of the Python module's class."""
        return f"original_name={self.original_name}"

    def __len__(self) -> int:
        return len(self._original)

    def __iter__(self) -> Any:
        return iter(self._original)

    def __getitem__(self, index: Any) -> Any:
        return self._original[index]

    def __contains__(self, item: Any) -> bool:
        return item in self._original

    def __bool__(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return type(self)(copy.deepcopy(self._original, memo))

    def __reduce__(self) -> Any:
        raise RuntimeError(
            "ScriptModules cannot be deepcopied using copy.deepcopy or saved using torch.save. Mixed serialization of "
            "script and non-script modules is not supported. For purely script modules use my_script_module.save("
            "<filename>) instead."
        )


class RecursiveScriptClass:
    """Not available: classes are Python's own."""

    def __init__(self, *args: Any) -> None:
        refuse("torch.jit.RecursiveScriptClass", "use the class itself")


class CompilationUnit:
    """Not available: it compiles TorchScript from text."""

    def __init__(self, lang: Any = None, _frames_up: int = 0) -> None:
        refuse("torch.jit.CompilationUnit", "write the functions in Python")


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """A function or module in TorchScript's dress; what runs is its Python code. A class comes back as it is."""
    deprecated("script")
    if builtins.isinstance(obj, (ScriptModule, ScriptFunction)):
        return obj
    if builtins.isinstance(obj, nn.Module):
        return RecursiveScriptModule(obj)
    if builtins.isinstance(obj, type):
        if issubclass(obj, nn.Module):
            kind = f"<class 'torch{obj.__module__.removeprefix('pullback')}.{obj.__qualname__}'>"
            kind = kind if obj.__module__.startswith("pullback.") else str(obj)
            raise RuntimeError(
                f"Type '{kind}' cannot be compiled since it inherits from nn.Module, pass an instance instead"
            )
        return obj
    if not callable(obj):
        if type(obj).__module__ == "builtins":
            raise TypeError(f"{type(obj)} is a built-in class")
        return obj
    if inspect.ismethod(obj):
        return obj
    return ScriptFunction(obj)


def script_method(fn: Any) -> Any:
    """The method itself: Python runs it."""
    return fn


def script_if_tracing(fn: Any) -> Any:
    """A function that is scripted when it is called while tracing; its Python code runs in any case."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return ScriptFunction(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


_script_if_tracing = script_if_tracing
