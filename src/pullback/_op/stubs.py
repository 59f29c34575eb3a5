"""The type stubs of the public functions and of Tensor's methods, written from the registry.

    python -m pullback._op.stubs            write them
    python -m pullback._op.stubs --check    say whether they are what the registry gives

Ops hang on `Tensor` and on the namespaces at run time, so a type checker cannot see them in the source. The stubs in
`pullback/_stubs/` tell it: one module for each namespace of `spaces`, and `tensor.pyi` with the methods.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from pullback import _dtype, _tensor
from pullback._op.declare import Op, spaces
from pullback._runtime.building import loaded
from pullback._tensor import Tensor

FOLDER = Path(__file__).resolve().parent.parent / "_stubs"
KNOWN = {
    "Any",
    "None",
    "bool",
    "bytes",
    "complex",
    "dict",
    "float",
    "int",
    "list",
    "object",
    "str",
    "tuple",
    "Callable",
    "Iterable",
    "Iterator",
    "Sequence",
    "Number",
    "Size",
    "Tensor",
    "dtype",
    "np",
    "Node",
    "RemovableHandle",
}
"""The names an annotation may use in a stub; one that uses another becomes Any."""
SAME = {"Array": "Tensor", "list[Array]": "Sequence[Tensor]", "list[Array | None]": "Sequence[Tensor | None]"}
HEADER = '''"""Written by `python -m pullback._op.stubs` from the registry of ops; do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from pullback import _dtype
from pullback._arrays.layout import Size
from pullback._tensor import Tensor
from pullback.autograd.hooks import RemovableHandle
from pullback.autograd.node import Node

Number = builtins.bool | builtins.int | builtins.float | builtins.complex
'''
OPERATORS = re.compile(r"__[ri]?(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift)__")
"""Binary operators: the other operand may be anything that turns into a tensor."""
SHADOWED = re.compile(r"\b(bool|int|float|complex|str|list|tuple|dtype)\b")
"""Types whose names are also names of ops or methods, which hide them in a stub."""


def type_text(annotation: Any) -> str:
    """An annotation as it is written in a stub."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = SAME.get(text, text.replace("Array", "Tensor"))
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    if not names <= KNOWN:
        return "Any"
    return SHADOWED.sub(lambda found: f"_dtype.{found[0]}" if found[0] == "dtype" else f"builtins.{found[0]}", text)


ONE = {
    "max": ("values", "indices"),
    "min": ("values", "indices"),
    "median": ("values", "indices"),
    "nanmedian": ("values", "indices"),
    "sort": ("values", "indices"),
}
"""Functions that give a pair of tensors along a dimension; most give one tensor for all elements otherwise."""
EITHER = {
    "__eq__": ["(self, other: Any) -> Tensor: ...  # type: ignore[override]"],
    "__ne__": ["(self, other: Any) -> Tensor: ...  # type: ignore[override]"],
    "sort": [
        "({self}, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool | None = None, "
        "out: Any = None) -> sort_along: ...",
    ],
    "nonzero": [
        "({self}, *, out: Tensor | None = None, as_tuple: Literal[False] = False) -> Tensor: ...",
        "({self}, *, as_tuple: Literal[True]) -> builtins.tuple[Tensor, ...]: ...",
    ],
    "unique": [
        "({self}, sorted: builtins.bool = True, return_inverse: Literal[False] = False, "
        "return_counts: Literal[False] = False, dim: builtins.int | None = None) -> Tensor: ...",
        "({self}, sorted: builtins.bool = True, return_inverse: builtins.bool = False, "
        "return_counts: builtins.bool = False, dim: builtins.int | None = None) -> Any: ...",
    ],
    "where": [
        "(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Any = None) -> Tensor: ...",
        "(condition: Tensor) -> builtins.tuple[Tensor, ...]: ...",
    ],
}
"""Functions whose results depend on the types of their arguments."""
EITHER |= {
    name: [
        "({self}, dim: None = None, *, out: Tensor | None = None) -> Tensor: ...",
        *(["({self}, other: Tensor, *, out: Tensor | None = None) -> Tensor: ..."] if name in ("max", "min") else []),
        f"({{self}}, dim: builtins.int, keepdim: builtins.bool = False, *, out: Any = None) -> {name}_along: ...",
    ]
    for name in ONE
    if name != "sort"
}


def either(name: str, method: bool, classes: dict[str, str]) -> Iterator[str]:
    """The overloads of a function whose result depends on its arguments."""
    if name in ONE:
        fields = "".join(f"    {field}: Tensor\n" for field in ONE[name])
        classes[f"{name}_along"] = f"class {name}_along(NamedTuple):\n{fields}"
    forms = [form.replace("{self}", "self" if method else "input: Tensor") for form in EITHER[name]]
    if method and name == "where":
        forms = ["(self, condition: Tensor, other: Tensor | Number) -> Tensor: ..."]
    for form in forms:
        yield ("@overload\n" if len(forms) > 1 else "") + f"def {name}{form}\n"


def plain_text(name: str, function: Any, method: bool) -> str:
    """The stub of what no declaration made: a function by its annotations, a number by its type."""
    if isinstance(function, (bool, int, float)):
        return f"{name}: builtins.{type(function).__name__}\n"
    if not isinstance(function, FunctionType) or name in ("__new__", "__init_subclass__", "__repr__"):
        return f"{name}: Any\n"
    signature = inspect.signature(function)
    parameters = [
        (p, "Any" if p.annotation is p.empty else type_text(p.annotation)) for p in signature.parameters.values()
    ]
    result = signature.return_annotation
    returned = "Any" if result is signature.empty else type_text(result)
    return f"def {name}({parameters_text(parameters, method)}) -> {returned}: ...\n"


def parameter_text(parameter: inspect.Parameter, annotation: str) -> str:
    """One parameter of a signature; a default that is not a plain literal is written as `...`."""
    default = ""
    if parameter.default is not inspect.Parameter.empty:
        plain = (
            parameter.default is None or type(parameter.default) in (bool, int, str) or repr(parameter.default) == "()"
        )
        default = f" = {parameter.default!r}" if plain else " = ..."
        if parameter.default is None and "None" not in annotation and annotation != "Any":
            annotation += " | None"
    return f"{parameter.name}: {annotation}{default}"


def signature_text(function: Any, method: bool) -> str:
    """The parameters of a public function, as written in a stub."""
    declared = function.op
    types = {p.name: p for p in declared.params}
    annotations = (declared.declared if isinstance(declared, Op) else declared.body).__annotations__
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        own = "self" if name == "input" and "self" in types else name
        annotation = type_text(annotations.get(own, "Any")) if own in types or own in annotations else "Any"
        parameters.append((parameter, annotation))
    return parameters_text(parameters, method)


def parameters_text(parameters: list[tuple[inspect.Parameter, str]], method: bool) -> str:
    """Parameters with their types, as written in a stub; the first of a method is self."""
    parts: list[str] = []
    starred = False
    for position, (parameter, annotation) in enumerate(parameters):
        if keyword.iskeyword(parameter.name):
            continue
        if method and position == 0:
            parts.append("self")
        elif parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}: {annotation}")
            starred = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{parameter.name}: {annotation}")
        else:
            if parameter.kind is parameter.KEYWORD_ONLY and not starred:
                parts.append("*")
                starred = True
            parts.append(parameter_text(parameter, annotation))
    return ", ".join(parts)


def result_text(function: Any, classes: dict[str, str]) -> str:
    """The type of a result; named tuples become classes of the stub."""
    declared = function.op
    if not isinstance(declared, Op):
        return type_text(declared.body.__annotations__.get("return", "Any"))
    if declared.variadic:
        return "builtins.tuple[Tensor, ...]"
    if declared.visible == 1:
        return "Tensor"
    name = f"{declared.name}_result".lstrip("_")
    fields = "".join(f"    {output}: Tensor\n" for output in declared.outputs[: declared.visible])
    classes[name] = f"class {name}(NamedTuple):\n{fields}"
    return name


def functions_of(names: dict[str, Any], method: bool, indent: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The stub of each function, with the classes its result needs."""
    for name in sorted(names):
        function = names[name]
        if not name.isidentifier() or keyword.iskeyword(name):
            continue
        classes: dict[str, str] = {}
        if name in EITHER:
            yield "".join(textwrap.indent(form, indent) for form in either(name, method, classes)), classes
        elif isinstance(function, property):
            plain = "bool" if name.startswith("is_") else "Tensor" if name in ("real", "imag", "mH") else "Any"
            result = type_text(getattr(function.fget, "__annotations__", {}).get("return", plain))
            yield f"{indent}@property\n{indent}def {name}(self) -> {result}: ...\n", classes
            if function.fset is not None and not getattr(function.fset, "refuses", False):
                yield f"{indent}@{name}.setter\n{indent}def {name}(self, value: Any) -> None: ...\n", classes
        elif OPERATORS.fullmatch(name):
            yield f"{indent}def {name}(self, other: Any) -> Tensor: ...\n", classes
        elif getattr(function, "op", None) is not None:
            text = f"def {name}({signature_text(function, method)}) -> {result_text(function, classes)}: ..."
            yield f"{indent}{text}\n", classes
        else:
            yield indent + plain_text(name, function, method), classes


def module_text(names: dict[str, Any], method: bool = False, opening: str = "") -> str:
    """A whole stub module."""
    indent = "    " if method else ""
    lines: list[str] = []
    classes: dict[str, Any] = {}
    for text, needed in functions_of(names, method, indent):
        lines.append(text)
        classes |= needed
    return HEADER + "\n" + "\n".join(classes[name] for name in sorted(classes)) + "\n" + opening + "".join(lines)


class Plain:
    """What this version of Python puts into every class."""


def attached_to_tensor() -> dict[str, Any]:
    """What stands on Tensor without standing in its class block."""
    tree = ast.parse(Path(_tensor.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    own = {node.name for node in block.body if isinstance(node, ast.FunctionDef)}
    own |= {
        t.id for node in block.body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    }
    slots = Tensor.__slots__
    kept = {*vars(Plain), "__hash__"} - {"__eq__", "__ne__"}
    attached = {n: v for n, v in vars(Tensor).items() if n not in own and n not in slots and n not in kept}
    return {n: v for n, v in attached.items() if not n.startswith("__annot")}


def late_text(modules: dict[str, str], names: dict[str, str]) -> str:
    """The stub of what a package loads when it is first named: modules, and names of modules."""
    lines = [
        f"from {package} import {path} as {name}\n"
        for name, (package, path) in sorted(
            {name: tuple(f"pullback.{path}".rsplit(".", 1)) for name, path in modules.items()}.items()
        )
    ]
    lines += [f"from pullback.{path} import {name} as {name}\n" for name, path in sorted(names.items())]
    shown = [line for line in lines if not line.split()[-1].startswith("_")]
    return HEADER.splitlines()[0] + "\n\n" + "".join(shown)


def stubs() -> dict[str, str]:
    """Every stub by the name of its file."""
    sys.modules["pullback.ops"].load_all()  # the facade has loaded it; now the registry is complete
    made = {"__init__.pyi": '"""Type stubs of what ops attach at run time."""\n'}
    for space, names in sorted(spaces.items()):
        made[f"{space.replace('.', '_')}.pyi"] = module_text(names)
    made["torch.pyi"] += "".join(f"{name}: _dtype.dtype\n" for name in _dtype.NAMES)
    facade, autograd = sys.modules["pullback"], sys.modules["pullback.autograd"]
    made["lazy.pyi"] = late_text(facade._LAZY, facade._LAZY_NAMES)
    made["autograd.pyi"] = late_text(
        {name: f"autograd.{name}" for name in autograd.MODULES},
        {name: f"autograd.{path}" for name, path in autograd.NAMES.items()},
    )
    modules = loaded("pullback.nn.modules")
    found = {name: getattr(modules, name).__module__.removeprefix("pullback.") for name in modules.__all__}
    made["nn.pyi"] = late_text({}, found)
    made["tensor.pyi"] = module_text(attached_to_tensor(), method=True, opening="class OpMethods:\n")
    return made


def main(arguments: list[str]) -> int:
    """Write the stubs, or compare them with what is there."""
    made = stubs()
    stale = [
        name for name, text in made.items() if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text
    ]
    if "--check" in arguments:
        print(
            "the stubs are up to date" if not stale else f"stale: {', '.join(stale)}; run python -m pullback._op.stubs"
        )
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(made[name])
    print(f"{len(stale)} of {len(made)} stub files written to {FOLDER.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
