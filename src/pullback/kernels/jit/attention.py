"""Attention without the score matrix: eight queries at a time, whose scores stay in the cache.

For a block of queries: scores = q k^T, weights = exp(scores - max), answer = weights v / sum. The backward pass makes
the weights again from the saved logarithms of the sums. Keys (and values, backward) are turned once per head, so that
neighbouring keys stand in the lanes of a vector. Arrays are (batch, head, place, feature) with any strides but one
between features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, lru_cache
from typing import Any

import numpy as np

from pullback._arrays.memory import empty_alike
from pullback.kernels import workers
from pullback.kernels.jit.compiler.target import VECTOR_BYTES, lanes
from pullback.kernels.jit.gemm.pack import smaller, transposed
from pullback.kernels.jit.language import elementary
from pullback.kernels.jit.language.code import Code, Value, Variable
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, combine, spread, vector_of, write_row
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
QUERIES = 8 if VECTOR_BYTES == 64 else 4
"""Queries per block: with two vectors each, their sums fill half of the registers."""
TOGETHER = 4
"""Queries that are weighed together: exponentials that do not wait for each other."""
VECTORS = 2
CHUNK = 64
"""Queries per item in the forward pass: the keys are turned once for so many."""


class Head:
    """One array of one head: where it begins and how far apart its rows are."""

    def __init__(self, code: Code, array: Value, strides: list[Value], batch: Value, head: Value, element: str) -> None:
        self.base = code.at(array, batch * strides[0] + head * strides[1], element)
        self.code, self.step, self.element = code, strides[2], element

    def row(self, number: Value) -> Value:
        """Where a row begins."""
        return self.code.at(self.base, number * self.step, self.element)

    def unless(self, condition: Value, other: Head) -> Head:
        """This one, or another one where a condition holds: code for both is written once."""
        made = copy(self)
        made.base = self.code.select(condition, other.base, self.base)
        made.step = self.code.select(condition, other.step, self.step)
        return made


def turn(code: Code, head: Head, count: Value, features: Value, out: Value, room: Value, element: str) -> None:
    """out[f, j] = head[j, f] for all rows j, square by square: up to whole squares there are zeros behind the features,
    and the last row again."""
    width, type = lanes(element), vector_of(element)
    with code.loop(0, room, width) as j:
        rows = [head.row(smaller(code, j + i, count - 1)) for i in range(width)]
        with code.loop(0, features, width) as f:
            mask = code.tail_mask(features - f, width)
            for i, line in enumerate(transposed(code, [code.load(row, f, type, mask) for row in rows])):
                code.store(line, out, (f + i) * room + j)


def up_to_squares(features: Value, element: str) -> Value:
    """The features of whole squares."""
    return (features + (lanes(element) - 1)) & -lanes(element)


def products(
    code: Code, rows: list[Value], matrix: Value, step: Value, column: Value, depth: Value, vectors: int, element: str
) -> list[list[Value]]:
    """sum over k of rows[r][k] * matrix[k, column + ...] for each row, as `vectors` vectors."""
    type, width = vector_of(element), lanes(element)
    sums = [[code.variable(code.const(0.0, type)) for _ in range(vectors)] for _ in rows]
    with code.loop(0, depth) as k:
        line = code.at(matrix, k * step + column, element)
        parts = [code.load(line, v * width, type) for v in range(vectors)]
        for row, slots in zip(rows, sums, strict=True):
            factor = code.splat(code.load(row, k, element), width)
            for slot, part in zip(slots, parts, strict=True):
                slot.set(code.fma(factor, part, slot.get()))
    return [[slot.get() for slot in slots] for slots in sums]


def in_columns(code: Code, count: Value, element: str, body: Callable[[Value, int], None], fills: bool = False) -> None:
    """Run `body(column, vectors)` over columns in pairs of vectors, and for the rest, which `fills` a vector or not."""
    width = lanes(element)
    even = count & -(width * VECTORS)
    with code.loop(0, even, width * VECTORS) as column:
        body(column, VECTORS)
    with code.loop(even, count, width) as column:
        code.mask = None if fills else code.tail_mask(count - column, width)
        body(column, 1)
        code.mask = None


class Block:
    """Some neighbouring queries of one head; the last rows of an incomplete block repeat the last query."""

    def __init__(self, code: Code, first: Value, queries: Value, keys: Value, causal: bool, element: str) -> None:
        self.code, self.first, self.element = code, first, element
        self.rows = smaller(code, queries - first, QUERIES)
        self.seen = smaller(code, first + self.rows, keys) if causal else keys
        """Keys that any of these queries may look at."""
        width = lanes(element)
        self.room = (self.seen + (width - 1)) & -width
        """The same up to a whole vector."""
        self.causal = causal

    def row(self, r: Value | int) -> Value:
        """The number of row r, or of the last one."""
        return self.first + smaller(self.code, self.rows - 1, r)

    def pointers(self, head: Head, rows: Sequence[Value | int] = range(QUERIES)) -> list[Value]:
        """Where the rows of an array begin."""
        return [head.row(self.row(r)) for r in rows]

    def looks_at(self, keys: Value, rows: Sequence[Value]) -> list[Value]:
        """How many keys queries see."""
        return [smaller(self.code, self.row(r) + 1, keys) if self.causal else keys for r in rows]

    def fill(self, rows: list[Value], turned: Value, room: Value, features: Value, out: list[Value]) -> None:
        """out[r][j] = rows[r] . turned[:, j], for the keys that are seen."""
        code, element = self.code, self.element

        def body(column: Value, vectors: int) -> None:
            found = products(code, rows, turned, room, column, features, vectors, element)
            for r, line in enumerate(found):
                for v, value in enumerate(line):
                    code.store(value, out[r], column + v * lanes(element))

        in_columns(code, self.room, element, body, fills=True)

    def times(self, rows: list[Value], head: Head, features: Value, write: Callable[..., None]) -> None:
        """The weights in these rows @ head: `write(row, place, value)` for each that exists."""
        code, element = self.code, self.element

        def body(column: Value, vectors: int) -> None:
            found = products(code, rows, head.base, head.step, column, self.seen, vectors, element)
            for r, line in enumerate(found):
                with code.when(code.compare("gt", self.rows, r)):
                    for v, value in enumerate(line):
                        write(self.first + r, r, column + v * lanes(element), value)

        in_columns(code, features, element, body)


def clear(code: Code, place: Value, length: Value, element: str) -> None:
    """Zeros."""
    zero = code.const(0.0, vector_of(element))
    write_row(code, length, element, lambda i: code.store(zero, place, i), 1)


def lines_of(
    code: Code, place: Value, room: Value, element: str, rows: Sequence[Value | int] = range(QUERIES)
) -> list[Value]:
    """Where the rows of a block begin; they lie a vector further apart than they are long, lest places of a power of
    two keys share the same lines of the cache."""
    return [code.at(place, (room + lanes(element)) * r, element) for r in rows]


def scores_of(
    code: Code, lines: list[Value], lengths: list[Value], factor: Value, bias: list[Value] | None, element: str
) -> Callable[[int, Value], tuple[Value, Value]]:
    """The scaled scores of a vector of keys from i on for row r, with their bias, and which lanes are keys it sees."""
    type = vector_of(element)

    def score(r: int, i: Value) -> tuple[Value, Value]:
        mask = code.tail_mask(lengths[r] - i, lanes(element))
        value = code.load(lines[r], i, type) * factor
        return value if bias is None else value + code.load(bias[r], i, type, mask), mask

    return score


SIZES = ("batches", "heads", "shared", "queries", "keys", "features")


def params_of(dtype: str, arrays: str, biased: bool) -> list[calls.Param]:
    """The arrays by name (capitals are written), then scratch, the sizes and the strides of each."""
    names = [*arrays, *(["bias"] if biased else [])]
    params = [calls.array(dtype, strided=True, write=name.isupper()) for name in names]
    params += [calls.array(dtype, "workers*each", write=True)]
    params += [calls.integer(name) for name in ("workers", "each", *SIZES)]
    return params + [calls.integer() for _ in range(3 * len(names))] + [calls.number()]


def unpack(code: Code, given: tuple[Value, ...], count: int) -> tuple[Any, ...]:
    """Arrays, the scratch of this worker, sizes by name, strides by array, and the factor of the scores."""
    arrays, scratch, (total, each) = given[:count], given[count], given[count + 1 : count + 3]
    sizes = dict(zip(SIZES, given[count + 3 : count + 9], strict=True))
    steps = [list(given[i : i + 3]) for i in range(count + 9, count + 9 + 3 * count, 3)]
    mine = code.select(code.worker < total, code.worker, code.const(0, "i64"))
    return arrays, (scratch, mine * each), sizes, steps, given[-1]


@cache
def forward_kernel(element: str, causal: bool, with_bias: bool) -> Callable[..., bool]:
    """The answers and the logarithms of the sums. An item is a chunk of queries of one head."""
    dtype, type, width = DTYPES[element], vector_of(element), lanes(element)
    names = "qkvOL"

    def describe(code: Code, *given: Value) -> None:
        arrays, (scratch, mine), n, steps, factor = unpack(code, given, len(names) + with_bias)
        room = (n["keys"] + (width * VECTORS - 1)) & -(width * VECTORS)
        zero = code.const(0.0, type)
        inverse, totals, tops = (code.stack(max(QUERIES, width), element) for _ in range(3))
        for place in (totals, tops):
            for r in range(0, max(QUERIES, width), width):
                code.store(code.const(1.0, type), place, r)
        turned = code.at(scratch, mine, element)
        scores = code.at(turned, room * up_to_squares(n["features"], element), element)
        lines = lines_of(code, scores, room, element)
        chunks = (n["queries"] + (CHUNK - 1)) // CHUNK
        spread_factor = spread(code, factor)
        with code.loop(code.begin, code.end) as item:
            number, chunk = item // chunks, item % chunks
            batch, head = number // n["heads"], number % n["heads"]
            own = head // n["shared"]
            q, out, out_sums = (Head(code, arrays[i], steps[i], batch, head, element) for i in (0, 3, 4))
            k, v = (Head(code, arrays[i], steps[i], batch, own, element) for i in (1, 2))
            turn(code, k, n["keys"], n["features"], turned, room, element)
            last = code.select((chunk + 1) * CHUNK < n["queries"], (chunk + 1) * CHUNK, n["queries"])
            with code.loop(chunk * CHUNK, last, QUERIES) as first:
                block = Block(code, first, last, n["keys"], causal, element)
                block.fill(block.pointers(q), turned, room, n["features"], lines)
                bias = Head(code, arrays[5], steps[5], batch, head, element) if with_bias else None
                with code.loop(0, QUERIES, TOGETHER) as group:
                    rows = [group + r for r in range(TOGETHER)]
                    some, lengths = lines_of(code, scores, room, element, rows), block.looks_at(n["keys"], rows)
                    biases = None if bias is None else block.pointers(bias, rows)
                    score = scores_of(code, some, lengths, spread_factor, biases, element)
                    highest = [code.variable(code.const(-float("inf"), type)) for _ in rows]
                    with code.loop(0, block.room, width) as i:
                        for r, top in enumerate(highest):
                            value, mask = score(r, i)
                            top.set(combine(code, "top", top.get(), code.select(mask, value, -float("inf"))))
                    found = [code.reduce(top.get(), "max") for top in highest]
                    seen = [code.select(code.compare("eq", top, -float("inf")), 0.0, top) for top in found]
                    spread_tops = [spread(code, top) for top in seen]
                    sums = [[code.variable(zero) for _ in range(2)] for _ in rows]
                    with code.loop(0, block.room, width) as i:
                        odd = code.compare("ne", i & width, 0)
                        for r, (even_sum, odd_sum) in enumerate(sums):
                            value, mask = score(r, i)
                            weight = code.select(mask, elementary.exp(code, value - spread_tops[r]), 0.0)
                            # Keys after this query count for the others of the block only.
                            code.store(weight, some[r], i)
                            # Every other vector of what fills pairs of them has a sum of its own.
                            second = code.tail_mask(code.select(odd, lengths[r] & -(2 * width), 0) - i, width)
                            even_sum.set(even_sum.get() + code.select(second, 0.0, weight))
                            odd_sum.set(odd_sum.get() + code.select(second, weight, 0.0))
                    for r, (even_sum, odd_sum) in enumerate(sums):
                        code.store(found[r], tops, rows[r])
                        code.store(code.reduce(even_sum.get() + odd_sum.get(), "add"), totals, rows[r])
                for r in range(0, QUERIES, width):
                    top, total = code.load(tops, r, type), code.load(totals, r, type)
                    blind = code.compare("eq", top, -float("inf"))
                    code.store(code.select(blind, 0.0, code.const(1.0, type) / total), inverse, r)
                    code.store(code.select(blind, 0.0, elementary.log(code, total) + top), totals, r)
                with code.loop(0, block.rows) as r:
                    code.store(code.load(totals, r, element), out_sums.row(first + r), 0)

                def write(row: Value, r: int, place: Value, value: Value) -> None:
                    scale = spread(code, code.load(inverse, r, element))
                    code.store(value * scale, out.row(row), place)

                block.times(lines, v, n["features"], write)

    return calls.kernel(
        f"attention_{'causal_' * causal}{'bias_' * with_bias}{dtype}", params_of(dtype, names, with_bias), describe,
        "softmax(q k^T * scale) v, and log sum exp of the scores", element,
    )  # fmt: skip


@cache
def backward_kernel(element: str, causal: bool, with_bias: bool) -> Callable[..., bool]:
    """The gradients of queries, keys and values. An item is a head of keys, with all queries that share it."""
    dtype, type, width = DTYPES[element], vector_of(element), lanes(element)
    names = "gqkvolQKV"

    def describe(code: Code, *given: Value) -> None:
        arrays, (scratch, mine), n, steps, factor = unpack(code, given, len(names) + with_bias)
        room = (n["keys"] + (width * VECTORS - 1)) & -(width * VECTORS)
        whole = room * up_to_squares(n["features"], element)
        keys = code.at(scratch, mine, element)
        scores = code.at(keys, whole * 2, element)
        changes = code.at(scores, (room + width) * QUERIES, element)

        def sides(side: Value) -> list[Value]:
            """The rows of the scores, or those of the changes of the weights."""
            return lines_of(code, code.select(code.compare("eq", side, 0), scores, changes), room, element)

        scale = spread(code, factor)
        groups = n["heads"] // n["shared"]
        with code.loop(code.begin, code.end) as item:
            batch, own = item // groups, item % groups
            k, v, d_k, d_v = (Head(code, arrays[i], steps[i], batch, own, element) for i in (2, 3, 7, 8))
            with code.loop(0, 2) as side:
                other = code.compare("ne", side, 0)
                turned = code.at(keys, whole * side, element)
                turn(code, k.unless(other, v), n["keys"], n["features"], turned, room, element)
            with code.loop(0, n["keys"]) as j:
                for head in (d_k, d_v):
                    clear(code, head.row(j), n["features"], element)
            with code.loop(own * n["shared"], (own + 1) * n["shared"]) as number:
                g, q, out, sums, d_q = (
                    Head(code, arrays[i], steps[i], batch, number, element) for i in (0, 1, 4, 5, 6)
                )
                with code.loop(0, n["queries"], QUERIES) as first:
                    block = Block(code, first, n["queries"], n["keys"], causal, element)
                    with code.loop(0, 2) as side:
                        turned = code.at(keys, whole * side, element)
                        rows = block.pointers(q.unless(code.compare("ne", side, 0), g))
                        block.fill(rows, turned, room, n["features"], sides(side))
                    bias = Head(code, arrays[9], steps[9], batch, number, element) if with_bias else None
                    with code.loop(0, QUERIES, TOGETHER) as group:
                        rows = [group + r for r in range(TOGETHER)]
                        some, changed = (lines_of(code, place, room, element, rows) for place in (scores, changes))
                        biases = None if bias is None else block.pointers(bias, rows)
                        score = scores_of(code, some, block.looks_at(n["keys"], rows), scale, biases, element)
                        left, right = block.pointers(g, rows), block.pointers(out, rows)
                        inner = inner_products(code, left, right, n["features"], element)
                        tops = [spread(code, code.load(place, 0, element)) for place in block.pointers(sums, rows)]
                        with code.loop(0, block.room, width) as i:
                            for r in range(TOGETHER):
                                value, mask = score(r, i)
                                weight = elementary.exp(code, value - tops[r])
                                change = (code.load(changed[r], i, type) - inner[r]) * weight * scale
                                code.store(code.select(mask, change, 0.0), changed[r], i)
                                code.store(code.select(mask, weight, 0.0), some[r], i)
                    block.times(
                        lines_of(code, changes, room, element), k, n["features"],
                        lambda row, r, place, value: code.store(value, d_q.row(row), place),
                    )  # fmt: skip
                    with code.loop(0, 2) as side:
                        other = code.compare("eq", side, 0)
                        source, to = q.unless(other, g), d_k.unless(other, d_v)
                        spread_to(code, block, sides(side), source, to, n["features"])

    return calls.kernel(
        f"attention_backward_{'causal_' * causal}{'bias_' * with_bias}{dtype}", params_of(dtype, names, with_bias),
        describe, "the gradients of softmax(q k^T * scale) v", element,
    )  # fmt: skip


def inner_products(code: Code, left: list[Value], right: list[Value], length: Value, element: str) -> list[Value]:
    """The inner products of rows, each in all lanes of a vector."""
    type = vector_of(element)
    totals = [code.variable(code.const(0.0, type)) for _ in left]

    def take(i: Value) -> None:
        for a, b, total in zip(left, right, totals, strict=True):
            value = code.load(a, i, type) * code.load(b, i, type)
            value = value if code.mask is None else code.select(code.mask, value, 0.0)
            total.set(total.get() + value)

    write_row(code, length, element, take, 1)
    return [spread(code, code.reduce(total.get(), "add")) for total in totals]


def spread_to(code: Code, block: Block, weights: list[Value], source: Head, to: Head, features: Value) -> None:
    """to[j] += sum over the rows r of the block of weights[r][j] * source[r], for all keys j that are seen."""
    element = block.element
    type, width = vector_of(element), lanes(element)
    rows = block.pointers(source)

    def body(column: Value, vectors: int) -> None:
        held: list[list[Variable]] = []
        for r, row in enumerate(rows):
            exists = code.compare("gt", block.rows, r)
            parts = [code.load(row, column + v * width, type) for v in range(vectors)]
            # Rows that only fill up the block add nothing.
            held.append([code.variable(code.select(exists, part, code.const(0.0, type))) for part in parts])
        with code.loop(0, block.seen) as j:
            places = [code.at(to.row(j), column + v * width, element) for v in range(vectors)]
            totals = [code.load(place, 0, type) for place in places]
            for r in range(QUERIES):
                factor = code.splat(code.load(weights[r], j, element), width)
                totals = [code.fma(factor, part.get(), t) for part, t in zip(held[r], totals, strict=True)]
            for place, total in zip(places, totals, strict=True):
                code.store(total, place, 0)

    in_columns(code, features, element, body)


# ------------------------------------------------------------------ calls


def arguments(arrays: list[Array], each: int, query: Array, key: Array) -> tuple[Any, ...]:
    """Scratch, sizes and strides (in elements) as the kernels want them."""
    count = max(workers.threads(), 1)
    strides = tuple([array.strides for array in arrays])
    known = geometry(query.shape, key.shape, strides, query.itemsize)
    return (np.empty(count * each, query.dtype), count, each, *known)


@lru_cache(64)
def geometry(query: tuple[int, ...], key: tuple[int, ...], strides: Any, itemsize: int) -> tuple[int, ...]:
    """Sizes by the order of SIZES, then the strides of each array."""
    batches, heads, queries, features = query
    steps = [step // itemsize for own in strides for step in (*own[:3], 0, 0)[:3]]
    return (batches, heads, heads // key[1], queries, key[2], features, *steps)


def fits(query: Array, key: Array, value: Array, bias: Array | None) -> str | None:
    """The element type if the kernels take these arrays: features lie side by side."""
    element = ELEMENTS.get(query.dtype.char)
    if element is None or query.ndim != 4 or key.shape != value.shape or not query.size or not key.size:
        return None
    if query.shape[3] != key.shape[3] or query.shape[1] % key.shape[1]:
        return None
    return element if has_rows(query) and has_rows(key) and has_rows(value) else None


def has_rows(array: Array) -> bool:
    """Whether features lie side by side."""
    return array.strides[3] == array.itemsize


def full_bias(bias: Array | None, query: Array, key: Array) -> list[Array]:
    """The bias with the shape of the scores, without a copy unless its rows are strided."""
    if bias is None:
        return []
    shape = (*query.shape[:3], key.shape[2])
    wide = np.broadcast_to(bias, shape)
    return [wide if wide.strides[3] == wide.itemsize else np.ascontiguousarray(wide)]


def room_for(keys: int, element: str) -> int:
    """Keys up to a whole number of blocks."""
    width = lanes(element) * VECTORS
    return -(-keys // width) * width


def scratch_for(room: int, features: int, element: str) -> int:
    """Elements for the keys that are turned, and for the rows of a block."""
    width = lanes(element)
    return room * (-(-features // width) * width) + (room + width) * QUERIES


def forward(
    query: Array, key: Array, value: Array, bias: Array | None, causal: bool, scale: float
) -> tuple[Array, Array] | None:
    """The answers, in the memory order of the queries, and the logarithms of the sums; None if unsupported."""
    element = fits(query, key, value, bias)
    if element is None:
        return None
    out, sums = empty_alike(query), np.empty(query.shape[:3], query.dtype)
    if not has_rows(out):
        return None
    arrays = [query, key, value, out, sums, *full_bias(bias, query, key)]
    room = room_for(key.shape[2], element)
    each = scratch_for(room, query.shape[3], element)
    items = query.shape[0] * query.shape[1] * -(-query.shape[2] // CHUNK)
    kernel = forward_kernel(element, causal, bias is not None)
    done = kernel(*arrays, *arguments(arrays, each, query, key), scale, items, grain(query, key, items))
    return (out, sums) if done else None


def backward(
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    sums: Array,
    bias: Array | None,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array] | None:
    """The gradients of queries, keys and values; None if unsupported."""
    element = fits(query, key, value, bias)
    if element is None or not (has_rows(grad) and has_rows(out)):
        return None
    made = [empty_alike(array) for array in (query, key, value)]
    if not all([has_rows(array) for array in made]):
        return None
    arrays = [grad, query, key, value, out, sums, *made, *full_bias(bias, query, key)]
    room = room_for(key.shape[2], element)
    each = 2 * scratch_for(room, query.shape[3], element)
    items = key.shape[0] * key.shape[1]
    kernel = backward_kernel(element, causal, bias is not None)
    done = kernel(*arrays, *arguments(arrays, each, query, key), scale, items, grain(query, key, items))
    return (made[0], made[1], made[2]) if done else None


def grain(query: Array, key: Array, items: int) -> int:
    """Items per share: a share has at least some ten thousand multiplications."""
    return max(1, int(65536 * items / (query.size * key.shape[2])))
