"""Names of parameters, buffers and submodules: which are allowed, and finding what they stand for."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from pullback import Tensor
from pullback.nn.modules.base.typename import typename


def check_name(module: Any, name: str, kind: str, table: str) -> None:
    """Torch's rules for the names of parameters and buffers."""
    if table not in module.__dict__:
        raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if name not in module.__dict__[table] and hasattr(module, name):
        raise KeyError(f"attribute '{name}' already exists")


def attribute(module: Any, name: str) -> Any:
    """An attribute on the way to a dotted name."""
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def remove_from(module: Any, name: str, *tables: str) -> None:
    """A name stands for one thing: take it out of the other tables."""
    own = module.__dict__
    own.pop(name, None)
    for table in tables:
        own[table].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def is_tensor_like(value: Any) -> bool:
    """True for tensors and what can stand for one."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def renamed(function: Any, qualname: str) -> Any:
    """The same function under another name, which Python uses in its errors about arguments."""
    out = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    out.__kwdefaults__, out.__annotations__ = function.__kwdefaults__, function.__annotations__
    out.__doc__, out.__module__, out.__qualname__ = function.__doc__, function.__module__, qualname
    return out


def indented(text: str) -> str:
    """All lines but the first moved to the right."""
    return text.replace("\n", "\n  ")
