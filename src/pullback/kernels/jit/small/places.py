"""Builtins that read or write small row-major arrays where an index says: gather, scatter, and whole slices.

An array is seen as `[outer, size, inner]` around the dimension that the index counts along, and what is read or written
there as `[outer, count, inner]`. The index has a place for each element of that, or one for each of the `count` slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pullback._thresholds import LARGE
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.language.code import Value
from pullback.kernels.jit.runtime.calls import WRITEABLE
from pullback.kernels.jit.runtime.entries import Entry, Given, again


class Lines(NamedTuple):
    """How the elements lie along a dimension, once every place has been found inside of it."""

    outer: Value
    size: Value
    count: Value
    inner: Value
    places: Value
    slices: bool

    @contextmanager
    def each(self) -> Iterator[tuple[Value, Value]]:
        """For every element of `[outer, count, inner]` in turn: its number, and that of its place in the array."""
        code = self.outer.code
        with code.loop(0, self.outer) as line, code.loop(0, self.count) as part, code.loop(0, self.inner) as j:
            i = (line * self.count + part) * self.inner + j
            place = code.load(self.places, part if self.slices else i, "i64")
            yield i, (line * self.size + place) * self.inner + j


def dimension(entry: Entry, i: int, ndim: Value) -> Value:
    """An argument that names one of so many dimensions, counted from the front."""
    code = entry.code
    dim = code.call("PyLong_AsLongLong", "i64", entry.argument(i, "int"))
    code.declare("PyErr_Clear", "void")
    with code.when(code.compare("eq", dim, -1)):  # which is an answer, too: one that is too large is not among them
        failed = code.emit(f"icmp ne {code.call('PyErr_Occurred', 'ptr')}, null", "i1")
        with code.when(failed):
            code.do("call void @PyErr_Clear()")
            code.do("br label %refuse")
            code.block(code.label())
    dim = dim + code.select(dim < 0, ndim, 0)
    entry.require((dim >= 0) & (dim < ndim))
    return dim


def lines(entry: Entry, array: Given, dim: Value, index: Given, moved: Given, slices: bool) -> Lines:
    """Require an index that fits the array and what is moved: sizes equal but along `dim`, places inside of it."""
    code = entry.code
    entry.require(code.compare("eq", moved.ndim, array.ndim))
    entry.require(code.compare("eq", index.ndim, 1) if slices else code.compare("eq", index.ndim, array.ndim))
    outer, inner, fits = (code.variable(code.const(1, kind)) for kind in ("i64", "i64", "i1"))
    with code.loop(0, code.convert(array.ndim, "i64")) as axis:
        have, wanted = code.load(array.dims, axis, "i64"), code.load(moved.dims, axis, "i64")
        same = code.compare("eq", have, wanted) | code.compare("eq", axis, dim)
        if not slices:
            same = same & code.compare("eq", code.load(index.dims, axis, "i64"), wanted)
        fits.set(fits.get() & same)
        outer.set(outer.get() * code.select(axis < dim, have, 1))
        inner.set(inner.get() * code.select(axis > dim, have, 1))
    size, count = code.load(array.dims, dim, "i64"), code.load(moved.dims, dim, "i64")
    if slices:
        fits.set(fits.get() & code.compare("eq", index.size(), count))
    entry.require(fits.get())
    many = outer.get() * count * inner.get()
    entry.require((many > 0) & (many < LARGE))
    places = entry.data(index.object)
    with code.loop(0, count if slices else many) as i:
        place = code.load(places, i, "i64")
        fits.set(fits.get() & (place >= 0) & (place < size))
    entry.require(fits.get())
    return Lines(outer.get(), size, count, inner.get(), places, slices)


def gathering(dtype: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin f(array, dim, index) that reads an element for each place of an index."""
    name, note = f"gathering_{dtype}", "the elements that an index names"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 3)
    code, element = entry.code, ELEMENTS[dtype]
    array, index = entry.array(0, dtype), entry.array(2, "int64")
    at = lines(entry, array, dimension(entry, 1, code.convert(array.ndim, "i64")), index, index, False)
    made = entry.result(dtype, index.ndim, index.dims)
    source, target = entry.data(array.object), entry.data(made)
    with at.each() as (i, place):
        code.store(code.load(source, place, element), target, i)
    return entry.builtin(made, note, otherwise)


def scattering(dtype: str, add: bool, slices: bool, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin f(array, dim, index, values) that writes values into the array, or adds them, one after the other.

    Gives back the array itself.
    """
    name = f"{'adding_to' if add else 'writing_to'}_{'slices' if slices else 'elements'}_{dtype}"
    note = "values brought where an index says"
    if (found := again(name, note, otherwise)) is not None:
        return found
    entry = Entry(name, 4)
    code, element = entry.code, ELEMENTS[dtype]
    array, index, values = entry.array(0, dtype), entry.array(2, "int64"), entry.array(3, dtype)
    entry.require(code.compare("ne", array.flags & WRITEABLE, 0))
    dim = dimension(entry, 1, code.convert(array.ndim, "i64"))
    at = lines(entry, array, dim, index, values, slices)
    end = array.data + at.outer * at.size * at.inner * SIZES[element]
    for other, size in ((index, 8), (values, SIZES[element])):  # what is read must not change meanwhile
        entry.require((other.data + other.size() * size <= array.data) | (other.data >= end))
    source, target = entry.data(values.object), entry.data(array.object)
    code.declare("Py_IncRef", "void", "ptr")
    code.do(f"call void @Py_IncRef({array.object})")
    with at.each() as (i, place):
        value = code.load(source, i, element)
        code.store(code.load(target, place, element) + value if add else value, target, place)
    return entry.builtin(array.object, note, otherwise)
