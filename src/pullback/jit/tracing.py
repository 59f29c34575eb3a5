"""`torch.jit.trace`: a function or module and an example of its arguments. What runs is its Python code.

The program is run once with the example, as torch does to write it down. A branch that depends on a value is taken
anew at every call here, where torch repeats the one that it saw.
"""

from __future__ import annotations

import builtins
from typing import Any

import pullback
from pullback import nn
from pullback.jit.marks import tracing
from pullback.jit.scripting import RecursiveScriptModule, ScriptFunction, ScriptModule, deprecated


class TracerWarning(Warning):
    """What the tracer of torch warns of."""


class TracingCheckError(Exception):
    """What the tracer of torch raises where two runs differ."""


class TracedModule(RecursiveScriptModule):
    """A module made by `trace`."""

    def _get_name(self) -> str:
        return type(self._original).__name__

    @classmethod
    def child_kind(cls) -> Any:
        """The modules inside are not at the top."""
        return TracedModule


class TopLevelTracedModule(TracedModule):
    """The module that was traced."""


def while_tracing(call: Any) -> Any:
    """The function, which finds `torch.jit.is_tracing()` true as it did when it was traced."""

    def run(*args: Any, **kwargs: Any) -> Any:
        before = tracing.get()
        try:
            tracing.set(True)
            return call(*args, **kwargs)
        finally:
            tracing.set(before)

    return run


def as_arguments(example: Any) -> tuple[Any, ...]:
    """Example arguments as a tuple; one tensor or dict is one argument."""
    return (example,) if builtins.isinstance(example, (pullback.Tensor, dict)) else tuple(example)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """A function or module that was run with an example of its arguments; its Python code runs at every call."""
    deprecated("trace")
    if builtins.isinstance(func, (ScriptModule, ScriptFunction)):
        return func
    named = builtins.isinstance(example_kwarg_inputs, dict)
    args = () if named else as_arguments(example_inputs)
    run = while_tracing(func)
    run(*args, **(example_kwarg_inputs or {}))
    if builtins.isinstance(func, nn.Module):
        return TopLevelTracedModule(func, call=run)
    return ScriptFunction(func, run)


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module whose methods were run with examples of their arguments; its Python code runs at every call."""
    deprecated("trace_method")
    if not builtins.isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not builtins.isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        while_tracing(method)(*as_arguments(example))
    return TopLevelTracedModule(mod, call=while_tracing(mod))
