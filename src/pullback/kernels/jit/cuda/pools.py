"""Windows over images for a grid of threads: maxima and their places, averages, and the gradients of averages.

A thread computes one result from its whole window; images have three dimensions, the first of one pixel where there are
two. In the gradient of an average a thread is an element of the image and adds up the windows it lies in, in order.
"""

from __future__ import annotations

from collections.abc import Callable

from pullback.kernels.jit.cuda.grid import THREADS, Grid
from pullback.kernels.jit.language.code import Value

AXES = "012"
INTEGERS = "count " + " ".join([f"{letter}{axis}" for letter in "oikspd" for axis in AXES]) + " padded divisor"
"""Results; sizes of the results and images, windows, strides, paddings and dilations; whether padding counts; a divisor
in the place of the number of elements, or 0."""


def name_of(how: str, element: str) -> str:
    """The name of a kernel."""
    return f"pool_{how}_{element}"


def text_of(how: str, element: str) -> str:
    """The module. Arguments: what is read, what is written, the places of maxima; then INTEGERS."""
    code = Grid(name_of(how, element), "x out places", INTEGERS)
    kind = "double" if element == "double" else "float"
    index = code["x"] * THREADS + code["thread"]
    with code.when(index < code["count"]):
        KINDS[how](code, index, element, kind)
    return code.whole()


def windows(code: Grid, begins: list[Value], visit: Callable[[Value], None]) -> None:
    """Visit every element of a window that lies in the image."""

    def along(axis: int, offset: Value | None) -> None:
        a = AXES[axis]
        with code.loop(0, code[f"k{a}"]) as step:
            at = begins[axis] + step * code[f"d{a}"]
            inside = code.emit(f"and i1 {(at >= 0).name}, {(at < code[f'i{a}']).name}", "i1")
            with code.when(inside):
                here = at if offset is None else offset * code[f"i{a}"] + at
                if axis == 2:
                    visit(here)
                else:
                    along(axis + 1, here)

    along(0, None)


def begin(code: Grid, places: list[Value]) -> list[Value]:
    """Where a window begins along every dimension."""
    return [place * code[f"s{a}"] - code[f"p{a}"] for place, a in zip(places, AXES, strict=True)]


def plane(code: Grid, letter: str) -> Value:
    """The pixels of an image, or of a result."""
    return code[f"{letter}0"] * code[f"{letter}1"] * code[f"{letter}2"]


def maximum(code: Grid, index: Value, element: str, kind: str) -> None:
    """The largest of a window and its place."""
    image, *places = code.parts_of(index, [code["count"], *[code[f"o{a}"] for a in AXES]])
    largest(code, index, image, element, kind, lambda visit: windows(code, begin(code, places), visit))


def adaptive_maximum(code: Grid, index: Value, element: str, kind: str) -> None:
    """The same of windows that share out the image: number p of n begins at p * size // n, and ends before the next
    one begins or, where sizes do not divide, one further on."""
    image, *places = code.parts_of(index, [code["count"], *[code[f"o{a}"] for a in AXES]])

    def walk(visit: Callable[[Value], None]) -> None:
        def along(axis: int, offset: Value | None) -> None:
            place, size, count = places[axis], code[f"i{AXES[axis]}"], code[f"o{AXES[axis]}"]
            with code.loop(place * size // count, ((place + 1) * size + count - 1) // count) as at:
                here = at if offset is None else offset * size + at
                if axis == 2:
                    visit(here)
                else:
                    along(axis + 1, here)

        along(0, None)

    largest(code, index, image, element, kind, walk)


def largest(
    code: Grid, index: Value, image: Value, element: str, kind: str, walk: Callable[[Callable[[Value], None]], None]
) -> None:
    """The largest of the elements that are walked over, and its place; the first of several, nan before all."""
    base = image * plane(code, "i")
    best, where = code.variable(code.const(float("-inf"), kind)), code.variable(code.number(-1))

    def visit(place: Value) -> None:
        value = code.read("%x", base + place, element)
        larger = code.compare("gt", value, best.get())
        nan = code.compare("uno", value, value)
        first = code.compare("lt", where.get(), 0)
        taken = code.emit(f"or i1 {larger.name}, {nan.name}", "i1")
        taken = code.emit(f"or i1 {taken.name}, {first.name}", "i1")
        best.set(code.select(taken, value, best.get()))
        where.set(code.select(taken, place, where.get()))

    walk(visit)
    code.write(best.get(), "%out", index, element)
    code.write(where.get(), "%places", index, "i64")


def divisor(code: Grid, begins: list[Value], kind: str) -> Value:
    """What the sum of a window is divided by."""
    padded, inner = code.number(1), code.number(1)
    for first, a in zip(begins, AXES, strict=True):
        size, stop = code[f"i{a}"], first + code[f"k{a}"]
        beyond = size + code[f"p{a}"]
        last = code.select(stop < beyond, stop, beyond)
        padded = padded * (last - first)
        last, start = code.select(last < size, last, size), code.select(first < 0, 0, first)
        inner = inner * (last - start)
    given = code["divisor"]
    count = code.select(code.compare("ne", code["padded"], 0), padded, inner)
    return code.convert(code.select(code.compare("ne", given, 0), given, count), kind)


def average(code: Grid, index: Value, element: str, kind: str) -> None:
    """The mean of a window."""
    image, *places = code.parts_of(index, [code["count"], *[code[f"o{a}"] for a in AXES]])
    base, total = image * plane(code, "i"), code.variable(code.const(0, kind))
    begins = begin(code, places)
    windows(code, begins, lambda place: total.set(total.get() + code.read("%x", base + place, element)))
    code.write(total.get() / divisor(code, begins, kind), "%out", index, element)


def average_backward(code: Grid, index: Value, element: str, kind: str) -> None:
    """What an element of the image has of the gradients of its windows."""
    image, *places = code.parts_of(index, [code["count"], *[code[f"i{a}"] for a in AXES]])
    base, total = image * plane(code, "o"), code.variable(code.const(0, kind))

    def along(axis: int, offset: Value | None, found: list[Value]) -> None:
        if axis == 3:
            assert offset is not None
            share = code.read("%x", base + offset, element) / divisor(code, begin(code, found), kind)
            total.set(total.get() + share)
            return
        a = AXES[axis]
        reach = places[axis] + code[f"p{a}"]
        short = reach - code[f"k{a}"] + code[f"s{a}"]
        first = code.select(short < 0, 0, short) // code[f"s{a}"]
        stop = reach // code[f"s{a}"] + 1
        stop = code.select(stop < code[f"o{a}"], stop, code[f"o{a}"])
        with code.loop(first, stop) as window:
            along(axis + 1, window if offset is None else offset * code[f"o{a}"] + window, [*found, window])

    along(0, None, [])
    code.write(total.get(), "%out", index, element)


KINDS = {
    "max": maximum,
    "adaptive_max": adaptive_maximum,
    "average": average,
    "average_backward": average_backward,
}
