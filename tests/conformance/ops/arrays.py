"""Arrays of any shape, layout and dtype, and the comparison of one call on both libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

import pullback

DTYPES = [
    "float32",
    "float64",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]
TOLERANCE = {"float16": 4e-3, "float32": 4e-5, "complex64": 4e-5, "float64": 1e-9, "complex128": 1e-9}
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]

shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def names(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


@st.composite
def arrays(draw: Any, dtypes: list[str] = DTYPES, shape: Any = shapes, special: bool = True) -> np.ndarray:
    """An array, perhaps transposed, stepped through or stretched, perhaps with nan and infinities."""
    dtype, size, seed = draw(st.sampled_from(dtypes)), draw(shape), draw(st.integers(0, 1 << 16))
    random = np.random.default_rng(seed)
    if dtype == "bool":
        made = random.random(size) < 0.5
    elif np.dtype(dtype).kind in "iu":
        made = random.integers(0 if dtype == "uint8" else -5, 6, size).astype(dtype)
    else:
        made = random.uniform(-3, 3, size)
        if np.dtype(dtype).kind == "c":
            made = made + 1j * random.uniform(-3, 3, size)
        elif special and made.size and seed % 3 == 0:
            made = np.where(random.random(size) < 0.3, random.choice(SPECIAL, size), made)
        made = made.astype(dtype)
    made = np.asarray(made)
    layout = draw(st.sampled_from(["plain", "plain", "transposed", "stepped", "stretched"]))
    if layout == "transposed":
        return made.T
    if layout == "stepped" and made.ndim:
        return made[::2]
    if layout == "stretched":
        return np.lib.stride_tricks.as_strided(made, (2, *made.shape), (0, *made.strides))
    return made


def outcome(module: Any, call: Callable[..., Any], given: list[Any]) -> Any:
    """What a call gives: arrays, or the type and text of its error."""
    values = [module.from_numpy(value) if isinstance(value, np.ndarray) else value for value in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(module, *values)
        except Exception as error:
            return error
    results = result if isinstance(result, (tuple, list)) else [result]
    return [part.detach().resolve_conj().numpy() if hasattr(part, "numpy") else part for part in results]


def agree(call: Callable[..., Any], *given: Any) -> None:
    """Assert that a call gives the same on both libraries: dtype, shape, values; or the same error."""
    expected, actual = (outcome(module, call, list(given)) for module in (torch, pullback))
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert type(expected).__name__ == type(actual).__name__, f"expected {expected!r}, got {actual!r}"
        wanted = str(expected).partition("\nException raised from")[0].rstrip()
        assert str(actual).startswith(wanted), f"expected {wanted}\ngot      {actual}"
        return
    assert len(expected) == len(actual)
    for one, other in zip(expected, actual, strict=True):
        if not isinstance(one, np.ndarray):
            assert one == other
            continue
        assert one.dtype == other.dtype and one.shape == other.shape, (one.dtype, other.dtype, one.shape, other.shape)
        tolerance = TOLERANCE.get(one.dtype.name, 0)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance, equal_nan=True)
