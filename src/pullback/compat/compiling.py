"""`torch.compile` and the names around it, which change nothing: the program runs as it is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pullback.overrides import handle_torch_function, has_torch_function


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """The model itself; as a decorator with arguments, a decorator that gives the function itself."""
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    return (lambda function: function) if model is None else model


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself, or a decorator that gives it: nothing is compiled anyway."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """The function itself."""
    return fn


def reset() -> None:
    """Nothing compiled is kept."""


def is_compiling() -> bool:
    """False: functions run as they are."""
    return False


def _assert(condition: Any, message: str) -> None:
    """An assert that compilers and tracers see: `torch._assert`."""
    if has_torch_function((condition,)):
        handle_torch_function(_assert, (condition,), condition, message)
        return
    assert condition, message


is_dynamo_compiling = is_exporting = is_compiling
config = SimpleNamespace()
"""Settings of a compiler: they can be set, and change nothing."""
