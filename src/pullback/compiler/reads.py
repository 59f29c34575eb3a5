"""What a recorder does where Python looks at values: branches, and numbers that the program computes anew."""

from __future__ import annotations

from typing import Any
from weakref import ref

from pullback.compiler.arrays import TracedArray
from pullback.compiler.numbers import TracedNumber, as_operand
from pullback.compiler.program import BRANCH, CALL, NUMBER, Program, Slot

MOST_BRANCHES = 64
"""Values that Python looks at in one run: with more of them, hardly two runs are alike."""


def holds_number(values: list[Any], deep: int = 2) -> bool:
    """Whether a number is among values, or in what they hold."""
    for value in values:
        if type(value) is TracedNumber:
            return True
        inside = value if type(value) in (list, tuple) else getattr(value, "__dict__", {})
        if (
            deep
            and inside
            and holds_number(list(inside.values()) if isinstance(inside, dict) else list(inside), deep - 1)
        ):
            return True
    return False


class Reads:
    """The part of `Recorder` that follows values into Python."""

    program: Program
    values: list[Any]
    why: str | None
    whole: bool
    live: list[Any]
    probe: list[str] | None
    ended: bool
    fail: Any
    value_read: Any
    step: Any
    call: Any
    numbers_read: bool
    branches = 0
    exact_only = False
    """Whether the function may ask what class numbers have: it gets none that tell."""

    def branch(self, function: Any, args: tuple[Any, ...], value: Any) -> Any:
        """Python looked at something, and goes on as it may because of what it saw: the program is for that."""
        if self.probe is not None:
            self.probe.append(getattr(function, "__name__", "a branch"))
        elif self.whole and not all([getattr(a, "given", type(a) is not TracedArray) for a in args]):
            self.fail(f"a value was read by {getattr(function, '__name__', 'a branch').removesuffix('_of')}()")
        elif not self.ended and self.why is None:
            step = self.step(BRANCH, function, args, {})
            step.expected = value
            self.program.steps.append(step)
            self.branches += 1
            if self.branches > MOST_BRANCHES:
                self.fail(f"more than {MOST_BRANCHES} values are read")
        return value

    # ---------------------------------------------------------------- numbers
    def number(self, value: float, given: bool) -> TracedNumber:
        """A number of Python in a slot of its own."""
        index = len(self.program.slots)
        made = TracedNumber(value)
        made.recorder, made.slot, made.given = self, Slot(index, NUMBER, index), given
        self.program.slots.append(made.slot)
        self.values.append(value)
        self.live.append(ref(made))
        return made

    def number_made(self, function: Any, args: tuple[Any, ...], value: float) -> float:
        """What a function of arrays and numbers gave: the program computes it anew."""
        if self.probe is not None:
            self.probe.append("a number")
        if self.ended or self.why is not None or self.probe is not None:
            return value
        if self.exact_only:
            self.value_read(f"{getattr(function, '__name__', 'a function').removesuffix('_of')}()")
            return value
        step = self.step(CALL, function, args, {})
        made = self.number(value, not any([type(a) is TracedArray or getattr(a, "given", True) is False for a in args]))
        step.outs.append(made.slot)
        self.program.steps.append(step)
        return made

    def number_read(self, number: TracedNumber, how: str) -> None:
        """Somebody looked at a number in a way that cannot be followed."""
        if number.given:
            self.numbers_read = True
            self.branch(repr, (number,), float.__repr__(number))
        else:
            self.value_read(how)

    def read_unseen(self, how: str, frame: Any = None, ever: bool = False) -> None:
        """Code runs, or has run at any time, that may take the value of any number without asking it.

        With a frame, of this library, those that it knows: they are its variables, or attributes of them.
        """
        if frame is not None and not holds_number(list(frame.f_locals.values())):
            return
        for one in self.live:
            number = one()
            if number is not None:
                self.number_read(number, how)
            elif ever:
                self.fail(f"a value was read by {how}")

    def operand_of(self, number: TracedNumber, dtype: Any) -> Any:
        """A number as an operand of an op."""
        return self.call(as_operand, (number, dtype), {})
