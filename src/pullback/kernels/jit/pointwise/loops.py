"""Kernels that compute one expression for every element, over arrays of any strides.

The dimensions are put in the order of the result's memory and joined where they can be. What remains is an inner
dimension, in which each array is contiguous ("1"), one number ("0") or strided ("s"), and some outer ones. Each
combination is a kernel of its own; arrays that are all contiguous need no outer dimensions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.memory import joined
from pullback._thresholds import POINTWISE_SHARE
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES, VECTOR_BYTES
from pullback.kernels.jit.language.code import FLOATS, Code, Value, element_of, like
from pullback.kernels.jit.language.elementary import FUNCTIONS
from pullback.kernels.jit.language.emit import computed_in, emit_step, llvm_type, shortcut
from pullback.kernels.jit.language.expression import COMPLEX, Node, Untraceable, order_of
from pullback.kernels.jit.language.halves import from_bits, rounded, to_bits
from pullback.kernels.jit.runtime import calls

PLAIN = (0.0, 1.0, -1.0, 2.0, 0.5)
"""Constants that are part of a kernel; others are passed to it, so that it serves them all."""
HEAVY = 4
"""How many cheap operations a function like exp takes the time of: 0.27 ns an element against 0.08."""
FLAT = -1
UNROUNDED = {
    "where", "negative", "absolute", "positive", "maximum", "minimum", "fmax", "fmin", "conjugate", "floor", "ceil",
    "trunc", "rint", "sign", "copysign", "fabs",
}  # fmt: skip
"""What gives numbers of 16 bits for such numbers."""
TILE = 32
"""Elements of a row that are computed before the next row is, where an array is strided."""


class Program:
    """An expression ready to be compiled for any layout: its inputs, its constants and what it costs."""

    def __init__(self, root: Node, name: str = "", plain: bool = False) -> None:
        """With `plain` every constant is part of the kernels."""
        self.root, self.name = root, name
        self.order = order_of(root)
        self.inputs = sorted({node.value for node in self.order if node.op == "input"})
        """The positions of the arrays it reads."""
        if root.op in ("input", "constant") or not self.inputs:
            raise Untraceable("nothing is computed")
        self.dtype = root.dtype
        self.dtypes = {node.value: node.dtype for node in self.order if node.op == "input"}
        numbers = [n for n in self.order if n.op == "constant" and computed_in(n.dtype) in FLOATS]
        passed = [n for n in numbers if n.value == n.value and n.value not in PLAIN and not plain]
        self.places = {id(node): place for place, node in enumerate(passed)}
        self.constants = np.array([node.value for node in passed], np.float64)
        self.cost = sum(HEAVY if node.op in FUNCTIONS else 1 for node in self.order if node.args)
        self.grain = max(POINTWISE_SHARE // self.cost, 512) & -64
        sizes = [SIZES[computed_in(node.dtype)] for node in self.order if node.dtype.kind != "b"]
        self.lanes = VECTOR_BYTES // max(sizes, default=1)
        self.structure = self.described()
        trial = Code("trial")  # raises Untraceable now rather than when a kernel is wanted
        vectors = {place: Value(trial, "%x", llvm_type(dtype, self.lanes)) for place, dtype in self.dtypes.items()}
        self.emit(trial, vectors, [Value(trial, "%c", llvm_type(node.dtype, self.lanes)) for node in passed])

    def closed(self) -> Program:
        """The same with every constant a part of the kernels."""
        return Program(self.root, self.name, plain=True) if self.places else self

    def described(self) -> str:
        """What distinguishes its kernels from others: the steps, with passed constants unnamed."""
        numbers = {id(node): i for i, node in enumerate(self.order)}
        lines = []
        for node in self.order:
            value = "passed" if id(node) in self.places else repr(node.value)
            lines.append(f"{node.op} {node.dtype.char} {value} {[numbers[id(arg)] for arg in node.args]}")
        return "\n".join(lines)

    def emit(self, code: Code, loaded: dict[int, Value], passed: Sequence[Value]) -> Value:
        """The vector of results for vectors of inputs."""
        values: dict[int, Value] = {}
        for node in self.order:
            type = llvm_type(node.dtype, self.lanes)
            if node.op == "input":
                made = loaded[node.value]
            elif node.op == "constant":
                place = self.places.get(id(node))
                made = code.const(node.value, type) if place is None else passed[place]
            else:
                made = shortcut(code, node, values) or emit_step(
                    code, node, [values[id(arg)] for arg in node.args], type
                )
                if is_half(node.dtype) and node.op not in UNROUNDED and node is not self.root:
                    made = rounded(code, made, node.dtype)
            values[id(node)] = made
        return values[id(self.root)]


# ------------------------------------------------------------------ loops


def stored_as(dtype: np.dtype[Any]) -> str:
    """The dtype by which a kernel knows an array: float16 and bfloat16 are bits to it, complex numbers two parts."""
    return "int16" if is_half(dtype) else COMPLEX.get(dtype, dtype).name


def compiled(program: Program, inner: str, outer: int, around_cache: bool = False) -> Callable[..., bool]:
    """The kernel of a program for one layout: a letter for each array, the result's last, and the outer dimensions.

    With FLAT for those, every array is row-major or one number, and no plan is read.
    """
    text = f"{program.structure}|{inner}|{outer}|{around_cache}"
    name = f"pointwise_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    found = known.get(name)
    if found is None:
        flat = outer == FLAT
        names = [stored_as(program.dtypes[place]) for place in program.inputs]
        sizes = [{"1": "n", "0": "1", "s": ""}[way] if flat else "" for way in inner[:-1]]
        params = [calls.array(kind, size, strided=not flat) for kind, size in zip(names, sizes, strict=True)]
        params.append(calls.array(stored_as(program.dtype), "n" if flat else "", write=True, strided=not flat))
        params += [calls.array("float64", str(len(program.constants))), calls.integer("n")]
        if not flat:
            params.append(calls.array("int64", str(plan_size(outer, len(inner)))))
        note = f"{program.name}: {program.root}"
        found = known[name] = calls.kernel(name, params, Loop(program, inner, outer, around_cache).describe, note)
    return found


known: dict[str, Callable[..., bool]] = {}


def plan_size(outer: int, arrays: int) -> int:
    """How many numbers describe a layout: the inner length, the outer dimensions, and strides for each array."""
    return 1 + outer + arrays * (outer + 1)


class Loop:
    """The loops of one kernel."""

    def __init__(self, program: Program, inner: str, outer: int, around_cache: bool) -> None:
        self.program, self.inner, self.outer, self.around_cache = program, inner, outer, around_cache
        self.lanes = program.lanes
        self.dtypes = [program.dtypes[place] for place in program.inputs]
        self.elements = [ELEMENTS[stored_as(dtype)] for dtype in (*self.dtypes, program.dtype)]

    def describe(self, code: Code, *given: Value) -> None:
        """Write the kernel."""
        count = len(self.inner)
        pointers, constants, plan = list(given[:count]), given[count], given[-1]
        passed = []
        for node in self.program.order:
            if id(node) in self.program.places:
                number = code.load(constants, self.program.places[id(node)], "double")
                passed.append(code.splat(code.convert(number, computed_in(node.dtype)), self.lanes))
        if self.outer == FLAT:
            self.row(code, pointers, passed, code.begin, code.end, [])
            return
        length = code.load(plan, 0, "i64")
        steps = [self.stride(code, plan, k, self.outer) for k in range(count)]
        if not self.outer:
            self.row(code, pointers, passed, code.begin, code.end, steps)
            return
        # The items are rows; those along the last outer dimension follow each other without a division.
        many = code.load(plan, self.outer, "i64")
        with code.loop(code.begin // many, (code.end + many - 1) // many) as run:
            first = code.begin - run * many
            first = code.select(first < 0, 0, first)
            last = code.end - run * many
            last = code.select(last > many, many, last)
            here = self.moved(code, pointers, plan, run)

            def line(row: Value, start: Value, stop: Value) -> None:
                places = self.shifted(
                    code, here, [row * self.stride(code, plan, k, self.outer - 1) for k in range(count)]
                )
                self.row(code, places, passed, start, stop, steps)

            if "s" in self.inner:  # a strided array is read in tiles: what it has in the cache serves several rows
                with code.loop(0, length, TILE) as start:
                    far = start + TILE
                    stop = code.select(far < length, far, length)
                    with code.loop(first, last) as row:
                        line(row, start, stop)
            else:
                with code.loop(first, last) as row:
                    line(row, code.const(0, "i64"), length)

    def stride(self, code: Code, plan: Value, k: int, dim: int) -> Value:
        """The stride of an array in a dimension."""
        return code.load(plan, 1 + self.outer + k * (self.outer + 1) + dim, "i64")

    def shifted(self, code: Code, pointers: list[Value], offsets: list[Value]) -> list[Value]:
        """Pointers moved by some elements."""
        return [code.at(p, o, element) for p, o, element in zip(pointers, offsets, self.elements, strict=True)]

    def moved(self, code: Code, pointers: list[Value], plan: Value, run: Value) -> list[Value]:
        """Where the rows of a run begin."""
        offsets = [code.const(0, "i64") for _ in pointers]
        for dim in reversed(range(self.outer - 1)):
            index = run
            if dim:
                size = code.load(plan, 1 + dim, "i64")
                above = run // size
                index, run = run - above * size, above
            for k in range(len(pointers)):
                offsets[k] = offsets[k] + index * self.stride(code, plan, k, dim)
        return self.shifted(code, pointers, offsets)

    def row(
        self,
        code: Code,
        pointers: list[Value],
        passed: list[Value],
        start: Value,
        stop: Value,
        steps: list[Value],
    ) -> None:
        """The inner loop."""
        spread: dict[int, Value] = {}
        for k, way in enumerate(self.inner[:-1]):
            if way == "0":
                number = code.splat(code.load(pointers[k], 0, self.elements[k]), self.lanes)
                spread[k] = self.truth(code, number, k)

        def body(i: Value) -> None:
            loaded = {}
            for k, place in enumerate(self.program.inputs):
                if k in spread:
                    loaded[place] = spread[k]
                elif self.inner[k] == "1":
                    loaded[place] = self.truth(code, code.load(pointers[k], i, self.vector(k)), k)
                else:
                    spots = self.indices(code, i, steps[k])
                    loaded[place] = self.truth(code, code.gather(pointers[k], spots, self.elements[k]), k)
            out = self.program.emit(code, loaded, passed)
            half = is_half(self.program.dtype)
            out = to_bits(code, out, self.program.dtype) if half else code.convert(out, self.elements[-1])
            if self.inner[-1] == "1":
                code.store(out, pointers[-1], i, around_cache=self.around_cache)
            else:
                scatter(code, out, pointers[-1], self.indices(code, i, steps[-1]))

        code.vectors(start, stop, self.lanes, body, 4 if self.program.cost <= 4 else 1)

    def vector(self, k: int) -> str:
        return f"<{self.lanes} x {self.elements[k]}>"

    def truth(self, code: Code, value: Value, k: int) -> Value:
        """Bytes of bools as truth values, and 16 bits as the number they stand for."""
        if is_half(self.dtypes[k]):
            return from_bits(code, value, self.dtypes[k])
        return code.compare("ne", value, 0) if self.dtypes[k].kind == "b" else value

    def indices(self, code: Code, i: Value, step: Value) -> Value:
        """Where the lanes of a strided array are."""
        numbers = ", ".join(f"i64 {lane}" for lane in range(self.lanes))
        type = f"<{self.lanes} x i64>"
        return (code.splat(i, self.lanes) + Value(code, f"<{numbers}>", type)) * code.splat(step, self.lanes)


def scatter(code: Code, value: Value, pointer: Value, indices: Value) -> None:
    """Write the lanes that exist to a vector of indices."""
    element = element_of(value.type)
    pointers = like(value.type, "ptr")
    places = code.emit(f"getelementptr {element}, {pointer}, {indices}", pointers)
    mask = code.mask or code.const(1, like(value.type, "i1"))
    suffix = {"float": "f32", "double": "f64"}.get(element, element)
    lanes = value.type[1:].split(" x ")[0]
    name = f"llvm.masked.scatter.v{lanes}{suffix}.v{lanes}p0"
    code.declare(name, "void", value.type, pointers, "i32", mask.type)
    code.do(f"call void @{name}({value}, {places}, i32 {SIZES[element]}, {mask})")


# ------------------------------------------------------------------ layouts


class Layout:
    """How the arrays of one call lie beside the result: the kernel's letters, and the plan it reads."""

    __slots__ = ("count", "inner", "length", "name", "order", "outer", "plan", "shape")

    def __init__(self, shape: tuple[int, ...], strides: Sequence[Sequence[int]], order: tuple[int, ...] | None) -> None:
        """`strides` in elements, one sequence for each array, all broadcast to the shape; the result's come last.

        `order` is that of a new result in memory: see `order_of_result`.
        """
        self.shape, self.order = shape, order
        sizes, steps = joined(shape, strides)
        if not sizes:
            sizes, steps = [1], [[1] * len(strides)]
        self.outer = len(sizes) - 1
        self.inner = "".join({1: "1", 0: "0"}.get(step, "s") for step in steps[-1])
        if self.inner[-1] == "0":
            raise Untraceable("a result that overlaps itself")
        if "s" in self.inner and self.outer > 1:  # the dimension that a strided array walks in small steps comes last
            k = self.inner.index("s")
            near = min(range(self.outer), key=lambda d: abs(steps[d][k]) or sizes[-1] * abs(steps[-1][k]))
            sizes.insert(self.outer - 1, sizes.pop(near))
            steps.insert(self.outer - 1, steps.pop(near))
        self.length = sizes[-1]
        self.count = int(np.prod(sizes[:-1] or sizes))
        numbers = [sizes[-1], *sizes[:-1]]
        for k in range(len(strides)):
            numbers += [step[k] for step in steps]
        self.plan = np.array(numbers, np.int64)
        self.name = f"{self.inner}{self.outer}"
