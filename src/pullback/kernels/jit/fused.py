"""Pointwise NumPy code run as one compiled kernel: traced on the first call, looked up on the others.

    exp_backward = Fused(lambda grad, result: grad * result)
    exp_backward(grad, result)          # one pass over memory, in several threads

What cannot be traced, compiled or checked is left to the function itself, so the answer is always its answer.
Nothing here needs the compiler until a first large array comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.kernels.compiled import room
from pullback.kernels.jit.expression import Halfway, Trace, Untraceable

LARGE = 4096
"""From this many elements on, a kernel's call (2 us) is paid for by its speed."""
MANY = 16384
"""The same for what is one call of NumPy: up to 8192 (exp) or 32768 (products) elements NumPy was measured quicker."""
STRIDED = 256
"""From this many elements on, several calls of NumPy take longer than a kernel for arrays that are not row-major."""
HUGE = 16 * 2**20
"""Results of this many bytes are written around the cache, which they would only empty."""
VARIANTS = 64
"""Programs kept for one function: beyond, its plain arguments differ from call to call and NumPy takes over."""
FLAT = -1
ndarray = np.ndarray
layouts: dict[Any, Any] = {}
"""Layouts by shapes and strides."""
LAYOUTS = 4096


class Fused:
    """A function of arrays and plain arguments, with the kernels it became."""

    __slots__ = ("function", "name", "programs", "shapes")

    def __init__(self, function: Callable[..., Any], name: str = "", shapes: bool = False) -> None:
        """With `shapes` the function may look at those of its arrays; it must not do more with them than compute."""
        self.function, self.name, self.shapes = function, name or getattr(function, "__name__", ""), shapes
        self.programs: dict[Any, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.run(args, kwargs, None)
        return self.function(*args, **kwargs) if made is None else made

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
                return None
            program = self.programs[tuple(key)] = self.traced(args, kwargs)
        except TypeError:  # an argument without a hash
            return None
        if type(program) is dict:
            shapes = tuple([a.shape for a in arrays])
            if shapes not in program:
                if len(program) >= VARIANTS:
                    program.clear()
                made = self.traced(args, kwargs)
                program[shapes] = made[shapes] if type(made) is dict else made
            program = program[shapes]
        return None if program is None else program(arrays, out)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program of a call, or None."""
        pointwise = room("pointwise")
        if pointwise is None:
            return None
        shapes = tuple([value.shape for value in (*args, *kwargs.values()) if type(value) is ndarray])
        trace = Trace(shapes if self.shapes else None)
        finish: Callable[[Any], Any] | None = None
        runner: Runner | None

        def stand(value: Any) -> Any:
            return trace.input(value.dtype) if type(value) is ndarray else value

        try:
            try:
                made = self.function(*map(stand, args), **{name: stand(value) for name, value in kwargs.items()})
            except Halfway as stop:
                made, finish = stop.value, stop.finish
            runner = Runner(pointwise.Program(trace.node_of(made), self.name), finish)
        except Exception:  # whatever it is, the function itself will say it better
            runner = None
        return {shapes: runner} if trace.asked else runner


class Quick:
    """A function of one array and plain arguments that takes several calls of NumPy, in one call of a kernel.

    What is not float32 or float64 in row-major order, or cannot be traced, is left to the function itself.
    """

    __slots__ = ("entries", "fused", "least", "users")

    def __init__(self, fused: Fused, least: int = 0) -> None:
        """Arrays of fewer than `least` elements are left to the function."""
        self.fused, self.least = fused, least
        self.entries: dict[Any, Any] = {}
        self.users: list[dict[str, Any]] = []
        """The globals of functions that call this one SMALL: where it is of no use they get the function itself."""

    def __call__(self, x: np.ndarray[Any, Any], *plain: Any) -> Any:
        try:
            entry = self.entries[(x.dtype, *plain)]
        except KeyError:
            entry = self.entry(x, plain)
        except TypeError:  # an argument without a hash
            entry = None
        if entry is not None:
            size = x.size
            if size < self.least:
                return self.fused.function(x, *plain)
            if x.flags.c_contiguous:
                kernel, dtype, constants, grain = entry
                out = np.empty(x.shape, dtype)
                if kernel(x, out, constants, size, size, grain):
                    return out
            elif size >= STRIDED:
                return self.fused(x, *plain)
        elif not plain and x.dtype.char == "f":
            for user in self.users:
                user["SMALL"] = self.fused.function
        return self.fused.function(x, *plain)

    def entry(self, x: np.ndarray[Any, Any], plain: tuple[Any, ...]) -> Any:
        """What a call needs, kept for the next one; zeros of either sign are equal, and nan is not equal to itself."""
        if x.dtype.char not in "fd" or len(self.entries) >= VARIANTS or any([v == 0 or v != v for v in plain]):
            return None
        runner = self.fused.traced((x, *plain), {})
        found = None
        if type(runner) is Runner and runner.finish is None and len(runner.inputs) == 1:
            found = (runner.compiled("1", "11", FLAT), runner.dtype, runner.constants, runner.grain)
        self.entries[(x.dtype, *plain)] = found
        return found


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
            way += "a"
        kernel = self.kernels.get(way) or self.compiled(way, inner + "1", FLAT, way is not inner)
        return out if kernel(*used, out, self.constants, n, n, self.grain) else None

    def compiled(self, key: str, inner: str, outer: int, around_cache: bool = False) -> Any:
        """The kernel of a layout."""
        found = self.kernels[key] = room("pointwise").compiled(self.program, inner, outer, around_cache)
        return found

    def strided(self, used: list[Any], out: Any) -> Any:
        """The result for arrays of any strides."""
        key: list[Any] = [self.dtype.itemsize]
        for a in used:
            key += (a.itemsize, a.shape, a.strides)
        if out is not None:
            key += (out.shape, out.strides)
        known = tuple(key)
        layout = layouts.get(known, known)
        if layout is known:
            layout = remembered(known, used, out, self.dtype)
        if layout is None:
            return None
        if out is None:
            out = (
                np.empty(layout.shape, self.dtype) if layout.like < 0 else np.empty_like(used[layout.like], self.dtype)
            )
        kernel = self.kernels.get(layout.name) or self.compiled(layout.name, layout.inner, layout.outer)
        n = layout.count
        grain = max(self.grain // layout.length, 1) if layout.outer else self.grain
        return out if kernel(*used, out, self.constants, n, layout.plan, n, grain) else None


def model_of(used: list[Any], shape: tuple[int, ...]) -> int:
    """Which array's memory order the result has: -1 for row-major, as it is if one of them is, else the first's."""
    full = [k for k, a in enumerate(used) if a.shape == shape]
    if not full or any([used[k].flags.c_contiguous or 0 in used[k].strides for k in full]):
        return -1
    return full[0]


def remembered(key: Any, used: list[Any], out: Any, dtype: np.dtype[Any]) -> Any:
    """The layout of a call, worked out and kept; None if no kernel can walk it."""
    if len(layouts) >= LAYOUTS:
        layouts.clear()
    shape = np.broadcast_shapes(*[a.shape for a in used])
    if out is not None and np.broadcast_shapes(shape, out.shape) == out.shape:
        shape = out.shape
    like = model_of(used, shape)
    made = out
    if made is None:
        made = np.empty(shape, dtype) if like < 0 else np.empty_like(used[like], dtype)
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
            layout = room("pointwise").Layout(shape, strides, like)
        except Untraceable:
            layout = None
    layouts[key] = layout
    return layout


def pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pointwise function of arrays, run as one kernel where its first array is large."""
    fused = Fused(function)

    def either(*args: Any) -> Any:
        return function(*args) if args[0].size < LARGE else fused(*args)

    return either


def same_in(array: Any, dtype: Any) -> Any:
    """The same elements in a dtype."""
    return np.positive(array) if array.dtype == dtype else array.astype(dtype)


add = Fused(np.add)
"""The sum of two arrays, as gradients are added."""
copy = Fused(same_in, "copy")


def row_major_copy(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A copy in a dtype and in row-major order."""
    if array.size >= LARGE:
        out = np.empty(array.shape, dtype)
        if copy.into(out, array, dtype):
            return out
    return array.astype(dtype, "C")


def overwrite(target: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
    """target[...] = source"""
    if target.size < LARGE or np.may_share_memory(target, source) or not copy.into(target, source, target.dtype):
        target[...] = source
