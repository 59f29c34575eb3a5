"""Descriptions of results as plain data, and the first difference between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.library import Library, dtype_name

# (relative, absolute), by the precision of the expected values.
TOLERANCES = {
    "float64": (1e-8, 1e-9), "complex128": (1e-8, 1e-9),
    "float32": (3e-5, 1e-5), "complex64": (3e-5, 1e-5),
    "float16": (2e-3, 1e-3),
}  # fmt: skip
# Each differentiation adds rounding errors of its own.
LOOSER = {"grad": 10.0, "grad_complex": 10.0, "gradgrad": 100.0, "forward": 10.0}


def describe(library: Library, value: Any, of_tensor: Callable[[Any], Any]) -> Any:
    """The same nesting with every tensor replaced by `of_tensor(tensor)`; tuples and lists become lists."""
    if library.is_tensor(value):
        return of_tensor(value)
    if isinstance(value, dict):
        return {str(key): describe(library, part, of_tensor) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(library, part, of_tensor) for part in value]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    return dtype_name(value)


def structure(library: Library, value: Any) -> str:
    """How a result is built: `Tensor`, `tuple(Tensor, Tensor)`, `sort(values=Tensor, indices=Tensor)`, `int`."""
    if library.is_tensor(value):
        return "Tensor"
    if isinstance(value, dict):
        return "dict(" + ", ".join(f"{key}={structure(library, part)}" for key, part in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        parts = [structure(library, part) for part in value]
        fields = getattr(type(value), "__match_args__", ())
        if len(fields) == len(parts) and fields:
            parts = [f"{field}={part}" for field, part in zip(fields, parts)]
        return f"{type(value).__name__}({', '.join(parts)})"
    return type(value).__name__


def difference(expected: Any, actual: Any, looser: float = 1.0, place: str = "") -> str | None:
    """Say where two descriptions first differ, or None: numbers within tolerance, everything else exactly."""
    if isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray):
        return _array_difference(expected, actual, looser, place)
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(expected) != len(actual):
            return f"{place}expected {_short(expected)}, got {_short(actual)}"
        for position, (one, other) in enumerate(zip(expected, actual)):
            found = difference(one, other, looser, f"{place}[{position}] ")
            if found:
                return found
        return None
    if isinstance(expected, dict) and isinstance(actual, dict):
        if list(expected) != list(actual):
            return f"{place}expected the keys {list(expected)}, got {list(actual)}"
        return difference(list(expected.values()), list(actual.values()), looser, place)
    numbers = (float, complex)
    if isinstance(expected, numbers) and isinstance(actual, numbers) and type(expected) is type(actual):
        return _array_difference(np.array(expected), np.array(actual), looser, place)
    if type(expected) is type(actual) and expected == actual:
        return None
    return f"{place}expected {_short(expected)}, got {_short(actual)}"


def _array_difference(expected: np.ndarray, actual: np.ndarray, looser: float, place: str) -> str | None:
    if expected.shape != actual.shape:
        return f"{place}expected shape {expected.shape}, got {actual.shape}"
    relative, absolute = TOLERANCES.get(str(expected.dtype), (0.0, 0.0))
    if not relative:
        wrong = expected != actual
    else:
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(actual, expected, relative * looser, absolute * looser, equal_nan=True)
            wrong &= ~(np.isnan(expected) & np.isnan(actual))
    if not wrong.any():
        return None
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    many = f" ({int(wrong.sum())} of {wrong.size} differ)" if wrong.size > 1 else ""
    return f"{place}at {where}: expected {expected[where]}, got {actual[where]}{many}"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_short(part) for part in value) + "]"
    text = repr(value)
    return text if len(text) <= 300 else text[:297] + "..."
