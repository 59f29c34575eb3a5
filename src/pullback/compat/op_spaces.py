"""`torch.ops`: the spaces of ops compiled elsewhere. None can be loaded here; `torch.ops.aten` has torch's own."""

from __future__ import annotations

from typing import Any, NoReturn

import pullback
from pullback.compat.standin import refuse
from pullback.nn import functional

loaded_libraries: set[str] = set()


def load_library(path: str) -> NoReturn:
    """Refuse, as a file that cannot be loaded does: programs catch that and do without."""
    raise OSError(f"{path}: compiled for torch's C++ interface, which pullback has not; it runs on NumPy")


class Op:
    """An op under its name in torch's library, `torch.ops.aten.relu`, or one of its forms, `aten.relu.default`.

    There is one object of each, so that tables have them as keys; calling one calls the function of that name.
    """

    def __init__(self, name: str, function: str) -> None:
        self._name = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = getattr(pullback, self._function, None)
        found = getattr(functional, self._function, None) if found is None else found
        if found is None:
            refuse(f"torch.ops.{self._name}")
        return found(*args, **kwargs)

    def __getattr__(self, name: str) -> Op:
        if name.startswith("__"):
            raise AttributeError(name)
        form = self.__dict__[name] = Op(f"{self._name}.{name}", self._function)
        return form

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._name}')>"


class OpSpace:
    """The ops of one library: `torch.ops.aten.relu(x)`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Op:
        if self._name != "aten" or name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        op = self.__dict__[name] = Op(f"aten.{name}", name)
        return op

    def __repr__(self) -> str:
        return f"<torch.ops.{self._name}>"


def __getattr__(name: str) -> OpSpace:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    globals()[name] = space = OpSpace(name)
    return space
