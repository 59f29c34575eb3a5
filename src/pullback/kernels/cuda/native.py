"""Ops that run on the device by kernels other than pointwise ones: copies, reductions, products, and compositions.

A function of the table `NATIVE` is given what the op's forward is given, and answers None for what it does not take:
then the op is computed by way of the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.memory import joined
from pullback._arrays.strided import row_major_strides
from pullback._tensor import channels_last, channels_last_3d, contiguous_format, preserve_format
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, loaded, window
from pullback.kernels.cuda.pointwise import copy_into, made_for
from pullback.kernels.cuda.recording import lasts
from pullback.kernels.jit.language.expression import COMPLEX

NATIVE: dict[str, Callable[..., Any]] = {}
"""What computes an op on the device, by the op's key."""
BACKWARD: dict[str, Callable[..., Any]] = {}
"""What computes all gradients of an op at once, by the op's key; it is given what the op's formula is given."""
ELEMENTS = {"float32": "float", "float64": "double", "int64": "i64", "int32": "i32"}
"""LLVM's types of what is reduced and multiplied."""
UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
STARTS = {"sum": 0, "prod": 1}
"""What nothing reduces to, of reductions that take nothing."""
WAVES = 1056
"""Blocks that keep a large device busy: eight for each of 132 multiprocessors."""
PLANS = 4096
plans: dict[Any, Any] = {}
"""How arrays are reduced, by their shapes and strides."""
INT64, SINGLE = np.dtype(np.int64), np.dtype(np.float32)


def native(*keys: str) -> Callable[[Any], Any]:
    """Declare what computes ops."""

    def declare(compute: Any) -> Any:
        for key in keys:
            NATIVE[key] = compute
        return compute

    return declare


INPLACE: dict[str, Callable[..., bool]] = {}
"""What runs an op in place on the device, by the op's key; False for what it does not take, with nothing written."""


def in_place(*keys: str) -> Callable[[Any], Any]:
    """Declare what runs ops in place, and so what computes them on a copy."""

    def declare(compute: Any) -> Any:
        def on_copy(self: Any, *args: Any, **kwargs: Any) -> Any:
            if type(self) is not DeviceArray:
                return None
            out = self.copy("C")
            return out if compute(out, *args, **kwargs) else None

        for key in keys:
            INPLACE[key], NATIVE[key] = compute, on_copy
        return compute

    return declare


def backward(key: str) -> Callable[[Any], Any]:
    """Declare what computes the gradients of an op."""

    def declare(compute: Any) -> Any:
        BACKWARD[key] = compute
        return compute

    return declare


# ------------------------------------------------------------------ counting


def ramp(count: int, place: Any) -> Any:
    """0, 1, 2, ... on a device."""
    key = (count, place, required())  # another driver, as tests have it, has other memory
    found = ramps.get(key)
    if found is None:
        if len(ramps) >= RAMPS:
            ramps.clear()
        found = ramps[key] = lasts(upload(np.arange(count), place))
    return found


RAMPS = 64
ramps: dict[Any, Any] = {}


# ------------------------------------------------------------------ copies


@native("clone")
def copied(array: Any, dtype: Any = None, format: Any = None, *, memory_format: Any = None) -> Any:
    """A copy in a dtype of NumPy's, its memory in the order a format says."""
    kind = array.dtype if dtype is None else dtype
    format = format or memory_format
    if (array.dtype.kind == "c" and kind.kind not in "cb") or (kind.char == "B" and array.dtype.char == "d"):
        return None
    out = arranged_like(array, kind, format)
    return out if out is None or not out.size or copy_into(out, array) else None


def arranged_like(array: Any, kind: Any, format: Any) -> Any:
    """New memory in the shape of an array and in the order a format says; None for a format it cannot have."""
    if format is None or format is preserve_format:
        return made_for([array], array.shape, kind)
    if format is contiguous_format:
        return empty(array.shape, kind, None, array.device)
    order = {channels_last: [0, 2, 3, 1], channels_last_3d: [0, 2, 3, 4, 1]}[format]
    if array.ndim != len(order):
        return None  # which raises on the host
    new = empty([array.shape[d] for d in order], kind, None, array.device)
    return new.transpose([order.index(d) for d in range(len(order))])


@native("clone_contiguous")
def copied_in_order(array: Any) -> Any:
    """A row-major copy."""
    return copied(array, None, contiguous_format)


@native("copy_from")
def copied_from(target: Any, source: Any) -> Any:
    """The elements of one array in the shape and dtype of another, on its device."""
    if type(target) is not DeviceArray:
        return None if source.dtype != target.dtype else np.broadcast_to(source.on_host(), target.shape)
    if type(source) is not DeviceArray or source.device is not target.device:
        host = source if type(source) is np.ndarray else source.on_host()
        source = upload(host, target.device)
    if source.dtype != target.dtype:
        source = copied(source, target.dtype)
    return None if source is None else np.broadcast_to(source, target.shape)


@native("fill_with_zero")
def zeros_like(array: Any) -> Any:
    """Zeros."""
    return np.zeros_like(array)


# ------------------------------------------------------------------ reductions


def dims_of(dim: Any, ndim: int) -> list[int] | None:
    """The dimensions a reduction goes over; None for what has to be refused."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(ndim))
    given = [dim] if isinstance(dim, (int, np.integer)) else list(dim)
    if not all([isinstance(d, (int, np.integer)) and -max(ndim, 1) <= d < max(ndim, 1) for d in given]):
        return None
    found = sorted({int(d) % max(ndim, 1) for d in given}) if ndim else []
    return found if not ndim or len(found) == len(given) else None


def reduced(how: str, array: Any, dim: Any, keepdim: bool, dtype: Any = None) -> Any:
    """A reduction over some dimensions; None if no kernel can give it."""
    dims = dims_of(dim, array.ndim)
    wanted = array.dtype if dtype is None else dtype
    if dims is None or room("cuda.reductions") is None or (how not in STARTS and not array.size):
        return None
    wide = SINGLE if is_half(wanted) else wanted
    if wide.name not in ELEMENTS and (wide not in COMPLEX or how not in STARTS):
        return None
    if array.dtype != wide:
        array = copied(array, wide)
        if array is None:
            return None
    if wide.kind == "c":
        return (sum_of_parts if how == "sum" else product_by_halves)(array, dims, keepdim)
    kept = [1 if d in dims else n for d, n in enumerate(array.shape) if keepdim or d not in dims]
    out = empty(kept, wide, None, array.device)
    if out.size:
        reduce_into(how, array, tuple(dims), out)
    return out if wide == wanted else copied(out, wanted)


def parts_of(array: Any) -> Any:
    """Complex numbers as pairs of real ones, along a dimension after all others."""
    part = COMPLEX[array.dtype]
    return array.seen_as((*array.shape, 2), (*array.strides, part.itemsize), part)


def of_pairs(pairs: Any, dtype: Any) -> Any:
    """Pairs of real numbers that lie beside each other as complex ones."""
    return pairs.seen_as(pairs.shape[:-1], pairs.strides[:-1], dtype)


def sum_of_parts(array: Any, dims: list[int], keepdim: bool) -> Any:
    """The sums of complex numbers: those of their parts."""
    made = reduced("sum", parts_of(array), dims, keepdim) if dims else array.copy()
    return of_pairs(made, array.dtype) if dims else made


def product_by_halves(array: Any, dims: list[int], keepdim: bool) -> Any:
    """The products of complex numbers: one half of them times the other, until one is left."""
    rest = [d for d in range(array.ndim) if d not in dims]
    kept = [1 if d in dims else n for d, n in enumerate(array.shape) if keepdim or d not in dims]
    count = math.prod([array.shape[d] for d in dims])
    if not count or not array.size:
        return filled(kept, array.dtype, 1, array.device)
    x = array.transpose([*dims, *rest]).reshape(count, *[array.shape[d] for d in rest])
    while len(x) > 1:
        half = len(x) // 2
        made = x[:half] * x[half : 2 * half]
        if len(x) % 2:
            made[:1] = made[:1] * x[2 * half :]
        x = made
    return x[0].copy().reshape(kept)


class Plan:
    """How an array is reduced: the kernel, its grid, and the numbers it is told."""

    __slots__ = ("grid", "key", "name", "numbers", "parts", "results", "types")

    def __init__(
        self,
        how: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: Any,
        dims: tuple[int, ...],
        aligned: bool,
    ) -> None:
        kernels, size = room("cuda.reductions"), dtype.itemsize
        steps = [step // size for step in strides]
        kept = [d for d in range(len(shape)) if d not in dims]
        order = [step // size for step in row_major_strides([shape[d] for d in kept], size)]
        outer, both = joined([shape[d] for d in kept], [[steps[d] for d in kept], order])
        outer_steps = [step for step, _ in both]
        inner, alone = joined([shape[d] for d in dims], [[steps[d] for d in dims]])
        inner_steps = [step for (step,) in alone]
        self.results = results = math.prod(outer)
        count = math.prod([shape[d] for d in dims])
        columns = bool(outer) and abs(outer_steps[-1]) == 1 and results >= 32
        columns = columns and (not inner or abs(inner_steps[-1]) != 1)
        across = kernels.THREADS // kernels.COLUMNS if columns else kernels.THREADS
        blocks = -(-results // kernels.COLUMNS) if columns else results
        wide = 16 // size
        together = aligned and not columns and wide > 1 and inner_steps == [1] and count % wide == 0
        if together and all([step % wide == 0 for step in outer_steps]):
            count //= wide
        else:
            wide = 1
        self.parts = max(min(-(-WAVES // blocks), -(-count // (across * 16)), 2048), 1)
        self.key = (how, ELEMENTS[dtype.name], len(outer), len(inner), columns, wide)
        self.name = kernels.name_of(*self.key)
        self.numbers = (results, count, self.parts, *outer, *outer_steps, *inner, *inner_steps)
        self.types, self.grid = "QQ" + "q" * len(self.numbers), (blocks, self.parts, 1)


def reduce_into(how: str, array: Any, dims: tuple[int, ...], out: Any) -> None:
    """Reduce an array into a row-major one of the dimensions that are left, with or without those of one element."""
    counted("reduction")
    if required().emulated:
        start = {"initial": STARTS[how]} if how in STARTS else {}
        window(out)[...] = UFUNCS[how].reduce(window(array), dims, **start).reshape(out.shape)
        return
    known = (how, array.shape, array.strides, array.dtype, dims, array.address % 16 == 0)
    plan = plans.get(known)
    if plan is None:
        if len(plans) >= PLANS:
            plans.clear()
        plan = plans[known] = Plan(*known)
    target = out if plan.parts == 1 else empty((plan.parts, plan.results), out.dtype, None, out.device)
    index = out.device.index or 0
    ready = loaded.get((index, plan.name)) or function(
        index, plan.name, lambda: room("cuda.reductions").text_of(*plan.key)
    )
    launch(index, ready, plan.grid, plan.types, array.address, target.address, *plan.numbers)
    if plan.parts > 1:
        reduce_into(how, target, (0,), out)


def sum_dtype(array: Any, dtype: Any) -> Any:
    """What a sum is computed in."""
    return dtype.numpy if dtype is not None else INT64 if array.dtype.kind in "iub" else array.dtype


@native("sum_all")
def sum_all(array: Any, dtype: Any = None) -> Any:
    """The sum of all elements."""
    return reduced("sum", array, None, False, sum_dtype(array, dtype))


@native("sum_dim")
def sum_dim(array: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """Sums along dimensions, given as a tuple; nothing means all."""
    return reduced("sum", array, dim or None, keepdim, sum_dtype(array, dtype))


@native("mean_dim")
def mean_dim(array: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """Means along dimensions."""
    kind = array.dtype if dtype is None else dtype.numpy
    dims = dims_of(dim or None, array.ndim)
    if (kind.kind not in "fc" and not is_half(kind)) or dims is None:
        return None
    wide = SINGLE if is_half(kind) else kind
    total = reduced("sum", array, dim or None, keepdim, wide)
    count = math.prod([array.shape[d] for d in dims])
    if total is None or not count:
        return None
    return total / kind.type(count) if wide == kind else copied(total / wide.type(count), kind)


@native("mean_all")
def mean_all(array: Any, dtype: Any = None) -> Any:
    """The mean of all elements."""
    return mean_dim(array, None, False, dtype)


@native("amax_dim")
def amax_dim(array: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest along dimensions."""
    return reduced("max", array, dim, keepdim)


@native("amin_dim")
def amin_dim(array: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest along dimensions."""
    return reduced("min", array, dim, keepdim)


@native("prod_all")
def prod_all(array: Any, dtype: Any = None) -> Any:
    """The product of all elements."""
    return reduced("prod", array, None, False, sum_dtype(array, dtype))


@native("prod_dim")
def prod_dim(array: Any, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """Products along a dimension."""
    return reduced("prod", array, dim, keepdim, sum_dtype(array, dtype))
