"""Functions that make tensors, inside vmap: they are patched for the time of the outermost vmap.

They take no tensor, or only the number in it, so nothing else tells them that a batch is meant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._op.declare import functions, registry
from pullback._op.patch import BATCHING, Action, Patch
from pullback._runtime.interrupts import Block
from pullback._tensor import Tensor, wrap
from pullback.batching.random import REFUSED, innermost_vmap, one_level_down
from pullback.batching.tensor import Level, at_level, batched, level_of, levels
from pullback.ops.create.data import claimed, tensor
from pullback.ops.create.ranges import arange
from pullback.ops.nn.activation.dropout import dropped
from pullback.ops.pointwise.arithmetic import refuse_bools
from pullback.ops.random.fill import overwrite
from pullback.ops.random.generator import default_generator
from pullback.ops.shape.join import stack
from pullback.ops.shape.reshape import expand, unsqueeze
from pullback.ops.shape.slicing import select_int

NO_ROOM = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)

OF_NUMBERS = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


class drawing_allowed(Block):
    """Inside, functions that make random tensors do what the innermost vmap says."""

    def _before(self) -> Any:
        """What this block is known by."""
        return object()

    def _begin(self, before: Any) -> None:
        """From the outermost vmap on they ask."""
        asking.hold(before)

    def _end(self, before: Any) -> None:
        """After the last they do not."""
        asking.drop(before)


def changes() -> list[tuple[Any, Action]]:
    """The functions that make tensors, and what they do inside vmap."""
    declared = (*functions.values(), *registry.values())
    return [
        *[(one.call, WAYS[one.vmap]) for one in declared if one.vmap in WAYS],
        (overwrite, check_target),
        (dropped, drop),
    ]


asking = Patch(BATCHING, changes)


def asked() -> Level | None:
    """The innermost vmap; an error if any vmap allows no random numbers."""
    if any(level.size is not None and level.randomness == "error" for level in levels.get()):
        raise RuntimeError(REFUSED)
    return innermost_vmap()


def make(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Random tensors of a size, as the vmaps around want them."""
    if any(isinstance(arg, Tensor) for arg in (*args[:2], *kwargs.values())):
        return spread(original, args, kwargs)  # normal() around tensors
    level = asked()
    if level is None:
        return original(*args, **kwargs)
    if level.randomness == "different":
        args, kwargs = with_batch(original.__name__, level.size, args, kwargs)
    out = one_level_down(level, make, original, args, kwargs)
    return batched(out, 0, level.number) if level.randomness == "different" else own(out)


def with_batch(name: str, count: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Arguments of a larger size."""
    if kwargs.get("size") is not None:
        return args, {**kwargs, "size": (count, *kwargs["size"])}
    if functions[name].vmap == "size_last":
        return (*args[:-1], (count, *args[-1])), kwargs
    size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return ((count, *size),), kwargs


def repeat(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function drawn for one entry after the other."""
    level = asked()
    if level is None:
        return original(*args, **kwargs)
    count = level.size if level.randomness == "different" else 1
    rows = [one_level_down(level, repeat, original, args, kwargs) for _ in range(count or 0)]
    return batched(stack(rows), 0, level.number) if level.randomness == "different" else rows[0]


def spread(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Random tensors that follow a tensor, which gets a batch where different ones are wanted for each entry."""
    level = asked()
    if level is None:
        return original(*args, **kwargs)
    place, given = next(((i, a) for i, a in enumerate(args) if isinstance(a, Tensor)), (None, None))
    if place is None:
        return original(*args, **kwargs)
    if level.randomness == "same" and all(level_of(arg) < level.number for arg in args):
        return own(one_level_down(level, spread, original, args, kwargs))
    if not original.__name__.endswith("_like"):
        return original(*args[:place], in_batches(given, levels.get()), *args[place + 1 :], **kwargs)
    # These draw in the order of the memory they fill: the batch stays where it is, or one entry stands for all.
    value, dim = at_level(given, level.number)
    each = level.randomness == "different"
    if each and dim is None:
        value = expand(unsqueeze(value, 0), (level.size, *value._array.shape))
    elif dim is not None and not each:
        value = select_int(value, dim, 0)
    out = one_level_down(level, spread, original, (value, *args[1:]), kwargs)
    return batched(out, dim or 0, level.number) if each else own(out)


def own(out: Any) -> Any:
    """A tensor that is the same for all entries, as one of the transforms that run."""
    return claimed(out) if type(out) is Tensor else out


def in_batches(value: Any, around: tuple[Level, ...]) -> Any:
    """A tensor with a batch for every vmap that wants different random numbers for each entry."""
    if not around:
        return value
    *outer, level = around
    below, dim = at_level(value, level.number)
    below = in_batches(below, tuple(outer))
    if dim is None and level.size is not None and level.randomness == "different":
        below, dim = expand(unsqueeze(below, 0), (level.size, *below._array.shape)), 0
    return below if dim is None else batched(below, dim, level.number)


def check_target(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Writing random numbers into a tensor, which must have room for those of each entry."""
    level = asked()
    if level is None or at_level(args[1], level.number)[1] is not None:
        return original(*args, **kwargs)
    if level.randomness == "different":
        raise RuntimeError(NO_ROOM)
    return one_level_down(level, check_target, original, args, kwargs)


def drop(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dropout as the innermost vmap wants it: input * s + t, with random s and t for each entry or for all."""
    name, input, p, train, draw, alpha, inplace = args
    level = innermost_vmap()
    if level is None or not train or not 0 < p < 1 or not input._array.size:
        return original(*args)  # which draws nothing
    if level.randomness == "error":
        raise RuntimeError(REFUSED)
    shape = tuple(input.shape)
    each = level.randomness == "different"
    if each:
        assert level.size is not None
        shape = (level.size * shape[0], *shape[1:]) if shape else (level.size,)
    state = default_generator.get_state()
    shift = original(name, wrap(np.zeros(shape, input._array.dtype)), p, train, draw, alpha, False)
    default_generator.set_state(state)
    scale = original(name, wrap(np.ones(shape, input._array.dtype)), p, train, draw, alpha, False) - shift
    if each:
        whole = (level.size, *input.shape)
        scale, shift = (batched(t.view(whole), 0, level.number) for t in (scale, shift))
    out = input.mul_(scale) if inplace else input * scale
    return out if not alpha else out.add_(shift) if inplace else out + shift


def space(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """linspace and logspace between bounds that have a batch: by arithmetic, in the dtype to which they promote."""
    given = dict(zip(("start", "end", "steps", "base"), args, strict=False)) | kwargs
    if not any(level_of(given.get(key)) for key in ("start", "end")) or given.get("out") is not None:
        return original(*args, **kwargs)
    kind = given.pop("dtype", None)
    stand_ins = {key: wrap(np.zeros(a.shape)) if isinstance(a, Tensor) else a for key, a in given.items()}
    original(*[stand_ins.pop(key) for key, _ in zip(tuple(given), args, strict=False)], **stand_ins)  # the checks
    low, high, steps = bound(given["start"]), bound(given["end"]), given["steps"]
    refuse_bools(high, low, 1)
    out = low + arange(steps, dtype=kind) * (high - low) / (steps - 1) if steps > 1 else low.expand(steps)
    if not steps:
        out = out.to(dtypes.int64)
    if original.__name__ == "logspace":
        out = given.get("base", 10.0) ** out
    return out if kind is None else out.to(kind)


def bound(given: Any) -> Any:
    """A bound as a tensor like any other, with the dtype of its kind of number; it has no derivative of its own."""
    if not isinstance(given, Tensor):
        return tensor(given, dtype=OF_NUMBERS[type(given)])
    level = level_of(given)
    return batched(*at_level(given, level), level) if level else given


WAYS: dict[str, Action] = {
    "size_first": make,
    "size_last": make,
    "follows_tensor": spread,
    "one_by_one": repeat,
    "between_bounds": space,
}
"""What functions that make tensors do inside vmap, by what they declare."""
