"""The two readings of a formula.

A formula's names are looked up in its globals. In the *tensor reading* those are its module's: an op's name means
the op. In the *array reading* the same code runs with globals in which an op's name means its array kernel, and
functions of the ops packages, and of other modules that declare ops, are read the same way. So one formula serves plain
backward (on raw arrays, building nothing) and `create_graph=True` (on tensors, differentiable).
"""

from __future__ import annotations

import builtins
import sys
from types import FunctionType
from typing import Any

from pullback._dtype import defaults
from pullback._op.declare import Op, declaring
from pullback._op.patch import unpatched
from pullback._runtime.building import made

namespaces: dict[str, dict[str, Any]] = {}
complete: dict[str, dict[str, Any]] = {}
"""Those of which all names have been read."""


def array_namespace(module: str) -> dict[str, Any]:
    """The globals of a module in the array reading."""
    return complete.get(module) or made(lambda: completed(module))


def completed(module: str) -> dict[str, Any]:
    """The same, where a second thread must not see names that are still being read."""
    outermost = len(namespaces) == len(complete)
    found = filled(module)
    if outermost:
        complete.update(namespaces)
    return found


def filled(module: str) -> dict[str, Any]:
    """The same, for one thread at a time; modules that name each other are filled together."""
    if module in namespaces:
        return namespaces[module]
    if not module.startswith("pullback.ops"):
        return namespaces.setdefault(module, Foreign(module))
    namespace = namespaces[module] = {}
    for name, value in list(vars(sys.modules[module]).items()):
        namespace[name] = array_reading(value)
    return namespace


class Foreign(dict[str, Any]):
    """The same for a module of somebody else that declares ops: its names are read when they are asked for, since it
    may still be running."""

    def __init__(self, module: str) -> None:
        super().__init__(__builtins__=builtins, __name__=module)
        self.names = vars(sys.modules[module])

    def __missing__(self, name: str) -> Any:
        return array_reading(self.names[name])


def is_read(function: Any) -> bool:
    """Whether a function has two readings."""
    return function.__module__.startswith("pullback.ops") or function.__module__ in declaring


def array_reading(value: Any) -> Any:
    """What a name stands for in the array reading: kernels for ops, re-read functions, everything else as it is."""
    if type(value) is not FunctionType:
        return value
    declared = getattr(value, "op", None)
    if declared is not None:
        if type(declared) is not Op:
            return reread(declared.body)
        return on_floats(declared, forward_of(declared)) if declared.floats else forward_of(declared)
    return reread(value)


def reread(function: Any) -> Any:
    """The same code with its names read as arrays."""
    if not is_read(function):
        return function
    function = unpatched(function)
    out = FunctionType(
        function.__code__,
        array_namespace(function.__module__),
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    out.__kwdefaults__ = function.__kwdefaults__
    return out


def forward_of(op: Op) -> Any:
    """The array kernel of an op, itself in the array reading."""
    if op.forward is None:
        op.forward = reread(op.declared) if op.of_complex is None else by_kind(reread(op.declared), op.of_complex)
    return op.forward


def by_kind(forward: Any, of_complex: Any) -> Any:
    """One function for complex numbers and another for all others."""

    def kernel(first: Any, *args: Any, **kwargs: Any) -> Any:
        return (of_complex if first.dtype.kind == "c" else forward)(first, *args, **kwargs)

    return kernel


def on_floats(op: Op, forward: Any) -> Any:
    """The array kernel of an op that counts integers as the default dtype, where NumPy would choose another.

    Beside floating point numbers they have the dtype of those.
    """
    if len(op.promote) > 1:

        def promoted(first: Any, second: Any, *args: Any, **kwargs: Any) -> Any:
            one, other = (getattr(given, "dtype", defaults.numpy) for given in (first, second))
            if one.kind in "iub":
                one = defaults.numpy if other.kind in "iub" else other
                first = first.astype(one)
            if other.kind in "iub":
                second = second.astype(one)
            return forward(first, second, *args, **kwargs)

        return promoted

    def kernel(first: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(first, "dtype", defaults.numpy).kind in "iub":
            first = first.astype(defaults.numpy)
        return forward(first, *args, **kwargs)

    return kernel
