"""Attention without the score matrix, forward and backward, for a grid of threads.

A block keeps some rows and meets those of the other side tile by tile; only sums leave it. There are four passes of one
form: what the first tile gives is computed while the second is on its way, and the other way round.

    pass       rows      first tile   second tile   what is made
    forward    queries   keys         values        out = sum of weights * values, and the logarithms of the sums
    dq         queries   values       keys          dq = sum of slopes * keys; sum(out * grad) of every query
    dv         keys      queries      grads         dv = sum of weights * grads
    dk         keys      grads        queries       dk = sum of slopes * queries

In the forward pass weights are those seen from the largest score so far: when a larger one comes, sums are scaled.
Backward they are exp(score - logarithm of the sum), and slopes are weights * (grad . value - sum(out * grad)).
Nothing is added atomically: every sum has one block, whatever heads share its keys. Tiles of which nothing is seen are
not visited; blocks with much to do come first. A pass of its own for dv computes the scores once more, an eighth of all
products: the sums of both gradients at once would leave no registers for the scores.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback.kernels.jit.cuda.attention_tiles import Cores, Matrix, Mover, Scores, Shape, Threads, pointer
from pullback.kernels.jit.cuda.grid import GLOBAL, Grid, stored_as
from pullback.kernels.jit.language.code import Value, Variable
from pullback.kernels.jit.language.elementary import FUNCTIONS

POINTERS = "q k v o g lse delta mask out"
"""What is read, g being the gradient of o; logarithms of sums; sums of o * g; what is added to scores; the result."""
INTEGERS = "heads group queries keys features qb qh qr kb kh kr vb vh vr ob oh or gb gh gr tb th tr mb mh mr mc"
"""Heads of queries, and how many share keys; sizes; strides along the batch, heads and rows, t for the result."""
NUMBERS = "scale"
INF = float("inf")
AT_ONCE = {256: 2, 128: 4}
"""Blocks of so many threads that a multiprocessor holds with 128 registers for each thread."""
SIDES = {"forward": "qkv", "dq": "qgvk", "dv": "kqg", "dk": "kvgq"}
"""By pass: the rows of a block, one matrix or two, then those of the first and of the second tile."""


def own_of(kind: str) -> int:
    """Of how many matrices a block keeps its rows."""
    return len(SIDES[kind]) - 2


def name_of(kind: str, shape: Shape, letters: str, mask: str) -> str:
    """The name of a kernel: w for reading 16 bytes at once, a for doing that ahead, c for causal ones."""
    return f"attention_{kind}_{shape.element}_{shape.features}_{shape.rows}x{shape.columns}_{letters}_{mask}"


def text_of(kind: str, shape: Shape, letters: str, mask: str) -> str:
    """The module; `mask` is the element of what is added to the scores, if anything is."""
    return Pass(kind, shape, letters, mask).text()


class Pass:
    """A kernel being written."""

    def __init__(self, kind: str, shape: Shape, letters: str, mask: str) -> None:
        self.kind, self.shape, self.mask, self.causal = kind, shape, mask, "c" in letters
        self.code = code = Grid(name_of(kind, shape, letters, mask), POINTERS, INTEGERS, NUMBERS, "i32")
        code.for_blocks_of(shape.threads, AT_ONCE[shape.threads])
        self.by_queries = kind in ("forward", "dq")
        """Whether the rows of a block are queries and columns keys."""
        size = (shape.rows * shape.pitch, shape.columns * shape.pitch)
        self.own = [size[0] * k for k in range(own_of(kind))]
        first = size[0] * own_of(kind)
        self.first, self.second = first, first + size[1]
        self.way = (Cores if shape.of_halves else Threads)(code, shape, first + 2 * size[1])
        self.mover = Mover(code, shape, "w" in letters, "a" in letters)
        self.count, self.others = (code[n] for n in (("queries", "keys") if self.by_queries else ("keys", "queries")))
        blocks = code.emit(f"udiv {self.count + (shape.rows - 1)}, {shape.rows}", "i32")
        # Of queries the last ones see most keys, of keys the first ones are seen most.
        self.begin = (blocks - 1 - code["x"] if self.causal and self.by_queries else code["x"]) * shape.rows
        self.place = self.begin + self.way.row
        """The first row of this thread."""
        self.left = self.count - self.place
        unit = code.const(self.way.unit, self.way.kind)
        self.unit, self.scale = unit, code.convert(code["scale"], self.way.kind) * unit

    # ---------------------------------------------------------------- memory
    def start(self, array: str, element: str, letter: str, head: Value) -> str:
        """Where the rows of a head begin."""
        code = self.code
        batch, heads = (Value(code, f"%{letter}{d}_", "i64") for d in "bh")
        index = code.convert(code["z"], "i64") * batch + code.convert(head, "i64") * heads
        return pointer(code, index, stored_as(element), f"%{array}", GLOBAL)

    def matrix(self, letter: str, head: Value) -> Matrix:
        """The rows of one head; `head` is one of queries, which may share keys and values."""
        code = self.code
        if letter in "kv":
            head = code.emit(f"udiv {head}, {code['group'].name}", "i32")
        base = self.start(letter, self.shape.element, letter, head)
        return Matrix(base, code[f"{letter}r"], code["keys" if letter in "kv" else "queries"])

    def numbers(self, name: str, head: Value) -> str:
        """Where the numbers of a head's queries begin."""
        code = self.code
        wide = [code.convert(code[n], "i64") for n in ("heads", "queries")]
        line = code.convert(code["z"], "i64") * wide[0] + code.convert(head, "i64")
        return pointer(code, line * wide[1], self.way.kind, f"%{name}", GLOBAL)

    def facts(self, name: str, head: Value, query: Value, others: list[int]) -> list[Value]:
        """A number kept for each of some queries, said by how far they are from one; 0 for those that do not exist."""
        code, base, found = self.code, self.numbers(name, head), []
        here, left = pointer(code, query, self.way.kind, base, GLOBAL), code["queries"] - query
        for other in others:
            inside = left > other
            place = code.emit(f"select {inside}, {code.where(here, other, self.way.kind)}, {GLOBAL} {base}", GLOBAL)
            found.append(code.select(inside, code.read(place.name, 0, self.way.kind), 0.0))
        return found

    def keep(self, name: str, head: Value, values: list[Value]) -> None:
        """Keep a number of each query."""
        code, base = self.code, self.numbers(name, head)
        for row, value in zip(self.way.rows, values, strict=True):
            with code.when((self.left > row) & code.compare("eq", self.way.lane, 0)):
                code.write(value, base, self.place + row, self.way.kind)

    def write(self, name: str, sums: list[list[Variable]], room: int) -> None:
        """Sums to where they belong, by way of the room of the block's rows, so that neighbours are written at once."""
        code = self.code
        self.mover.arrive()  # with what was brought for nothing, too
        self.way.put(sums, room)
        code.wait()
        matrix = Matrix(self.start(name, self.shape.element, "t", code["y"]), code["tr"], self.count)
        self.mover.take(matrix, self.begin, self.shape.rows, room)

    # ---------------------------------------------------------------- scores
    def scores(self, own: int, tile: int, head: Value, start: Value) -> Scores:
        """Scores of the block's rows and of a tile's, in the unit of powers; minus infinity where nothing is seen."""
        code, way = self.code, self.way
        found = way.scores(own, tile)
        made = [[code.variable(score * self.scale) for score in line] for line in found]
        first = start + way.column
        left = self.others - first
        """Which columns exist, seen from the first."""
        if self.mask:
            base = self.start("mask", self.mask, "m", head)
            steps = [code["mr"], code["mc"]] if self.by_queries else [code["mc"], code["mr"]]
            for row, line in zip(way.rows, made, strict=True):
                at, before = (self.place + row) * steps[0] + first * steps[1], 0
                for column, score in zip(way.columns, line, strict=True):
                    at, before = at + steps[1] * (column - before), column
                    inside = (left > column) & (self.left > row)
                    more = code.read(base, code.select(inside, at, 0), self.mask)
                    score.set(code.fma(code.convert(more, way.kind), self.unit, score.get()))
        stop = start + self.shape.columns
        edge = stop > self.others
        if self.causal:
            some = stop > self.begin + 1 if self.by_queries else start < self.begin + (self.shape.rows - 1)
            edge = code.emit(f"or i1 {edge.name}, {some.name}", "i1")
        with code.when(edge):
            away = self.place - first
            for row, line in zip(way.rows, made, strict=True):
                for column, score in zip(way.columns, line, strict=True):
                    seen = left > column
                    if self.causal:  # keys up to the query's own place
                        seen = seen & (away >= column - row if self.by_queries else away <= column - row)
                    score.set(code.select(seen, score.get(), -INF))
        return [[score.get() for score in line] for line in made]

    def weights(self, scores: Scores, tops: Scores) -> Scores:
        """exp(score - top)"""
        lines = zip(scores, tops, strict=True)
        return [self.way.powers([a - b for a, b in zip(line, other, strict=True)]) for line, other in lines]

    def of_queries(self, values: list[Value]) -> Scores:
        """A number of each query for every score."""
        rows, columns = len(self.way.rows), len(self.way.columns)
        return [[value] * columns for value in values] if self.by_queries else [values] * rows

    # ---------------------------------------------------------------- the way through the tiles
    def reach(self) -> tuple[Value, Value]:
        """Where the rows of the other side begin and end that any row of the block sees, or is seen by."""
        code, zero = self.code, self.code.number(0)
        if not self.causal:
            return zero, self.others
        if self.by_queries:
            return zero, code.minimum(self.others, code.minimum(self.count, self.begin + self.shape.rows))
        return self.begin // self.shape.columns * self.shape.columns, self.others

    def tiles(self, head: Value, early: Callable[[Value], Scores], late: Callable[[Value, Scores], None]) -> None:
        """Run `early` when the first tile is there, and `late` with what that has made when the second is."""
        code, mover, columns = self.code, self.mover, self.shape.columns
        start, stop = self.reach()
        # What no row of the block sees is not read: as zeros it can do no harm.
        first, second = (self.matrix(letter, head)._replace(count=stop) for letter in SIDES[self.kind][-2:])
        mover.bring(first, start, columns, self.first)
        with code.loop(start, stop, columns) as at:
            mover.arrive()
            mover.bring(second, at, columns, self.second)
            found = early(at)
            mover.arrive()
            with code.when(at + columns < stop):
                mover.bring(first, at + columns, columns, self.first)
            late(at, found)

    def text(self) -> str:
        """The module."""
        code = self.code
        head = code["y"] if self.by_queries else code["y"] * code["group"]
        for letter, room in zip(SIDES[self.kind], self.own, strict=False):
            self.mover.bring(self.matrix(letter, head), self.begin, self.shape.rows, room)
        if self.kind == "forward":
            self.forward(head)
        elif self.kind == "dq":
            self.sums_of_queries(head)
        else:
            self.sums_of_keys(head)
        return code.whole()

    # ---------------------------------------------------------------- forward
    def forward(self, head: Value) -> None:
        """Weights from the largest score so far, their sums, and what they take of the values."""
        code, way, kind = self.code, self.way, self.way.kind
        sums = way.zeros()
        tops = [code.variable(code.const(-INF, kind)) for _ in way.rows]
        totals = [code.variable(code.const(0.0, kind)) for _ in way.rows]
        """Of the scores of each thread alone."""

        def early(at: Value) -> Scores:
            scores = self.scores(self.own[0], self.first, head, at)
            bases, before = [], []
            for line, top in zip(scores, tops, strict=True):
                largest = line[0]
                for score in line[1:]:
                    largest = code.intrinsic("maxnum", largest, score)
                largest = code.across_warp(largest, lambda a, b: code.intrinsic("maxnum", a, b), way.lanes)
                largest = code.intrinsic("maxnum", largest, top.get())
                bases.append(code.select(code.compare("eq", largest, -INF), 0.0, largest))
                before.append(top.get() - bases[-1])
                top.set(largest)
            weights, factors = self.weights(scores, self.of_queries(bases)), way.powers(before)
            for line, factor, total in zip(weights, factors, totals, strict=True):
                more = line[0]
                for weight in line[1:]:
                    more = more + weight
                total.set(code.fma(total.get(), factor, more))
            way.scale(sums, factors)
            return weights

        self.tiles(head, early, lambda at, weights: way.accumulate(sums, weights, self.second))
        whole = [code.across_warp(total.get(), lambda a, b: a + b, way.lanes) for total in totals]
        blind = [code.compare("eq", total, 0.0) for total in whole]
        whole = [code.select(none, 1.0, total) for none, total in zip(blind, whole, strict=True)]
        way.scale(sums, [1.0 / total for total in whole])
        self.write("out", sums, self.own[0])
        logarithms = []
        for none, total, top in zip(blind, whole, tops, strict=True):
            one = code.emit(f"insertelement <1 x {kind}> poison, {total}, i64 0", f"<1 x {kind}>")
            natural = code.fma(top.get(), 1 / way.unit, code.lane(FUNCTIONS["log"][1](code, one), 0))
            logarithms.append(code.select(none, 0.0, natural))
        self.keep("lse", head, logarithms)

    # ---------------------------------------------------------------- backward
    def products_of_results(self, head: Value) -> list[Value]:
        """sum(out * grad) of the block's queries, which is kept for other passes."""
        code, way, found = self.code, self.way, []
        many = self.mover.many
        o, g = self.matrix("o", head), self.matrix("g", head)
        for row in way.rows:
            total = code.variable(code.const(0.0, way.kind))
            place = code.select(self.left > row, self.place + row, 0)
            with code.loop(way.lane * many, code["features"], way.lanes * many) as feature:
                type = f"<{many} x {self.shape.element}>" if many > 1 else self.shape.element
                a, b = (code.read(m.base, place * m.step + feature, type) for m in (o, g))
                for k in range(many):
                    terms = (a, b) if many == 1 else (code.lane(a, k), code.lane(b, k))
                    total.set(code.fma(*terms, total.get()))
            found.append(code.across_warp(total.get(), lambda a, b: a + b, way.lanes))
        self.keep("delta", head, found)
        return found

    def ups(self, found: Scores, delta: list[Value]) -> Scores:
        """How the loss changes with each weight, less what it changes with all of the query's."""
        lines = zip(found, self.of_queries(delta), strict=True)
        return [[up - less for up, less in zip(line, other, strict=True)] for line, other in lines]

    def weights_again(self, scores: Scores, lse: list[Value]) -> Scores:
        """The weights of the forward pass."""
        return self.weights(scores, self.of_queries([value * self.unit for value in lse]))

    def slopes(self, weights: Scores, ups: Scores) -> Scores:
        """How the loss changes with each score."""
        return [[w * up for w, up in zip(line, other, strict=True)] for line, other in zip(weights, ups, strict=True)]

    def sums_of_queries(self, head: Value) -> None:
        """dq = scale * sum of slopes * keys"""
        code, way = self.code, self.way
        delta = self.products_of_results(head)
        lse = self.facts("lse", head, self.place, way.rows)
        sums = way.zeros()

        def late(at: Value, ups: Scores) -> None:
            weights = self.weights_again(self.scores(self.own[0], self.second, head, at), lse)
            way.accumulate(sums, self.slopes(weights, ups), self.second)

        self.tiles(head, lambda at: self.ups(way.scores(self.own[1], self.first), delta), late)
        way.scale(sums, [code.convert(code["scale"], way.kind)] * len(way.rows))
        self.write("out", sums, self.own[0])

    def sums_of_keys(self, first_head: Value) -> None:
        """dk = scale * sum of slopes * queries, or dv = sum of weights * grads, over all heads that share the keys."""
        code, way = self.code, self.way
        sums = way.zeros()
        with code.loop(first_head, first_head + code["group"]) as head:

            def scores(at: Value, tile: int) -> Scores:
                return self.scores(self.own[0], tile, head, at)

            def facts(name: str, at: Value) -> list[Value]:
                return self.facts(name, head, at + way.column, way.columns)

            def early_values(at: Value) -> Scores:
                return self.weights_again(scores(at, self.first), facts("lse", at))

            def late_values(at: Value, weights: Scores) -> None:
                way.accumulate(sums, weights, self.second)

            def early_keys(at: Value) -> Scores:
                ups = way.scores(self.own[1], self.first)
                return self.ups(ups, facts("delta", at))

            def late_keys(at: Value, ups: Scores) -> None:
                weights = self.weights_again(scores(at, self.second), facts("lse", at))
                way.accumulate(sums, self.slopes(weights, ups), self.second)

            if self.kind == "dv":
                self.tiles(head, early_values, late_values)
            else:
                self.tiles(head, early_keys, late_keys)
        if self.kind == "dk":
            way.scale(sums, [code.convert(code["scale"], way.kind)] * len(way.rows))
        self.write("out", sums, self.own[0])
