"""Entries of builtins that make their result: they look at their arguments and hand on what they do not take.

    entry = Entry("twice", 1)
    x = entry.array(0, "float32")                   # row-major
    result = entry.result("float32", x.ndim, x.dims)
    ...                                             # code that fills entry.data(result)
    twice = entry.builtin(result, "2 * x", otherwise)

    twice = again("twice", "2 * x", otherwise)      # where it has been compiled before

`otherwise` is called with the same arguments where something required is not there. It is the `self` of the builtin, so
that one compiled entry serves several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls
from pullback.kernels.jit.runtime.calls import ALIGNED, DATA, DESCR, DIMS, FLAGS, HEAD, NDIM, STRIDES, refuse_unless

C, F = 0x1, 0x2
"""NumPy's flags of row-major and column-major arrays."""
known: dict[str, int] = {}
"""The addresses of entries by name."""


class Given(NamedTuple):
    """What an entry knows of an array."""

    object: Value
    dtype: str
    flags: Value
    ndim: Value
    dims: Value
    """Where its sizes are."""
    strides: Value
    """Where its strides are, in bytes."""
    data: Value
    """The address of its first element, a number."""

    def lies(self, order: int) -> Value:
        """Whether it is row-major (C) or column-major (F)."""
        return self.flags.code.compare("ne", self.flags & order, 0)

    def shape(self, ndim: int) -> list[Value]:
        """Its sizes; it has to have so many dimensions."""
        code = self.flags.code
        refuse_unless(code, code.compare("eq", self.ndim, ndim))
        return [code.load(self.dims, d, "i64") for d in range(ndim)]

    def steps(self, ndim: int) -> list[Value]:
        """Its strides in elements, once its shape is known."""
        code = self.flags.code
        return [code.load(self.strides, d, "i64") // SIZES[ELEMENTS[self.dtype]] for d in range(ndim)]

    def size(self) -> Value:
        """How many elements it has."""
        code = self.flags.code
        size = code.variable(code.const(1, "i64"))
        with code.loop(0, code.convert(self.ndim, "i64")) as axis:
            size.set(size.get() * code.load(self.dims, axis, "i64"))
        return size.get()


class Entry:
    """An entry being written: `name_call(self, argv, argc)`."""

    def __init__(self, name: str, *counts: int) -> None:
        """`counts` says how many arguments there may be."""
        self.name = name
        self.code = Code(f"{name}_call")
        self.argv, self.argc = Value(self.code, "%argv", "ptr"), Value(self.code, "%argc", "i64")
        self.outside = {"object_ndarray"}
        self.code.do("br label %start")
        self.code.block("start")
        right = [self.code.compare("eq", self.argc, count) for count in counts]
        self.require(right[0] if len(right) == 1 else right[0] | right[1])

    def require(self, condition: Value) -> None:
        """Hand the call on unless the condition holds."""
        refuse_unless(self.code, condition)

    def argument(self, i: int, kind: str) -> Value:
        """An argument, which has to be of a class."""
        value = self.code.emit(f"load ptr, {self.code.at(self.argv, i, 'ptr')}", "ptr")
        self.require_class(value, kind)
        return value

    def require_class(self, value: Value, kind: str) -> None:
        """Hand the call on unless a value is of this very class."""
        self.outside.add(f"object_{kind}")
        self.require(self.code.emit(f"icmp eq {self.field(value, HEAD - 8)}, @object_{kind}", "i1"))

    def field(self, value: Value, at: int) -> Value:
        """A pointer that an object keeps at a place."""
        return self.code.emit(f"load ptr, {self.code.at(value, at // 8, 'i64')}", "ptr")

    def any_array(self, i: int) -> Given:
        """An argument that is an array of any dtype."""
        code, value = self.code, self.argument(i, "ndarray")
        flags, ndim = code.load(value, FLAGS // 4, "i32"), code.load(value, NDIM // 4, "i32")
        return Given(value, "", flags, ndim, self.field(value, DIMS), self.field(value, STRIDES), self.address(value))

    def array(self, i: int, dtype: str, strided: bool = False) -> Given:
        """An argument that is an aligned array of a dtype, row-major unless `strided`."""
        given = self.any_array(i)._replace(dtype=dtype)
        self.require(self.code.emit(f"icmp eq {self.field(given.object, DESCR)}, {self.symbol_of(dtype)}", "i1"))
        wanted = ALIGNED | (0 if strided else C)
        self.require(self.code.compare("eq", given.flags & wanted, wanted))
        return given

    def symbol_of(self, dtype: str) -> str:
        """What a dtype is called in the code."""
        if dtype not in ELEMENTS:
            raise TypeError(f"builtins know no dtype {dtype!r}")
        self.outside.add(f"dtype_{dtype}")
        return f"@dtype_{dtype}"

    def same(self, ndim: Value, numbers: Value, others: Value | None) -> None:
        """Require the same numbers, zeros if no others are given, for every dimension."""
        code = self.code
        every = code.variable(code.const(1, "i1"))
        with code.loop(0, code.convert(ndim, "i64")) as axis:
            other = 0 if others is None else code.load(others, axis, "i64")
            every.set(every.get() & code.compare("eq", code.load(numbers, axis, "i64"), other))
        self.require(every.get())

    def result(self, dtype: str, ndim: Value | int, dims: Value | Sequence[Value], order: int = C) -> Value:
        """A new array; its sizes lie somewhere or are given. From here on nothing can be required any more."""
        code, symbol = self.code, self.symbol_of(dtype)
        if not isinstance(dims, Value):
            sizes = code.stack(max(len(dims), 1), "i64")
            for nr, size in enumerate(dims):
                code.store(size, sizes, nr)
            dims = sizes
        rank = ndim if isinstance(ndim, Value) else code.const(ndim, "i32")
        code.declare("Py_IncRef", "void", "ptr")
        code.do(f"call void @Py_IncRef(ptr {symbol})")
        return self.new_array(f"ptr {symbol}, {rank}, {dims}, ptr null, ptr null, i32 {order & F}")

    def new_array(self, described: str) -> Value:
        """What NumPy makes of a description."""
        code = self.code
        code.declare("PyArray_NewFromDescr", "ptr", "ptr", "ptr", "i32", "ptr", "ptr", "ptr", "i32", "ptr")
        made = code.emit(f"call ptr @PyArray_NewFromDescr(ptr @object_ndarray, {described}, ptr null)", "ptr")
        code.do(f"br {code.emit(f'icmp ne {made}, null', 'i1')}, label %go, label %raise")
        code.block("go")
        return made

    def data(self, array: Value) -> Value:
        """Where the elements of an array are."""
        return self.field(array, DATA)

    def address(self, array: Value) -> Value:
        """The same as a number."""
        return self.code.load(array, DATA // 8, "i64")

    def builtin(
        self, result: Value, note: str, otherwise: Callable[..., Any], loops: Sequence[Code] = ()
    ) -> Callable[..., Any]:
        """The builtin, together with the functions it calls."""
        code = self.code
        code.do(f"ret {result}")
        code.block("raise")
        code.do("ret ptr null")
        code.block("refuse")
        code.declare("PyObject_Vectorcall", "ptr", "ptr", "ptr", "i64", "ptr")
        code.do("%other = tail call ptr @PyObject_Vectorcall(ptr %self, ptr %argv, i64 %argc, ptr null)")
        code.do("ret ptr %other")
        declared, texts = set(code.declared), [f"@{symbol} = external global i8" for symbol in sorted(self.outside)]
        for loop in loops:
            declared |= loop.declared
            loop.declared = set()
            texts.append(loop.text())
        texts += [f"define ptr @{self.name}_call(ptr %self, ptr %argv, i64 %argc) {{", *code.entry, *code.lines, "}\n"]
        text = "\n".join([*sorted(declared), *texts])
        (known[self.name],) = engine.load(text, [f"{self.name}_call"], self.name)
        calls.compiled[self.name] = calls.Compiled(self.name, engine.packed(text), note)
        return calls.builtin(known[self.name], self.name, otherwise)


def again(name: str, note: str, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
    """The builtin of an entry that has been compiled, here or by an earlier process; None if it has to be written.

    Its name says all about it.
    """
    if name not in known:
        found = engine.recall(name, [f"{name}_call"])
        if found is None:
            return None
        (known[name],), packed = found
        calls.compiled[name] = calls.Compiled(name, packed, note)
    return calls.builtin(known[name], name, otherwise)
