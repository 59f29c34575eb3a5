"""`show`: the source an op runs, as the machine generated it."""

from __future__ import annotations

import inspect
import sys
from typing import Any

from pullback._op.declare import Op
from pullback._op.patch import unpatched
from pullback.kernels import jit
from pullback.kernels.compiled import room


def source_of(function: Any) -> str:
    """The declaration of a public function and, for an op, its generated eager function and node; how a rule runs."""
    compiled = getattr(function, "_compiled", None)
    if compiled is not None:
        return str(compiled.shown())
    shown = getattr(type(function), "_shown", None)
    if shown is not None:  # an optimizer, which is traced as ops are
        return str(shown(function))
    declared = getattr(function, "op", None)
    if declared is None:
        raise TypeError(f"{function!r} is not an op or function of pullback")
    if not isinstance(declared, Op):
        return inspect.getsource(unpatched(declared.body))
    if not declared.eager_source:
        declared.compile()  # type: ignore[attr-defined]
    parts = [inspect.getsource(declared.declared), declared.eager_source]
    if declared.node is not None:
        parts.append(declared.node_source)
    return "\n\n".join(parts)


def show(function: Any, *args: Any, kernel: bool = False, **kwargs: Any) -> None:
    """Print what a public function runs: its declaration, then the source generated from it. Of an optimizer: the pass
    over memory that its rule became, or why it runs as it is written. Of a compiled function: its programs.

    With `kernel=True` and arguments, the function is called with them, and every compiled kernel that ran is printed:
    what it computes, then its LLVM IR.
    """
    if not kernel:
        print(source_of(function))
        return
    for found in kernels_of(function, *args, **kwargs):
        print(found)


def kernels_of(function: Any, *args: Any, **kwargs: Any) -> list[str]:
    """The compiled kernels that a call runs, as text."""
    calls = room("runtime.calls")
    if calls is None:
        return [f"# no kernels are compiled here: {jit.reason()}"]
    ran: dict[str, None] = {}

    def note(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in calls.compiled:
            ran[called.__name__] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(before)
    texts = []
    for known in [calls.compiled[name] for name in ran]:
        note_text = "".join(f"; {line}\n" for line in known.note.splitlines())
        texts.append(f"; kernel {known.name}\n{note_text}{known.text}")
    return texts or ["# NumPy alone computed this: no compiled kernel ran"]
