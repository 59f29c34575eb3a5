"""Numbers at equal steps: arange, range, linspace, logspace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.element import convert_number, exact_number, wrap_number
from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.kinds import answered, made_on
from pullback._arrays.sizes import LARGEST, UNPACKING, check_storage, in_torch_words
from pullback._dtype import defaults, dtype
from pullback._op.define import function
from pullback._runtime.quiet import quiet
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trim
from pullback.kernels import complex_functions
from pullback.kernels.numpy.random.draws import fused_multiply_add
from pullback.ops.create.data import as_dtype, check_layout
from pullback.ops.create.filled import check_given, given, int_of, plain

OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False)\n"
)
ARANGE_SIGNATURES = (
    f" * (Number end, *, Tensor out = None, {OPTIONS} * (Number start, Number end, *, {OPTIONS}"
    f" * (Number start, Number end, Number step = 1, *, Tensor out = None, {OPTIONS}"
)


@function(raw=True, method=False, out_keeps_shape=True)
def arange(
    *args: Any, start: Any = None, end: Any = None, step: Any = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a vector of numbers from `start` up to but not including `end`, `step` apart.

    Called as `arange(end)`, `arange(start, end)` or `arange(start, end, step)`; `start` is 0 and `step` 1 by default.
    There are `ceil((end - start) / step)` elements. Without `dtype` ints give int64, and floats the default dtype.
    With steps that have no exact floating-point value, rounding may add an element: `linspace` fixes the number.
    """
    try:
        check_layout(layout)
        low, high, by = range_arguments("arange", args, start, end, step)
        target = as_dtype("arange", dtype)
        if target is None and out is not None:
            kind = out.dtype
        elif target is None:
            kind = dtypes.int64 if all(isinstance(v, int) for v in (low, high, by)) else defaults.dtype
        else:
            kind = target
        return given("arange", out, made_on(device, arange_array, low, high, by, kind), target, requires_grad)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, method=False, name="range", out_keeps_shape=True)
def closed_range(
    *args: Any, start: Any = None, end: Any = None, step: Any = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Create a vector of numbers from `start` up to and including `end`, `step` apart.

    There are `floor((end - start) / step) + 1` elements, of the default dtype even for ints.
    Deprecated: `arange` works like Python's `range`.
    """
    check_layout(layout)
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
    )
    low, high, by = range_arguments("range", args, start, end, step)
    target = as_dtype("range", dtype)
    kind = target or (defaults.dtype if out is None else out.dtype)
    if kind is dtypes.bool_ or kind.is_complex:
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{kind.scalar_type}'")
    check_range(low, high, by)
    return given("range", out, made_on(device, closed_array, low, high, by, kind), target, requires_grad)


@in_torch_words
def closed_array(low: Any, high: Any, by: Any, kind: dtype) -> np.ndarray[Any, Any]:
    """The array of `range`: integers are cut off first, halves computed in float32 and other floats in doubles."""
    if kind.category == dtypes.INT:
        low, high, by = int(low), int(high), int(by)
        if not by:
            raise RuntimeError("step must be nonzero")
        count = int(checked_count((high - low) / by + 1))
        check_storage((count,), kind.itemsize)
        return (low + np.arange(count, dtype=np.int64) * by).astype(kind.numpy)
    acc = SINGLE.type if is_half(kind.numpy) else np.float64
    low, high, by = acc(low), acc(high), acc(by)
    count = int(checked_count(float((high - low) / by + acc(1))))
    check_storage((count,), kind.itemsize)
    steps = np.arange(count, dtype=acc)
    return (low + steps * by).astype(kind.numpy)


def range_arguments(name: str, args: tuple[Any, ...], start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """start, end and step as numbers from the ways to write them."""
    named = {key: value for key, value in (("start", start), ("end", end), ("step", step)) if value is not None}
    keys = ("end",) if len(args) == 1 and not named else ("start", "end", "step")
    values = dict(zip(keys, args, strict=False))
    if len(args) > 3 or "end" not in values | named or values.keys() & named.keys():
        got = ", ".join([type(a).__name__ for a in args] + [f"{key}={type(v).__name__}" for key, v in named.items()])
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            f"{ARANGE_SIGNATURES}"
        )
    values |= named
    for position, key in enumerate(keys):
        if key in values and not isinstance(values[key], (bool, int, float, complex, np.generic, Tensor)):
            kind = type(values[key]).__name__
            raise TypeError(f"{name}(): argument '{key}' (position {position + 1}) must be Number, not {kind}")
    low, high, by = (plain(values.get(key, default)) for key, default in (("start", 0), ("end", None), ("step", 1)))
    return low, high, by


def check_range(low: Any, high: Any, by: Any) -> None:
    """Raise torch's errors for bounds that make no range."""
    if any(isinstance(v, complex) for v in (low, high, by)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if not (by > 0 or by < 0):
        raise RuntimeError("step must be nonzero")
    if not math.isfinite(low) or not math.isfinite(high):
        raise RuntimeError(f"unsupported range: {low:g} -> {high:g}")
    if (by > 0 and low > high) or (by < 0 and low < high):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def arange_array(low: Any, high: Any, by: Any, target: dtype) -> np.ndarray[Any, Any]:
    """The array of `arange`: the length is computed in doubles, or exactly for integers."""
    if target is dtypes.bool_ or target.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{target.scalar_type}'")
    check_range(low, high, by)
    if target is dtypes.int64:
        low, high, by = (int(convert_number(v, target)) for v in (low, high, by))  # type: ignore[arg-type]
        if not by:
            raise ValueError("step must be nonzero")
        # The sum is taken in 64 bits, and its overflow is part of the meaning.
        sign = 1 if by > 0 else -1
        reach = sign * wrap_number((high - low + by - sign) % 2**64, target)
        return steps_from(low, by, int(checked_count(-1 if reach < 0 else reach // abs(by))), target)
    return steps_from(low, by, math.ceil(checked_count((float(high) - float(low)) / float(by))), target)


def checked_count(count: float) -> float:
    """The number of elements of a range, unless 64 bits cannot hold it."""
    if not 0 <= count <= LARGEST:
        raise RuntimeError("invalid size, possible overflow?")
    return count


@in_torch_words
def steps_from(low: Any, by: Any, count: int, target: dtype) -> np.ndarray[Any, Any]:
    """`low + k * by` for k from 0 to count - 1, rounded as torch rounds."""
    check_storage((count,), target.itemsize)
    if target.category == dtypes.INT:
        low, by = (convert_number(value, dtypes.int64) for value in (low, by))
        return (low + np.arange(count, dtype=np.int64) * by).astype(target.numpy)
    steps = np.arange(count, dtype=np.float64)
    if is_half(target.numpy):
        return half_steps(np.float64(np.float32(low)), np.float64(np.float32(by)), steps, target.numpy)
    low, by = float(low), float(by)
    exact = fused_multiply_add(steps, by, low)
    if target.itemsize == 8 or target is dtypes.float32:
        # Torch computes the first of each group of this width, rounds it, and counts on from there.
        width = 8 if target is dtypes.float32 else 4
        first = fused_multiply_add(steps // width * width, by, low).astype(target.numpy).astype(np.float64)
        whole = count // (2 * width) * 2 * width
        exact[:whole] = fused_multiply_add(steps[:whole] % width, by, first[:whole])
    return exact.astype(target.numpy)


HALVES = 16
"""How many numbers of half precision torch's kernels compute at a time."""


def half_steps(low: float, by: float, steps: np.ndarray[Any, Any], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The same in half precision: computed in float32, from the first of each group, which is rounded."""
    exact = fused_multiply_add(steps, by, low).astype(SINGLE)
    whole = steps.size // (2 * HALVES) * 2 * HALVES
    first = exact[:whole:HALVES].astype(kind).astype(np.float64).repeat(HALVES)
    exact[:whole] = first + (steps[:whole] % HALVES * by).astype(SINGLE)
    return exact.astype(kind)


# ------------------------------------------------------------------ a given number of steps


@function(raw=True, explained=True, method=False, vmap="between_bounds", out_keeps_shape=True)
def linspace(
    *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Create a vector of `steps` evenly spaced numbers from `start` to `end`, both included.

    Element `i` is `start + i * (end - start) / (steps - 1)`; a single step gives `start`.
    `start` and `end` are numbers or tensors without dimensions.
    """
    try:
        check_layout(layout)
        values = space_arguments("linspace", ("start", "end", "steps"), args, kwargs)
        target = as_dtype("linspace", dtype)
        kind = space_dtype("linspace", values, target, out)
        array = made_on(device, evenly, *space_bounds(kind, values), values["steps"], kind)
        return given("linspace", out, array, target, requires_grad, (*args, *kwargs.values()))
    except Exception as error:
        trim(error)
        raise


@function(raw=True, explained=True, method=False, vmap="between_bounds", out_keeps_shape=True)
def logspace(
    *args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Create a vector of `steps` numbers evenly spaced on a logarithmic scale.

    They run from `base**start` to `base**end`, both included: `base` to the powers that `linspace` would give.
    `base` is 10 by default.
    """
    try:
        check_layout(layout)
        values = {"base": 10.0} | space_arguments("logspace", ("start", "end", "steps", "base"), args, kwargs)
        values["base"] = float(values["base"])
        target = as_dtype("logspace", dtype)
        kind = space_dtype("logspace", values, target, out)
        array = made_on(device, powers, values, kind)
        return given("logspace", out, array, target, requires_grad, (*args, *kwargs.values()))
    except Exception as error:
        trim(error)
        raise


@answered(meta=lambda values, kind: np.empty(values["steps"], kind.numpy))
def powers(values: dict[str, Any], kind: dtype) -> np.ndarray[Any, Any]:
    """The array of `logspace`."""
    if values["steps"] == 1:  # as an element that `fill_` writes
        base, start = values["base"], values["start"]
        if kind.is_complex:
            number = complex_functions.power(np.complex128(base), np.complex128(start)).item()
        else:
            number = power(float(base), float(start))
        return np.asarray([convert_number(number, kind)]).astype(kind.numpy)
    low, high = space_bounds(kind, values)
    exponents = unfused(low, high, values["steps"], kind)
    if kind.is_complex:
        array = complex_functions.power(exponents.dtype.type(values["base"]), exponents)
    else:
        array = np.array([power(float(values["base"]), x) for x in exponents.tolist()], np.float64)
        if is_half(kind.numpy):
            array = array.astype(SINGLE)
    return array.astype(kind.numpy)


def power(base: float, exponent: float) -> float:
    """base ** exponent as C computes it."""
    try:
        return math.pow(base, exponent)
    except (ValueError, OverflowError):  # Python's objections to infinities and NaN, which C gives
        return float(np.power(np.float64(base), np.float64(exponent)))


def space_arguments(name: str, keys: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of linspace and logspace by name, checked."""
    values = dict(zip(keys, args, strict=False)) | kwargs
    numbers = (bool, int, float, complex, np.generic, Tensor)
    steps = int_of(values.get("steps"))
    complete = all(isinstance(values.get(key), numbers) for key in keys[:2])
    if steps is None or not complete or len(args) > len(keys) or not values.keys() <= set(keys):
        got = ", ".join([type(a).__name__ for a in args] + [f"{key}={type(v).__name__}" for key, v in kwargs.items()])
        base = ", float base = 10.0" if "base" in keys else ""
        forms = (("Tensor", "Tensor"), ("Number", "Tensor"), ("Tensor", "Number"), ("Number", "Number"))
        shown = "".join(f" * ({a} start, {b} end, int steps{base}, *, Tensor out = None, {OPTIONS}" for a, b in forms)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n{shown}"
        )
    bounds = [(key, values[key]) for key in ("start", "end")]
    if any([isinstance(value, Tensor) and value.ndim for _, value in bounds]):
        given = [f"{key} with {getattr(v, 'ndim', 0)} dimension(s)" for key, v in bounds if isinstance(v, Tensor)]
        raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got {' and '.join(given)}.")
    if steps > LARGEST:
        raise ValueError(UNPACKING)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return {key: plain(value) for key, value in values.items()} | {"steps": steps}


def space_dtype(name: str, values: dict[str, Any], target: dtype | None, out: Tensor | None) -> dtype:
    """The dtype of linspace and logspace: complex bounds make it complex."""
    if out is not None:
        check_given(name, out, target)
    wanted = target or (None if out is None else out.dtype)
    if isinstance(values["start"], complex) or isinstance(values["end"], complex):
        inferred = defaults.complex_dtype
        if out is None and wanted is not None and not wanted.is_complex:
            raise RuntimeError(
                f"torch.{name}(): inferred dtype {inferred.c_type} can't be safely cast to passed dtype "
                f"{wanted.scalar_type}"
            )
        return wanted or inferred
    wanted = wanted or defaults.dtype
    if wanted is dtypes.bool_ and values["steps"] > 1:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return wanted


def space_bounds(kind: dtype, values: dict[str, Any]) -> tuple[Any, Any]:
    """Start and end as elements of the dtype, in double precision."""
    if values["steps"] == 1:  # an element that `fill_` writes; the other one is not looked at
        start = quiet().run(np.asarray(convert_number(values["start"], kind)).astype, kind.numpy).item()
        return start, start
    low, high = (element_of(kind, values[key]) if values["steps"] else 0 for key in ("start", "end"))
    return low, high


def element_of(kind: dtype, value: Any) -> Any:
    """A number as an element of a dtype, or torch's error if it does not fit."""
    return np.asarray(exact_number(value, kind)).astype(kind.numpy).item()


@in_torch_words
def evenly(low: Any, high: Any, steps: int, kind: dtype) -> np.ndarray[Any, Any]:
    """The first half counted up from `low`, the second down from `high`, each rounded once (halves at every step)."""
    check_storage((steps,), kind.itemsize)
    if steps < 2:
        return np.full(steps, low, kind.numpy)
    if kind.is_complex:
        return unfused(low, high, steps, kind, step_of(low, high, steps, kind)).astype(kind.numpy)
    if is_half(kind.numpy):
        start, end = (np.asarray(bound, kind.numpy) for bound in (low, high))
        by = np.subtract(end, start) / kind.numpy.type(steps - 1)
        k = np.arange(steps)
        way = np.minimum(k, steps - 1 - k).astype(kind.numpy) * by
        return np.where(k < steps // 2, start + way, end - way)
    step = step_of(low, high, steps, kind)
    if not math.isfinite(step):  # what is infinite has no rounding error to be added
        return unfused(low, high, steps, kind, step).astype(kind.numpy)
    k = np.arange(steps, dtype=np.float64)
    up = fused_multiply_add(k, step, float(low))
    down = fused_multiply_add(steps - 1 - k, -step, float(high))
    values = np.where(k < steps // 2, up, down)
    np.copyto(values, unfused(low, high, steps, kind, step), where=values == 0)  # which have its signs
    return values.astype(kind.numpy)


@in_torch_words
def unfused(low: Any, high: Any, steps: int, kind: dtype, step: Any = None) -> np.ndarray[Any, Any]:
    """The same with the product rounded before the sum, in double precision."""
    check_storage((steps,), kind.itemsize)
    if steps < 2:
        return np.full(steps, low, np.complex128 if kind.is_complex else np.float64)
    if step is None:  # the difference is an element of the dtype, its parts are doubles
        step = low_to_high(low, high, kind) / (steps - 1)
    k = np.arange(steps)
    return np.where(k < steps // 2, low + step * k, high - step * (steps - 1 - k))


def step_of(low: Any, high: Any, steps: int, kind: dtype) -> Any:
    """The distance between neighbours, in the precision of the dtype."""
    step = low_to_high(low, high, kind) / (steps - 1)
    return step if kind.category == dtypes.INT else np.asarray(step).astype(kind.numpy).item()


def low_to_high(low: Any, high: Any, kind: dtype) -> Any:
    """How far it is from one bound to the other, in the precision of the dtype."""
    return high - low if kind.category == dtypes.INT else np.asarray(high - low).astype(kind.numpy).item()
