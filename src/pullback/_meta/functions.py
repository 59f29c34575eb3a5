"""The rules of NumPy's functions that choose, order, reduce and multiply."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._meta import making, rules
from pullback._meta.array import MetaArray, NoValues, new_like
from pullback._meta.rules import axes_of, called, facts, is_meta, laid_out, reduced, rule, shape_of, unanswered
from pullback._runtime.messages import NO_META_VALUES

DEFAULT = np.dtype(np.float64)
LONG = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


# ------------------------------------------------------------------ choosing


@rule()
def where(condition: Any, *choices: Any) -> Any:
    """One of two, element by element."""
    if not choices:
        raise NoValues(NO_META_VALUES)
    if not is_meta((condition, *choices)):
        return np.where(condition, *choices)
    shape = np.broadcast_shapes(shape_of(condition), *[shape_of(c) for c in choices])
    kind = np.result_type(*[c.dtype if isinstance(c, (np.ndarray, np.generic)) else c for c in choices])
    return laid_out(shape, (condition, *choices), kind)


@rule()
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements by number."""
    if not is_meta(a) and not is_meta(indices):
        return np.take(a, indices, axis, out, mode)  # type: ignore[call-overload]
    a = facts(a).ravel() if axis is None else facts(a)
    (dim,) = axes_of(0 if axis is None else axis, a.ndim)
    return MetaArray((*a.shape[:dim], *shape_of(indices), *a.shape[dim + 1 :]), a.dtype) if out is None else out


@rule()
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Elements by number along a dimension."""
    if axis is None:
        return MetaArray(shape_of(indices), facts(arr).dtype)
    (dim,) = axes_of(axis, arr.ndim)
    shape = np.broadcast_shapes(tuple([1 if d == dim else n for d, n in enumerate(arr.shape)]), shape_of(indices))
    return MetaArray(shape, facts(arr).dtype)


@rule()
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """One of several arrays, element by element."""
    return MetaArray(np.broadcast_shapes(shape_of(a), *[shape_of(c) for c in choices]), facts(choices[0]).dtype)


@rule("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    """Numbers within limits."""
    if not is_meta((a, a_min, a_max)):
        return np.clip(a, a_min, a_max, out, **options)
    low = a if a_min is None else called(np.maximum, a, a_min, out=out)
    return low if a_max is None else called(np.minimum, low, a_max, out=out)


@rule("nonzero", "flatnonzero", "argwhere", "unique", "bincount", "compress", "extract", "array_equal", "allclose",
      "histogram", "histogramdd")  # fmt: skip
def of_values(*args: Any, **kwargs: Any) -> Any:
    """What depends on the elements."""
    raise NoValues(NO_META_VALUES)


# ------------------------------------------------------------------ ordering


@rule()
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, stable: Any = None) -> Any:
    """The elements in order."""
    return MetaArray((a.size,), a.dtype) if axis is None else new_like(a, a.dtype) if is_meta(a) else np.sort(a, axis)


@rule("argsort", "argpartition")
def argsort(a: Any, *args: Any, axis: Any = -1, **options: Any) -> Any:
    """The numbers of the elements in order."""
    if not is_meta(a):
        return np.argsort(a, *args, **({"axis": axis} if not args else {}), **options)
    return new_like(a, LONG, "C")


@rule()
def partition(a: Any, *args: Any, **options: Any) -> Any:
    """The elements partly in order."""
    return new_like(a, a.dtype)


@rule()
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where elements belong."""
    return np.searchsorted(a, v, side, sorter) if not is_meta((a, v)) else MetaArray(shape_of(v), LONG)  # type: ignore[call-overload]


@rule("isin")
def isin(element: Any, test_elements: Any, **options: Any) -> Any:
    """Whether elements are among others."""
    return MetaArray(shape_of(element), BOOL)


# ------------------------------------------------------------------ reducing


def positions(name: str) -> None:
    """The rule of a reduction to positions."""

    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if not is_meta(a):
            return getattr(np, name)(a, axis, out, keepdims=keepdims)
        gone = axes_of(axis, a.ndim)
        if 0 in [a.shape[d] for d in gone]:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        return reduced(a, axis, keepdims, LONG, out)

    rule(name)(find)


for _name in ("argmax", "argmin", "nanargmax", "nanargmin"):
    positions(_name)


@rule()
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """How many are not zero."""
    return reduced(a, axis, keepdims, LONG) if is_meta(a) else np.count_nonzero(a, axis, keepdims=keepdims)


REDUCTIONS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "amax": np.maximum,
              "amin": np.minimum, "all": np.logical_and, "any": np.logical_or}  # fmt: skip


def reduction(name: str, ufunc: Any) -> None:
    """The rule of a reduction, as a function and as a method."""

    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any
    ) -> Any:
        if not is_meta(a):
            return ufunc.reduce(a, axis, dtype, out, keepdims, **options)
        made = rules.reduce(ufunc, a, axis, dtype, out, keepdims, **options)
        made.expected = name == "all"
        return made

    def choose(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
        return reduce(a, axis, None, out, keepdims, **options)

    chosen = reduce if name in ("sum", "prod") else choose
    rule(name)(chosen)
    setattr(MetaArray, name, chosen)


for _name, _ufunc in REDUCTIONS.items():
    reduction(_name, _ufunc)


@rule("mean", "nanmean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """The mean."""
    if not is_meta(a):
        return np.mean(a, axis, dtype, out, keepdims)
    kind = a.dtype if dtype is None and a.dtype.kind in "fcV" else DEFAULT if dtype is None else dtype
    return reduced(a, axis, keepdims, kind, out)


@rule("var", "std")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: Any = False, **options: Any
) -> Any:
    """The variance."""
    found = mean(a, axis, dtype, out, keepdims)
    return found if found.dtype.kind != "c" else MetaArray(found.shape, found.real.dtype)


@rule("nansum")
def nansum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """The sum of what is a number."""
    return rules.reduce(np.add, a, axis, dtype, out, keepdims)


@rule("nanmax", "nanmin", "median", "nanmedian", "ptp")
def nanmax(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """The extremum of what is a number."""
    return reduced(a, axis, keepdims, a.dtype, out)


def running(name: str, ufunc: Any) -> None:
    """The rule of running results."""

    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        a = facts(a).ravel() if axis is None else facts(a)
        if not is_meta(a):
            return getattr(np, name)(a, axis, dtype, out)
        return rules.accumulate(ufunc, a, 0 if axis is None else axis, dtype, out)

    rule(name)(scan)
    setattr(MetaArray, name, scan)


running("cumsum", np.add)
running("cumprod", np.multiply)
METHODS = {
    "mean": mean, "var": var, "std": var, "argmax": rules.RULES["argmax"], "argmin": rules.RULES["argmin"],
    "argsort": argsort, "argpartition": argsort, "clip": clip, "repeat": making.repeat, "searchsorted": searchsorted,
    "nonzero": of_values, "conj": lambda self: called(np.conjugate, self), "dot": lambda self, other: dot(self, other),
    "trace": lambda self, *args: trace(self, *args), "round": lambda self, *args: new_like(self, self.dtype),
}  # fmt: skip
for _name, _rule in METHODS.items():
    setattr(MetaArray, _name, _rule)
MetaArray.conjugate = MetaArray.conj  # type: ignore[attr-defined]


@rule("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """Whether elements are close."""
    return MetaArray(np.broadcast_shapes(shape_of(a), shape_of(b)), BOOL)


def alike(name: str, kind: Any = None) -> None:
    """The rule of a pointwise function that is no ufunc."""

    def each(a: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if not is_meta(a):
            return getattr(np, name)(a, *args, **kwargs)
        if out is not None:
            return out
        own = kind or (a.real.dtype if name == "angle" else a.dtype)
        return laid_out(a.shape, (a,), own)

    rule(name)(each)


for _name in ("isposinf", "isneginf"):
    alike(_name, BOOL)
for _name in ("nan_to_num", "real_if_close", "sinc", "i0", "round", "around", "fix", "angle", "unwrap"):
    alike(_name)


# ------------------------------------------------------------------ products


@rule()
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product of vectors or matrices."""
    if not shape_of(a) or not shape_of(b):
        return called(np.multiply, a, b, out=out)
    return called(np.matmul, a, b, out=out)


@rule()
def vdot(a: Any, b: Any) -> Any:
    """The product of vectors, the first conjugated."""
    return MetaArray((), np.result_type(facts(a).dtype, facts(b).dtype))


@rule("inner")
def inner(a: Any, b: Any) -> Any:
    """The products along the last dimension."""
    return MetaArray((*shape_of(a)[:-1], *shape_of(b)[:-1]), np.result_type(facts(a).dtype, facts(b).dtype))


@rule("outer")
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """All products."""
    return MetaArray((math.prod(shape_of(a)), math.prod(shape_of(b))), np.result_type(facts(a).dtype, facts(b).dtype))


@rule("kron")
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product."""
    raise unanswered("kron")


@rule("tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Products summed over dimensions."""
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = [[x] if isinstance(x, int) else list(x) for x in axes]
    left, right = [x % a.ndim for x in left], [x % b.ndim for x in right]
    shape = [n for d, n in enumerate(a.shape) if d not in left] + [n for d, n in enumerate(b.shape) if d not in right]
    return MetaArray(shape, np.result_type(a.dtype, b.dtype))


@rule()
def einsum(subscripts: str, *operands: Any, out: Any = None, **options: Any) -> Any:
    """Products and sums by letters."""
    left, _, right = subscripts.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    batch: tuple[int, ...] = ()
    for letters, operand in zip(left.split(","), operands, strict=True):
        before, dots, after = letters.partition("...")
        shape = shape_of(operand)
        if dots:
            batch = np.broadcast_shapes(batch, shape[len(before) : len(shape) - len(after)])
            shape = (*shape[: len(before)], *shape[len(shape) - len(after) :])
        for letter, n in zip(before + after, shape, strict=True):
            if sizes.setdefault(letter, n) == 1:
                sizes[letter] = n
            elif n not in (1, sizes[letter]):
                raise ValueError("operands could not be broadcast together with remapped shapes")
    before, dots, after = right.partition("...")
    kind = np.result_type(*[facts(o).dtype for o in operands])
    made = MetaArray((*[sizes[c] for c in before], *(batch if dots else ()), *[sizes[c] for c in after]), kind)
    if out is not None:
        out[...] = made
        return out
    return made


@rule("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal."""
    return rules.reduce(np.add, a.diagonal(offset, axis1, axis2), -1, dtype)


# ------------------------------------------------------------------ linear algebra


@rule("linalg.inv")
def inv(a: Any) -> Any:
    """The inverse of matrices."""
    return MetaArray(a.shape, a.dtype)


@rule("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The size of vectors."""
    return reduced(x, axis, keepdims, x.real.dtype)
