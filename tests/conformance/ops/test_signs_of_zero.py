"""Zeros have the sign torch gives them: quotients, roots and angles tell the two apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pullback

FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SHAPES = [(), (1,), (5,), (1, 4), (3, 1), (2, 3, 4), (40, 3), (7, 300), (3000,), (2, 700, 9)]
"""Small ones, which builtins take, and those that rows and columns of vectors do."""


def zeros(module: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """Zeros of both signs, in rows of which some have no other sign than the negative one."""
    signs = np.where(np.arange(int(np.prod(shape))) % 7 > 5, 0.0, -0.0)
    return module.tensor(signs.reshape(shape)).to(getattr(module, dtype))


def parts(module: Any, tensor: Any) -> list[Any]:
    """The signs of all elements, of both parts where they are complex."""
    split = [tensor.real, tensor.imag] if tensor.is_complex() else [tensor]
    return [module.signbit(part).numpy() for part in split]


def assert_same_signs(program: Callable[[Any], Any]) -> None:
    """A program makes zeros of the same signs, again and again: what is called often is compiled."""
    wanted = parts(torch, program(torch))
    for _ in range(3):
        for one, other in zip(wanted, parts(pullback, program(pullback)), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_running_sum_begins_with_zero(dtype: str, shape: tuple[int, ...]) -> None:
    for dim in range(max(len(shape), 1)):
        assert_same_signs(lambda module, dim=dim: zeros(module, dtype, shape).cumsum(dim))
        assert_same_signs(lambda module, dim=dim: zeros(module, dtype, shape).cumsum_(dim))
        assert_same_signs(lambda module, dim=dim: zeros(module, dtype, shape).cumprod(dim))


@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_the_gradient_of_a_running_sum_begins_with_zero(shape: tuple[int, ...]) -> None:
    def gradient(module: Any) -> Any:
        x = zeros(module, "float32", shape).requires_grad_()
        return module.autograd.grad(x.cumsum(0), x, zeros(module, "float32", shape))[0]

    assert_same_signs(gradient)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("ends", [(-1, -0.0), (-0.0, -0.0), (0.0, -0.0), (-0.0, 1), (2.5, -0.0), (-0.0, -1), (-1, 1)])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 9, 20])
def test_evenly_spaced_numbers_end_in_the_zero_they_are_given(steps: int, ends: Any, dtype: str) -> None:
    made = [parts(module, module.linspace(*ends, steps, dtype=getattr(module, dtype))) for module in (torch, pullback)]
    np.testing.assert_array_equal(*made)
