"""TracedNumber: a float that tells a recorder what is computed of it.

A number that `item()` gave, or an argument that changes from call to call, is no part of a program: the program
computes it anew. Arithmetic is noted as steps, comparisons as branches (the program is for their outcome), and an op
takes the number as it takes an array. Whoever looks at the number in another way is answered too: the program is then
for that number alone, if it is an argument, and of no use otherwise.

NumPy asks `__float__` or `__array_ufunc__` of whatever is not exactly a float. Code in C that takes a float as it is
(`math.sqrt`, `"%f" % x`, Decimal) asks nobody: `unseen_by` finds it by the calls and names in the code that ran.
"""

from __future__ import annotations

import operator
import re
from types import ModuleType
from typing import Any

import numpy as np

EXACT = (float, int, bool)
"""What numbers are computed with, step by step."""
FORMATS = re.compile(r"%[-+ #0-9.*]*[diouxXeEfFgGc]")
UNASKING = {"decimal", "_decimal", "datetime", "ctypes", "_ctypes", "array", "struct", "json", "_json", "gmpy2"}
"""Modules with classes that take the value of a float without asking it."""


def exact(value: Any) -> Any:
    """The plain number."""
    return float.__float__(value) if type(value) is TracedNumber else value


class TracedNumber(float):
    """A float, its slot in a program, and who records."""

    __slots__ = ("__weakref__", "given", "recorder", "slot")

    recorder: Any
    slot: Any
    given: bool
    """Whether it depends on nothing but arguments."""

    def read(self, how: str) -> float:
        """The number itself, for somebody whom the recorder cannot follow."""
        recorder = self.recorder
        if recorder is not None:
            recorder.number_read(self, how)
        return float.__float__(self)

    def in_dtype(self, dtype: Any) -> Any:
        """The number as an operand beside arrays of a dtype."""
        if self.recorder is None:
            return as_operand(exact(self), dtype)
        return self.recorder.operand_of(self, dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return float, (self.read("pickle"),)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [one.read(f"np.{ufunc.__name__}()") if type(one) is TracedNumber else one for one in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self


def as_operand(value: float, dtype: Any) -> Any:
    """A number as an array without dimensions."""
    return np.asarray(value).astype(dtype)


def computing(name: str, reflected: bool = False) -> Any:
    """An operation of two numbers."""
    function = getattr(operator, name)
    plain = getattr(float, f"__{'r' if reflected else ''}{name.strip('_')}__")

    def method(self: TracedNumber, other: Any, *modulus: Any) -> Any:
        if modulus or isinstance(other, np.generic):
            return plain(self.read(f"{name}()"), exact(other), *modulus)
        if type(other) is not TracedNumber and type(other) not in EXACT:
            return NotImplemented
        made = plain(exact(self), exact(other))
        recorder = self.recorder or getattr(other, "recorder", None)
        if recorder is None or made is NotImplemented:
            return made
        if type(made) is not float:  # the root of a negative number is complex
            self.read(f"{name}()")
            return made
        return recorder.number_made(function, (other, self) if reflected else (self, other), made)

    return method


def comparing(name: str) -> Any:
    """A comparison."""
    function, plain = getattr(operator, name), getattr(float, f"__{name}__")

    def method(self: TracedNumber, other: Any) -> Any:
        if isinstance(other, np.generic):
            return plain(self.read(f"{name}()"), other)
        if type(other) is not TracedNumber and type(other) not in EXACT:
            return NotImplemented
        made = plain(exact(self), exact(other))
        recorder = self.recorder or getattr(other, "recorder", None)
        return made if recorder is None else recorder.branch(function, (self, other), made)

    return method


def unary(name: str) -> Any:
    """An operation of one number."""
    function, plain = getattr(operator, name), getattr(float, f"__{name}__")

    def method(self: TracedNumber) -> Any:
        made = plain(exact(self))
        return made if self.recorder is None else self.recorder.number_made(function, (self,), made)

    return method


def reading(name: str) -> Any:
    """Another method of floats."""
    plain = getattr(float, name)
    how = f"{name.strip('_')}()"
    return lambda self, *args: plain(self.read(how), *args)


def truth(self: TracedNumber) -> bool:
    """`if number:`"""
    made = bool(exact(self))
    return made if self.recorder is None else self.recorder.branch(operator.truth, (self,), made)  # type: ignore[no-any-return]


def rounded(self: TracedNumber, digits: Any = None) -> Any:
    """`round(number, digits)`"""
    if self.recorder is None or type(digits) is not int:
        return round(self.read("round()"), digits)
    return self.recorder.number_made(round, (self, digits), round(exact(self), digits))


for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(TracedNumber, f"__{name}__", computing(name))
    setattr(TracedNumber, f"__r{name}__", computing(name, reflected=True))
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(TracedNumber, f"__{name}__", comparing(name))
for name in ("neg", "pos", "abs"):
    setattr(TracedNumber, f"__{name}__", unary(name))
for name in ("__float__", "__int__", "__trunc__", "__floor__", "__ceil__", "__str__", "__repr__", "__format__",
             "__hash__", "__divmod__", "__rdivmod__", "__getnewargs__", "as_integer_ratio", "is_integer", "hex",
             "conjugate"):  # fmt: skip
    setattr(TracedNumber, name, reading(name))
for name in ("real", "imag"):
    setattr(TracedNumber, name, property(lambda self, name=name: getattr(self.read(name), name)))
TracedNumber.__bool__ = truth  # type: ignore[method-assign]
TracedNumber.__round__ = rounded  # type: ignore[method-assign, assignment]
TracedNumber.__complex__ = lambda self: complex(self.read("complex()"))  # type: ignore[attr-defined]


def asks_for_class(code: Any) -> bool:
    """Whether code may tell a number that tells from a float: `type(x) is float`."""
    return "type" in code.co_names and "float" in code.co_names


def unseen_by(ran: dict[Any, dict[str, Any]]) -> str:
    """Whether code may have taken the value of a float without asking it, in words."""
    for code, space in ran.items():
        texts = code.co_consts if code.co_name == "<lambda>" else code.co_consts[1:]  # the first one documents it
        if any([type(value) is str and FORMATS.search(value) for value in texts]):
            return f"a format with % in {code.co_name}"
        for name in code.co_names:
            value = space.get(name)
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(home, str) and home.partition(".")[0] in UNASKING:
                return f"{home} in {code.co_name}"
    return ""
