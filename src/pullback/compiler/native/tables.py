"""The calls of a region: functions of loops, by names that say all about them, and the table in which they stand.

Where sizes change from call to call, code is `Open`: its table is an array that is given, and sizes stand in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback._runtime.building import made
from pullback.compiler.native.pieces import Window
from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.compiler.target import ELEMENTS
from pullback.kernels.jit.language.code import Code, Value

Place = Callable[[Window], tuple[int, int]]
"""Where the first element of a window is: the number of an argument of the region, and the bytes from there."""


class Call(NamedTuple):
    """A call of one of a region's functions. Each argument is the place of a window, or a number."""

    function: str
    arguments: list[Any]
    count: int
    grain: int
    """The smallest share of a thread; 0 to do all of it here."""


ADDRESS = "ptrtoint (ptr @", " to i64)"


def address_of(name: str) -> str:
    """The address of a function or a table, as a constant."""
    return name.join(ADDRESS)


def constant_table(code: Code, name: str, values: Sequence[Any]) -> str:
    """The address of a table of numbers, which is in the code once."""
    whole = f"{code.name}_{name}"
    if name not in code.named:
        code.named.add(name)
        items = ", ".join([f"i64 {value}" for value in values])
        code.functions.append(f"@{whole} = internal constant [{len(values)} x i64] [{items}], align 64\n")
    return address_of(whole)


defined: set[str] = set()
"""Loops that a module of this process has: others call them there."""


class Sketch(Code):
    """Code without its loops: enough to tell it from other code."""

    def digest(self) -> str:
        """What differs where the code, or what it finds loaded, differs."""
        new = sorted([name for name in self.named if name not in defined])
        return hashlib.sha256(f"{self.text()} {new}".encode()).hexdigest()


class Open(Code):
    """Code in which no size stands: its calls are a table that is given, and its loops are loaded by themselves."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.loops: dict[str, Callable[[Code], None]] = {}
        """The loops it calls, and what writes each."""
        self.kept: list[Any] = []
        """Tables whose addresses are arguments."""


def loop(code: Code, name: str, describe: Callable[[Code], None]) -> str:
    """The function of a loop, by a name that says all about it: in this module, or in one that is loaded already."""
    name = f"pullback_loop_{name}"
    if type(code) is Open:
        code.loops[name] = describe
        return name
    if name in code.named:
        return name
    code.named.add(name)
    if name in defined or type(code) is Sketch:
        code.declare(name, "void", "ptr", "i64", "i64", "i64")
    else:
        inner = Code(name)
        describe(inner)
        code.declared |= inner.declared
        code.functions.append(inner.text(declared=False))
    return name


def loaded(code: Code) -> None:
    """The module of some code has been loaded."""
    defined.update([name for name in code.named if name.startswith("pullback_loop_")])


def shared(code: Code, key: str, windows: Sequence[Window], place: Place, build: Callable[..., None], count: int,
           grain: int = 0, numbers: Sequence[Any] = ()) -> Call:  # fmt: skip
    """The call of a loop's function; loops that are the same but for their addresses share it, and in open code those
    that are the same but for `numbers`, too."""

    def described_open(inner: Code) -> None:
        pointers = [inner.argument(i, "ptr") for i in range(len(windows))]
        kinds = [ELEMENTS[n.dtype.name] if isinstance(n, np.floating) else "i64" for n in numbers]
        given = [inner.argument(len(windows) + i, kind) for i, kind in enumerate(kinds)]
        build(inner, pointers, inner.begin, inner.end, given)

    if type(code) is Open:
        name = loop(code, hashlib.sha256(f"open {key}".encode()).hexdigest()[:24], described_open)
        return Call(name, [*[place(window) for window in windows], *numbers], count, grain)

    def describe(inner: Code) -> None:
        pointers = [inner.argument(i, "ptr") for i in range(len(windows))]
        build(inner, pointers, *((inner.begin, inner.end) if grain else (0, count)))

    name = loop(code, hashlib.sha256(f"{key} {bool(grain)} {count}".encode()).hexdigest()[:24], describe)
    return Call(name, [place(window) for window in windows], count, grain)


def emit_calls(code: Code, calls: list[Call]) -> None:
    """Make the calls one after the other, from a table: the code is short however many there are.

    A row is the function, how many arguments, count and grain, and for each argument the number of a base and what is
    added to its address; the base of a number is -1.
    """
    table: list[str] = []
    for call in calls:
        table.append(address_of(call.function))
        table += [str(len(call.arguments)), str(call.count), str(call.grain)]
        for argument in call.arguments:
            table += map(str, argument if type(argument) is tuple else (-1, argument))
    constant_table(code, "table", table)
    rows = Value(code, f"@{code.name}_table", "ptr")
    emit_rows(code, rows, len(calls), max([len(call.arguments) for call in calls]))


def emit_rows(code: Code, rows: Value, count: Any, most: int) -> None:
    """Make the calls of a table: `count` rows, with at most so many arguments."""
    given = Value(code, "%args", "ptr")
    slots = code.stack(most, "i64")
    at = code.variable(code.const(0, "i64"))
    with code.loop(0, count):
        row = code.at(rows, at.get(), "i64")
        function = code.load(row, 0, "i64")
        count, items, grain = (code.load(row, i, "i64") for i in (1, 2, 3))
        with code.loop(0, count) as i:
            base, added = code.load(row, i * 2 + 4, "i64"), code.load(row, i * 2 + 5, "i64")
            none = base < 0
            address = code.load(given, code.select(none, 0, base), "i64")
            code.store(code.select(none, 0, address) + added, slots, i)
        pointer = code.emit(f"inttoptr {function} to ptr", "ptr")
        alone = code.compare("eq", grain, 0)
        with code.when(alone):
            code.do(f"call void {pointer.name}({slots}, i64 0, {items}, i64 0)")
        with code.when(alone ^ 1):
            code.do(f"call void @pullback_parallel_for({pointer}, {slots}, {items}, {grain})")
        at.set(at.get() + count * 2 + 4)


def placed(code: Open) -> dict[str, int]:
    """Where the loops of open code are; those that are new to this process are loaded together."""
    missing = sorted([name for name in code.loops if name not in defined])
    if missing:
        recipe = f"loops {' '.join(missing)}"

        def written() -> str:
            declared: set[str] = set()
            texts = []
            for name in missing:
                inner = Code(name)
                code.loops[name](inner)
                declared |= inner.declared
                texts.append(inner.text(declared=False))
            return "\n".join([*sorted(declared), *texts])

        if engine.recall(recipe, missing) is None:
            engine.load(made(written), missing, recipe)
        defined.update(missing)
    return {name: engine.address_of(name) for name in code.loops}


def rows_of(calls: list[Call], places: dict[str, int]) -> Any:
    """The table of `emit_calls` as an array, which begins with the number of its rows."""
    table = [len(calls)]
    for call in calls:
        table += [placed_at(call.function, places), len(call.arguments), call.count, call.grain]
        for argument in call.arguments:
            if isinstance(argument, np.floating):
                argument = int(np.float64(argument).view(np.int64))
            elif type(argument) is str:
                argument = placed_at(argument[len(ADDRESS[0]) : -len(ADDRESS[1])], places)
            table += argument if type(argument) is tuple else (-1, argument)
    return np.array(table, np.int64)


def placed_at(name: str, places: dict[str, int]) -> int:
    """Where a function is that is loaded."""
    if name not in places:
        places[name] = engine.address_of(name)
    return places[name]
