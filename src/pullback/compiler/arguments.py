"""From a call to the arrays of a program: one generated function that checks the arguments and everything tensors have.

What a tensor is to a program is its `Facts`: shape, strides, dtype, whether it wants a gradient, whether it is a leaf,
a view, whether it has a gradient. Numbers and other plain arguments are part of the program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._tensor import INFERENCE, Parameter, Tensor
from pullback.autograd.view import follow
from pullback.compiler.effects import Leaf
from pullback.compiler.guards import SCALARS, Note, same
from pullback.compiler.program import EFFECT, Program
from pullback.compiler.texts import function_of

own_grad = Tensor._grad.__get__  # type: ignore[union-attr]


class Refused(Exception):
    """An argument of which nobody can tell whether it is the same."""


class Facts:
    """What a tensor was before the function ran."""

    __slots__ = ("array", "counter", "dtype", "edge", "extra", "grad", "kind", "requires_grad", "shape", "strides",
                 "tensor", "version", "view")  # fmt: skip

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.kind, self.array = tensor, type(tensor), tensor._array
        self.shape, self.strides, self.dtype = self.array.shape, self.array.strides, self.array.dtype
        self.requires_grad, self.edge, self.view = tensor._requires_grad, tensor._edge, tensor._view
        self.grad, self.extra, self.counter = tensor._grad, tensor._extra, tensor._counter
        self.version = 0 if self.counter is INFERENCE else self.counter[0]

    def changed(self, array: Any, grad: Any) -> str:
        """What the function did to the tensor beside writing to its memory, in words."""
        tensor = self.tensor
        if array is not self.array:
            return "was given other memory"
        if tensor._edge is not self.edge or tensor._view is not self.view:
            return "was given another history"
        if tensor._requires_grad is not self.requires_grad:
            return "has another requires_grad"
        if own_grad(tensor) is not grad:
            return "was given another .grad"
        if not harmless(tensor._extra):
            return "has hooks"
        return ""


def harmless(extra: Any) -> bool:
    """Whether the rare things a tensor has do not matter to a program."""
    return extra is None or (
        extra.hooks is None and extra.post_accumulate is None and not extra.retains_grad and extra.tangent is None
        and type(extra.grad_dtype) is str
    )  # fmt: skip


def takes(tensor: Any) -> bool:
    """Whether a tensor may take part in a program."""
    return (
        type(tensor) in (Tensor, Parameter)
        and type(tensor._array) is np.ndarray
        and harmless(tensor._extra)
        and tensor._array.flags.writeable
    )


class Arguments:
    """The structure of the arguments of a call: where the tensors are, and what everything else is."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], varying: Any = ()) -> None:
        self.tests: list[str] = [f"len(args) == {len(args)}", f"tuple(kwargs) == {tuple(kwargs)!r}"]
        self.space: dict[str, Any] = {}
        self.tensors: list[tuple[Any, str, str]] = []
        """Each tensor, its name, and the expression that finds it."""
        self.floats: dict[str, float] = {}
        """Arguments that are floats, by the expression that finds them."""
        self.plain: dict[str, Any] = {}
        """All arguments that are part of the program, by the expression that finds them."""
        self.shapes: dict[str, tuple[int, ...]] = {}
        """The shapes of tensors, by the expression that finds them."""
        self.varying = varying
        """Those of them that are inputs of the program, and no part of it."""
        for i, value in enumerate(args):
            self.describe(value, f"args[{i}]", f"args[{i}]")
        for key, value in kwargs.items():
            self.describe(value, f"kwargs[{key!r}]", key)

    def describe(self, value: Any, where: str, name: str) -> None:
        """Tests that an argument is as it was, all but the elements of tensors."""
        if isinstance(value, Tensor):
            self.tensors.append((value, name, where))
            self.shapes[where] = tuple(value._array.shape)
            return
        kind = type(value)
        number = len(self.space)
        if kind is float:
            self.floats[where] = value
            if where in self.varying:
                self.tests.append(f"type({where}) is float")
                return
        if isinstance(value, SCALARS) and kind is not frozenset:
            self.plain[where] = value
            self.space[f"c{number}"] = value
            self.tests.append(f"(x := {where}) is c{number} or same(x, c{number}, False)")
            return
        self.space[f"c{number}"] = kind
        if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            self.tests.append(f"type({where}) is c{number} and len({where}) == {len(value)}")
            for i, item in enumerate(value):
                self.describe(item, f"{where}[{i}]", f"{name}[{i}]")
        elif kind is dict:
            if not all([type(key) in (str, int) for key in value]):
                raise Refused(f"{name} is a dict whose keys are neither strings nor integers")
            self.tests.append(f"type({where}) is dict and tuple({where}) == {tuple(value)!r}")
            for key, item in value.items():
                self.describe(item, f"{where}[{key!r}]", f"{name}[{key!r}]")
        else:
            self.space[f"c{number}"] = value
            self.tests.append(f"{where} is c{number}")


def written_by(program: Program) -> set[int]:
    """The memory that steps of a program write to."""
    return {slot.memory for step in program.steps for slot in step.writes}


def pairs_apart(program: Program, written: set[int]) -> list[tuple[int, int]]:
    """Pairs of externals, by place, of which one is written: whether they share memory decides what is read."""
    externals = program.externals
    place = {external.slot.memory: i for i, external in enumerate(externals)}
    written = written & place.keys()
    last = max([at for at, step in enumerate(program.steps) if step.kind == EFFECT], default=-1)
    if any([slot.memory in place for step in program.steps[last + 1 :] for slot in step.reads()]) and last >= 0:
        # After an effect, which writes to what it knows itself, something that was there before is read.
        written |= {external.slot.memory for external in externals if external.tensor._requires_grad}
    return [(place[one], other) for one in sorted(written) for other in range(len(externals))
            if externals[other].slot.memory != one]  # fmt: skip


def entry_function(arguments: Arguments, program: Program, facts: dict[int, Facts], asked: set[int]) -> tuple[Any, str]:
    """`enter(args, kwargs)`: the arrays of a program, in the order of its externals; None if it is not for the call.

    `asked` are the tensors of which the function could tell whether they have a gradient.
    """
    externals = program.externals
    space: dict[str, Any] = dict(arguments.space)
    space |= {"may_share": np.may_share_memory, "same": same, "follow": follow, "INFERENCE": INFERENCE,
              "harmless": harmless, "ndarray": np.ndarray, "Leaf": Leaf}  # fmt: skip
    lines = [f"if not ({' and '.join([f'({test})' for test in arguments.tests])}): return None"]
    places: dict[int, list[str]] = {}
    for tensor, _, where in arguments.tensors:
        places.setdefault(id(tensor), []).append(where)
    given: dict[int, str] = {}  # tensors among the arguments, by identity
    for key, wheres in places.items():
        name = given[key] = f"a{len(given)}"
        lines.append(f"{name} = {wheres[0]}")
        for other in wheres[1:]:
            lines.append(f"if {other} is not {name}: return None")
    names = list(given.values())
    for i, one in enumerate(names):  # tensors that were two must not be one now
        for other in names[i + 1 :]:
            lines.append(f"if {one} is {other}: return None")
    returned = []
    written = written_by(program)
    for number, external in enumerate(externals):
        tensor = external.tensor
        known = facts[id(tensor)]
        leaf = external.leaf
        if leaf is not None:
            owner = given.get(id(leaf))
            if owner is None:
                owner = f"t{number}"
                space[owner] = leaf
            lines.append(f"g{number} = {owner}._grad")
            lines.append(f"if g{number} is None: return None")
            name = f"g{number}"
        else:
            name = given.get(id(tensor), f"t{number}")
            space.setdefault(f"t{number}", tensor) if id(tensor) not in given else None
        space[f"d{number}"], space[f"s{number}"], space[f"k{number}"] = known.dtype, known.shape, known.kind
        lines.append(f"if type({name}) is not k{number}: return None")
        lines.append(f"if {name}._view is {'not ' if known.view is None else ''}None: return None")
        if known.view is not None:
            lines.append(f"follow({name})")
        lines.append(f"e{number} = {name}._array")
        space[f"p{number}"] = known.strides
        behaved = [f"e{number}.flags.behaved is not {known.array.flags.behaved}"]
        layout = " or ".join([
            f"type(e{number}) is not ndarray",
            f"e{number}.shape != s{number}",
            f"e{number}.strides != p{number}",
            f"e{number}.dtype is not d{number}",
            *(behaved if external.slot.memory in written else []),
        ])  # fmt: skip
        tests = [
            f"{name}._requires_grad is not {known.requires_grad!r}",
            f"{name}._edge is {'not ' if known.edge is None else ''}None",
            f"{name}._counter is {'not ' if known.counter is INFERENCE else ''}INFERENCE",
            f"({name}._extra is not None and not harmless({name}._extra))",
        ]
        if name.startswith("t"):  # always the same tensor: mostly with the same array
            space[f"m{number}"] = known.array
            tests.insert(0, f"(e{number} is not m{number} and ({layout}))")
        else:
            tests.insert(0, layout)
        if known.grad is None and id(tensor) in asked:  # one that is there is an external by itself
            tests.append(f"{name}._grad is not None")
        lines.append(f"if {' or '.join(tests)}: return None")
        returned.append(f"e{number}")
    # Tensors among the arguments that the program does not use must be as they were, too: Python looked at them.
    used = {id(external.tensor) for external in externals}
    if any([key not in used for key in given]):
        raise Refused("an argument was not recorded")
    slots = [external.slot for external in externals]
    for number, slot in enumerate(slots):  # tensors that showed one array
        if slots.index(slot) != number:
            lines.append(f"if e{number} is not e{slots.index(slot)}: return None")
    for one, other in pairs_apart(program, written):
        lines.append(f"if may_share(e{one}, e{other}): return None")
    returned += [where for _, where in program.numbers]
    lines.append(f"return ({''.join([one + ', ' for one in returned])})")
    source = "\n    ".join(["def enter(args, kwargs):", *lines])
    return function_of(source, space, "enter", "<pullback guard>"), source


def difference(arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any], notes: list[Note]) -> str:
    """Why a program is not for a call, in words."""
    for note in notes:
        if not note.holds():
            return note.name
    try:
        other = Arguments(args, kwargs)
    except Refused as error:
        return str(error)
    for (old, name, _), (new, _, _) in zip(arguments.tensors, other.tensors, strict=False):
        if old.shape != new.shape:
            return f"the shape of {name} is {tuple(new.shape)}"
        if old.dtype is not new.dtype:
            return f"the dtype of {name} is {new.dtype}"
        if old.stride() != new.stride():
            return f"the strides of {name} are {new.stride()}"
    for where, value in other.plain.items():
        if where not in arguments.varying and not same(value, arguments.plain.get(where), False):
            return f"{where} is {value!r}"
    if [where for *_, where in arguments.tensors] != [where for *_, where in other.tensors]:
        return "other arguments are tensors"
    return "an argument that is not a tensor, or a tensor that the function reads"
