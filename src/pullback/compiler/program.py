"""The program: a list of steps over numbered slots. Nothing here knows who recorded it or who runs it.

    s0, s1 = inputs            arrays of tensors that were there before: arguments, parameters, buffers
    s2 = mul(s0, k0)           a step calls a function of arrays; `k` are constants
    s3 = s2.T                  a view: the function made it of the memory of s2
    copyto(s1, s2)             a write: into the memory of s1, and thereby into all that looks at it
    accumulate(p3, s2)         an effect: a function of this library that changes tensors that were there before

Slots are assigned once, memory may be written several times: the order of steps is the order of reads and writes.
Two slots look at the same memory if they have the same `memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

OP, FORMULA, CALL, METHOD, EFFECT, BRANCH = "op", "formula", "call", "method", "effect", "branch"
"""What the function of a step is: the forward of an op; the derivative of an op by an input; another function of
arrays; a method of the first argument, by name; something that changes tensors; something that Python looked at: the
program is for calls in which it gives what it gave."""


class Slot:
    """One array of a program."""

    __slots__ = ("dtype", "index", "memory", "offset", "shape", "strides")

    def __init__(self, index: int, array: Any, memory: int, offset: int = 0) -> None:
        self.index = index
        self.shape: tuple[int, ...] = array.shape
        self.strides: tuple[int, ...] = array.strides
        self.dtype: Any = array.dtype
        self.memory = memory
        """The slot that first showed this memory: its own index for new memory."""
        self.offset = offset
        """Bytes from the first element of that slot to its own."""

    def __repr__(self) -> str:
        return f"s{self.index}"


NUMBER = np.empty((), object)
"""What slots look like that hold Python's numbers."""


class External:
    """An array that was there before: that of a tensor, taken anew at each run."""

    __slots__ = ("leaf", "name", "slot", "tensor")

    def __init__(self, slot: Slot, tensor: Any, name: str, leaf: Any = None) -> None:
        self.slot, self.tensor, self.name = slot, tensor, name
        self.leaf = leaf
        """The leaf whose `.grad` the tensor is: another one at each run."""


class Step:
    """One call. `args` and `kwargs` hold slots, constants, and lists and tuples of both; `outs` slots, or None."""

    __slots__ = (
        "args",
        "expected",
        "found",
        "function",
        "kind",
        "kwargs",
        "line",
        "native",
        "op",
        "outs",
        "part",
        "random",
        "several",
        "writes",
    )

    def __init__(
        self, kind: str, function: Callable[..., Any] | str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.kind, self.function, self.args, self.kwargs = kind, function, args, kwargs
        self.outs: list[Slot | None] = []
        self.several = False
        """Whether the function returns a sequence, whose items the outs are."""
        self.op: Any = None
        """The op whose forward or derivative it is."""
        self.part = ""
        """The input by which it is differentiated."""
        self.writes: tuple[Slot, ...] = ()
        """Whose memory it changes."""
        self.random = False
        """Whether it draws random numbers."""
        self.native = ""
        """Why native code does not do it."""
        self.expected: Any = None
        """What a branch gave."""
        self.line = ""
        """Where in the user's program it came from."""
        self.found: list[Slot] | None = None
        """What `reads` has found."""

    @property
    def name(self) -> str:
        """What the step is called where programs are shown."""
        if self.op is not None:
            return f"{self.op.name} by {self.part}" if self.part else str(self.op.name)
        return self.function if isinstance(self.function, str) else getattr(self.function, "__name__", "call")

    def reads(self) -> list[Slot]:
        """The slots among the arguments."""
        if self.found is None:
            self.found = [*slots_in(self.args), *slots_in(self.kwargs)]
        return self.found


def slots_in(value: Any) -> Iterator[Slot]:
    """The slots in an argument."""
    if type(value) is Slot:
        yield value
    elif type(value) in (list, tuple):
        for item in value:
            yield from slots_in(item)
    elif type(value) is dict:
        for item in value.values():
            yield from slots_in(item)


class Program:
    """Steps in the order in which they are run."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.externals: list[External] = []
        self.constants: dict[int, Any] = {}
        """Slots that are arrays made once, by index; those that are written are copied at each run."""
        self.numbers: list[tuple[Slot, str]] = []
        """Arguments that are numbers and change from call to call, or leaves, and what finds them."""
        self.steps: list[Step] = []

    def shown(self) -> str:
        """The program as text."""
        lines = []
        for external in self.externals:
            lines.append(f"{external.slot} = {external.name}  # {facts(external.slot)}")
        lines += [f"{slot} = {where}  # a number" for slot, where in self.numbers]
        for index, array in self.constants.items():
            lines.append(f"s{index} = constant  # {array.dtype.name}{list(array.shape)}")
        for step in self.steps:
            outs = ", ".join([str(out) for out in step.outs if out is not None])
            given = [shown(a) for a in step.args] + [f"{k}={shown(v)}" for k, v in step.kwargs.items()]
            note = ", ".join([facts(out) for out in step.outs if out is not None])
            written = f"; writes {', '.join(map(str, step.writes))}" if step.writes else ""
            note = f"is {step.expected!r}, at {step.line}" if step.kind == BRANCH else note
            lines.append(f"{outs + ' = ' if outs else ''}{step.name}({', '.join(given)})  # {note}{written}")
        return "\n".join(lines)


def facts(slot: Slot) -> str:
    """dtype and shape of a slot, and whose memory it is."""
    if slot.dtype is NUMBER.dtype:
        return "a number"
    return f"{slot.dtype.name}{list(slot.shape)}" + (f" on s{slot.memory}" if slot.memory != slot.index else "")


def shown(value: Any) -> str:
    """An argument as text."""
    if type(value) is Slot:
        return str(value)
    if type(value) in (list, tuple):
        return f"[{', '.join([shown(item) for item in value])}]"
    text = repr(value)
    return text if len(text) < 40 and "\n" not in text else f"<{type(value).__name__}>"
