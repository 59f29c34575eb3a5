"""From the steps of a program to functions that are called once each.

Steps that native code can do and that follow each other are a region: one function, one call. Gradients that arrive
at leaves in between wait until the region has been left, if nobody can tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from pullback._modes import modes
from pullback.compiler import effects
from pullback.compiler.arrays import window as numpy_window
from pullback.compiler.native.folds import Fold, fold_of
from pullback.compiler.native.loops import Group, call_of_reduction
from pullback.compiler.native.lowering import Lowering, given
from pullback.compiler.native.parts import LONGEST, Unlowered
from pullback.compiler.native.pieces import Base, Dot, Piece, Point, Reduce, Window
from pullback.compiler.native.places import Places
from pullback.compiler.native.products import calls_of_product, most_threads, panels_for
from pullback.compiler.native.rows import Rows, in_rows
from pullback.compiler.native.tables import Call, Open, Sketch, emit_calls, emit_rows, loaded, placed, rows_of
from pullback.compiler.program import CALL, EFFECT, Program, Slot, Step
from pullback.kernels import workers
from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.runtime import calls

LONG = 1 << 15
"""Vectors from which on a region lets go of the interpreter: other threads of Python run meanwhile."""


class Region:
    """Steps that become one function."""

    def __init__(self) -> None:
        self.parts: list[tuple[Step, list[Piece]]] = []

    @property
    def pieces(self) -> list[Piece]:
        """All that is done."""
        return [piece for _, pieces in self.parts for piece in pieces]


def with_native_code(program: Program, steps: list[Step], wanted: Iterable[Slot], sized: bool = False) -> list[Step]:
    """The same program with regions in place of the steps they do; `sized` if those serve other sizes, too."""
    recorder = modes.recorders.pop(get_ident(), None)  # what is run to see its parts is no part of the program
    try:
        return planned(program, steps, list(wanted), sized)
    finally:
        if recorder is not None:
            modes.recorders[get_ident()] = recorder


def planned(program: Program, steps: list[Step], wanted: list[Slot], sized: bool) -> list[Step]:
    """The steps, and regions between them."""
    lowering = Lowering(program)
    plan: list[Any] = []
    waiting: list[Step] = []
    region: Region | None = None
    for step in steps:
        try:
            pieces = lowering.pieces(step)
        except Unlowered as why:
            step.native = str(why)
            if region is not None and may_wait(step, waiting):
                waiting.append(step)
                continue
            plan += waiting
            waiting, region = [], None
            plan.append(step)
            continue
        if region is None:
            region = Region()
            plan.append(region)
        elif touches(program, step, waiting):
            plan += waiting
            waiting, region = [], Region()
            plan.append(region)
        region.parts.append((step, pieces))
    plan += waiting
    return assembled(program, lowering, plan, wanted, sized)


def may_wait(step: Step, waiting: list[Step]) -> bool:
    """Whether an effect may happen after native steps that follow it: a gradient that arrives at a leaf."""
    return step.kind == EFFECT and step.name in ("arrived_at", "forget_grad")


def touches(program: Program, step: Step, waiting: list[Step]) -> bool:
    """Whether a step changes what effects that wait are to see, or sees what they are to change."""
    if not waiting:
        return False
    seen = {slot.memory for effect in waiting for slot in effect.reads()}
    leaves = {id(effect.args[0].tensor) for effect in waiting}
    changed = {e.slot.memory for e in program.externals if e.leaf is not None and id(e.leaf) in leaves}
    written = {slot.memory for slot in step.writes}
    return bool(seen & written or changed & (written | {slot.memory for slot in step.reads()}))


def assembled(program: Program, lowering: Lowering, plan: list[Any], wanted: list[Slot], sized: bool) -> list[Step]:
    """Steps in which each region is one call."""
    where: dict[Base, int] = {}
    for nr, item in enumerate(plan):
        if type(item) is Region:
            for piece in item.pieces:
                where.setdefault(piece.out.base, nr)
    # What is read outside of the region that makes it.
    shown: dict[int, Slot] = {slot.index: slot for slot in wanted}
    needed: set[Base] = set()
    for nr, item in enumerate(plan):
        if type(item) is Region:
            for piece in item.pieces:
                for window in (*piece.reads(), piece.out):
                    if window.base.made and where[window.base] != nr:
                        needed.add(window.base)
        else:
            for slot in item.reads():
                shown[slot.index] = slot
    # Views of what is given are made by the steps that made them, where somebody wants their arrays.
    kept: set[int] = set()
    for item in reversed(plan):
        for step, _ in reversed(item.parts) if type(item) is Region else ():
            for slot in step.outs:
                found = None if slot is None or slot.index not in shown else lowering.windows.get(slot.index)
                if found is not None and not found.base.made and found.base.slot is not slot:
                    kept.add(id(step))
                    shown |= {read.index: read for read in step.reads()}
    views: dict[Base, list[tuple[Slot, Window]]] = {}
    for slot in shown.values():
        found = lowering.windows.get(slot.index)
        if found is not None and found.base.made:
            views.setdefault(found.base, []).append((slot, found))
    slots: dict[Base, Slot] = {}
    out: list[Step] = []
    for nr, item in enumerate(plan):
        if type(item) is not Region:
            out.append(item)
            continue
        written = dict.fromkeys([piece.out.base for piece in item.pieces])
        made = [base for base in written if base.made and where[base] == nr]
        function = Function(program, item, [b for b in made if b in needed or b in views], slots, views, sized)
        if function.items:
            out.append(function.step())
        out += [step for step, _ in item.parts if id(step) in kept]
    return taken_over(program, out)


def taken_over(program: Program, steps: list[Step]) -> list[Step]:
    """Gradients that are new arrays become those of leaves that have none, without a look at who else holds them."""
    without = {id(e.tensor) for e in program.externals if e.tensor._grad is None and e.leaf is None}
    uses: dict[int, int] = {}
    made: set[int] = set()
    for step in steps:
        for slot in step.reads():
            uses[slot.memory] = uses.get(slot.memory, 0) + 1
        if getattr(step.function, "__name__", "") == "region":
            made |= {slot.index for slot in step.outs if slot is not None}
    out = []
    for step in steps:
        if step.kind == EFFECT and step.function is effects.forget_grad:
            without.add(id(step.args[0].tensor))
        elif step.kind == EFFECT and step.function is effects.arrived_at:
            leaf, slot = step.args
            new = id(leaf.tensor) in without and slot.index in made and uses[slot.memory] == 1
            without.discard(id(leaf.tensor))
            if new and slot.strides == leaf.tensor._array.strides and slot.dtype == leaf.tensor._array.dtype:
                step = Step(EFFECT, effects.taken_by, step.args, {})
        out.append(step)
    return out


class Function:
    """The native function of a region."""

    def __init__(self, program: Program, region: Region, shown: list[Base], slots: dict[Base, Slot],
                 views: dict[Base, list[tuple[Slot, Window]]], sized: bool = False) -> None:  # fmt: skip
        self.sized = sized
        """Whether sizes are arguments of its loops, so that other sizes find them loaded."""
        self.program, self.region, self.shown, self.slots, self.views = program, region, shown, slots, views
        self.before = set(slots)
        """Memory that earlier regions made."""
        self.items = self.grouped()
        self.written = {window.base for item in self.items for window in writes_of(item)}
        self.scratch: dict[Base, int] = {}
        self.bytes = self.planned()
        self.given = self.arguments()

    def grouped(self) -> list[Any]:
        """Pointwise pieces of one shape that follow each other as one."""
        items: list[Any] = []
        for piece in self.region.pieces:
            if type(piece) is Point:
                if not (items and type(items[-1]) is Group and items[-1].takes(piece)):
                    items.append(Group(piece.out.shape))
                items[-1].add(piece)
            else:
                items.append(piece)
        last: dict[Base, int] = {}
        for nr, item in enumerate(items):
            for window in reads_of(item):
                last[window.base] = nr
        for nr, item in enumerate(items):
            if type(item) is Group:
                item.keep(lambda w, nr=nr: not self.is_passing(w.base) or last.get(w.base, -1) > nr)
        out: list[Any] = []
        for nr, item in enumerate(items):
            if type(item) is Reduce and item.count() > LONGEST:
                item = fold_of(item, out[-1] if out else None)
                assert item is not None  # lowering asked
                if out and item.group is out[-1]:
                    out.pop()
                    x = item.reduce.x.base
                    if self.is_passing(x) and last[x] == nr:  # nobody else needs what was reduced
                        item.group.stores = [pair for pair in item.group.stores if pair[0].base is not x]
            if type(item) is not Group or item.stores:
                out.append(item)
        found = in_rows(out)
        users: dict[Base, set[int]] = {}
        for nr, item in enumerate(found):
            for window in (*reads_of(item), *writes_of(item)):
                users.setdefault(window.base, set()).add(nr)
        for nr, item in enumerate(found):
            if type(item) is Rows:
                item.keep_inside([base for base, by in users.items() if by == {nr} and self.is_passing(base)])
        return found

    def is_passing(self, base: Base) -> bool:
        """Whether only this function sees some memory."""
        return base.made and base not in self.shown and base not in self.before

    def planned(self) -> int:
        """Places for what only this function sees; memory is used again."""
        places = Places()
        ending: dict[int, list[Base]] = {}
        last: dict[Base, int] = {}
        for nr, item in enumerate(self.items):
            for window in (*reads_of(item), *writes_of(item)):
                last[window.base] = nr
        for base, nr in last.items():
            ending.setdefault(nr, []).append(base)
        for nr, item in enumerate(self.items):
            for base in ending.get(nr - 1, ()):
                if base in self.scratch:
                    places.give_back(self.scratch[base], base.size * base.dtype.itemsize)
            for window in writes_of(item):
                base = window.base
                if self.is_passing(base) and base not in self.scratch:
                    self.scratch[base] = places.take(base.size * base.dtype.itemsize)
        return places.end

    def arguments(self) -> list[Base]:
        """The bases whose addresses are passed."""
        found: dict[Base, None] = {}
        for item in self.items:
            for window in (*reads_of(item), *writes_of(item)):
                if window.base not in self.scratch and window.base not in self.shown:
                    found[window.base] = None
        return list(found)

    def describe(self, code: Code, *pointers: Value) -> None:
        """The code."""
        emit_calls(code, self.calls(code))

    def calls(self, code: Code) -> list[Call]:
        """What it calls, one after the other."""
        numbers = {base: nr for nr, base in enumerate([*self.given, *self.shown])}

        def place(window: Window) -> tuple[int, int]:
            base = window.base
            moved = window.offset * base.dtype.itemsize
            if base in numbers:
                return numbers[base], moved
            return len(numbers), self.scratch[base] + moved

        calls: list[Call] = []
        for item in self.items:
            if type(item) is Group:
                calls.append(item.call(code, place))
            elif type(item) is Dot:
                calls += calls_of_product(code, item, place)
            elif type(item) is Fold:
                calls += item.calls(code, place)
            elif type(item) is Rows:
                calls.append(item.call(code, place))
            else:
                calls.append(call_of_reduction(code, item, place))
        return calls

    def kernel(self) -> Any:
        """The builtin."""
        bases = [*self.given, *self.shown]
        params = [calls.array(base.dtype.name, strided=True, write=base in self.written) for base in bases]
        params.append(calls.array("uint8", write=True))
        if self.sized:
            return self.open_kernel(params)
        trial = Sketch("region")
        self.describe(trial, *[trial.argument(i, "ptr") for i in range(len(params))])
        name = f"region_{trial.digest()[:16]}"
        if name not in known:
            note, release = f"{len(self.region.parts)} steps", self.work() > LONG
            known[name] = calls.kernel(name, params, self.describe, note, release=release)
            loaded(trial)
        return known[name]

    def open_kernel(self, params: list[Any]) -> Any:
        """The same with calls in a table that is given to it."""
        code = Open("region")
        made = self.calls(code)
        table = rows_of(made, placed(code))
        most = 1 << (max([len(call.arguments) for call in made]) - 1).bit_length()
        release = self.work() > LONG
        params = [*params, calls.array("int64")]
        digest = hashlib.sha256(f"{[tuple(param) for param in params]}".encode()).hexdigest()[:16]
        name = f"rows_{digest}_{most}{'_released' if release else ''}"
        if name not in known:

            def describe(inner: Code, *pointers: Value) -> None:
                rows = pointers[-1]
                emit_rows(inner, inner.at(rows, 1, "i64"), inner.load(rows, 0, "i64"), most)

            known[name] = calls.kernel(name, params, describe, "the calls of a table", release=release)
        self.kept = table, code.kept
        return known[name]

    def work(self) -> int:
        """About how many vectors are computed."""
        return sum([work_of(item) for item in self.items])

    def retuned(self) -> Any:
        """The same function for more threads than it was made for."""
        for item in self.items:
            if type(item) is Dot and item.panels is not None:
                item.panels = panels_for(item.out.dtype)
            elif type(item) is Rows:
                item.widen()
        self.scratch = {}
        self.bytes = self.planned()
        return self.step().function

    def step(self) -> Step:
        """The call of the function as a step."""
        kernel = self.kernel()
        space: dict[str, Any] = {"kernel": kernel, "empty": np.empty, "window": numpy_window, "again": again}
        space["WRITTEN"] = {nr for nr, base in enumerate(self.given) if base in self.written}
        args: list[Slot] = []
        names = []
        for base in self.given:
            slot = base.slot if not base.made else self.slots[base]
            args.append(slot)
            names.append(f"g{len(names)}")
        lines, made, outs = [], [], []
        if any([has_threads(item) for item in self.items]):
            lines.append(f"if threads() > {most_threads()}: return wider({most_threads()})({', '.join(names)})")
            space |= {"threads": workers.threads, "wider": lambda before: wider(self, space, before)}
        for nr, base in enumerate(self.shown):
            views = self.views.get(base, [])
            slot = next((s for s, w in views if w.offset == 0 and w.size == base.size), None)
            if slot is None:
                slot = Slot(len(self.program.slots), np.empty(0, base.dtype), -1)
                slot.shape, slot.strides = (base.size,), (base.dtype.itemsize,)
                slot.memory = slot.index
                self.program.slots.append(slot)
            self.slots[base] = slot
            lines += allocation(slot, space, nr)
            made.append(f"m{nr}")
            outs.append(slot)
        extra = []
        for nr, base in enumerate(self.shown):
            for slot, found in self.views.get(base, []):
                if slot is not self.slots[base]:
                    space[f"f{len(extra)}"] = (
                        slot.shape,
                        tuple(slot.strides),
                        None,
                        found.offset * base.dtype.itemsize,
                    )
                    extra.append(f"window(b{nr}, *f{len(extra)})")
                    outs.append(slot)
        memory = "empty(" + f"{max(self.bytes, 1)}, 'u1')"
        if self.sized:
            space["rows"], space["kept"] = self.kept
            memory += ", rows"
        call = f"kernel({', '.join([*names, *made, memory])}, 1, 1)"
        lines.append(f"if not {call}: again(kernel, WRITTEN, [{', '.join([*names, *made, memory])}])")
        lines.append(f"return ({''.join([m + ', ' for m in (*made, *extra)])})")
        source = "\n    ".join([f"def region({', '.join(names)}):", *lines])
        exec(compile(source, "<pullback region>", "exec"), space)
        step = Step(CALL, space["region"], tuple(args), {})
        step.outs, step.several = list(outs), True
        step.native = "\n".join([*[described(item) for item in self.items], f"{self.bytes} bytes in between"])
        return step


known: dict[str, Any] = {}


def wider(function: Function, space: dict[str, Any], before: int) -> Any:
    """The function of a region, after the number of threads has grown."""
    if space.get("most", before) < workers.threads():
        space["most"], space["again_made"] = most_threads(), function.retuned()
    return space["again_made"]


def has_threads(item: Any) -> bool:
    """Whether an item has memory for each thread."""
    return item.panels is not None if type(item) is Dot else type(item) is Rows and item.local is not None


def work_of(item: Any) -> int:
    """About how many vectors an item computes."""
    if type(item) is Dot:
        return int(item.out.size * item.a.shape[-1]) // 8
    if type(item) is Reduce:
        return item.x.size // 8
    if type(item) is Rows:
        return sum([work_of(one) for one in item.items])
    group = item.group if type(item) is Fold else item
    return prod(group.shape) * max(group.cost(), 1) // 8


def described(item: Any) -> str:
    """What is done, as text."""
    if type(item) is Group:
        formulas = ", ".join([str(node) for _, node in item.stores])
        return f"{list(item.shape)}: {formulas}"
    if type(item) is Dot:
        return f"{list(item.a.shape)} @ {list(item.b.shape)}{'' if item.added is None else ' + bias'}"
    if type(item) is Rows:
        return "\n".join([described(one) for one in item.items])
    if type(item) is Fold:
        return f"{item.reduce.how} of {list(item.group.shape)}: {item.node}"
    return f"{item.how} of {list(item.x.shape)} over {list(item.axes)}"


def allocation(slot: Slot, space: dict[str, Any], nr: int) -> list[str]:
    """The lines that make the array m of a slot, on the memory of a row-major one b."""
    order = list(range(len(slot.shape)))
    if not given(slot).is_row_major():
        order.sort(key=lambda d: -slot.strides[d])
    space[f"d{nr}"], space[f"z{nr}"] = slot.dtype, tuple([slot.shape[d] for d in order])
    turned = tuple([order.index(d) for d in range(len(order))])
    shown = f"b{nr}" if order == sorted(order) else f"b{nr}.transpose({turned})"
    if (
        np.empty(space[f"z{nr}"], slot.dtype).transpose(turned).strides != slot.strides
    ):  # where a dimension has one element
        space[f"y{nr}"] = slot.shape, slot.strides
        shown = f"window(b{nr}, *y{nr}, None, 0)"
    return [f"b{nr} = empty(z{nr}, d{nr})", f"m{nr} = {shown}"]


def again(kernel: Any, written: set[int], arrays: list[Any]) -> None:
    """Call a region that has refused its arrays once more: what NumPy gave as a number becomes an array, and what is
    not aligned is copied, if it is only read."""
    for nr, array in enumerate(arrays):
        if type(array) is not np.ndarray:
            arrays[nr] = np.asarray(array)
        elif nr not in written and not array.flags.aligned:
            steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
            memory = np.empty(sum(steps) // array.itemsize + 1, array.dtype)
            arrays[nr] = np.ndarray(array.shape, array.dtype, memory, 0, array.strides)
            np.copyto(arrays[nr], array)
    if not kernel(*arrays, 1, 1):
        raise RuntimeError(
            "a compiled function cannot write to memory that is not aligned or read-only; compile it with "
            "options={'exact': True}, or give it a copy"
        )


def reads_of(item: Any) -> list[Window]:
    """The windows that an item reads."""
    return [window for window, _ in item.loads.values()] if type(item) is Group else list(item.reads())


def writes_of(item: Any) -> list[Window]:
    """The windows that an item writes."""
    if type(item) in (Fold, Dot, Rows):
        return list(item.writes())
    return [window for window, _ in item.stores] if type(item) is Group else [item.out]
