"""How results of pointwise ops lie in memory when their operands lie in different orders: torch's strides."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback.kernels.compiled import room

pytestmark = pytest.mark.skipif(room("small.allocating") is None, reason="without compiled kernels NumPy decides")

NAMES = "add rsub mul sub div maximum pow atan2 eq fmod hypot xlogy isclose"


def call(name: str, library: Any, a: Any, b: Any) -> Any:
    """A function of two tensors by its name."""
    return getattr(library, name)(a, b)


OPS: dict[int, dict[str, Any]] = {
    1: {
        "sin": lambda t, a: t.sin(a),
        "add a number": lambda t, a: a + 1,
        "clone": lambda t, a: a.clone(),
        "empty_like": lambda t, a: t.empty_like(a),
        "to": lambda t, a: a.to(t.float64),
        "gelu": lambda t, a: t.nn.functional.gelu(a),
        "compare": lambda t, a: a > 0,
        "cumsum": lambda t, a: a.cumsum(0),
    },
    2: {
        **{name: partial(call, name) for name in NAMES.split()},
        "add with alpha": lambda t, a, b: t.add(a, b, alpha=2),
        "mixed dtypes": lambda t, a, b: a.double() + b,
        "where": lambda t, a, b: t.where(a > 0, b, 0.0),
        "lerp": lambda t, a, b: t.lerp(a, b, 0.5),
        "smooth_l1": lambda t, a, b: t.nn.functional.smooth_l1_loss(*t.broadcast_tensors(a, b), reduction="none"),
    },
    3: {
        "addcmul": lambda t, a, b, c: t.addcmul(a, b, c),
        "where": lambda t, a, b, c: t.where(a > 0, b, c),
        "lerp": lambda t, a, b, c: t.lerp(a, b, c),
        "clamp": lambda t, a, b, c: t.clamp(a, b, c),
    },
    4: {"a sum": lambda t, a, b, c, d: a + b * c - d},
}


@st.composite
def operands(draw: Any) -> tuple[int, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Shapes and strides of arrays that broadcast: permuted, with gaps, stretched, of fewer dimensions."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 20]), min_size=1, max_size=4))
    count = draw(st.integers(1, 4))
    found = []
    for _ in range(count):
        sizes, strides, step = list(shape), [0] * len(shape), 1
        for dim in draw(st.permutations(range(len(shape)))):
            kind = draw(st.sampled_from(["plain", "plain", "plain", "gap", "one", "stretched"]))
            if kind == "one":
                sizes[dim] = 1
            strides[dim] = 0 if kind == "stretched" and sizes[dim] > 1 else step
            step *= 1 if kind == "stretched" else max(sizes[dim], 1) * (2 if kind == "gap" else 1)
        drop = draw(st.integers(0, len(shape) - 1)) if set(sizes[:1]) == {1} else 0
        keep = min(drop, next((i for i, n in enumerate(sizes) if n != 1), len(sizes)))
        found.append((tuple(sizes[keep:]), tuple(strides[keep:])))
    return count, found


def made(library: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A tensor of a shape with strides."""
    room = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 1
    memory = library.tensor(np.linspace(0.1, 2.0, max(room, 1), dtype=np.float32))
    return memory.as_strided(shape, strides)


@settings(max_examples=400, deadline=None)
@given(operands(), st.data())
def test_pointwise_results_have_the_strides_of_torch(given_operands: Any, data: Any) -> None:
    count, layouts = given_operands
    name = data.draw(st.sampled_from(sorted(OPS[count])))
    op = OPS[count][name]
    expected, found = [op(library, *[made(library, *one) for one in layouts]) for library in (torch, pullback)]
    assert tuple(found.shape) == tuple(expected.shape)
    if expected.numel():
        wide = [(a, b) for a, b, n in zip(expected.stride(), found.stride(), expected.shape, strict=True) if n > 1]
        assert [a for a, _ in wide] == [b for _, b in wide], (name, layouts, expected.stride(), found.stride())


@pytest.mark.parametrize("size", [4, 200])
@pytest.mark.parametrize("op", ["add", "mul", "maximum", "atan2"])
def test_the_first_operand_decides_however_large_they_are(op: str, size: int) -> None:
    rows, columns = pullback.ones(size, 3), pullback.ones(3, size).t()
    for _ in range(300):  # long enough for every kernel to be made
        assert getattr(pullback, op)(columns, rows).stride() == (1, size)
        assert getattr(pullback, op)(rows, columns).stride() == (3, 1)
