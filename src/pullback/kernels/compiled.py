"""The way from a NumPy algorithm to its compiled counterpart, where there is one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from pullback._runtime.building import made
from pullback.kernels import jit


class OnFirstUse:
    """A builtin that is made when it is first called: `head` is what callers call."""

    __slots__ = ("head", "otherwise")

    def __init__(
        self,
        name: str,
        make: Callable[[Any], Callable[..., Any]],
        otherwise: Callable[..., Any],
        takes: Callable[..., bool] | None = None,
    ) -> None:
        """`make` is given the room of this name; where kernels are not compiled, `otherwise` does all.

        It does, too, what the builtin, which does not take it, would only hand on: a program of large arrays need not
        wait for one.
        """

        def first(*args: Any) -> Any:
            if takes is not None and not takes(*args):
                return otherwise(*args)
            compiled = room(name)
            self.head = otherwise if compiled is None else made(lambda: make(compiled))
            return self.head(*args)

        self.head: Callable[..., Any] = first
        self.otherwise = otherwise


@cache
def room(name: str) -> Any:
    """The module `pullback.kernels.jit.<name>`, or None where kernels are not compiled.

    Its functions answer None for arrays they do not take; nothing has been written then.
    """
    return made(lambda: import_module(f"pullback.kernels.jit.{name}")) if jit.available() else None
