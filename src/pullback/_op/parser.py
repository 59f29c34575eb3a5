"""Arguments as torch reads them: which of a function's signatures a call fits, and the error if it fits none.

Torch does this before anything else. Here it is done once a call has failed (see _op/arguments.py), so that calls
which succeed pay nothing; the signatures, in signatures.txt, are read then too.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pullback._op.overrides import overrides
from pullback._op.signatures import NUMPY_NAMES
from pullback._runtime import messages
from pullback._tensor import Tensor

Given = dict[str, Any]

WORDS = {
    "Operand": "Tensor",
    "symint": "int",
    "ints": "tuple of ints",
    "symints": "tuple of ints",
    "floats": "tuple of floats",
    "Tensors": "tuple of Tensors",
    "Numbers": "tuple of Scalars",
    "ScalarList": "tuple of Scalars",
    "dtype": "torch.dtype",
    "layout": "torch.layout",
    "device": "torch.device",
    "memory_format": "torch.memory_format",
    "Generator": "torch.Generator",
    "Storage": "torch.Storage",
    "PyObject*": "object",
}
"""What torch calls the types of the table in errors, where that is another word."""
CLASSES: dict[str, tuple[type, ...]] = {
    "float": (int, float, np.number, np.bool_),
    "Number": (int, float, complex, np.number, np.bool_),
    "int": (int, np.integer),
    "bool": (bool,),
    "str": (str,),
    "device": (int, str),
}
"""The classes whose instances a parameter takes; for the others the name of the class decides."""


class Parameter(NamedTuple):
    """One parameter of a signature."""

    kind: str
    size: int
    optional: bool
    name: str
    default: str | None
    keyword_only: bool

    def __str__(self) -> str:
        default = "" if self.default is None else f" = {self.default}"
        return f"{WORDS.get(self.kind, self.kind)} {self.name}{default}"


class Signature(NamedTuple):
    """One overload of a function."""

    params: tuple[Parameter, ...]
    hidden: bool

    def __str__(self) -> str:
        parts = [str(p) for p in self.params]
        first = next((i for i, p in enumerate(self.params) if p.keyword_only), None)
        if first is not None:
            parts.insert(first, "*")
        return f"({', '.join(parts)})"

    def least(self) -> int:
        """How many arguments it needs."""
        return sum([p.default is None for p in self.params])

    def most(self) -> int:
        """How many positional arguments it takes."""
        return sum([not p.keyword_only for p in self.params])


# ------------------------------------------------------------------ the table


def of_method(text: str) -> str:
    """A signature as the method has it: without `input`, its self, and without `out`."""
    inside, _, flag = text.removeprefix("(").rpartition(")")
    kept = [part for part in inside.split(", ") if part not in ("Tensor input", "Operand input", "Tensor out=None")]
    kept = [part for part in kept if not re.fullmatch(r"Tensors\[?\d*\]? out=None", part)]
    return f"({', '.join(kept[:-1] if kept and kept[-1] == '*' else kept)}){flag}"


@cache
def table() -> dict[str, str]:
    """The overloads of every function as text."""
    rows = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8").splitlines()
    return {row[: row.index("(")]: row[row.index("(") :] for row in rows}


@cache
def signatures(name: str, method: bool) -> tuple[Signature, ...]:
    """The overloads of a function or method in the order torch tries them; none if torch does not read it so."""
    known = table()
    if not method:
        texts = overloads(known.get(name, ""))
    else:
        for form in (f".{name}", f".{name.removesuffix('_')}"):
            if form in known:
                texts = overloads(known[form])
                break
        else:
            texts = [of_method(text) for text in overloads(known.get(name.removesuffix("_"), ""))]
    read = [parsed(text) for text in texts]
    return tuple(sorted(read, key=lambda signature: signature.hidden))


def overloads(row: str) -> list[str]:
    """The overloads in a row of the table."""
    return re.findall(r"\([^()]*\)!?", row)


def parsed(text: str) -> Signature:
    """A signature from its text."""
    params, keyword_only = [], False
    for part in text[1 : text.index(")")].split(", "):
        if part in ("", "*"):
            keyword_only = keyword_only or part == "*"
            continue
        kind, _, rest = part.partition(" ")
        name, _, default = rest.partition("=")
        word, size, optional = re.fullmatch(r"(.*?)(?:\[(\d*)\])?(\?)?", kind).groups()  # type: ignore[union-attr]
        none = bool(optional) or default == "None"
        params.append(Parameter(word, int(size or 0), none, name, default or None, keyword_only))
    return Signature(tuple(params), text.endswith("!"))


# ------------------------------------------------------------------ what a parameter takes


def is_tensor(value: Any) -> bool:
    """True for what torch takes for a tensor: one, or anything that decides itself what functions do with it."""
    return isinstance(value, Tensor) or overrides(type(value))


def is_number(value: Tensor) -> bool:
    """True for tensors that count as their number."""
    return value.dim() == 0 and not value.requires_grad


def is_real(value: Any) -> bool:
    """True for what can stand where a float is counted with."""
    return is_number(value) if isinstance(value, Tensor) else isinstance(value, CLASSES["float"])


def is_index(value: Any) -> bool:
    """True for what can stand where an integer is counted with: also for tensors of one integer."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.is_floating_point() and not value.is_complex()
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return hasattr(type(value), "__index__")


def fits(param: Parameter, value: Any, place: int) -> bool:
    """Whether a parameter, at this place in the signature, takes a value."""
    kind = param.kind
    if kind in ("Tensor", "Operand"):
        return is_tensor(value) or (kind == "Operand" and isinstance(value, CLASSES["Number"]))
    if kind in ("Number", "float", "int") and isinstance(value, Tensor):
        return is_number(value) and (kind != "int" or value._array.dtype.kind in "iu")
    if kind == "int":
        return isinstance(value, CLASSES["int"]) and not isinstance(value, bool)
    if kind == "symint":
        return is_index(value)
    if kind in ("ints", "symints"):
        if isinstance(value, (tuple, list)):
            return not value or is_index(value[0])
        return param.size > 0 and is_index(value)
    if kind in ("Tensors", "floats", "Numbers"):
        if not isinstance(value, (tuple, list)):
            return False
        if kind == "Tensors":
            for nr, item in enumerate(value):
                if not is_tensor(item):
                    found = messages.type_name(item)
                    raise TypeError(f"expected Tensor as element {nr} in argument {place}, but got {found}")
            return True
        return not value or isinstance(value[0], CLASSES["Number"])
    if kind in CLASSES and isinstance(value, CLASSES[kind]):
        return kind != "device" or not isinstance(value, bool)
    if kind in ("dtype", "device", "layout", "memory_format", "Generator"):
        return type(value).__name__ == kind or (kind == "dtype" and value in (float, int, bool, complex))
    if kind == "Storage":
        return type(value).__name__.endswith(kind)
    return kind not in CLASSES


# ------------------------------------------------------------------ a call


def refusal(name: str, method: bool, args: tuple[Any, ...], kwargs: Given) -> TypeError | None:
    """Torch's error for a call whose arguments fit no signature; None if they fit one, or torch has none."""
    known = signatures(name, method)
    if not known:
        return None
    try:
        errors = []
        for signature in known:
            error = misfit(name, signature, args, kwargs)
            if error is None:
                return unpackable(name, signature, args, kwargs)
            errors.append(error)
    except TypeError as error:  # an item of a list of tensors
        return error
    if len(known) == 1:
        return errors[0]
    count = len(args) + len(kwargs)
    plausible = [nr for nr, s in enumerate(known) if s.least() <= count <= len(s.params) and not s.hidden]
    return errors[plausible[0]] if len(plausible) == 1 else no_overload(name, known, args, kwargs)


def misfit(name: str, signature: Signature, args: tuple[Any, ...], kwargs: Given) -> TypeError | None:
    """Why arguments do not fit a signature; None if they do."""
    most, place, left = signature.most(), 0, dict(kwargs)
    sizes = most == 1 and signature.params[0].kind in ("ints", "symints")  # as in x.view(2, 3)
    if len(args) > most and not sizes:
        return too_many(name, signature, len(args))
    for nr, param in enumerate(signature.params):
        by_keyword = place >= len(args)
        if not by_keyword:
            if param.keyword_only:
                return too_many(name, signature, len(args))
            value = args[place]
        else:
            key = next((k for k in left if k == param.name or NUMPY_NAMES.get(k) == param.name), None)
            if key is None:
                if param.default is None:
                    return missing(name, signature.params[nr:])
                continue
            value = left.pop(key)
        if not (value is None and param.optional) and not fits(param, value, nr):
            if sizes and place == 0 and not by_keyword and is_index(args[0]):
                place = len(args)
                continue
            return wrong(name, param, value, None if by_keyword else place)
        place += not by_keyword
    for key in left:
        if any([key == p.name for p in signature.params]):
            return TypeError(f"{name}() got multiple values for argument '{key}'")
        return TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    return None


def too_many(name: str, signature: Signature, given: int) -> TypeError:
    """The error for more positional arguments than a signature has."""
    least, most = signature.least(), signature.most()
    taken = f"from {least} to {most}" if least != most else f"{most}"
    plural = "" if least == most == 1 else "s"
    return TypeError(
        f"{name}() takes {taken} positional argument{plural} but {given} {'was' * (given == 1) or 'were'} given"
    )


def missing(name: str, params: tuple[Parameter, ...]) -> TypeError:
    """The error for arguments that are not given; the plural is torch's."""
    names = [f'"{p.name}"' for p in params if p.default is None]
    plural = "arguments" if len(names) == 1 else "argument"
    return TypeError(f"{name}() missing {len(names)} required positional {plural}: {', '.join(names)}")


def wrong(name: str, param: Parameter, value: Any, place: int | None) -> TypeError:
    """The error for an argument of a wrong type; without a place it came by keyword."""
    wanted = WORDS.get(param.kind, param.kind)
    if place is None:
        return TypeError(f"{name}(): argument '{param.name}' must be {wanted}, not {messages.type_name(value)}")
    start = f"{name}(): argument '{param.name}' (position {place + 1}) must be {wanted}"
    if param.kind in ("ints", "symints") and isinstance(value, (tuple, list)):
        return TypeError(f"{start}, but found element of type {messages.type_name(value[0])} at pos 0")
    return TypeError(f"{start}, not {messages.type_name(value)}")


def unpackable(name: str, signature: Signature, args: tuple[Any, ...], kwargs: Given) -> TypeError | None:
    """The error for an item of a list of integers that is none: of those torch looks only at the first at first."""
    for nr, param in enumerate(signature.params):
        if param.kind not in ("ints", "symints"):
            continue
        value = args[nr] if nr < len(args) and not param.keyword_only else kwargs.get(param.name)
        if signature.most() == 1 and nr == 0 and args and not isinstance(value, (tuple, list)):
            value = args
        for position, item in enumerate(value if isinstance(value, (tuple, list)) else (), 1):
            if not is_index(item) and not (position > 1 and isinstance(item, bool)):  # as torch has it
                found = messages.type_name(item)
                return TypeError(
                    f"{name}(): argument '{param.name}' failed to unpack the object at pos {position} with error "
                    f'"type must be tuple of ints,but got {found}"'
                )
    return None


# ------------------------------------------------------------------ calls that fit none of several


def no_overload(name: str, known: tuple[Signature, ...], args: tuple[Any, ...], kwargs: Given) -> TypeError:
    """The error that lists the overloads, and says of some why they do not fit."""
    kinds = [messages.type_name(value) for value in args]
    keywords = {key: messages.type_name(value) for key, value in reversed(kwargs.items())}  # the order of torch's
    got = ", ".join([*kinds, *(f"{key}={kind}" for key, kind in keywords.items())])
    said = f"{name}() received an invalid combination of arguments - got ({got}{lone(args, kwargs)}), but expected"
    shown = [signature for signature in known if not signature.hidden]
    if len(shown) == 1:
        return TypeError(f"{said} {shown[0]}")
    lines = [f"{said} one of:"]
    for signature in shown:
        lines.append(f" * {signature}")
        # Torch reads its own text: a star counts as an argument, and one with a default has the default for a name.
        parts = str(signature)[1:-1].split(", ")
        wanted = [part.rpartition(" ")[::2] for part in parts]
        if len(parts) != len(args) + len(kwargs):
            continue
        unknown = [key for key in keywords if key not in [called for _, called in wanted[len(args) :]]]
        if unknown:
            lines.append(f"      didn't match because some of the keywords were incorrect: {', '.join(unknown)}")
            continue
        marks = [marked(kind, value, "") for (kind, _), value in zip(wanted, args, strict=False)]
        marks += [marked(kind, kwargs[called], f"{called}=") for kind, called in wanted[len(args) :]]
        types = ", ".join(marks) + lone(args, kwargs)
        lines.append(f"      didn't match because some of the arguments have invalid types: ({types})")
    return TypeError("\n".join(lines) + "\n")


def lone(args: tuple[Any, ...], kwargs: Given) -> str:
    """What torch writes behind keywords that follow nothing."""
    return ", " if kwargs and not args else ""


def marked(wanted: str, value: Any, keyword: str) -> str:
    """The type of a value, between exclamation marks unless its name is the word of the signature."""
    kind = messages.type_name(value)
    if kind == wanted or (wanted == "float" and kind == "int"):
        return f"{keyword}{kind}"
    if isinstance(value, (tuple, list)):
        items = ", ".join([messages.type_name(item) for item in value])
        alone = "," if len(value) == 1 else ""
        kind = f"list of [{items}]" if isinstance(value, list) else f"tuple of ({items}{alone})"
    return f"!{keyword}{kind}!"
