"""The profiling hook of a recording as native code: what this library calls itself is passed over without Python.

A recorded step makes some three hundred calls inside of this library, each of them an event or two. Code whose file is
this library's or NumPy's is known by its address, in a table; events of other code, and calls of builtins that take
the value of a float as it is, are told to `Watch.saw`, as Python's own hook tells all of them.
"""

from __future__ import annotations

import _statistics
import _struct
import cmath
import ctypes
import math
from functools import cache
from typing import Any

import numpy as np

from pullback.kernels.jit.compiler import engine
from pullback.kernels.jit.runtime import threads

UNASKING = (math, cmath, _struct, _statistics)
"""Those of `Watch`."""
CALL, C_CALL = 0, 4
"""CPython's numbers of events: PyTrace_CALL and PyTrace_C_CALL."""
ROOM = 1 << 13
"""Places of a table at first."""

SOURCE = f"""
@pullback_hook_state = internal global ptr null
declare ptr @PyFrame_GetCode(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_DecRef(ptr)

define void @pullback_hook_set(ptr %state) {{
  store ptr %state, ptr @pullback_hook_state
  ret void
}}

define internal i1 @pullback_hook_has(ptr %table, i64 %mask, i64 %address) {{
entry:
  %start = lshr i64 %address, 4
  br label %head
head:
  %at = phi i64 [%start, %entry], [%next, %other]
  %place = and i64 %at, %mask
  %where = getelementptr i64, ptr %table, i64 %place
  %found = load i64, ptr %where
  %is = icmp eq i64 %found, %address
  br i1 %is, label %yes, label %else
else:
  %none = icmp eq i64 %found, 0
  br i1 %none, label %no, label %other
other:
  %next = add i64 %at, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}

define i32 @pullback_hook(ptr %saw, ptr %frame, i32 %what, ptr %arg) {{
entry:
  %given = alloca [3 x ptr]
  %state = load ptr, ptr @pullback_hook_state
  switch i32 %what, label %nothing [
    i32 {CALL}, label %look
    i32 {C_CALL}, label %look
  ]
look:
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  call void @Py_DecRef(ptr %code)
  %codes = load ptr, ptr %state
  %mask_at = getelementptr i64, ptr %state, i64 1
  %mask = load i64, ptr %mask_at
  %address = ptrtoint ptr %code to i64
  %own = call i1 @pullback_hook_has(ptr %codes, i64 %mask, i64 %address)
  br i1 %own, label %within, label %tell
within:
  %calls = icmp eq i32 %what, {C_CALL}
  br i1 %calls, label %builtin, label %nothing
builtin:
  %asking_at = getelementptr i64, ptr %state, i64 2
  %asking = load ptr, ptr %asking_at
  %asking_mask_at = getelementptr i64, ptr %state, i64 3
  %asking_mask = load i64, ptr %asking_mask_at
  %function = ptrtoint ptr %arg to i64
  %asks = call i1 @pullback_hook_has(ptr %asking, i64 %asking_mask, i64 %function)
  br i1 %asks, label %tell, label %nothing
tell:
  %kind = icmp eq i32 %what, {C_CALL}
  %name_at = select i1 %kind, i64 5, i64 4
  %event_at = getelementptr i64, ptr %state, i64 %name_at
  %event = load ptr, ptr %event_at
  store ptr %frame, ptr %given
  %second = getelementptr ptr, ptr %given, i64 1
  store ptr %event, ptr %second
  %third = getelementptr ptr, ptr %given, i64 2
  store ptr %arg, ptr %third
  %answer = call ptr @PyObject_Vectorcall(ptr %saw, ptr %given, i64 3, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raise, label %told
told:
  call void @Py_DecRef(ptr %answer)
  br label %nothing
nothing:
  ret i32 0
raise:
  ret i32 -1
}}
"""


class Addresses:
    """A set of objects by their addresses, which native code reads. It holds them: none of these is given away."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.table = np.zeros(ROOM, np.int64)

    def add(self, value: Any) -> None:
        """One more."""
        if 2 * len(self.kept) >= len(self.table):
            self.table = np.zeros(2 * len(self.table), np.int64)
            for one in self.kept:
                self.place(id(one))
        self.kept.append(value)
        self.place(id(value))

    def place(self, address: int) -> None:
        """Write an address to the first free place."""
        mask = len(self.table) - 1
        at = (address >> 4) & mask
        while self.table[at] not in (0, address):
            at = (at + 1) & mask
        self.table[at] = address


class Hook:
    """What this process has of it: the code that is passed over, and where the native function is."""

    def __init__(self) -> None:
        threads.start()
        self.address, setter = engine.load(SOURCE, ["pullback_hook", "pullback_hook_set"])
        self.codes, self.asking = Addresses(), Addresses()
        self.events = "call", "c_call"
        self.state = np.zeros(6, np.int64)
        self.refresh()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(setter)(self.state.ctypes.data)
        self.set = ctypes.pythonapi.PyEval_SetProfile
        self.set.argtypes, self.set.restype = [ctypes.c_void_p, ctypes.py_object], None

    def refresh(self) -> None:
        """Tell native code where the tables are."""
        for nr, addresses in enumerate((self.codes, self.asking)):
            self.state[2 * nr], self.state[2 * nr + 1] = addresses.table.ctypes.data, len(addresses.table) - 1
        self.state[4:] = [id(event) for event in self.events]

    def pass_over(self, code: Any) -> None:
        """From here on, tell of some code only if it calls a builtin that takes floats as they are."""
        before = self.codes.table
        self.codes.add(code)
        if self.codes.table is not before:
            self.refresh()

    def ask_about(self, modules: Any) -> None:
        """Always tell of calls of the builtins of these modules."""
        for module in modules:
            for value in vars(module).values():
                if getattr(value, "__module__", None) == module.__name__ and callable(value):
                    self.asking.add(value)
        self.refresh()

    def install(self, saw: Any) -> None:
        """Make it the profiling hook of this thread; `sys.setprofile(None)` ends that."""
        self.set(self.address, saw)


@cache
def hook() -> Hook:
    """The hook of this process."""
    made = Hook()
    made.ask_about(UNASKING)
    return made
