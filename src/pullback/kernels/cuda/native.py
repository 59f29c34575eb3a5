"""Ops that run on the device by kernels other than pointwise ones: copies, reductions, products, and compositions.

A function of the table `NATIVE` is given what the op's forward is given, and answers None for what it does not take:
then the op is computed by way of the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._half import is_half
from pullback._memory import joined
from pullback._strided import row_major_strides
from pullback._tensor import channels_last, channels_last_3d, contiguous_format, preserve_format
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.carry import upload
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import counted, function, launch, loaded, window
from pullback.kernels.cuda.pointwise import copy_into, made_for, pointwise

NATIVE: dict[str, Callable[..., Any]] = {}
"""What computes an op on the device, by the op's key."""
ELEMENTS = {"float32": "float", "float64": "double", "int64": "i64", "int32": "i32"}
"""LLVM's types of what is reduced and multiplied."""
UFUNCS = {"sum": np.add, "max": np.maximum, "min": np.minimum}
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


# ------------------------------------------------------------------ copies


@native("clone")
def copied(array: Any, dtype: Any = None, format: Any = None, *, memory_format: Any = None) -> Any:
    """A copy in a dtype of NumPy's, its memory in the order a format says."""
    kind = array.dtype if dtype is None else dtype
    format = format or memory_format
    if kind.kind == "c" or array.dtype.kind == "c" or (kind.char == "B" and array.dtype.char == "d"):
        return None
    orders = {channels_last: [0, 2, 3, 1], channels_last_3d: [0, 2, 3, 4, 1]}
    if format is None or format is preserve_format:
        out = made_for([array], array.shape, kind)
    elif format is contiguous_format:
        out = empty(array.shape, kind, None, array.device)
    else:
        order = orders[format]
        if array.ndim != len(order):
            return None  # which raises on the host
        new = empty([array.shape[d] for d in order], kind, None, array.device)
        out = new.transpose([order.index(d) for d in range(len(order))])
    return out if not out.size or copy_into(out, array) else None


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
    if dims is None or room("cuda.reductions") is None or (how != "sum" and not array.size):
        return None
    wide = SINGLE if is_half(wanted) else wanted
    if wide.name not in ELEMENTS:
        return None
    if array.dtype != wide:
        array = copied(array, wide)
        if array is None:
            return None
    kept = [1 if d in dims else n for d, n in enumerate(array.shape) if keepdim or d not in dims]
    out = empty(kept, wide, None, array.device)
    if out.size:
        reduce_into(how, array, tuple(dims), out)
    return out if wide == wanted else copied(out, wanted)


class Plan:
    """How an array is reduced: the kernel, its grid, and the numbers it is told."""

    __slots__ = ("grid", "key", "name", "numbers", "parts", "results", "types")

    def __init__(
        self, how: str, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, dims: tuple[int, ...]
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
        self.parts = max(min(-(-WAVES // blocks), -(-count // (across * 16)), 2048), 1)
        self.key = (how, ELEMENTS[dtype.name], len(outer), len(inner), columns)
        self.name = kernels.name_of(*self.key)
        self.numbers = (results, count, self.parts, *outer, *outer_steps, *inner, *inner_steps)
        self.types, self.grid = "QQ" + "q" * len(self.numbers), (blocks, self.parts, 1)


def reduce_into(how: str, array: Any, dims: tuple[int, ...], out: Any) -> None:
    """Reduce an array into a row-major one of the dimensions that are left, with or without those of one element."""
    counted("reduction")
    if required().emulated:
        start = {"initial": 0} if how == "sum" else {}
        window(out)[...] = UFUNCS[how].reduce(window(array), dims, **start).reshape(out.shape)
        return
    known = (how, array.shape, array.strides, array.dtype, dims)
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
    if kind.kind != "f" or dims is None or is_half(kind):
        return None
    total = reduced("sum", array, dim or None, keepdim, kind)
    count = int(np.prod([array.shape[d] for d in dims], dtype=np.int64))
    return None if total is None or not count else total / kind.type(count)


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


# ------------------------------------------------------------------ rows


def away(x: Any, largest: Any) -> Any:
    """exp(x - largest)"""
    return np.exp(x - largest)


def log_away(x: Any, largest: Any, total: Any) -> Any:
    """x - largest - log(total)"""
    return x - largest - np.log(total)


def is_row_float(array: Any, dim: Any) -> bool:
    """True for what row kernels take."""
    return array.dtype.name in ("float32", "float64") and array.size > 0 and array.ndim > 0 and type(dim) is int


@native("softmax_rows")
def softmax(array: Any, dim: int) -> Any:
    """exp(x) / sum(exp(x))"""
    if not is_row_float(array, dim):
        return None
    powers = pointwise(away, (array, reduced("max", array, dim, True)), {})
    return None if powers is None else powers / reduced("sum", powers, dim, True)


@native("log_softmax_rows")
def log_softmax(array: Any, dim: int) -> Any:
    """x - log(sum(exp(x)))"""
    if not is_row_float(array, dim):
        return None
    largest = reduced("max", array, dim, True)
    powers = pointwise(away, (array, largest), {})
    return None if powers is None else pointwise(log_away, (array, largest, reduced("sum", powers, dim, True)), {})


@native("softmax_backward_data")
def softmax_backward(grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    """y * (g - sum(g * y))"""
    if not is_row_float(grad, dim):
        return None
    total = reduced("sum", grad * output, dim, True)
    return pointwise(lambda_softmax, (grad, output, total), {})


def lambda_softmax(grad: Any, output: Any, total: Any) -> Any:
    """y * (g - total)"""
    return output * (grad - total)


@native("log_softmax_backward_data")
def log_softmax_backward(grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    """g - exp(y) * sum(g)"""
    if not is_row_float(grad, dim):
        return None
    return pointwise(lambda_log_softmax, (grad, output, reduced("sum", grad, dim, True)), {})


def lambda_log_softmax(grad: Any, output: Any, total: Any) -> Any:
    """g - exp(y) * total"""
    return grad - np.exp(output) * total


# ------------------------------------------------------------------ classes


def ramp(count: int, place: Any) -> Any:
    """0, 1, 2, ... on a device."""
    key = (count, place, required())  # another driver, as tests have it, has other memory
    found = ramps.get(key)
    if found is None:
        if len(ramps) >= RAMPS:
            ramps.clear()
        found = ramps[key] = upload(np.arange(count), place)
    return found


RAMPS = 64
ramps: dict[Any, Any] = {}


def is_outside(target: Any, classes: int, ignored: int) -> Any:
    """Whether a class is none, and is not ignored either."""
    return ((target < 0) | (target >= classes)) & (target != ignored)


def counts(target: Any, ignored: int) -> Any:
    """Whether a class is not ignored."""
    return target != ignored


def at_class(value: Any, numbers: Any, target: Any, ignored: int) -> Any:
    """Minus the value at the class of a row, zero elsewhere."""
    return np.where((numbers == target) & (target != ignored), -value, value.dtype.type(0))


def takes_classes(x: Any, target: Any, weight: Any) -> bool:
    """True for rows of log probabilities and a class for each."""
    rows = x.ndim == 2 and x.size > 0 and target.shape == x.shape[:1] and x.dtype.name in ("float32", "float64")
    return rows and weight is None and type(target) is type(x) is DeviceArray and target.dtype == INT64


@native("nll_loss_rows")
def nll_loss(x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    """Minus the log probability of each row's class, and the weight that a mean divides by."""
    if not takes_classes(x, target, weight):
        return None
    outside = pointwise(is_outside, (target, x.shape[1], ignore_index), {})
    if outside is None or reduced("sum", outside, None, False, INT64).item():
        return None  # which is said on the host
    numbers = ramp(x.shape[1], x.device)
    picked = pointwise(at_class, (x, numbers, target[:, None], ignore_index), {})
    if picked is None:
        return None
    loss = reduced("sum", picked, 1, False)
    if reduction == 0:
        return [loss, empty_zero(x)]
    total = reduced("sum", pointwise(counts, (target, ignore_index), {}), None, False, x.dtype)
    loss = reduced("sum", loss, None, False)
    return [loss / total if reduction == 1 else loss, total]


def empty_zero(like: Any) -> Any:
    """The number zero in the dtype and on the device of an array."""
    return upload(np.zeros((), like.dtype), like.device)


@native("nll_loss_backward")
def nll_loss_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> Any:
    """Minus the gradient, at the class of each row that counts."""
    if not takes_classes(x, target, weight):
        return None
    value = grad / total_weight if reduction == 1 else grad
    numbers = ramp(x.shape[1], x.device)
    return pointwise(at_class, (value[:, None] if value.ndim else value, numbers, target[:, None], ignore_index), {})


# ------------------------------------------------------------------ products


def product(a: Any, b: Any, added: Any = None, beta: float = 0.0, alpha: float = 1.0) -> Any:
    """alpha * a @ b + beta * added, of matrices or of stacks of them; None if no kernel can give it."""
    kind = a.dtype
    operands = (a, b) if added is None else (a, b, added)
    if kind.name not in ("float32", "float64") or any([o.dtype != kind for o in operands]):
        return None
    if (
        room("cuda.products") is None
        or a.shape[-1] != b.shape[-2]
        or any([type(o) is not DeviceArray for o in operands])
    ):
        return None
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    shape = (*a.shape[:-2], rows, columns)
    out = empty(shape, kind, None, a.device)
    more = out if added is None else np.broadcast_to(added, shape)
    if not out.size:
        return out
    counted("product")
    if required().emulated:
        made = alpha * np.matmul(window(a), window(b))
        window(out)[...] = made if added is None or not beta else made + beta * window(more)  # type: ignore[arg-type]
        return out
    kernels = room("cuda.products")
    steps: list[int] = []
    for matrix in (a, b, out, more):
        own = [step // matrix.itemsize for step in matrix.strides]
        steps += own if len(own) == 3 else [0, *own]
    key = (ELEMENTS[kind.name], (steps[1] == 1, steps[5] == 1))
    ready = function(out.device.index or 0, kernels.name_of(*key), lambda: kernels.text_of(*key))
    grid = (-(-columns // kernels.TILE), -(-rows // kernels.TILE), shape[0] if len(shape) == 3 else 1)
    addresses = (a.address, b.address, out.address, more.address)
    numbers = (*addresses, rows, columns, depth, *steps, alpha, beta if added is not None else 0.0)
    launch(out.device.index or 0, ready, grid, "Q" * 4 + "q" * 15 + "dd", *numbers)
    return out


@native("mm", "bmm")
def mm(a: Any, b: Any) -> Any:
    """a @ b"""
    return product(a, b)


@native("addmm", "baddbmm")
def addmm(added: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * added + alpha * a @ b"""
    if a.dtype.kind != "f":
        return None
    return product(a, b, added, float(beta), float(alpha))
