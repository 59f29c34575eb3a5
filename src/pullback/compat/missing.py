"""Stand-ins for what torch has and pullback has not: they can be imported, and say what they are when used."""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any, NoReturn


@cache
def torch_names() -> dict[str, frozenset[str]]:
    """The public names of those modules of torch 2.13 where a missing name must be told from a wrong one."""
    lines = files("pullback.compat").joinpath("names.txt").read_text().splitlines()
    return {module: frozenset(names.split()) for module, _, names in (line.partition(": ") for line in lines)}


def no(*args: Any, **kwargs: Any) -> bool:
    """False."""
    return False


QUESTIONS = {"is_available", "is_initialized", "is_built", "is_in_onnx_export", "is_torchelastic_launched"}
"""What programs ask of a part of torch before they use it: of a part that is missing, the truthful answer is no."""


class Missing:
    """A name of torch that does not exist here. Calling it, or deriving from it, raises; asking for it does not."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def refuse(self) -> NoReturn:
        """Say what is missing."""
        raise NotImplementedError(f"{self.__dict__['name']} is not available in pullback")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        self.refuse()

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __subclasscheck__(self, subclass: Any) -> bool:
        return False

    def __getitem__(self, parameters: Any) -> Missing:
        return self  # an annotation such as Future[Tensor]

    def __or__(self, other: Any) -> Missing:
        return self  # an annotation such as Future | None

    __ror__ = __or__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return no if name in QUESTIONS else Missing(f"{self.__dict__['name']}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.refuse()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self.__dict__['name']}, not available in pullback>"


ABSENT: Any = object()
"""Stands for what is not there."""


class TorchModule(ModuleType):
    """A module under torch's name: what pullback has is found in its module, what it has not is a stand-in."""

    def __init__(self, name: str, target: Any, modules: dict[str, ModuleType], elsewhere: Container[str]) -> None:
        super().__init__(name, None if target is None else target.__doc__)
        self.__dict__.update(_target=target, _modules=modules, _elsewhere=elsewhere, _covered={}, __path__=[])

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        ours = self._target.__dict__.get(name) if self._target is not None else None
        if isinstance(ours, ModuleType) and callable(ours):
            return ours  # a function and a module at once: autograd.gradcheck
        if full in self._modules:
            return self._modules[full]
        if full in self._elsewhere:
            return import_module(full)
        target = self._target
        if target is not None:
            try:
                value = getattr(target, name)
            except AttributeError:
                pass  # not ours: a stand-in, if torch has it
            else:
                if isinstance(value, ModuleType) and not callable(value) and value.__name__.startswith("pullback"):
                    return import_module(full)  # ours under torch's name, so that what it lacks is a stand-in too
                if callable(value):
                    self.__dict__[name] = value  # found at once from now on
                return value
        if name == "__all__":  # what `from torch.nn import *` takes: the names both have
            both = torch_names().get(self.__name__, frozenset(dir(target)))
            return [n for n in dir(target) if n in both and not n.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if target is None and name in QUESTIONS:
            return no
        known = torch_names().get(self.__name__)
        if known is not None and name not in known:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return Missing(full)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._modules.get(f"{self.__name__}.{name}") is value:
            return  # the importer hangs a module on its parent; __getattr__ finds it
        if self._target is None or name.startswith("__"):
            super().__setattr__(name, value)
            return
        ours = getattr(self._target, name, ABSENT)
        setattr(self._target, name, value)
        if isinstance(self._target, ModuleType):  # what stands for a module may answer anew each time
            self.__dict__[name] = value
        if self._covered.setdefault(name, ours) is value:
            del self._covered[name]

    def __delattr__(self, name: str) -> None:
        """What a program has put in the place of ours goes, and ours is back: so `mock.patch` undoes what it did."""
        known = self.__dict__.pop(name, ABSENT)
        ours = self._covered.pop(name, ABSENT)
        if ours is not ABSENT:
            setattr(self._target, name, ours)
        elif self._target is not None and name in vars(self._target):
            delattr(self._target, name)
        elif known is ABSENT:
            raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) | set(dir(self._target) if self._target is not None else ()))
