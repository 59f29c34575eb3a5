"""Interrupts at every instruction: a tracer that asks for a KeyboardInterrupt just before the k-th one.

The tracer is compiled, so that Python raises the interrupt where it raises real ones: at the next place where it looks
for signals, in the code under test and not in the tracer, which is gone by then.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

SOURCE = """
@count = global i64 0
@target = global i64 -1
@name = private constant [16 x i8] c"f_trace_opcodes\\00"
@_Py_TrueStruct = external global i8
declare i32 @PyObject_SetAttrString(ptr, ptr, ptr)
declare void @PyErr_SetInterrupt()
declare void @PyEval_SetTrace(ptr, ptr)
define ptr @where(i64 %i) {
  %first = icmp eq i64 %i, 0
  %out = select i1 %first, ptr @count, ptr @target
  ret ptr %out
}
define i32 @trace(ptr %obj, ptr %frame, i32 %what, ptr %arg) {
  switch i32 %what, label %done [i32 0, label %call
                                 i32 7, label %opcode]
call:
  %ok = call i32 @PyObject_SetAttrString(ptr %frame, ptr @name, ptr @_Py_TrueStruct)
  br label %done
opcode:
  %n = load i64, ptr @count
  %more = add i64 %n, 1
  store i64 %more, ptr @count
  %t = load i64, ptr @target
  %now = icmp eq i64 %n, %t
  br i1 %now, label %interrupt, label %done
interrupt:
  call void @PyEval_SetTrace(ptr null, ptr null)
  call void @PyErr_SetInterrupt()
  br label %done
done:
  ret i32 0
}
"""


class Tracer:
    """Counts instructions, and asks for an interrupt before one of them."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs that a shell runs in the background ignore it
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        api = ctypes.pythonapi
        llvm.add_symbol("_Py_TrueStruct", ctypes.addressof(ctypes.c_char.in_dll(api, "_Py_TrueStruct")))
        for name in ("PyObject_SetAttrString", "PyErr_SetInterrupt", "PyEval_SetTrace"):
            llvm.add_symbol(name, ctypes.cast(getattr(api, name), ctypes.c_void_p).value)
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(SOURCE), machine)
        self.engine.finalize_object()
        where = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(self.engine.get_function_address("where"))
        self.count, self.target = (ctypes.c_int64.from_address(where(i)) for i in range(2))
        self.trace = self.engine.get_function_address("trace")
        self.switch = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(("PyEval_SetTrace", api))
        self.interrupt(lambda: None, -1)  # from 3.12 on only the next tracer sees what this one asks for

    def interrupt(self, run: Callable[[], Any], k: int) -> tuple[bool, bool]:
        """Run something, interrupted before its k-th instruction: whether it came so far, and whether it was ended."""
        self.count.value, self.target.value = 0, k
        try:
            self.switch(self.trace, None)
            try:
                run()
            finally:
                self.switch(None, None)
        except KeyboardInterrupt:
            return True, True
        return self.count.value > k, False


tracer = cache(Tracer)


def at_every_instruction(run: Callable[[], Any], step: int = 1) -> Iterator[bool]:
    """Run something again and again, interrupted a little later each time; whether the interrupt ended it."""
    k = 0
    while True:
        reached, ended = tracer().interrupt(run, k)
        if not reached:
            return
        yield ended
        k += step
