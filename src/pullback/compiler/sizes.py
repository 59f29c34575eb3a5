"""Sizes that change from call to call: which they are, and which programs differ in nothing else.

A program is for the sizes it was recorded with: code of the user's may have looked at them. Another size is recorded
once more, and shares its native code with the others: loops are given their sizes (`native.tables.Open`), so nothing is
compiled. Such programs are one `Family`: they count as one program, and those that were not used for long are
dropped.
To record takes several times as long as to run, so sizes that are new to a family run as they are, and are recorded
when they come again.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from pullback._tensor import Tensor
from pullback.compiler.arguments import Arguments
from pullback.compiler.guards import same

MOST_SIZES = 64
"""Programs that differ in sizes alone; where there are more, the one that was not used for longest goes."""
MOST_NOTED = 1024
"""Sizes that are remembered to have come once."""
FEW = 4
"""Programs that are asked one after the other whether they are for a call; more are found by the sizes of arguments."""
ticks = count(1)


class Family:
    """Programs that differ in sizes alone."""

    __slots__ = ()


class Seen:
    """What is remembered of an argument after the call it was recorded with: the tensor itself may go."""

    __slots__ = ("_grad", "_requires_grad", "dtype", "shape", "strides")

    def __init__(self, tensor: Any) -> None:
        self.shape, self.dtype, self.strides = tensor.shape, tensor.dtype, tensor.stride()
        self._requires_grad, self._grad = tensor._requires_grad, None if tensor._grad is None else True

    def stride(self) -> tuple[int, ...]:
        """The strides."""
        return self.strides  # type: ignore[no-any-return]


def key_of(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sizes of tensors among positional arguments: programs for other ones are not for a call."""
    return tuple([a._array.shape for a in args if type(a) is Tensor])


def place(where: str, dim: int) -> str:
    """How a size is called."""
    return f"{where}.shape[{dim}]"


class Sizes:
    """The sizes of one compiled function that change."""

    def __init__(self, dynamic: bool | None, config: Any) -> None:
        self.dynamic, self.config = dynamic, config
        self.changing: set[str] = set()
        """Which ones, like `args[0].shape[1]`."""
        self.noted: dict[Any, None] = {}
        """The sizes of calls that ran as they were, the oldest first."""

    def setting(self, name: str, otherwise: bool) -> bool:
        """One of torch._dynamo.config."""
        return bool(getattr(self.config, name, otherwise))

    def note(self, arguments: Arguments, entries: list[Any]) -> bool:
        """Note which sizes of a call have changed, or are said to change; True if some are new."""
        if self.dynamic is False or not self.setting("dynamic_shapes", True):
            return False
        all_of_them = self.dynamic is True or not self.setting("assume_static_by_default", True)
        known = len(self.changing)
        for tensor, _, where in arguments.tensors:
            shape = arguments.shapes[where]
            found = set(marks(tensor, "_dynamo_dynamic_indices"))
            fixed = set(marks(tensor, "_dynamo_static_indices")) - found
            found |= marks(tensor, "_dynamo_weak_dynamic_indices") - fixed
            if all_of_them:
                found |= {d for d, n in enumerate(shape) if n > 1}
            elif self.setting("automatic_dynamic_shapes", True):
                for entry in entries:
                    before = entry.arguments.shapes.get(where, ())
                    if entry.why is None and len(before) == len(shape):
                        found |= {d for d, n in enumerate(shape) if n != before[d]}
            self.changing |= {place(where, d % max(len(shape), 1)) for d in found - fixed}
        return len(self.changing) > known

    def come_again(self, arguments: Arguments) -> bool:
        """Whether a call of these sizes has come before; the next one has."""
        shapes = tuple(arguments.shapes.items())
        if shapes in self.noted:
            del self.noted[shapes]
            return True
        self.noted[shapes] = None
        if len(self.noted) > MOST_NOTED:
            del self.noted[next(iter(self.noted))]
        return False

    def clear(self) -> None:
        """Forget everything."""
        self.changing.clear()
        self.noted.clear()

    def concern(self, arguments: Arguments) -> bool:
        """Whether some size of a call changes."""
        return any([place(where, d) in self.changing
                    for where, shape in arguments.shapes.items() for d in range(len(shape))])  # fmt: skip

    def kin(self, arguments: Arguments, entries: list[Any], modes: Any, path: tuple[Any, ...]) -> Any:
        """A program that differs from what a call wants in such sizes alone; None if there is none."""
        for entry in entries:
            if entry.why is None and entry.modes == modes and entry.path[: len(path)] == path:
                if entry.arguments.shapes == arguments.shapes:  # it is something else that differs
                    continue
                if self.alike(entry.arguments, arguments) and entry.guard():
                    return entry
        return None

    def alike(self, one: Arguments, other: Arguments) -> bool:
        """Whether the arguments of two calls differ in such sizes alone."""
        if one.tests != other.tests or one.shapes.keys() != other.shapes.keys():
            return False
        if not all([same(one.space[name], other.space[name], False) for name in one.space]):
            return False
        for (before, _, where), (now, _, _) in zip(one.tensors, other.tensors, strict=True):
            old, new = one.shapes[where], other.shapes[where]
            if len(old) != len(new) or before.dtype is not now.dtype:
                return False
            if any([n != m and place(where, d) not in self.changing for d, (n, m) in enumerate(zip(old, new))]):
                return False
        return True


def marks(tensor: Any, name: str) -> set[int]:
    """The dimensions of a tensor that `mark_dynamic` and its kind have named."""
    return getattr(tensor, name, None) or set()


def without_oldest(entries: list[Any], newest: Any) -> list[Any]:
    """The programs but for the one that was not used for longest, if there are too many of one family."""
    family = [entry for entry in entries if entry.family is newest.family]
    if len(family) <= MOST_SIZES:
        return entries
    oldest = min([entry for entry in family if entry is not newest], key=lambda entry: entry.used)
    return [entry for entry in entries if entry is not oldest]


def forget_arguments(entry: Any, leaves: dict[int, Any]) -> None:
    """Let the tensors go that a program was recorded with: each call brings its own."""
    given = {id(tensor) for tensor, *_ in entry.arguments.tensors} - set(leaves)
    seen = {id(t): Seen(t) for t, *_ in entry.arguments.tensors if id(t) in given}
    entry.arguments.tensors = [(seen.get(id(t), t), name, where) for t, name, where in entry.arguments.tensors]
    for external in entry.program.externals:
        external.tensor = seen.get(id(external.tensor), external.tensor)
