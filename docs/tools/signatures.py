"""Write src/pullback/_op/signatures.txt: the signatures torch reads arguments by, from the package it comes with.

    python docs/tools/signatures.py            # needs torch
    python docs/tools/signatures.py --check    # only says whether the file is as this would write it

One line for each function, its overloads in the order torch tries them, with torch's types in one word each. Methods
begin with a dot. They have no line where the one of their function without `input` and `out` says the same, in-place
methods none where that of the method does.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torchgen  # type: ignore[import-not-found]
from torchgen.gen import parse_native_yaml  # type: ignore[import-not-found]
from torchgen.packaged.autograd import gen_python_functions as bindings  # type: ignore[import-not-found]

import pullback
from pullback._op import asked
from pullback._op.declare import functions, registry
from pullback._op.parser import of_method
from pullback.ops import load_all

FILE = Path(pullback.__file__).parent / "_op" / "signatures.txt"
PACKAGED = Path(torchgen.__file__).parent / "packaged"
WORDS = {
    "Scalar": "Number",
    "int64_t": "int",
    "SymInt": "symint",
    "double": "float",
    "TensorList": "Tensors",
    "IntArrayRef": "ints",
    "SymIntArrayRef": "symints",
    "ArrayRef<double>": "floats",
    "ArrayRef<Scalar>": "Numbers",
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "device",
    "MemoryFormat": "memory_format",
    "c10::string_view": "str",
    "std::string": "str",
}
"""Torch's types, in one word each; those not named here are called as in torch."""
OPERANDS = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide")
"""Functions that also take numbers for tensors: their tensors are called operands."""


IN_PYTHON = {"cdist": ("int? compute_mode", "str? compute_mode")}
"""What functions that torch writes in Python take, where they translate it for the one that is written in C."""


BY_HAND = ["nonzero(Tensor input, *, bool as_tuple=False, Tensor out=None)"]
"""Functions whose bindings torch does not generate."""


def short(signature: str) -> str:
    """A signature as the file has it."""
    inside, _, flag = signature[signature.index("(") + 1 :].rpartition(")")
    parts = []
    operands = signature.partition("(")[0].removesuffix("_") in OPERANDS
    for part in inside.split(", "):
        kind, _, rest = part.partition(" ")
        name, size, optional = re.fullmatch(r"(.*?)(\[\d*\])?(\?)?", kind).groups()  # type: ignore[union-attr]
        if operands and part != "Tensor out=None" and name == "Tensor":
            name = "Operand"
        parts.append(f"{WORDS.get(name, name)}{size or ''}{optional or ''} {rest}".strip())
    return f"({', '.join(parts)})" + ("!" if flag else "")


def collected() -> dict[str, list[str]]:
    """The overloads of every function and method torch generates, and of the methods it writes by hand."""
    native = PACKAGED / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml")).native_functions
    public = [f for f in parsed if bindings.should_generate_py_binding(f)]
    found: dict[str, list[str]] = {}
    wanted = {False: (None, "nn", "fft", "linalg", "special"), True: (None,)}
    for method, modules in wanted.items():
        variant = bindings.Variant.method if method else bindings.Variant.function
        pairs = bindings.load_signatures(public, str(PACKAGED / "autograd" / "deprecated.yaml"), method=method)

        def belongs(f: object, modules: tuple[str | None, ...] = modules, variant: object = variant) -> bool:
            return f.python_module in modules and variant in f.variants  # type: ignore[attr-defined]

        for name, overloads in bindings.group_filter_overloads(pairs, belongs).items():
            texts = [group.signature.signature_str(symint=True) for group in bindings.group_overloads(overloads)]
            found["." * method + str(name)] = [short(text) for text in texts]
    for text in BY_HAND:
        found[text.partition("(")[0]] = [short(text)]
    by_hand = (PACKAGED / "autograd" / "templates" / "python_variable_methods.cpp").read_text()
    for text in re.findall(r'"(\w+\([^"]*\))"', by_hand):
        found.setdefault("." + text.partition("(")[0], []).append(short(text))
    return found


def known() -> set[str]:
    """The names errors of this library may carry, methods with a dot."""
    load_all()
    declared = [*registry.values(), *functions.values()]
    names = {f.call.__name__.lstrip("_") for f in declared} | {f"{f.name}_" for f in registry.values() if f.inplace}
    called = {name for steps in asked.table().values() for step in steps for name in step.co_names}
    return names | {f".{name}" for name in names} | called


def table() -> str:
    """The file."""
    found, names = collected(), known()
    lines = []
    for name, overloads in sorted(found.items()):
        if name not in names:
            continue
        plain = name.removesuffix("_")
        if name.startswith(".") and overloads == [of_method(text) for text in found.get(name[1:], ())]:
            continue
        if name.endswith("_") and name.startswith(".") and overloads == found.get(plain):
            continue
        lines.append(name + " ".join(overloads).replace(*IN_PYTHON.get(name, ("", ""))) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    text = table()
    if "--check" in sys.argv:
        sys.exit(0 if FILE.read_text() == text else f"{FILE} is not what torch says: run docs/tools/signatures.py")
    FILE.write_text(text)
