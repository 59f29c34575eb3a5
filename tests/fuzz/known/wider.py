"""Conditions that ask torch for the same program in double precision: whether what is not finite has to be so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import pullback
from tests.conformance.library import TORCH, Library
from tests.fuzz.compare import flat
from tests.fuzz.known.reason import Case, infinite, replayed
from tests.fuzz.program import Observation, Program, observe

WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}
LARGEST = {"float16": 65504.0, "bfloat16": 3e38, "float32": 3e38, "complex64": 3e38}
NAMED = re.compile(r"\b(bfloat16|float16|float32|complex64|(?:half|bfloat16|float|cfloat)(?=\(\)))\b")
SHORT = {"half": "double", "bfloat16": "double", "float": "double", "cfloat": "cdouble"}
CLOSE = 0.05
"""So near numbers of half precision come to those of double after a second derivative."""


def wider(program: Program) -> Program:
    """A program in double precision."""

    def renamed(found: re.Match[str]) -> str:
        called = found.string[found.end() : found.end() + 2] == "()"
        return SHORT[found[1]] if called else WIDER[found[1]]

    leaves = [(name, replace(leaf, dtype=WIDER.get(leaf.dtype, leaf.dtype))) for name, leaf in program.leaves]
    return replace(program, leaves=tuple(leaves), lines=tuple([NAMED.sub(renamed, line) for line in program.lines]))


def in_double(case: Case) -> list[Any]:
    """What torch shows of the program in double precision, where the numbers differ."""
    seen: list[Observation] = observe(wider(case.program), TORCH)
    ends = [name for name in (case.found.where, case.found.where.partition(" = ")[0]) if name]
    lines = [what for where, what in seen if any(where.startswith(name) for name in ends)]
    return flat([what for _, what in seen] if case.program.mode != "eager" else lines)


def narrowest_range(case: Case) -> float:
    """The largest number of the narrowest dtype the program names."""
    return min([size for name, size in LARGEST.items() if re.search(rf"\b{name}\b", case.all)], default=np.inf)


def out_of_range(numbers: Any, largest: float) -> Any:
    """Where numbers of double precision are none of a narrower dtype."""
    with np.errstate(all="ignore"):
        return ~np.isfinite(numbers) | (np.abs(numbers) > largest)


def nowhere_finite(case: Case) -> bool:
    """Neither of two complex numbers is finite, nor is torch's in double precision, or not one of the dtype: which of
    their parts is infinite or NaN is the way's own affair."""
    one, other = case.numbers or (0, 1)
    if "j" not in case.found.text or np.isfinite(one) or np.isfinite(other):
        return False
    place = re.match(r"at \(([\d, ]*)\)", case.found.text)
    at = tuple(int(n) for n in re.findall(r"\d+", place[1])) if place else ()
    held = [array for array in in_double(case) if array.ndim == len(at) and all(map(int.__lt__, at, array.shape))]
    return any(bool(out_of_range(array[at], narrowest_range(case))) for array in held)


def overflows(case: Case) -> bool:
    """A number on the way is not finite, or torch comes in double precision to what the peer makes of halves."""
    if infinite(case):
        return True
    if not re.search("float16|half", case.all):
        return False
    expected, actual = in_double(case), flat([what for _, what in observe(case.program, Library(pullback))])
    largest = narrowest_range(case)
    return len(expected) == len(actual) and all(map(alike, expected, actual, [largest] * len(actual)))


def alike(one: Any, other: Any, largest: float) -> bool:
    """Numbers are near those of double precision, where these can be told in the dtype."""
    if one.shape != other.shape:
        return False
    scale = max(1.0, float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one))))
    near = np.abs(one - other) <= CLOSE * np.maximum(np.abs(one), 0.1 * scale)
    return bool(np.all(near | out_of_range(one, largest)))


def order_decides(case: Case) -> bool:
    """Of a tensor in another order, or in double precision, torch's product is another number than of the tensor:
    infinite, NaN or zero; or it is finite, and has been infinite on the way where factors are multiplied one by one."""
    torch = TORCH.module
    for line, tensors in replayed(case):
        assigned = re.match(r"(\w+) = .*\bprod\(", line)
        for name, tensor in tensors.items() if assigned else ():
            names = {"torch": torch, **tensors}
            exec(line, names)
            out = names[assigned[1]]
            for other in other_orders(tensor.detach()):
                turned = {**names, name: other}
                exec(line, turned)
                if kinds_of(out) != kinds_of(turned[assigned[1]].to(out.dtype)):
                    return True
            wide = (tensor.float() if tensor.itemsize == 2 else tensor).detach()
            rows = [wide.reshape(-1)] if not out.ndim else [wide.movedim(dim, 0) for dim in range(wide.ndim)]
            if any(row.shape[1:] == out.shape and (row.cumprod(0).isinf() & out.isfinite()).any() for row in rows):
                return True
    return False


def other_orders(tensor: Any) -> Iterator[Any]:
    """A tensor in double precision, turned around, and in some orders drawn at random along every dimension."""
    torch = TORCH.module
    if tensor.is_floating_point() or tensor.is_complex():
        yield tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
    yield tensor.flip(tuple(range(tensor.ndim)))
    for seed in range(8):
        draw = torch.Generator().manual_seed(seed)
        places = [torch.randperm(size, generator=draw) for size in tensor.shape]
        yield tensor[torch.meshgrid(*places, indexing="ij")] if places else tensor


def kinds_of(tensor: Any) -> tuple[int, ...]:
    """How many elements are NaN, infinite and zero."""
    return int(tensor.isnan().sum()), int(tensor.isinf().sum()), int((tensor == 0).sum())
