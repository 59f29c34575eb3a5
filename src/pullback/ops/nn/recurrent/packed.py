"""One recurrent layer over packed sequences: all first elements, then all second ones, ...; longest sequence first.

batch_sizes 3 2 1        a a a  b b  c        the sequences abc, ab and a
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._tensor import Tensor
from pullback.ops.nn.recurrent.cell import Weights
from pullback.ops.shape.join import cat
from pullback.ops.shape.slicing import narrow

State = tuple[Tensor, ...]


def packed_layer(
    data: Tensor, batch_sizes: list[int], weights: Weights, state: State, step: Callable[..., Any], reverse: bool
) -> tuple[Tensor, State]:
    """The outputs, packed as the data is, and the last state of every sequence."""
    walk = from_the_end if reverse else from_the_start
    return walk(weights.of_input(data), batch_sizes, weights, state, step)


def first(state: State, count: int) -> State:
    """The state of the first sequences."""
    return tuple([narrow(part, 0, 0, count) for part in state])


def from_the_start(
    inputs: Tensor, batch_sizes: list[int], weights: Weights, state: State, step: Callable[..., Any]
) -> tuple[Tensor, State]:
    """Sequences end on the way: their states are set aside, the shortest first."""
    outputs, ended, offset, running = [], [], 0, batch_sizes[0]
    for size in batch_sizes:
        one = narrow(inputs, 0, offset, size)
        offset += size
        if size < running:
            ended.append(tuple([narrow(part, 0, size, running - size) for part in state]))
            state = first(state, size)
        running = size
        state = step(one, state, weights)
        outputs.append(state[0])
    ended.append(state)
    return cat(outputs, 0), tuple([cat([part[k] for part in reversed(ended)], 0) for k in range(len(state))])


def from_the_end(
    inputs: Tensor, batch_sizes: list[int], weights: Weights, state: State, step: Callable[..., Any]
) -> tuple[Tensor, State]:
    """Sequences join on the way, each with its own first state."""
    outputs, offset, running = [], sum(batch_sizes), batch_sizes[-1]
    start, state = state, first(state, running)
    for size in reversed(batch_sizes):
        if size > running:
            joining = [narrow(part, 0, running, size - running) for part in start]
            state = tuple([cat([one, other], 0) for one, other in zip(state, joining, strict=True)])
        running = size
        offset -= size
        state = step(narrow(inputs, 0, offset, size), state, weights)
        outputs.append(state[0])
    return cat(outputs[::-1], 0), state
