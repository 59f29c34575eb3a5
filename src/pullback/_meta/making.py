"""The rules of NumPy's functions that make, look at and join arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._meta import rules
from pullback._meta.array import MetaArray, NoValues, empty_in, new_like, order_of
from pullback._meta.rules import SMALL, axes_of, facts, is_meta, rule, shape_of, unanswered
from pullback._runtime.messages import NO_META_VALUES

DEFAULT = np.dtype(np.float64)
BOOL = np.dtype(np.bool_)


# ------------------------------------------------------------------ making


def sized(shape: Any) -> tuple[int, ...]:
    """A shape, given as one number or several."""
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple([int(n) for n in shape])
    if any(n < 0 for n in shape):
        raise ValueError("negative dimensions are not allowed")
    return shape


@rule("empty", "zeros", "ones")
def empty(shape: Any, dtype: Any = float, order: str = "C", **options: Any) -> MetaArray:
    """A new array."""
    shape = sized(shape)
    return empty_in(shape, list(range(len(shape)))[::-1], dtype) if order == "F" else MetaArray(shape, dtype)


@rule()
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **options: Any) -> MetaArray:
    """A new array of one value."""
    return empty(shape, facts(fill_value).dtype if dtype is None else dtype, order)


@rule("empty_like", "zeros_like", "ones_like")
def empty_like(prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None) -> MetaArray:
    """A new array like another."""
    prototype = facts(prototype)
    return new_like(
        prototype, prototype.dtype if dtype is None else dtype, order, None if shape is None else sized(shape)
    )


@rule()
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    """A new array of one value like another."""
    return empty_like(a, dtype, order, subok, shape)


@rule()
def arange(*args: Any, dtype: Any = None, **options: Any) -> Any:
    """Numbers in order: in truth where they are few, since kernels count with them."""
    count = math.ceil((args[1] - args[0]) / (args[2] if len(args) > 2 else 1)) if len(args) > 1 else math.ceil(args[0])
    if count <= SMALL:
        return np.arange(*args, dtype=dtype)
    return MetaArray((count,), np.result_type(*args) if dtype is None else dtype)


@rule()
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None
) -> Any:
    """Numbers at equal distances."""
    return MetaArray((num,), DEFAULT if dtype is None else dtype)


@rule()
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: str = "C") -> Any:
    """Ones on a diagonal."""
    return MetaArray((N, N if M is None else M), dtype)


@rule("asarray", "asanyarray", "array", "ascontiguousarray")
def asarray(a: Any, dtype: Any = None, order: Any = None, copy: Any = None, ndmin: int = 0, **options: Any) -> Any:
    """An array of anything."""
    if type(a) is MetaArray:
        return a if dtype is None or np.dtype(dtype) == a.dtype else a.astype(dtype)
    if is_meta(a):
        return stack(list(a)) if dtype is None else stack(list(a)).astype(dtype)
    return np.asarray(a, dtype) if order is None else np.asarray(a, dtype, order)


@rule()
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """An array in row-major order."""
    a = asarray(a, dtype)
    if type(a) is not MetaArray:
        return np.ascontiguousarray(a)
    return (a if a.ndim else a.reshape(1)) if a.flags.c_contiguous else MetaArray(a.shape, a.dtype)


@rule()
def array(a: Any, dtype: Any = None, copy: Any = True, order: str = "K", ndmin: int = 0, **options: Any) -> Any:
    """A copy of anything, as an array."""
    if not is_meta(a):
        return np.array(a, dtype, copy=copy, order=order, ndmin=ndmin)  # type: ignore[call-overload]
    a = asarray(a, dtype)
    return new_like(a, a.dtype, order) if copy else a


@rule()
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A copy."""
    return new_like(facts(a), facts(a).dtype, order)


@rule()
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Nothing is written, but it must fit."""
    if type(dst) is not MetaArray:
        if is_meta(src) or is_meta(where):
            raise NoValues(NO_META_VALUES)
        np.copyto(dst, src, casting=casting, where=where)  # type: ignore[arg-type]
    else:
        dst[...] = src


@rule("putmask", "place", "put", "put_along_axis", "fill_diagonal")
def nothing(*args: Any, **kwargs: Any) -> None:
    """Writes nothing."""
    if not is_meta(args[0]):
        raise NoValues(NO_META_VALUES)


# ------------------------------------------------------------------ views


@rule()
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """An array stretched to a shape."""
    if not is_meta(array):
        return np.broadcast_to(array, shape)
    return array.through(lambda a: np.broadcast_to(a, sized(shape)))


@rule()
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Arrays stretched to their common shape."""
    shape = np.broadcast_shapes(*[shape_of(a) for a in args])
    return tuple([broadcast_to(facts(a), shape) for a in args])


def looking(name: str) -> None:
    """The rule of a function that only makes views."""

    def look(a: Any, *args: Any, **kwargs: Any) -> Any:
        view = lambda array: getattr(np, name)(array, *args, **kwargs)
        return a.through(view) if is_meta(a) else view(a)

    rule(name)(look)


for _name in ("transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze", "diagonal", "flip", "rollaxis",
              "atleast_1d", "atleast_2d", "flipud", "fliplr", "rot90"):  # fmt: skip
    looking(_name)


@rule("lib.stride_tricks.as_strided")
def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """Another window onto memory."""
    if not is_meta(x):
        return np.lib.stride_tricks.as_strided(x, shape, strides)
    return x.seen_as(x.shape if shape is None else shape, x.strides if strides is None else strides)


@rule("lib.stride_tricks.sliding_window_view")
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, **options: Any) -> Any:
    """Windows that slide over an array."""
    view = lambda a: np.lib.stride_tricks.sliding_window_view(a, window_shape, axis)
    return x.through(view) if is_meta(x) else view(x)


@rule()
def reshape(a: Any, shape: Any = None, order: str = "C", **options: Any) -> Any:
    """The elements in another shape."""
    return facts(a).reshape(shape, order=order)


@rule()
def ravel(a: Any, order: str = "C") -> Any:
    """The elements in a row."""
    return facts(a).ravel(order)


@rule("shape")
def shape(a: Any) -> Any:
    """The shape."""
    return shape_of(a)


@rule("ndim")
def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(shape_of(a))


@rule("size")
def size(a: Any, axis: int | None = None) -> int:
    """The number of elements."""
    return math.prod(shape_of(a)) if axis is None else shape_of(a)[axis]


@rule("may_share_memory", "shares_memory")
def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """True if two arrays are windows onto one memory."""
    if not (is_meta(a) and is_meta(b)):
        return False if is_meta(a) or is_meta(b) else bool(np.may_share_memory(a, b))
    if (a if a.base is None else a.base) is not (b if b.base is None else b.base):
        return False
    return bool(np.may_share_memory(placed(a), placed(b)))


ROOM = np.empty(1, np.uint8)


def placed(array: MetaArray) -> Any:
    """An array of NumPy's, of which no element may be touched, as far into its memory as another."""
    start = ROOM.__array_interface__["data"][0] + array.address
    outline = array.outline()
    place: Any = type("Place", (), {})()
    place.__array_interface__ = {**outline.__array_interface__, "data": (start, False), "strides": array.strides}
    return np.asarray(place)


@rule()
def result_type(*args: Any) -> Any:
    """The dtype all promote to."""
    return np.result_type(*[a.dtype if is_meta(a) else a for a in args])


@rule()
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a cast is allowed."""
    return np.can_cast(from_.dtype if is_meta(from_) else from_, to, casting)


@rule("iscomplexobj")
def iscomplexobj(x: Any) -> bool:
    """True for complex arrays."""
    return facts(x).dtype.kind == "c"


# ------------------------------------------------------------------ joining


@rule()
def concatenate(given: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays one after another."""
    parts = [facts(a) for a in given]
    if not any([is_meta(a) for a in parts]) and not is_meta(out):
        return np.concatenate(parts, axis, out)
    if axis is None:
        parts, axis = [a.ravel() for a in parts], 0
    (dim,) = axes_of(axis, parts[0].ndim)
    shape = list(parts[0].shape)
    for other in parts[1:]:
        rest = [n for d, n in enumerate(other.shape) if d != dim]
        if other.ndim != len(shape) or rest != [n for d, n in enumerate(shape) if d != dim]:
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
    shape[dim] = sum([a.shape[dim] for a in parts])
    if out is not None:
        out[...] = MetaArray(shape, out.dtype)
        return out
    kind = np.result_type(*[a.dtype for a in parts]) if dtype is None else dtype
    orders = {tuple(order_of(a)) for a in parts if a.size}
    return empty_in(shape, orders.pop(), kind) if len(orders) == 1 else MetaArray(shape, kind)


@rule()
def stack(given: Any, axis: int = 0, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays side by side in a new dimension."""
    parts = [facts(a) for a in given]
    if len({a.shape for a in parts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    (dim,) = axes_of(axis, parts[0].ndim + 1)
    made = [a.reshape((*a.shape[:dim], 1, *a.shape[dim:])) for a in parts]
    return concatenate(made, dim, out, dtype)


@rule()
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element several times."""
    if not is_meta(a) and not is_meta(repeats):
        return np.repeat(a, repeats, axis)
    a = facts(a).ravel() if axis is None else facts(a)
    dim = 0 if axis is None else axis % a.ndim
    if is_meta(repeats):
        raise NoValues(NO_META_VALUES)
    times = np.asarray(repeats)
    total = a.shape[dim] * int(times.reshape(-1)[0]) if times.size == 1 else int(times.sum())
    return MetaArray((*a.shape[:dim], total, *a.shape[dim + 1 :]), a.dtype)


@rule()
def tile(A: Any, reps: Any) -> Any:
    """An array several times."""
    shape, reps = shape_of(A), (reps,) if isinstance(reps, int) else tuple(reps)
    ndim = max(len(shape), len(reps))
    shape, reps = (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(reps)) + reps
    return MetaArray([n * r for n, r in zip(shape, reps, strict=True)], facts(A).dtype)


@rule()
def pad(array: Any, pad_width: Any, mode: str = "constant", **options: Any) -> Any:
    """An array with a margin."""
    if not is_meta(array):
        return np.pad(array, pad_width, mode, **options)
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    return MetaArray([n + int(a) + int(b) for n, (a, b) in zip(array.shape, widths, strict=True)], array.dtype)


@rule()
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved around."""
    return new_like(facts(a), facts(a).dtype)


@rule("tril", "triu")
def tril(m: Any, k: int = 0) -> Any:
    """One half of matrices."""
    return new_like(facts(m), facts(m).dtype, "C")


@rule()
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Coordinates of a grid."""
    if not is_meta(xi):
        return np.meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing)
    raise unanswered("meshgrid")


@rule()
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of neighbours."""
    if not is_meta(a):
        return np.diff(a, n, axis)
    dim = axis % a.ndim
    kind = BOOL if a.dtype.kind == "b" else a.dtype
    return MetaArray([max(m - n, 0) if d == dim else m for d, m in enumerate(a.shape)], kind)


# ------------------------------------------------------------------ the class of arrays


class AnyKind(type):
    """`isinstance(x, np.ndarray)` holds for arrays of both kinds."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, np.ndarray)


class ndarray(metaclass=AnyKind):
    """NumPy's class of arrays, as it is called: a window onto the memory of an array."""

    def __new__(cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None) -> Any:
        if buffer is None:
            return MetaArray(sized(shape), dtype, strides)
        if not is_meta(buffer):
            return np.ndarray(shape, dtype, buffer, offset, strides)
        kind = np.dtype(dtype)
        return buffer.seen_as(
            sized(shape),
            rules.arrays.row_major_strides(shape, kind.itemsize) if strides is None else strides,
            kind,
            offset,
        )


rules.RULES["ndarray"] = ndarray
