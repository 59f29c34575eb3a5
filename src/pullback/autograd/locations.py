"""Where nodes were made: always noted, as a code object and the offset of an instruction in it, never a frame.

    node._code, node._offset ..... the user's line: the call of the op, or of what in this library called it
    node._scope .................. the innermost call of an nn.Module it was made in, or None

A scope is a call: (code, offset, weak reference to the module or None, scope around it or None, closed). It is closed
if only this library runs inside it: then its own line is the user's, `_code` stays None, and no stack is walked.
Otherwise the walk out of the library ends at the first frame of the user's, or at a door: a frame that pushed a scope.
Turning any of this into lines waits until somebody asks. See note: lines.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from traceback import StackSummary
from types import CodeType, FrameType
from typing import Any, NamedTuple

from pullback.autograd.tracebacks import LIBRARY, ROOT

getframe: Callable[[int], FrameType] = sys._getframe

Scope = tuple[CodeType, int, Any, Any, bool]

MACHINERY = (
    "<pullback",
    *(os.path.join(ROOT, room, "") for room in ("_op", "autograd", "batching", "library")),
    *(os.path.join(ROOT, *name.split("/")) for name in ("ops/autocast.py", "ops/interop/overriding.py")),
)
"""What stands between the call of an op and its node: no place of interest."""
DOORS = tuple(
    ROOT + name.replace("/", os.sep)
    for name in ("nn/modules/module.py", "nn/modules/base/hooks.py", "autograd/engine.py")
)
"""Files whose frames have pushed a scope: beyond them it says more than the stack."""
USER: set[str] = set()
"""Files known to be the user's: what every recorded op asks first."""
INSIDE: set[str] = set()
"""Files known to be the library's, without the doors."""


Detached = tuple[str, Any, int, Any]
"""Where a value lost its history: what did it, and the code, offset and scope of that call."""


class Nobody:
    """Stands for the frame of who called the first function of a thread that Python did not start."""

    f_code = compile("", "<pullback nobody>", "exec")
    f_lasti = 0
    f_back = None


NOBODY: Any = Nobody()


class Stack:
    """What a thread is in the middle of: the innermost module, the block that records nothing."""

    __slots__ = ("block", "left", "scope")

    scope: Scope | None
    block: Detached | None
    left: Detached | None
    """The last time the value of a tensor with a history became a Python number or a NumPy array."""

    def __init__(self) -> None:
        self.scope = self.block = self.left = None


NOWHERE = Stack()
"""Stands for the stack of a thread that has called no module yet; nobody writes to it."""
stack: ContextVar[Stack] = ContextVar("stack", default=NOWHERE)
here = stack.get


def own_stack() -> Stack:
    """The stack of this thread, made on first need."""
    mine = here()
    if mine is NOWHERE:
        mine = Stack()
        stack.set(mine)
    return mine


def is_library(filename: str) -> bool:
    """True for files of this library and for what it generates."""
    if filename in USER:
        return False
    if filename in INSIDE or filename.startswith(LIBRARY):
        if filename not in DOORS:
            INSIDE.add(filename)
        return True
    USER.add(filename)
    return False


def locate(node: Any) -> None:
    """Note where a node is being made, in an open scope, whose op only functions of the library call."""
    # What `find` does, for such a function and its generated wrapper: the usual case. Its own frame is not looked at.
    try:
        frame: Any = getframe(3)
    except ValueError:
        frame = NOBODY
    code = frame.f_code
    if code.co_filename not in USER:
        inner, frame = frame, frame.f_back
        if frame is None or (code := frame.f_code).co_filename not in USER:
            find(node, inner)
            return
    node._code = code
    node._offset = frame.f_lasti


def find(node: Any, frame: FrameType | None) -> None:
    """Note on a node the nearest line of the user's at or around `frame`, up to a door."""
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        if filename in USER:
            node._code, node._offset = code, frame.f_lasti
            return
        if filename not in INSIDE:
            if filename in DOORS:
                break
            if not is_library(filename):
                continue
        frame = frame.f_back
    node._code, node._offset = None, 0


def mark(node: Any) -> None:
    """Note on a node where it is being made. Generated functions do the same in line when the user calls them."""
    scope = node._scope = here().scope
    frame: FrameType | None = getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(MACHINERY):
        frame = frame.f_back
    if scope is None or not scope[4] or (frame is not None and not is_library(frame.f_code.co_filename)):
        find(node, frame)
    else:
        node._code, node._offset = None, 0


def caller_at(frame: FrameType | None) -> tuple[Any, int]:
    """Code and offset of the user's line at or around `frame`."""
    scope = here().scope
    if scope is not None and scope[4]:
        return scope[:2]
    spot = Spot()
    find(spot, frame)
    if spot._code is None:
        call = next((call for call in scopes(scope) if not is_library(call[0].co_filename)), None)
        return (None, 0) if call is None else call[:2]
    return spot._code, spot._offset


class Spot:
    """A place by itself, noted as on a node."""

    __slots__ = ("_code", "_offset")

    _code: CodeType | None
    _offset: int


def detached_here(kind: str, depth: int = 2) -> Detached:
    """A cut by the function that calls this one, or by one further out."""
    try:
        frame: Any = getframe(depth)
    except ValueError:
        frame = NOBODY
    code = frame.f_code
    if code.co_filename in USER:
        return kind, code, frame.f_lasti, here().scope
    return kind, *caller_at(frame), here().scope


def call_of(frame: FrameType | None) -> Scope | None:
    """The nearest call of the user's at or around `frame`, as a closed scope."""
    scope = here().scope
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            return frame.f_code, frame.f_lasti, None, scope, True
        frame = frame.f_back
    return scope


# ------------------------------------------------------------------ lines


OLDER_CELL = re.compile(r"<ipython-input-(\d+)-\w+>")
"""The file a cell was said to be in before IPython could be asked."""
BY_NOTEBOOK = re.compile(r"_{1,3}|_\d+|_i{1,3}|_i\d+|_[dio]h|In|Out")
"""What a notebook calls results and inputs of cells: _, __, _8, _i8, Out. No user gave these names."""


class Location(NamedTuple):
    """A line of source: where an op was called."""

    file: str
    line: int
    function: str
    text: str
    """The line itself, or nothing where the source is not at hand."""
    module: str | None = None
    """The nn.Module the op ran in, such as "net.fc1 (Linear)"."""

    @property
    def user(self) -> Location:
        """The place itself: it is the user's own line even where an op was called by the library."""
        return self

    def __str__(self) -> str:
        inside = "" if self.function.startswith("<") else f", in {self.function}"
        return f"{place_text(self.file, self.line)}{inside}" + (f": {self.text}" if self.text else "")


def cell_of(file: str) -> str | None:
    """In[8] for the file that stands for a cell of a notebook, None for other files."""
    shell: Any = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    ask = getattr(getattr(running, "compile", None), "format_code_name", None)
    found = None if ask is None else ask(file)
    if found is not None:
        return str(found[1])
    older = OLDER_CELL.fullmatch(file)
    return None if older is None else f"In[{older[1]}]"


def place_text(file: str, line: int, short: bool = False) -> str:
    """A line as people name it: train.py:12, or In[8], line 2 in a notebook; `short` leaves folders away."""
    cell = cell_of(file)
    return f"{cell}, line {line}" if cell else f"{os.path.basename(file) if short else file}:{line}"


def stack_text(frames: Iterable[tuple[str, int, str]]) -> list[str]:
    """(file, line, function) of frames as Python prints them, and cells of a notebook as IPython does."""
    shown = []
    for file, line, function in frames:
        (text,) = StackSummary.from_list([(file, line, function, None)]).format()
        cell = cell_of(file)
        shown.append(text if cell is None else text.replace(f'File "{file}"', f"Cell {cell}", 1))
    return shown


def variables_of(scope: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The variables of a frame, without those a notebook adds."""
    items = list(scope.items())
    return [(name, value) for name, value in items if not BY_NOTEBOOK.fullmatch(name)] if "_oh" in scope else items


def line_of(code: CodeType, offset: int) -> int:
    """The line an instruction stands on."""
    return next(islice(code.co_positions(), offset // 2, None), (None,))[0] or code.co_firstlineno


def at(code: CodeType, offset: int, module: str | None = None) -> Location:
    """The line of an instruction."""
    line = line_of(code, offset)
    return Location(code.co_filename, line, code.co_name, linecache.getline(code.co_filename, line).strip(), module)


def scopes(scope: Scope | None) -> Iterator[Scope]:
    """A scope and those around it, innermost first."""
    while scope is not None:
        yield scope
        scope = scope[3]


def location_of(node: Any) -> Location | None:
    """The user's line that made a node, and the module that was running. None for leaves."""
    return resolve(getattr(node, "_code", None), getattr(node, "_offset", 0), getattr(node, "_scope", None))


def resolve(code: CodeType | None, offset: int, scope: Scope | None) -> Location | None:
    """The place that was noted in this way."""
    calls = list(scopes(scope))
    module = module_path([call for call in calls if call[2] is not None])
    if code is not None:
        return at(code, offset, module)
    return next((at(call[0], call[1], module) for call in calls if not is_library(call[0].co_filename)), None)


def module_path(calls: list[Scope]) -> str | None:
    """The innermost module called, by its name in the outermost: net.fc1 (Linear)."""
    alive = [(s, module) for s in calls if (module := s[2]()) is not None]
    if not alive:
        return None
    inner = alive[0][1]
    for call, root in reversed(alive):
        for name, module in root.named_modules():
            if module is inner:
                start = called_as(call[0], call[1]) or type(root).__name__
                return f"{start}{'.' if name else ''}{name} ({type(inner).__name__})"
    return type(inner).__name__


def called_as(code: CodeType, offset: int) -> str | None:
    """The expression that was called at an instruction, if it is a name or an attribute of one: `net` of `net(x)`."""
    tree = None if is_library(code.co_filename) else written_call(code, offset)
    return ast.unparse(tree.func) if tree and isinstance(tree.func, (ast.Name, ast.Attribute)) else None


def written_call(code: CodeType, offset: int) -> ast.Call | None:
    """The call that was made at an instruction, as it is written; None if its source is not there."""
    line, end, start, stop = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    if line is None or end is None or start is None or stop is None:
        return None
    lines = [linecache.getline(code.co_filename, nr).encode() for nr in range(line, end + 1)]
    lines[-1] = lines[-1][:stop]
    try:
        tree = ast.parse(b"(" + b"".join(lines)[start:] + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if isinstance(tree, ast.Call) else None
