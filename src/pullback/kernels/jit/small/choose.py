"""Pointwise functions of small arrays: NumPy's at first, builtins that make their result (`making`) where that pays.

    multiply = Small(np.multiply)
    multiply.rebind(namespace, "MULTIPLY")      # the name will stand for the builtin as soon as there is one

Arithmetic, of which a kernel gives every bit that NumPy gives, waits for a few dozen calls: a short program need not
load the compiler. What a kernel rounds in its own way, such as exp, is compiled on its first call. What no builtin
takes comes back here: other dtypes, other layouts, and large arrays, which `Fused` shares among threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._building import building, made
from pullback._memory import laid_out
from pullback.kernels.compiled import room
from pullback.kernels.jit.language.expression import KNOWN, Trace, order_of
from pullback.kernels.jit.pointwise.fused import LARGE, MANY, STRIDED, VARIANTS, Fused, Runner

OFTEN = int(os.environ.get("PULLBACK_OFTEN", 50))
"""Calls with one layout before a builtin is made for it."""
PATIENCE = 200
"""Calls that no builtin takes before no more are made."""
MOST = 12
"""Builtins of one function: a call walks past those that do not fit."""
FEW = 64
"""Fewer elements than this may be computed in another way: see `Small`."""
ndarray = np.ndarray
Layout = tuple[str, str, bool]
Maker = Callable[[Callable[..., Any]], Callable[..., Any]]

ROUNDED = {"cos", "cosh", "erf", "exp", "expit", "expm1", "log", "log10", "log1p", "log2", "logaddexp", "power", "sin",
           "sinh", "tan", "tanh"}  # fmt: skip
"""What a kernel rounds in its own way; of everything else it gives what NumPy gives, to the bit."""


def is_exact(ufunc: Any) -> bool:
    """True for a ufunc that builtins may stand for at any moment."""
    return isinstance(ufunc, np.ufunc) and ufunc.__name__ in KNOWN - ROUNDED


def letter_of(array: Any, shape: tuple[int, ...]) -> str:
    """What a builtin makes of an array beside a result of some shape: see `making`."""
    have, strides = array.shape, array.strides
    if have == shape and (array.flags.c_contiguous or not any(strides)):
        return "1" if array.flags.c_contiguous else "e"
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


class Small:
    """A function of arrays, and the builtins it became, each of which hands on what it does not take."""

    __slots__ = (
        "counts",
        "few",
        "function",
        "fused",
        "head",
        "lays_out",
        "limit",
        "links",
        "misses",
        "places",
        "waits",
    )

    def __init__(self, function: Callable[..., Any], fused: Fused | None = None, few: Fused | None = None) -> None:
        """`fused` takes large arrays, `few` those of fewer than FEW elements where they are computed in another way."""
        self.function, self.fused, self.few = function, fused or Fused(function), few
        self.limit = MANY if isinstance(function, np.ufunc) else LARGE
        self.lays_out = isinstance(function, np.ufunc)
        """True if torch gives the results the memory order of the arrays."""
        self.waits = 0
        """How many calls with one layout come before its builtin; 0 until the first has been looked at."""
        self.head: Callable[..., Any] = self
        """What callers should call."""
        self.links: dict[Layout, Maker | None] = {}
        """What makes the builtin of a layout, None for one that cannot be compiled."""
        self.counts: dict[Layout, int] = {}
        self.places: list[tuple[dict[str, Any], str]] = []
        self.misses = 0

    def rebind(self, namespace: dict[str, Any], name: str) -> None:
        """Let a name stand for the best there is, now and later."""
        with building:
            self.places.append((namespace, name))
            namespace[name] = self.head

    def __call__(self, *args: Any) -> Any:
        """The result for arrays that no builtin took."""
        layout = self.layout_of(args)
        if layout is not None and layout not in self.links and len(self.links) < MOST:
            count = self.counts[layout] = self.counts.get(layout, 0) + 1
            if count < (self.waits or self.patience(args)):
                return self.computed(*args)
            self.link(layout, args)
            if self.links.get(layout) is not None:
                return self.head(*args)
        self.misses += 1
        if self.misses == PATIENCE:
            self.settle(self.rest)
        return self.rest(*args)

    def rest(self, *args: Any) -> Any:
        """The result without a builtin."""
        limit = MANY if self.limit == MANY else STRIDED
        for array in args:
            if type(array) is ndarray and array.size >= limit:
                made = self.fused(*args)
                break
        else:
            made = self.function(*args)
        return laid_out(made, args) if self.lays_out and made.ndim > 1 else made

    def computed(self, *args: Any) -> Any:
        """What the function itself gives, in the memory order torch gives it."""
        made = self.function(*args)
        return laid_out(made, args) if self.lays_out and made.ndim > 1 else made

    def patience(self, args: tuple[Any, ...]) -> int:
        """Short for what a kernel rounds in its own way: that must not depend on how often it was called."""
        try:
            root, _ = self.fused.expression(Trace(), args, {})
            self.waits = 1 if any([node.op in ROUNDED for node in order_of(root)]) else OFTEN
        except Exception:  # not pointwise: the function itself will say what is wrong, if anything is
            self.waits = OFTEN
            self.settle(self.rest if self.fused.shapes else self.computed if self.lays_out else self.function)
        return self.waits

    def layout_of(self, args: tuple[Any, ...]) -> Layout | None:
        """The letters of the dtypes, those of the arrays, and whether there are but few elements."""
        if not args or not all([type(a) is ndarray for a in args]):
            return None
        shape = max([(a.ndim, a.size, a.shape) for a in args])[2]
        letters = "".join([letter_of(a, shape) for a in args])
        kinds = "".join([a.dtype.char for a in args])
        if "?" in letters or kinds.strip("fdl?"):
            return None
        if not isinstance(self.function, np.ufunc) and not kinds.strip("l?"):
            return None  # what torch makes of integers alone is no matter of one formula
        size = math.prod(shape)
        if size >= self.limit:
            return None
        return kinds, letters, self.few is not None and size < FEW

    def link(self, layout: Layout, args: tuple[Any, ...]) -> None:
        """Compile for a layout and put the builtin before the others."""
        making = room("small.allocating")

        def put() -> None:
            if making is None:
                self.settle(self.function)
            elif layout not in self.links:  # another thread may have been quicker
                self.links[layout] = self.maker(making, layout, args)
                self.settle(self)

        made(put)

    def maker(self, making: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a layout, given what is to take the rest; None if there is none."""
        _, letters, few = layout
        runner = (self.few if self.few is not None and few else self.fused).traced(args, {})
        if type(runner) is not Runner or runner.finish is not None or runner.inputs != list(range(len(args))):
            return None
        if not making.takes(runner.program):
            return None
        bounds = (0, FEW) if few else (FEW if self.few else 0, self.limit)
        return lambda otherwise: making.making(runner.program, letters, *bounds, otherwise)

    def settle(self, last: Callable[..., Any]) -> None:
        """Build the chain of builtins anew, the first in use at its head, `last` at its end, and tell the callers."""
        with building:
            head = last
            for maker in reversed(self.links.values()):
                if maker is not None:
                    head = maker(head)
            self.head = head
            for namespace, name in self.places:
                namespace[name] = head


class Adding(Small):
    """The sum or the mean of all elements, in the order in which NumPy adds them."""

    __slots__ = ("other",)

    def __init__(self, function: Callable[..., Any], other: bool = False) -> None:
        """`function` adds what no builtin takes; the mean is the `other` of two."""
        super().__init__(function)
        self.other, self.waits, self.limit = other, OFTEN, LARGE

    def rest(self, *args: Any) -> Any:
        """The sum without a builtin."""
        return self.function(*args)

    def maker(self, making: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a dtype."""
        dtype = args[0].dtype
        return (lambda otherwise: making.adding(dtype.name, self.other, otherwise)) if dtype.char in "fd" else None


class Scanning(Adding):
    """Running sums, or products, along the last dimension of an array, computed in double precision."""

    __slots__ = ()

    def maker(self, making: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin of a dtype."""
        dtype = args[0].dtype
        return (lambda otherwise: making.scanning(dtype.name, self.other, otherwise)) if dtype.char in "fd" else None


class Viewing(Small):
    """A view of an array of any dtype that a shape says all about."""

    __slots__ = ("how",)

    def __init__(self, function: Callable[..., Any], how: str) -> None:
        """`function` makes the views that the builtin, viewing or stretching, does not."""
        super().__init__(function)
        self.how, self.waits = how, OFTEN

    def layout_of(self, args: tuple[Any, ...]) -> Layout | None:
        """One builtin takes all."""
        return ("", "", False) if type(args[0]) is ndarray and type(args[1]) is tuple else None

    def rest(self, *args: Any) -> Any:
        """The view without a builtin."""
        return self.function(*args)

    def maker(self, making: Any, layout: Layout, args: tuple[Any, ...]) -> Maker | None:
        """What makes the builtin."""
        return getattr(room("small.viewing"), self.how)


class Variants:
    """A function of arrays and, after them, plain arguments: a `Small` for each set of the latter."""

    __slots__ = ("arrays", "entries", "function", "keywords", "lays_out", "name")

    def __init__(self, function: Callable[..., Any], name: str, arrays: int, keywords: list[str]) -> None:
        """`arrays` is how many there are; the last of the plain arguments have to be named."""
        self.function, self.name, self.arrays, self.keywords = function, name, arrays, keywords
        self.entries: dict[tuple[Any, ...], Small] = {}
        self.lays_out = False

    def __call__(self, *args: Any) -> Any:
        """The result; every argument comes by position."""
        plain = args[self.arrays :]
        small = None
        if args[0].dtype.char in "fd":  # to others 1, 1.0 and True, which are equal, are not the same
            try:
                small = self.entries[plain]
            except KeyError:
                small = self.entry(plain)
            except TypeError:  # an argument without a hash
                small = None
        if small is not None:
            return small.head(*args[: self.arrays])
        made = self.given(plain)(*args[: self.arrays])
        return laid_out(made, args) if self.lays_out else made

    def given(self, plain: tuple[Any, ...]) -> Callable[..., Any]:
        """The function of arrays that is left when the plain arguments are known."""
        function, at = self.function, len(plain) - len(self.keywords)
        named = dict(zip(self.keywords, plain[at:], strict=True))
        return lambda *arrays: function(*arrays, *plain[:at], **named)

    def entry(self, plain: tuple[Any, ...]) -> Small | None:
        """The function with plain arguments; zeros of either sign are equal, and nan is not equal to itself."""
        if len(self.entries) >= VARIANTS or any([v == 0 or v != v for v in plain]):
            return None
        function = self.given(plain)
        made = self.entries[plain] = Small(function, Fused(function, self.name))
        made.lays_out = self.lays_out
        return made


def pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A pointwise function of arrays, run as one kernel."""
    small = Small(function)
    return lambda *args: small.head(*args)


@cache
def small_ufunc(ufunc: Any) -> Small | None:
    """A ufunc as small arrays meet it, one for all its callers; None if a kernel would not give every bit of it."""
    return Small(ufunc) if is_exact(ufunc) else None


ADD, SUBTRACT, MULTIPLY = (small_ufunc(ufunc) for ufunc in (np.add, np.subtract, np.multiply))
"""`ADD.head(a, b)` is quicker than np.add where the arrays are small and row-major."""
