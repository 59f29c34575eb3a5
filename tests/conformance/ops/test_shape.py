"""Shapes, orders of dimensions, parts and joins of arrays of any shape and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.ops.arrays import agree, arrays

some = arrays(dtypes=["float32", "int64"], special=False)
sizes = st.lists(st.integers(0, 6), max_size=4).map(tuple)
dim = st.integers(-4, 3)
dims = st.lists(dim, max_size=3).map(tuple)
part = st.one_of(
    st.integers(-4, 4),
    st.none(),
    st.builds(slice, st.none() | st.integers(-4, 4), st.none() | st.integers(-4, 4), st.none() | st.integers(1, 3)),
)


@st.composite
def keys(draw: Any, longest: int) -> tuple[Any, ...]:
    """A subscript: integers, slices and None, perhaps with one list of indices or bool and one Ellipsis among them."""
    key = draw(st.lists(part, max_size=longest))
    if draw(st.booleans()):
        selected = draw(st.lists(st.integers(-3, 3), min_size=1, max_size=3) | st.booleans())
        key.insert(draw(st.integers(0, len(key))), selected)
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), Ellipsis)
    return tuple(key)


def laid_out(call: Any) -> Any:
    """The result of a call, its strides, and whether it shares memory with its input."""

    def observed(torch: Any, x: Any, *rest: Any) -> list[Any]:
        result = call(torch, x, *rest)
        found = result if isinstance(result, (tuple, list)) else [result]
        # The stride of a dimension of size one says nothing.
        strides = [
            [step for step, n in zip(part.stride(), part.shape, strict=True) if n > 1] if part.numel() else None
            for part in found
        ]
        return [*found, str(strides), str([part._is_view() for part in found])]

    return observed


@settings(max_examples=250)
@given(st.sampled_from(["view", "reshape", "expand", "permute", "repeat"]), some, sizes)
def test_shapes_agree(name: str, x: np.ndarray, shape: tuple[int, ...]) -> None:
    agree(laid_out(lambda torch, x: getattr(x, name)(shape)), x)


@settings(max_examples=250)
@given(st.sampled_from(["unsqueeze", "squeeze", "unbind", "flip", "select"]), some, dim)
def test_functions_of_one_dimension_agree(name: str, x: np.ndarray, dim: int) -> None:
    more = (0,) if name == "select" else ()
    agree(laid_out(lambda torch, x: getattr(x, name)(dim, *more)), x)


@settings(max_examples=250)
@given(st.sampled_from(["transpose", "swapaxes", "flatten", "movedim", "diagonal"]), some, dim, dim)
def test_functions_of_two_dimensions_agree(name: str, x: np.ndarray, first: int, second: int) -> None:
    given = (0, first, second) if name == "diagonal" else (first, second)
    agree(laid_out(lambda torch, x: getattr(x, name)(*given)), x)


@settings(max_examples=150)
@given(some, dim, st.integers(-2, 5), st.integers(-2, 5))
def test_narrow_agrees(x: np.ndarray, dim: int, start: int, length: int) -> None:
    agree(laid_out(lambda torch, x: x.narrow(dim, start, length)), x)


@settings(max_examples=150)
@given(st.sampled_from(["split", "chunk", "tensor_split"]), some, st.integers(-1, 4), dim)
def test_splits_agree(name: str, x: np.ndarray, count: int, dim: int) -> None:
    agree(laid_out(lambda torch, x: getattr(x, name)(count, dim)), x)


@settings(max_examples=150)
@given(st.sampled_from(["cat", "stack"]), some, some, dim)
def test_joins_agree(name: str, x: np.ndarray, y: np.ndarray, dim: int) -> None:
    agree(lambda torch, x, y: getattr(torch, name)([x, y], dim), x, y)


@settings(max_examples=500)
@given(some, keys(3))
def test_subscripts_agree(x: np.ndarray, key: tuple[Any, ...]) -> None:
    agree(lambda torch, x: x[key], x)


@settings(max_examples=300)
@given(some, keys(2))
def test_assignments_through_subscripts_agree(x: np.ndarray, key: tuple[Any, ...]) -> None:
    def assigned(torch: Any, x: Any) -> Any:
        copy = x.clone()
        copy[key] = 7
        return copy

    agree(assigned, x)


@settings(max_examples=150)
@given(some, sizes, st.lists(st.integers(0, 4), max_size=3).map(tuple), st.integers(0, 3))
def test_windows_agree(x: np.ndarray, shape: tuple[int, ...], stride: tuple[int, ...], offset: int) -> None:
    agree(lambda torch, x: x.clone().as_strided(shape, stride, offset), x)
