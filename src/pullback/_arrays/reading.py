"""Code read for arrays of another kind: the same functions, whose names stand for something else there.

    reading = Reading(("pullback.ops", "pullback.kernels.numpy"), read)
    reading.recoded(function)           # the same code

`read(value)` says what a value of the code stands for; names are read when they are first asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

FEW = "FEW_"
"""How the thresholds begin below which kernels look at elements one by one: of other arrays none are few."""


class Globals(dict[str, Any]):
    """The globals of a module, each read when it is first asked for."""

    def __init__(self, names: dict[str, Any], read: Callable[[Any], Any]) -> None:
        super().__init__({"__name__": names["__name__"], "__builtins__": __builtins__})
        self.names, self.read = names, read

    def __missing__(self, name: str) -> Any:
        value = self[name] = 0 if name.startswith(FEW) else self.read(self.names[name])
        return value


class Module:
    """A module of kernels, its functions read when they are asked for."""

    def __init__(self, module: ModuleType, read: Callable[[Any], Any]) -> None:
        self.__dict__.update(module=module, read=read)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__[name] = self.read(getattr(self.module, name))
        return found


class Reading:
    """Some modules, read for another kind of arrays."""

    def __init__(self, modules: tuple[str, ...], read: Callable[[Any], Any]) -> None:
        self.modules, self.read = modules, read
        self.spaces: dict[str, Globals] = {}

    def globals_of(self, module: str) -> Globals:
        """The globals of a module in this reading."""
        if module not in self.spaces:
            self.spaces[module] = Globals(vars(sys.modules[module]), self.read)
        return self.spaces[module]

    def recoded(self, function: FunctionType) -> FunctionType:
        """The same code, its names read."""
        home = function.__globals__.get("__name__", function.__module__)
        names = self.globals_of(home) if home.startswith(self.modules) else function.__globals__
        values, named, cells = function.__defaults__, function.__kwdefaults__, function.__closure__
        defaults = None if values is None else tuple([self.read(value) for value in values])
        closure = None if cells is None else tuple([self.cell(c) for c in cells])
        out = FunctionType(function.__code__, names, function.__name__, defaults, closure)
        out.__kwdefaults__ = None if named is None else {name: self.read(value) for name, value in named.items()}
        return out

    def cell(self, c: CellType) -> CellType:
        """A cell whose contents are read."""
        if not is_filled(c):
            return c
        content = c.cell_contents
        return CellType(self.read(content)) if callable(content) or type(content) in (ModuleType, tuple) else c


def is_filled(c: CellType) -> bool:
    """True for a cell that has contents."""
    try:
        return c.cell_contents is not c
    except ValueError:
        return False
