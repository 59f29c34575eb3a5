"""Reductions and scans over any dimensions, of arrays of any shape, layout and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conformance.ops.arrays import DTYPES, agree, arrays, names

WHOLE = names("all amax amin any argmax argmin count_nonzero max mean median min nansum norm prod std sum var")
SEVERAL = names("all amax amin any count_nonzero logsumexp mean nansum norm std sum var")
ONE = names("all amax amin any argmax argmin count_nonzero max mean min prod sum cumsum cumprod cummax cummin softmax")
ORDERED = ["amax", "amin", "argmax", "argmin", "max", "min", "median", "cummax", "cummin", "nansum"]
WITHOUT_HALF = [dtype for dtype in DTYPES if dtype != "float16"]  # torch adds halves in an order of its own

REAL = ["float32", "float64", "int64", "int32", "uint8"]


@st.composite
def calls(draw: Any, names: list[str]) -> tuple[str, np.ndarray]:
    """A function and an array it takes: where two things are wrong at once, libraries differ in what they say first."""
    name = draw(st.sampled_from(names))
    if name == "softmax":
        return name, draw(arrays(["float32", "float64"]))
    return name, draw(arrays(REAL if name in ORDERED else WITHOUT_HALF))


dims = st.one_of(st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=2).map(tuple))


@settings(max_examples=250)
@given(calls(WHOLE))
def test_reductions_of_everything_agree(call: tuple[str, np.ndarray]) -> None:
    name, x = call
    agree(lambda torch, x: getattr(torch, name)(x), x)


@settings(max_examples=400)
@given(calls(SEVERAL), dims, st.booleans())
def test_reductions_over_several_dimensions_agree(call: tuple[str, np.ndarray], dim: Any, keepdim: bool) -> None:
    name, x = call
    keywords = {} if name == "count_nonzero" else {"keepdim": keepdim}
    agree(lambda torch, x: getattr(torch, name)(x, dim=dim, **keywords), x)


@settings(max_examples=300)
@given(calls(ONE), st.integers(-3, 3))
def test_reductions_and_scans_along_one_dimension_agree(call: tuple[str, np.ndarray], dim: int) -> None:
    name, x = call
    assume(x.size or not name.startswith("cum"))  # torch does not look at the dimension then
    agree(lambda torch, x: getattr(torch, name)(x, dim=dim), x)


@settings(max_examples=100)
@given(arrays(dtypes=WITHOUT_HALF), st.sampled_from(["float64", "int64", "complex128", "float32", "bool"]))
def test_sums_in_another_dtype_agree(x: np.ndarray, dtype: str) -> None:
    agree(lambda torch, x: torch.sum(x, dtype=getattr(torch, dtype)), x)


@settings(max_examples=150)
@given(arrays(dtypes=["float32", "float64", "int64"], special=False), st.integers(-2, 2), st.booleans())
def test_sorted_values_agree(x: np.ndarray, dim: int, descending: bool) -> None:
    agree(lambda torch, x: torch.sort(x, dim=dim, descending=descending, stable=True), x)
