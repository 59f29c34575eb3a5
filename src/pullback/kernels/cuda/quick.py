"""Pointwise functions as builtins: a call that came before is launched by native code, without Python in between.

    multiply = launcher(np.multiply)
    multiply(x, y)              # a new array; raises Refused if no kernel can compute it

The first call of a kind goes to `pointwise`, which writes down what it did: a recipe, under the key that native code
makes of the arguments (kernels/jit/cuda/calling.py). Calls of the same kind are then looked up and launched there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.layout import Size, memory_format
from pullback._dtype import dtype
from pullback._runtime.quiet import quiet
from pullback.kernels.cuda.array import DeviceArray, maker_on, reach
from pullback.kernels.cuda.device import placed, required
from pullback.kernels.cuda.front import Front
from pullback.kernels.cuda.launch import BLOCK, window
from pullback.kernels.cuda.memory import pool_of
from pullback.kernels.cuda.pointwise import Expression, Recipe, ready, written_as, written_to
from pullback.kernels.cuda.recording import ARGUMENT, RESULT, apart, as_words, recorded
from pullback.kernels.jit.language.expression import evaluate

KEPT = 512
"""Recipes of one function: beyond, its numbers differ from call to call."""


PLAIN = (int, bool, type(None), str, dtype, memory_format)
"""Classes of arguments that calls are looked up by as they are."""


class Refused(Exception):
    """No kernel can compute this."""


def launcher(
    called: Callable[..., Any],
    otherwise: Callable[..., Any] | None = None,
    around: Callable[[Any], Any] | None = None,
    check: Callable[..., Any] | None = None,
    arrange: Callable[[Any, Any], Any] | None = None,
) -> Callable[..., Any]:
    """The builtin of a pointwise function; what no kernel can compute is `otherwise`'s, or refused.

    Native code serves the first device; calls on others stay with Python. That part may be put `around` by another
    function, may check its arguments, and arrange what it makes in another order, which native code then leaves to it.
    """
    recipes: dict[Any, Any] = {}

    def compute(*args: Any) -> Any:
        if check is not None:
            check(*args)
        done = written_as(called, args)
        if done is None:
            if otherwise is None:
                raise Refused
            made = otherwise(*args)
            if front is not None and arrange is None:
                keep_views(front, recipes, args, made)  # a formula that gives what it was given
            return made
        out, expression, arrays, recipe = done
        if arrange is not None and (other := arrange(out, args)) is not out:
            return other
        if recipe is not None and front is not None:
            remember(front, recipes, args, out, expression, arrays, recipe)
        return out

    maker_on(placed(0))
    front = pool_of(0).front
    own = compute if around is None else around(compute)
    if not isinstance(front, Front):
        front = None
        return own  # type: ignore[no-any-return]
    return front.computing(own, recipes)


def writer(called: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin of a pointwise function that is written to its first argument; what no kernel can, is `otherwise`'s.

    It answers () where native code has done it.
    """
    recipes: dict[Any, Any] = {}

    def compute(*args: Any) -> Any:
        done = written_to(called, args, {}, args[0]) if args[0].size else None
        if done is None:
            return otherwise(*args)
        if front is not None:
            remember(front, recipes, args, args[0], *done, ARGUMENT)
        return ()

    maker_on(placed(0))
    front = pool_of(0).front
    if not isinstance(front, Front):
        front = None
        return compute
    return front.computing(compute, recipes)


def key_of(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What native code looks a call up by; None for what it does not look up."""
    key: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is DeviceArray:
            if value.address % 16 or value.device is not placed(0):
                return None
            key += (value.dtype, value.shape, value.strides)
        elif kind is float:
            key += (kind, struct.unpack("<q", struct.pack("<d", value))[0])
        elif kind is np.ndarray:
            if value.flags.writeable:  # else its number could change
                return None
            key += (kind, id(value))
        elif kind in PLAIN or (kind is tuple and all([type(n) is int or type(n) is bool for n in value])):
            key += (kind, value)
        elif kind is Size:
            key += (tuple, tuple(value))
        elif kind is list and not any([type(item) is list for item in value]):
            inner = key_of(tuple(value))
            if inner is None:
                return None
            key += (list, len(value), *inner)
        else:
            return None
    return tuple(key)


def leaves_of(args: Any) -> list[Any]:
    """Arguments, with the items of lists in place of these."""
    return [item for value in args for item in (value if type(value) is list else [value])]


def remember(
    front: Front,
    recipes: dict[Any, Any],
    args: tuple[Any, ...],
    out: DeviceArray,
    expression: Expression,
    arrays: list[DeviceArray],
    recipe: Recipe,
    target: int = RESULT,
) -> None:
    """Write down how a call was done: it made its result, or wrote it to the first of its arrays."""
    kernels, key = front.kernels, key_of(args)
    if key is None or not out.size or len(args) > kernels.MOST_ARGS:
        return
    places = expression.inputs
    if required().emulated:
        function, grid, numbers = emulated(expression, arrays, out), (1, 1, 1), b""
    else:
        function, grid = required().handle(ready(0, recipe.kernel)), recipe.grid
        numbers = struct.pack(recipe.types[len(places) + 1 :], *recipe.numbers)
    told = [(ARGUMENT + place, 0) for place in places] + [(target, 0)]
    told += [(0, word) for word in np.frombuffer(numbers, np.int64).tolist()]
    if len(told) <= kernels.MOST_PARAMS:
        outs = [out] if target == RESULT else []
        sizes = [out.itemsize * math.prod(out.shape) for out in outs]
        launch = [function, *grid, BLOCK, 0, len(told), *[word for pair in told for word in pair]]
        keep(recipes, key, args, outs, [1, 0, *sizes, *launch], (), [] if outs else spans(args))


def spans(args: tuple[Any, ...]) -> list[int]:
    """Where the memory of each array begins and ends, from its first element on, and whether it lies as the first."""
    found: list[int] = []
    arrays = [value for value in args if type(value) is DeviceArray]
    for a in arrays:
        low, nbytes = reach(a.shape, a.strides, a.itemsize)
        alike = (a.shape, a.strides, a.itemsize) == (arrays[0].shape, arrays[0].strides, arrays[0].itemsize)
        found += (low, low + nbytes, int(alike))
    return found


def keep(
    recipes: dict[Any, Any],
    key: Any,
    args: Any,
    outs: list[DeviceArray],
    words: list[int],
    held: Any = (),
    apart: list[int] | None = None,
    pattern: int | None = None,
) -> None:
    """Let native code find a recipe; one without results has the spans of its arrays, which must not meet."""
    if len(recipes) >= KEPT:
        recipes.clear()
    facts: list[Any] = [fact for out in outs for fact in (out.shape, out.strides, out.dtype)]
    if apart:
        facts.append(as_words(apart))
    numbers = [a for a in leaves_of(args) if type(a) is np.ndarray] + [
        *held
    ]  # whose identities or places are part of it
    recipes[key] = (as_words(words), len(outs) if pattern is None else pattern, numbers, *facts)


def keep_views(front: Front, recipes: dict[Any, Any], args: tuple[Any, ...], made: Any) -> None:
    """Write down which windows onto its arguments a function has made, if that is all it has made."""
    outs = list(made) if type(made) in (list, tuple) else [made]
    arrays = [value for value in leaves_of(args) if type(value) is DeviceArray]
    owners = [id(owner_of(a)) for a in arrays]
    words = [-1]
    for out in outs:
        if type(out) is not DeviceArray or owners.count(id(owner_of(out))) != 1:
            return
        nr = owners.index(id(owner_of(out)))
        words += (nr, front.kernels.SAME if out is arrays[nr] else out.address - arrays[nr].address)
    key = key_of(args)
    if key is not None and 0 < len(outs) <= front.kernels.MOST_ARGS >= many_of(args):
        keep(recipes, key, args, outs, words, pattern=pattern_of(made))


def many_of(args: Any) -> int:
    """How many arguments native code has to look at."""
    return len(args) + sum([len(value) for value in args if type(value) is list])


def owner_of(array: DeviceArray) -> DeviceArray:
    """The array whose memory an array looks at."""
    return array if array.base is None else array.base


def viewer(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The builtin of a function that makes views of its first argument: what came twice, native code does again."""
    recipes: dict[Any, Any] = {}
    once: set[Any] = set()

    def run(*args: Any) -> Any:
        made = compute(*args)
        key = key_of(args)
        if front is not None and key is not None:
            if key in once:
                keep_views(front, recipes, args, made)
            if len(once) >= KEPT:
                once.clear()
            once.add(key)
        return made

    maker_on(placed(0))
    front = pool_of(0).front
    if not isinstance(front, Front):
        front = None
        return compute
    return front.computing(run, recipes)


def recorder(compute: Callable[..., Any], around: Callable[[Any], Any]) -> Callable[..., Any]:
    """The builtin of any function of arrays: what it launches is written down, and done again by native code."""
    recipes: dict[Any, Any] = {}

    def run(*args: Any) -> Any:
        if front is None:
            return compute(*args)
        key = key_of(args)
        if key is None or many_of(args) > front.kernels.MOST_ARGS:
            return compute(*args)
        seen = tries.get(key, 0)
        if seen != WARM:  # the first calls load programs, fill tables and take other turns than those that follow
            if len(tries) >= KEPT:
                tries.clear()
            tries[key] = seen + 1
            return compute(*args)
        tries[key] = WARM + 1  # once is enough, whether it can be done or not
        given = apart(args)
        out, recording = recorded(compute, *given)
        if recording is not None:
            made = list(out) if type(out) in (list, tuple) else [out]
            outs = [one for one in made if one is not None]
            words = recording.words([a for a in leaves_of(given) if type(a) is DeviceArray], outs)
            if words is not None and len(made) <= MOST_PLACES:
                keep(recipes, key, args, outs, words, recording.held, pattern=pattern_of(out))
            elif recording.did_nothing() and type(out) is DeviceArray:
                keep_views(front, recipes, tuple(given), out)
        return out

    tries: dict[Any, int] = {}
    maker_on(placed(0))
    front = pool_of(0).front
    if not isinstance(front, Front):
        front = None
    own = around(run)
    return own if front is None else front.computing(own, recipes, tries)  # type: ignore[no-any-return]


def pattern_of(out: Any) -> int:
    """Which of several results are there: their number, how many there could be, and a bit for each that is; the number
    alone where all are, and native code may give a tuple of them or the only one."""
    if type(out) not in (list, tuple):
        return 1
    there = [one is not None for one in out]
    if all(there) and len(out) > 1:
        return len(out)
    return sum(there) | len(out) << 8 | sum([1 << 16 + place for place, one in enumerate(there) if one])


MOST_PLACES = 40
"""Results of which some may be missing: there is a bit for each."""
WARM = 3
"""Calls of a kind before one is recorded."""


def emulated(expression: Expression, arrays: list[DeviceArray], out: DeviceArray) -> int:
    """The handle of a kernel of the emulated device, which computes the same as the host would."""
    outlines = [(a.shape, a.dtype, a.strides) for a in (*[arrays[place] for place in expression.inputs], out)]

    def compute(words: Any, grid: Any) -> None:
        windows = []
        for address, (shape, kind, strides) in zip(words.tolist(), outlines, strict=False):
            like = DeviceArray(shape, kind, strides, None, address, out_place)
            windows.append(window(like))
        inputs = dict(zip(expression.inputs, windows, strict=False))
        quiet().run(np.copyto, windows[-1], quiet().run(evaluate, expression.root, inputs), "unsafe")

    out_place = out.device
    return required().kernel(compute)  # type: ignore[no-any-return]
