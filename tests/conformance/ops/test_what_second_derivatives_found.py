"""Corners in which random programs differentiated twice, or written near them, met differences: each is run on both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

NAN = float("nan")


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("weights", ["nan, 1, 1", "1, 1, nan", "1, nan, -1", "1, 1, -1", "0, 1, 2"])
@pytest.mark.parametrize("name", ["torch.ones(2, 3)", "torch.ones(3)"])
def test_weights_of_observations_that_are_nan_are_refused_as_negative_ones(name: str, weights: str, dtype: str) -> None:
    agree(f"torch.cov({name}.to(torch.{dtype}), aweights=torch.tensor([{weights}], dtype=torch.{dtype}))")


@pytest.mark.parametrize("target", ["torch.tensor([0])", "torch.tensor([[0.5, 0.3]])"])
@pytest.mark.parametrize("smoothing", ["float('nan')", "-0.3", "-1", "float('-inf')", "0", "1", "1.5", "float('inf')"])
def test_labels_are_smoothed_by_what_is_above_zero(smoothing: str, target: str) -> None:
    agree(f"torch.nn.functional.cross_entropy(torch.tensor([[1.0, 2.0]]), {target}, label_smoothing={smoothing})")


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float32", "complex64"), ("int64", "float32")])
@pytest.mark.parametrize("create_graph", [True, False])
def test_gradients_of_outer_products_of_two_dtypes_are_refused_in_words_of_products(
    dtypes: tuple[str, str], create_graph: bool
) -> None:
    def program(torch: Any) -> Any:
        one, other = (torch.ones(3, dtype=getattr(torch, dtype)) for dtype in dtypes)
        moving = [v.requires_grad_() for v in (one, other) if v.is_floating_point() or v.is_complex()]
        out = torch.addr(torch.zeros(3, 3), one, other).sum().abs()
        return attempt(lambda: torch.autograd.grad(out, moving, create_graph=create_graph))

    same(program)
