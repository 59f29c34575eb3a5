"""How the code of ops and kernels is read for arrays without elements: with other globals, as formulas are.

`np` then means the rules of _meta/rules.py, the name of an op its forward in this same reading, a function of the ops
and of the NumPy kernels itself with its names read in turn. So a forward that computes without looking at elements is
its own shape rule, and a kernel that looks has one declared beside it: see _arrays/kinds.py.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback._arrays.kinds import is_foreign, kinds
from pullback._arrays.reading import Globals, Module, Reading, is_filled
from pullback._meta import functions as functions  # whose rules are asked for by name
from pullback._meta import rules
from pullback._meta.array import MetaArray, NoValues
from pullback._op.declare import Op
from pullback._op.patch import unpatched
from pullback._op.readings import by_kind, on_floats
from pullback._runtime.messages import NO_META_VALUES
from pullback._tensor import wrap
from pullback.kernels import compiled
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import Chooser, Variants

READ = (
    *(
        "pullback._arrays.half",
        "pullback._arrays.memory",
        "pullback._op.apply",
        "pullback._arrays.sizes",
        "pullback.ops",
    ),
    *("pullback.kernels.complex_functions", "pullback.kernels.far_windows", "pullback.kernels.jit.pointwise.fused"),
    "pullback.kernels.numpy",
)
"""The modules whose functions are read anew; all others are run as they are."""


class Pointwise:
    """Stands for a function that becomes kernels: `Chooser`, `Kernels` and their kind. Nothing is compiled here."""

    def __init__(self, function: Any) -> None:
        self.function = self.head = self.large = self.fallback = self.computed = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def into(self, out: Any, *args: Any, **kwargs: Any) -> bool:
        """No kernel writes here."""
        return False


known: dict[Any, Any] = {}
"""What was read, so that the same function stays the same function."""


def read(value: Any) -> Any:
    """What a value of the code stands for where arrays have no elements."""
    if value is np:
        return rules.numpy
    kind = type(value)
    if kind is FunctionType:
        return read_once(value)
    if kind is np.ufunc:
        return getattr(rules.numpy, value.__name__)
    if kind is ModuleType:
        return Module(value, read) if value.__name__.startswith("pullback.") else value
    if isinstance(value, functools._lru_cache_wrapper):
        return read(value.__wrapped__)
    if isinstance(value, (Chooser, Kernels, Variants)):
        return Pointwise(read(value.function))
    if kind is compiled.OnFirstUse:
        return Pointwise(read(value.otherwise))
    if kind is BuiltinFunctionType or (module_of(value).startswith("numpy") and not isinstance(value, type)):
        name = getattr(value, "__name__", "")
        return rules.RULES[name] if module_of(value).startswith("numpy") and name in rules.RULES else value
    if kind is dict and value and all([type(v) is compiled.OnFirstUse for v in value.values()]):
        return {key: read(v) for key, v in value.items()}
    if kind is functools.partial:
        return functools.partial(read(value.func), *[read(a) for a in value.args], **value.keywords)
    if kind is tuple and any([callable(v) for v in value]):
        return tuple([read(v) for v in value])
    if value is np.ndarray:
        return rules.numpy.ndarray
    return value


reading = Reading(READ, read)


def module_of(value: Any) -> str:
    """The module a function says it is from."""
    return getattr(value, "__module__", None) or ""


def read_once(function: FunctionType) -> Any:
    """A function in this reading."""
    found = known.get(function)
    if found is None:
        found = known[function] = reread(function)
    return found


def reread(function: FunctionType) -> Any:
    """The same, read now."""
    answers = getattr(function, "answers", None)
    if answers is not None and "meta" in answers:
        return read(answers["meta"])
    declared = getattr(function, "op", None)
    if declared is not None:
        return forward_of(declared) if type(declared) is Op else recoded(declared.body)
    module = module_of(function)
    if module.startswith("numpy"):
        return rules.RULES.get(function.__name__, function)
    return recoded(function) if module.startswith(READ) or closes_over_code(function) else function


def recoded(function: FunctionType) -> FunctionType:
    """The same code, its names read."""
    return reading.recoded(unpatched(function))


def closes_over_code(function: FunctionType) -> bool:
    """True for a wrapper made elsewhere around a function of ops or kernels."""
    return any(
        type(content) is FunctionType and module_of(content).startswith(READ)
        for content in [c.cell_contents for c in function.__closure__ or () if is_filled(c)]
    )


def forward_of(op: Op) -> Any:
    """The forward of an op in this reading."""
    forward = read(op.declared)
    if op.of_complex is not None:
        forward = by_kind(forward, read(op.of_complex))
    return on_floats(op, forward) if op.floats else forward


def no_room(name: str) -> None:
    """Nothing is compiled for arrays without elements."""
    return None


known[compiled.room.__wrapped__] = no_room


def check(op: Op, positional: list[Any], keywords: dict[str, Any]) -> None:
    """Run an op's check of shapes and dtypes; what it asks of elements cannot be asked."""
    with suppress(NoValues):
        read(op.check)(*positional, **keywords)


def computed(op: Op, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """What an op makes of arrays without elements."""
    try:
        if op.check is not None:
            check(op, positional, keywords)
        made = forward_of(op)(*positional, **keywords)
    except NoValues as error:
        if any([type(a) is np.ndarray and a.ndim for a in (*positional, *keywords.values())]):
            raise RuntimeError("Tensor on device meta is not on the expected device cpu!") from None
        raise NotImplementedError(
            f"{op.name}: the result depends on the elements, which a tensor on the meta device does not have; compute "
            "it on the cpu"
        ) from error
    return [None if out is None else without_elements(out) for out in made] if op.multiple else without_elements(made)


class Generated(Globals):
    """The globals of a generated function."""

    def __missing__(self, name: str) -> Any:
        # The formulas of half precision are rounded in their own way; their shapes are those of all others.
        value = self[name] = read(self.names[name.replace("halves", "array", 1)])
        return value


def stepped(node: Any, grad: Any) -> Any:
    """One step of a backward pass: the generated one, on arrays without elements."""
    step = known.get(type(node))
    if step is None:
        made = type(node).backward
        step = known[type(node)] = FunctionType(made.__code__, Generated(made.__globals__, read), made.__name__)
    given = [None if g is None else g._array for g in grad] if type(grad) in (list, tuple) else grad._array
    try:
        outs = step(node, given)
    except NoValues as error:
        raise NotImplementedError(
            f"the derivative of {node.op.name} depends on elements, which a tensor on the meta device does not have; "
            "compute it on the cpu"
        ) from error
    return tuple([None if out is None else wrap(without_elements(out)) for out in outs])


def without_elements(made: Any, place: Any = None) -> MetaArray:
    """A result as an array without elements, whatever a forward made it of."""
    if type(made) is MetaArray:
        return made
    made = np.asarray(made)
    return MetaArray(made.shape, made.dtype, made.strides)


def check_devices(op: Op, named: list[tuple[str, Any]]) -> None:
    """Raise for operands on different devices; one without dimensions may be the host's."""
    arrays = [a for _, a in named]
    on_host = [not is_foreign(a) for a in arrays]
    if not any(on_host):
        return
    first = next((i for i, a in enumerate(arrays) if a.ndim), None)
    if not op.promote:
        if on_host[0]:
            raise NotImplementedError(NO_META_VALUES)
        return
    if first is None:
        return
    for a, host in zip(arrays, on_host, strict=True):
        if host != on_host[first] and (a.ndim or on_host[first]):
            here, there = ("cpu", "meta") if host else ("meta", "cpu")
            raise RuntimeError(f"Tensor on device {here} is not on the expected device {there}!")


MetaArray.check_devices = staticmethod(check_devices)  # type: ignore[method-assign]
MetaArray.adopted = staticmethod(without_elements)  # type: ignore[method-assign]
MetaArray.read = staticmethod(read)  # type: ignore[method-assign]
MetaArray.stepped = staticmethod(stepped)  # type: ignore[method-assign]
MetaArray.computed = staticmethod(computed)  # type: ignore[attr-defined]
kinds["meta"] = MetaArray
