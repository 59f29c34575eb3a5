"""One pass over memory per parameter: an update rule is read once with symbols, and compiled.

A rule such as Adam's is written as a dozen operations on tensors. `read` runs it with symbols in their place, which
write down what is done to each element; `kernels/jit/pointwise/update.py` turns that into one loop. The numbers in
it (learning rate, corrections) are arguments of the loop, so the next step only reads them anew. A rule that does
more than arithmetic on elements is run as it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pullback as torch
from pullback import Tensor
from pullback.autograd.graph import increment_version
from pullback.kernels import compiled

if TYPE_CHECKING:
    from pullback.optim.rule import Group, Rule, State

DTYPES = {torch.float32: "float32", torch.float64: "float64"}
PARAMETER, GRAD = "the parameter", "its gradient"


class NotElementwise(Exception):
    """A rule does something that symbols do not know."""


class Notes:
    """What a rule does to each element, and the numbers it uses."""

    def __init__(self) -> None:
        self.count = 0
        self.program: list[tuple[str, tuple[int, ...]]] = []
        self.numbers: list[float] = []

    def operand(self, value: Any) -> int:
        """The number of a value; Python's numbers count down from -1."""
        if type(value) is Symbol:
            return value.value
        if not isinstance(value, (int, float)):
            raise NotElementwise
        self.numbers.append(float(value))
        return -len(self.numbers)

    def note(self, name: str, *operands: Any) -> Symbol:
        """Write down an operation on values that there are."""
        self.program.append((name, tuple([self.operand(o) for o in operands])))
        return self.symbol()

    def symbol(self) -> Symbol:
        """The next value."""
        self.count += 1
        return Symbol(self, self.count - 1)


class Symbol:
    """A tensor in the eyes of `read`: methods with a trailing underscore change which value it stands for."""

    __slots__ = ("notes", "value")

    def __init__(self, notes: Notes, value: int) -> None:
        self.notes, self.value = notes, value

    def become(self, other: Symbol) -> Symbol:
        self.value = other.value
        return self

    def scaled(self, other: Any, factor: Any) -> Any:
        return other if factor == 1 else self.notes.note("mul", other, factor)

    def add(self, other: Any, *, alpha: Any = 1) -> Symbol:
        return self.notes.note("add", self, self.scaled(other, alpha))

    def mul(self, other: Any) -> Symbol:
        return self.notes.note("mul", self, other)

    def div(self, other: Any) -> Symbol:
        return self.notes.note("div", self, other)

    def addcmul(self, first: Any, second: Any, *, value: Any = 1) -> Symbol:
        return self.notes.note("add", self, self.notes.note("mul", self.scaled(first, value), second))

    def addcdiv(self, first: Any, second: Any, *, value: Any = 1) -> Symbol:
        return self.notes.note("add", self, self.notes.note("div", self.scaled(first, value), second))

    def lerp(self, end: Any, weight: Any) -> Symbol:
        if not isinstance(weight, float) or not -0.5 < weight < 0.5:
            raise NotElementwise
        return self.notes.note("add", self, self.notes.note("mul", self.notes.note("sub", end, self), weight))

    def sqrt(self) -> Symbol:
        return self.notes.note("sqrt", self)

    def abs(self) -> Symbol:
        return self.notes.note("abs", self)

    def __neg__(self) -> Symbol:
        return self.notes.note("neg", self)

    def __rtruediv__(self, other: Any) -> Symbol:
        return self.notes.note("div", other, self)

    __add__ = __radd__ = add
    __mul__ = __rmul__ = mul
    __truediv__ = div

    def copy_(self, other: Symbol) -> Symbol:
        return self.become(other)

    def __getattr__(self, name: str) -> Any:
        """x.add_ is x.add whose result x becomes."""
        plain = getattr(type(self), name[:-1], None) if name.endswith("_") and not name.startswith("_") else None
        if plain is None:
            raise NotElementwise
        return lambda *args, **kwargs: self.become(plain(self, *args, **kwargs))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Symbol:
        if function is not torch.maximum or kwargs:
            raise NotElementwise
        return args[0].notes.note("maximum", *args)  # type: ignore[no-any-return]


class Reading(NamedTuple):
    """A rule as it applies now: the kernel, its numbers, and the counters after the step."""

    kernel: Any
    numbers: list[float]
    counters: dict[str, Any]
    grain: int


class Step:
    """One step of an optimizer: parameters whose counters agree share one reading of the rule."""

    def __init__(self, rule: Rule, group: Group) -> None:
        self.rule, self.group = rule, group
        self.readings: dict[Any, Reading | None] = {}

    def update(self, parameter: Tensor, grad: Tensor, state: State) -> bool:
        """Update a parameter in one pass; False if nothing was done."""
        dtype = DTYPES.get(parameter.dtype)
        if dtype is None or not parameter.ndim:
            return False
        array = parameter._array
        arrays, changed, counters = [array, grad._array], [parameter], {}
        for name, value in state.items():
            if not isinstance(value, Tensor):
                return False
            if value.ndim:
                changed.append(value)
                arrays.append(value._array)
            else:
                counters[name] = value
        key = (dtype, *state, *[value.item() for value in counters.values()])
        if key not in self.readings:
            self.readings[key] = self.read(dtype, state, counters)
        reading = self.readings[key]
        if reading is None or not reading.kernel(*arrays, array.size, *reading.numbers, array.size, reading.grain):
            return False
        for name, value in reading.counters.items():
            counters[name]._array[...] = value._array
        increment_version([*changed, *counters.values()])
        return True

    def read(self, dtype: str, state: State, counters: dict[str, Any]) -> Reading | None:
        """Run the rule with symbols for everything but counters; None if it is not for us."""
        notes = Notes()
        symbols = {name: notes.symbol() for name in (PARAMETER, GRAD, *[n for n in state if n not in counters])}
        arrays = notes.count
        seen: State = {name: counters[name].clone() if name in counters else symbols[name] for name in state}
        try:
            grad = -symbols[GRAD] if self.group.get("maximize") else symbols[GRAD]
            self.rule.update(symbols[PARAMETER], grad, seen, self.group)  # type: ignore[arg-type]
        except NotElementwise:
            return None
        if seen.keys() != state.keys() or any(seen[n] is not s for n, s in symbols.items() if n in seen):
            return None  # the first step, which makes state
        results = tuple([(i, s.value) for i, s in enumerate(symbols.values()) if s.value != i])
        room = compiled.room("pointwise.update")
        kernel = room.update(dtype, arrays, len(notes.numbers), tuple(notes.program), results)
        return Reading(kernel, notes.numbers, {n: seen[n] for n in counters}, room.GRAIN)
