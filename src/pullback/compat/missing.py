"""Modules under torch's name, and which names torch has: so that a missing name is told from a wrong one."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any

from pullback import dtype
from pullback.compat.dtypes import DTYPES
from pullback.compat.standin import QUESTIONS, no, stand_in


def lines(name: str) -> dict[str, frozenset[str]]:
    """A table of modules and names."""
    rows = files("pullback.compat").joinpath(name).read_text().splitlines()
    return {module: frozenset(names.split()) for module, _, names in (row.partition(": ") for row in rows)}


@cache
def torch_names() -> dict[str, frozenset[str]]:
    """The public names of those modules of torch 2.13 where a missing name must be told from a wrong one."""
    return lines("names.txt")


@cache
def torch_modules() -> dict[str, frozenset[str]]:
    """All modules of torch 2.13; with each its private names, and the functions that have the name of a module."""
    return lines("modules.txt")


def is_torchs(module: str, name: str) -> bool:
    """Whether torch has this name; where that is not recorded, it may."""
    known = torch_names().get(module)
    return known is None or name in known or name in torch_modules().get(module, ())


GATHERED = {
    "torch.amp",
    "torch.autograd",
    "torch.distributions",
    "torch.nn.modules",
    "torch.nn.parallel",
    "torch.nn.utils",
    "torch.optim",
    "torch.profiler",
    "torch.signal.windows",
    "torch.utils.data",
}
"""Packages of torch whose names are ours too, but in files of our own: `torch.optim.adam.Adam` is `optim.Adam`."""
ABSENT: Any = object()
"""Stands for what is not there."""


HELD: Any = vars(ModuleType)["__dict__"]


class TorchModule(ModuleType):
    """A module under torch's name: what pullback has is found in its module, what it has not is a stand-in."""

    __slots__ = ("_pullback_target", "_pullback_modules", "_pullback_elsewhere", "_pullback_covered", "_pullback_full")

    def __init__(self, name: str, target: Any, modules: dict[str, ModuleType], elsewhere: Container[str]) -> None:
        super().__init__(name, None if target is None else target.__doc__)
        self._pullback_target = target
        self._pullback_modules = modules
        self._pullback_elsewhere = elsewhere
        self._pullback_covered: dict[str, Any] = {}
        self._pullback_full = False
        own_dict(self)["__path__"] = []

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The names that are there, as `vars(torch.nn)` lists them: names are found one by one until then."""
        names = own_dict(self)
        if not self._pullback_full and self._pullback_target is not None:
            self._pullback_full = True
            target = self._pullback_target
            known = torch_names().get(self.__name__, frozenset())
            for name in sorted(known | {name for name in dir(target) if is_torchs(self.__name__, name)}):
                if name not in names and not name.startswith("__"):
                    value = getattr(self, name, ABSENT)
                    if lasting(value) and getattr(target, name, ABSENT) is not ABSENT:
                        names[name] = value
        return names

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        target, modules = self._pullback_target, self._pullback_modules
        ours = vars(target).get(name) if isinstance(target, ModuleType) else None
        if isinstance(ours, ModuleType) and callable(ours):
            return ours  # a function and a module at once: autograd.gradcheck
        if full in modules:
            return modules[full]
        if full in self._pullback_elsewhere:
            return import_module(full)
        if target is not None:
            try:
                value = getattr(target, name)
            except AttributeError:
                pass  # not ours: a stand-in, if torch has it
            else:
                if isinstance(value, ModuleType) and not callable(value) and value.__name__.startswith("pullback"):
                    return import_module(full)  # ours under torch's name, so that what it lacks is a stand-in too
                if callable(value):
                    own_dict(self)[name] = value  # found at once from now on
                return value
        if name == "__all__":  # what `from torch.nn import *` takes: the names both have
            both = torch_names().get(self.__name__, frozenset(dir(target)))
            return [n for n in dir(target) if n in both and not n.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if target is None:
            if name in QUESTIONS:
                return no
        parent = self.__name__.rpartition(".")[0]
        if parent in GATHERED and hasattr(gathered := modules[parent]._pullback_target, name):
            return getattr(gathered, name)
        if full in torch_modules() and name not in torch_modules()[self.__name__]:
            try:
                return import_module(full)
            except ModuleNotFoundError as error:  # torch.utils.tensorboard, where tensorboard is not installed
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from error
        if not is_torchs(self.__name__, name):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return DTYPES[name] if self.__name__ == "torch" and name in DTYPES else stand_in(full)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in TorchModule.__slots__:
            super().__setattr__(name, value)
            return
        if self._pullback_modules.get(f"{self.__name__}.{name}") is value:
            return  # the importer hangs a module on its parent; __getattr__ finds it
        target = self._pullback_target
        if target is None or name.startswith("__"):
            super().__setattr__(name, value)
            return
        ours = getattr(target, name, ABSENT)
        setattr(target, name, value)
        if isinstance(target, ModuleType):  # what stands for a module may answer anew each time
            own_dict(self)[name] = value
        if self._pullback_covered.setdefault(name, ours) is value:
            del self._pullback_covered[name]

    def __delattr__(self, name: str) -> None:
        """What a program has put in the place of ours goes, and ours is back: so `mock.patch` undoes what it did."""
        known = own_dict(self).pop(name, ABSENT)
        ours, target = self._pullback_covered.pop(name, ABSENT), self._pullback_target
        if ours is not ABSENT:
            setattr(target, name, ours)
        elif target is not None and name in vars(target):
            delattr(target, name)
        elif known is ABSENT:
            raise AttributeError(name)

    def __dir__(self) -> list[str]:
        target = self._pullback_target
        return sorted(set(own_dict(self)) | set(dir(target) if target is not None else ()))


def lasting(value: Any) -> bool:
    """Whether a value of a module stays what it is, so that it can be kept: flags and counters may change."""
    return callable(value) or isinstance(value, (ModuleType, dtype, str, tuple, dict, list, set, frozenset))


def own_dict(module: ModuleType) -> dict[str, Any]:
    """The names a module holds itself."""
    names: dict[str, Any] = HELD.__get__(module)
    return names
