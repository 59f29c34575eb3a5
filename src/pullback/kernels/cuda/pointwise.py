"""Pointwise functions of arrays of the device: traced as on the host, run as one kernel over any strides.

    made = pointwise(function, args, kwargs)        # None: not pointwise, or nothing a kernel knows

What a function computes for each element is found by running it on stand-ins (kernels/jit/language/expression.py), once
for every combination of dtypes and plain arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._arrays.memory import joined, order_of_result
from pullback._arrays.strided import row_major_strides
from pullback._runtime.quiet import quiet
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, loaded, window
from pullback.kernels.jit.language.device_trace import DeviceTrace
from pullback.kernels.jit.language.expression import (
    COMPLEX,
    Halfway,
    Untraceable,
    evaluate,
    is_known,
    order_of,
)

LARGE = 1 << 19
"""Elements that give all threads of a large device two and more."""
NARROW = (1 << 31) - 1
"""What 32 bits count to."""
VARIANTS = 256
"""Expressions kept for one function: beyond, its plain arguments differ from call to call."""
known: dict[Any, dict[Any, Any]] = {}
"""The expressions of functions, by function and by what they were called with."""
kernels: dict[Any, Any] = {}
"""Kernels by what they compute and how the arrays lie."""


@cache
def is_read(dtype: Any) -> bool:
    """True if kernels of the device read and write a dtype."""
    return is_known(dtype) or dtype in COMPLEX


class Expression:
    """What a function computes for each element, of which of its arguments."""

    __slots__ = ("constants", "dtype", "finish", "inputs", "recipes", "root", "structure")

    def __init__(self, root: Any) -> None:
        self.root, self.dtype = root, root.dtype
        self.recipes: dict[Any, Recipe | None] = {}
        self.finish: Any = None
        """What turns the elements into the result, where the function goes on to reduce them."""
        self.inputs = sorted({node.value for node in order_of(root) if node.op == "input"})
        if root.op != "input":
            program = room("pointwise.loops").Program(root)  # which raises Untraceable
            self.structure, self.constants = program.structure, program.constants.tolist()


def pointwise(called: Callable[..., Any], args: Any, kwargs: dict[str, Any], out: DeviceArray | None = None) -> Any:
    """The result of a pointwise function, or None if no kernel can give it. All arrays lie on one device."""
    found = expressed(called, args, kwargs)
    return None if found is None else run(*found, out)


def loss(called: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """The same for a function that may ask for shapes, and may reduce what it has computed."""
    found = expressed(called, args, kwargs, True)
    made = None if found is None else run(*found, None)
    return made if made is None or found[0].finish is None else found[0].finish(made)


def written_as(called: Callable[..., Any], args: Any) -> Any:
    """The result, and what it was made by: the expression, its arrays, and the recipe; None as above."""
    found = expressed(called, args, {})
    if found is None:
        return None
    out = run(*found, None)
    expression, arrays = found
    return None if out is None else (out, *found, recipe_of(expression, arrays, None))


def written_to(called: Callable[..., Any], args: Any, kwargs: dict[str, Any], out: DeviceArray) -> Any:
    """The same where the result is written to an array."""
    found = expressed(called, args, kwargs)
    if found is None or run(*found, out) is None:
        return None
    return (*found, recipe_of(*found, out))


def expressed(called: Callable[..., Any], args: Any, kwargs: dict[str, Any], shapes: bool = False) -> Any:
    """What a function computes for each element of which arrays; None if that is not all it does."""
    if room("cuda.pointwise") is None:
        return None
    arrays, key = [], [called]
    for name, value in (*enumerate(args), *kwargs.items()):
        kind = type(value)
        if kind is DeviceArray:
            if not is_read(value.dtype):
                return None
            arrays.append(value)
            key += (name, value.dtype, value.shape if shapes else None)
        elif kind is np.ndarray:
            if value.ndim:
                return None
            key += (name, value.dtype, value.tobytes())
        else:
            key += (name, kind, str(value) if kind is float or kind is complex else value)
    if not arrays or any([a.device is not arrays[0].device for a in arrays]):
        return None
    try:
        found = known.setdefault(called, {})
        expression = found[tuple(key)]
    except KeyError:
        if len(found) >= VARIANTS:
            found.clear()
        expression = found[tuple(key)] = traced(called, args, kwargs, shapes)
    except TypeError:  # an argument without a hash
        return None
    return None if expression is None else (expression, arrays)


def traced(called: Callable[..., Any], args: Any, kwargs: dict[str, Any], shapes: bool) -> Expression | None:
    """What a function computes for each element; None if that is not all it does."""
    arrays = [value for value in (*args, *kwargs.values()) if type(value) is DeviceArray]
    trace = DeviceTrace([a.shape for a in arrays] if shapes else None)

    def stand(value: Any) -> Any:
        return trace.input(value.dtype) if type(value) is DeviceArray else value

    try:
        made = quiet().run(called, *[stand(a) for a in args], **{name: stand(a) for name, a in kwargs.items()})
        return Expression(trace.node_of(made))
    except Halfway as halfway:
        return finished(trace, halfway)
    except Exception:  # whatever it is, the function itself will say it better
        return None


def finished(trace: DeviceTrace, halfway: Halfway) -> Expression | None:
    """What is computed for each element before the rest."""
    try:
        expression = Expression(trace.node_of(halfway.value))
    except Untraceable:
        return None
    expression.finish = halfway.finish
    return expression


class Recipe:
    """How arrays of some shapes and strides are computed with: what does not change from call to call."""

    __slots__ = ("grid", "kernel", "numbers", "shape", "strides", "types")


def recipe_of(expression: Expression, arrays: list[DeviceArray], out: DeviceArray | None) -> Recipe | None:
    """How arrays that lie so are computed with; None if no kernel can."""
    used = [arrays[place] for place in expression.inputs]
    key: list[Any] = []
    for a in used if out is None else (*used, out):
        key += (a.shape, a.strides, a.address % 16)
    key.append(None if out is None else out.dtype)
    if len(used) != len(arrays):
        key += [a.shape for a in arrays]
    known = tuple(key)
    recipe = expression.recipes.get(known, known)
    if recipe is known:
        if len(expression.recipes) >= VARIANTS:
            expression.recipes.clear()
        recipe = expression.recipes[known] = prepared(expression, arrays, used, out)
    return recipe  # type: ignore[return-value]


def run(expression: Expression, arrays: list[DeviceArray], out: DeviceArray | None) -> Any:
    """Compute an expression."""
    recipe = recipe_of(expression, arrays, out)
    if recipe is None:
        return None
    place = arrays[0].device
    if out is None:
        out = empty(recipe.shape, expression.dtype, recipe.strides, place)
    if not out.size:
        return out
    counted("pointwise")
    if required().emulated:
        inputs = {place: window(arrays[place]) for place in expression.inputs}
        quiet().run(np.copyto, window(out), quiet().run(evaluate, expression.root, inputs), "unsafe")
        return out
    index = place.index or 0
    addresses = [arrays[nr].address for nr in expression.inputs]
    launch(index, ready(index, recipe.kernel), recipe.grid, recipe.types, *addresses, out.address, *recipe.numbers)
    return out


def ready(index: int, kernel: Any) -> Any:
    """A kernel, loaded."""
    return loaded.get((index, kernel.name)) or function(index, kernel.name, lambda: kernel.text)


def prepared(expression: Expression, arrays: list[DeviceArray], used: list[DeviceArray], out: Any) -> Recipe | None:
    """The recipe of a call, or None if no kernel can do it."""
    try:
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        return None
    recipe = Recipe()
    if out is None:
        if expression.root.op == "input" or not used or np.broadcast_shapes(*[a.shape for a in used]) != shape:
            return None
        order = order_of_result(used, shape)
        recipe.shape, recipe.strides = shape, None
        if order is not None:
            steps = row_major_strides([shape[d] for d in order], expression.dtype.itemsize)
            recipe.strides = tuple([steps[order.index(d)] for d in range(len(order))])
        own = recipe.strides or row_major_strides(shape, expression.dtype.itemsize)
    elif out.dtype != expression.dtype or out.shape != shape:
        return None
    else:
        recipe.shape, own = shape, out.strides
    strides = []
    for a_shape, a_strides, size in (
        *[(a.shape, a.strides, a.itemsize) for a in used],
        (shape, own, expression.dtype.itemsize),
    ):
        if any([step % size for step in a_strides]):
            return None
        steps = [0 if n == 1 else step // size for n, step in zip(a_shape, a_strides, strict=True)]
        strides.append([0] * (len(shape) - len(a_shape)) + steps)
    if any([step == 0 and n > 1 for step, n in zip(strides[-1], shape, strict=True)]):
        return None
    if required().emulated or 0 in shape:
        return recipe
    sizes, by_dimension = joined(shape, strides)
    steps_of = [[step[k] for step in by_dimension] for k in range(len(strides))]
    flat = len(sizes) <= 1 and all([not s or s[-1] in (0, 1) for s in steps_of])
    flat = flat and (not steps_of[-1] or steps_of[-1][-1] == 1)
    dims = 0 if flat else len(sizes)
    letters = "".join(["s" if dims else "01"[s[-1]] if s else "0" for s in steps_of[:-1]])
    aligned = flat and all([a.address % 16 == 0 for a in (used if out is None else (*used, out))])
    narrow = bool(dims) and are_near(sizes, steps_of)
    recipe.kernel = kernel_of(expression, letters, dims, aligned, narrow, bool(dims) and math.prod(shape) >= LARGE)
    walked = [*sizes, *[step for s in steps_of for step in s]] if dims else []
    count = math.prod(shape)
    recipe.numbers = (count, *expression.constants, *walked)
    recipe.types = "Q" * (len(used) + 1) + "q" + "d" * len(expression.constants) + "q" * len(walked)
    recipe.grid = (-(-count // (recipe.kernel.each * BLOCK)), 1, 1)
    return recipe


def are_near(sizes: list[int], steps_of: list[list[int]]) -> bool:
    """Whether 32 bits count the elements, and how far they are from the first of each array."""
    reaches = [sum([(n - 1) * abs(step) for n, step in zip(sizes, steps, strict=True)]) for steps in steps_of]
    return max(math.prod(sizes), *reaches) <= NARROW


def kernel_of(expression: Expression, letters: str, dims: int, aligned: bool, narrow: bool, large: bool) -> Any:
    """The kernel of an expression for arrays that lie so."""
    key = (expression.structure, letters, dims, aligned, narrow, large)
    found = kernels.get(key)
    if found is None:
        found = kernels[key] = room("cuda.pointwise").Kernel(expression.root, letters, dims, aligned, narrow, large)
    return found


def made_for(used: list[DeviceArray], shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    """A new result, in the memory order torch gives it."""
    order = order_of_result(used, shape)
    if order is None:
        return empty(shape, dtype, None, used[0].device)  # type: ignore[no-any-return]
    new = empty([shape[d] for d in order], dtype, None, used[0].device)
    return new.transpose([order.index(d) for d in range(len(order))])  # type: ignore[no-any-return]


def same_in(array: Any, dtype: Any) -> Any:
    """The same elements in a dtype."""
    return np.positive(array) if array.dtype == dtype else array.astype(dtype)


def copy_into(target: DeviceArray, source: DeviceArray) -> bool:
    """target[...] = source by a kernel; False if none can."""
    if not is_read(source.dtype) or not is_read(target.dtype) or source.device is not target.device:
        return False
    # Where nothing is computed, truth values and halves are bits.
    if source.dtype == target.dtype and target.itemsize in BITS:
        target, source = target.view(BITS[target.itemsize]), source.view(BITS[source.itemsize])
    wide = source
    if source.shape != target.shape:
        try:
            wide = np.broadcast_to(source, target.shape)  # type: ignore[assignment, arg-type]
        except ValueError:
            return False
    return pointwise(same_in, (wide, target.dtype), {}, target) is not None


BITS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
"""The integers as which elements are copied, by their width."""
