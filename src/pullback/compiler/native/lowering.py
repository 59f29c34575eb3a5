"""From a step of a program to pieces of native work.

The forward of an op and the formula of a derivative are functions of arrays. They are run once more, on arrays that
tell what is done to them (see `capture`): what comes out are the calls of NumPy they consist of, and a handful of
those is all that native code needs to know. A step in which another one occurs is left to Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback._memory import data_ptr
from pullback._op.declare import names_of
from pullback._op.readings import forward_of, reread
from pullback._quiet import SILENT, errors
from pullback.compiler.arrays import window
from pullback.compiler.capture import Recorder
from pullback.compiler.native.loops import is_emitted
from pullback.compiler.native.pieces import Base, Dot, Piece, Point, Reduce, Window, fresh
from pullback.compiler.native.products import kind_of, panels_for, takes_in
from pullback.compiler.program import CALL, FORMULA, METHOD, OP, Program, Slot, Step
from pullback.kernels.jit.language.expression import KNOWN, NARROW, is_known, plain_name

LONGEST = 1 << 13
"""Elements that are summed up in one go: more would round worse than NumPy's sums by halves, and go by blocks."""
COMPUTING = ("pullback.kernels.numpy.", "pullback._memory")
"""Where functions stand that do nothing but compute."""
REDUCTIONS = {"add": "add", "maximum": "max", "minimum": "min"}
FILLED: dict[Any, Any] = {np.ones: 1, np.zeros: 0, np.full: None}
VIEWS = {"transpose", "swapaxes", "squeeze", "reshape", "ravel", "view", "diagonal", "__getitem__"}


class Unlowered(Exception):
    """This step is not for native code."""


class Lowering:
    """The windows of a program's slots, as far as native code knows them, and the pieces of each step."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.windows: dict[int, Window] = {}

    def window_of(self, slot: Slot) -> Window:
        """The window of a slot; memory that no native code made is given."""
        known = self.windows.get(slot.index)
        if known is None:
            if not is_known(slot.dtype) or slot.dtype.name in NARROW or slot.dtype.itemsize == 2:
                raise Unlowered(f"dtype {slot.dtype}")
            known = self.windows[slot.index] = given(slot)
        return known

    def pieces(self, step: Step) -> list[Piece]:
        """What a step does; its outs have windows then. Raises Unlowered if native code cannot do it."""
        if step.random or step.kind not in (OP, FORMULA, CALL, METHOD):
            raise Unlowered(step.name)
        if step.kind == CALL and step.function in FILLED:
            return self.filled(step)
        inputs = {slot.index: self.window_of(slot) for slot in step.reads()}
        if step.kind == OP and step.op.view:
            self.show(step)
            return []
        parts = Parts(inputs)
        made = parts.run(step)
        outs: dict[int, Window] = {}
        memory = {self.program.slots[i].memory for i in inputs}
        for slot, found in zip(step.outs, made, strict=True):
            if slot is None:
                continue
            if slot.index in self.windows:
                continue  # the step gives back what it was given
            if found is None or found.dtype != slot.dtype or found.shape != slot.shape:
                raise Unlowered(f"{step.name} gave something else")
            if (slot.memory in memory) != (found.base in parts.bases):
                raise Unlowered(f"{step.name} shares memory otherwise")
            steps = tuple([0 if n == 1 else s // slot.dtype.itemsize for n, s in zip(slot.shape, slot.strides)])
            if found.strides != steps:
                if found.base in parts.bases or not is_dense(slot.shape, steps):
                    raise Unlowered(f"{step.name} lies otherwise")
                target = fresh(found.dtype, found.shape, steps)
                parts.pieces.append(Point("positive", [found], [found.dtype] * 2, target))
                found = target
            outs[slot.index] = found
        self.windows |= outs
        return parts.pieces

    def show(self, step: Step) -> None:
        """Another window on memory that is there."""
        for slot in step.outs:
            if slot is None or slot.index in self.windows:
                continue
            source = next((s for s in step.reads() if s.memory == slot.memory), None)
            if source is None or slot.dtype != source.dtype or min(slot.strides, default=0) < 0:
                raise Unlowered(f"{step.name} copies")
            before, size = self.windows[source.index], slot.dtype.itemsize
            moved, steps = slot.offset - source.offset, slot.strides
            if moved % size or any([s % size for s in steps]):
                raise Unlowered("elements that are not whole steps apart")
            strides = tuple([s // size for s in steps])
            self.windows[slot.index] = Window(before.base, before.offset + moved // size, slot.shape, strides)

    def filled(self, step: Step) -> list[Piece]:
        """A new array of one number."""
        (out,) = step.outs
        value = FILLED[step.function] if step.function is not np.full else step.args[1]
        if (
            out is None
            or not is_known(out.dtype)
            or not isinstance(value, (bool, int, float))
            or not out.shape == tuple(step.args[0] if type(step.args[0]) in (tuple, list) else (step.args[0],))
        ):
            raise Unlowered(step.name)
        window = self.windows[out.index] = fresh(out.dtype, out.shape)
        return [Point("positive", [value], [out.dtype] * 2, window)]


def given(slot: Slot) -> Window:
    """The window of an array that is there."""
    size = slot.dtype.itemsize
    if any([s % size for s in slot.strides]):
        raise Unlowered("elements that are not whole steps apart")
    strides = tuple([s // size for s in slot.strides])
    span = 1 + sum([(n - 1) * abs(s) for n, s in zip(slot.shape, strides, strict=True)])
    return Window(Base(slot.dtype, span, slot, ("slot", slot.memory)), 0, slot.shape, strides)


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie without gaps, in some order of the dimensions."""
    step = 1
    for s, n in sorted([(s, n) for s, n in zip(strides, shape, strict=True) if n != 1]):
        if s != step:
            return False
        step *= n
    return True


class Parts:
    """One step, run on arrays that tell."""

    def __init__(self, inputs: dict[int, Window]) -> None:
        self.inputs = inputs
        self.bases = {window.base for window in inputs.values()}
        self.recorder = Recorder()
        self.known: dict[int, Window] = {}
        """The windows of the recorder's slots."""
        self.start: dict[int, int] = {}
        """The addresses of the memory in which windows of other bases lie."""
        self.pieces: list[Piece] = []
        self.lifted: dict[int, Any] = {}

    def run(self, step: Step) -> list[Window | None]:
        """Note the pieces of a step; the windows of its results."""
        before = errors.get()
        try:
            errors.set(SILENT)
            made = self.call(step)
        except Unlowered:
            raise
        except Exception as error:  # the function itself, run by Python, says it better
            raise Unlowered(f"{step.name}: {error!r}") from None
        finally:
            errors.set(before)
        if self.recorder.why is not None:
            raise Unlowered(self.recorder.why)
        for part in self.recorder.program.steps:
            self.note(part)
        results = (made or []) if step.several else [made]
        return [self.window_of(result) for result in results]

    def call(self, step: Step) -> Any:
        """The function of a step on arrays that tell."""
        args = [self.lift(a) for a in step.args]
        kwargs = {name: self.lift(a) for name, a in step.kwargs.items()}
        if step.kind == METHOD:
            return getattr(args[0], step.function)(*args[1:], **kwargs)  # type: ignore[arg-type]
        if step.kind == OP:
            return forward_of(step.op)(*args, **kwargs)
        if step.kind == FORMULA:
            if not step.part:
                raise Unlowered("derivatives that are computed together")
            formula = step.op.formulas[step.part]
            if not callable(formula):
                raise Unlowered("no formula")
            names = names_of(formula)
            distinct = list(dict.fromkeys(names))
            values = dict(zip(distinct, args[1:], strict=True))
            return reread(formula)(*[values[name] for name in names])
        module = getattr(step.function, "__module__", None) or ""
        if isinstance(step.function, np.ufunc) or module == "numpy" or module.startswith(COMPUTING):
            return step.function(*args, **kwargs)  # type: ignore[operator]
        raise Unlowered(step.name)

    def lift(self, value: Any) -> Any:
        """An argument with arrays of ones for slots: nothing may depend on what the elements are."""
        kind = type(value)
        if kind is Slot:
            if value.index not in self.lifted:
                window = self.inputs[value.index]
                span = 1 + sum([(n - 1) * abs(s) for n, s in zip(value.shape, value.strides, strict=True)])
                if any([s < 0 for s in value.strides]):
                    raise Unlowered("negative strides")
                memory = np.ones(max(span // value.dtype.itemsize + 1, 1), value.dtype)
                array = np.ndarray(value.shape, value.dtype, memory, 0, value.strides)
                traced = self.recorder.traced(array)
                self.known[traced.slot.index] = window
                self.lifted[value.index] = traced
            return self.lifted[value.index]
        if kind in (list, tuple):
            return kind([self.lift(item) for item in value])
        return value

    def window_of(self, value: Any) -> Window | None:
        """The window of a result."""
        slot = getattr(value, "slot", None)
        return None if slot is None else self.known.get(slot.index)

    # ---------------------------------------------------------------- calls of NumPy

    def operand(self, value: Any) -> Any:
        """A window or a number."""
        if type(value) is Slot:
            known = self.known.get(value.index)
            if known is not None:
                return known
            constant = self.recorder.program.constants.get(value.index)
            if constant is not None and constant.size == 1:
                return constant.reshape(()).astype(constant.dtype)[()]
            raise Unlowered("an array that comes from elsewhere")
        if isinstance(value, (bool, int, float, np.generic)) and not isinstance(value, complex):
            return value
        raise Unlowered(f"an operand of type {type(value).__name__}")

    def note(self, part: Step) -> None:
        """One call of NumPy as a piece; views are windows and no work."""
        name = part.name
        function = part.function
        if (part.kind == METHOD and name in VIEWS) or function in (window, np.broadcast_to):
            self.note_view(part)
        elif isinstance(function, np.ufunc):
            if function is np.matmul:
                self.note_dot(part)
            else:
                self.note_ufunc(part, function)
        elif name == "reduce" and isinstance(getattr(function, "__self__", None), np.ufunc):
            self.note_reduce(part, function.__self__)
        elif (part.kind == METHOD and name == "dot") or function is np.dot:
            self.note_dot(part)
        elif function is np.where:
            self.note_where(part)
        elif part.kind == METHOD and name in ("astype", "copy"):
            self.note_copy(part)
        elif function is np.copyto:
            self.note_write(part)
        else:
            raise Unlowered(name)

    def note_view(self, part: Step) -> None:
        """Another window on memory that is there."""
        (out,) = part.outs
        source = part.args[0]
        values = self.recorder.values
        if out is None or out.memory != source.memory:
            raise Unlowered(f"{part.name} copies")
        if out.index in self.known:
            return
        before = self.operand(source)
        itemsize = out.dtype.itemsize
        moved = data_ptr(values[out.index]) - data_ptr(values[source.index])
        if out.dtype != source.dtype or moved % itemsize or any([s % itemsize for s in out.strides]):
            raise Unlowered("a view of another dtype")
        strides = tuple([s // itemsize for s in out.strides])
        if any([s < 0 for s in strides]):
            raise Unlowered("negative strides")
        self.known[out.index] = Window(before.base, before.offset + moved // itemsize, out.shape, strides)

    def target(self, part: Step) -> Window:
        """Where the result of a call goes: new memory, or what `out=` names."""
        (out,) = part.outs
        assert out is not None
        if out.index in self.known:
            return self.known[out.index]
        if not is_known(out.dtype) or out.dtype.name in NARROW or out.dtype.itemsize == 2:
            raise Unlowered(f"dtype {out.dtype}")
        strides = tuple([s // out.dtype.itemsize if n != 1 else 0 for s, n in zip(out.strides, out.shape, strict=True)])
        if not is_dense(out.shape, strides):
            raise Unlowered("a result with gaps")
        made = self.known[out.index] = fresh(out.dtype, out.shape, strides)
        return made

    def note_ufunc(self, part: Step, ufunc: Any) -> None:
        """An operation on elements."""
        name = plain_name(ufunc)
        if name not in KNOWN or set(part.kwargs) - {"out", "dtype"} or len(part.outs) != 1:
            raise Unlowered(name)
        operands = [self.operand(a) for a in part.args[: ufunc.nin]]
        if len(part.args) > ufunc.nin:
            raise Unlowered(f"{name} with a positional result")
        kinds: list[Any] = [
            a.dtype if isinstance(a, (Window, np.generic)) else type(a) if type(a) is not bool else np.dtype(bool)
            for a in operands
        ]
        wanted = part.kwargs.get("dtype")
        options = {} if wanted is None else {"signature": (None,) * len(kinds) + (np.dtype(wanted),)}
        dtypes = ufunc.resolve_dtypes((*kinds, None), **options)
        if not all([is_known(d) and d.name not in NARROW and d.itemsize != 2 for d in dtypes]):
            raise Unlowered(f"{name} of {dtypes[0]}")
        self.add(Point(name, operands, dtypes, self.target(part)))

    def note_where(self, part: Step) -> None:
        """A choice."""
        if len(part.args) != 3 or part.kwargs:
            raise Unlowered("where")
        operands = [self.operand(a) for a in part.args]
        out = self.target(part)
        self.add(Point("where", operands, [np.dtype(bool), out.dtype, out.dtype, out.dtype], out))

    def note_copy(self, part: Step) -> None:
        """A copy, perhaps in another dtype."""
        operand = self.operand(part.args[0])
        out = self.target(part)
        self.add(Point("positive", [operand], [out.dtype, out.dtype], out))

    def note_write(self, part: Step) -> None:
        """A copy into memory that is there."""
        target, source = (self.operand(a) for a in part.args[:2])
        if len(part.args) > 3 or set(part.kwargs) - {"casting"} or type(target) is not Window:
            raise Unlowered("copyto with options")
        kind = source.dtype if isinstance(source, (Window, np.generic)) else np.dtype(type(source))
        if kind != target.dtype and not (kind.kind == target.dtype.kind == "f"):
            raise Unlowered("a copy into another dtype")
        self.add(Point("positive", [source], [target.dtype] * 2, target))

    def add(self, point: Point) -> None:
        """A pointwise piece; where it writes to what it reads otherwise, it is done in two."""
        out = point.out
        if point.op != "positive" and not is_emitted(point.op, point.dtypes):
            raise Unlowered(f"{point.op} of {point.dtypes[0]}")
        if any([a.base.alias == out.base.alias and a.key() != out.key() for a in point.reads()]):
            between = fresh(out.dtype, out.shape)
            self.pieces.append(Point(point.op, point.args, point.dtypes, between))
            point = Point("positive", [between], [out.dtype, out.dtype], out)
        if self.pieces and type(self.pieces[-1]) is Dot and takes_in(self.pieces[-1], point):
            return
        self.pieces.append(point)

    def note_reduce(self, part: Step, ufunc: Any) -> None:
        """A sum or an extremum over dimensions."""
        how = REDUCTIONS.get(ufunc.__name__)
        if how is None or set(part.kwargs) - {"axis", "dtype", "keepdims", "out"} or len(part.args) > 2:
            raise Unlowered(f"{ufunc.__name__}.reduce")
        x = self.operand(part.args[0])
        axis = part.args[1] if len(part.args) == 2 else part.kwargs.get("axis", 0)
        ndim = len(x.shape)
        axes = range(ndim) if axis is None else [a % ndim for a in (axis if type(axis) is tuple else (axis,))]
        out = self.target(part)
        if out.dtype != x.dtype or out.dtype.kind != "f" or not x.size:
            raise Unlowered("a reduction in another dtype")
        many = np.prod([x.shape[a] for a in axes], dtype=np.int64)
        if out.base in self.bases or (many > LONGEST and not (many == x.size and x.is_row_major())):
            raise Unlowered("a long reduction")
        strides = list(out.strides)
        if part.kwargs.get("keepdims"):
            strides = [s for d, s in enumerate(strides) if d not in axes]
        shape = tuple([n for d, n in enumerate(x.shape) if d not in axes])
        self.pieces.append(Reduce(how, x, sorted(axes), Window(out.base, out.offset, shape, tuple(strides))))

    def note_dot(self, part: Step) -> None:
        """A product of matrices, or of vectors as thin ones."""
        a, b = self.operand(part.args[0]), self.operand(part.args[1])
        if type(a) is not Window or type(b) is not Window or not a.dtype == b.dtype or a.dtype.kind != "f":
            raise Unlowered("a product of other things than floats")
        if part.kwargs or len(part.args) != 2:
            raise Unlowered("a product with options")
        if not a.shape or not b.shape or not a.size or not b.size:
            raise Unlowered("a product of nothing")
        out = self.target(part)
        if len(a.shape) > 2 or len(b.shape) > 2:
            if part.function is not np.matmul or len(a.shape) < 2 or len(b.shape) < 2:
                raise Unlowered("a product in several dimensions")
            self.note_stack(a, b, out)
            return
        rows, columns = len(a.shape) == 2, len(b.shape) == 2
        left = a if rows else Window(a.base, a.offset, (1, *a.shape), (0, *a.strides))
        right = b if columns else Window(b.base, b.offset, (*b.shape, 1), (*b.strides, 0))
        whole = Window(out.base, out.offset, (left.shape[0], right.shape[1]), (right.shape[1], 1))
        if not out.is_row_major():
            raise Unlowered("a product that lies otherwise")
        self.multiply(left, right, whole)

    def note_stack(self, a: Window, b: Window, out: Window) -> None:
        """A product of stacks of matrices."""
        (rows, depth), columns = a.shape[-2:], b.shape[-1]
        if not out.is_row_major():
            raise Unlowered("a product that lies otherwise")
        lead = out.shape[:-2]
        a = Window(a.base, a.offset, (*lead, rows, depth), tuple(a.steps(out.shape)))
        b = Window(b.base, b.offset, (*lead, depth, columns), tuple(b.steps(out.shape)))
        self.multiply(a, b, out)

    def multiply(self, a: Window, b: Window, out: Window) -> None:
        """A product, or as many as there are before the last two dimensions."""
        (rows, depth), columns = a.shape[-2:], b.shape[-1]
        kind = kind_of(rows, depth, columns, int(np.prod(out.shape[:-2])))
        if not kind:
            raise Unlowered("a product that BLAS is best at")
        if kind == "large":
            self.pieces.append(Dot(a, b, out, panels_for(out.dtype)))
            return
        first, second = matrix_of(a), matrix_of(b)
        if not second.is_row_major() and not (transposed(second).is_row_major() and first.is_row_major()):
            copied = fresh(b.dtype, b.shape)
            self.pieces.append(Point("positive", [b], [b.dtype] * 2, copied))
            b = copied
        self.pieces.append(Dot(a, b, out))


def matrix_of(stack: Window) -> Window:
    """The first matrix of a stack."""
    return Window(stack.base, stack.offset, stack.shape[-2:], stack.strides[-2:])


def transposed(matrix: Window) -> Window:
    """A matrix the other way round."""
    return Window(matrix.base, matrix.offset, matrix.shape[::-1], matrix.strides[::-1])
