"""The text of a kernel for a grid of threads: `Code` with parameters, places in the grid, and memory of two kinds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pullback._dtype import bfloat16
from pullback.kernels.jit.compiler.target import SIZES
from pullback.kernels.jit.cuda.ptx import DECLARATIONS
from pullback.kernels.jit.language.code import Code, Value, count_of, element_of
from pullback.kernels.jit.language.halves import from_bits, to_bits

GLOBAL = "ptr addrspace(1)"
SHARED = "ptr addrspace(3)"
THREADS = 256
WARP = 32
HALVES = {"half": np.dtype(np.float16), "bfloat": bfloat16.numpy}
"""Elements that are computed with in float."""
STORED = {"half": 2, "bfloat": 2, **SIZES}
"""Bytes of elements in memory."""


class Grid(Code):
    """A kernel for blocks of 256 threads; what is kept in integers is of 32 or of 64 bits, as `integer` says."""

    def __init__(self, name: str, pointers: str, integers: str = "", numbers: str = "", integer: str = "i64") -> None:
        super().__init__(name)
        self.params = [f"{GLOBAL} %{p}" for p in pointers.split()] + [f"i64 %{p}_" for p in integers.split()]
        self.params += [f"double %{p}_" for p in numbers.split()]
        self.integer = integer
        self.most_threads = ""
        self.rooms: list[str] = []
        self.given: dict[str, Value] = {}
        for p in integers.split():
            self.given[p] = self.convert(Value(self, f"%{p}_", "i64"), integer)
        for p in numbers.split():
            self.given[p] = Value(self, f"%{p}_", "double")
        for short, register in (("thread", "tid.x"), ("x", "ctaid.x"), ("y", "ctaid.y"), ("z", "ctaid.z")):
            read = self.emit(f"call i32 @llvm.nvvm.read.ptx.sreg.{register}()", "i32")
            self.given[short] = self.convert(read, integer)

    def __getitem__(self, name: str) -> Value:
        """A parameter, or a place in the grid."""
        return self.given[name]

    def number(self, value: int) -> Value:
        """An integer constant."""
        return self.const(value, self.integer)

    # ---------------------------------------------------------------- memory
    def where(self, base: str, index: Value | int, element: str, space: str = GLOBAL) -> str:
        """The address of an element, as an operand."""
        offset = str(index) if isinstance(index, Value) else f"i64 {index}"
        made = self.emit(f"getelementptr {element}, {space} {base}, {offset}", space)
        return f"{space} {made.name}"

    def read(self, base: str, index: Value | int, type: str, aligned: bool = True, space: str = GLOBAL) -> Value:
        """What lies in memory; halves as floats."""
        element = element_of(type)
        align = STORED[element] * (count_of(type) if aligned else 1)
        stored = stored_as(type)
        found = self.emit(f"load {stored}, {self.where(base, index, element_of(stored), space)}, align {align}", stored)
        return found if element not in HALVES else self.unpacked(found, element)

    def write(self, value: Value, base: str, index: Value | int, type: str, space: str = GLOBAL) -> None:
        """The other way."""
        element = element_of(type)
        if element in HALVES:
            value = self.packed(value, element)
        align = STORED[element] * count_of(type)
        self.do(f"store {value}, {self.where(base, index, element_of(value.type), space)}, align {align}")

    def unpacked(self, bits: Value, element: str) -> Value:
        """The floats that halves stand for."""
        if bits.type[0] == "<":
            return from_bits(self, bits, HALVES[element])
        one = self.emit(f"insertelement <1 x i16> poison, {bits}, i64 0", "<1 x i16>")
        return self.lane(from_bits(self, one, HALVES[element]), 0)

    def packed(self, number: Value, element: str) -> Value:
        """Floats rounded to halves, as bits."""
        if number.type[0] == "<":
            return to_bits(self, number, HALVES[element])
        one = self.emit(f"insertelement <1 x float> poison, {number}, i64 0", "<1 x float>")
        return self.lane(to_bits(self, one, HALVES[element]), 0)

    def shared(self, name: str, count: int, element: str) -> str:
        """Memory that the threads of a block share."""
        self.rooms.append(f"@{name} = internal addrspace(3) global [{count} x {element}] undef, align 16")
        return f"@{name}"

    # ---------------------------------------------------------------- together
    def wait(self) -> None:
        """Wait until every thread of the block has come here."""
        self.do("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")

    def shuffled(self, value: Value, distance: int) -> Value:
        """The value of the lane whose number differs in one bit."""
        return self.exchanged(value, distance, "bfly", 31)

    def shuffled_up(self, value: Value, distance: int) -> Value:
        """The value of the lane so far below; lanes that have none get their own."""
        return self.exchanged(value, distance, "up", 0)

    def exchanged(self, value: Value, distance: int, how: str, bounds: int) -> Value:
        """The value of another lane of the warp."""
        if value.type == "double":
            pair = self.emit(f"bitcast {value} to <2 x i32>", "<2 x i32>")
            both = self.emit("insertelement <2 x i32> poison, i32 0, i64 0", "<2 x i32>")
            for k in range(2):
                part = self.exchanged(self.lane(pair, k), distance, how, bounds)
                both = self.emit(f"insertelement {both}, {part}, i64 {k}", "<2 x i32>")
            return self.emit(f"bitcast {both} to double", "double")
        if value.type == "i64":
            found = self.exchanged(self.bitcast(value, "double"), distance, how, bounds)
            return self.emit(f"bitcast {found} to i64", "i64")
        suffix = {"float": "f32", "i32": "i32"}[value.type]
        name = f"llvm.nvvm.shfl.sync.{how}.{suffix}"
        self.declare(name, value.type, "i32", value.type, "i32", "i32")
        return self.emit(f"call {value.type} @{name}(i32 -1, {value}, i32 {distance}, i32 {bounds})", value.type)

    def across_warp(self, value: Value, join: Callable[[Value, Value], Value], width: int = WARP) -> Value:
        """What `width` neighbouring lanes have, joined in the same order in each of them."""
        distance = width // 2
        while distance:
            value = join(value, self.shuffled(value, distance))
            distance //= 2
        return value

    def across_block(self, value: Value, join: Callable[[Value, Value], Value], room: str) -> Value:
        """What all threads have, joined: every thread gets it. `room` is shared memory for one value of each warp."""
        value = self.across_warp(value, join)
        thread = self["thread"]
        size = STORED[value.type]
        self.wait()
        with self.when(self.compare("eq", thread & (WARP - 1), 0)):
            self.do(f"store {value}, {self.where(room, thread // WARP, value.type, SHARED)}, align {size}")
        self.wait()
        total = self.read(room, 0, value.type, space=SHARED)
        for k in range(1, THREADS // WARP):
            total = join(total, self.read(room, k, value.type, space=SHARED))
        return total

    # ---------------------------------------------------------------- the whole
    def for_blocks_of(self, threads: int, at_once: int = 0) -> None:
        """Say how many threads a block has at most, and how many blocks a multiprocessor shall hold at once, so that
        the registers suffice for all of them."""
        self.most_threads = f' "nvvm.maxntid"="{threads}"' + (f' "nvvm.minctasm"="{at_once}"' if at_once else "")

    def parts_of(self, index: Value, sizes: list[Value]) -> list[Value]:
        """An index as one for each dimension, the last running fastest."""
        found: list[Value] = []
        for size in reversed(sizes[1:]):
            above = self.emit(f"udiv {index}, {size.name}", index.type)
            found.append(index - above * size)
            index = above
        return [index, *reversed(found)] if sizes else []

    def whole(self) -> str:
        """The module."""
        declared = [line for line in sorted(self.declared) if line not in DECLARATIONS]
        head = f"define ptx_kernel void @{self.name}({', '.join(self.params)}){self.most_threads} {{\nentry:"
        body = [*self.entry, *self.lines, "  ret void\n}\n"]
        return "\n".join([*self.rooms, DECLARATIONS, *declared, *self.functions, head, *body])


def stored_as(type: str) -> str:
    """The type in memory: halves are integers there."""
    return type.replace("bfloat", "i16").replace("half", "i16")
