"""What a recording depends on, found by looking at what the function could look at; and a function that checks it.

Python code reads its arguments, its closure, globals, and attributes of all of these. `Survey` walks from there, along
the names that occur in the code that ran, notes each value it finds, and lifts each tensor. The notes serve twice:
compared after the run, they tell whether the function changed anything but tensors; compiled, they are the guard of
later runs.
"""

from __future__ import annotations

import dis
import functools
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from pullback._arrays.layout import Size, layout, memory_format
from pullback._device import device
from pullback._dtype import dtype
from pullback._tensor import Tensor
from pullback.compiler.numbers import TracedNumber
from pullback.compiler.texts import function_of
from pullback.compiler.watch import Watch, is_library
from pullback.ops.random.generator import Generator

MISSING = object()
SCALARS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), dtype, device, layout, memory_format,
           range, Enum, np.dtype, np.generic, frozenset)  # fmt: skip
FIXED = (type, types.BuiltinFunctionType, types.ModuleType, np.ufunc, types.GenericAlias, types.CodeType,
         types.WrapperDescriptorType, types.MethodDescriptorType, property, Generator)  # fmt: skip
"""What is guarded by identity: nothing of it is looked into."""
MOST = 5000
"""Values a survey looks at before it gives up."""
ASKED = {"get_last_lr", "get_lr", "state_dict"}
"""Methods of this library's objects that tell what numbers they hold."""
TABLES = ("_parameters", "_buffers", "_modules")


def is_module(value: Any) -> bool:
    """Whether a value is an nn.Module, which this layer does not know."""
    inside = getattr(value, "__dict__", None)
    return inside is not None and "_parameters" in inside and "_modules" in inside


class Unguarded(Exception):
    """Something was found of which nobody can tell whether it changes."""


class Note:
    """A value that was found, how to find it again, and how a person would call it."""

    __slots__ = ("by_identity", "getter", "key", "name", "owner", "value")

    def __init__(self, getter: str, owner: Any, key: Any, value: Any, name: str, by_identity: bool) -> None:
        self.getter, self.owner, self.key, self.value, self.name = getter, owner, key, value, name
        self.by_identity = by_identity

    def now(self) -> Any:
        """The value there now."""
        try:
            return GETTERS[self.getter](self.owner, self.key)
        except (AttributeError, KeyError, IndexError, ValueError, TypeError):
            return MISSING

    def again(self) -> Note:
        """A note of what is there now."""
        return Note(self.getter, self.owner, self.key, self.now(), self.name, self.by_identity)

    def holds(self) -> bool:
        """Whether it is still the same."""
        return same(self.now(), self.value, self.by_identity)


GETTERS: dict[str, Callable[[Any, Any], Any]] = {
    "key": lambda owner, key: owner.get(key, MISSING),
    "index": lambda owner, key: owner[key],
    "attribute": lambda owner, key: getattr(owner, key),
    "cell": lambda owner, key: owner.cell_contents,
    "length": lambda owner, key: len(owner),
    "keys": lambda owner, key: tuple(owner),
    "type": lambda owner, key: type(owner),
}


def same(now: Any, value: Any, by_identity: bool) -> bool:
    """Whether two values are the same to a program."""
    if now is value:
        return True
    if by_identity or type(now) is not type(value):
        return False
    if type(value) is float:
        return repr(now) == repr(value)
    if type(value) is complex:
        return repr(now) == repr(value)
    if type(value) is tuple:
        return len(now) == len(value) and all([a is b or (type(a) is type(b) and a == b) for a, b in zip(now, value)])
    return bool(now == value)


class Survey:
    """Everything a function could look at."""

    def __init__(self, watch: Watch, found: Callable[[Any, str], None], strict: bool = True) -> None:
        self.watch = watch
        self.strict = strict
        """Whether it is known which code ran; else all code that can be reached counts."""
        self.found = found
        """Called with each tensor and its name."""
        self.notes: list[Note] = []
        self.seen: dict[int, Any] = {}
        self.functions: dict[Any, list[Any]] = defaultdict(list)
        """Functions that were met, by their code."""
        self.tensors: dict[int, tuple[Any, str]] = {}

    def note(self, getter: str, owner: Any, key: Any, value: Any, name: str, by_identity: bool = False) -> None:
        """Note one value."""
        if type(value) is TracedNumber:
            raise Unguarded(f"{name} was given a number that the function computes")
        self.notes.append(Note(getter, owner, key, value, name, by_identity))
        if len(self.notes) > MOST:
            raise Unguarded(f"more than {MOST} values can be reached")

    def before(self, roots: list[tuple[Any, str]]) -> None:
        """Look at everything that can be reached, as far as that is possible, before it is known what runs."""
        try:
            for value, name in roots:
                self.look_into(value, name)
            while True:
                count = len(self.watch.ran)
                self.look_at_code()
                if len(self.watch.ran) == count:
                    break
        except Unguarded:
            return

    def after(self, roots: list[tuple[Any, str]]) -> None:
        """Look at what the code that ran can have looked at; raises Unguarded."""
        for value, name in roots:
            self.look_into(value, name)
        self.look_at_code()

    def visit(self, getter: str, owner: Any, key: Any, name: str) -> None:
        """Note what is found in a place, and look into it."""
        value = GETTERS[getter](owner, key)
        self.note(getter, owner, key, value, name, not isinstance(value, SCALARS) or isinstance(value, Enum))
        self.look_into(value, name)

    def look_into(self, value: Any, name: str) -> None:
        """Note what a value consists of."""
        if isinstance(value, (*SCALARS, *FIXED)) or id(value) in self.seen:
            if isinstance(value, type):
                self.look_into_class(value, name)
            return
        self.seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value, name
            self.found(value, name)
        elif isinstance(value, types.FunctionType):
            self.look_into_function(value, name)
        elif isinstance(value, types.MethodType):
            self.look_into(value.__self__, f"{name}.__self__")
            self.look_into(value.__func__, name)
        elif is_module(value):
            self.look_into_module(value, name)
        elif isinstance(value, (list, tuple, deque, Size)):
            self.look_into_sequence(value, name)
        elif isinstance(value, (dict, OrderedDict, types.MappingProxyType)):
            self.look_into_mapping(value, name)
        elif isinstance(value, set):
            if not all([isinstance(item, SCALARS) for item in value]):
                if not self.strict:
                    return
                raise Unguarded(f"{name} is a set of objects")
            self.note("keys", value, None, tuple(value), f"the elements of {name}")
        elif isinstance(value, functools.partial):
            for part in ("func", "args", "keywords"):
                self.visit("attribute", value, part, f"{name}.{part}")
        elif isinstance(value, slice):
            for part in ("start", "stop", "step"):
                self.look_into(getattr(value, part), f"{name}.{part}")
        elif hasattr(value, "__next__"):
            if self.strict:
                raise Unguarded(f"{name} is an iterator")
        elif is_library(type(value).__module__):
            self.look_into_object(value, name, everything=not ASKED.isdisjoint(self.watch.names))
            self.look_into_own(value, name)
        else:
            self.look_into_object(value, name, everything=self.watch.dynamic or not self.strict)

    def look_into_sequence(self, value: Any, name: str) -> None:
        """The items of a list or tuple, or of something made of them."""
        if not isinstance(value, tuple):
            self.note("length", value, None, len(value), f"len({name})")
        for i in range(len(value)):
            self.visit("index", value, i, f"{name}[{i}]")
        if hasattr(value, "__dict__"):
            self.look_into_object(value, name, everything=self.watch.dynamic)

    def look_into_mapping(self, value: Any, name: str) -> None:
        """The items of a dict."""
        self.note("keys", value, None, tuple(value), f"the keys of {name}")
        for key in list(value):
            if isinstance(key, Tensor):
                if not self.strict:
                    return
                raise Unguarded(f"{name} is a dict with tensors as keys")
            self.visit("key", value, key, f"{name}[{key!r}]")

    def look_into_function(self, value: types.FunctionType, name: str) -> None:
        """Code, defaults and closure of a function."""
        if is_library(value.__module__ or ""):
            return
        self.functions[value.__code__].append(value)
        if not self.strict:
            self.may_run(value)
        self.note("attribute", value, "__code__", value.__code__, f"the code of {name}", True)
        self.visit("attribute", value, "__defaults__", f"the defaults of {name}")
        self.visit("attribute", value, "__kwdefaults__", f"the defaults of {name}")
        for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                self.visit("cell", cell, None, free)
            except ValueError:  # not filled yet
                continue
        if value.__dict__:
            self.visit("attribute", value, "__dict__", f"{name}.__dict__")
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.look_into(wrapped, name)

    def may_run(self, function: types.FunctionType) -> None:
        """Count code as code that runs."""
        for code in (function.__code__, *inner_codes(function.__code__)):
            if code not in self.watch.ran:
                self.watch.ran[code] = function.__globals__
                self.watch.names.update(code.co_names)

    def look_into_class(self, value: type, name: str) -> None:
        """Methods of a class of the user's, and what its code reads of it."""
        if id(value) in self.seen or is_library(value.__module__) or value.__module__ in ("builtins", "enum", "abc"):
            return
        self.seen[id(value)] = value
        for base in value.__mro__[1:]:
            self.look_into_class(base, base.__name__)
        for key, item in list(vars(value).items()):
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            if isinstance(item, property):
                for part in (item.fget, item.fset):
                    if isinstance(part, types.FunctionType):
                        self.method(part)
            elif isinstance(item, types.FunctionType):
                self.method(item)
            elif key in self.watch.names and not key.startswith("__"):
                self.visit("attribute", value, key, f"{name}.{key}")

    def method(self, function: types.FunctionType) -> None:
        """A function of a class: looked into if it ran."""
        self.functions[function.__code__].append(function)
        if not self.strict:
            self.may_run(function)

    def look_into_module(self, value: Any, name: str) -> None:
        """Parameters, buffers, submodules, hooks and attributes of a module."""
        self.look_into_class(type(value), type(value).__name__)
        self.note("type", value, None, type(value), f"the class of {name}", True)
        inside = vars(value)
        # Layers of this library read what they like; Module itself, and code of the user's, what has a name there.
        layers = [kind for kind in type(value).__mro__[:-1] if is_library(kind.__module__)]
        everything = self.watch.dynamic or not self.strict or len(layers) > 1
        for key in list(inside):
            if key in TABLES:
                table = inside[key]
                self.note("attribute", value, key, table, f"{name}.{key}", True)
                if table and key == "_modules":
                    self.note("keys", table, None, tuple(table), f"the names in {name}.{key}")
                else:
                    self.note("length", table, None, len(table), f"len({name}.{key})")
                for one in list(table):
                    self.visit("key", table, one, f"{name}.{one}" if name else one)
            elif key.startswith("_") and "hooks" in key and isinstance(inside[key], dict):
                if inside[key]:  # else `_has_hooks` says that there are none
                    self.look_into_mapping(inside[key], f"{name}.{key}")
            elif key == "_has_hooks":
                self.note("key", inside, key, inside[key], f"{name}.{key}")
            elif everything or key in self.watch.names or key == "training":
                self.visit("key", inside, key, f"{name}.{key}")
        self.note("length", inside, None, len(inside), f"the attributes of {name}")

    def look_into_object(self, value: Any, name: str, everything: bool) -> None:
        """The attributes of an object that the code that ran may have read."""
        self.look_into_class(type(value), type(value).__name__)
        inside = getattr(value, "__dict__", None)
        names = self.watch.names
        if inside is not None:
            for key in list(inside):
                if everything or key in names:
                    self.visit("key", inside, key, f"{name}.{key}")
            if not is_library(type(value).__module__):
                self.note("keys", inside, None, tuple(inside), f"the attributes of {name}")
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for key in (slots,) if isinstance(slots, str) else slots:
                if (everything or key in names) and hasattr(value, key):
                    self.visit("attribute", value, key, f"{name}.{key}")

    def look_into_own(self, value: Any, name: str) -> None:
        """The tensors that an object of this library holds: its methods, whose names nobody knows, work with them."""
        inside = getattr(value, "__dict__", None) or {}
        for nr, group in enumerate(inside.get("param_groups", ())):
            for i, tensor in enumerate(group["params"]):
                self.look_into(tensor, f"{name}.param_groups[{nr}]['params'][{i}]")
        for key, item in list(inside.items()):
            if isinstance(item, Tensor):
                self.visit("key", inside, key, f"{name}.{key}")
            elif is_library(type(item).__module__) and not is_module(item):
                self.look_into(item, f"{name}.{key}")

    def look_at_code(self) -> None:
        """Globals and closures of the code that ran."""
        done: set[Any] = set()
        for code, space in list(self.watch.ran.items()):
            for function in self.functions.get(code, ()):
                self.look_into(function, function.__name__)
            for key in globals_of(code):
                if (id(space), key) in done or key not in space:
                    continue
                done.add((id(space), key))
                value = space[key]
                if isinstance(value, types.ModuleType):
                    self.look_into_python_module(value, key, code)
                    self.note("key", space, key, value, key, True)
                elif not (isinstance(value, types.FunctionType) and is_library(value.__module__ or "")):
                    self.visit("key", space, key, key)
        if not self.strict:
            return
        known = {inner for code in self.watch.ran for inner in inner_codes(code)}
        for code in self.watch.ran:
            free = [name for name in code.co_freevars if name != "__class__"]
            if free and code not in self.functions and code not in known:
                raise Unguarded(f"nobody knows whose closure {code.co_name} reads ({', '.join(free)})")

    def look_into_python_module(self, value: Any, name: str, code: Any) -> None:
        """What code may read of a module of the user's."""
        home = value.__name__
        if is_library(home) or home.partition(".")[0] in STANDARD:
            if not self.strict:
                return
            if home in UNFORESEEN or (home == "numpy" and "random" in code.co_names):
                raise Unguarded(f"{code.co_name} uses the module {home}, whose answers may change")
            return
        if id(value) in self.seen:
            return
        self.seen[id(value)] = value
        for key in self.watch.names & vars(value).keys():
            item = vars(value)[key]
            if not isinstance(item, types.ModuleType):
                self.visit("key", vars(value), key, f"{name}.{key}")


STANDARD = {"numpy", "math", "cmath", "operator", "itertools", "functools", "collections", "typing", "types", "random",
            "time", "datetime", "os", "sys", "builtins", "copy", "dataclasses", "enum", "abc", "re", "warnings", "gc",
            "contextlib", "scipy", "secrets", "uuid", "socket", "logging", "io", "json", "pickle", "threading",
            "weakref", "inspect", "string", "textwrap", "statistics", "fractions", "decimal", "numbers", "pathlib",
            "unittest", "pytest", "hypothesis", "torch"}  # fmt: skip
"""Modules whose contents nobody changes."""
UNFORESEEN = {"random", "time", "datetime", "secrets", "uuid", "socket", "os", "io", "logging", "pickle"}
"""Those whose functions give another answer each time, or do something outside."""


@functools.cache
def inner_codes(code: Any) -> list[Any]:
    """The code of functions defined inside of a function."""
    out = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            out += [value, *inner_codes(value)]
    return out


ATTRIBUTES = {"LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "LOAD_CONST"}
"""Instructions whose names are no globals."""


@functools.cache
def globals_of(code: Any) -> list[str]:
    """The globals that code may read: its names but those that are attributes and nothing else.

    An instruction that a later Python brings is none of ATTRIBUTES: its names are guarded in vain, not forgotten.
    """
    others = {i.argval for i in dis.get_instructions(code) if i.opname not in ATTRIBUTES}
    return [name for name in code.co_names if name in others]


# ------------------------------------------------------------------ the compiled guard


def guard_of(notes: list[Note]) -> Callable[[], bool]:
    """A function that says whether all notes hold."""
    space: dict[str, Any] = {"MISSING": MISSING, "same": same, "type": type}
    tests = []
    done: set[Any] = set()
    for i, note in enumerate(notes):
        where = (note.getter, id(note.owner), note.key if not isinstance(note.key, list) else None)
        if where in done:
            continue
        done.add(where)
        space[f"o{i}"], space[f"v{i}"] = note.owner, note.value
        key = repr(note.key) if type(note.key) in (str, int) else f"k{i}"
        found = {"key": f"o{i}.get({key}, MISSING)", "index": f"o{i}[{note.key}]", "attribute": f"o{i}.{note.key}",
                 "cell": f"o{i}.cell_contents", "length": f"len(o{i})", "keys": f"tuple(o{i})",
                 "type": f"type(o{i})"}[note.getter]  # fmt: skip
        space[f"k{i}"] = note.key
        if note.getter == "index" and isinstance(note.owner, tuple):
            continue  # cannot change
        if note.getter == "length":
            tests.append(f"{found} == {note.value}")
        elif note.getter == "keys":
            tests.append(f"{found} == v{i}")
        elif note.by_identity:
            tests.append(f"{found} is v{i}")
        elif note.value is None or note.value is True or note.value is False:
            tests.append(f"{found} is {note.value}")
        else:
            tests.append(f"((x := {found}) is v{i} or same(x, v{i}, False))")
    body = " and ".join(tests) or "True"
    source = f"def guard():\n    try: return {body}\n    except Exception: return False"
    return function_of(source, space, "guard", "<pullback guard>")  # type: ignore[no-any-return]


def first_broken(notes: list[Note]) -> Note | None:
    """A note that does not hold any more."""
    return next((note for note in notes if not note.holds()), None)


def told(note: Note) -> str:
    """What has changed, in words."""
    return f"{note.name} is {brief(note.now())}, was {brief(note.value)}"


def brief(value: Any) -> str:
    """A value in few words."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."
