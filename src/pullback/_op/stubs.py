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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback import _dtype, _tensor
from pullback._op.declare import Op, spaces
from pullback._op.missing import MISSING
from pullback._op.signatures import NUMPY_NAMES, Rare
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
}
"""The names an annotation may use in a stub; one that uses another becomes Any."""
SAME = {"Array": "Tensor", "list[Array]": "Sequence[Tensor]", "list[Array | None]": "Sequence[Tensor | None]"}
HEADER = '''"""Written by `python -m pullback._op.stubs` from the registry of ops; do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pullback import _dtype
from pullback._layout import Size
from pullback._tensor import Tensor

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


def real_signature(function: Any) -> inspect.Signature:
    """The signature users meet: ops and functions get theirs with their code, on first call."""
    names = getattr(function, "__globals__", {})
    found = inspect.signature(names["COMPILE"]() if "COMPILE" in names else function)
    return found if names.get("RARE") is None else with_rare_keywords(found, names["RARE"])


def with_rare_keywords(found: inspect.Signature, rare: Rare) -> inspect.Signature:
    """A signature with `axis`, `keepdims` and `out` in place of the keywords it collects."""
    made: list[inspect.Parameter] = []
    for parameter in reversed(
        [p for p in found.parameters.values() if p.kind is not p.VAR_KEYWORD and p.name != "more"]
    ):
        # A required dim that may come as axis can only be left out where nothing required follows.
        last = all(p.kind is p.KEYWORD_ONLY or p.default is not p.empty for p in made)
        if parameter.default is MISSING and not (parameter.name == "dim" and last and rare.names):
            parameter = parameter.replace(default=parameter.empty)
        made.insert(0, parameter)
    aliases = [alias for alias in ("axis", "keepdims") if NUMPY_NAMES[alias] in rare.names]
    if "axis" in aliases and next(p.default for p in made if p.name == "dim") is inspect.Parameter.empty:
        aliases.remove("axis")
    made += [inspect.Parameter(alias, inspect.Parameter.KEYWORD_ONLY, default=MISSING) for alias in aliases]
    if rare.out:
        made.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return found.replace(parameters=made)


def shown_parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters users meet; an in-place function takes those of its op, without `out`."""
    parameters = real_signature(function).parameters
    if isinstance(function.op, Op) and "args" in parameters:
        plain = real_signature(function.op.call).parameters
        return [parameter for name, parameter in plain.items() if name != "out"]
    return list(parameters.values())


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
    parts: list[str] = []
    starred = False
    for position, parameter in enumerate(shown_parameters(function)):
        name = parameter.name
        if keyword.iskeyword(name):
            continue
        own = "self" if name == "input" and "self" in types else name
        annotation = type_text(annotations.get(own, "Any")) if own in types or own in annotations else "Any"
        if method and position == 0:
            parts.append("self")
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{name}: {annotation}")
            starred = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts.append(f"**{name}: {annotation}")
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
        if isinstance(function, property):
            result = type_text(getattr(function.fget, "__annotations__", {}).get("return", "Any"))
            yield f"{indent}@property\n{indent}def {name}(self) -> {result}: ...\n", classes
            if function.fset is not None and not getattr(function.fset, "refuses", False):
                yield f"{indent}@{name}.setter\n{indent}def {name}(self, value: Any) -> None: ...\n", classes
        elif OPERATORS.fullmatch(name):
            yield f"{indent}def {name}(self, other: Any) -> Tensor: ...\n", classes
        elif getattr(function, "op", None) is not None:
            text = f"def {name}({signature_text(function, method)}) -> {result_text(function, classes)}: ..."
            yield f"{indent}{text}\n", classes
        else:
            yield f"{indent}{name}: Any\n", classes


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
    kept = {*vars(Plain), "__hash__", "__eq__", "__ne__"}
    attached = {n: v for n, v in vars(Tensor).items() if n not in own and n not in slots and n not in kept}
    return {n: v for n, v in attached.items() if not n.startswith("__annot")}


def stubs() -> dict[str, str]:
    """Every stub by the name of its file."""
    sys.modules["pullback.ops"].load_all()  # the facade has loaded it; now the registry is complete
    made = {"__init__.pyi": '"""Type stubs of what ops attach at run time."""\n'}
    for space, names in sorted(spaces.items()):
        made[f"{space.replace('.', '_')}.pyi"] = module_text(names)
    made["torch.pyi"] += "".join(f"{name}: _dtype.dtype\n" for name in _dtype.NAMES)
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
