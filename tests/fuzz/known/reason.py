"""What a reason for a difference asks of it: the words of a list entry, and what they mean."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import pullback
from tests.conformance.library import TORCH, Library
from tests.fuzz.compare import Difference, first_difference, flat
from tests.fuzz.elsewhere import answers, of_lines, otherwise, refuses
from tests.fuzz.program import ASSIGNED, FLOATS, HESSIANS, NAMES, Program, observe

TRANSFORMS = ("double", "jvp", "vmap", *HESSIANS)
PUSHED = ("jvp", "fr", "rf", "ff")
"""The modes that push tangents."""
PULLED = ("backward", "double", "rr", "fr", "rf")
"""The modes that pull gradients."""
TWICE = ("double", *HESSIANS)
"""The modes of second derivatives."""
INFINITE = re.compile(r"float\('|1e\+?30")


@dataclass(frozen=True)
class Case:
    """A difference and the program that shows it; `smallest` says that nothing can be left out of the program."""

    program: Program
    found: Difference
    smallest: bool = False

    @cached_property
    def whole(self) -> str:
        return "\n".join(self.program.lines)

    @cached_property
    def text(self) -> str:
        """The line that differs, or all of a transform."""
        return self.found.where if self.program.mode == "eager" else self.whole

    @cached_property
    def all(self) -> str:
        """The program and its leaves."""
        return str(self.program)

    def ending(self) -> Case:
        """The same program, in which a last line names what the one before has made."""
        made = [name for line in self.program.lines[-1:] for name in ASSIGNED.findall(line)]
        return replace(self, program=replace(self.program, lines=(*self.program.lines, *made)))

    @cached_property
    def special(self) -> bool:
        """Whether there are infinities, NaNs and other edges among the numbers."""
        return any(leaf.special for _, leaf in self.program.leaves) or bool(INFINITE.search(self.whole))

    def laid_out(self, *layouts: str) -> bool:
        return any(leaf.layout in layouts for _, leaf in self.program.leaves)

    @cached_property
    def numbers(self) -> tuple[complex, complex] | None:
        """The two numbers that differ; None for truths."""
        numbers = re.match(r"at .*: expected (?!True|False)(\S+), got (\S+) ", self.found.text)
        return None if numbers is None else (complex(numbers[1]), complex(numbers[2]))


Condition = Callable[[Case], Any]


@dataclass(frozen=True)
class Known:
    """One reason. All that is given must hold; the patterns are looked for, `said` in what the comparison says."""

    why: str
    aspects: str
    line: str = ""
    """In the line that differs, or anywhere in a program under a transform."""
    whole: str = ""
    """In the lines of the program."""
    said: str = ""
    modes: tuple[str, ...] = ()
    given: tuple[Condition, ...] = ()

    def holds(self, case: Case) -> bool:
        return bool(
            case.found.aspect in self.aspects.split()
            and (not self.modes or case.program.mode in self.modes)
            and re.search(self.said, case.found.text)
            and re.search(self.line, case.text)
            and re.search(self.whole, case.whole)
            and all(condition(case) for condition in self.given)
        )


# ---- conditions


def right(case: Case) -> bool:
    """By another way torch comes to the same, or refuses as well."""
    return case.found.right is True


def smallest(case: Case) -> bool:
    return case.smallest


def special(case: Case) -> bool:
    return case.special


def half(case: Case) -> bool:
    return bool(re.search("float16|half", case.all))


def complex_numbers(case: Case) -> bool:
    return "complex" in case.all


def unsigned(case: Case) -> bool:
    return any(leaf.dtype == "uint8" for _, leaf in case.program.leaves) or "uint8" in case.whole


def empty(case: Case) -> bool:
    return any(0 in leaf.shape for _, leaf in case.program.leaves)


def empties(case: Case) -> bool:
    """A tensor on the way has no elements, or the result of torch."""
    return any(0 in tensor.shape for _, given in replayed(case.ending()) for tensor in given.values())


def infinite(case: Case) -> bool:
    """A number on the way is not finite."""
    numbers = (tensor for _, given in replayed(case.ending()) for tensor in given.values())
    return any(bool((~tensor.detach().isfinite()).any()) for tensor in numbers)


def expanded(case: Case) -> bool:
    return case.laid_out("expanded")


def stepped(case: Case) -> bool:
    return case.laid_out("stepped", "expanded")


def not_contiguous(case: Case) -> bool:
    return case.laid_out("transposed", "stepped", "expanded", "offset") or turned(case.whole)


def stretched_and_turned(case: Case) -> bool:
    stretched = re.search(r"\b(expand|expand_as|broadcast_to|broadcast_tensors)\(|expanded", case.all)
    return bool(stretched) and (turned(case.all) or any(by_columns(t) for _, ts in replayed(case) for t in ts.values()))


def ones_in_other_order(case: Case) -> bool:
    """A tensor has dimensions of size one whose steps say another order than that of its rows; arrays do not ask."""
    given = [tensor for _, tensors in replayed(case) for tensor in tensors.values()]
    return any(by_columns(tensor, least=1) and not by_columns(tensor) for tensor in given)


def least_integer(case: Case) -> bool:
    """There is the least integer of a dtype, which has no absolute value."""
    given = [tensor for _, tensors in replayed(case) for tensor in tensors.values()]
    whole = [t for t in given if not (t.is_floating_point() or t.is_complex()) and str(t.dtype) != "torch.bool"]
    return any(bool((tensor == TORCH.module.iinfo(tensor.dtype).min).any()) for tensor in whole)


def by_columns(tensor: Any, least: int = 2) -> bool:
    """The elements of a tensor do not lie in the order of its rows."""
    steps = [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size >= least and step]
    return steps != sorted(steps, reverse=True)


def turned(text: str) -> bool:
    """By a view, or by LAPACK, which works by columns."""
    views = r"\b(permute|transpose|swap\w+|move\w+|t|adjoint)\(|\.m?[TH]\b|transposed"
    return bool(re.search(views + r"|cholesky|solve|lstsq|\binv\w*\(|\bqr\(|svd|eigh?\(|\blu\w*\(", text))


def unknown(case: Case) -> bool:
    """There is no other way to ask torch."""
    return case.found.right is None


def unchecked(case: Case) -> bool:
    """There is none, or what it gives is wrong, as some of torch's gradients are, or not a derivative."""
    if unknown(case) or "as_strided_scatter(" in case.whole or (half(case) and "matrix_exp(" in case.whole):
        return True
    if NOT_ALIKE.search(case.whole) or (unsigned(case) and "atan2" in case.whole):
        return True
    if "max_unpool" in case.whole:  # of two elements that go to one place one is seen, and both get its gradient
        return True
    return expanded(case) and bool(re.search(r"\bstd\w*\(", case.whole))  # at zero there is no derivative


NOT_ALIKE = re.compile(
    r"\b(rand\w*|normal_?|uniform_|bernoulli_?|\w*dropout\w*|poisson|\w+_normal_|geometric_|exponential_|cholesky_ex)\("
    r"|\b(eq|ne|lt|le|gt|ge|logical_\w+|is\w+|signbit|any|all)\(.*out="
)
"""By another way other numbers are drawn, left half done, or written over those whose history stays."""


def left_over(case: Case) -> bool:
    """A window is put onto a tensor of which torch has kept more memory than it shows, and nobody's view."""
    for line, tensors in replayed(case):
        for tensor in tensors.values() if "as_strided" in line else ():
            shown = tensor.numel() * tensor.element_size()
            if not tensor._is_view() and tensor.is_contiguous() and tensor.untyped_storage().nbytes() > shown:
                return True
    return False


def replayed(case: Case, recorded: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines of torch's run of the program, each with the tensors there are; it runs when the next is asked for.

    If it is to be `recorded`, leaves of floating point numbers have a history, as inside a transform.
    """
    library = TORCH
    names: dict[str, Any] = {"torch": library.module}
    for name, leaf in case.program.leaves:
        names[name] = leaf.build(library.module)
        if recorded and leaf.dtype in FLOATS:
            names[name] = names[name].detach().requires_grad_().clone()
    library.seed(case.program.leaves[0][1].seed if case.program.leaves else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in case.program.lines:
            named = {name: names[name] for name in NAMES.findall(line) if name in names}
            parts = {f"{name}[{i}]": part for name, value in named.items() for i, part in enumerate(several(value))}
            yield (
                line,
                {n: tensor for n, tensor in {**named, **parts}.items() if isinstance(tensor, library.module.Tensor)},
            )
            try:
                exec(line, names)
            except Exception:
                return


def several(value: Any) -> Any:
    """What a call returned, if that is more than one thing."""
    return value if isinstance(value, (list, tuple)) else ()


def equals(case: Case) -> bool:
    """A tensor that is put in order holds an element twice."""
    for line, tensors in replayed(case):
        for tensor in tensors.values() if re.search(RANKED, line) else ():
            array = TORCH.array(tensor.detach().clone()).reshape(-1)
            if np.unique(array).size < array.size or (array != array).any():
                return True
    return False


def grows_over_an_operand(case: Case) -> bool:
    """A result is written into a view of an operand that has to be made larger for it."""
    grown: tuple[Any, int] | None = None
    for line, tensors in replayed(case):
        if grown is not None and grown[0].numel() > grown[1]:
            return True
        target = re.search(r"out=(\w+)", line)
        held = tensors.pop(target[1], None) if target else None
        memory = [tensor.untyped_storage().data_ptr() for tensor in tensors.values()]
        shared = held is not None and held.untyped_storage().data_ptr() in memory
        grown = (held, held.numel()) if shared else None
    return grown is not None and grown[0].numel() > grown[1]


WRITTEN = re.compile(
    r"^(?:with torch\.no_grad\(\): )?(\w+)(?:\.data)?(?:\.\w+_\(|\[.*\] [-+*/]?= | [-+*/]= )|\bout=(\w+)"
)
"""A line that writes to a tensor there is."""


def writes(case: Case) -> Iterator[tuple[Any, list[Any]]]:
    """The tensors a program writes to, each before the write and with the others the line names."""
    for line, tensors in replayed(case):
        if (found := WRITTEN.search(line)) and (target := tensors.get(found[1] or found[2])) is not None:
            yield target, [tensor for tensor in tensors.values() if tensor is not target]


def places(tensor: Any) -> np.ndarray:
    """Where in memory the elements of a tensor lie."""
    at = np.full(tuple(tensor.shape), tensor.data_ptr(), np.int64)
    if not at.size:
        return at
    for dim, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        at += (np.arange(size) * step * tensor.element_size()).reshape([-1 if d == dim else 1 for d in range(at.ndim)])
    return at


def lies_on_itself(case: Case) -> bool:
    """A tensor is written of which two indices name one element."""
    return any(np.unique(at := places(target)).size < at.size for target, _ in writes(case))


def lies_on_operand(case: Case) -> bool:
    """A tensor is written of which another operand has elements at other indices."""
    for target, others in writes(case):
        at = places(target)
        for its in map(places, others):
            shared = np.isin(at, its)
            if shared.any() and (at.shape != its.shape or (shared & (at != its)).any()):
                return True
    return False


def signs_of_nan(case: Case) -> bool:
    """It is asked for the sign of a NaN."""
    asked = [tensors for line, tensors in replayed(case) if re.search(r"\b(signbit|copysign)_?\(", line)]
    return any(bool(tensor.isnan().any()) for tensors in asked for tensor in tensors.values())


def outgrown(case: Case) -> bool:
    """A result is written into a tensor that wants a gradient, and changes its shape."""
    held: tuple[Any, tuple[int, ...]] | None = None
    for line, tensors in replayed(case, recorded=case.program.mode not in ("backward", "double")):
        if held is not None and tuple(held[0].shape) != held[1]:
            return True
        target = re.search(r"out=(\w+)", line)
        tensor = tensors.get(target[1]) if target else None
        held = (tensor, tuple(tensor.shape)) if tensor is not None and tensor.requires_grad else None
    return held is not None and tuple(held[0].shape) != held[1]


def leaf_set(case: Case) -> bool:
    """A leaf that wants a gradient is made to look at other memory."""
    wanting = {name for name, leaf in case.program.leaves if leaf.wants_grad}
    return any(name in wanting for name in re.findall(r"\b(\w+)\.set_\(", case.whole))


def written_later(case: Case) -> bool:
    """A line writes to a tensor after another has made one."""
    return any(WRITTEN.search(line) for line in case.program.lines[1:])


def of_nothing(case: Case) -> bool:
    """All derivatives there are of tensors without elements, or zero."""
    seen = flat([observe(case.program, library)[-1][1] for library in (TORCH, Library(pullback))])
    return bool(seen) and not any(array.any() for array in seen)


def tangents_of_another_dtype(case: Case) -> bool:
    """Torch's tangents are not of the dtypes of what moves."""
    ((_, seen),) = observe(case.program, TORCH)
    return isinstance(seen, list) and any(out.dtype != moved.dtype for out, moved in zip(*seen, strict=True))


RANKED = r"kthvalue|topk|sort|\bmode\(|median"


def mirrored(case: Case) -> bool:
    """The two numbers are conjugates, but for rounding."""
    one, other = case.numbers or (0, 1)
    return one.imag != 0 and abs(one.conjugate() - other) <= 1e-4 * abs(one)


def of_one_size(case: Case) -> bool:
    """They are of one size, and point elsewhere."""
    one, other = case.numbers or (0, 1)
    return abs(abs(one) - abs(other)) <= 1e-4 * abs(one)


def laid_apart(case: Case) -> bool:
    """A result is written into a tensor that is not contiguous."""
    return any(not target.is_contiguous() for target, _ in writes(case))


def into_bytes(case: Case) -> bool:
    """A result is written into a tensor of bytes."""
    return any(str(target.dtype) == "torch.uint8" for target, _ in writes(case))


def left_alone(case: Case) -> bool:
    """After the last line, torch's out= is what it was before."""
    seen = [(target, target.detach().clone()) for target, _ in writes(case)]
    return bool(seen) and seen[-1][0].shape == seen[-1][1].shape and seen[-1][0].equal(seen[-1][1])


def near(case: Case) -> bool:
    """They are the same to a digit."""
    one, other = case.numbers or (0, 1)
    coarse = 0.25 if "bfloat16" in case.all else 0.1
    return abs(one - other) <= coarse * max(abs(one), 1.0)


def to_single_precision(case: Case) -> bool:
    """They are the same to single precision."""
    one, other = case.numbers or (0, 1)
    return abs(one - other) <= 1e-6 * max(abs(one), 1.0)


def at_nan(case: Case) -> bool:
    """A leaf holds a NaN where the numbers differ, or the call names one."""
    if "float('nan')" in case.text:
        return True
    place = re.match(r"at \(([\d, ]*)\)", case.found.text)
    if place is None:
        return False
    at = tuple(int(n) for n in re.findall(r"\d+", place[1]))
    leaves = [leaf for _, leaf in case.program.leaves if len(leaf.shape) == len(at) and leaf.dtype in FLOATS]
    inside = [leaf for leaf in leaves if all(i < n for i, n in zip(at, leaf.shape, strict=True))]
    return any(np.isnan(leaf.laid_out()[at]) for leaf in inside)


def in_the_end(case: Case) -> bool:
    """What differs is what a leaf has become, not what a line made."""
    return "in the end" in case.found.where


def written_through_views(case: Case) -> bool:
    """Results are written into another tensor than the leaf that differs, perhaps a view of it."""
    return any(target != case.found.where[0] for target in re.findall(r"out=(\w+)", case.whole))


def one_of_dtypes(case: Case) -> bool:
    """Of two errors one is about a dtype there is no kernel for."""
    classes = set(re.findall(r"(?:expected|got) (\w+(?:Error|Exception)): ", case.found.text))
    return "NotImplementedError" in classes and classes <= TWO_WAYS


TWO_WAYS = {"NotImplementedError", "RuntimeError", "IndexError", "ValueError"}
"""What is raised by a call that is wrong in two ways."""


def two_complaints(case: Case) -> bool:
    """Two errors say different things: of wrong calls, not of failures inside of the library."""
    said = re.match(r"expected (\w+): (.*), got (\w+): (.*)", case.found.text, re.DOTALL)
    if said is None or said[1] not in {"TypeError", *TWO_WAYS} or said[3] not in TWO_WAYS:
        return False
    one, other = (set(re.findall(r"[A-Za-z]{4,}", part.lower())) for part in (said[2], said[4]))
    return len(one & other) <= 0.3 * min(len(one), len(other))


def answered_in_order(case: Case) -> bool:
    """Torch comes to the peer's numbers where topk is asked to sort them."""
    asked = [re.sub(r"(\btopk\(.*\b)False\)", r"\1True)", line) for line in case.program.lines]
    program = replace(case.program, lines=tuple(asked))
    actual = of_lines(program, observe(case.program, Library(pullback)))
    return first_difference(program, of_lines(program, observe(program, TORCH)), actual) is None


def answered_by_views(case: Case) -> bool:
    """Torch comes to the peer's numbers where narrow is asked in place of narrow_copy."""
    viewing = replace(case.program, lines=tuple(line.replace("narrow_copy(", "narrow(") for line in case.program.lines))
    return first_difference(viewing, observe(viewing, TORCH), observe(case.program, Library(pullback))) is None


def of_fewer_dimensions(case: Case) -> bool:
    """A system of equations has a right-hand side of fewer dimensions than its matrices."""
    for line, tensors in replayed(case):
        named = [tensors[name] for name in NAMES.findall(line.partition("(")[2]) if name in tensors]
        if "lstsq(" in line and len(named) > 1 and named[1].ndim < named[0].ndim:
            return True
    return False


def answered_elsewhere(case: Case) -> bool:
    """Torch comes to the peer's numbers by other kernels: of single elements, or of memory that lies otherwise."""
    program = case.program
    if "in the end" in case.found.where:
        return False
    actual = of_lines(program, observe(program, Library(pullback)))
    return any(first_difference(program, of_lines(program, seen), actual) is None for seen in answers(program))


def refused_elsewhere(case: Case) -> bool:
    """What the peer refuses, torch refuses as well where the tensors lie otherwise in memory."""
    kind = re.match(r"got (\w+): ", case.found.text)
    others = otherwise(case.program)[1:]
    return kind is not None and any(refuses(observe(other, TORCH), kind[1]) for other in others)
