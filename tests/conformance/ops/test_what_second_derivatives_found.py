"""Corners in which random programs differentiated twice, or written near them, met differences: each is run on both."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import pullback
from tests.conformance.both import Raised, attempt, same
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


WRITTEN_WITH_OUT = [
    "torch.index_select(x, 0, torch.tensor([0, 1]), out=out)",
    "torch.gather(x, 0, torch.tensor([[0, 1]]), out=out)",
    "torch.take_along_dim(x, torch.tensor([[0, 1]]), 0, out=out)",
    "torch.linalg.det(x, out=out)",
    "torch.linalg.solve(x, x, out=out)",
    "torch.linalg.cholesky(x @ x.mT, out=out)",
    "torch.linalg.inv(x, out=out)",
    "torch.mm(x, x, out=out)",
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("order", [("jvp",), ("jacfwd", "jacfwd"), ("jacrev", "jacfwd"), ("jacfwd", "jacrev")])
@pytest.mark.parametrize("call", WRITTEN_WITH_OUT)
def test_results_written_inside_transforms_have_to_fit_as_they_do_outside(
    call: str, order: tuple[str, ...], dtype: str
) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            plain = eval(call, {"torch": torch, "x": x, "out": None})
            out = torch.zeros(plain.shape, dtype=getattr(torch, dtype))
            eval(call, {"torch": torch, "x": x, "out": out})
            return out.sum()

        x = torch.tensor([[0.5, 1.5], [2.5, 0.25]], dtype=torch.float64)
        if order == ("jvp",):
            return attempt(lambda: torch.func.jvp(function, (x,), (x,)))
        outer, inner = (getattr(torch.func, name) for name in order)
        return attempt(lambda: outer(inner(function))(x))

    assert [type(program(library)) for library in (torch, pullback)] == [Raised, Raised]


def test_a_tensor_that_a_rank_is_written_into_no_longer_moves() -> None:
    def function(x: pullback.Tensor, out: pullback.Tensor) -> pullback.Tensor:
        return pullback.linalg.matrix_rank(x, out=out * 1)

    x, out = pullback.eye(2).double(), pullback.tensor(0.5)
    value, tangent = pullback.func.jvp(function, (x, out), (x, out))
    assert (value.item(), tangent.item()) == (2.0, 0.0)


SPECIAL = [
    "airy_ai(x, out=out)",
    "bessel_j0(x, out=out)",
    "modified_bessel_k1(x, out=out)",
    "spherical_bessel_j0(x, out=out)",
    "entr(x, out=out)",
    "zeta(x, x, out=out)",
    "hermite_polynomial_h(x, 2, out=out)",
    "hermite_polynomial_h(x, x, out=out)",
]


@pytest.mark.parametrize("moving", [("x",), ("out",), ("x", "out")])
@pytest.mark.parametrize("call", SPECIAL)
def test_functions_without_a_derivative_are_not_written_into_what_moves(call: str, moving: tuple[str, ...]) -> None:
    def program(torch: Any) -> Any:
        still = {"torch": torch, "x": torch.tensor([0.5]), "out": torch.tensor([0.25])}

        def function(*given: Any) -> Any:
            eval(f"torch.special.{call}", {**still, **dict(zip(moving, given, strict=True))})
            return given[0] * 1

        given = tuple([still[name] for name in moving])
        try:
            return torch.func.jvp(function, given, given)[1]
        except NotImplementedError:
            return "refused"

    same(program)


@pytest.mark.parametrize("dtype", ["bool", "complex64", "uint8", "int64", "float32"])
@pytest.mark.parametrize(
    "call",
    [
        "torch.range(0, 3, dtype=dtype)",
        "torch.range(0, 3, out=torch.zeros(4, dtype=dtype))",
        "torch.nn.functional.embedding_bag(torch.ones(3, 2).to(dtype), torch.ones(4, 2))",
        "torch.nn.functional.embedding_bag(torch.ones(1, 2).to(dtype), torch.ones(4, 2))",
        "torch.nn.functional.embedding_bag(torch.ones(3, 0).to(dtype), torch.ones(4, 2))",
    ],
)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_have_no_kernel_for_truths_and_complex_numbers(call: str, dtype: str) -> None:
    agree(call.replace("dtype)", f"torch.{dtype})"))
