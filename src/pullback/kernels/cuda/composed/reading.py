"""How forwards are read for arrays of the device: with other globals, as formulas are.

`np` then makes its arrays on the device, the name of an op means what computes the op there, a function that becomes
kernels of the host becomes one of the device, compiled kernels of the host are not there, and a function of the ops and
of the NumPy kernels is itself with its names read in turn.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from pullback._arrays.reading import Module, Reading
from pullback._op.declare import Op
from pullback._op.patch import unpatched
from pullback.kernels import compiled
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.carry import NoKernel, upload
from pullback.kernels.cuda.composed.contraction import contracted
from pullback.kernels.cuda.composed.words import inside
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.native import ramp
from pullback.kernels.cuda.pointwise import pointwise
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small.choose import Chooser, Variants
from pullback.kernels.numpy.index.subscript import is_inside

READ = ("pullback._arrays.half", "pullback._arrays.sizes", "pullback.ops", "pullback.kernels.numpy",
        "pullback.kernels.complex_functions")  # fmt: skip
"""The modules whose functions are read anew; all others are run as they are."""


class Where(threading.local):
    """The device on which an attempt makes its arrays."""

    place: Any = None


where = Where()


# ------------------------------------------------------------------ NumPy


class There:
    """NumPy, whose new arrays are on the device."""

    def __getattr__(self, name: str) -> Any:
        return MAKERS.get(name) or getattr(np, name)


def shaped(shape: Any) -> Any:
    """A shape as a tuple."""
    return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])


def new(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    """np.empty"""
    if order != "C":
        raise NoKernel("np.empty in another order")
    return empty(shaped(shape), np.dtype(dtype), None, where.place)


def constant(value: int) -> Any:
    """np.zeros and np.ones"""

    def make(shape: Any, dtype: Any = float, order: str = "C") -> Any:
        if order != "C":
            raise NoKernel("np.zeros in another order")
        return filled(shaped(shape), np.dtype(dtype), value, where.place)

    return make


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """np.full"""
    kind = np.dtype(dtype) if dtype is not None else getattr(fill_value, "dtype", np.asarray(0).dtype)
    if dtype is None and not hasattr(fill_value, "dtype"):
        kind = np.asarray(fill_value).dtype
    out = empty(shaped(shape), kind, None, where.place)
    out[...] = fill_value
    return out


def arange(*args: Any, dtype: Any = None) -> Any:
    """np.arange"""
    if len(args) == 1 and type(args[0]) is int and args[0] >= 0 and dtype in (None, np.int64):
        return ramp(args[0], where.place)
    return upload(np.arange(*args, dtype=dtype), where.place)


def asarray(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """np.asarray"""
    if type(a) is not DeviceArray:
        return np.asarray(a, dtype, order)
    kind = a.dtype if dtype is None else np.dtype(dtype)
    return a.astype(kind, order if order in ("C", "F") else "K", copy=False)


def array(a: Any, dtype: Any = None, *, copy: bool = True, order: str = "K", ndmin: int = 0) -> Any:
    """np.array"""
    if type(a) is not DeviceArray:
        return np.array(a, dtype, copy=copy, order=order, ndmin=ndmin)  # type: ignore[call-overload]
    if ndmin:
        raise NoKernel("np.array with dimensions")
    return a.astype(a.dtype if dtype is None else np.dtype(dtype), order, copy=copy)


def ordered(a: Any, dtype: Any = None) -> Any:
    """np.ascontiguousarray"""
    return np.ascontiguousarray(a, dtype) if type(a) is not DeviceArray else contiguous(asarray(a, dtype))


def strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """as_strided"""
    if type(x) is not DeviceArray:
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    return x.seen_as(x.shape if shape is None else shape, x.strides if strides is None else strides)


def einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    """np.einsum of a diagonal, which is a view, and of sums of products"""
    if subscripts == "ii->i" and type(operands[0]) is DeviceArray:
        return operands[0].diagonal()
    made = contracted(subscripts, operands)
    if made is not None:
        return made
    return np.einsum(subscripts, *operands, **options)


MAKERS: dict[str, Callable[..., Any]] = {
    "empty": new, "zeros": constant(0), "ones": constant(1), "full": full, "arange": arange, "asarray": asarray,
    "array": array, "as_strided": strided, "einsum": einsum, "ascontiguousarray": ordered,
}  # fmt: skip
"""Functions of NumPy that no array is asked about, or that would want its elements."""
there = There()


# ------------------------------------------------------------------ code


class OfElements:
    """Stands for a function that becomes kernels: one of the device if there can be one, else its steps."""

    def __init__(self, function: Any) -> None:
        self.plain, self.otherwise = function, read(function)
        self.function = self.head = self.large = self.fallback = self.computed = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = pointwise(self.plain, args, kwargs)
        return self.otherwise(*args, **kwargs) if made is None else made

    def into(self, out: Any, *args: Any, **kwargs: Any) -> bool:
        """No kernel writes here."""
        return False


class Otherwise:
    """Stands for a builtin of the host: what is done without it."""

    def __init__(self, function: Any) -> None:
        self.head = self.otherwise = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.head(*args, **kwargs)


def no_room(name: str) -> None:
    """Compiled kernels of the host are not there."""


known: dict[Any, Any] = {is_inside: inside}
"""What was read, so that the same function stays the same function."""
computes: list[Callable[..., Any]] = []
"""What computes an op on the device: given by kind.py, which is built on this file."""


def read(value: Any) -> Any:
    """What a value of the code stands for where arrays are on the device."""
    if value is np:
        return there
    kind = type(value)
    if value is compiled.room:
        return no_room
    if kind is FunctionType:
        found = known.get(value)
        if found is None:
            found = known[value] = reread(value)
        return found
    if kind is ModuleType:
        return Module(value, read) if value.__name__.startswith(READ) else value
    if isinstance(value, functools._lru_cache_wrapper):
        return value
    if isinstance(value, (Chooser, Kernels, Variants)):
        return OfElements(value.function)
    if kind is compiled.OnFirstUse:
        return Otherwise(read(value.otherwise))
    if kind is dict and value and all([type(v) is compiled.OnFirstUse for v in value.values()]):
        return {key: read(v) for key, v in value.items()}
    if kind is functools.partial:
        return functools.partial(read(value.func), *[read(a) for a in value.args], **value.keywords)
    if kind in (dict, list, set):  # what is noted here must not be found by who reads on the host
        return value.copy()
    return value


def reread(function: FunctionType) -> Any:
    """A function, read now."""
    answers = getattr(function, "answers", {})
    if "cuda" in answers:
        return answers["cuda"]
    declared = getattr(function, "op", None)
    if declared is not None:
        return on_device(declared) if type(declared) is Op else recoded(declared.body)
    module = function.__module__ or ""
    if module.startswith("numpy"):
        return MAKERS.get(function.__name__, function)
    return recoded(function) if module.startswith(READ) else function


def on_device(op: Op) -> Any:
    """What the name of an op means: what computes it, with its defaults."""
    names = [p.name for p in op.params]

    def run(*args: Any, **kwargs: Any) -> Any:
        given = {p.name: p.default for p in op.params} | dict(zip(names, args, strict=False)) | kwargs
        positional = [given[p.name] for p in op.params if not p.keyword_only]
        return computes[0](op, positional, {p.name: given[p.name] for p in op.params if p.keyword_only})

    return run


def recoded(function: FunctionType) -> FunctionType:
    """The same code, its names read."""
    return reading.recoded(unpatched(function))


reading = Reading(READ, read)
