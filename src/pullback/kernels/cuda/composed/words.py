"""NumPy's words that kernels of the device answer: reductions, running sums, looking up, joining.

A word is a method of arrays (`a.sum(1)`), a function (`np.sum(a, 1)`) or a method of a ufunc (`np.add.reduce(a, 1)`);
all three are asked here first, and answered None for what kernels do not take.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.cuda.array import DeviceArray, filled
from pullback.kernels.cuda.composed.keys import numbers_there
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.index import are_numbers, each, index_select, read
from pullback.kernels.cuda.index import take as taken
from pullback.kernels.cuda.moving import cat, roll, stack
from pullback.kernels.cuda.native import INT64, SINGLE, copied, dims_of, ramp, reduced
from pullback.kernels.cuda.order.counting import bincount as counted_by
from pullback.kernels.cuda.order.extrema import found
from pullback.kernels.cuda.order.masks import comparable, places_of
from pullback.kernels.cuda.order.scans import running
from pullback.kernels.cuda.order.sorts import picked, places_among, sorted_places, takes
from pullback.kernels.cuda.products import product

WORDS: dict[str, Callable[..., Any]] = {}
"""What answers a word, by its name."""
REDUCING = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
            "logical_and": "all"}  # fmt: skip
EXTREMA = {"max": np.maximum, "min": np.minimum}
RUNNING = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logaddexp": "logaddexp"}
"""The words that methods of ufuncs are."""
TRUTHS = {"logical_or": "max", "logical_and": "min"}
"""Running answers, of ones and zeros."""
INT32, BOOL = np.dtype(np.int32), np.dtype(np.bool_)


def answer(name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a word makes of its arguments; None if no kernel can say it."""
    compute = WORDS.get(name)
    if compute is None or not args or (type(args[0]) is not DeviceArray and type(args[0]) not in (list, tuple)):
        return None
    try:
        return compute(*args, **kwargs)
    except TypeError:  # arguments that kernels know nothing of
        return None


def of_ufunc(name: str, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    """What a method of a ufunc makes of an array; None as above."""
    if type(inputs[0]) is not DeviceArray:
        return None
    if method == "reduce" and name in ("fmax", "fmin") and kwargs.get("initial") is not None:  # nan counts for that
        array = np.where(inputs[0] != inputs[0], inputs[0].dtype.type(kwargs["initial"]), inputs[0])
        return of_ufunc({"fmax": "maximum", "fmin": "minimum"}[name], method, (array, *inputs[1:]), kwargs)
    if method == "reduce" and name in REDUCING:
        given = dict(zip(("axis", "dtype", "out", "keepdims"), inputs[1:], strict=False)) | kwargs
        given.setdefault("axis", 0)
        if given.pop("out", None) is not None:
            return None
        if REDUCING[name] not in ("sum", "prod"):
            given.pop("dtype", None)
        elif given.get("dtype") is None:
            given["dtype"] = inputs[0].dtype if inputs[0].dtype.kind not in "iub" else INT64
        return answer(REDUCING[name], (inputs[0],), given)
    if method == "accumulate" and (name in RUNNING or name in TRUTHS):
        given = dict(zip(("axis", "dtype"), inputs[1:], strict=False)) | kwargs
        axis, dtype, array = given.pop("axis", 0), given.pop("dtype", None), inputs[0]
        if given:
            return None
        kind = array.dtype if dtype is None else np.dtype(dtype)
        if name in TRUTHS:
            made = running(copied(truth_of(array), INT32), axis, INT32, False, TRUTHS[name])
            return None if made is None else made != 0
        if name in ("maximum", "minimum") and kind.kind in "iub" and kind.itemsize < INT32.itemsize:
            made = running(comparable(array), axis, INT32, False, RUNNING[name])
            return None if made is None else copied(made, kind)
        return running(array, axis, kind, False, RUNNING[name])
    return None


def word(*names: str) -> Callable[[Any], Any]:
    """Declare what answers words."""

    def declare(compute: Any) -> Any:
        for name in names:
            WORDS[name] = compute
        return compute

    return declare


# ------------------------------------------------------------------ reductions


def summing(how: str) -> Any:
    """sum and prod."""

    def compute(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
        if out is not None or axis == ():
            return None
        kind = np.dtype(dtype) if dtype is not None else INT64 if a.dtype.kind in "iub" else a.dtype
        return reduced(how, a, axis, keepdims, kind)

    return compute


def extreme(how: str) -> Any:
    """max and min: of narrow integers as of int32."""
    neutral = -np.inf if how == "max" else np.inf

    def compute(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = neutral) -> Any:
        if out is not None or axis == () or not a.size:
            return None
        wide = comparable(a)
        made = reduced(how, wide, axis, keepdims)
        if made is not None and initial != neutral:
            made = EXTREMA[how](made, made.dtype.type(initial))
        return made if made is None or wide is a else copied(made, a.dtype)

    return compute


def asked(how: str) -> Any:
    """any and all: the largest, or the smallest, of ones and zeros."""

    def compute(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        dims = dims_of(axis, a.ndim)
        if out is not None or axis == () or dims is None:
            return None
        if not a.size:
            kept = [1 if d in dims else n for d, n in enumerate(a.shape) if keepdims or d not in dims]
            return filled(kept, BOOL, how == "min", a.device)
        truths = copied(truth_of(a), INT32)
        made = None if truths is None else reduced(how, truths, axis, keepdims)
        return None if made is None else made != 0

    return compute


def truth_of(array: Any) -> Any:
    """Where elements are not zero."""
    return array if array.dtype == BOOL else comparable(array) != 0


for _how in ("sum", "prod"):
    word(_how)(summing(_how))
for _how in ("max", "min"):
    word(_how, f"a{_how}")(extreme(_how))
for _how, _name in (("max", "any"), ("min", "all")):
    word(_name)(asked(_how))


@word("mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The mean of floats."""
    kind, dims = a.dtype if dtype is None else np.dtype(dtype), dims_of(axis, a.ndim)
    if out is not None or axis == () or dims is None or not a.size or (kind.kind not in "fc" and not is_half(kind)):
        return None
    wide = SINGLE if is_half(kind) else kind
    total = reduced("sum", a, axis, keepdims, wide)
    if total is None:
        return None
    made = total / wide.type(math.prod([a.shape[d] for d in dims]))
    return made if kind == wide else copied(made, kind)


@word("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    return None if axis == () else reduced("sum", truth_of(a), axis, keepdims, INT64)


def place_of(how: str) -> Any:
    """argmax and argmin."""

    def compute(a: Any, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        if out is not None or not a.size:
            return None
        made = found(how, a if axis is not None else contiguous(a).reshape(-1), 0 if axis is None else axis, keepdims)
        return None if made is None else made[1]

    return compute


for _how in ("max", "min"):
    word(f"arg{_how}")(place_of(_how))


# ------------------------------------------------------------------ along a dimension


def run_along(how: str) -> Any:
    """cumsum and cumprod."""

    def compute(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        if out is not None:
            return None
        if axis is None:
            a, axis = contiguous(a).reshape(-1), 0
        kind = np.dtype(dtype) if dtype is not None else INT64 if a.dtype.kind in "iub" else a.dtype
        return running(a, int(axis), kind, False, how)

    return compute


word("cumsum")(run_along("sum"))
word("cumprod")(run_along("prod"))


@word("sort")
def sort(a: Any, axis: int | None = -1, kind: Any = None) -> Any:
    """Elements in order."""
    if axis is None:
        a, axis = contiguous(a).reshape(-1), 0
    if not takes(a, axis):
        return None
    made = picked(a, axis, sorted_places(a, axis, False))
    return None if made is None else made[0]


@word("unique")
def unique(ar: Any, *, return_inverse: bool = False) -> Any:
    """The different elements in order, and which of them each is; their number is read, and the device waited for."""
    row = sort(ar, None) if ar.size else None
    if row is None or row.dtype.kind not in "iub":  # floats have several nan
        return None
    wide = comparable(row)
    first = filled((1,), BOOL, True, ar.device)
    found = taken(row, flatnonzero(concatenate([first, wide[1:] != wide[:-1]])))
    return (found, places_among(found, contiguous(ar), False)) if return_inverse else found


@word("argsort")
def argsort(a: Any, axis: int = -1, kind: Any = None) -> Any:
    """Where elements in order come from; equal ones keep theirs."""
    if not takes(a, axis):
        return None
    return contiguous(np.moveaxis(sorted_places(a, axis, False), -1, axis))


@word("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int) -> Any:
    """Elements by their numbers along a dimension."""
    if not are_numbers(indices) or indices.ndim != arr.ndim:
        return None
    shape = [n if d == axis % arr.ndim else m for d, (n, m) in enumerate(zip(indices.shape, arr.shape, strict=True))]
    at = np.broadcast_to(indices, shape)
    how = each(arr, axis, at)
    return None if how is None else read(arr, at.shape, *how)


@word("take")
def take(a: Any, indices: Any, axis: int, out: None = None, mode: str = "raise") -> Any:
    """Slices by their numbers along a dimension."""
    indices = numbers_there(indices, a.device)
    if out is not None or not are_numbers(indices):
        return None
    made = index_select(a, axis, contiguous(indices).reshape(-1))
    axis %= a.ndim
    return None if made is None else made.reshape((*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]))


@word("nonzero")
def nonzero(a: Any) -> Any:
    """The places of elements that are not zero, an array for each dimension."""
    at = places_of(truth_of(a)) if a.ndim else None
    return None if at is None else tuple([at[:, d] for d in range(a.ndim)])


# ------------------------------------------------------------------ joining and moving


@word("concatenate")
def concatenate(arrays: Any, axis: int = 0) -> Any:
    """Arrays one after the other; numbers in lists among them are brought to the device."""
    first = next((a for a in arrays if type(a) is DeviceArray), None)
    if axis is None or first is None:
        return None
    given = [a if type(a) is DeviceArray else numbers_there(np.asarray(a, first.dtype), first.device) for a in arrays]
    return cat(given, axis)


@word("append")
def append(arr: Any, values: Any) -> Any:
    """Numbers after all elements."""
    return concatenate([contiguous(arr).reshape(-1), np.atleast_1d(values)])


@word("stack")
def stacked(arrays: Any, axis: int = 0) -> Any:
    """Arrays beside each other along a new dimension."""
    first = next((a for a in arrays if type(a) is DeviceArray), None)
    if first is None or len({a.dtype for a in arrays}) != 1:
        return None
    return stack([numbers_there(a, first.device) for a in arrays], axis)


@word("roll")
def rolled(a: Any, shift: Any, axis: Any) -> Any:
    """Elements moved along dimensions, those beyond the end to the front."""
    shifts, dims = ((n,) if isinstance(n, int) else tuple(n) for n in (shift, axis))
    return roll(a, shifts, dims)


@word("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: None = None) -> Any:
    """Elements between two bounds."""
    if out is not None:
        return None
    made = a if a_min is None else np.maximum(a, a_min)
    return made if a_max is None else np.minimum(made, a_max)


@word("round")
def rounded(a: Any, decimals: int = 0, out: None = None) -> Any:
    """The nearest integers."""
    return np.rint(a) if out is None and not decimals and a.dtype.kind == "f" else None


@word("conj", "conjugate")
def conjugate(a: Any) -> Any:
    """Complex conjugates."""
    return a if a.dtype.kind != "c" else np.conjugate(a)


# ------------------------------------------------------------------ products


@word("matmul", "dot")
def matmul(a: Any, b: Any) -> Any:
    """Products of matrices, of vectors, and of stacks of them, which broadcast."""
    if type(b) is not DeviceArray or a.dtype != b.dtype or not a.ndim or not b.ndim or (b.ndim > 2 and a.ndim < 2):
        return None
    if a.ndim == 1:
        made = matmul(a[None], b if b.ndim > 1 else b[:, None])
        return None if made is None else made.reshape(made.shape[1:] if b.ndim > 1 else ())
    if b.ndim == 1:
        made = matmul(a, b[:, None])
        return None if made is None else made.reshape(made.shape[:-1])
    if a.ndim == b.ndim == 2:
        return product(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    one, other = (contiguous(np.broadcast_to(m, (*lead, *m.shape[-2:]))).reshape((-1, *m.shape[-2:])) for m in (a, b))
    made = product(one, other)
    return None if made is None else made.reshape((*lead, *made.shape[-2:]))


@word("vdot")
def vdot(a: Any, b: Any) -> Any:
    """The sum of the products of all elements, the first ones conjugated."""
    if type(b) is not DeviceArray or a.dtype != b.dtype:
        return None
    return reduced("sum", conjugate(contiguous(a).reshape(-1)) * contiguous(b).reshape(-1), None, False)


@word("vecdot")
def vecdot(a: Any, b: Any) -> Any:
    """The sums of products along the last dimension, the first factors conjugated."""
    if type(b) is not DeviceArray or a.dtype != b.dtype:
        return None
    return reduced("sum", conjugate(a) * b, -1, False)


# ------------------------------------------------------------------ numbers, bins and places


def inside(index: Any, size: int) -> bool:
    """True if all indices are at least zero and below a size; the device is waited for."""
    if not index.size:
        return True
    low, high = ((index if index.dtype in (INT32, INT64) else copied(index, INT64)).min(), index.max())
    return bool(((low >= 0) & (high < size)).item())


@word("bincount")
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each integer occurs; the largest is read, and the device waited for."""
    return counted_by(x, weights, minlength)


@word("diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of neighbours in a row."""
    return a[1:] - a[:-1] if n == 1 and a.ndim == 1 and a.dtype != BOOL else None


@word("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Every element several times, or as often as numbers say, whose sum is read, and the device waited for."""
    if axis is None:
        a, axis = contiguous(a).reshape(-1), 0
    if are_numbers(repeats) and repeats.shape == (0,) == a.shape[axis : axis + 1]:
        return a.copy()
    if are_numbers(repeats) and repeats.shape == (a.shape[axis],):
        ends = running(repeats, 0, INT64, False)
        at = places_among(ends, ramp(int(ends[-1].item()), a.device), True)
        return index_select(a, axis % a.ndim, at)
    if type(repeats) is not int:
        return None
    axis = axis % a.ndim + 1
    shape = (*a.shape[:axis], repeats, *a.shape[axis:])
    wide = np.broadcast_to(np.expand_dims(a, axis), shape)
    return contiguous(wide).reshape((*a.shape[: axis - 1], a.shape[axis - 1] * repeats, *a.shape[axis:]))


@word("isneginf")
def isneginf(x: Any) -> Any:
    """Where elements are minus infinity."""
    return x == -np.inf


@word("lexsort")
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The order by the last key, then by the one before it, and so on."""
    rows = [key for key in keys]
    if not rows or any([type(key) is not DeviceArray or key.ndim != 1 or not takes(key, 0) for key in rows]):
        return None
    order = argsort(rows[0], 0)
    for key in rows[1:]:
        order = taken(order, argsort(taken(contiguous(key), order), 0))
    return order


@word("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: None = None) -> Any:
    """Where values belong in a sorted row, or in the row of a matrix beside them."""
    v = numbers_there(v, a.device)
    if a.dtype != v.dtype and a.dtype.kind in "iu" and v.dtype.kind in "iu":
        a, v = copied(a, INT64), copied(v, INT64)
    if sorter is not None or a.dtype != v.dtype or not takes(a, -1) or a.ndim != 1:
        return None
    return places_among(contiguous(a), contiguous(v), side == "right")


@word("isin")
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether elements are among others."""
    if type(test_elements) is not DeviceArray or element.dtype != test_elements.dtype or not element.size:
        return None
    row = sort(test_elements, None) if test_elements.size else None
    at = None if row is None else places_among(row, contiguous(element), False)
    near = None if at is None else taken(row, np.minimum(at, row.size - 1))
    if near is None:
        return None
    wide, other = comparable(near), comparable(contiguous(element))
    return wide != other if invert else wide == other


@word("flatnonzero")
def flatnonzero(a: Any) -> Any:
    """The places of elements that are not zero, counted in row-major order."""
    at = places_of(truth_of(contiguous(a).reshape(-1)))
    return None if at is None else at[:, 0]
