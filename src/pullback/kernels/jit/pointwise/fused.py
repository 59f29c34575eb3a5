"""Pointwise NumPy code run as one compiled kernel: traced on the first call, looked up on the others.

    exp_backward = Kernels(lambda grad, result: grad * result)
    exp_backward(grad, result)          # one pass over memory, in several threads

What cannot be traced, compiled or checked is left to the function itself, so the answer is always its answer.
Nothing here needs the compiler until a first large array comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.memory import empty_in_order, laid_out, order_of_result
from pullback._runtime.quiet import quiet
from pullback._thresholds import HUGE, LARGE
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import Halfway, Trace, Untraceable, order_of

VARIANTS = 64
"""Programs kept for one function: beyond, its plain arguments differ from call to call."""
RECIPES = 256
FLAT = -1
ndarray = np.ndarray
layouts: dict[Any, Any] = {}
"""Layouts by shapes and strides."""
LAYOUTS = 4096


ROUNDED = {"arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cos", "cosh", "erf", "erfc",
           "erfcx", "erfinv", "exp", "exp2", "expit", "expm1", "gammaln", "hypot", "i0e", "i1e", "log", "log10",
           "log1p", "log2", "log_ndtr", "logaddexp", "logaddexp2", "ndtri", "power", "psi", "sin", "sinh", "tan",
           "tanh"}  # fmt: skip
"""What a kernel rounds in its own way; of everything else it gives what NumPy gives, to the bit."""


def rounds(root: Any) -> bool:
    """True for an expression that a kernel rounds in its own way."""
    return any([node.op in ROUNDED for node in order_of(root)])


class Kernels:
    """A function of arrays and plain arguments, with the kernels it became."""

    __slots__ = ("function", "lays_out", "name", "programs", "recipes", "rounds", "shapes")

    def __init__(self, function: Callable[..., Any], name: str = "", shapes: bool = False) -> None:
        """With `shapes` the function may look at those of its arrays; it must not do more with them than compute."""
        self.function, self.name, self.shapes = function, name or getattr(function, "__name__", ""), shapes
        self.lays_out = isinstance(function, np.ufunc)
        """True if torch gives the results the memory order of the arrays."""
        self.programs: dict[Any, Any] = {}
        self.rounds = False
        """True once a program was seen that rounds in its own way."""
        self.recipes: dict[Any, Any] = {}
        """What calls of arrays alone need, by dtypes, shapes and strides: a look-up instead of a search."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        key: list[Any] = []
        for a in args:
            if type(a) is not ndarray or kwargs:
                break
            key += (a.dtype, a.shape, a.strides)
        else:
            recipe = self.recipes.get(known := tuple(key))
            if recipe is not None:
                kernel, shape, dtype, facts = recipe
                out = np.empty(shape, dtype)
                if kernel(*args, out, *facts):
                    return out
            elif (made := self.run(args, kwargs, None)) is not None:
                self.note(known, args, made)
                return made
            return self.computed(args)
        made = self.run(args, kwargs, None)
        return self.computed(args, **kwargs) if made is None else made

    def computed(self, args: tuple[Any, ...], **kwargs: Any) -> Any:
        """The result without a kernel."""
        made = quiet().run(self.function, *args, **kwargs)
        return laid_out(made, args) if self.lays_out and made.ndim > 1 else made

    def note(self, key: tuple[Any, ...], args: tuple[Any, ...], made: Any) -> None:
        """Keep what made a result, if the next one can be made from that alone."""
        runner = self.programs.get(key[::3])
        if type(runner) is Runner and runner.finish is None and len(runner.inputs) == len(args):
            if made.nbytes < HUGE and made.flags.c_contiguous:
                if len(self.recipes) >= RECIPES:
                    self.recipes.clear()
                self.recipes[key] = runner.recipe(args, made)

    def into(self, out: np.ndarray[Any, Any], *args: Any, **kwargs: Any) -> bool:
        """Write the result over an array of its shape and dtype; False if nothing was done."""
        return self.run(args, kwargs, out) is not None

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        """The result, or None if a kernel cannot give it."""
        arrays = []
        key: list[Any] = []
        for value in (*args, *kwargs.values()) if kwargs else args:
            if type(value) is ndarray:
                arrays.append(value)
                key.append(value.dtype)
            else:
                # Zeros of both signs are equal, and nan is not equal to itself.
                key.append(type(value))
                key.append(str(value) if type(value) is float and (not value or value != value) else value)
        try:
            program = self.programs[tuple(key)]
        except KeyError:
            if len(self.programs) >= VARIANTS:
                if not self.rounds:
                    return None  # NumPy gives the same bits, and a trace takes longer
                self.programs.clear()
            program = self.programs.setdefault(tuple(key), self.traced(args, kwargs))
        except TypeError:  # an argument without a hash
            return None
        if type(program) is dict:
            shapes = tuple([a.shape for a in arrays])
            known, program = program, program.get(shapes, program)
            if program is known:
                made = self.traced(args, kwargs)
                program = made[shapes] if type(made) is dict else made
                if len(known) >= VARIANTS:
                    known.clear()
                program = known.setdefault(shapes, program)
        return None if program is None else program(arrays, out)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program of a call, or None."""
        pointwise = room("pointwise.loops")
        if pointwise is None:
            return None
        shapes = tuple([value.shape for value in (*args, *kwargs.values()) if type(value) is ndarray])
        trace = Trace(shapes if self.shapes else None)
        runner: Runner | None
        try:
            root, finish = self.expression(trace, args, kwargs)
            self.rounds = self.rounds or rounds(root)
            runner = Runner(pointwise.Program(root, self.name), finish)
        except Exception:  # whatever it is, the function itself will say it better
            runner = None
        return {shapes: runner} if trace.asked else runner

    def expression(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """What a call computes for each element, and what is to be done with the array of that."""
        finish: Callable[[Any], Any] | None = None

        def stand(value: Any) -> Any:
            return trace.input(value.dtype) if type(value) is ndarray else value

        try:
            given = [stand(value) for value in args]
            named = {name: stand(value) for name, value in kwargs.items()}
            made = quiet().run(self.function, *given, **named)
        except Halfway as stop:
            made, finish = stop.value, stop.finish
        return trace.node_of(made), finish


class Runner:
    """A program with its kernels by layout."""

    __slots__ = ("constants", "dtype", "finish", "grain", "inputs", "kernels", "program")

    def __init__(self, program: Any, finish: Callable[[Any], Any] | None = None) -> None:
        self.program, self.dtype, self.inputs = program, program.dtype, program.inputs
        self.finish = finish
        self.grain, self.constants = program.grain, program.constants
        self.kernels: dict[str, Any] = {}

    def __call__(self, arrays: list[Any], out: Any) -> Any:
        """The result for some arrays, or None if a kernel refuses them."""
        if self.finish is None:
            return self.computed(arrays, out)
        made = self.computed(arrays, None) if out is None else None
        return None if made is None else self.finish(made)

    def computed(self, arrays: list[Any], out: Any) -> Any:
        """What the kernels give."""
        used = [arrays[place] for place in self.inputs] if len(self.inputs) != len(arrays) else arrays
        shape = used[0].shape or max([a.shape for a in used], key=len)
        inner = ""
        for a in used:
            if not a.ndim:
                inner += "0"
            elif a.shape == shape and a.flags.c_contiguous:
                inner += "1"
            else:
                return self.strided(used, out)
        if out is None:
            out = np.empty(shape, self.dtype)
        elif out.shape != shape or not out.flags.c_contiguous:
            return self.strided(used, out)
        n = out.size
        way = inner
        if n >= HUGE // 8 and out.nbytes >= HUGE and out.__array_interface__["data"][0] % 64 == 0:
            if not any([a is out for a in used]):  # what is read anyway is written where it is
                way += "a"
        kernel = self.kernels.get(way) or self.compiled(way, inner + "1", FLAT, way is not inner)
        return out if kernel(*used, out, self.constants, n, n, self.grain) else None

    def recipe(self, used: Sequence[Any], made: Any) -> tuple[Any, ...]:
        """The kernel that made a result, and what it is told: see `computed` and `strided`."""
        flat = self.kernels.get("".join(["1" if a.ndim else "0" for a in used]))
        if flat is not None and all([not a.ndim or (a.shape == made.shape and a.flags.c_contiguous) for a in used]):
            return flat, made.shape, self.dtype, (self.constants, made.size, made.size, self.grain)
        layout = layouts.get(key := self.layout_key(used, None)) or remembered(key, list(used), None, self.dtype)
        facts = (self.constants, layout.count, layout.plan, layout.count, self.share(layout))
        return self.kernels[layout.name], made.shape, self.dtype, facts

    def share(self, layout: Any) -> int:
        """How many rows of a layout are worth another thread."""
        return max(self.grain // layout.length, 1) if layout.outer else self.grain

    def layout_key(self, used: Sequence[Any], out: Any) -> tuple[Any, ...]:
        """What a layout is kept by."""
        key: list[Any] = [self.dtype.itemsize]
        for a in used:
            key += (a.itemsize, a.shape, a.strides)
        if out is not None:
            key += (out.shape, out.strides)
        return tuple(key)

    def compiled(self, key: str, inner: str, outer: int, around_cache: bool = False) -> Any:
        """The kernel of a layout."""
        pointwise = room("pointwise.loops")
        found = pointwise.compiled(self.program, inner, outer, around_cache)
        dtypes = [*self.program.dtypes.values(), self.dtype]
        if any([is_half(dtype) for dtype in dtypes]):
            found = of_bits(found)
        return self.kernels.setdefault(key, found)

    def strided(self, used: list[Any], out: Any) -> Any:
        """The result for arrays of any strides."""
        known = self.layout_key(used, out)
        layout = layouts.get(known, known)
        if layout is known:
            layout = remembered(known, used, out, self.dtype)
        if layout is None:
            return None
        if out is None:
            out = empty_in_order(layout.shape, layout.order, self.dtype)
        kernel = self.kernels.get(layout.name) or self.compiled(layout.name, layout.inner, layout.outer)
        n = layout.count
        return out if kernel(*used, out, self.constants, n, layout.plan, n, self.share(layout)) else None


def of_bits(kernel: Callable[..., bool]) -> Callable[..., bool]:
    """A kernel that is to see arrays of float16 and bfloat16 as int16."""

    def seen(*args: Any) -> bool:
        return kernel(
            *[a.view("i2") if type(a) is ndarray and a.itemsize == 2 and a.dtype.kind in "fV" else a for a in args]
        )

    return seen


def remembered(key: Any, used: list[Any], out: Any, dtype: np.dtype[Any]) -> Any:
    """The layout of a call, worked out and kept; None if no kernel can walk it."""
    if len(layouts) >= LAYOUTS:
        layouts.clear()
    shape = np.broadcast_shapes(*[a.shape for a in used])
    if out is not None and np.broadcast_shapes(shape, out.shape) == out.shape:
        shape = out.shape
    order = order_of_result(used, shape)
    made = out
    if made is None:
        made = empty_in_order(shape, order, dtype)
    strides = []
    layout = None
    for a in (*used, made):
        size = a.itemsize
        if any(s % size for s in a.strides) or made.shape != shape:
            break
        own = [s // size if n != 1 else 0 for s, n in zip(a.strides, a.shape, strict=True)]
        strides.append([0] * (len(shape) - a.ndim) + own)
    else:
        try:
            layout = room("pointwise.loops").Layout(shape, strides, order)
        except Untraceable:
            layout = None
    layouts[key] = layout
    return layout


def same_in(array: Any, dtype: Any) -> Any:
    """The same elements in a dtype."""
    return np.positive(array) if array.dtype == dtype else array.astype(dtype)


copy = Kernels(same_in, "copy")


def row_major_copy(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A copy in a dtype and in row-major order."""
    if array.size >= LARGE:
        out = np.empty(array.shape, dtype)
        if copy.into(out, array, dtype):
            return out
    return array.astype(dtype, "C")


def overwrite(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
    """target[...] = source"""
    if target.size < LARGE and target.dtype is source.dtype and target.shape == source.shape:
        target[...] = source  # nothing to convert, and so nothing to warn of
    elif target.size < LARGE or np.may_share_memory(target, source) or not copy.into(target, source, target.dtype):
        quiet().run(np.copyto, target, source, "unsafe")
