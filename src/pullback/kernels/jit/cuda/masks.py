"""Where a mask is True, for a grid of threads: the places of its True elements, a vector for each dimension.

A running sum along pieces of the mask, and one of the pieces' sums, say how many True elements come before a place.
"""

from __future__ import annotations

from pullback.kernels.jit.cuda.grid import THREADS, Grid

PIECE = 2048
"""Elements of a mask that are summed up in one go."""


def name_of(dims: int) -> str:
    """The name of a kernel."""
    return f"mask_places_{dims}"


def text_of(dims: int) -> str:
    """The module. Arguments: the mask, the running sums of its pieces and of those pieces' sums, the coordinates; how
    many elements the mask has, how many of them are True, and its sizes."""
    sizes = [f"d{d}" for d in range(dims)]
    code = Grid(name_of(dims), "mask running before out", " ".join(["count", "total", *sizes]))
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]), code.when(code.compare("ne", code.read("%mask", index, "i8"), 0)):
        piece = index // PIECE
        first = code.compare("eq", piece, 0)
        lower = code.read("%before", code.select(first, 0, piece - 1), "i32")
        place = code.read("%running", index, "i32") + code.select(first, 0, lower)
        row = code.convert(place, "i64") - 1
        for d, coordinate in enumerate(code.parts_of(index, [code[size] for size in sizes])):
            code.write(coordinate, "%out", code["total"] * d + row, "i64")
    return code.whole()
