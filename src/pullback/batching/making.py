"""Functions that make random tensors, inside vmap: their code is exchanged for the time of the outermost vmap.

They take no tensor, so nothing else tells them that a batch is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import FunctionType
from typing import Any

from pullback._op.declare import functions
from pullback.batching.random import REFUSED, innermost_vmap
from pullback.batching.tensor import batched, level_of
from pullback.ops.create import ones, zeros
from pullback.ops.generator import default_generator
from pullback.ops.join import stack
from pullback.ops.nn.dropout import dropped

MAKERS = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal")
PLACE = "the function to call"
lock = Lock()
active: list[int] = [0]
"""How many vmaps are running."""
changed: list[tuple[Any, Any]] = []
"""The functions whose code was exchanged, with their own."""
prepared: dict[Any, tuple[Any, Any]] = {}
"""For each function the code it had, and what it was exchanged for."""


@contextmanager
def drawing_allowed() -> Iterator[None]:
    """Inside, functions that make random tensors do what the innermost vmap says."""
    with lock:
        if active[0] == 0:
            for name in MAKERS:
                exchange(functions[name].call, make)
            exchange(dropped, drop)
        active[0] += 1
    try:
        yield
    finally:
        with lock:
            active[0] -= 1
            while changed and active[0] == 0:
                call, code = changed.pop()
                call.__code__ = code


def exchange(call: Any, action: Callable[..., Any]) -> None:
    """Give a function the code that asks the innermost vmap."""
    changed.append((call, call.__code__))
    before, code = prepared.get(call, (None, None))
    if before is call.__code__:
        call.__code__ = code
        return
    original = FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
    original.__kwdefaults__ = call.__kwdefaults__

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return action(original, args, kwargs)

    code = template.__code__
    constants = tuple([run if c == PLACE else c for c in code.co_consts])
    code = code.replace(co_consts=constants, co_freevars=call.__code__.co_freevars)
    prepared[call] = call.__code__, code
    call.__code__ = code


def template(*args: Any, **kwargs: Any) -> Any:
    """What the functions become; the constant is replaced by a function."""
    run: Any = "the function to call"
    return run(args, kwargs)


def make(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Random tensors as the innermost vmap wants them."""
    level = innermost_vmap()
    if level is None or level.randomness == "same" or any(level_of(a) for a in args):
        return original(*args, **kwargs)
    if level.randomness == "error":
        raise RuntimeError(REFUSED)
    assert level.size is not None
    return batched(stack([original(*args, **kwargs) for _ in range(level.size)]), 0, level.number)


def drop(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dropout as the innermost vmap wants it: input * s + t, with random s and t for each entry or for all."""
    name, input, p, train, draw, alpha, inplace = args
    level = innermost_vmap()
    if level is None or not train or p == 0:
        return original(*args)
    if level.randomness == "error":
        raise RuntimeError(REFUSED)
    shape = tuple(input.shape)
    each = level.randomness == "different"
    if each:
        assert level.size is not None
        shape = (level.size * shape[0], *shape[1:]) if shape else (level.size,)
    state = default_generator.get_state()
    shift = original(name, zeros(shape, dtype=input.dtype), p, train, draw, alpha, False)
    default_generator.set_state(state)
    scale = original(name, ones(shape, dtype=input.dtype), p, train, draw, alpha, False) - shift
    if each:
        whole = (level.size, *input.shape)
        scale, shift = (batched(t.view(whole), 0, level.number) for t in (scale, shift))
    out = input.mul_(scale) if inplace else input * scale
    return out if not alpha else out.add_(shift) if inplace else out + shift
