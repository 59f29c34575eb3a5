"""Programs over rows for a grid of threads: softmax and layer_norm, and their gradients.

A row is held in registers, by a warp where it is short, by a block of 256 or 1024 threads where it is longer: it is
read once and written once; rows that are longer still are those of long_rows.py. Thread t has the elements t, t +
threads, ... of the row, or neighbouring ones where a row can be read 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback.kernels.jit.cuda.grid import SHARED, STORED, THREADS, WARP, Grid
from pullback.kernels.jit.language.code import Value, count_of
from pullback.kernels.jit.language.elementary import FUNCTIONS

PROGRAMS: dict[str, tuple[int, int, Callable[[Row], None]]] = {}
"""By name: how many arrays are read, how many are written, and what is computed."""
LARGEST = 64
"""Elements of a row that one thread holds, where there is no other way."""
EASY = {WARP: 32, THREADS: 32, 1024: 16}
"""Elements of a row that one thread holds without putting some aside, by how many threads share the row; of float64
half as many. Longer rows are read again: see long_rows.py."""


def program(reads: int, writes: int) -> Callable[[Callable[[Row], None]], Callable[[Row], None]]:
    """Declare a program: its arguments are arrays that are read, arrays that are written, then `extra` ones."""

    def declare(function: Callable[[Row], None]) -> Callable[[Row], None]:
        PROGRAMS[function.__name__] = (reads, writes, function)
        return function

    return declare


class Row:
    """One row, as a vector of what this thread has of it."""

    def __init__(self, code: Grid, element: str, threads: int, per: int, wide: int, parameters: str) -> None:
        self.code, self.element, self.threads, self.per, self.wide = code, element, threads, per, wide
        self.parameters = parameters
        """Which optional arrays there are: w for weights, b for biases."""
        self.kind = "double" if element == "double" else "float"
        self.type = f"<{per} x {self.kind}>"
        thread = code["thread"]
        if threads == WARP:
            self.lane, self.row = thread & (WARP - 1), code["x"] * (THREADS // WARP) + thread // WARP
        else:
            self.lane, self.row = thread, code["x"]
        self.length = code["length"]
        self.inside = code.compare("lt", self.row, code["rows"])
        self.start = code.select(self.inside, self.row, 0) * self.length
        self.columns = [(self.lane + k * threads) * wide for k in range(per // wide)]
        self.room = ""
        if threads != WARP:
            self.room = code.shared("room", threads // WARP, self.kind)

    # ---------------------------------------------------------------- memory
    def gather(self, base: str, start: Value | None, element: str) -> Value:
        """What this thread has of a row of an array; zeros beyond the end."""
        code, made = self.code, Value(self.code, "zeroinitializer", self.type)
        for k, column in enumerate(self.columns):
            inside = column < self.length
            place = code.select(inside, column if start is None else column + start, 0)
            if self.wide > 1:
                found = code.read(base, place, f"<{self.wide} x {element}>")
                parts = [code.lane(found, j) for j in range(self.wide)]
            else:
                parts = [code.read(base, place, element)]
            for j, part in enumerate(parts):
                made = self.put(made, code.select(inside, code.convert(part, self.kind), 0.0), k * self.wide + j)
        return made

    def put(self, vector: Value, part: Value, index: int) -> Value:
        """A vector with one number exchanged."""
        return self.code.emit(f"insertelement {vector}, {part}, i64 {index}", vector.type)

    def read(self, k: int) -> Value:
        """The k-th array that is read."""
        return self.gather(f"%in{k}", self.start, self.element)

    def parameter(self, name: str) -> Value | None:
        """Weights or biases, which every row shares."""
        return self.gather(f"%{name}", None, self.element) if name[0] in self.parameters else None

    def write(self, k: int, values: Value) -> None:
        """The k-th array that is written."""
        code = self.code
        for nr, column in enumerate(self.columns):
            with code.when(code.emit(f"and i1 {(column < self.length).name}, {self.inside.name}", "i1")):
                parts = [code.lane(values, nr * self.wide + j) for j in range(self.wide)]
                if self.wide == 1:
                    code.write(parts[0], f"%out{k}", self.start + column, self.element)
                else:
                    whole = Value(code, "poison", f"<{self.wide} x {self.kind}>")
                    for j, part in enumerate(parts):
                        whole = self.put(whole, part, j)
                    code.write(whole, f"%out{k}", self.start + column, f"<{self.wide} x {self.element}>")

    def fact(self, name: str) -> Value:
        """A number that is kept for every row."""
        return self.code.read(f"%{name}", self.code.select(self.inside, self.row, 0), self.kind)

    def keep(self, name: str, value: Value) -> None:
        """Keep a number of this row."""
        code = self.code
        first = code.compare("eq", self.lane, 0)
        with code.when(code.emit(f"and i1 {first.name}, {self.inside.name}", "i1")):
            code.write(value, f"%{name}", self.row, self.kind)

    # ---------------------------------------------------------------- numbers
    def spread(self, number: Value) -> Value:
        """A number for every element."""
        return self.code.splat(number, self.per)

    def but(self, values: Value, beyond: float, end: Value | None = None) -> Value:
        """The same, with a number in the place of what lies beyond the end."""
        for k, column in enumerate(self.columns):
            inside = column < self.length
            for j in range(self.wide):
                if end is not None:  # which may lie within what is read at once
                    inside = column + j < end
                part = self.code.select(inside, self.code.lane(values, k * self.wide + j), beyond)
                values = self.put(values, part, k * self.wide + j)
        return values

    def together(self, values: Value, how: str) -> Value:
        """The sum or the largest of the whole row."""
        code = self.code

        def join(a: Value, b: Value) -> Value:
            return a.binary(b, ("fadd", "add")) if how == "sum" else code.maximum(a, b)

        total = code.lane(values, 0)
        for k in range(1, count_of(values.type)):
            total = join(total, code.lane(values, k))
        total = code.across_warp(total, join)
        if self.threads == WARP:
            return total
        size = STORED[self.kind]
        code.wait()
        with code.when(code.compare("eq", self.lane & (WARP - 1), 0)):
            code.do(f"store {total}, {code.where(self.room, self.lane // WARP, self.kind, SHARED)}, align {size}")
        code.wait()
        total = code.read(self.room, 0, self.kind, space=SHARED)
        for k in range(1, self.threads // WARP):
            total = join(total, code.read(self.room, k, self.kind, space=SHARED))
        return total

    def sum(self, values: Value) -> Value:
        """The sum of the row; what lies beyond the end has to be zero."""
        return self.together(values, "sum")

    def exp(self, values: Value) -> Value:
        """e to the power of each."""
        return FUNCTIONS["exp"][1](self.code, values)

    def log(self, number: Value) -> Value:
        """The logarithm of a number."""
        code = self.code
        one = code.emit(f"insertelement <1 x {self.kind}> poison, {number}, i64 0", f"<1 x {self.kind}>")
        return code.lane(FUNCTIONS["log"][1](code, one), 0)

    def inverse_root(self, number: Value) -> Value:
        """1 / sqrt(x)"""
        return self.code.const(1.0, number.type) / self.code.sqrt(number)

    def size(self) -> Value:
        """The number of elements of the row."""
        return self.code.convert(self.length, self.kind)

    def number(self, name: str) -> Value:
        """A number that is passed."""
        return self.code.convert(self.code[name], self.kind)


# ------------------------------------------------------------------ softmax


def largest(row: Row, x: Value) -> Value:
    """The largest of a row, and 0 for one of minus infinities, so that their powers are zero."""
    return row.together(row.but(x, float("-inf")), "max")


@program(1, 1)
def softmax(row: Row) -> None:
    """exp(x - max) / sum(exp(x - max))"""
    x = row.read(0)
    powers = row.but(row.exp(x - row.spread(largest(row, x))), 0.0)
    row.write(0, powers / row.spread(row.sum(powers)))


@program(1, 1)
def safe_softmax(row: Row) -> None:
    """softmax in which a row of minus infinities gives zeros."""
    x, code = row.read(0), row.code
    top = largest(row, x)
    none = code.compare("eq", top, float("-inf"))
    powers = row.but(row.exp(x - row.spread(code.select(none, 0.0, top))), 0.0)
    total = code.select(none, 1.0, row.sum(powers))
    row.write(0, powers / row.spread(total))


@program(1, 1)
def log_softmax(row: Row) -> None:
    """x - max - log(sum(exp(x - max)))"""
    x = row.read(0)
    away = x - row.spread(largest(row, x))
    total = row.sum(row.but(row.exp(away), 0.0))
    row.write(0, away - row.spread(row.log(total)))


@program(2, 1)
def softmax_backward(row: Row) -> None:
    """y * (g - sum(g * y))"""
    grad, out = row.read(0), row.read(1)
    row.write(0, out * (grad - row.spread(row.sum(grad * out))))


@program(2, 1)
def log_softmax_backward(row: Row) -> None:
    """g - exp(y) * sum(g)"""
    grad, out = row.read(0), row.read(1)
    row.write(0, grad - row.exp(out) * row.spread(row.sum(grad)))


@program(1, 1)
def attention(row: Row) -> None:
    """softmax(factor * x) for scores; zeros for a row of minus infinities, and beyond what a query may see.

    Row r of a matrix of `period` rows sees the elements 0 to r, or all where the period is 0. The logarithm of the sum
    of the powers is kept.
    """
    x, code = row.read(0) * row.spread(row.number("eps")), row.code
    period = code["period"]
    causal = code.compare("ne", period, 0)
    place = row.row - code.emit(f"udiv {row.row}, {code.select(causal, period, 1).name}", "i64") * period
    seen = code.select(causal, code.select(place < row.length, place + 1, row.length), row.length)
    x = row.but(x, float("-inf"), seen)
    top = row.together(x, "max")
    none = code.compare("eq", top, float("-inf"))
    powers = row.but(row.exp(x - row.spread(code.select(none, 0.0, top))), 0.0, seen)
    total = row.sum(powers)
    row.keep("rstd", code.select(none, float("-inf"), top + row.log(total)))
    row.write(0, powers / row.spread(code.select(none, 1.0, total)))


# ------------------------------------------------------------------ norms


@program(1, 1)
def layer_norm(row: Row) -> None:
    """(x - mean) * rstd * weight + bias, and the mean and rstd of every row."""
    x = row.read(0)
    mean = row.sum(x) / row.size()
    away = row.but(x - row.spread(mean), 0.0)
    rstd = row.inverse_root(row.sum(away * away) / row.size() + row.number("eps"))
    row.keep("mean", mean)
    row.keep("rstd", rstd)
    out, weight, bias = away * row.spread(rstd), row.parameter("weight"), row.parameter("bias")
    if weight is not None:
        out = out * weight
    row.write(0, out if bias is None else out + bias)


@program(2, 1)
def layer_norm_backward(row: Row) -> None:
    """rstd * (g w - mean(g w) - normal * mean(g w normal))"""
    grad, x, weight = row.read(0), row.read(1), row.parameter("weight")
    rstd = row.spread(row.fact("rstd"))
    normal = row.but((x - row.spread(row.fact("mean"))) * rstd, 0.0)
    grad = grad if weight is None else grad * weight
    mean, slope = row.sum(grad) / row.size(), row.sum(grad * normal) / row.size()
    row.write(0, rstd * (grad - row.spread(mean) - normal * row.spread(slope)))


# ------------------------------------------------------------------ kernels


def shape_of(length: int, wide: int, element: str = "float", held: bool = False) -> tuple[int, int] | None:
    """How many threads share a row, and how many elements each has; None for rows that are too long.

    With `held` they have as many as need be, whatever they put aside.
    """
    for threads, easy in EASY.items():
        most = easy if element != "double" else easy // 2
        if held and threads == 1024:
            most = LARGEST
        per = wide
        while per < most and per * threads < length:
            per *= 2
        if per * threads >= length:
            return threads, per
    return None


def name_of(program: str, element: str, threads: int, per: int, wide: int, parameters: str) -> str:
    """The name of a kernel."""
    return f"{program}_{element}_{threads}_{per}_{wide}_{parameters}"


def parameters_of(reads: int, writes: int) -> tuple[str, str, str]:
    """The names of what a kernel is given: addresses, integers, numbers."""
    arrays = [f"in{k}" for k in range(reads)] + [f"out{k}" for k in range(writes)]
    return " ".join([*arrays, "weight", "bias", "mean", "rstd"]), "rows length period", "eps"


def text_of(program: str, element: str, threads: int, per: int, wide: int, parameters: str) -> str:
    """The module. Arguments: what is read, what is written, weight, bias, mean, rstd; rows, length, period; eps."""
    reads, writes, compute = PROGRAMS[program]
    code = Grid(name_of(program, element, threads, per, wide, parameters), *parameters_of(reads, writes))
    code.for_blocks_of(max(threads, THREADS))
    compute(Row(code, element, threads, per, wide, parameters))
    return code.whole()
