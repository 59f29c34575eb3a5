"""Builtins that make views which a shape says all about: another shape, and stretched dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.kernels.jit.language.code import Value
from pullback.kernels.jit.runtime.calls import DESCR, HEAD, WRITEABLE
from pullback.kernels.jit.runtime.entries import C, Entry, Given, again

MOST = 32
"""Dimensions a view may have here."""
ITEMS = tuple.__basicsize__
"""Where a tuple keeps its items: from Python 3.14 on its hash stands before them."""


def window(entry: Entry, given: Given, many: Value, sizes: Value, steps: Value | str) -> Value:
    """A view of an array, from its first element on."""
    code = entry.code
    descr = entry.field(given.object, DESCR)
    for name in ("Py_IncRef", "Py_DecRef"):
        code.declare(name, "void", "ptr")
    code.do(f"call void @Py_IncRef({descr})")
    data = code.emit(f"inttoptr {given.data} to ptr", "ptr")
    made = entry.new_array(f"{descr}, {code.convert(many, 'i32')}, {sizes}, {steps}, {data}, {given.flags & WRITEABLE}")
    code.do(f"call void @Py_IncRef({given.object})")
    failed = code.call("PyArray_SetBaseObject", "i32", made, given.object)
    with code.when(failed < 0):
        code.do(f"call void @Py_DecRef({made})")
        code.do("br label %raise")
        code.block(code.label())
    return made


def shape_argument(entry: Entry) -> tuple[Value, Value]:
    """The second argument, a tuple, and how many items it has, which are not too many."""
    shape = entry.argument(1, "tuple")
    many = entry.code.load(shape, HEAD // 8, "i64")
    entry.require(many <= MOST)
    return shape, many


def size_at(entry: Entry, shape: Value, axis: Value) -> Value:
    """One of the sizes; what is no int, negative or too large is handed on."""
    code = entry.code
    item = code.emit(f"load ptr, {code.at(shape, axis + ITEMS // 8, 'ptr')}", "ptr")
    entry.require_class(item, "int")
    size = code.call("PyLong_AsLongLong", "i64", item)
    code.declare("PyErr_Clear", "void")
    with code.when(size < 0):  # -1 may be an error
        code.do("call void @PyErr_Clear()")
    entry.require(size >= 0)
    return size


def viewing(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin that gives a row-major array of any dtype another shape, a tuple."""
    note = "a view in another shape"
    if (found := again("viewing", note, otherwise)) is not None:
        return found
    entry = Entry("viewing", 2)
    code = entry.code
    given = entry.any_array(0)
    entry.require(given.lies(C))
    shape, many = shape_argument(entry)
    sizes = code.stack(MOST, "i64")
    have, wanted = code.variable(code.const(1, "i64")), code.variable(code.const(1, "i64"))
    with code.loop(0, code.convert(given.ndim, "i64")) as axis:
        size = code.load(given.dims, axis, "i64")
        entry.require(size > 1)  # of one element NumPy does not know the stride torch would give it
        have.set(have.get() * size)
    with code.loop(0, many) as axis:
        size = size_at(entry, shape, axis)
        entry.require(size <= have.get())  # so that the product cannot overflow
        code.store(size, sizes, axis)
        wanted.set(wanted.get() * size)
        entry.require(wanted.get() <= have.get())
    entry.require(code.compare("eq", have.get(), wanted.get()))
    made = window(entry, given, many, sizes, "ptr null")
    return entry.builtin(made, note, otherwise)


def stretching(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin that stretches an array of any dtype to a shape, a tuple, without copying."""
    note = "a view stretched to a shape"
    if (found := again("stretching", note, otherwise)) is not None:
        return found
    entry = Entry("stretching", 2)
    code = entry.code
    given = entry.any_array(0)
    shape, many = shape_argument(entry)
    lead = many - code.convert(given.ndim, "i64")
    entry.require(lead >= 0)
    sizes, steps = code.stack(MOST, "i64"), code.stack(MOST, "i64")
    with code.loop(0, many) as axis:
        size = size_at(entry, shape, axis)
        code.store(size, sizes, axis)
        code.store(code.const(0, "i64"), steps, axis)
        entry.require((axis >= lead) | code.compare("ne", size, 1))  # whose stride torch chooses otherwise
        with code.when(axis >= lead):
            have = code.load(given.dims, axis - lead, "i64")
            same = code.compare("eq", have, size)
            entry.require(same | code.compare("eq", have, 1))
            code.store(code.select(same, code.load(given.strides, axis - lead, "i64"), 0), steps, axis)
    made = window(entry, given, many, sizes, steps)
    return entry.builtin(made, note, otherwise)
