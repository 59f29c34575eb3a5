"""Functions of CPython's own kind, around an address: the entries of kernels, and the quickest way to a bare object."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

FAST = 0x80
"""How CPython calls a function: with its owner, the arguments in a row and their number. It does so from where the call
stands; one that takes no arguments is called by way of another function that checks there are none.
"""
ITERNEXT = 63
"""The number of the slot `tp_iternext`, which is part of CPython's stable interface."""
T = TypeVar("T")


def lasting(value: T) -> T:
    """The value itself, which from now on lives as long as the process: native code reads its memory at any time.

    A list of this library's would not do. At its end the interpreter empties all modules before it has collected all
    objects, and looks into functions, arrays and capsules once more on the way.
    """
    if sys.implementation.name == "cpython":
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
    return value


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [("name", ctypes.c_char_p), ("meth", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


def builtin(address: int, name: str, owner: Any = None) -> Callable[..., Any]:
    """The function at an address; it is called with `owner` as its self."""
    definition = lasting(MethodDef(name.encode(), address, FAST, None))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    made: Callable[..., Any] = make(ctypes.addressof(definition), owner, None)
    return made


def stepping(endless: Iterator[Any]) -> Callable[[], Any]:
    """`endless.__next__` in half of the time: what the iterator's class does itself, without the wrapper around it.

    The wrapper would say StopIteration at the end.
    """
    if sys.implementation.name != "cpython":
        return endless.__next__
    slot = ctypes.pythonapi.PyType_GetSlot
    slot.restype, slot.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return builtin(slot(type(endless), ITERNEXT), "next", endless)


def bare(cls: type) -> Callable[[], Any]:
    """What `object.__new__(cls)` makes, in half of the time: `PyType_GenericAlloc(cls, n)` makes no room for what
    few objects are given as attributes; their dictionary is made on first use. Nothing depends on
    n, the number of items an object has, where these have no size.
    """
    if sys.implementation.name != "cpython":
        return partial(object.__new__, cls)
    allocate = ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p).value
    assert allocate is not None and not cls.__itemsize__
    return builtin(allocate, "bare", cls)
