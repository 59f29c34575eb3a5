"""Run one program on torch and on pullback and compare what it returns, raises and warns about.

A program is a function of the module: `def program(torch): ...`. What it returns is described as plain data: tensors
by values, dtype, shape and whether they require gradients; nodes by their names; exceptions by type and text.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch

import pullback

ADDRESS = re.compile(r"0x[0-9a-f]+")
ORIGIN = re.compile(r"(\nException raised from| \(Triggered internally at).*", re.DOTALL)
"""What torch appends about its own source."""
ONCE = (
    "Casting complex values to real discards",
    "ComplexHalf support is experimental",
    "`torch.jit.script` is deprecated",
    "The use of `x.T` on tensors of dimension other than 2",
    "where received a uint8 condition tensor",
)
"""Warnings given once per process by Python code, so they depend on what ran before: ours are tested by themselves."""


class Raised:
    """An exception a program met on the way: its type and text."""

    def __init__(self, error: BaseException) -> None:
        self.kind, self.text = type(error).__name__, str(error)


def evaluated(source: str, names: dict[str, Any]) -> Any:
    """`eval`, for calls whose errors tell how they are written: the source can be looked up as that of a file can."""
    filename = f"<{source}>"
    linecache.cache[filename] = (len(source), None, [source], filename)
    return eval(compile(source, filename, "eval"), names)


def attempt(action: Callable[[], Any]) -> Any:
    """What `action` returns, or the exception it raises, for programs that go on after an error."""
    try:
        return action()
    except Exception as error:
        return Raised(error)


def describe(module: ModuleType, value: Any) -> Any:
    """A result as plain data."""
    if isinstance(value, module.Tensor):
        dtype = str(value.dtype)
        plain = value.detach()
        values = plain.tolist()
        return ["tensor", dtype, list(value.shape), values, value.requires_grad]
    if isinstance(value, Raised):
        return ["raised", value.kind, value.text]
    if isinstance(value, dict):
        return {str(key): describe(module, part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(module, part) for part in value]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    if hasattr(value, "next_functions"):
        return type(value).__name__
    if isinstance(value, type):
        return value.__name__
    return str(value)


def outcome(module: ModuleType, program: Callable[[Any], Any]) -> dict[str, Any]:
    """Everything seen of one run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module.set_warn_always(True)  # else what is said once depends on what ran before
        try:
            result = describe(module, program(module))
        except Exception as error:
            result = ["raised", type(error).__name__, str(error)]
        finally:
            module.set_warn_always(False)
    return {
        "result": result,
        "warnings": [[w.category.__name__, str(w.message)] for w in caught if not str(w.message).startswith(ONCE)],
    }


def difference(expected: Any, actual: Any, place: str = "") -> str | None:
    """Where two descriptions first differ; texts of ours may go on where torch's ends."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        if list(expected) != list(actual):
            return f"{place}: expected the keys {list(expected)}, got {list(actual)}"
        pairs = [(f"{place}.{key}", expected[key], actual[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return f"{place}: expected {expected}, got {actual}"
        if expected[:2] == ["tensor", "torch.float32"] == actual[:2] and expected[2] == actual[2]:
            return rounding_difference(expected, actual, place)
        if expected[:1] == ["raised"] == actual[:1]:
            if expected[1] != actual[1]:
                return f"{place}: expected {expected}, got {actual}"
            return text_difference(expected[2], actual[2], place)
        pairs = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip(expected, actual, strict=True))]
    elif isinstance(expected, (float, complex)) and isinstance(actual, (float, complex)):
        same = np.isclose(actual, expected, rtol=2e-5, atol=1e-6, equal_nan=True)
        return None if same else f"{place}: expected {expected}, got {actual}"
    elif isinstance(expected, str) and isinstance(actual, str):
        return text_difference(expected, actual, place)
    else:
        same = type(expected) is type(actual) and expected == actual
        return None if same else f"{place}: expected {expected!r}, got {actual!r}"
    for where, a, b in pairs:
        found = difference(a, b, where)
        if found:
            return found
    return None


def rounding_difference(expected: list[Any], actual: list[Any], place: str) -> str | None:
    """Floats may differ by rounding, measured against the largest of their tensor: sums cancel."""
    a, b = (np.asarray(value[3], dtype=np.float64) for value in (expected, actual))
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    off = ~np.isclose(b, a, rtol=2e-5, atol=max(1e-6, 3e-5 * scale), equal_nan=True)
    if off.any():
        at = tuple(int(i) for i in np.argwhere(off)[0])
        return f"{place}[3]{list(at)}: expected {a[at]}, got {b[at]}"
    return None if expected[4:] == actual[4:] else f"{place}[4]: expected {expected[4]}, got {actual[4]}"


def text_difference(expected: str, actual: str, place: str) -> str | None:
    """Texts agree if ours starts with torch's, addresses and torch's C++ stack apart."""
    wanted = ADDRESS.sub("0x", ORIGIN.sub("", expected)).rstrip()
    got = ADDRESS.sub("0x", actual).rstrip()
    if got == wanted or (wanted and got.startswith(wanted)):
        return None
    return f"{place}:\n  expected {wanted!r}\n  got      {got!r}"


def same(program: Callable[[Any], Any]) -> None:
    """Assert that a program does the same on torch and on pullback."""
    expected = outcome(torch, program)
    actual = outcome(pullback, program)
    found = difference(expected, actual)
    assert found is None, found


def on_both(program: Callable[[Any], Any]) -> Callable[[], None]:
    """A test from a program: its name stays, its result is compared."""

    def test() -> None:
        same(program)

    test.__name__, test.__doc__, test.__module__ = program.__name__, program.__doc__, program.__module__
    return test
