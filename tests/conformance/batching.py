"""How each op runs under vmap, for docs/coverage.md: on the whole batch, or entry by entry."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

import pullback
from pullback.batching import strategies
from pullback.func import vjp, vmap
from tests.conformance.aspects import op_function
from tests.conformance.library import Conversion, Library, tensors_in
from tests.conformance.samples import ops, samples

PEER = Library(pullback)
SAMPLES = 6
BATCHED, SOMETIMES, LOOPS, REFUSED, NONE = "batched", "partly", "loops", "refused", "-"
MEANING = {
    BATCHED: "the whole batch at once",
    SOMETIMES: "the whole batch at once, but some calls (of numbers, of unusual shapes) entry by entry",
    LOOPS: "entry by entry, which a warning says once, with the ops that do so",
    REFUSED: "an error, as the size of the result or the program depends on values, or a value is read",
    NONE: "nothing to map over: no floating point tensor among the arguments",
}


class Ways:
    """What was seen of one op."""

    def __init__(self) -> None:
        self.ran = self.by_loop = 0
        self.refused = False
        self.looped: set[str] = set()

    def __str__(self) -> str:
        if not self.looped:
            return BATCHED if self.ran else REFUSED if self.refused else NONE
        way = LOOPS if self.by_loop == self.ran else f"{SOMETIMES} ({self.by_loop} of {self.ran} calls)"
        return f"{way}: {', '.join(sorted(self.looped))}"

    def watch(self, call: Any) -> bool:
        """Run a call; note whether it ran, and which ops ran entry by entry. False if it was refused."""
        strategies.said.clear()
        try:
            call()
        except Exception:  # what vmap refuses, and why, is compared elsewhere
            self.refused = True
            return False
        self.ran += 1
        self.by_loop += bool(strategies.said)
        self.looped |= strategies.said
        return True


def mapped_calls(name: str) -> Iterator[tuple[Any, list[Any]]]:
    """Functions of the tensors to map over, and batches of two for them: of the first tensor, then of all."""
    info = ops()[name]
    function = op_function(PEER, info)
    for sample in samples(info, torch.float64)[:SAMPLES]:
        conversion = Conversion(PEER, requires_grad=False)
        try:
            given = (conversion(sample.input), *conversion(sample.args), conversion(sample.kwargs))
        except Exception:  # a sample only torch can hold
            continue
        floating = [t for t in tensors_in(PEER, given) if t.dtype.is_floating_point]
        every = list({id(t): t for t in floating}.values())
        for moving in (every[:1], every) if len(every) > 1 else (every,):
            if moving:
                yield with_tensors(function, given, moving), [pullback.stack([t, t.clone()]) for t in moving]


def with_tensors(function: Any, given: tuple[Any, ...], moving: list[Any]) -> Any:
    """The call as a function of some of its tensors, which returns the tensors of its result."""

    def replaced(value: Any, new: dict[int, Any]) -> Any:
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)([replaced(v, new) for v in value])
        if isinstance(value, dict):
            return {k: replaced(v, new) for k, v in value.items()}
        return new.get(id(value), value)

    def run(*tensors: Any) -> tuple[Any, ...]:
        args = replaced(given, dict(zip(map(id, moving), tensors, strict=True)))
        return tuple(tensors_in(PEER, function(*args[:-1], **args[-1])))

    return run


def backward_of(run: Any) -> Any:
    """The function that runs forward and backward."""

    def both(*tensors: Any) -> Any:
        outs, pull = vjp(lambda *given: tuple([o for o in run(*given) if o.dtype.is_floating_point]), *tensors)
        return pull(tuple([pullback.ones_like(out) for out in outs]))

    return both


def way_of(name: str) -> tuple[str, str]:
    """How an op runs under vmap, and how its backward pass does."""
    forward, backward = Ways(), Ways()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, batches in mapped_calls(name):
            ran = forward.watch(lambda run=run, batches=batches: vmap(run, randomness="different")(*batches))
            if ran and ops()[name].supports_autograd:
                backward.watch(
                    lambda run=run, batches=batches: vmap(backward_of(run), randomness="different")(*batches)
                )
    backward.looped -= forward.looped
    return str(forward), f"backward {backward}" if backward.looped else ""


def ways(names: list[str], jobs: int = 1) -> dict[str, str]:
    """How each op runs under vmap, in words for the table."""
    if jobs == 1:
        found = [way_of(name) for name in names]
    else:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            found = list(pool.map(way_of, names, chunksize=8))
    return {name: "; ".join(part for part in parts if part) for name, parts in zip(names, found, strict=True)}


def section(found: dict[str, str]) -> list[str]:
    """How many ops run in which way."""
    lines = ["| under vmap | ops | |", "|---|--:|---|"]
    for way, meaning in MEANING.items():
        lines.append(f"| {way} | {sum(words.startswith(way) for words in found.values())} | {meaning} |")
    return lines


if __name__ == "__main__":
    for name, words in ways(sys.argv[1:] or list(ops())).items():
        print(name, words, flush=True)
