"""The text of one LLVM function, written by calling methods: values with operators, loops, loads and stores.

A kernel is `void name(ptr args, i64 begin, i64 end, i64 worker)`: the thread pool gives every call a range of items.
Types are LLVM's own words: `float`, `i64`, `ptr`, `<16 x float>`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.kernels.jit.compiler import target

FLOATS = ("float", "double")
Number = int | float


def element_of(type: str) -> str:
    """`float` of `<16 x float>`; other types are their own element."""
    return type[:-1].split(" x ")[1] if type[0] == "<" else type


def count_of(type: str) -> int:
    """16 of `<16 x float>`, 1 of what is no vector."""
    return int(type[1:].split(" x ")[0]) if type[0] == "<" else 1


def like(type: str, element: str) -> str:
    """The type with as many lanes and another element."""
    return f"<{count_of(type)} x {element}>" if type[0] == "<" else element


def mangled(type: str) -> str:
    """How a type is written in the name of an intrinsic: v16f32."""
    element = {"float": "f32", "double": "f64", "ptr": "p0"}.get(element_of(type), element_of(type))
    return f"v{count_of(type)}{element}" if type[0] == "<" else element


def literal(number: Number, element: str) -> str:
    """A constant as LLVM reads it, exact to the bit."""
    if element == "i1":
        return "true" if number else "false"
    if element not in FLOATS:
        return str(int(number))
    value = float(number)
    if element == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) <= 3.4028235677973366e38 else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Value:
    """The name of something computed, with its type; operators write instructions."""

    __slots__ = ("code", "name", "type")

    def __init__(self, code: Code, name: str, type: str) -> None:
        self.code, self.name, self.type = code, name, type

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    def binary(self, other: Value | Number, words: tuple[str, str], swap: bool = False) -> Value:
        """One instruction on two operands of one type; `words` are its names for floats and for integers."""
        code = self.code
        if not isinstance(other, Value):
            other = code.const(other, self.type)
        if other.type != self.type:
            raise TypeError(f"operands of types {self.type} and {other.type}")
        first, second = (other, self) if swap else (self, other)
        word = words[element_of(self.type) not in FLOATS]
        return code.emit(f"{word} {first}, {second.name}", self.type)

    def __add__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fadd contract", "add"))

    __radd__ = __add__

    def __sub__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fsub contract", "sub"))

    def __rsub__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fsub contract", "sub"), True)

    def __mul__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fmul contract", "mul"))

    __rmul__ = __mul__

    def __truediv__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fdiv", "sdiv"))

    def __rtruediv__(self, other: Value | Number) -> Value:
        return self.binary(other, ("fdiv", "sdiv"), True)

    def __floordiv__(self, other: Value | Number) -> Value:
        """Division of integers, towards zero."""
        return self.binary(other, ("", "sdiv"))

    def __mod__(self, other: Value | Number) -> Value:
        return self.binary(other, ("", "srem"))

    def __and__(self, other: Value | Number) -> Value:
        return self.binary(other, ("", "and"))

    def __or__(self, other: Value | Number) -> Value:
        return self.binary(other, ("", "or"))

    def __xor__(self, other: Value | Number) -> Value:
        return self.binary(other, ("", "xor"))

    def __lshift__(self, other: Value | Number) -> Value:
        return self.binary(other, ("", "shl"))

    def __rshift__(self, other: Value | Number) -> Value:
        """Shift that keeps the sign."""
        return self.binary(other, ("", "ashr"))

    def __neg__(self) -> Value:
        if element_of(self.type) in FLOATS:
            return self.code.emit(f"fneg {self}", self.type)
        return 0 - self

    def __lt__(self, other: Value | Number) -> Value:
        return self.code.compare("lt", self, other)

    def __le__(self, other: Value | Number) -> Value:
        return self.code.compare("le", self, other)

    def __gt__(self, other: Value | Number) -> Value:
        return self.code.compare("gt", self, other)

    def __ge__(self, other: Value | Number) -> Value:
        return self.code.compare("ge", self, other)


class Code:
    """A function being written."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.entry: list[str] = []
        """Instructions at the very start: argument loads and stack slots."""
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.functions: list[str] = []
        """Whole functions of the same module that this one calls."""
        self.named: set[str] = set()
        """The names of those that `function` made."""
        self.made = 0
        self.begin, self.end, self.worker = (Value(self, f"%{name}", "i64") for name in ("begin", "end", "worker"))
        self.mask: Value | None = None
        """The lanes that exist, in the rest of a vector loop; loads and stores obey it."""

    # -------------------------------------------------------------- instructions

    def emit(self, text: str, type: str, entry: bool = False) -> Value:
        """An instruction with a result."""
        self.made += 1
        name = f"%v{self.made}"
        (self.entry if entry else self.lines).append(f"  {name} = {text}")
        return Value(self, name, type)

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + text)

    def const(self, number: Number, type: str) -> Value:
        """A constant of any type."""
        text = literal(number, element_of(type))
        return Value(self, f"splat ({element_of(type)} {text})" if type[0] == "<" else text, type)

    def argument(self, index: int, type: str) -> Value:
        """What was passed as the index-th argument. Numbers travel as double, everything else in 64 bits."""
        place = self.emit(f"getelementptr i64, ptr %args, i64 {index}", "ptr", True)
        if type != "float":
            return self.emit(f"load {type}, {place}, align 8", type, True)
        number = self.emit(f"load double, {place}, align 8", "double", True)
        return self.emit(f"fptrunc {number} to float", "float", True)

    def call(self, function: str, type: str, *values: Value) -> Value:
        """The result of a function that is declared by being called."""
        self.declare(function, type, *[value.type for value in values])
        return self.emit(f"call {type} @{function}({', '.join(map(str, values))})", type)

    def function(self, inner: Code) -> None:
        """Make another kernel a function of this module, under this one's name and its own."""
        self.declared |= inner.declared
        self.named.add(inner.name)
        self.functions.append(inner.text(f"{self.name}_{inner.name}", declared=False))

    def address(self, pointer: Value) -> Value:
        """A pointer as a number."""
        return self.emit(f"ptrtoint {pointer} to i64", "i64")

    def declare(self, function: str, type: str, *types: str) -> None:
        """Name a function from elsewhere."""
        self.declared.add(f"declare {type} @{function}({', '.join(types)})")

    def intrinsic(self, name: str, *values: Value) -> Value:
        """An LLVM intrinsic whose operands and result are of one type: fma, sqrt, fabs, ..."""
        return self.call(f"llvm.{name}.{mangled(values[0].type)}", values[0].type, *values)

    def compare(self, relation: str, a: Value, b: Value | Number) -> Value:
        """lt, le, gt, ge, eq, ne; floats compare ordered (false for nan) but for ne; `uno`, `une`, `ult` as LLVM's."""
        if not isinstance(b, Value):
            b = self.const(b, a.type)
        floating = element_of(a.type) in FLOATS
        if relation in ("lt", "le", "gt", "ge"):
            relation = ("o" if floating else "s") + relation
        elif floating and relation in ("eq", "ne"):
            relation = {"eq": "oeq", "ne": "une"}[relation]
        return self.emit(f"{'f' if floating else 'i'}cmp {relation} {a}, {b.name}", like(a.type, "i1"))

    def select(self, condition: Value, a: Value | Number, b: Value | Number) -> Value:
        """a where the condition holds, b elsewhere."""
        known = a if isinstance(a, Value) else b
        assert isinstance(known, Value)
        a, b = (x if isinstance(x, Value) else self.const(x, known.type) for x in (a, b))
        return self.emit(f"select {condition}, {a}, {b}", known.type)

    def fma(self, a: Value | Number, b: Value | Number, c: Value | Number) -> Value:
        """a * b + c, rounded once where the machine can."""
        known = next(x for x in (a, b, c) if isinstance(x, Value))
        return self.intrinsic("fma", *(x if isinstance(x, Value) else self.const(x, known.type) for x in (a, b, c)))

    def sqrt(self, a: Value) -> Value:
        """The square root."""
        return self.intrinsic("sqrt", a)

    def abs(self, a: Value) -> Value:
        """The absolute value of floats."""
        return self.intrinsic("fabs", a)

    def maximum(self, a: Value, b: Value | Number) -> Value:
        """The larger; nan in either gives nan."""
        return self.extreme("ogt", a, b)

    def minimum(self, a: Value, b: Value | Number) -> Value:
        """The smaller; nan in either gives nan."""
        return self.extreme("olt", a, b)

    def extreme(self, relation: str, a: Value, b: Value | Number) -> Value:
        if not isinstance(b, Value):
            b = self.const(b, a.type)
        if element_of(a.type) not in FLOATS:
            return self.select(self.compare({"ogt": "gt", "olt": "lt"}[relation], a, b), a, b)
        # b is taken if a is not beyond it, as NumPy does (of 0.0 and -0.0 the second); a stays if it is a nan itself.
        beyond = self.compare({"ogt": "ule", "olt": "uge"}[relation], a, b)
        kept = self.select(beyond, b, a)
        return self.select(self.compare("uno", a, a), a, kept)

    def bitcast(self, a: Value, element: str) -> Value:
        """The same bits read as another element type of equal size."""
        return self.emit(f"bitcast {a} to {like(a.type, element)}", like(a.type, element))

    def convert(self, a: Value, element: str, unsigned: bool = False) -> Value:
        """The number as another element type; integers count as signed unless said otherwise, i1 always as 0 and 1."""
        have = element_of(a.type)
        if have == element:
            return a
        unsigned = unsigned or have == "i1"
        if have in FLOATS and element in FLOATS:
            word = "fpext" if element == "double" else "fptrunc"
        elif have in FLOATS:
            word = "fptosi"
        elif element in FLOATS:
            word = "uitofp" if unsigned else "sitofp"
        else:
            size = {"i1": 0, **target.SIZES}
            word = "trunc" if size[element] < size[have] else "zext" if unsigned else "sext"
        return self.emit(f"{word} {a} to {like(a.type, element)}", like(a.type, element))

    def splat(self, scalar: Value, lanes: int) -> Value:
        """A vector of one number."""
        type = f"<{lanes} x {scalar.type}>"
        one = self.emit(f"insertelement {type} poison, {scalar}, i64 0", type)
        return self.emit(f"shufflevector {one}, {type} poison, <{lanes} x i32> zeroinitializer", type)

    def any(self, condition: Value) -> Value:
        """True if it holds in some lane."""
        lanes = count_of(condition.type)
        bits = self.emit(f"bitcast {condition} to i{lanes}", f"i{lanes}")
        return self.emit(f"icmp ne {bits}, 0", "i1")

    def lane(self, vector: Value, index: int) -> Value:
        """One number of a vector."""
        return self.emit(f"extractelement {vector}, i64 {index}", element_of(vector.type))

    def reduce(self, vector: Value, how: str) -> Value:
        """All lanes as one number: add, mul, max or min (the last two give nan if there is one)."""
        type, element = vector.type, element_of(vector.type)
        floating = element in FLOATS
        if how in ("add", "mul") and floating:
            name = f"llvm.vector.reduce.f{how}.{mangled(type)}"
            self.declare(name, element, element, type)
            start = literal(-0.0 if how == "add" else 1.0, element)
            return self.emit(f"call reassoc {element} @{name}({element} {start}, {vector})", element)
        word = {"max": "fmaximum" if floating else "smax", "min": "fminimum" if floating else "smin"}.get(how, how)
        return self.call(f"llvm.vector.reduce.{word}.{mangled(type)}", element, vector)

    # -------------------------------------------------------------- memory

    def at(self, pointer: Value, index: Value | int, element: str) -> Value:
        """The address of an element."""
        offset = index.name if isinstance(index, Value) else index
        return self.emit(f"getelementptr {element}, {pointer}, i64 {offset}", "ptr")

    def load(self, pointer: Value, index: Value | int, type: str, mask: Value | None = None) -> Value:
        """The element or vector that starts at an index; lanes that are masked out give 0 and are not touched."""
        element = element_of(type)
        place = self.at(pointer, index, element)
        mask = mask if mask is not None or type[0] != "<" else self.mask
        size = target.SIZES[element]
        if mask is None:
            return self.emit(f"load {type}, {place}, align {size}", type)
        name = f"llvm.masked.load.{mangled(type)}.p0"
        self.declare(name, type, "ptr", "i32", mask.type, type)
        return self.emit(f"call {type} @{name}({place}, i32 {size}, {mask}, {type} zeroinitializer)", type)

    def store(
        self, value: Value, pointer: Value, index: Value | int, mask: Value | None = None, around_cache: bool = False
    ) -> None:
        """Write an element or a vector; `around_cache` for aligned results too large to be read again soon."""
        element = element_of(value.type)
        place = self.at(pointer, index, element)
        mask = mask if mask is not None or value.type[0] != "<" else self.mask
        size = target.SIZES[element]
        if mask is not None:
            name = f"llvm.masked.store.{mangled(value.type)}.p0"
            self.declare(name, "void", value.type, "ptr", "i32", mask.type)
            self.do(f"call void @{name}({value}, {place}, i32 {size}, {mask})")
        elif around_cache and value.type[0] == "<":
            self.do(f"store {value}, {place}, align {target.VECTOR_BYTES}, !nontemporal !0")
        else:
            self.do(f"store {value}, {place}, align {size}")

    def gather(self, pointer: Value, indices: Value, element: str, mask: Value | None = None) -> Value:
        """The elements at a vector of indices."""
        lanes = count_of(indices.type)
        type, pointers = f"<{lanes} x {element}>", f"<{lanes} x ptr>"
        places = self.emit(f"getelementptr {element}, {pointer}, {indices}", pointers)
        mask = mask or self.mask or self.const(1, f"<{lanes} x i1>")
        name = f"llvm.masked.gather.{mangled(type)}.v{lanes}p0"
        self.declare(name, type, pointers, "i32", mask.type, type)
        size = target.SIZES[element]
        return self.emit(f"call {type} @{name}({places}, i32 {size}, {mask}, {type} zeroinitializer)", type)

    def scatter(self, value: Value, pointer: Value, indices: Value, mask: Value) -> None:
        """Write the lanes of a vector to a vector of indices."""
        element, pointers = element_of(value.type), f"<{count_of(indices.type)} x ptr>"
        places = self.emit(f"getelementptr {element}, {pointer}, {indices}", pointers)
        name = f"llvm.masked.scatter.{mangled(value.type)}.v{count_of(indices.type)}p0"
        self.declare(name, "void", value.type, pointers, "i32", mask.type)
        self.do(f"call void @{name}({value}, {places}, i32 {target.SIZES[element]}, {mask})")

    def stack(self, count: int, element: str) -> Value:
        """A small array that lives as long as the call (at most some kilobytes: larger scratch is an argument)."""
        self.made += 1
        self.entry.append(f"  %s{self.made} = alloca [{count} x {element}], align 64")
        return Value(self, f"%s{self.made}", "ptr")

    # -------------------------------------------------------------- control

    def variable(self, start: Value) -> Variable:
        """A place for a value that changes."""
        self.made += 1
        name = f"%m{self.made}"
        self.entry.append(f"  {name} = alloca {start.type}, align 64")
        made = Variable(self, name, start.type)
        made.set(start)
        return made

    def label(self) -> str:
        """A fresh name for a block."""
        self.made += 1
        return f"L{self.made}"

    def block(self, label: str) -> None:
        """What follows stands in a new block."""
        self.lines.append(f"{label}:")

    @contextmanager
    def loop(self, start: Value | int, stop: Value | int, step: Value | int = 1) -> Iterator[Value]:
        """for i in range(start, stop, step)"""
        first, last = (x if isinstance(x, Value) else self.const(x, "i64") for x in (start, stop))
        head, body, done = self.label(), self.label(), self.label()
        counter = self.variable(first)
        self.do(f"br label %{head}")
        self.block(head)
        i = counter.get()
        more = self.compare("lt", i, last)
        self.do(f"br {more}, label %{body}, label %{done}")
        self.block(body)
        yield i
        counter.set(i + step)
        self.do(f"br label %{head}")
        self.block(done)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """if condition: ..."""
        body, done = self.label(), self.label()
        self.do(f"br {condition}, label %{body}, label %{done}")
        self.block(body)
        yield
        self.do(f"br label %{done}")
        self.block(done)

    def tail_mask(self, left: Value, lanes: int) -> Value:
        """Which lanes are below the number of elements left."""
        short = self.convert(left, "i32")
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        return self.emit(f"icmp slt <{lanes} x i32> <{numbers}>, {self.splat(short, lanes).name}", f"<{lanes} x i1>")

    def vectors(
        self, start: Value | int, stop: Value | int, lanes: int, body: Callable[[Any], None], unroll: int = 1
    ) -> None:
        """for i in range(start, stop) by whole vectors, then once more with the lanes beyond the end masked out."""
        first, last = (x if isinstance(x, Value) else self.const(x, "i64") for x in (start, stop))
        last = self.select(first < last, last, first)
        for width in sorted({lanes * unroll, lanes}, reverse=True):
            whole = first + ((last - first) & -width)
            with self.loop(first, whole, width) as i:
                for part in range(width // lanes):
                    body(i + part * lanes if part else i)
            first = whole
        with self.when(first < last):
            self.mask = self.tail_mask(last - first, lanes)
            body(first)
            self.mask = None

    # -------------------------------------------------------------- the whole

    def text(self, name: str = "", declared: bool = True) -> str:
        """The module's functions and declarations; under another name it is a function of another module."""
        head = f"define {'internal ' if name else ''}void @{name or self.name}"
        head += "(ptr %args, i64 %begin, i64 %end, i64 %worker) #0 {\nentry:"
        outside = sorted(self.declared) if declared else []
        return "\n".join([*outside, *self.functions, head, *self.entry, *self.lines, "  ret void\n}\n"])


class Variable:
    """A stack slot that LLVM turns into a register."""

    __slots__ = ("code", "name", "type")

    def __init__(self, code: Code, name: str, type: str) -> None:
        self.code, self.name, self.type = code, name, type

    def get(self) -> Value:
        """Its value now."""
        return self.code.emit(f"load {self.type}, ptr {self.name}", self.type)

    def set(self, value: Value) -> None:
        """A new value."""
        self.code.do(f"store {value}, ptr {self.name}")
