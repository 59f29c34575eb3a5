"""Programs over rows that no block can hold in registers: a block of 512 threads reads a row again for each pass.

    softmax, log_softmax     the largest and the sum of the powers in one pass, then what is written
    their gradients          a sum, then what is written
    layer_norm               the mean, the deviation, then what is written; its gradient two sums at once

All passes but the first find most of the row in the device's second cache, as few rows are worked on at a time.
Arguments are those of rows.py, and so is what is written.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback.kernels.jit.cuda.grid import WARP, Grid
from pullback.kernels.jit.cuda.rows import PROGRAMS as SHORT
from pullback.kernels.jit.cuda.rows import Row, parameters_of
from pullback.kernels.jit.language.code import Value, Variable

THREADS = 512
AT_ONCE = 4
"""Pieces of 16 bytes of each array that a thread asks for before it needs the first."""
PROGRAMS: dict[str, Callable[[LongRow], None]] = {}
Body = Callable[[list[list[Value]], list[Value]], None]
"""What is done with some pieces of each array, and where in the row they begin."""


def program(function: Callable[[LongRow], None]) -> Callable[[LongRow], None]:
    """Declare a program under the name of that in rows.py."""
    PROGRAMS[function.__name__] = function
    return function


class LongRow(Row):
    """One row of many pieces; what is computed with is a piece."""

    def __init__(self, code: Grid, element: str, wide: int, parameters: str) -> None:
        self.code, self.element, self.threads, self.per, self.wide = code, element, THREADS, wide, wide
        self.parameters = parameters
        self.kind = "double" if element == "double" else "float"
        self.type = f"<{wide} x {self.kind}>"
        self.lane, self.row, self.length = code["thread"], code["x"], code["length"]
        self.inside = self.row < code["rows"]
        self.start = self.row * self.length
        self.room = code.shared("room", THREADS // WARP, self.kind)

    def get(self, name: str, place: Value) -> Value:
        """A piece of an array that is read, or of weights and biases."""
        code = self.code
        at = place if name in ("weight", "bias") else place + self.start
        if self.wide > 1:
            return code.read(f"%{name}", at, f"<{self.wide} x {self.element}>")
        one = code.read(f"%{name}", at, self.element)
        return code.emit(f"insertelement {self.type} poison, {one}, i64 0", self.type)

    def set(self, place: Value, values: Value) -> None:
        """A piece of what is written."""
        code, at = self.code, place + self.start
        if self.wide > 1:
            code.write(values, "%out0", at, f"<{self.wide} x {self.element}>")
        else:
            code.write(code.lane(values, 0), "%out0", at, self.element)

    def each(self, names: list[str], body: Body) -> None:
        """Go through the row: some pieces at a time, then those that are left one by one."""
        code = self.code
        pieces = code.emit(f"udiv {self.length}, {self.wide}", "i64")
        whole = pieces - pieces % (THREADS * AT_ONCE)
        with code.loop(0, whole, THREADS * AT_ONCE) as first:
            places = [(first + self.lane + THREADS * k) * self.wide for k in range(AT_ONCE)]
            body([[self.get(name, place) for name in names] for place in places], places)
        with code.loop(whole, pieces, THREADS) as first:
            piece = first + self.lane
            with code.when(piece < pieces):
                place = piece * self.wide
                body([[self.get(name, place) for name in names]], [place])

    def written(self, names: list[str], formula: Callable[..., Value]) -> None:
        """The last pass: what a formula makes of the pieces at each place."""

        def body(several: list[list[Value]], places: list[Value]) -> None:
            for pieces, place in zip(several, places, strict=True):
                self.set(place, formula(*pieces))

        self.each(names, body)

    def sums(self, names: list[str], count: int, formula: Callable[..., list[Value]]) -> list[Value]:
        """The sums of so many terms over the whole row."""
        zero = Value(self.code, "zeroinitializer", self.type)
        totals = [self.code.variable(zero) for _ in range(count)]

        def body(several: list[list[Value]], places: list[Value]) -> None:
            for pieces in several:
                for total, term in zip(totals, formula(*pieces), strict=True):
                    total.set(total.get() + term)

        self.each(names, body)
        return [self.sum(total.get()) for total in totals]

    def alone(self, number: Value) -> Value:
        """A number as a vector of one."""
        return self.code.emit(f"insertelement <1 x {self.kind}> poison, {number}, i64 0", f"<1 x {self.kind}>")

    def power(self, number: Value) -> Value:
        """e to the power of one number."""
        return self.code.lane(self.exp(self.alone(number)), 0)

    def finite(self, top: Value) -> Value:
        """The largest number, and 0 in the place of minus infinity, so that powers of minus infinity are zero."""
        return self.code.select(self.code.compare("eq", top, float("-inf")), 0.0, top)

    def largest_and_sum(self) -> tuple[Value, Value]:
        """The largest of the row, and the sum of the powers of how far each is from it."""
        code = self.code
        top, total = (code.variable(code.const(x, self.kind)) for x in (float("-inf"), 0.0))

        def body(several: list[list[Value]], places: list[Value]) -> None:
            found = top.get()
            for (piece,) in several:
                for k in range(self.wide):
                    found = code.maximum(found, code.lane(piece, k))
            self.moved(top, total, found)
            base, terms = self.spread(self.finite(found)), None
            for (piece,) in several:
                powers = self.exp(piece - base)
                terms = powers if terms is None else terms + powers
            assert terms is not None
            for k in range(self.wide):
                total.set(total.get() + code.lane(terms, k))

        self.each(["in0"], body)
        self.moved(top, total, self.together(self.alone(top.get()), "max"))
        return top.get(), self.sum(self.alone(total.get()))

    def moved(self, top: Variable, total: Variable, new: Value) -> None:
        """A sum of powers, seen from a larger number."""
        total.set(total.get() * self.power(top.get() - self.finite(new)))
        top.set(new)


# ------------------------------------------------------------------ softmax


@program
def softmax(row: LongRow) -> None:
    """exp(x - max) / sum(exp(x - max))"""
    top, total = row.largest_and_sum()
    top, total = row.spread(top), row.spread(total)
    row.written(["in0"], lambda x: row.exp(x - top) / total)


@program
def safe_softmax(row: LongRow) -> None:
    """softmax in which a row of minus infinities gives zeros."""
    top, total = row.largest_and_sum()
    none = row.code.compare("eq", top, float("-inf"))
    top, total = row.spread(row.finite(top)), row.spread(row.code.select(none, 1.0, total))
    row.written(["in0"], lambda x: row.exp(x - top) / total)


@program
def log_softmax(row: LongRow) -> None:
    """x - max - log(sum(exp(x - max)))"""
    top, total = row.largest_and_sum()
    top, total = row.spread(top), row.spread(row.log(total))
    row.written(["in0"], lambda x: x - top - total)


@program
def softmax_backward(row: LongRow) -> None:
    """y * (g - sum(g * y))"""
    total = row.spread(row.sums(["in0", "in1"], 1, lambda grad, out: [grad * out])[0])
    row.written(["in0", "in1"], lambda grad, out: out * (grad - total))


@program
def log_softmax_backward(row: LongRow) -> None:
    """g - exp(y) * sum(g)"""
    total = row.spread(row.sums(["in0"], 1, lambda grad: [grad])[0])
    row.written(["in0", "in1"], lambda grad, out: grad - row.exp(out) * total)


# ------------------------------------------------------------------ norms


@program
def layer_norm(row: LongRow) -> None:
    """(x - mean) * rstd * weight + bias, and the mean and rstd of every row."""
    mean = row.sums(["in0"], 1, lambda x: [x])[0] / row.size()
    middle = row.spread(mean)
    (squares,) = row.sums(["in0"], 1, lambda x: [(x - middle) * (x - middle)])
    rstd = row.inverse_root(squares / row.size() + row.number("eps"))
    row.keep("mean", mean)
    row.keep("rstd", rstd)
    factor = row.spread(rstd)

    def out(x: Value, *given: Value) -> Value:
        made, rest = (x - middle) * factor, list(given)
        made = made * rest.pop(0) if "w" in row.parameters else made
        return made + rest.pop(0) if "b" in row.parameters else made

    row.written(["in0", *[name for name in ("weight", "bias") if name[0] in row.parameters]], out)


@program
def layer_norm_backward(row: LongRow) -> None:
    """rstd * (g w - mean(g w) - normal * mean(g w normal))"""
    rstd, middle = row.spread(row.fact("rstd")), row.spread(row.fact("mean"))
    names = ["in0", "in1", *(["weight"] if "w" in row.parameters else [])]

    def parts(grad: Value, x: Value, *weight: Value) -> tuple[Value, Value]:
        return grad * weight[0] if weight else grad, (x - middle) * rstd

    def terms(*given: Value) -> list[Value]:
        grad, normal = parts(*given)
        return [grad, grad * normal]

    mean, slope = (row.spread(total / row.size()) for total in row.sums(names, 2, terms))

    def out(*given: Value) -> Value:
        grad, normal = parts(*given)
        return rstd * (grad - mean - normal * slope)

    row.written(names, out)


# ------------------------------------------------------------------ kernels


def name_of(program: str, element: str, wide: int, parameters: str) -> str:
    """The name of a kernel."""
    return f"long_{program}_{element}_{wide}_{parameters}"


def text_of(program: str, element: str, wide: int, parameters: str) -> str:
    """The module."""
    reads, writes, _ = SHORT[program]
    code = Grid(name_of(program, element, wide, parameters), *parameters_of(reads, writes))
    code.for_blocks_of(THREADS, 2)
    PROGRAMS[program](LongRow(code, element, wide, parameters))
    return code.whole()
