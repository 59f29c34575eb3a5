"""A step, run once more on arrays that tell what is done to them: the calls of NumPy it consists of, as pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod
from typing import Any

import numpy as np

from pullback._arrays.memory import data_ptr
from pullback._op.declare import names_of
from pullback._op.readings import array_namespace, forward_of, reread
from pullback._runtime.quiet import SILENT, errors
from pullback.compiler.arrays import TracedArray, window
from pullback.compiler.capture import Recorder
from pullback.compiler.native.loops import is_emitted
from pullback.compiler.native.pieces import Dot, Piece, Point, Reduce, Window, fresh
from pullback.compiler.native.products import kind_of, panels_for, takes_in
from pullback.compiler.program import FORMULA, METHOD, OP, Slot, Step
from pullback.kernels.jit.language.expression import KNOWN, NARROW, is_known, plain_name
from pullback.kernels.numpy.math import direct
from pullback.ops.pointwise import compare, special
from pullback.ops.pointwise.special import scipy_special
from pullback.ops.shape import join, rearrange

LONGEST = 1 << 13
"""Elements that are summed up in one go: more would round worse than NumPy's sums by halves, and go by blocks."""
COMPUTING = ("pullback.kernels.numpy.", "pullback._arrays.memory")
"""Where functions stand that do nothing but compute."""
REDUCTIONS = {"add": "add", "maximum": "max", "minimum": "min"}
METHODS = {"sum": np.add, "max": np.maximum, "min": np.minimum}
"""Methods of arrays that reduce."""
VIEWS = {"transpose", "swapaxes", "squeeze", "reshape", "ravel", "view", "diagonal", "__getitem__"}
LIKE: dict[Any, Any] = {np.empty_like: None, np.zeros_like: 0, np.ones_like: 1}
DIRECT = {id(direct.concatenate): np.concatenate, id(direct.empty_like): np.empty_like, id(direct.copyto): np.copyto}


@cache
def shortcuts() -> list[tuple[dict[str, Any], str, Any]]:
    """Where NumPy's functions are called without their search for arrays of other kinds, and which they are."""
    found = []
    for module in (join, rearrange, compare):
        for space in (vars(module), array_namespace(module.__name__)):
            found += [(space, name, DIRECT[id(value)]) for name, value in list(space.items()) if id(value) in DIRECT]
    for space in (vars(special), array_namespace(special.__name__)):
        if "scipy_special" in space:
            found.append((space, "scipy_special", named))
    return found


def named(name: str, *args: Any) -> Any:
    """A function of SciPy's: those that loops know are known by their name, so that SciPy need not be loaded."""
    if name in KNOWN and len(args) == 1 and type(args[0]) is TracedArray and args[0].dtype in (np.float32, np.float64):
        return args[0].recorder.call(Named(name), args, {})
    return scipy_special(name, *args)


class Named:
    """A function of elements, by the name under which loops know it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, array: Any) -> Any:
        """An array as the function would make it: nobody looks at the elements."""
        return np.ones_like(array)


@contextmanager
def searching() -> Iterator[None]:
    """Let those functions search meanwhile: whoever calls them on plain arrays gets what they would get anyhow."""
    before = [(space, name, space[name]) for space, name, _ in shortcuts()]
    try:
        for space, name, function in shortcuts():
            space[name] = function
        yield
    finally:
        for space, name, function in before:
            space[name] = function


class Unlowered(Exception):
    """This step is not for native code."""


@cache
def is_taken(dtype: np.dtype[Any]) -> bool:
    """Whether native code computes with elements of a dtype."""
    return is_known(dtype) and dtype.name not in NARROW and dtype.itemsize != 2


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie without gaps, in some order of the dimensions."""
    step = 1
    for s, n in sorted([(s, n) for s, n in zip(strides, shape, strict=True) if n != 1]):
        if s != step:
            return False
        step *= n
    return True


class Telling(Recorder):
    """A recorder of what draws no random numbers."""

    def states(self) -> dict[Any, Any]:
        """Nothing that has to be brought back."""
        return {}

    def keep(self, array: Any) -> None:
        """Nobody misses what was there before."""

    def run(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Compute a call; of the product of two matrices, only what it looks like."""
        made = None if kwargs else product_of(*args)
        return super().run(function, *args, **kwargs) if made is None else made


def product_of(function: Any, *operands: Any) -> Any:
    """An array like the product of two matrices, if a function makes that: nobody looks at the elements, and they would
    take as long as the step itself."""
    if getattr(function, "__name__", "") == "dot" and type(getattr(function, "__self__", None)) is np.ndarray:
        operands = (function.__self__, *operands)
    elif function is not np.matmul and function is not np.dot:
        return None
    if len(operands) != 2 or not all([type(x) is np.ndarray and x.ndim == 2 for x in operands]):
        return None
    a, b = operands
    return np.ones((a.shape[0], b.shape[1]), a.dtype) if a.dtype is b.dtype else None


class Parts:
    """One step, run on arrays that tell."""

    def __init__(self, inputs: dict[int, Window]) -> None:
        self.inputs = inputs
        self.bases = {window.base for window in inputs.values()}
        self.recorder = Telling()
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
            with searching():
                made = self.call(step)
            if self.recorder.why is None:
                for part in self.recorder.program.steps:
                    self.note(part)
        except Unlowered:
            raise
        except Exception as error:  # the function itself, run by Python, says it better
            raise Unlowered(f"{step.name}: {error!r}") from None
        finally:
            errors.set(before)
        if self.recorder.why is not None:
            raise Unlowered(self.recorder.why)
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
            formula = step.op.formulas[step.part] if step.part else step.op.joint
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
        elif type(function) is Named:
            self.add(Point(name, [self.operand(part.args[0])], [part.args[0].dtype] * 2, self.target(part)))
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
        elif function is np.concatenate:
            self.note_joined(part)
        elif function in LIKE:
            self.note_like(part)
        elif part.kind == METHOD and name in METHODS:
            self.note_reduce(part, METHODS[name])
        elif part.kind == METHOD and name in ("fill", "__setitem__"):
            self.note_assignment(part)
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
        if not is_taken(out.dtype):
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
        if not all([is_taken(d) for d in dtypes]):
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

    def note_joined(self, part: Step) -> None:
        """Arrays side by side: each is copied to its place."""
        arrays, *rest = part.args
        axis = rest[0] if rest else part.kwargs.get("axis", 0)
        if len(rest) > 1 or set(part.kwargs) - {"axis"} or type(axis) is not int:
            raise Unlowered("concatenate with options")
        out = self.target(part)
        axis %= len(out.shape)
        start = 0
        for value in arrays:
            source = self.operand(value)
            if type(source) is not Window or source.dtype != out.dtype:
                raise Unlowered("concatenate of several dtypes")
            place = Window(out.base, out.offset + start * out.strides[axis], source.shape, out.strides)
            if source.size:
                self.pieces.append(Point("positive", [source], [out.dtype] * 2, place))
            start += source.shape[axis]

    def note_like(self, part: Step) -> None:
        """A new array, of one number or of none yet."""
        out = self.target(part)
        value = LIKE[part.function]
        if value is not None:
            self.pieces.append(Point("positive", [value], [out.dtype] * 2, out))

    def note_assignment(self, part: Step) -> None:
        """Elements of an array that are overwritten."""
        source = part.args[0]
        before, shown, value = self.operand(source), self.recorder.values[source.index], self.operand(part.args[-1])
        if part.name == "__setitem__":
            keys = part.args[1] if type(part.args[1]) is tuple else (part.args[1],)
            if any([type(key) not in (slice, int) and key is not None and key is not Ellipsis for key in keys]):
                raise Unlowered("__setitem__ with an index of another kind")
            shown = shown[keys if any([key is Ellipsis for key in keys]) else (*keys, Ellipsis)]  # a view, if of one
        size = source.dtype.itemsize
        moved = data_ptr(shown) - data_ptr(self.recorder.values[source.index]) if shown.size else 0
        if any([s % size or s < 0 for s in shown.strides]):
            raise Unlowered("negative strides")
        target = Window(
            before.base, before.offset + moved // size, shown.shape, tuple([s // size for s in shown.strides])
        )
        kind = value.dtype if isinstance(value, (Window, np.generic)) else None
        if kind is not None and kind != target.dtype and not (kind.kind == target.dtype.kind == "f"):
            raise Unlowered("a copy into another dtype")
        if shown.size:
            self.add(Point("positive", [value], [target.dtype] * 2, target))

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
        axis = part.args[1] if len(part.args) == 2 else part.kwargs.get("axis", None if part.kind == METHOD else 0)
        ndim = len(x.shape)
        axes = range(ndim) if axis is None else [a % ndim for a in (axis if type(axis) is tuple else (axis,))]
        out = self.target(part)
        if out.dtype != x.dtype or out.dtype.kind != "f" or not x.size:
            raise Unlowered("a reduction in another dtype")
        many = prod([x.shape[a] for a in axes])
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
        kind = kind_of(rows, depth, columns, prod(out.shape[:-2]))
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
