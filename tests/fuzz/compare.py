"""What two runs of a program show, compared: exactly, but for rounding errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.conformance.library import TORCH, Library
from tests.fuzz.noise import FACTORING
from tests.fuzz.program import (
    ASSIGNED,
    FLOATS,
    HESSIANS,
    NAMES,
    OTHERWISE,
    Observation,
    Program,
    Raised,
    observe,
    observe_otherwise,
)

TOLERANCES = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-4, "complex64": 1e-4, "float16": 6e-3}
"""How far two numbers may lie apart, as a part of the number and, a tenth of it, of the largest number beside it."""
NOTHING = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-6, "complex64": 1e-6, "float16": 1e-3}
"""What may be left of two numbers that cancel."""
CARRIED = 3e-2
"""The same for bfloat16, which travels as float32."""
NARROW = {
    CARRIED: re.compile("bfloat16"),
    TOLERANCES["float16"]: re.compile(r"\bfloat16|\.half\("),
    TOLERANCES["float32"]: re.compile(r"float32|complex64|\.float\("),
}
"""What is said in a program that rounds to a narrow type, by the tolerance this calls for."""
LOOSER = {"eager": 1.0, "backward": 3.0, "jvp": 3.0, "vmap": 1.0}
SENSITIVE = 1 / 50
"""A difference does not count if torch's own result moves by so much of it when what the lines make moves by a rounding
error."""

LARGE = 1e6
"""Numbers of this size that a rounding error moves by half of themselves have no digit to compare: at a pole, the other
library may be infinitely far away."""

RUNS, MOST = 12, 0.75
"""So many times everything is moved, and of the elements that differ most have to move once."""

WRITTEN_OVER = "has been modified by an inplace operation"
"""What torch says of a derivative that needs, or might need, what was written over."""
OVERLAP = "more than one element of the written-to tensor refers"
"""What it says of a tangent it would have to write into an expanded tensor."""
IN_ORDER = "grad_input must be contiguous"
"""What it says of gradients of images that lie otherwise, in losses of classes."""


@dataclass(frozen=True)
class Difference:
    """The first thing that is not the same."""

    where: str
    aspect: str
    text: str
    right: bool | None = None
    """Where torch refuses, or computes something else: whether by another way it comes to the same numbers. Where only
    the peer refuses: whether torch does so too by another way."""


def compare(program: Program, peer: Library) -> Difference | None:
    """Run a program on torch and on the peer."""
    expected = observe(program, TORCH)
    actual = observe(program, peer)
    found = first_difference(program, expected, actual)
    if found is not None and found.aspect == "value" and program.mode != "eager":
        # Only now it is worth the time to see in which dtypes integers have been computed on the way.
        found = first_difference(program, expected, actual, observe(replace(program, mode="eager"), TORCH))
    if found is not None and found.aspect in ("raised", "accepted") and FACTORING.search("\n".join(program.lines)):
        moved = [observe(replace(program, noise=noise), TORCH) for noise in range(1, RUNS + 1)]
        refused = {isinstance(seen[-1][1], Raised) for seen in (expected, *moved)}
        if len(refused) == 2 or any(lost(one, three).any() for one, *three in zip(*map(flat, (expected, *moved)))):
            return None  # rounding errors decide whether torch refuses, or what it computes
    if found is not None and found.aspect == "raised" and program.mode in OTHERWISE:
        other = next(observe_otherwise(program))
        return replace(found, right=any(isinstance(seen, Raised) for _, seen in other))
    if found is None or found.aspect not in ("accepted", "value", "shape"):
        return found
    if program.mode != "eager" and (found.aspect == "accepted" or program.mode in OTHERWISE):
        for other in observe_otherwise(program):
            differs_there = first_difference(program, other, actual)
            # How far a NaN spreads is the way's own affair: zero times it is added, or not.
            if differs_there is None or (differs_there.aspect == "value" and "nan" not in differs_there.text):
                found = replace(found, right=differs_there is None)
            if found.right:
                break
    if found.aspect == "accepted" and not found.right and (OVERLAP in found.text or IN_ORDER in found.text):
        dense = replace(program, leaves=tuple((name, leaf.dense()) for name, leaf in program.leaves))
        seen = observe(dense, TORCH)
        there = first_difference(program, seen, actual)
        if there is not None and any("out=" in line or not ASSIGNED.match(line) for line in program.lines):
            # What is written there is seen in one place alone: the peer shows the same of leaves without such memory.
            there = first_difference(program, seen, observe(dense, peer))
        if there is None:
            found = replace(found, right=True)
        elif there.aspect == "value":  # what torch says of the same numbers, each in memory of its own
            program, expected, found = dense, seen, there
    if found.right:
        return found
    if found.aspect != "accepted" and rounded(program, expected, actual):
        return None
    if found.right is False and found.aspect != "shape" and program.mode in OTHERWISE:
        for mode in OTHERWISE[program.mode]:
            way = replace(program, mode=mode)
            if rounded(way, observe(way, TORCH), actual):
                return replace(found, right=True)  # the other way is as far from itself as from the peer
    return found


def rounded(program: Program, expected: list[Observation], actual: list[Observation]) -> bool:
    """Whether rounding errors decide what a program shows on torch, as much as the two differ."""
    moved = [observe(replace(program, noise=noise), TORCH) for noise in range(1, RUNS + 1)]
    return sensitive(expected, actual, moved, narrowest(program, expected))


def first_difference(
    program: Program, expected: list[Observation], actual: list[Observation], lines: list[Observation] | None = None
) -> Difference | None:
    """What two runs differ in; `lines` are those of a program without its transform, where they are known."""
    carried = narrowest(program, expected, lines)
    # What cancels is as small as the rounding of products of the leaves, not of the result.
    span = max([1.0, *(max(abs(leaf.low), abs(leaf.high)) for _, leaf in program.leaves)])
    looser = LOOSER.get(program.mode, 10.0)
    for (where, wanted), (_, got), coarse in zip(expected, actual, carried, strict=False):
        if program.mode != "eager" and isinstance(wanted, Raised) and isinstance(got, Raised):
            return None  # which of a program's errors a transform meets first is its own affair
        found = differs(wanted, got, looser, coarse or None, program.mode, span)
        if found is not None:
            return Difference(where, *found)
    if len(expected) != len(actual):
        return Difference(program.mode, "length", f"expected {len(expected)} observations, got {len(actual)}")
    return None


def narrowest(program: Program, expected: list[Observation], lines: list[Observation] | None = None) -> list[float]:
    """For each observation the tolerance of the narrowest type that may have gone into it; 0.0 for double precision.

    What a line makes is as coarse as the coarsest tensor it names, and as what it says. Lines that name a tensor join
    all their tensors, some of which may look at the memory of others: a write to one makes all of them as coarse.
    """
    coarse = {name: coarseness(leaf.dtype) for name, leaf in program.leaves}
    whole = {name for name, leaf in program.leaves if leaf.dtype not in FLOATS}
    joined = {name: {name} for name in coarse}
    levels = []
    if program.mode == "eager":
        lines = expected
    for nr, line in enumerate(program.lines):
        seen = dtypes_in(lines[nr][1]) if lines and nr < len(lines) else []
        named = [name for name in NAMES.findall(line) if name in coarse]
        level = max([coarseness(" ".join([line, *seen])), *(coarse[name] for name in named)])
        if any(call in line for call in ("out=", "_loss(", "zeta(")) and whole & set(named):
            level = max(level, TOLERANCES["float32"])  # which integers are computed in, whatever becomes of it
        levels.append(level)
        group = set().union(*(joined[name] for name in named))
        assigned = ASSIGNED.match(line)
        if assigned:
            group.add(assigned[1])
            coarse[assigned[1]] = level
        if not assigned or "out=" in line:
            coarse.update(dict.fromkeys(group, max([level, *(coarse[name] for name in group)])))
        joined.update(dict.fromkeys(group, group))
    if program.mode == "eager":
        return [*levels[: len(expected)], *(coarse[name] for name, _ in program.leaves)][: len(expected)]
    last = next((match[1] for line in reversed(program.lines) if (match := ASSIGNED.match(line))), None)
    group = joined.get(last, set(coarse))
    return [max([coarseness(" ".join(dtypes_in(expected))), *(coarse[name] for name in group if name in coarse)])]


def coarseness(said: str) -> float:
    """The tolerance of the narrowest type a text names."""
    return next((tolerance for tolerance, pattern in NARROW.items() if pattern.search(said)), 0.0)


def dtypes_in(seen: Any) -> list[str]:
    """The dtypes of all tensors of an observation."""
    if isinstance(seen, dict):
        return [str(seen["dtype"])] if "dtype" in seen else []
    return [name for part in seen for name in dtypes_in(part)] if isinstance(seen, (list, tuple)) else []


def differs(
    wanted: Any, got: Any, looser: float, carried: float | None, mode: str, span: float
) -> tuple[str, str] | None:
    """The aspect in which two observations differ, and how."""
    if isinstance(wanted, Raised) or isinstance(got, Raised):
        if isinstance(wanted, Raised) and isinstance(got, Raised) and wanted.kind == got.kind:
            return None
        which = "raised" if not isinstance(wanted, Raised) else "accepted" if not isinstance(got, Raised) else "error"
        return which, f"expected {wanted!r}, got {brief(got)}" if which != "raised" else f"got {got!r}"
    if isinstance(wanted, dict) and isinstance(got, dict):
        for aspect in wanted:
            found = differs(wanted[aspect], got.get(aspect), looser, carried, mode, span)
            if found is not None:
                return aspect, found[1]
        return None
    if isinstance(wanted, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(wanted) != len(got):
            return "value", f"expected {len(wanted)} parts, got {len(got)}"
        for one, other in zip(wanted, got, strict=True):
            found = differs(one, other, looser, carried, mode, span)
            if found is not None:
                return found
        return None
    if isinstance(wanted, np.ndarray) and isinstance(got, np.ndarray):
        if (wanted.dtype, got.dtype) == ("float64", "float32") and mode in HESSIANS:
            wanted = wanted.astype("float32")  # torch's tangents of float32 are float64 after some ops
        if wanted.dtype != got.dtype or wanted.shape != got.shape:
            return "shape", f"expected {wanted.dtype}{wanted.shape}, got {got.dtype}{got.shape}"
        wrong = unequal(wanted, got, looser, carried, span=span)
        if not wrong.any():
            return None
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return "value", f"at {at}: expected {wanted[at]}, got {got[at]} ({int(wrong.sum())} of {wrong.size})"
    if isinstance(wanted, (float, complex)) and isinstance(got, (float, complex)):
        return differs(np.array(wanted), np.array(got), looser, carried, mode, span)
    if isinstance(wanted, np.ndarray) or isinstance(got, np.ndarray):
        return "value", f"expected {brief(wanted)}, got {brief(got)}"
    return None if wanted == got else ("value", f"expected {wanted!r}, got {got!r}")


def unequal(
    wanted: np.ndarray,
    got: np.ndarray,
    looser: float,
    carried: float | None,
    largest: float | None = None,
    span: float = 1.0,
) -> np.ndarray:
    """Where two arrays differ by more than rounding; the two parts of complex numbers lie beside each other."""
    tolerance = TOLERANCES.get(str(wanted.dtype))
    if tolerance is None:
        return np.asarray(wanted != got)
    if wanted.dtype.kind == "c":
        largest = max(largest_of(wanted.real), largest_of(wanted.imag))
        parts = [
            unequal(w, g, looser, carried, largest, span) for w, g in ((wanted.real, got.real), (wanted.imag, got.imag))
        ]
        return parts[0] | parts[1]
    nothing = NOTHING[str(wanted.dtype)]
    if carried is not None and carried > tolerance:
        tolerance, nothing = carried, max(nothing, carried / 10)
    share = 0.2 if tolerance == CARRIED else 0.1  # sums of bfloat16 may be rounded at every step
    nothing, tolerance = nothing * looser * span * span, tolerance * looser
    with np.errstate(all="ignore"):
        wanted, got = wanted.astype("float64"), got.astype("float64")
        largest = largest_of(wanted) if largest is None else largest
        close = np.abs(wanted - got) <= tolerance * np.abs(wanted) + share * tolerance * largest + nothing
    return ~(close | (wanted == got) | (np.isnan(wanted) & np.isnan(got)))


def largest_of(array: np.ndarray) -> float:
    """The size of the largest finite number."""
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def sensitive(
    expected: list[Observation], actual: list[Observation], moved: list[list[Observation]], carried: list[float]
) -> bool:
    """Whether torch's own results, moved by rounding errors, move comparably to the difference found."""
    if any(len(other) != len(expected) for other in moved):
        return True
    for coarse, (_, wanted), (_, got), *others in zip(carried, expected, actual, *moved, strict=False):
        for one, two, *three in zip(flat(wanted), flat(got), *[flat(other) for _, other in others], strict=False):
            if any(one.shape != other.shape or one.dtype != other.dtype for other in three):
                return True  # how many elements there are is decided by their last digit
            if one.shape != two.shape:
                return False
            wrong = unequal(one, two, 1.0, coarse or None)
            if wrong.any():
                apart = np.max([distance(one[wrong], other[wrong]) for other in three], 0)
                near = apart >= SENSITIVE * distance(one[wrong], two[wrong])
                return bool(np.mean(near | lost(one, three)[wrong]) > MOST)
    return False


def lost(one: np.ndarray, moved: list[np.ndarray]) -> np.ndarray:
    """Where a large number has no digit that rounding errors leave."""
    if any(one.shape != other.shape for other in moved):
        return np.ones(one.shape, bool)
    size = np.abs(one.astype("complex128"))
    return (size > LARGE) & (np.max([distance(one, other) for other in moved], 0) > size / 2)


def distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How far numbers lie apart; two NaNs do not, and nothing finite is near an infinity."""
    with np.errstate(all="ignore"):
        apart = np.abs(one.astype("complex128") - other)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


def flat(seen: Any) -> list[np.ndarray]:
    """The arrays of an observation."""
    if isinstance(seen, np.ndarray):
        return [seen]
    if isinstance(seen, dict):
        return [part for value in seen.values() for part in flat(value)]
    if isinstance(seen, (list, tuple)):
        return [part for value in seen for part in flat(value)]
    return []


def brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else text[:197] + "..."
