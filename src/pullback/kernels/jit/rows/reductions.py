"""Reductions over any dimensions: sums, products, extrema and where they are, in one pass and in several threads.

Dimensions are put in memory order and joined into runs that are reduced or kept. A reduced run at the end is a
reduction of rows; one with kept elements behind it is a reduction of columns, some vectors wide; others follow one
after the other. Float32 is summed in pieces whose sums are added in float64, so long sums are as exact as short ones.
Long rows are cut into blocks by their length alone, so the result does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from pullback._thresholds import FEW_REDUCTIONS, NARROW_ROWS, REDUCTION_SHARE
from pullback.kernels.jit.compiler.target import ELEMENTS, lanes
from pullback.kernels.jit.language.code import Code, Value, element_of, like, mangled
from pullback.kernels.jit.runtime import calls

Array = Any
INF, NAN = float("inf"), float("nan")
PIECE = 128
"""Additions in a row before a partial sum is added to a wider one."""
WIDE = 4
"""Vectors side by side."""
BLOCK = 65536


class Numbers(NamedTuple):
    """How one dtype is added: as which elements its numbers are read, added up and kept."""

    read: str
    add: str
    keep: str
    result: str


SUMS = {
    "float32": Numbers("float", "float", "double", "float64"),
    "float64": Numbers("double", "double", "double", "float64"),
    "bool": Numbers("i8", "i32", "i64", "int64"),
    "int64": Numbers("i64", "i64", "i64", "int64"),
    "int32": Numbers("i32", "i64", "i64", "int64"),
}
EXTREMA = ("max", "min", "top")
STARTS: dict[str, float] = {"max": -INF, "min": INF, "product": 1.0, "top": 0.0}
LIMITS = {"i64": (-(2**63), 2**63 - 1), "i32": (-(2**31), 2**31 - 1), "i8": (0, 1)}


def numbers_of(how: str, dtype: np.dtype[Any]) -> Numbers | None:
    """The elements of a reduction, or None if there is none for the dtype."""
    if how in EXTREMA:
        if dtype.name not in SUMS or (how == "top" and dtype.kind != "f"):
            return None
        read = ELEMENTS[dtype.name]
        return Numbers(read, read, read, dtype.name)
    if how != "sum" and dtype.kind != "f":
        return None
    if how == "product" and dtype.name in SUMS:  # parts of it may be far larger than the whole
        return Numbers(ELEMENTS[dtype.name], "double", "double", "float64")
    return SUMS.get(dtype.name)


class Fold:
    """One way to make one number of many."""

    def __init__(self, how: str, kind: Numbers) -> None:
        self.how, self.kind = how, kind
        self.lanes = lanes(kind.add)
        self.read, self.add, self.keep = (f"<{self.lanes} x {element}>" for element in kind[:3])
        self.flagged = how in EXTREMA and kind.read in ("float", "double")

    def start(self, element: str) -> float:
        """What changes nothing."""
        if self.how in ("max", "min") and element in LIMITS:
            return LIMITS[element][self.how == "min"]
        return STARTS.get(self.how, 0)

    def mapped(self, code: Code, x: Value, mean: Value | None) -> Value:
        """What is added up for an element."""
        if self.how == "square":
            return x * x
        if self.how in ("size", "top"):
            return code.abs(x)
        if self.how == "deviation":
            assert mean is not None
            x = x - mean
            return x * x
        return code.convert(x, self.kind.add, unsigned=self.kind.read == "i8")

    def combined(self, code: Code, a: Value, b: Value) -> Value:
        """Two partial results as one; nan is looked after by a flag."""
        if self.how in EXTREMA:
            return code.select(b < a if self.how == "min" else b > a, b, a)
        return a * b if self.how == "product" else a + b


class Slot:
    """A partial result in a vector, and which lanes have met a nan where comparisons would lose it."""

    def __init__(self, code: Code, fold: Fold, type: str) -> None:
        self.code, self.fold = code, fold
        self.value = code.variable(code.const(fold.start(element_of(type)), type))
        self.flag = code.variable(code.const(0, like(type, "i1"))) if fold.flagged else None

    def take(self, x: Value) -> None:
        """One more vector."""
        code = self.code
        flag = code.compare("uno", x, x) if self.flag is not None else None
        if code.mask is not None:
            x = code.select(code.mask, x, self.fold.start(element_of(x.type)))
            flag = flag & code.mask if flag is not None else None
        self.value.set(self.fold.combined(code, self.value.get(), x))
        if self.flag is not None and flag is not None:
            self.flag.set(self.flag.get() | flag)

    def join(self, other: Slot) -> None:
        """What another one has, too."""
        code = self.code
        value = code.convert(other.value.get(), element_of(self.value.type))
        self.value.set(self.fold.combined(code, self.value.get(), value))
        if self.flag is not None and other.flag is not None:
            self.flag.set(self.flag.get() | other.flag.get())

    def vector(self) -> Value:
        """The result of each lane."""
        value = self.value.get()
        return value if self.flag is None else self.code.select(self.flag.get(), NAN, value)

    def total(self) -> Value:
        """All lanes as one number."""
        code, how, value = self.code, self.fold.how, self.value.get()
        if how not in EXTREMA:
            return code.reduce(value, "mul" if how == "product" else "add")
        if self.flag is None:
            return code.reduce(value, "min" if how == "min" else "max")
        element = element_of(value.type)
        name = f"llvm.vector.reduce.f{'min' if how == 'min' else 'max'}.{mangled(value.type)}"
        code.declare(name, element, value.type)
        best = code.emit(f"call nnan {element} @{name}({value})", element)
        flag = self.flag.get()
        bits = code.emit(f"bitcast {flag} to i{self.fold.lanes}", f"i{self.fold.lanes}")
        return code.select(code.emit(f"icmp ne {bits}, 0", "i1"), NAN, best)


def describe_rows(fold: Fold) -> Callable[..., None]:
    """Rows of one length, each perhaps in blocks: an item is a block."""
    width, result = fold.lanes, ELEMENTS[fold.kind.result]

    def describe(
        code: Code, x: Value, out: Value, means: Value, rows: Value, length: Value, blocks: Value, block: Value
    ) -> None:
        with code.loop(code.begin, code.end) as item:
            row = item // blocks
            first = (item - row * blocks) * block
            stop = code.select(first + block < length, first + block, length)
            here = code.at(x, row * length, fold.kind.read)
            mean = None
            if fold.how == "deviation":
                mean = code.splat(code.convert(code.load(means, row, "double"), fold.kind.add), width)
            total = Slot(code, fold, fold.keep)

            def take(slot: Slot, i: Value) -> None:
                slot.take(fold.mapped(code, code.load(here, i, fold.read), mean))

            with code.loop(first, stop, PIECE * WIDE * width) as piece:
                far = piece + PIECE * WIDE * width
                last = code.select(far < stop, far, stop)
                slots = [Slot(code, fold, fold.add) for _ in range(WIDE)]
                whole = piece + ((last - piece) & -(WIDE * width))
                with code.loop(piece, whole, WIDE * width) as i:
                    for nr, slot in enumerate(slots):
                        take(slot, i + nr * width if nr else i)
                code.vectors(whole, last, width, lambda i: take(slots[0], i))
                while len(slots) > 1:
                    for a, b in zip(slots[::2], slots[1::2], strict=True):
                        a.join(b)
                    slots = slots[::2]
                total.join(slots[0])
            code.store(code.convert(total.total(), result), out, item)

    return describe


def describe_narrow(fold: Fold) -> Callable[..., None]:
    """Rows shorter than a vector: an item is a row, and as many as a vector has lanes are reduced at once."""
    width = fold.lanes
    numbers = ", ".join(f"i64 {lane}" for lane in range(width))

    def describe(
        code: Code, x: Value, out: Value, means: Value, rows: Value, length: Value, blocks: Value, block: Value
    ) -> None:
        stride = code.splat(length, width)

        def body(row: Value) -> None:
            places = (code.splat(row, width) + Value(code, f"<{numbers}>", f"<{width} x i64>")) * stride
            mean = code.convert(code.load(means, row, fold.keep), fold.kind.add) if fold.how == "deviation" else None
            slot = Slot(code, fold, fold.add)
            mask = code.mask
            with code.loop(0, length) as j:
                code.mask = mask
                read = code.gather(x, places + code.splat(j, width), fold.kind.read)
                code.mask = None
                slot.take(fold.mapped(code, read, mean))
            code.mask = mask
            code.store(code.convert(slot.vector(), ELEMENTS[fold.kind.result]), out, row)

        code.vectors(code.begin, code.end, width, body)

    return describe


def strip_of(
    code: Code, item: Value, strips: Value, width: int, outer: Value, length: Value, block: Value
) -> tuple[Value, Value, Value, Value, Value]:
    """The part of an item: its number without the strip, its first column, outer index, and first and last row."""
    rest = item // strips
    column = (item - rest * strips) * width
    b = rest // outer
    o = rest - b * outer
    first = b * block
    return rest, column, o, first, code.select(first + block < length, first + block, length)


def describe_columns(fold: Fold) -> Callable[..., None]:
    """Columns of rows: an item is a strip some vectors wide of one block of rows."""
    width, result = fold.lanes, ELEMENTS[fold.kind.result]
    strip = width * WIDE

    def describe(
        code: Code, x: Value, out: Value, means: Value,
        outer: Value, length: Value, inner: Value, blocks: Value, block: Value,
    ) -> None:  # fmt: skip
        strips = (inner + strip - 1) // strip
        with code.loop(code.begin, code.end) as item:
            rest, column, o, first, stop = strip_of(code, item, strips, strip, outer, length, block)
            here = code.at(x, o * length * inner, fold.kind.read)
            target = code.at(out, rest * inner, result)
            given = code.at(means, o * inner, "double")

            def stack(at: Value, count: int) -> None:
                """Reduce some vectors' worth of columns."""
                mean: list[Value | None] = [None] * count
                if fold.how == "deviation":
                    wide = [code.load(given, at + nr * width, fold.keep) for nr in range(count)]
                    mean = [code.convert(m, fold.kind.add) for m in wide]
                totals = [Slot(code, fold, fold.keep) for _ in range(count)]
                mask, code.mask = code.mask, None  # lanes beyond the end are read as 0 and never written
                with code.loop(first, stop, PIECE) as piece:
                    last = code.select(piece + PIECE < stop, piece + PIECE, stop)
                    slots = [Slot(code, fold, fold.add) for _ in range(count)]
                    with code.loop(piece, last) as row:
                        place = row * inner + at
                        for nr, slot in enumerate(slots):
                            value = code.load(here, place + nr * width if nr else place, fold.read, mask)
                            slot.take(fold.mapped(code, value, mean[nr]))
                    for slot, total in zip(slots, totals, strict=True):
                        total.join(slot)
                code.mask = mask
                for nr, total in enumerate(totals):
                    code.store(code.convert(total.vector(), result), target, at + nr * width)

            with code.when(column + strip <= inner):
                stack(column, WIDE)
            with code.when(column + strip > inner):
                code.vectors(column, inner, width, lambda i: stack(i, 1))

    return describe


kernels: dict[tuple[str, ...], Callable[..., bool]] = {}


def kernel(loop: str, how: str, dtype: np.dtype[Any], kind: Numbers) -> Callable[..., bool]:
    """The kernel of a reduction, compiled on first use."""
    key = (loop, how, dtype.name, kind.result)
    found = kernels.get(key)
    if found is None:
        fold = Fold(how, kind)
        names = ("rows", "length", "blocks", "block")
        size, made, mean = "rows*length", "rows*blocks", "rows"
        if loop == "columns":
            names = ("outer", "length", "inner", "blocks", "block")
            size, made, mean = "outer*length*inner", "blocks*outer*inner", "outer*inner"
        params = [
            calls.array(dtype.name, size),
            calls.array(kind.result, made, write=True),
            calls.array("float64", mean if how == "deviation" else "0"),
            *map(calls.integer, names),
        ]
        describe = {"rows": describe_rows, "narrow": describe_narrow, "columns": describe_columns}[loop](fold)
        found = kernels[key] = calls.kernel(f"reduce_{'_'.join(key)}", params, describe, how)
    return found


NONE = np.empty(0)
AGAIN = {"square": "sum", "size": "sum", "deviation": "sum", "top": "max"}
"""How partial results are reduced further."""


class Step(NamedTuple):
    """One kernel of a reduction: what it makes and what it is told."""

    made_by: tuple[Any, ...]
    """The arguments of `kernel`."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    facts: tuple[int, ...]


def rows_step(how: str, dtype: np.dtype[Any], rows: int, length: int) -> list[Step]:
    """(rows, length) to (rows,)."""
    kind = numbers_of(how, dtype)
    blocks = -(-length // BLOCK) if rows < FEW_REDUCTIONS else 1
    block = BLOCK if blocks > 1 else length
    grain = max(1, REDUCTION_SHARE // max(block, 1))
    made = np.dtype(kind.result)
    facts = (rows, length, blocks, block, rows * blocks, grain)
    loop = "narrow" if length <= NARROW_ROWS else "rows"
    step = Step((loop, how, dtype, kind), (rows * blocks,), made, facts)
    return [step] if blocks == 1 else [step, *rows_step(AGAIN.get(how, how), made, rows, blocks)]


def columns_step(how: str, dtype: np.dtype[Any], outer: int, length: int, inner: int) -> list[Step]:
    """(outer, length, inner) to (outer, inner)."""
    kind = numbers_of(how, dtype)
    if inner < lanes(kind.add) and how != "deviation":  # fill the vectors: several rows side by side first
        side = gcd(length, 64)
        if 1 < side < length:
            first = columns_step(how, dtype, outer, length // side, side * inner)
            return first + columns_step(AGAIN.get(how, how), first[-1].dtype, outer, side, inner)
    strip = lanes(kind.add) * WIDE
    strips = -(-inner // strip)
    blocks = 1
    if outer * strips < FEW_REDUCTIONS and length * inner >= REDUCTION_SHARE:
        blocks = max(1, min(-(-FEW_REDUCTIONS // (outer * strips)), length // PIECE))
    block = -(-length // blocks)
    blocks = -(-length // block)
    grain = max(1, REDUCTION_SHARE // max(1, block * min(strip, inner)))
    made = np.dtype(kind.result)
    facts = (outer, length, inner, blocks, block, blocks * outer * strips, grain)
    step = Step(("columns", how, dtype, kind), (blocks * outer * inner,), made, facts)
    return [step] if blocks == 1 else [step, *columns_step(AGAIN.get(how, how), made, 1, blocks, outer * inner)]


class Plan(NamedTuple):
    """The kernels of one reduction and the shape of its result."""

    steps: list[tuple[Callable[..., bool], tuple[int, ...], np.dtype[Any], tuple[int, ...]]]
    """Each with the shape and dtype of what it makes, and what it is told."""
    shape: tuple[int, ...]
    order: tuple[int, ...] | None
    """How the result is turned if the array is not row-major."""


plans: dict[Any, Plan | None] = {}
PLANS = 4096


def planned(how: str, array: Array, axis: Any, keepdim: bool, own: bool) -> Plan | None:
    """What a reduction takes, or None if NumPy has to do it."""
    ndim = array.ndim
    given = tuple(range(ndim)) if axis is None else axis if type(axis) is tuple else (axis,)
    if not all([-ndim <= d < ndim for d in given]):
        return None  # NumPy says it
    gone = {d % ndim for d in given}
    order = tuple(range(ndim))
    if not array.flags.c_contiguous:
        order = tuple(sorted(order, key=lambda d: -array.strides[d]))
        if how == "deviation" or not array.transpose(order).flags.c_contiguous:
            return None
    runs: list[list[int]] = []
    for d in order:
        size = array.shape[d]
        if size != 1 and runs and runs[-1][1] == (d in gone):
            runs[-1][0] *= size
        elif size != 1:
            runs.append([size, d in gone])
    dtype = array.dtype
    reductions = sum(run[1] for run in runs)
    if not reductions or numbers_of(how, dtype) is None or (how == "deviation" and reductions > 1):
        return None
    steps: list[Step] = []
    while any(run[1] for run in runs):
        kept = 1 if runs[-1][1] else runs.pop()[0]
        length = runs.pop()[0]
        outer = int(np.prod([run[0] for run in runs], dtype=np.int64))
        if kept == 1:
            steps += rows_step(how, dtype, outer, length)
        else:
            steps += columns_step(how, dtype, outer, length, kept)
            if runs:
                runs[-1][0] *= kept
            else:
                runs.append([kept, False])
        how, dtype = AGAIN.get(how, how), steps[-1].dtype
    if own and array.dtype.kind == "f" and dtype is not array.dtype:
        *by, kind = steps[-1].made_by
        steps[-1] = steps[-1]._replace(made_by=(*by, kind._replace(result=array.dtype.name)), dtype=array.dtype)
    made = [(kernel(*step.made_by), *step[1:]) for step in steps]
    if order == tuple(range(ndim)):
        shape = tuple([1 if d in gone else n for d, n in enumerate(array.shape) if keepdim or d not in gone])
        return Plan(made, shape, None)
    shape = tuple([1 if d in gone else array.shape[d] for d in order if keepdim or d not in gone])
    left = [d for d in order if keepdim or d not in gone]
    return Plan(made, shape, tuple([int(place) for place in np.argsort(left)]))


def reduced(how: str, array: Array, axis: Any, keepdim: bool, means: Array = NONE, own: bool = False) -> Array | None:
    """The reduction over `axis` (None for all), sums in float64 or int64; None if NumPy has to do it.

    With `own`, sums of floats are rounded to their own dtype.
    `means` are what "deviation" takes squares around, row-major in float64, one for each element of the result.
    """
    key = (how, array.dtype, array.shape, axis, keepdim, array.strides, own)
    plan = plans.get(key, key)
    if plan is key:
        if len(plans) >= PLANS:
            plans.clear()
        plan = plans[key] = planned(how, array, axis, keepdim, own)
    if plan is None:
        return None
    made = array if plan.order is None else array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
    for run, shape, dtype, facts in plan.steps:
        out = np.empty(shape, dtype)
        if not run(made, out, means, *facts):
            return None
        made = out
    made = made.reshape(plan.shape)
    return made if plan.order is None else made.transpose(plan.order).copy()
