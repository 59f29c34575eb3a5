"""Corners in which random programs under backward met differences: each is a program run on both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.both import same

SINGULAR = {
    "svdvals": lambda torch, a: torch.linalg.svdvals(a),
    "svd": lambda torch, a: torch.linalg.svd(a, full_matrices=False)[1],
    "both sides": lambda torch, a: (lambda u, s, v: u @ v)(*torch.linalg.svd(a, full_matrices=False)),
    "cond": lambda torch, a: torch.linalg.cond(a) if a.shape[-1] == a.shape[-2] else a,
    "nuc": lambda torch, a: torch.linalg.matrix_norm(a, "nuc"),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("shape", ["3, 3", "4, 3", "3, 4", "2, 3, 3"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("scale", [1.0, 1e12, 1e20])
def test_the_phase_of_singular_vectors_may_cancel_but_for_rounding(
    name: str, shape: str, dtype: str, scale: float
) -> None:
    """What U and V owe to their common phase is compared as large as it is: a rounding error of 1e12 is no choice."""

    def program(torch: Any) -> Any:
        draw = np.random.RandomState(1)
        size = tuple(int(n) for n in shape.split(","))
        a, by = (torch.from_numpy((draw.randn(*size) + 1j * draw.randn(*size)).astype(dtype)) for _ in range(2))
        out = SINGULAR[name](torch, a.requires_grad_())
        weights = torch.from_numpy(np.asarray(draw.randn(*out.shape) * scale)).to(out.dtype)
        (first,) = torch.autograd.grad(out, a, weights, create_graph=True)
        if not first.requires_grad:
            return None
        (second,) = torch.autograd.grad(first, a, by)
        return second.shape

    same(program)
