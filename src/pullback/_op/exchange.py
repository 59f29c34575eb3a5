"""Exchanging the code of functions: while a rare mode is on they do something first, and otherwise nothing is asked.

The function objects stay the same, so everybody who holds one sees the change.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback._building import made
from pullback._op.define import stub

PLACE = "the function to call"


def template(*args: Any, **kwargs: Any) -> Any:
    """What the functions become; the constant is replaced by a function."""
    run: Any = "the function to call"
    return run(args, kwargs)


class Exchange:
    """One function, and what is called in its place with the original, the arguments and the keyword arguments."""

    __slots__ = ("action", "call", "code", "inner", "original", "own")

    def __init__(self, call: Any, action: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self.call, self.action = call, action
        constants = tuple([self.run if c == PLACE else c for c in template.__code__.co_consts])
        self.code = template.__code__.replace(
            co_consts=constants, co_name=call.__name__, co_freevars=call.__code__.co_freevars
        )
        self.own: Any = None
        """The code the function had when it was last looked at."""
        self.original: Any = None
        """The function as it was; None until the code of one that was never called is generated."""

    def put(self) -> None:
        """Let the function do the other thing."""
        if self.call.__code__ is self.code:
            return
        if self.call.__code__ is not self.own:
            self.keep(self.call.__code__)
        self.call.__code__ = self.code
        self.inner = getattr(self.call, "original", None)
        self.call.original = self.inner or self.original  # what is read a second time, for arrays

    def take(self) -> None:
        """Give the function its own code back."""
        if self.call.__code__ is self.code:
            self.call.__code__ = self.own
            self.call.original = self.inner

    def keep(self, code: Any) -> None:
        """Remember the function as it is with its own code."""
        call = self.call
        self.own, self.original = code, None
        if code is not stub.__code__:
            original = FunctionType(code, call.__globals__, call.__name__, call.__defaults__, call.__closure__)
            original.__kwdefaults__ = call.__kwdefaults__
            original.__dict__.update(call.__dict__)
            self.original = original

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call does meanwhile."""
        if self.original is None:
            made(self.generate)
        return self.action(self.original, args, kwargs)

    def generate(self) -> None:
        """Have the code of a function generated that was never called, unless another thread has."""
        if self.original is None:
            self.keep(self.call.__globals__["COMPILE"]().__code__)
            self.call.original = self.inner or self.original
