"""Stand-ins for what torch has and pullback has not.

A package names many parts of torch that it never uses: as a decorator, a base class, a default, an annotation, a key of
a table. None of that asks for work, so a stand-in can be all of it, and importing never fails. What asks for work
raises NotImplementedError with the name of what is missing. A stand-in is a class, because that is what unions,
`isinstance`, `except`, `singledispatch` and bases want; its own class decides what happens when it is used.
"""

from __future__ import annotations

import ast
import linecache
import sys
from abc import ABCMeta
from functools import cache, wraps
from types import FrameType, GenericAlias
from typing import Any, NoReturn

from pullback.compat.reasons import reason

QUESTIONS = {"is_available", "is_initialized", "is_built", "is_in_onnx_export", "is_torchelastic_launched"}
"""What programs ask of a part of torch before they use it: of a part that is missing, the truthful answer is no."""


def no(*args: Any, **kwargs: Any) -> bool:
    """False."""
    return False


def refuse(name: str) -> NoReturn:
    """Say what is missing, and what to use instead."""
    instead = reason(name)
    raise NotImplementedError(f"{name} is not available in pullback" + (f"; {instead}" if instead else ""))


# ------------------------------------------------------------------ who asks


@cache
def handled(path: str) -> list[tuple[int, int]]:
    """The lines of a file that stand in a `try` with an `except` or a `finally`."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return []
    tries = [node for node in ast.walk(tree) if isinstance(node, (ast.Try, ast.TryStar))]
    return [(node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno) for node in tries]


def importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported and has not said, with a `try`, that it can do without the answer."""
    while frame is not None and frame.f_globals.get("__name__") != "__main__":
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        if any(start <= frame.f_lineno <= end for start, end in handled(frame.f_code.co_filename)):
            return False
        frame = frame.f_back
    return False


def decorating(frame: FrameType) -> str:
    """The decorator a call stands for, as it is written: `torch.f` or `torch.f(1)`; empty if it is an ordinary call."""
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    line, last, start, end = positions
    if line is None or last is None or start is None or end is None:
        return ""
    name, scope = frame.f_code.co_filename, frame.f_globals
    if linecache.getline(name, line, scope).encode()[:start].decode(errors="replace").strip() != "@":
        return ""
    return linecache.getline(name, last, scope).encode()[:end].decode(errors="replace").strip()


# ------------------------------------------------------------------ the stand-in


def refusing(operator: str, while_importing: Any = None) -> Any:
    """A special method of a stand-in: work, so it raises; while a module is imported it may have an empty answer."""

    def method(cls: StandIn, *args: Any) -> Any:
        if while_importing is not None and importing(sys._getframe(1)):
            return while_importing
        refuse(cls._stand_in_for)

    method.__name__ = operator
    return method


class StandIn(ABCMeta):
    """The class of stand-ins: a stand-in can be named, derived from and put anywhere; calling it raises."""

    _stand_in_for: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        caller = sys._getframe(1)
        name, written = cls._stand_in_for, decorating(caller)
        if (
            len(args) == 1
            and not kwargs
            and callable(args[0])
            and (name.endswith(")") or written[-1:] not in ("", ")"))
        ):
            return decorated(args[0], name)
        if written or importing(caller):
            return stand_in(f"{name}(...)")
        refuse(name)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{cls._stand_in_for}.{name}")
        return no if name in QUESTIONS else stand_in(f"{cls._stand_in_for}.{name}")

    @property
    def register(cls) -> Any:
        """A name of what is missing, and not the method of abstract classes."""
        return stand_in(f"{cls._stand_in_for}.register")

    def __getitem__(cls, parameters: Any) -> Any:
        return GenericAlias(cls, parameters)  # an annotation such as Future[Tensor], or a base

    def __bool__(cls) -> bool:
        return False

    def __contains__(cls, item: Any) -> bool:
        return False

    def __repr__(cls) -> str:
        own = "_stand_in_for" in cls.__dict__
        return f"<{cls._stand_in_for}, not available in pullback>" if own else type.__repr__(cls)

    __enter__ = refusing("__enter__", while_importing=False)
    __exit__ = refusing("__exit__", while_importing=False)
    __iter__ = refusing("__iter__")
    __len__ = __int__ = __index__ = __float__ = refusing("__len__")
    __lt__ = __le__ = __gt__ = __ge__ = refusing("__lt__", while_importing=False)
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __and__ = __rand__ = refusing("__add__")


@cache
def stand_in(name: str) -> Any:
    """The stand-in for a dotted name of torch; there is one of each, so that pickle finds it again."""
    module, _, last = name.rpartition(".")
    base = RuntimeError if last.endswith(("Error", "Exception")) else object
    body = {"_stand_in_for": name, "__module__": module, "__qualname__": last, "__doc__": f"{name} is not available."}
    return StandIn(last, (base,), body)


def decorated(target: Any, name: str) -> Any:
    """What a missing decorator makes of a function or a class: the same to look at, and it raises when it is used."""
    if isinstance(target, type):
        target.__new__ = lambda cls, *args, **kwargs: refuse(name)  # type: ignore[method-assign, assignment]
        return target

    def missing(*args: Any, **kwargs: Any) -> Any:
        refuse(name)

    try:
        return wraps(target)(missing)
    except AttributeError:
        return missing
