"""Who computes a pointwise function of some arrays: chosen by their size first, then by their layout.

    multiply = Chooser(np.multiply)
    multiply.bind(namespace, "MULTIPLY")      # the name will stand for a builtin as soon as there is one
    multiply.into(x, x, y)                    # x *= y, chosen by size in the same way

    large arrays .................. kernels, which share them among threads: `Kernels`
    small, of a known layout ...... a builtin that allocates its result: `allocating`
    small, of any other ........... NumPy

What is computed depends on the arrays alone, never on what was computed before; that decides only when a builtin is
made. See note: builtins
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._arrays.memory import laid_out
from pullback._runtime.building import building, made
from pullback._runtime.quiet import catch_up, quiet, waiting
from pullback._thresholds import FEW_OF_SMALL, LARGE, MANY, PLENTY, STRIDED
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import KNOWN, Trace
from pullback.kernels.jit.pointwise.fused import ROUNDED, VARIANTS, Kernels, Runner, rounds

OFTEN = int(os.environ.get("PULLBACK_OFTEN", 50))
"""Calls with one layout before a builtin is made for it."""
PATIENCE = 200
"""Calls that no builtin takes before no more are made."""
MOST = 12
"""Builtins of one function: a call walks past those that do not fit."""
ndarray = np.ndarray
Layout = tuple[str, str, bool]
Maker = Callable[[Callable[..., Any]], Callable[..., Any]]

NEVER, AT_ONCE, OFTEN_CALLED = range(3)
"""When the builtin of a layout is made: never, where the function is no matter of single elements; on the first call,
where a kernel rounds in its own way; after OFTEN calls, where it gives every bit that NumPy gives."""


def is_exact(ufunc: Any) -> bool:
    """True for a ufunc that builtins may stand for at any moment."""
    return isinstance(ufunc, np.ufunc) and ufunc.__name__ in KNOWN - ROUNDED


def letter_of(array: Any, shape: tuple[int, ...]) -> str:
    """What a builtin makes of an array beside a result of some shape: see `allocating`."""
    have, strides = array.shape, array.strides
    if have == shape and (array.flags.c_contiguous or not any(strides)):
        return "1" if array.flags.c_contiguous else "e"
    if have == shape and len(have) == 2 and array.flags.fnc:
        return "t"
    if not have:
        return "0"
    before = 0
    for size, wanted, stride in zip(have[::-1], shape[::-1], strides[::-1], strict=False):
        if size != wanted and size != 1:
            return "?"
        if size != 1 and stride:
            if stride < before:
                return "?"
            before = stride
    letter = "c" if have[-1] == 1 or not strides[-1] else "r" if strides[-1] == array.itemsize else "?"
    return letter.upper() if have == shape else letter


class Chooser:
    """A function of arrays, and the builtins it became, each of which hands on what it does not take."""

    __slots__ = ("bound", "builtins", "counts", "exact", "few", "function", "head", "kernels", "lays_out", "limit",
                 "looks", "misses", "most", "often", "policies", "ufunc")  # fmt: skip

    def __init__(
        self, function: Callable[..., Any], kernels: Kernels | None = None, few: Kernels | None = None
    ) -> None:
        """`few` are the kernels for fewer than FEW_OF_SMALL elements, where those are computed in another way."""
        self.function, self.kernels, self.few = function, kernels or Kernels(function), few
        self.ufunc, self.exact = isinstance(function, np.ufunc), is_exact(function)
        self.limit: float = MANY if self.ufunc else LARGE
        """From this many elements on arrays are large."""
        self.lays_out = self.ufunc
        """True if torch gives the results the memory order of the arrays."""
        self.head: Callable[..., Any] = self
        """What callers should call."""
        self.builtins: dict[Layout, Maker | None] = {}
        """What makes the builtin of a layout, None for one that cannot be compiled."""
        self.policies: dict[str, int] = {}
        """When builtins are made, for each combination of dtypes."""
        self.counts: dict[Layout, int] = {}
        self.often, self.most, self.misses, self.looks = OFTEN, MOST, 0, 0
        self.bound: list[tuple[dict[str, Any], str]] = []
        """Names that stand for the head."""

    def bind(self, namespace: dict[str, Any], name: str) -> None:
        """Let a name stand for the best there is, now and later."""
        with building:
            self.bound.append((namespace, name))
            namespace[name] = self.head

    # ---------------------------------------------------------------- choosing

    def __call__(self, *args: Any) -> Any:
        """The result for arrays that no builtin took."""
        if waiting:
            catch_up()
        for array in args:
            if type(array) is ndarray and array.size >= self.limit:
                return self.large(*args)
        layout = self.layout_of(args)
        if layout is None or layout in self.builtins:
            return self.missed(args)
        kinds, _, few = layout
        policy = self.policies.get(kinds)
        if policy is None:
            policy = self.policies[kinds] = self.policy(args)
        if policy == NEVER:
            return self.missed(args)
        if len(self.builtins) >= self.most:
            if policy == OFTEN_CALLED:
                return self.missed(args)
            return (self.few if self.few is not None and few else self.kernels)(*args)  # with the bits of the builtin
        if policy == OFTEN_CALLED:
            count = self.counts[layout] = self.counts.get(layout, 0) + 1
            if count < self.often:
                return self.computed(*args)
        self.make(layout, args)
        return self.missed(args) if self.builtins.get(layout) is None else self.head(*args)

    def large(self, *args: Any) -> Any:
        """The result for large arrays."""
        made = self.kernels(*args)
        return laid_out(made, args) if self.lays_out and made.ndim > 1 else made

    def missed(self, args: tuple[Any, ...]) -> Any:
        """The result without a builtin; after many such calls layouts are no longer looked at."""
        self.misses += 1
        if self.misses == PATIENCE:
            self.policies.setdefault("f" * len(args), self.policy(tuple([np.empty(0, "f") for _ in args])))
            if AT_ONCE not in self.policies.values():  # else a layout that has no builtin yet must get one
                self.looks = PATIENCE
                self.rebuild(self.given_up)
        return self.fallback(*args)

    def given_up(self, *args: Any) -> Any:
        """The result once layouts are no longer looked at, but for a while those of gapless arrays, the likeliest."""
        if self.looks and type(args[0]) is ndarray and args[0].flags.forc:
            self.looks -= 1
            return self(*args)
        return self.fallback(*args)

    def fallback(self, *args: Any) -> Any:
        """The result for arrays that have no builtin, by their size alone."""
        for array in args:
            if (
                type(array) is ndarray
                and (size := array.size) >= STRIDED
                and size >= self.limit_of(array, STRIDED, MANY)
            ):
                return self.large(*args)
        return self.computed(*args)

    def limit_of(self, array: Any, several: int, one: int) -> float:
        """From how many elements on an array is large, where NumPy needs several calls for it, or one."""
        if not self.ufunc:
            return several
        if not self.exact:
            return self.limit  # on which the bits depend
        return LARGE if is_half(array.dtype) else one

    def into(self, out: np.ndarray[Any, Any], *args: Any) -> bool:
        """Write the result over an array of its shape and dtype; False if nothing was done."""
        if out.size >= self.limit_of(out, LARGE, PLENTY) and self.kernels.into(out, *args):
            return True
        if self.ufunc:
            quiet().run(self.function, *args, out)
        return self.ufunc

    def computed(self, *args: Any) -> Any:
        """What the function itself gives, in the memory order torch gives it."""
        if self.ufunc and len(args) == 2:
            first, second = args
            if type(first) is ndarray and first.ndim == 2 and first.flags.fnc and type(second) is ndarray:
                if second.shape == first.shape:  # the first array decides: what NumPy chose would be copied
                    return quiet().run(self.function, first, second, order="F")
        made = quiet().run(self.function, *args)
        return laid_out(made, args) if self.lays_out and made.ndim > 1 else made

    def policy(self, args: tuple[Any, ...]) -> int:
        """When builtins are made for such arrays. What a kernel rounds in its own way must be there from the start."""
        try:
            root, _ = self.kernels.expression(Trace(), args, {})
        except Exception:  # not pointwise: the function itself will say what is wrong, if anything is
            return NEVER
        return AT_ONCE if rounds(root) else OFTEN_CALLED

    def layout_of(self, args: tuple[Any, ...]) -> Layout | None:
        """The letters of the dtypes, those of the arrays, and whether there are but few elements."""
        if not args or not all([type(a) is ndarray for a in args]):
            return None
        kinds = "".join([a.dtype.char for a in args])
        if kinds.strip("fdl?"):
            return None
        if not self.ufunc and not kinds.strip("l?"):
            return None  # what torch makes of integers alone is no matter of one formula
        shape = max([(a.ndim, a.size, a.shape) for a in args])[2]
        letters = "".join([letter_of(a, shape) for a in args])
        size = math.prod(shape)
        if "?" in letters or size >= self.limit or ("t" in letters and (not self.exact or letters.strip("t10"))):
            return None
        return kinds, letters, self.few is not None and size < FEW_OF_SMALL

    # ---------------------------------------------------------------- making builtins

    def make(self, layout: Layout, args: tuple[Any, ...]) -> None:
        """Compile for a layout and put the builtin before the others."""
        allocating = room("small.allocating")

        def put() -> None:
            if allocating is None:
                self.rebuild(self.fallback)
            elif layout not in self.builtins:  # another thread may have been quicker
                self.builtins[layout] = self.maker(allocating, layout, args)
                self.misses = 0
                self.rebuild(self)

        made(put)

    def maker(self, allocating: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a layout, given what is to take the rest; None if there is none."""
        _, letters, few = layout
        runner = (self.few if self.few is not None and few else self.kernels).traced(args, {})
        if type(runner) is not Runner or runner.finish is not None or runner.inputs != list(range(len(args))):
            return None
        if not allocating.takes(runner.program):
            return None
        bounds = (0, FEW_OF_SMALL) if few else (FEW_OF_SMALL if self.few else 0, self.limit)
        return lambda otherwise: allocating.pointwise(runner.program, letters, *bounds, otherwise)

    def rebuild(self, last: Callable[..., Any]) -> None:
        """Build the chain of builtins anew, the first in use at its head, `last` at its end, and tell the callers."""
        with building:
            head = last
            for maker in reversed(self.builtins.values()):
                if maker is not None:
                    head = maker(head)
            self.head = head
            for namespace, name in self.bound:
                namespace[name] = head


class Adding(Chooser):
    """The sum or the mean of all elements, in the order in which NumPy adds them."""

    __slots__ = ("other",)

    def __init__(self, function: Callable[..., Any], other: bool = False) -> None:
        """`function` adds what no builtin takes; the mean is the `other` of two."""
        super().__init__(function)
        self.other, self.limit = other, LARGE

    def policy(self, args: tuple[Any, ...]) -> int:
        """The bits are NumPy's."""
        return OFTEN_CALLED

    def large(self, *args: Any) -> Any:
        """The sum of many."""
        return quiet().run(self.function, *args)

    fallback = given_up = computed = large

    def maker(self, allocating: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a dtype."""
        dtype = args[0].dtype
        return (lambda otherwise: allocating.adding(dtype.name, self.other, otherwise)) if dtype.char in "fd" else None


class Scanning(Adding):
    """Running sums, or products, along the last dimension of an array, computed in double precision."""

    __slots__ = ()

    def maker(self, allocating: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a dtype."""
        dtype = args[0].dtype
        return (
            (lambda otherwise: allocating.scanning(dtype.name, self.other, otherwise)) if dtype.char in "fd" else None
        )


class Viewing(Adding):
    """A view of an array of any dtype that a shape says all about."""

    __slots__ = ("how",)

    def __init__(self, function: Callable[..., Any], how: str) -> None:
        """`function` makes the views that the builtin, viewing or stretching, does not."""
        super().__init__(function)
        self.how, self.limit = how, math.inf

    def layout_of(self, args: tuple[Any, ...]) -> Layout | None:
        """One builtin takes all."""
        return ("", "", False) if type(args[0]) is ndarray and type(args[1]) is tuple else None

    def maker(self, allocating: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin."""
        return getattr(room("small.viewing"), self.how)


class Placing(Adding):
    """What is read from an array, or written into it, where an index says."""

    __slots__ = ("kinds", "make_for")

    def __init__(self, function: Callable[..., Any], kinds: str, make_for: Callable[..., Any]) -> None:
        """`make_for(room, dtype, otherwise)` gives the builtin for arrays of a dtype, one of these kinds."""
        super().__init__(function)
        self.kinds, self.make_for = kinds, make_for

    def layout_of(self, args: tuple[Any, ...]) -> Layout | None:
        """A builtin takes all arrays of its dtype."""
        kind = args[0].dtype.char if type(args[0]) is ndarray else ""
        return (kind, "", False) if kind and kind in self.kinds else None

    def maker(self, allocating: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a dtype."""
        dtype = args[0].dtype.name
        return lambda otherwise: self.make_for(room("small.places"), dtype, otherwise)


class Variants:
    """A function of arrays and, after them, plain arguments: small arrays have a `Chooser` for each set of these."""

    __slots__ = ("arrays", "entries", "function", "kernels", "keywords", "lays_out", "policy")

    def __init__(self, function: Callable[..., Any], kernels: Kernels, arrays: int, keywords: list[str]) -> None:
        """`arrays` is how many there are; the last of the plain arguments have to be named."""
        self.function, self.kernels, self.arrays, self.keywords = function, kernels, arrays, keywords
        self.entries: dict[tuple[Any, ...], Chooser] = {}
        self.lays_out = False
        self.policy: int | None = None
        """When builtins are made; None until there are too many entries."""

    def __call__(self, *args: Any) -> Any:
        """The result; every argument comes by position."""
        arrays, plain = args[: self.arrays], args[self.arrays :]
        first = args[0]
        if first.dtype.char in "fd":  # to others 1, 1.0 and True, which are equal, are not the same
            if first.size >= LARGE:
                at = len(args) - len(self.keywords)
                return self.kernels(*args[:at], **dict(zip(self.keywords, args[at:], strict=True)))
            try:
                return self.entries[plain].head(*arrays)
            except KeyError:
                chooser = self.entry(plain, arrays)
            except TypeError:  # an argument without a hash
                chooser = None
            if chooser is not None:
                return chooser.head(*arrays)
        made = quiet().run(self.given(plain), *arrays)
        return laid_out(made, args) if self.lays_out else made

    def given(self, plain: tuple[Any, ...]) -> Callable[..., Any]:
        """The function of arrays that is left when the plain arguments are known."""
        function, at = self.function, len(plain) - len(self.keywords)
        named = dict(zip(self.keywords, plain[at:], strict=True))
        return lambda *arrays: function(*arrays, *plain[:at], **named)

    def entry(self, plain: tuple[Any, ...], arrays: tuple[Any, ...]) -> Chooser | None:
        """The function with plain arguments; zeros of either sign are equal, and nan is not equal to itself."""
        if any([v == 0 or v != v for v in plain]):
            return None
        function = self.given(plain)
        chooser = Chooser(function, Kernels(function, self.kernels.name))
        chooser.lays_out = self.lays_out
        if len(self.entries) < VARIANTS:
            return self.entries.setdefault(plain, chooser)
        if self.policy is None:
            self.policy = chooser.policy(tuple([np.empty(0, "f") for _ in arrays]))
        chooser.most = 0  # it is thrown away after this call
        return chooser if self.policy == AT_ONCE else None


def pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pointwise function of arrays, run as one kernel; what stands for an array is given to the function itself."""
    chooser = Chooser(function)
    return lambda *args: (chooser.head if type(args[0]) is ndarray else function)(*args)


@cache
def ufunc_chooser(ufunc: Any) -> Chooser | None:
    """Who computes a ufunc, one for all its callers; None if a kernel would not give every bit of it."""
    return Chooser(ufunc) if is_exact(ufunc) else None


ADD, SUBTRACT, MULTIPLY = [c for u in (np.add, np.subtract, np.multiply) if (c := ufunc_chooser(u)) is not None]
"""`ADD.head(a, b)` is quicker than np.add where the arrays are small and row-major."""
