"""Functions of CPython's kind around an address: what they are made of lives as long as they may."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

AT_THE_END = """
import ctypes, gc, sys
import pullback
from pullback._runtime import builtins
from pullback._runtime.builtins import FAST, MethodDef, builtin

functions = [builtin(0, f"function {i}") for i in range(1000)]
places = [ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value for function in functions]
size = ctypes.sizeof(MethodDef)
vars(builtins).clear()  # as modules end, in whatever order
del MethodDef, builtin
gc.collect()
others = [ctypes.create_string_buffer(bytes([255]) * (size - 1)) for _ in range(4000)]  # who comes to where they were
flags = {ctypes.c_int.from_address(place + 16).value for place in places}
names = [ctypes.string_at(ctypes.c_void_p.from_address(place).value) for place in places]
assert flags == {FAST} and names == [b"function %d" % i for i in range(1000)], flags
print("ok")
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="they are CPython's")
def test_what_a_collection_reads_of_a_function_outlives_the_modules(run_python: Callable[[str], str]) -> None:
    assert "ok" in run_python(AT_THE_END)
