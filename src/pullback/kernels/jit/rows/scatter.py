"""Rows added to the rows of a table that indices name: the backward pass of embeddings and of indexing.

The table is cut into parts, and every part takes from all rows those that are its own, in their order. So each sum is
taken in the order of the indices whatever the number of threads, and an index outside the table belongs to no part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._thresholds import ROWS_SHARE
from pullback.kernels.jit.compiler.target import lanes
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, vector_of, write_row
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
PARTS = 8
"""How many parts a large table has."""


@cache
def add_rows_kernel(element: str, clear: bool) -> Callable[..., bool]:
    """table[index[k]] += rows[k]; `clear` sets the table to zero first. An item is a part of the table."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *given: Value) -> None:
        table, indices, rows, count, width, n, parts = given
        each = (count + parts - 1) // parts
        with code.loop(code.begin, code.end) as part:
            low = part * each
            high = code.select(low + each < count, low + each, count)
            if clear:
                zero = code.const(0.0, type)
                code.vectors(low * width, high * width, lanes(element), lambda i: code.store(zero, table, i), 4)
            with code.loop(0, n) as k:
                index = code.load(indices, k, "i64")
                with code.when((index >= low) & (index < high)):
                    target, source = code.at(table, index * width, element), code.at(rows, k * width, element)
                    with code.when(code.compare("eq", width, 1)):
                        code.store(code.load(target, 0, element) + code.load(source, 0, element), target, 0)
                    with code.when(width > 1):
                        write_row(
                            code,
                            width,
                            element,
                            lambda i: code.store(code.load(target, i, type) + code.load(source, i, type), target, i),
                            4,
                        )

    params = [calls.array(dtype, "count*width", write=True), calls.array("int64", "n"), calls.array(dtype, "n*width")]
    params += [calls.integer(name) for name in ("count", "width", "n", "parts")]
    return calls.kernel(f"add_rows_{'clear_' * clear}{dtype}", params, describe)


def add_rows(table: Array, index: Array, rows: Array, clear: bool = False) -> bool:
    """table[index[k]] += rows[k] for every k, in order; False if it is unsupported."""
    element = ELEMENTS.get(table.dtype.char)
    if element is None or not table.size or not rows.size or not table.flags.c_contiguous:
        return False
    count = table.shape[0]
    width, n = table.size // count, index.size
    work = n * width + (table.size if clear else 0)
    parts = PARTS if work >= ROWS_SHARE else 1
    kernel = add_rows_kernel(element, clear)
    return kernel(table, index, np.ascontiguousarray(rows), count, width, n, parts, parts, 1)
