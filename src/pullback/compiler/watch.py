"""Which code of the user's runs while a function is recorded, and whether it does what nobody can repeat."""

from __future__ import annotations

import gc
import sys
from functools import cache
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np

from pullback._runtime.building import loaded

LIBRARY = __file__.rsplit("compiler", 1)[0]
FOREIGN = (LIBRARY, "<pullback", "<frozen", np.__file__.rsplit("__init__", 1)[0])
STANDARD = tuple({path for path in (sys.prefix, sys.base_prefix, sys.exec_prefix)})

DENIED = {"print", "input", "open", "exec", "eval", "compile", "__import__", "breakpoint", "globals", "locals", "id"}
"""Builtins that do something outside, or tell what the recorder cannot know."""
DYNAMIC = {"getattr", "setattr", "hasattr", "delattr", "vars", "dir"}
"""Builtins by which attributes are read whose names do not stand in the code."""
PURE = {"builtins", "math", "cmath", "_operator", "operator", "itertools", "_functools", "functools", "_collections",
        "collections", "typing", "types", "_abc", "_sre", "re", "_struct", "_thread", "_weakref", "_bisect", "_heapq",
        "_contextvars", "_warnings", "numpy", "numpy._core._multiarray_umath", "_statistics", "_typing"}  # fmt: skip
"""Modules of builtins that only compute."""
UNASKING = {"math", "cmath", "_struct", "_statistics"}
"""Those of them that take the value of a float as it is."""


HOOK, ENGINE = "pullback.compiler.native.hook", "pullback.kernels.jit.compiler.engine"
Trail = list[tuple[Any, int]]
"""Code and line of frames, the innermost first; or a file and a line."""
MOST_TRAILS = 64


def trail_of(frame: Any) -> Trail:
    """Where a frame and those that called it are."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


@cache
def is_own(filename: str) -> bool:
    """Whether a file is this library's."""
    return filename.startswith((LIBRARY, "<pullback"))


def user_line() -> str:
    """Where in the user's program we are: file and line of the innermost frame that is not this library's."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def is_library(module: str | None) -> bool:
    """Whether a module belongs to this library."""
    return module is not None and (module == "pullback" or module.startswith("pullback."))


class Watch:
    """Notes, by Python's profiling hook, which functions run and which builtins they call."""

    def __init__(self) -> None:
        self.ran: dict[Any, dict[str, Any]] = {}
        """The code that ran, with its globals."""
        self.names: set[str] = set()
        """All names of attributes and globals in that code."""
        self.dynamic = False
        self.unasked: Any = None
        """Told of builtins that may take the value of a float without asking it."""
        self.why = ""
        """Why the run cannot be repeated, if so."""
        self.trails: list[tuple[Trail, str]] = []
        """Where it did what cannot be repeated."""
        self.iterated: list[tuple[Trail, str]] = []
        """Where it asked an iterator for what comes next."""
        # The native hook is used where native code is loaded anyhow.
        self.hook: Any = loaded(HOOK).hook() if ENGINE in sys.modules else None

    def __enter__(self) -> Watch:
        """Begin; garbage waits, for what its collector calls is no part of the function."""
        self.collects = gc.isenabled()
        gc.disable()
        self.install()
        return self

    def install(self) -> None:
        """Hear of what this thread calls."""
        if self.hook is None:
            sys.setprofile(self.saw)
        else:
            self.hook.install(self.saw)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        if self.collects:
            gc.enable()

    def saw(self, frame: Any, event: str, arg: Any) -> None:
        """The hook. It is called for whatever the library calls, too, and must be quick there."""
        if event == "return" or event == "c_return":
            return
        code = frame.f_code
        if is_foreign(code.co_filename):
            if self.hook is not None and event == "call":
                self.hook.pass_over(code)
            if event == "c_call" and self.unasked is not None and getattr(arg, "__module__", None) in UNASKING:
                self.unasked(f"{arg.__name__}() in {code.co_name}", frame)
            return
        if event == "call":
            if code not in self.ran and not is_standard(code.co_filename):
                self.ran[code] = frame.f_globals
                self.names.update(code.co_names)
            if code.co_flags & 0x280:  # a coroutine
                self.complain("a coroutine runs", frame)
        elif event == "c_call" and len(self.trails) < MOST_TRAILS:
            self.look_at(arg, frame)

    def look_at(self, function: Any, frame: Any) -> None:
        """A builtin that code of the user's calls."""
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if type(function) is BuiltinFunctionType and (owner is None or type(owner) is ModuleType):
            home = function.__module__ or ""
            if home == "builtins":
                if name in DENIED:
                    self.complain(f"{name}() is called", frame)
                elif name in DYNAMIC:
                    self.dynamic = True
                elif name == "next" and len(self.iterated) < MOST_TRAILS:
                    self.iterated.append((trail_of(frame), "an iterator goes on"))
            elif home not in PURE and not is_library(home):
                self.complain(f"{home}.{name}() is called", frame)
            elif home in UNASKING and self.unasked is not None:
                self.unasked(f"{home.strip('_')}.{name}()", None)
        elif owner is not None and type(owner).__module__ in ("_random", "random", "_io", "numpy.random"):
            self.complain(f"{type(owner).__name__}.{name}() is called", frame)

    def complain(self, what: str, frame: Any) -> None:
        """Note why the run cannot be repeated."""
        self.trails.append((trail_of(frame), what))
        if not self.why:
            self.why = f"{what} at {frame.f_code.co_filename}:{frame.f_lineno}"


def unwatched(op: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of arrays that an op of this library has, and let the hook rest meanwhile: the user's code does
    not run there, unless it is given as an argument. The native hook passes over what it calls as it is."""
    watch = getattr(sys.getprofile(), "__self__", None)
    if type(watch) is not Watch or watch.hook is not None or not is_library(op.module.get("__name__")):
        return function(*args, **kwargs)
    if any([callable(value) for value in (*args, *kwargs.values())]):
        return function(*args, **kwargs)
    resume = suspended()
    try:
        return function(*args, **kwargs)
    finally:
        resume()


def suspended() -> Any:
    """Hear of nothing that this thread calls; what hears of it again."""
    before = sys.getprofile()
    sys.setprofile(None)
    watch = getattr(before, "__self__", None)
    return watch.install if type(watch) is Watch else lambda: sys.setprofile(before)


@cache
def is_foreign(filename: str) -> bool:
    """Whether a file is this library's or NumPy's."""
    return filename.startswith(FOREIGN)


@cache
def is_standard(filename: str) -> bool:
    """Whether a file belongs to Python or to an installed package that is not the user's own code."""
    return filename.startswith(STANDARD) and "site-packages" not in filename
