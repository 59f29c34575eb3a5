"""Derivatives where a number is zero, infinite or too large to be squared, as random programs meet them."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import pullback
from tests.conformance.edges import INF, NAN

REAL = [0.0, -0.0, 1.0, -1.0, 0.5, INF, -INF, NAN, 1e30, 1e-30]
COMPLEX = [0j, 1, 1j, -1, 0.5 - 2j, complex(INF, 0), complex(0, -INF), complex(INF, INF), NAN, 1e30 + 1e30j, 1e-30]
KINDS = {"float32": REAL, "float64": REAL, "complex64": COMPLEX, "complex128": COMPLEX}


def agree(program: Any, *arrays: np.ndarray) -> None:
    """Torch's numbers to half their digits; of complex ones that are not finite only that they are not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (program(library, *map(library.from_numpy, arrays)) for library in (torch, pullback))
    their, our = (found.resolve_conj().detach().numpy() for found in (theirs, ours))
    assert our.dtype == their.dtype
    if their.dtype.kind == "c":
        finite = np.isfinite(their)
        np.testing.assert_array_equal(np.isfinite(our), finite)
        their, our = their[finite], our[finite]
    digits = 1e-3 if their.dtype.itemsize // (1 + (their.dtype.kind == "c")) == 4 else 1e-7
    np.testing.assert_allclose(our, their, rtol=digits, atol=digits)


def pairs(one: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    """Each special value beside each."""
    found = list(itertools.product(KINDS[one], KINDS[other]))
    return np.array([a for a, _ in found], one), np.array([b for _, b in found], other)


OF_TWO = {
    "addcdiv": lambda torch, x, y: torch.addcdiv(x, x, y, value=0.5),
    "lerp": lambda torch, x, y: torch.lerp(x, y, 0.3),
    "lerp by tensors": lambda torch, x, y: torch.lerp(x, y, y),
    "atan2": lambda torch, x, y: torch.atan2(x, y),
    "polar": lambda torch, x, y: torch.polar(x, y),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("moving", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("call", OF_TWO)
def test_tangents_of_two_operands_are_finite_where_torchs_are(call: str, moving: tuple[bool, ...], dtype: str) -> None:
    if "complex" in dtype and call in ("atan2", "polar"):
        return

    def program(torch: Any, x: Any, y: Any) -> Any:
        tangents = tuple(torch.ones_like(one) for one, moves in zip((x, y), moving, strict=True) if moves)

        def of(*given: Any) -> Any:
            left = list(given)
            return OF_TWO[call](torch, *[left.pop(0) if moves else one for one, moves in zip((x, y), moving)])

        inputs = tuple(one for one, moves in zip((x, y), moving, strict=True) if moves)
        return torch.func.jvp(of, inputs, tangents)[1]

    agree(program, *pairs(dtype, dtype))


@pytest.mark.parametrize("way", ["backward", "twice", "jvp"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_angle_of_a_number_whose_square_is_infinite_does_not_move(dtype: str, way: str) -> None:
    def program(torch: Any, x: Any) -> Any:
        if way == "jvp":
            return torch.func.jvp(torch.angle, (x,), (torch.ones_like(x),))[1]
        x.requires_grad_()
        (grad,) = torch.autograd.grad(torch.angle(x).sum(), x, create_graph=True)
        return grad if way == "backward" else torch.autograd.grad(grad, x, torch.ones_like(grad))[0]

    agree(program, np.array([*COMPLEX, 1e300 + 1e300j], dtype))


@pytest.mark.parametrize("way", ["backward", "twice", "jvp"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_the_slope_of_acosh_is_that_above_the_cut_for_both_zeros(dtype: str, way: str) -> None:
    def program(torch: Any, x: Any) -> Any:
        if way == "jvp":
            return torch.func.jvp(torch.acosh, (x,), (torch.ones_like(x),))[1]
        x.requires_grad_()
        (grad,) = torch.autograd.grad(torch.acosh(x), x, torch.ones_like(x), create_graph=True)
        return grad if way == "backward" else torch.autograd.grad(grad, x, torch.ones_like(grad))[0]

    agree(program, np.array([complex(part, zero) for part in (0.0, 0.5, -3.0, 2.0) for zero in (0.0, -0.0)], dtype))


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("base, exponent", [("float32", "complex64"), ("float64", "complex128")])
def test_real_bases_of_complex_powers_are_complex_in_derivatives(base: str, exponent: str, twice: bool) -> None:
    def program(torch: Any, x: Any, y: Any) -> Any:
        x.requires_grad_()
        out = x**y
        (grad,) = torch.autograd.grad(out, x, torch.full_like(out, 0.7), create_graph=True)
        return torch.autograd.grad(grad, x, torch.ones_like(grad))[0] if twice else grad

    found = np.array(list(itertools.product(REAL, [1, 1j, -1, 0.5 - 2j])))
    agree(program, found[:, 0].real.astype(base), found[:, 1].astype(exponent))


@pytest.mark.parametrize("exponent", ["complex64", "complex128"])
@pytest.mark.parametrize("base", ["float16", "bfloat16"])
def test_half_precision_to_a_complex_power_has_tangents(base: str, exponent: str) -> None:
    def program(torch: Any, x: Any, y: Any) -> Any:
        return torch.func.jvp(torch.pow, (x.to(getattr(torch, base)), y), (x.to(getattr(torch, base)), y))[1]

    agree(program, np.array([0.5, 2.0, 3.0], "float32"), np.array([1 + 2j, 0.5j, 2], exponent))


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_the_tangent_of_a_copy_with_a_window_overwritten_has_its_dtype(dtype: str, source: str) -> None:
    def program(torch: Any, x: Any, window: Any) -> Any:
        x, window = x.to(getattr(torch, dtype)), window.to(getattr(torch, source))
        tangents = torch.ones_like(x), torch.full_like(window, 0.25)
        made = torch.func.jvp(lambda x, w: torch.as_strided_scatter(x, w, (2, 2), (1, 4)), (x, window), tangents)
        assert made[1].dtype == made[0].dtype
        return made[1]

    agree(program, np.arange(16, dtype="float32"), np.ones((2, 2), "float32"))


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_tangent_of_soft_margins_has_their_dtype(dtype: str, target: str) -> None:
    def program(torch: Any, x: Any, signs: Any) -> Any:
        x, signs = x.to(getattr(torch, dtype)), signs.to(getattr(torch, target))
        losses = lambda x: torch.nn.functional.soft_margin_loss(x, signs, reduction="none")
        tangent = torch.func.jvp(losses, (x,), (torch.ones_like(x),))[1]
        assert tangent.dtype == x.dtype
        return tangent.to(torch.float32).round(decimals=2)

    agree(program, np.array([0.5, -2.0, 3.0], "float32"), np.array([1.0, -1.0, -1.0], "float32"))


@pytest.mark.parametrize("tangent", [(1.0, INF), (INF, 1.0), (NAN, 2.0), (1.0, NAN), (INF, -INF)])
@pytest.mark.parametrize("numbers", [(3.0, 1.0), (2.0, 2.0), (INF, 1.0), (NAN, 1.0)])
@pytest.mark.parametrize("name", ["amax", "amin", "aminmax", "max", "min"])
def test_an_extreme_moves_with_those_that_reach_it_alone(name: str, numbers: Any, tangent: Any) -> None:
    def tangent_of(module: Any) -> Any:
        call = getattr(module, name)
        first = (lambda x: call(x, dim=0)) if name in ("amax", "amin") else (lambda x: call(x, dim=0)[0])
        return module.func.jvp(first, (module.tensor(numbers),), (module.tensor(tangent),))[1].numpy()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(tangent_of(torch), tangent_of(pullback))


@pytest.mark.parametrize("number", [NAN, 0.0, -1.0, -2.0, 2.0, INF, -INF])
@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_nothing_times_the_logarithm_of_a_number_without_one_stays_nothing(name: str, number: float) -> None:
    def gradient(module: Any) -> Any:
        x = module.tensor([0.0, -0.0, 1.0, NAN, INF, -2.0], dtype=module.float64, requires_grad=True)
        (grad,) = module.autograd.grad(getattr(module.special, name)(x, number).sum(), x)
        return grad.numpy()

    np.testing.assert_allclose(gradient(torch), gradient(pullback), 1e-12)
