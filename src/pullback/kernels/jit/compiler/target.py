"""The machine kernels are compiled for: its vector width, LLVM's target and the engine that holds the code."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import llvmlite.binding as llvm
import numpy as np

TRIPLE: str = llvm.get_process_triple()
CPU: str = llvm.get_host_cpu_name()
FEATURES: dict[str, bool] = dict(llvm.get_host_cpu_features())
LLVM_VERSION: tuple[int, ...] = llvm.llvm_version_info

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.initialize_native_asmparser()


NARROWER = {32: ("avx512", "evex512", "avx10"), 16: ("avx", "evex512", "fma", "f16c", "vaes", "vpclmulqdq", "xop")}
"""What a CPU with shorter vectors does not have: features that begin so."""


def vector_bytes() -> int:
    """How many bytes one vector register holds; $PULLBACK_VECTOR_BYTES=32 or 16 stands for a lesser CPU."""
    wide = all(FEATURES.get(name) for name in ("avx512f", "avx512vl", "avx512dq", "avx512bw"))
    have = 64 if wide else 32 if FEATURES.get("avx2") and FEATURES.get("fma") else 16
    wanted = os.environ.get("PULLBACK_VECTOR_BYTES")
    if wanted not in ("16", "32") or int(wanted) >= have:
        return have
    for name in FEATURES:
        if name.startswith(NARROWER[int(wanted)]):
            FEATURES[name] = False
    return int(wanted)


VECTOR_BYTES = vector_bytes()
SIZES = {"float": 4, "double": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1}
"""Bytes per element of LLVM's types."""
ELEMENTS = {"float32": "float", "float64": "double", "int64": "i64", "int32": "i32", "uint8": "i8", "bool": "i8",
            "int16": "i16", "int8": "i8"}  # fmt: skip
"""LLVM's type for a NumPy dtype."""


def lanes(element: str) -> int:
    """How many elements of a type fill one vector."""
    return VECTOR_BYTES // SIZES[element]


def flags() -> str:
    """The features of this CPU as LLVM's option string, in a fixed order."""
    return ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(FEATURES.items()))


MACHINE = llvm.Target.from_triple(TRIPLE).create_target_machine(
    cpu=CPU, features=flags(), opt=3, reloc="default", codemodel="jitdefault"
)
LAYOUT = str(MACHINE.target_data)
ENGINE = llvm.create_mcjit_compiler(llvm.parse_assembly(f'target triple = "{TRIPLE}"\n'), MACHINE)

PYTHON_SYMBOLS = (
    "PyErr_Occurred", "PyEval_RestoreThread", "PyEval_SaveThread", "PyFloat_AsDouble",
    "PyErr_Clear", "PyLong_AsLongLong", "PyObject_Vectorcall", "Py_DecRef", "Py_IncRef",
    "PyLong_FromLongLong", "PyTuple_New", "PyDict_GetItemWithError", "PyCapsule_New", "PyCapsule_GetPointer",
    "PyType_GenericAlloc", "PyObject_RichCompareBool",
)  # fmt: skip
PYTHON_OBJECTS = {"Py_True": True, "Py_False": False, "None": None, "ndarray": np.ndarray, "int": int, "float": float,
                  "tuple": tuple}  # fmt: skip


NUMPY_SYMBOLS = {"PyArray_NewFromDescr": 94, "PyArray_SetBaseObject": 282}
"""Where NumPy's table of functions has some."""


def numpy_function(place: int) -> int:
    """The address of a function of NumPy's C interface."""
    capsule = np._core._multiarray_umath._ARRAY_API
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    return table[place] or 0


def known_symbols() -> dict[str, int]:
    """Addresses that kernels refer to by name, so that compiled objects can be kept for the next process."""
    found = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON_SYMBOLS}
    found |= {name: numpy_function(place) for name, place in NUMPY_SYMBOLS.items()}
    objects: dict[str, Any] = {f"object_{name}": value for name, value in PYTHON_OBJECTS.items()}
    objects |= {f"dtype_{name}": np.dtype(name) for name in ELEMENTS}
    return found | {name: id(value) for name, value in objects.items()}


for _name, _address in known_symbols().items():
    llvm.add_symbol(_name, _address)
