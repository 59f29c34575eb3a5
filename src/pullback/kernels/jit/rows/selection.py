"""Sorting rows by their digits, and the few largest elements of rows.

Elements are compared by keys: integers in the same order, with nan above all and -0.0 equal to 0.0. A key whose bits
are all flipped has the opposite order, so that one kernel serves both directions. Equal elements keep their order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._thresholds import FEW_SELECTED, MOST_SELECTED
from pullback.kernels import workers
from pullback.kernels.jit.compiler.target import SIZES, lanes
from pullback.kernels.jit.language.code import FLOATS, Code, Value, element_of
from pullback.kernels.jit.rows.programs import share
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
ELEMENTS = {"f": "float", "d": "double", "i": "i32", "l": "i64"}
DTYPES = {"float": "float32", "double": "float64", "i32": "int32", "i64": "int64"}
KEYS = {"float": "i32", "double": "i64", "i32": "i32", "i64": "i64"}
LONGEST = 2**31
"""Places in a row are counted in 32 bits."""
DIGITS = 256


def key(code: Code, x: Value, flip: Value) -> Value:
    """A signed integer that is ordered as the element is."""
    type = element_of(x.type)
    if type in FLOATS:
        bits = code.bitcast(x.binary(0.0, ("fadd", "")), KEYS[type])
        most = 2 ** (8 * SIZES[type] - 1) - 1
        bits = bits ^ ((bits >> (8 * SIZES[type] - 1)) & most)
        x = code.select(code.compare("uno", x, x), most, bits)
    return x ^ flip


# ------------------------------------------------------------------ sorting


@cache
def sort_kernel(element: str) -> Callable[..., bool]:
    """Sort rows, from the last byte of the keys to the first. An item is a row."""
    dtype, kind = DTYPES[element], KEYS[element]
    bytes = SIZES[element]

    def digit_of(code: Code, number: Value, shift: Value) -> Value:
        shifted = code.emit(f"lshr {number}, {shift.name}", kind) & (DIGITS - 1)
        return code.convert(shifted, "i64", True)

    def describe(code: Code, x: Value, values: Value, places: Value, keys: Value, spots: Value, *sizes: Value) -> None:
        length, total, flip = sizes[1:]
        counts = code.stack(bytes * DIGITS, "i32")
        # The highest bit is flipped too, so that digits count up from the least number.
        mask = code.convert(flip, kind) ^ -(2 ** (8 * bytes - 1))
        mine = code.select(code.worker < total, code.worker, code.const(0, "i64")) * length * 2
        with code.loop(code.begin, code.end) as row:
            source, sorted_values = (code.at(p, row * length, element) for p in (x, values))
            sorted_places = code.at(places, row * length, "i64")
            keys_from, keys_to = (code.variable(code.at(keys, at, kind)) for at in (mine, mine + length))
            spots_from, spots_to = (code.variable(code.at(spots, at, "i32")) for at in (mine, mine + length))
            code.do(f"call void @llvm.memset.p0.i64({counts}, i8 0, i64 {bytes * DIGITS * 4}, i1 false)")
            code.declare("llvm.memset.p0.i64", "void", "ptr", "i8", "i64", "i1")
            with code.loop(0, length) as i:
                number = key(code, code.load(source, i, element), mask)
                code.store(number, keys_from.get(), i)
                code.store(code.convert(i, "i32"), spots_from.get(), i)
                for byte in range(bytes):
                    at = digit_of(code, number, code.const(8 * byte, kind)) + byte * DIGITS
                    code.store(code.load(counts, at, "i32") + 1, counts, at)
            with code.loop(0, bytes) as byte:
                shift, mine_counts = code.convert(byte * 8, kind), code.at(counts, byte * DIGITS, "i32")
                first = code.load(mine_counts, digit_of(code, code.load(keys_from.get(), 0, kind), shift), "i32")
                # A digit that all numbers share changes nothing.
                with code.when(code.compare("ne", code.convert(first, "i64"), length)):
                    before = code.variable(code.const(0, "i32"))
                    with code.loop(0, DIGITS) as digit:
                        here = code.load(mine_counts, digit, "i32")
                        code.store(before.get(), mine_counts, digit)
                        before.set(before.get() + here)
                    a, b, c, d = keys_from.get(), keys_to.get(), spots_from.get(), spots_to.get()
                    with code.loop(0, length) as i:
                        number = code.load(a, i, kind)
                        digit = digit_of(code, number, shift)
                        to = code.load(mine_counts, digit, "i32")
                        code.store(to + 1, mine_counts, digit)
                        at = code.convert(to, "i64")
                        code.store(number, b, at)
                        code.store(code.load(c, i, "i32"), d, at)
                    for variable, value in ((keys_from, b), (keys_to, a), (spots_from, d), (spots_to, c)):
                        variable.set(value)
            found = spots_from.get()
            with code.loop(0, length) as i:
                spot = code.convert(code.load(found, i, "i32"), "i64")
                code.store(spot, sorted_places, i)
                code.store(code.load(source, spot, element), sorted_values, i)

    params = [calls.array(dtype, "count*length")]
    params += [calls.array(name, "count*length", write=True) for name in (dtype, "int64")]
    params += [calls.array(name, "workers*2*length", write=True) for name in (f"int{8 * SIZES[kind]}", "int32")]
    params += [calls.integer(name) for name in ("count", "length", "workers", "flip")]
    return calls.kernel(f"sort_{dtype}", params, describe)


def rows_of(x: Array, dim: int) -> tuple[str, Array, int] | None:
    """The element type, the array with `dim` last in row-major order, and `dim`; None if it is NumPy's."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or not x.size or not -x.ndim <= dim < x.ndim or x.shape[dim] >= LONGEST:
        return None
    dim %= x.ndim
    return element, np.ascontiguousarray(x if dim == x.ndim - 1 else np.moveaxis(x, dim, -1)), dim


def sort(x: Array, dim: int, descending: bool) -> tuple[Array, Array] | None:
    """The sorted elements along a dimension and where they were; None if unsupported."""
    found = rows_of(x, dim)
    if found is None:
        return None
    element, rows, dim = found
    values, places = np.empty(rows.shape, x.dtype), np.empty(rows.shape, np.int64)
    length = rows.shape[-1]
    count = rows.size // length
    grain = share(16 * length)
    shares = workers.threads() if count > grain else 1
    scratch = (np.empty((shares, 2, length), kind) for kind in (f"i{SIZES[element]}", "i4"))
    flip = -1 if descending else 0
    done = sort_kernel(element)(rows, values, places, *scratch, count, length, shares, flip, count, grain)
    return (back(values, dim), back(places, dim)) if done else None


def back(rows: Array, dim: int) -> Array:
    """The last dimension, moved to its place."""
    return rows if dim == rows.ndim - 1 else row_major(np.moveaxis(rows, -1, dim))


# ------------------------------------------------------------------ the few largest


@cache
def topk_kernel(element: str) -> Callable[..., bool]:
    """The k first of rows in falling order of their keys: kept in order while the row is read. An item is a row.

    Where numbers rise and rise, each is one of the best so far: the kernel gives up, sets `failed`, and sorting is
    quicker.
    """
    dtype, kind, width = DTYPES[element], KEYS[element], lanes(element)
    type = f"<{width} x {element}>"

    def describe(code: Code, x: Value, values: Value, places: Value, failed: Value, *sizes: Value) -> None:
        length, k, flip = sizes[1:]
        rows_to_do = code.select((k <= MOST_SELECTED) & (k <= length) & (k > 0), code.end, code.begin)
        best = code.stack(MOST_SELECTED, kind)
        mask = code.convert(flip, kind)
        masks = code.splat(mask, width)
        code.declare("llvm.cttz.i64", "i64", "i64", "i1")
        with code.loop(code.begin, rows_to_do) as row:
            source, out = code.at(x, row * length, element), code.at(values, row * k, element)
            indices = code.at(places, row * k, "i64")

            def insert(number: Value, i: Value, have: Value) -> None:
                """Put one of the best where it belongs, after its equals; the last of `have` + 1 falls off at k."""
                position = code.variable(code.const(0, "i64"))
                with code.loop(0, have) as j:
                    above = code.load(best, j, kind) >= number
                    position.set(position.get() + code.convert(above, "i64"))
                at = position.get()
                with code.loop(0, have - at) as j:
                    to = have - j
                    code.store(code.load(best, to - 1, kind), best, to)
                    code.store(code.load(indices, to - 1, "i64"), indices, to)
                code.store(number, best, at)
                code.store(i, indices, at)

            with code.loop(0, k) as i:
                insert(key(code, code.load(source, i, element), mask), i, i)

            left = code.variable(length * 4 // k + k * 16)

            def consider(i: Value) -> None:
                number = key(code, code.load(source, i, element), mask)
                with code.when((number > code.load(best, k - 1, kind)) & (left.get() > 0)):
                    insert(number, i, k - 1)
                    left.set(left.get() - 1)

            whole = k + ((length - k) & -width)
            with code.loop(k, whole, width) as first:
                numbers = key(code, code.load(source, first, type), masks)
                above = numbers > code.splat(code.load(best, k - 1, kind), width)
                bits = code.emit(f"bitcast {above} to i{width}", f"i{width}")
                with code.when(code.compare("ne", bits, 0)):
                    hits = code.variable(code.emit(f"zext {bits} to i64", "i64"))
                    with code.loop(0, code.intrinsic("ctpop", hits.get())):
                        lane = code.emit(f"call i64 @llvm.cttz.i64({hits.get()}, i1 true)", "i64")
                        hits.set(hits.get() & (hits.get() - 1))
                        consider(first + lane)
            with code.loop(whole, length) as i:
                consider(i)
            with code.when(left.get() <= 0):
                code.store(code.const(1, "i64"), failed, 0)
            with code.loop(0, k) as j:
                code.store(code.load(source, code.load(indices, j, "i64"), element), out, j)

    params = [calls.array(dtype, "count*length")]
    params += [calls.array(name, "count*k", write=True) for name in (dtype, "int64")]
    params.append(calls.array("int64", "1", write=True))
    params += [calls.integer(name) for name in ("count", "length", "k", "flip")]
    return calls.kernel(f"topk_{dtype}", params, describe)


def topk(x: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array] | None:
    """The k largest or smallest along a dimension, in order, and where they are; None if unsupported."""
    found = rows_of(x, dim)
    if (
        found is None
        or not 0 < k <= x.shape[dim]
        or (k > FEW_SELECTED and (k > MOST_SELECTED or 4 * k * k > x.shape[dim]))
    ):
        return None
    element, rows, dim = found
    shape = (*rows.shape[:-1], k)
    values, places, failed = np.empty(shape, x.dtype), np.empty(shape, np.int64), np.zeros(1, np.int64)
    length = rows.shape[-1]
    count = rows.size // length
    done = topk_kernel(element)(
        rows, values, places, failed, count, length, k, 0 if largest else -1, count, share(length + k * k * 8)
    )
    return (back(values, dim), back(places, dim)) if done and not failed[0] else None
