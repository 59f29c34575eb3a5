"""How often formulas round: every number of half precision, in vectors as long as torch's kernels take, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pullback

BITS = np.arange(65536, dtype=np.uint16).view(np.int16)
FORMULAS = {
    "rsqrt": lambda torch, x, y: x.rsqrt(),
    "a root in the denominator": lambda torch, x, y: x**-0.5,
    "asin": lambda torch, x, y: x.asin(),
    "asinh": lambda torch, x, y: x.asinh(),
    "deg2rad": lambda torch, x, y: torch.deg2rad(x),
    "rad2deg": lambda torch, x, y: torch.rad2deg(x),
    "one decimal": lambda torch, x, y: torch.round(x, decimals=1),
    "whole thousands": lambda torch, x, y: torch.round(x, decimals=-3),
    "hardsigmoid": lambda torch, x, y: torch.nn.functional.hardsigmoid(x),
    "rrelu": lambda torch, x, y: torch.nn.functional.rrelu(x.nan_to_num()),
    "softshrink": lambda torch, x, y: torch.nn.functional.softshrink(x.nan_to_num(), 0.3),
    "hardshrink": lambda torch, x, y: torch.nn.functional.hardshrink(x.nan_to_num(), 0.3),
    "ldexp": lambda torch, x, y: torch.ldexp(x, y),
    "nextafter": lambda torch, x, y: torch.nextafter(x, y),
    "losses of logits": lambda torch, x, y: torch.nn.functional.binary_cross_entropy_with_logits(
        x, y, reduction="none"
    ),
}


def elements(library: Any, name: str, dtype: str, size: int) -> list[np.ndarray]:
    """The result and the gradients, of all numbers or of some, spread over all."""
    some = BITS[:: len(BITS) // size]
    draw = np.random.default_rng(0)
    x = library.from_numpy(some.copy()).view(getattr(library, dtype)).clone().requires_grad_()
    y, grad = (library.from_numpy(draw.standard_normal(len(some))).to(x.dtype) for _ in "yg")
    out = FORMULAS[name](library, x, y.requires_grad_())
    found = library.autograd.grad(out, (x, y), grad, allow_unused=True) if name != "nextafter" else ()
    return [t.detach().float().numpy() for t in (out, *found) if t is not None]


@pytest.mark.parametrize("size", [16, 65536])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_of_halves_is_rounded_as_often_as_in_torch(name: str, dtype: str, size: int) -> None:
    for ours, theirs in zip(*(elements(library, name, dtype, size) for library in (pullback, torch)), strict=True):
        wrong = (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
        assert wrong.mean() < 1e-3, (name, dtype, np.flatnonzero(wrong)[:5])


@pytest.mark.parametrize("size", [1, 20, 100])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64"])
def test_the_inverse_root_of_integers_is_a_float(dtype: str, size: int) -> None:
    def roots(library: Any) -> list[Any]:
        x = library.arange(1, size + 1).to(getattr(library, dtype))
        made = [x.rsqrt(), x[:, None].expand(size, 2).rsqrt(), x**-0.5]
        try:
            x.rsqrt_()
        except RuntimeError as error:
            made.append(str(error))
        return [m if isinstance(m, str) else (str(m.dtype), m.tolist()) for m in made]

    assert roots(pullback) == roots(torch)
