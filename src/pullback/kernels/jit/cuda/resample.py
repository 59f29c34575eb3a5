"""One dimension resampled, for a grid of threads: every element of the result is a weighted sum of a few elements.

A table says which: those of result i are the entries from starts[i] to starts[i + 1], each with a place and a weight.
The gradient is the same with the table of the elements instead of that of the results.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import THREADS, Grid


def name_of(element: str) -> str:
    """The name of a kernel."""
    return f"resample_{element}"


def text_of(element: str) -> str:
    """The module. Arguments: what is read, what is written, the starts, places and weights of the table; how many
    elements are written, how many of them along the dimension, how many are read along it, and how many lie within one
    step of it."""
    code = Grid(name_of(element), "x out starts places weights", "count rows size inner")
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]):
        outer, row, within = code.parts_of(index, [code["count"], code["rows"], code["inner"]])
        total = code.variable(code.const(0, element))
        with code.loop(code.read("%starts", row, "i64"), code.read("%starts", row + 1, "i64")) as entry:
            place = code.read("%places", entry, "i64")
            found = code.read("%x", (outer * code["size"] + place) * code["inner"] + within, element)
            total.set(total.get() + found * code.read("%weights", entry, element))
        code.write(total.get(), "%out", index, element)
    return code.whole()
