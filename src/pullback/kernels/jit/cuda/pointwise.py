"""Pointwise expressions for a grid of threads: the trees and steps of the host's kernels, one element or some a thread.

Where every array is contiguous in one order, a thread computes as many neighbouring elements as 16 bytes hold, read and
written at once. Otherwise it computes one, or four that are a block of threads apart where there are many, and finds it
in each array by the array's strides, which are arguments.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.emit import computed_in
from pullback.kernels.jit.language.expression import COMPLEX
from pullback.kernels.jit.language.halves import from_bits, to_bits
from pullback.kernels.jit.language.pieces import shuffled
from pullback.kernels.jit.pointwise.loops import Program, stored_as

GLOBAL = "ptr addrspace(1)"
THREADS = 256
WIDE = 16
"""Bytes a thread reads at once."""
SEVERAL = 4
"""Elements with strides that a thread of a large kernel computes: it asks for all of them before it needs the first, as
one load of a few bytes for each thread would leave most of the memory's speed unused."""
SIMPLE = 24
"""Steps of an expression of which a thread can have as many at a time."""


class Kernel:
    """A pointwise kernel as LLVM IR, and how it is called: arrays, the result, the count, constants, sizes, strides."""

    __slots__ = ("dims", "each", "lanes", "name", "program", "text", "wide")

    def __init__(
        self, root: Any, letters: str, dims: int, aligned: bool, narrow: bool = False, large: bool = False
    ) -> None:
        """`letters`: "1" for an array that lies as the result does, "0" for one number, "s" for one with strides; with
        `dims` there are so many dimensions to walk, without them every array is flat. `narrow` says that 32 bits count
        the elements and how far they are from the first of each array; `large` that there are many."""
        program = Program(root)
        sizes = [program.dtypes[place].itemsize for place in program.inputs] + [program.dtype.itemsize]
        self.lanes = 1 if dims else max(WIDE // max(sizes), 1)
        program.lanes = self.lanes
        self.program, self.dims = program, dims
        several = SEVERAL if large and dims and len(program.order) <= SIMPLE else 1
        self.each = self.lanes * several
        """Elements of a thread."""
        what = f"{program.structure}|{letters}|{dims}|{self.lanes}|{aligned}{'|narrow' if narrow else ''}"
        what += f"|{several}" if several > 1 else ""
        self.name = f"pointwise_{hashlib.sha256(what.encode()).hexdigest()[:16]}"
        self.text = Writer(program, letters, dims, self.lanes, aligned, narrow, several).text(self.name)


class Writer:
    """Writes one kernel."""

    def __init__(
        self, program: Program, letters: str, dims: int, lanes: int, aligned: bool, narrow: bool, several: int
    ) -> None:  # fmt: skip
        self.several = several
        self.program, self.letters, self.dims, self.lanes, self.aligned = program, letters, dims, lanes, aligned
        self.integer = "i32" if narrow else "i64"
        """What elements are counted in where they are found by strides."""
        self.kinds = [program.dtypes[place] for place in program.inputs]
        self.elements = [ELEMENTS[stored_as(kind)] for kind in (*self.kinds, program.dtype)]
        self.parts = [2 if kind in COMPLEX else 1 for kind in (*self.kinds, program.dtype)]
        """How many of LLVM's elements one of each array's is: complex numbers have two."""
        self.code = Code("kernel")

    def text(self, name: str) -> str:
        """The module."""
        code, count = self.code, len(self.kinds)
        params = [f"{GLOBAL} %a{k}" for k in range(count)] + [f"{GLOBAL} %out", "i64 %n"]
        params += [f"double %c{k}" for k in range(len(self.program.constants))]
        params += [f"i64 %d{d}" for d in range(self.dims)]
        params += [f"i64 %s{k}_{d}" for k in range(count + 1) for d in range(self.dims)]
        code.do("%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
        code.do("%b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()")
        code.do("%w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()")
        code.do("%t64 = zext i32 %t to i64")
        code.do("%b64 = zext i32 %b to i64")
        code.do("%w64 = zext i32 %w to i64")
        code.do("%bw = mul i64 %b64, %w64")
        code.do("%id = add i64 %bw, %t64" if self.several == 1 else f"%bws = mul i64 %bw, {self.several}")
        if self.several > 1:
            code.do("%id = add i64 %bws, %t64")
        first = Value(code, "%id", "i64") * self.lanes
        limit = Value(code, "%n", "i64")
        code.do(f"br {first < limit}, label %work, label %done")
        code.block("work")
        if self.dims:
            self.strided(first, limit)
        else:
            self.flat(first, limit)
        code.block("done")
        declared = [line for line in sorted(code.declared) if line not in DECLARATIONS]
        head = f"define ptx_kernel void @{name}({', '.join(params)}) {{\nentry:"
        body = [*code.entry, *code.lines, "  ret void\n}\n"]
        return "\n".join([DECLARATIONS, *declared, *code.functions, head, *body])

    # -------------------------------------------------------------- parts
    def place(self, base: str, k: int, index: Value | int) -> str:
        """The address of an element of the k-th array, as an operand."""
        offset = str(index) if isinstance(index, Value) else f"i64 {index}"
        element = self.elements[k] if self.parts[k] == 1 else f"[{self.parts[k]} x {self.elements[k]}]"
        made = self.code.emit(f"getelementptr {element}, {GLOBAL} {base}, {offset}", GLOBAL)
        return f"{GLOBAL} {made.name}"

    def read(self, k: int, index: Value | int) -> Value:
        """One element of the k-th array; a complex number is a vector of its parts."""
        element, parts = self.elements[k], self.parts[k]
        type = element if parts == 1 else f"<{parts} x {element}>"
        return self.code.emit(f"load {type}, {self.place(f'%a{k}', k, index)}, align {SIZES[element]}", type)

    def spread(self, k: int, one: Value, lanes: int) -> Value:
        """A vector of one element."""
        parts = self.parts[k]
        return self.code.splat(one, lanes) if parts == 1 else shuffled(self.code, one, one, list(range(parts)) * lanes)

    def write(self, out: Value, lane: int, index: Value) -> None:
        """Store one of the results."""
        element, parts = self.elements[-1], self.parts[-1]
        one = self.code.lane(out, lane) if parts == 1 else shuffled(self.code, out, out, [2 * lane, 2 * lane + 1])
        self.code.do(f"store {one}, {self.place('%out', -1, index)}, align {SIZES[element]}")

    def constants(self) -> list[Value]:
        """The numbers that are passed."""
        code, passed = self.code, []
        for node in self.program.order:
            if id(node) in self.program.places:
                number = Value(code, f"%c{self.program.places[id(node)]}", "double")
                passed.append(code.splat(code.convert(number, computed_in(node.dtype)), self.lanes))
        return passed

    def number(self, value: Value, kind: np.dtype[Any]) -> Value:
        """What was read, as it is computed with."""
        if is_half(kind):
            return from_bits(self.code, value, kind)
        return self.code.compare("ne", value, 0) if kind.kind == "b" else value

    def result(self, loaded: dict[int, Value]) -> Value:
        """What is written."""
        out = self.program.emit(self.code, loaded, self.constants())
        if is_half(self.program.dtype):
            return to_bits(self.code, out, self.program.dtype)
        return self.code.convert(out, self.elements[-1])

    def alignment(self, k: int) -> int:
        """The alignment of what is read or written at once."""
        return SIZES[self.elements[k]] * (self.lanes * self.parts[k] if self.aligned else 1)

    def flat(self, first: Value, limit: Value) -> None:
        """Some neighbouring elements; those beyond the end are computed from the last one and not written."""
        code, lanes = self.code, self.lanes
        whole = (first + lanes) <= limit
        many = [k for k, letter in enumerate(self.letters) if letter == "1"]
        code.do(f"br {whole}, label %wide, label %rest")
        code.block("wide")
        wide = {}
        for k in many:
            type = f"<{lanes * self.parts[k]} x {self.elements[k]}>"
            wide[k] = code.emit(f"load {type}, {self.place(f'%a{k}', k, first)}, align {self.alignment(k)}", type)
        code.do("br label %both")
        code.block("rest")
        rest = {}
        last = limit - 1
        for k in many:
            parts = self.parts[k]
            rest[k] = Value(code, "poison", f"<{lanes * parts} x {self.elements[k]}>")
            for lane in range(lanes):
                index = first + lane
                one = self.read(k, code.select(index < limit, index, last))
                for part, number in enumerate([one] if parts == 1 else [code.lane(one, p) for p in range(parts)]):
                    at = lane * parts + part
                    rest[k] = code.emit(f"insertelement {rest[k]}, {number}, i64 {at}", rest[k].type)
        code.do("br label %both")
        code.block("both")
        merged = {}
        for k in many:
            type = wide[k].type
            merged[k] = code.emit(f"phi {type} [ {wide[k].name}, %wide ], [ {rest[k].name}, %rest ]", type)
        loaded = {}
        for k, place in enumerate(self.program.inputs):
            if k not in merged:
                merged[k] = self.spread(k, self.read(k, 0), lanes)
            loaded[place] = self.number(merged[k], self.kinds[k])
        out = self.result(loaded)
        code.do(f"br {whole}, label %write, label %some")
        code.block("write")
        code.do(f"store {out}, {self.place('%out', -1, first)}, align {self.alignment(-1)}")
        code.do("br label %done")
        code.block("some")
        for lane in range(lanes):
            index = first + lane
            with code.when(index < limit):
                self.write(out, lane, index)
        code.do("br label %done")

    def strided(self, first: Value, limit: Value) -> None:
        """One element, or several, found in each array by its strides."""
        code = self.code
        spots = [first + THREADS * k for k in range(1, self.several)]
        inside = [spot < limit for spot in spots]
        known = [code.select(there, spot, first) for there, spot in zip(inside, spots, strict=True)]
        offsets = [self.offsets(spot) for spot in (first, *known)]
        read = [
            [self.spread(k, self.read(k, places[k]), 1) for k in range(len(self.program.inputs))] for places in offsets
        ]
        made = []
        for several in read:
            numbers = [self.number(one, kind) for one, kind in zip(several, self.kinds, strict=True)]
            made.append(self.result(dict(zip(self.program.inputs, numbers, strict=True))))
        self.write(made[0], 0, offsets[0][-1])
        for there, out, places in zip(inside, made[1:], offsets[1:], strict=True):
            with code.when(there):
                self.write(out, 0, places[-1])
        code.do("br label %done")

    def offsets(self, spot: Value) -> list[Value]:
        """Where an element lies in each array. Dimensions are given from the outermost to the innermost."""
        code = self.code

        def told(name: str) -> Value:
            return code.convert(Value(code, f"%{name}", "i64"), self.integer)

        indices: list[Value] = []
        rest = code.convert(spot, self.integer)
        for d in reversed(range(self.dims)):
            if d == 0:
                indices.append(rest)
                break
            size = told(f"d{d}")
            above = code.emit(f"udiv {rest}, {size.name}", self.integer)
            indices.append(rest - above * size)
            rest = above
        indices.reverse()
        found: list[Value] = []
        for k in range(len(self.kinds) + 1):
            offset = code.const(0, self.integer)
            for d, index in enumerate(indices):
                offset = offset + index * told(f"s{k}_{d}")
            found.append(offset)
        return found
