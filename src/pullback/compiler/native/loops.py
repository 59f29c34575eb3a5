"""Pieces as LLVM: every address is known when a region begins, and every size is a constant.

Where sizes change from call to call, code is `Open` (tables.py): sizes and steps are arguments of its loops
(`numbers`), so that one loop does for all of them. What it computes is the same, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.memory import joined
from pullback._thresholds import POINTWISE_SHARE, REGION_SHARE
from pullback.compiler.native.pieces import Point, Reduce, Window
from pullback.compiler.native.tables import Call, Open, Place, shared
from pullback.kernels.jit.compiler.target import ELEMENTS, SIZES, VECTOR_BYTES
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.language.elementary import FUNCTIONS
from pullback.kernels.jit.language.emit import computed_in, emit_step, llvm_type, shortcut
from pullback.kernels.jit.language.expression import Node, Trace, Untraceable, order_of
from pullback.kernels.jit.pointwise.loops import HEAVY, scatter

ARITHMETIC = ("add", "subtract", "multiply", "divide")


def element_of(window: Window) -> str:
    """How a kernel stores the elements of a window."""
    return stored_as(window.base.dtype)


@cache
def stored_as(dtype: np.dtype[Any]) -> str:
    """How a kernel stores elements of a dtype. NumPy takes a microsecond to say a dtype's name."""
    return ELEMENTS[dtype.name]


@cache
def is_emitted(op: str, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    """Whether there is code for an operation on elements: dtypes of its operands, and of its result."""
    trial, trace = Code("trial"), Trace()
    nodes = tuple([trace.node("input", (), dtype, i) for i, dtype in enumerate(dtypes[:-1])])
    values = [Value(trial, "%x", llvm_type(dtype, 8)) for dtype in dtypes]
    try:
        emit_step(trial, trace.node(op, nodes, dtypes[-1]), values[:-1], values[-1].type)
    except Untraceable:
        return False
    return True


class Group:
    """Pointwise pieces of one shape in one pass over memory."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.trace = Trace()
        self.loads: dict[Any, tuple[Window, Node]] = {}
        self.values: dict[Any, tuple[Window, Node]] = {}
        """What was computed here, by window."""
        self.aliases_read: dict[Any, set[Any]] = {}
        self.stores: list[tuple[Window, Node]] = []
        self.plan: tuple[int, Body] | None = None

    def takes(self, point: Point) -> bool:
        """Whether a piece may join: it reads what this group wrote only where it was written, and overwrites nothing
        that the group reads elsewhere."""
        if point.out.shape != self.shape:
            return False
        written = {window.base.alias: window.key() for window, _ in self.values.values()}
        for arg in point.reads():
            if arg.base.alias in written and arg.key() not in self.values:
                return False
        out = point.out
        read = self.aliases_read.get(out.base.alias)
        if read is not None and read != {out.key()}:
            return False
        return out.base.alias not in written or out.key() in self.values

    def add(self, point: Point) -> None:
        """One more piece."""
        args = [self.operand(arg, dtype) for arg, dtype in zip(point.args, point.dtypes, strict=False)]
        made = args[0] if point.op == "positive" else self.trace.node(point.op, tuple(args), point.dtypes[-1])
        self.values[point.out.key()] = point.out, self.cast(made, point.out.dtype)

    def cast(self, node: Node, dtype: np.dtype[Any]) -> Node:
        """The node in a dtype."""
        return node if node.dtype == dtype else self.trace.node("cast", (node,), dtype)

    def operand(self, value: Any, dtype: np.dtype[Any]) -> Node:
        """What an argument is for each element."""
        if type(value) is not Window:
            return self.trace.constant(value, dtype)
        key = value.key()
        if key in self.values:
            return self.cast(self.values[key][1], dtype)
        if key not in self.loads:
            node = self.trace.node("input", (), value.dtype, len(self.loads))
            self.loads[key] = value, node
            self.aliases_read.setdefault(value.base.alias, set()).add(key)
        return self.cast(self.loads[key][1], dtype)

    def keep(self, needed: Callable[[Window], bool]) -> None:
        """Store what somebody needs."""
        self.stores = [(window, node) for window, node in self.values.values() if needed(window)]

    # ---------------------------------------------------------------- code

    def body(self, order: list[Node]) -> Body:
        """The loops over what an expression reads and this group stores."""
        used = {id(node) for node in order}
        loads = [(window, node) for window, node in self.loads.values() if id(node) in used]
        windows = [window for window, _ in (*loads, *self.stores)]
        sizes, steps = joined(self.shape, [window.steps(self.shape) for window in windows])
        if not sizes:
            sizes, steps = [1], [[1] * len(windows)]
        # Comparisons of wide numbers give truth values of as many lanes.
        wide = [SIZES[computed_in(node.dtype)] for node in order if node.dtype.kind != "b"]
        cost = cost_of(order)
        return Body(order, loads, self.stores, sizes, steps, VECTOR_BYTES // max(wide, default=1), cost)

    def planned(self) -> Body:
        """The loops over all it reads and stores."""
        if self.plan is None or self.plan[0] != len(self.stores):
            self.plan = len(self.stores), self.body(order_of(*[node for _, node in self.stores]))
        return self.plan[1]

    def cost(self) -> int:
        """About how many operations an element takes."""
        return self.planned().cost

    def is_flat(self) -> bool:
        """Whether all it reads and writes is one number, or lies side by side in one order."""
        windows = [window for window, _ in (*self.loads.values(), *self.values.values())]
        return all([window.size == 1 or (window.shape == self.shape and window.is_row_major()) for window in windows])

    def call(self, code: Code, place: Place, ranged: bool = False) -> Call:
        """The call of the loops; of a function that does a part of them if `ranged`."""
        body = self.planned()
        order = body.order
        total = prod(body.sizes)
        share = max(POINTWISE_SHARE // max(body.cost, 1), 512) & -64
        if total > 2 * REGION_SHARE:
            share = min(share, REGION_SHARE)
        grain = 0 if total <= 2 * share and not ranged else max(share // (total // body.sizes[0]), 1)
        key = f"{described(order, type(code) is Open)} {places_in(order, body.loads)} {places_in(order, self.stores)} "
        windows = [window for window, _ in (*body.loads, *body.stores)]
        if type(code) is Open:
            key, numbers = f"{key}{body.pattern()} {body.lanes}", body.numbers()

            def build(inner: Code, pointers: list[Value], begin: Any, end: Any, numbers: list[Value]) -> None:
                body.opened(numbers).emit(inner, pointers, begin, end)

            return shared(code, key, windows, place, build, body.sizes[0], grain, numbers)
        key += f"{body.sizes} {body.steps} {body.lanes} {bool(grain)}"
        return shared(code, key, windows, place, body.emit, body.sizes[0], grain)


def cost_of(order: list[Node]) -> int:
    """About how many operations an expression is."""
    return sum([HEAVY if node.op in FUNCTIONS else 1 for node in order if node.args])


def described(order: list[Node], open: bool = False) -> str:
    """The steps of an expression, as text; in open code without the constants that are given."""
    numbers = {id(node): i for i, node in enumerate(order)}
    given = {id(node) for node in factors_in(order)} if open else set()
    values = ["" if n.op != "constant" else "given" if id(n) in given else n.value for n in order]
    return "; ".join(
        [
            f"{n.op} {n.dtype.char} {value} {[numbers[id(a)] for a in n.args]}"
            for n, value in zip(order, values, strict=True)
        ]
    )


def factors_in(order: list[Node]) -> list[Node]:
    """Constants that may be sizes, as where a mean divides by one: nothing but arithmetic is done with them."""
    users: dict[int, list[Node]] = {}
    for node in order:
        for arg in node.args:
            users.setdefault(id(arg), []).append(node)
    return [
        node
        for node in order
        if node.op == "constant"
        and node.dtype.char in "fd"
        and id(node) in users
        and all([u.op in ARITHMETIC and not any([a.op == "erf" for a in u.args]) for u in users[id(node)]])
    ]


def places_in(order: list[Node], pairs: Any) -> list[tuple[int, str]]:
    """Where the nodes of windows stand in an expression, and how the windows are stored."""
    numbers = {id(node): i for i, node in enumerate(order)}
    return [(numbers[id(node)], window.dtype.char) for window, node in pairs]


def vectors(code: Code, first: Any, last: Any, lanes: int, body: Callable[[Value], None], unroll: int = 1) -> None:
    """A loop by vectors, as short as a known length allows."""
    if not (type(first) is int and type(last) is int):
        code.vectors(first, last, lanes, body, unroll)
        return
    whole = first + (last - first) // lanes * lanes
    if last - first >= 16 * lanes * unroll > 16 * lanes:
        code.vectors(first, last, lanes, body, unroll)
        return
    if whole - first > lanes:
        with code.loop(first, whole, lanes) as i:
            body(i)
    elif whole > first:
        body(code.const(first, "i64"))
    if whole < last:
        code.mask = code.tail_mask(code.const(last - whole, "i64"), lanes)
        body(code.const(whole, "i64"))
        code.mask = None


class Body:
    """What is done for each element, in loops over all of them."""

    def __init__(self, order: list[Node], loads: Any, stores: Any, sizes: list[int], steps: list[list[int]],
                 lanes: int, cost: int) -> None:  # fmt: skip
        self.order, self.loads, self.stores = order, loads, stores
        self.sizes, self.steps, self.lanes, self.cost = sizes, steps, lanes, cost
        self.elements = [element_of(window) for window, _ in (*loads, *stores)]
        self.given: dict[int, Value] = {}
        """Constants that are arguments, by node."""

    def pattern(self) -> str:
        """What decides how loops are written, but for sizes."""
        steps = ["".join(["01n"[min(step, 2)] for step in row]) for row in self.steps]
        return f"{steps} {self.sizes == [1]}"

    def numbers(self) -> list[Any]:
        """What loops are given in open code: the sizes, but for the first, steps, and constants that may be sizes."""
        constants = [node.dtype.type(node.value) for node in factors_in(self.order)]
        return [*self.sizes[1:], *[step for row in self.steps for step in row if step > 1], *constants]

    def opened(self, numbers: list[Value]) -> Body:
        """The same with numbers that are given."""
        made = Body(self.order, self.loads, self.stores, self.sizes, self.steps, self.lanes, self.cost)
        more = iter(numbers)
        made.sizes = [*self.sizes[:1], *[next(more) for _ in self.sizes[1:]]]  # type: ignore[list-item]
        made.steps = [[next(more) if step > 1 else step for step in row] for row in self.steps]  # type: ignore[misc]
        made.given = {id(node): next(more) for node in factors_in(self.order)}
        return made

    def emit(self, code: Code, pointers: list[Value], begin: Any, end: Any) -> None:
        """The loops; the first runs from `begin` to `end`."""
        with ExitStack() as loops:
            for dim, (size, steps) in enumerate(zip(self.sizes[:-1], self.steps[:-1], strict=True)):
                at = loops.enter_context(code.loop(*((begin, end) if dim == 0 else (0, size))))
                pointers = [
                    pointer if not step else code.at(pointer, at if step == 1 else at * step, element)
                    for pointer, step, element in zip(pointers, steps, self.elements, strict=True)
                ]
            first, last = (begin, end) if len(self.sizes) == 1 else (0, self.sizes[-1])
            self.row(code, pointers, first, last)

    def row(self, code: Code, pointers: list[Value], first: Any, last: Any) -> None:
        """The inner loop."""
        still = self.still(code, pointers)

        def body(i: Value) -> None:
            self.store(code, pointers, i, self.values(code, pointers, i, still))

        vectors(code, first, last, self.lanes, body, 4 if self.cost <= 4 else 1)

    def vector(self, dtype: np.dtype[Any]) -> str:
        """The vector that elements of a dtype are computed in."""
        return llvm_type(dtype, self.lanes)

    def still(self, code: Code, pointers: list[Value]) -> dict[int, Value]:
        """What is the same for all elements of a row, by the number of the window."""
        out = {}
        for k, (window, _) in enumerate(self.loads):
            if self.steps[-1][k] == 0:
                out[k] = truth(code, code.splat(code.load(pointers[k], 0, self.elements[k]), self.lanes), window)
        return out

    def values(self, code: Code, pointers: list[Value], i: Value, still: dict[int, Value]) -> dict[int, Value]:
        """What is computed for a vector of elements, by node."""
        steps, lanes = self.steps[-1], self.lanes
        values: dict[int, Value] = {}
        for k, (window, node) in enumerate(self.loads):
            if k in still:
                values[id(node)] = still[k]
            elif steps[k] == 1:
                loaded = code.load(pointers[k], i, f"<{lanes} x {self.elements[k]}>")
                values[id(node)] = truth(code, loaded, window)
            else:
                spots = indices(code, i, steps[k], lanes)
                values[id(node)] = truth(code, code.gather(pointers[k], spots, self.elements[k]), window)
        for node in self.order:
            if id(node) in values:
                continue
            type = llvm_type(node.dtype, lanes)
            if id(node) in self.given:
                values[id(node)] = code.splat(self.given[id(node)], lanes)
            elif node.op == "constant":
                values[id(node)] = code.const(node.value, type)
            else:
                args = [values[id(arg)] for arg in node.args]
                values[id(node)] = shortcut(code, node, values) or emit_step(code, node, args, type)
        return values

    def store(self, code: Code, pointers: list[Value], i: Value, values: dict[int, Value]) -> None:
        """Write a vector of each result."""
        steps, lanes = self.steps[-1], self.lanes
        for k, (_, node) in enumerate(self.stores, len(self.loads)):
            out = code.convert(values[id(node)], self.elements[k])
            if steps[k] == 1 or self.sizes == [1]:
                code.store(out, pointers[k], i)
            else:
                scatter(code, out, pointers[k], indices(code, i, steps[k], lanes))


def truth(code: Code, value: Value, window: Window) -> Value:
    """Bytes of bools as truth values."""
    return code.compare("ne", value, 0) if window.dtype.kind == "b" else value


def indices(code: Code, i: Value, step: Any, lanes: int) -> Value:
    """Where the lanes of a strided array are."""
    numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
    type = f"<{lanes} x i64>"
    many = code.splat(step, lanes) if isinstance(step, Value) else step
    return (code.splat(i, lanes) + Value(code, f"<{numbers}>", type)) * many


# ------------------------------------------------------------------ reductions

ABREAST = 8
"""Vectors of columns that are summed up together."""
STARTS = {"add": 0.0, "max": -float("inf"), "min": float("inf")}


def call_of_reduction(code: Code, reduce: Reduce, place: Place, ranged: bool = False) -> Call:
    """The call of a sum or an extremum, or of a function that does a part if `ranged`.

    Threads share the elements of the result, never the terms of one.
    """
    x, out = reduce.x, reduce.out
    kept = [d for d in range(len(x.shape)) if d not in reduce.axes and x.shape[d] > 1]
    count, grain = 1, 0
    if kept and (ranged or x.size > 2 * REGION_SHARE):
        count = x.shape[kept[0]]
        grain = max(REGION_SHARE * count // x.size, 1)
        if x.strides[kept[0]] == 1:  # whole vectors of columns
            grain = -(-grain // 64) * 64
        if grain >= count and not ranged:
            count, grain = 1, 0

    def build(inner: Code, pointers: list[Value], begin: Any, end: Any, numbers: Any = None) -> None:
        reduction(inner, reduce, *pointers, {kept[0]: (begin, end)} if grain else {}, numbers)

    if type(code) is Open:
        numbers = [*x.shape, *x.strides, *out.strides]
        pattern = "".join(["01n"[min(number, 2)] for number in numbers])
        key = f"{reduce.how} {x.dtype.char} {reduce.axes} {pattern} {inner_of(reduce)} {bool(grain)}"
        return shared(code, key, [x, out], place, build, count, grain, numbers)
    key = f"{reduce.how} {x.dtype.char} {x.shape} {x.strides} {reduce.axes} {out.shape} {out.strides} {bool(grain)}"
    return shared(code, key, [x, out], place, build, count, grain)


def inner_of(reduce: Reduce) -> int | None:
    """The dimension along which the terms of one element are added, vector by vector."""
    x = reduce.x
    along = [d for d in reduce.axes if x.strides[d] == 1 and x.shape[d] > 1]
    return along[0] if along else max(reduce.axes, key=lambda d: x.shape[d], default=None)


Bounds = dict[int, tuple[Any, Any]]
"""From where to where loops over some dimensions run, where not over all of them."""


def reduction(
    code: Code, reduce: Reduce, source: Value, target: Value, bounds: Bounds, numbers: list[Value] | None = None
) -> None:
    """Lanes are elements of the result where those lie side by side, else parts of one.

    `numbers` are the sizes, the steps and the steps of the result, where those are given.
    """
    x, out, how = reduce.x, reduce.out, reduce.how
    known: list[Any] = [*x.shape, *x.strides, *out.strides]
    if numbers is not None:
        known = [there if there < 2 else given for there, given in zip(known, numbers, strict=True)]
    count = len(x.shape)
    sizes, steps, outs = known[:count], known[count : 2 * count], known[2 * count :]
    element = element_of(x)
    lanes = VECTOR_BYTES // SIZES[element]
    kept = [d for d in range(len(x.shape)) if d not in reduce.axes]
    across = [d for d in kept if x.strides[d] == 1 and x.shape[d] > 1]
    out_steps = dict(zip(kept, outs, strict=True))

    if across:
        (last,) = across
        others = [d for d in kept if d != last]
        with nested(code, sizes, steps, others, source, target, out_steps, element, bounds) as (start, to):

            def columns(i: Value, many: int = 1) -> None:
                type = f"<{lanes} x {element}>"
                totals = [code.variable(code.const(STARTS[how], type)) for _ in range(many)]
                mask, code.mask = code.mask, None
                first = code.at(start, i, element)
                with nested(code, sizes, steps, list(reduce.axes), first, first, {}, element) as (here, _):
                    for nr, total in enumerate(totals):
                        total.set(combined(code, how, total.get(), code.load(here, nr * lanes, type, mask)))
                code.mask = mask
                for nr, total in enumerate(totals):
                    at = i + nr * lanes
                    if out_steps[last] == 1:
                        code.store(total.get(), to, at)
                    else:
                        scatter(code, total.get(), to, indices(code, at, out_steps[last], lanes))

            begin, end = bounds.get(last, (0, sizes[last]))
            if type(begin) is int and type(end) is int and end - begin < ABREAST * lanes:
                vectors(code, begin, end, lanes, columns)
            else:  # sums that do not wait for each other
                if type(begin) is int and type(end) is not int:
                    begin = code.const(begin, "i64")
                whole = begin + ((end - begin) // (ABREAST * lanes)) * (ABREAST * lanes)
                with code.loop(begin, whole, ABREAST * lanes) as i:
                    columns(i, ABREAST)
                vectors(code, whole, end, lanes, columns)
        return
    inner = inner_of(reduce)
    with nested(code, sizes, steps, kept, source, target, out_steps, element, bounds) as (start, to):
        if inner is None:
            code.store(code.load(start, 0, element), to, 0)
            return
        total = code.variable(code.const(STARTS[how], f"<{lanes} x {element}>"))
        others = [d for d in reduce.axes if d != inner]
        with nested(code, sizes, steps, others, start, start, {}, element) as (here, _):

            def take(i: Value) -> None:
                if x.strides[inner] == 1:
                    value = code.load(here, i, f"<{lanes} x {element}>")
                elif x.strides[inner] == 0:
                    value = code.splat(code.load(here, 0, element), lanes)
                else:
                    value = code.gather(here, indices(code, i, steps[inner], lanes), element)
                if code.mask is not None:
                    value = code.select(code.mask, value, code.const(STARTS[how], value.type))
                total.set(combined(code, how, total.get(), value))

            vectors(code, 0, sizes[inner], lanes, take)
        code.store(code.reduce(total.get(), how), to, 0)


@contextmanager
def nested(code: Code, sizes: list[Any], steps: list[Any], dims: Sequence[int], source: Value, target: Value,
           out_steps: dict[int, Any], element: str, bounds: Bounds | None = None
           ) -> Iterator[tuple[Value, Value]]:  # fmt: skip
    """Loops over some dimensions: where the elements of x are, and of the result."""
    with ExitStack() as loops:
        for d in dims:
            if sizes[d] == 1:
                continue
            at = loops.enter_context(code.loop(*(bounds or {}).get(d, (0, sizes[d]))))
            source = code.at(source, at * steps[d], element)
            if out_steps.get(d):
                target = code.at(target, at * out_steps[d], element)
        yield source, target


def combined(code: Code, how: str, a: Value, b: Value) -> Value:
    """Two partial results as one."""
    if how == "add":
        return a.binary(b, ("fadd", "add"))
    return code.maximum(a, b) if how == "max" else code.minimum(a, b)
