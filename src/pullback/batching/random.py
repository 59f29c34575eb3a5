"""Random numbers inside vmap: an error, different ones for each entry of the batch, or the same for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._modes import claimed_by
from pullback._op.declare import Op
from pullback.batching.physical import Call, Results, in_front, invoke, padded
from pullback.batching.tensor import Level, levels, lifts
from pullback.ops.random.generator import default_generator
from pullback.ops.shape.join import stack

REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)


def is_random(op: Op) -> bool:
    """True for ops that draw random numbers."""
    return "generator" in op.kinds


def run_random(call: Call) -> Results:
    """A random op on batched operands; what it does to what they hold is the business of the vmap around."""
    level = innermost_vmap()
    if level is None:
        return drawn(call, "same")
    if level.randomness == "error":
        raise RuntimeError(REFUSED)
    results: Results = one_level_down(level, drawn, call, level.randomness)
    return results


def drawn(call: Call, randomness: str) -> Results:
    """Different random numbers for each entry, or the same for all."""
    if randomness == "different" and call.op.key == "multinomial":
        rows = call.whole(call.args[0], call.dims[0])
        shape = rows._array.shape
        out = invoke(call.op, [rows.reshape((-1, shape[-1])), *call.args[1:]])[0]
        return [(out.reshape((*shape[:-1], -1)), 0)]
    if randomness == "different":
        width = max(call.ndim_of(i, j) for i, j in call.tensors()) + 1
        return in_front(
            invoke(call.op, call.with_tensors(lambda value, dim: padded(call.whole(value, dim), True, width)))
        )
    if call.op.vmap != "drawn_again":
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with "
            "functorch"
        )
    state = default_generator.get_state()
    rows = []
    for i in range(call.size):
        default_generator.set_state(state)
        rows.append(invoke(call.op, call.entry(i)))
    return in_front([None if c[0] is None else stack(list(c), 0) for c in zip(*rows, strict=True)])


def one_level_down(level: Level, action: Callable[..., Any], *args: Any) -> Any:
    """What an action gives in the transforms around `level`."""
    before = levels.get()
    try:
        levels.set(levels.get()[: level.number - 1])
        return claimed_by(lifts[level.number - 1], action, *args)
    finally:
        levels.set(before)


def randomness_now() -> str:
    """What the innermost vmap says."""
    level = innermost_vmap()
    return "same" if level is None else level.randomness


def innermost_vmap() -> Level | None:
    """The innermost transform with a batch."""
    return next((level for level in reversed(levels.get()) if level.size is not None), None)
