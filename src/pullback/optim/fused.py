"""One pass over memory per parameter: an update rule is traced once, as pointwise code is, and compiled.

A rule such as Adam's is written as a dozen operations on tensors. `Form` runs it on stand-ins: what is done to each
element becomes expressions, which `kernels/jit/pointwise/update.py` turns into one loop, and what is done to numbers
(learning rate, counters, corrections) becomes a Python function, which gives the loop its numbers at every step. What
the rule looked at is part of the form: options that are no numbers, and decisions by those that are. A rule that does
more than arithmetic on elements is run as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback.autograd.graph import increment_version
from pullback.kernels import compiled
from pullback.kernels.jit.language.expression import DOUBLE, Number, Trace, Untraceable, in_single, python_source

if TYPE_CHECKING:
    from pullback.optim.rule import Group, Rule, State

DTYPES = {torch.float32: "float32", torch.float64: "float64"}
NUMBERS = (float, int, np.float64)
FORMS = 16
"""Forms kept for one rule and one kind of state: more come of decisions that are never made twice alike."""


class Rehearsed:
    """A tensor in the eyes of a rule that is traced: it holds a stand-in for an array."""

    __slots__ = ("array",)
    __array_ufunc__ = None  # number / tensor is ours to say

    def __init__(self, array: Any) -> None:
        self.array = array

    def add(self, other: Any, *, alpha: Any = 1) -> Rehearsed:
        return Rehearsed(np.add(self.array, times(other, alpha)))

    def sub(self, other: Any) -> Rehearsed:
        return Rehearsed(np.subtract(self.array, inside(other)))

    def mul(self, other: Any) -> Rehearsed:
        return Rehearsed(np.multiply(self.array, inside(other)))

    def div(self, other: Any) -> Rehearsed:
        return Rehearsed(np.divide(self.array, inside(other)))

    def addcmul(self, first: Any, second: Any, *, value: Any = 1) -> Rehearsed:
        return Rehearsed(np.add(self.array, np.multiply(times(first, value), inside(second))))

    def addcdiv(self, first: Any, second: Any, *, value: Any = 1) -> Rehearsed:
        return Rehearsed(np.add(self.array, np.divide(times(first, value), inside(second))))

    def lerp(self, end: Any, weight: Any) -> Rehearsed:
        if not -0.5 < weight < 0.5:
            raise Untraceable(f"`lerp` by a weight of {float(weight)} starts from the other end")
        return Rehearsed(np.add(self.array, np.multiply(np.subtract(inside(end), self.array), weight)))

    def sqrt(self) -> Rehearsed:
        return Rehearsed(np.sqrt(self.array))

    def abs(self) -> Rehearsed:
        return Rehearsed(np.absolute(self.array))

    def __neg__(self) -> Rehearsed:
        return Rehearsed(np.negative(self.array))

    def __rtruediv__(self, other: Any) -> Rehearsed:
        return Rehearsed(np.divide(other, self.array))

    __add__ = __radd__ = add
    __sub__ = sub
    __mul__ = __rmul__ = mul
    __truediv__ = div

    def become(self, other: Rehearsed) -> Rehearsed:
        """Stand for what another one stands for."""
        self.array = other.array
        return self

    copy_ = become

    def __getattr__(self, name: str) -> Any:
        """x.add_ is x.add whose result x becomes."""
        plain = getattr(type(self), name[:-1], None) if name.endswith("_") and not name.startswith("_") else None
        if plain is None:
            raise Untraceable(f"`{name}` is none of the arithmetic on elements that is traced")
        return lambda *args, **kwargs: self.become(plain(self, *args, **kwargs))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Rehearsed:
        if function is not torch.maximum or kwargs:
            raise Untraceable(f"`{function.__name__}` is none of the arithmetic on elements that is traced")
        return Rehearsed(np.maximum(*map(inside, args)))


def inside(value: Any) -> Any:
    """The stand-in that a tensor holds; numbers as they are."""
    return value.array if type(value) is Rehearsed else value


def times(value: Any, factor: Any) -> Any:
    """A multiple of what a tensor holds."""
    return inside(value) if type(factor) is not Number and factor == 1 else np.multiply(inside(value), factor)


class Counter:
    """A tensor of one number in the eyes of a rule: each result is rounded to its dtype."""

    __slots__ = ("number", "single")

    def __init__(self, number: Number, single: bool) -> None:
        self.number, self.single = number, single

    def rounded(self, number: Any) -> Any:
        """A number in the dtype of the counter."""
        if not self.single:
            return number
        return number.rounded() if type(number) is Number else in_single(number)

    def fill_(self, number: Any) -> Counter:
        self.number = self.rounded(number)
        return self

    def __iadd__(self, other: Any) -> Counter:
        return self.fill_(self.number + self.rounded(other))

    def __imul__(self, other: Any) -> Counter:
        return self.fill_(self.number * self.rounded(other))

    def item(self) -> Number:
        return self.number


class Options:
    """The options of a group in the eyes of a rule: it notes which are read, and numbers are stand-ins."""

    def __init__(self, group: Group, trace: Trace) -> None:
        self.group, self.trace = group, trace
        self.seen: dict[str, Any] = {}
        self.lines: list[str] = []
        """How a later step reads the same, and sees whether it is of another form."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.seen:
            self.seen[name] = self.read(name)
        return self.seen[name]

    get = __getitem__

    def read(self, name: str) -> Any:
        """An option that is read for the first time."""
        value = self.group.get(name)
        if value is None or isinstance(value, (bool, str)):
            self.lines.append(f"if group.get({name!r}) != {value!r}: return None")
            return value
        if type(value) in NUMBERS:
            made = self.trace.number(value)
            self.lines.append(f"n{made.node.value} = group.get({name!r})")
            self.lines.append(f"if type(n{made.node.value}) not in NUMBERS: return None")
            return made
        if type(value) not in (tuple, list) or not all([type(item) in NUMBERS for item in value]):
            raise Untraceable(f"the option {name!r} is {value!r}")
        several = [self.trace.number(item) for item in value]
        names = [f"n{item.node.value}" for item in several]
        self.lines.append(f"{name} = group.get({name!r})")
        self.lines.append(f"if type({name}) not in (tuple, list) or len({name}) != {len(names)}: return None")
        self.lines.append(f"[{', '.join(names)}] = {name}")
        self.lines += [f"if type({n}) not in NUMBERS: return None" for n in names]
        return tuple(several)


class Form(NamedTuple):
    """A rule for one kind of state, as it is under some conditions."""

    numbers: Callable[..., list[float] | None]
    """What the kernel is told, then the counters after the step; None if the conditions do not hold."""
    kernel: Any
    """None if the rule is not for us."""
    passed: int
    """How many of the numbers are the kernel's."""
    why_not: str
    """Why there is no kernel."""
    results: Any
    """What the kernel writes: the position of an array, and the expression of its elements."""


forms: dict[Any, list[Form]] = {}


def traced(rule: Rule, group: Group, dtype: str, state: State, counters: State) -> Form:
    """Run a rule on stand-ins, and note what it did."""
    trace = Trace()
    options = Options(group, trace)
    tallies = {
        name: Counter(trace.number(value.item()), value.dtype is torch.float32) for name, value in counters.items()
    }
    kind = np.dtype(dtype)
    parameter, grad = Rehearsed(trace.input(kind)), Rehearsed(trace.input(kind))
    arrays = {name: Rehearsed(trace.input(kind)) for name in state if name not in counters}
    stands = [parameter, grad, *arrays.values()]
    before = [stand.array.node for stand in stands]
    seen: State = {name: tallies[name] if name in counters else arrays[name] for name in state}
    given = dict(seen)
    kernel, wanted, why_not = None, [], ""
    results: dict[int, Any] = {}
    try:
        towards = -grad if options["maximize"] else grad
        rule.update(parameter, towards, seen, options)  # type: ignore[arg-type]
        if seen != given:
            raise Untraceable("the first step, which makes state")
        after = [trace.node_of(stand.array, kind) for stand in stands]
        results = {place: node for place, node in enumerate(after) if node is not before[place]}
        room = compiled.room("pointwise.update")
        kernel = room.update(dtype, len(stands), results)
        wanted = [node.args[0] if node.op == "cast" else node for node in room.parts_of(results.values())[1]]
    except (Untraceable, TypeError, AttributeError) as error:
        kernel, wanted, why_not = None, [], str(error)
    passed = len(wanted)
    if kernel is not None:
        wanted += [trace.node_of(tally.number, DOUBLE) for tally in tallies.values()]
    heading = f"def numbers({', '.join(['group', *[f'n{i}' for i in range(len(counters))]])}):"
    space: dict[str, Any] = {"NUMBERS": NUMBERS, "rounded": in_single}
    source = "\n    ".join([heading, *options.lines, *python_source(trace, wanted)])
    exec(compile(source, "<pullback numbers>", "exec"), space)
    return Form(space["numbers"], kernel, passed, why_not, results)


class Reading(NamedTuple):
    """A form in this step: the kernel, its numbers, and the counters after the step."""

    kernel: Any
    numbers: list[float]
    counters: list[float]
    form: Form


class Step:
    """One step of an optimizer: parameters whose counters agree share one reading of the rule."""

    def __init__(self, rule: Rule, group: Group, share: int) -> None:
        """`share` elements of a parameter are worth a thread."""
        self.rule, self.group, self.share = rule, group, share
        self.readings: dict[Any, Reading | None] = {}
        self.waiting: dict[int, tuple[Any, Reading, list[list[Any]]]] = {}
        """Updates that are done together at the end: arrays of another device."""

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
        if reading is None:
            return False
        if type(array) is not np.ndarray:
            updating = getattr(type(array), "updating", None)
            if updating is None or not updating.takes(arrays):
                return False
            self.waiting.setdefault(id(reading), (updating, reading, []))[2].append(arrays)
        elif not reading.kernel(*arrays, array.size, *reading.numbers, array.size, self.share):
            return False
        for counter, number in zip(counters.values(), reading.counters, strict=True):
            counter._array[...] = number
        increment_version([*changed, *counters.values()])
        return True

    def finish(self) -> None:
        """Do what waits."""
        for updating, reading, several in self.waiting.values():
            updating.run(reading.form.results, several, reading.numbers)

    def read(self, dtype: str, state: State, counters: State) -> Reading | None:
        """The rule as it applies now; None if it is not for us."""
        form = form_of(self.rule, self.group, dtype, state)
        if form is None:
            return None
        numbers = form.numbers(self.group, *[value.item() for value in counters.values()])
        if numbers is None:
            return None
        return Reading(form.kernel, numbers[: form.passed], numbers[form.passed :], form)


def form_of(rule: Rule, group: Group, dtype: str, state: State) -> Form | None:
    """The form of a rule for a state as it is now; None if the rule is not for us."""
    counters = {name: value for name, value in state.items() if not value.ndim}
    if any([value.dtype not in DTYPES for value in counters.values()]):
        return None
    kinds = [counters[name].dtype if name in counters else None for name in state]
    known = forms.setdefault((type(rule).update, dtype, *state, *kinds), [])
    given = [value.item() for value in counters.values()]
    for form in known:
        if form.numbers(group, *given) is not None:
            break
    else:
        form = traced(rule, group, dtype, state, counters)
        if len(known) >= FORMS:
            known.clear()
        known.append(form)
    return None if form.kernel is None else form


def explained(rule: Rule) -> str:
    """How a rule runs: what it became, each time that it was traced, or why it runs as it is written."""
    name, calls = type(rule).__name__, compiled.room("runtime.calls")
    if calls is None:
        return f"{name} runs as it is written: no kernels are compiled here"
    lines = []
    for (update, dtype, *rest), known in forms.items():
        state = ", ".join([part for part in rest if type(part) is str])
        given = f"for {dtype} with {state}" if state else f"for {dtype} without state"
        for form in known if update is type(rule).update else ():
            if form.kernel is None:
                lines.append(f"{name} runs as it is written {given}: {form.why_not}")
            else:
                lines.append(f"{name} is one pass over memory {given}:")
                lines += [f"    {line}" for line in calls.compiled[form.kernel.__name__].note.splitlines()]
    return "\n".join(lines) or f"{name} was not traced yet: it is when it first updates a parameter"
