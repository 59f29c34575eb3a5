"""Patches: functions that do something first while a rare mode is on. Otherwise nothing is asked, and nothing paid.

    casting = Patch(AUTOCAST, lambda: [(matmul, lower), (sum, widen)])
    casting.hold(me)            # matmul(a, b) is now lower(original, (a, b), {})
    casting.drop(me)

A function gets other code: the object stays the same, so everybody who holds it sees the change. There is one place for
the code of a function, and so one owner of it: this module. What is to be done first is kept in a list for each
function, in a fixed order, so patches may begin and end in any order and inside of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from pullback._modes import detours
from pullback._runtime.building import building, made
from pullback.autograd.tracebacks import trim

Action = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Called with the function below (with the patches that come later, or its own code) and what it was called with."""
Entry = tuple[int, "Patch", Action]
"""A rank, who wants something done first, and what."""

OVERRIDES, PROFILER, AUTOCAST, BATCHING, DISPATCH = range(5)
"""In which order patches of one function are asked, as torch does: a mode sees what was written in the program; what is
measured includes what the others do."""


# ------------------------------------------------------------------ code that is generated late


def stub(*args: Any, **kwargs: Any) -> Any:
    """The code of every op until its first call, which puts the generated code in its place."""
    try:
        return COMPILE()(*args, **kwargs)  # type: ignore[name-defined] # noqa: F821
    except Exception as error:
        trim(error)
        raise


def fill_stub(function: FunctionType, code: CodeType) -> None:
    """Give a function its code, unless it has it or is patched: then it gets it afterwards."""
    if function.__code__ is stub.__code__:
        with building:  # somebody may be about to patch it
            if function.__code__ is stub.__code__:
                function.__code__ = code


# ------------------------------------------------------------------ one function

PLACE, SHORTEN = "the function to call", "what shortens tracebacks"


def template(*args: Any, **kwargs: Any) -> Any:
    """What patched functions become; the constants are replaced by functions."""
    run: Any = "the function to call"
    shorten: Any = "what shortens tracebacks"
    try:
        return run(args, kwargs)
    except Exception as error:
        shorten(error)
        raise


class Site:
    """A function that was patched, and what it does first."""

    __slots__ = ("actions", "code", "function", "original", "own")

    def __init__(self, function: Any) -> None:
        self.function = function
        self.actions: tuple[Entry, ...] = ()
        """Who wants something done first, in order; replaced as a whole, so a call sees one state of it."""
        constants = tuple([{PLACE: self.run, SHORTEN: trim}.get(c, c) for c in template.__code__.co_consts])
        self.code = template.__code__.replace(
            co_consts=constants, co_name=function.__name__, co_freevars=function.__code__.co_freevars
        )
        self.own: Any = None
        """The code the function had when it was last patched."""
        self.original: Any = None
        """The function as it was; None until the code of one that was never called is generated."""

    def add(self, entry: Entry) -> None:
        """Do something first; among patches of the same rank, before the others."""
        actions = self.actions
        if not actions:
            self.actions = (entry,)
        elif entry not in actions:
            place = sum([rank < entry[0] for rank, _, _ in actions])
            self.actions = (*actions[:place], entry, *actions[place:])
        now = self.function.__code__
        if now is not self.code:
            if now is not self.own:
                self.keep(now)
            self.function.__code__ = self.code
            self.show_signature()

    def remove(self, entry: Entry) -> None:
        """Do it no more; once more does no harm."""
        actions = self.actions
        if entry in actions:
            self.actions = actions = tuple([one for one in actions if one is not entry]) if len(actions) > 1 else ()
        if not actions and self.function.__code__ is self.code:
            self.function.__code__ = self.own
            self.function.__dict__.pop("__wrapped__", None)

    def show_signature(self) -> None:
        """Let `inspect` see the parameters of the function while it is patched."""
        if self.original is not None:
            self.function.__wrapped__ = self.original

    def keep(self, code: CodeType) -> None:
        """Remember the function as it is with its own code."""
        function, original = self.function, None
        if code is not stub.__code__:
            original = FunctionType(
                code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
            )
            original.__kwdefaults__ = function.__kwdefaults__
            original.__dict__.update(function.__dict__)
        self.own, self.original = code, original

    def generate(self) -> None:
        """Have the code generated of a function that was never called, unless another thread has."""
        if self.original is None:
            self.keep(self.function.__globals__["COMPILE"]().__code__)
            self.show_signature()

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call does meanwhile."""
        actions = self.actions
        if self.original is None:
            made(self.generate)
        below = self.original
        if not actions:  # they were removed after the call began
            return below(*args, **kwargs)
        for _, _, action in actions[:0:-1]:
            below = Below(action, below)
        return actions[0][2](below, args, kwargs)


class Below:
    """A function with the patches that are asked later than another."""

    __slots__ = ("__name__", "action", "below")

    def __init__(self, action: Action, below: Any) -> None:
        self.action, self.below, self.__name__ = action, below, below.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.action(self.below, args, kwargs)


sites: dict[Any, Site] = {}
"""Every function that was ever patched."""


def site_of(function: Any) -> Site:
    """What is known of a function."""
    return sites.get(function) or sites.setdefault(function, Site(function))


def unpatched(function: Any) -> Any:
    """The function with its own code, for those who read it a second time or want to know its parameters."""
    site = sites.get(function)
    if site is None or function.__code__ is not site.code:
        return function
    if site.original is None:
        made(site.generate)
    return site.original


# ------------------------------------------------------------------ many functions


class Patch:
    """What some functions do first, as long as anybody wants it."""

    __slots__ = ("find", "holders", "on", "rank", "sites")

    def __init__(self, rank: int, find: Callable[[], Iterable[tuple[Any, Action]]]) -> None:
        """`find` is called once, when the patch is first wanted, and says which functions are to do what."""
        self.rank, self.find = rank, find
        self.sites: list[tuple[Site, Entry]] | None = None
        self.holders: set[Any] = set()
        self.on = False
        """True once all functions are patched."""

    def hold(self, who: Any) -> None:
        """Somebody wants it. An interrupt may leave it by half: `drop` is to be called in any case."""
        with building:
            self.holders.add(who)
            detours.hold(self)
            if self.on:
                return
            if self.sites is None:
                found = list(self.find())
                self.sites = [(site_of(function), (self.rank, self, action)) for function, action in found]
            for site, entry in self.sites:
                site.add(entry)
            self.on = True

    def drop(self, who: Any) -> None:
        """The matching end of `hold`; once more does no harm."""
        with building:
            self.holders.discard(who)
            if not self.holders:
                self.on = False
                for site, entry in self.sites or ():
                    site.remove(entry)
                detours.drop(self)
