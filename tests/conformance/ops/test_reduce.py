"""Reductions and scans over any dimensions, of arrays of any shape, layout and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pullback
from tests.conformance.both import evaluated, same
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


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "var", "std"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_all_dimensions_by_name_are_another_call_than_none(name: str, keepdim: bool) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        call = getattr(torch, name)
        positional = () if name in ("var", "std") and keepdim else ((None, keepdim) if keepdim else (None,))
        for made in (call(x), call(x, dim=None, keepdim=keepdim), call(x, *positional), getattr(x, name)(dim=None)):
            saved = ("dim", "keepdim", "correction")
            yield made.shape, type(made.grad_fn).__name__, [getattr(made.grad_fn, f"_saved_{s}", "no") for s in saved]
            yield torch.autograd.grad(made.sum(), x)

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("call", ["torch.sum(x, keepdim=True)", "x.mean(keepdim=True)", "torch.mean(x, keepdim=True)"])
def test_a_sum_of_everything_keeps_no_dimensions(call: str) -> None:
    same(lambda torch: evaluated(call, {"torch": torch, "x": torch.ones(2, 3)}))


@pytest.mark.parametrize("keepdim", [False, True])
def test_logarithms_of_sums_have_to_be_told_along_what(keepdim: bool) -> None:
    same(lambda torch: torch.logsumexp(torch.ones(2, 3), None, keepdim))


@pytest.mark.parametrize("name", ["prod", "median", "nanmedian"])
@pytest.mark.parametrize("given", [{"dim": None}, {"dim": None, "keepdim": False}, {"dim": None, "keepdim": True}])
def test_none_is_no_dimension_of_reductions_that_torch_gives_one(name: str, given: dict[str, Any]) -> None:
    for library in (torch, pullback):
        x = library.tensor([[1.0, 2.0], [3.0, 4.0]])
        with pytest.raises(TypeError, match="dim"):
            getattr(library, name)(x, **given)
        with pytest.raises(TypeError, match="dim"):
            getattr(x, name)(**given)
