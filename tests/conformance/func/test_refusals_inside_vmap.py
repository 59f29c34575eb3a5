"""What torch refuses of an entry of a batch as it does outside: numbers that do not fit, elements that would move."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.both import attempt, same


@pytest.mark.parametrize("value", ["1.5", "1.5+2j", "1e30", "float('nan')", "300.0", "-1.0"])
@pytest.mark.parametrize("kind", ["float64", "complex128", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("in_place", [False, True])
def test_numbers_a_batch_is_filled_with_fit_into_its_dtype(dtype: str, kind: str, value: str, in_place: bool) -> None:
    number = eval(value)
    if (kind != "complex128" and isinstance(number, complex)) or (kind == "int64" and not abs(number) < 1e6):
        pytest.skip("no such tensor")

    def program(torch: Any) -> Any:
        tensor = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(getattr(torch, dtype))
        numbers = torch.tensor([1.0, number]).to(getattr(torch, kind))
        mask = torch.tensor([True, False])
        fill = "masked_fill_" if in_place else "masked_fill"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that it is slow
            found = attempt(lambda: torch.vmap(lambda a, v: getattr(a, fill)(mask, v))(tensor, numbers))
        return found if isinstance(found, torch.Tensor) else "refused"

    same(program)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (1, 3), (3, 1), (2, 0), (3,), ()])
@pytest.mark.parametrize("call", ["view(-1)", "view_as(torch.ones(m))", "view(m)", "reshape(-1)"])
@pytest.mark.parametrize(
    "made", ["x", "x.transpose(0, -1)", "x.mT", "x[..., ::2]", "x + x.transpose(0, -1)", "x.T.exp()"]
)
@pytest.mark.parametrize("dim", [0, -1])
def test_a_view_of_an_entry_whose_elements_would_have_to_move(made: str, call: str, shape: Any, dim: int) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            y = eval(made, {"x": x})
            return eval(f"y.{call}", {"y": y, "torch": torch, "m": y.numel()})

        x = torch.ones(2, *shape).movedim(0, dim)
        return attempt(lambda: torch.vmap(function, in_dims=dim)(x))

    same(program)


@pytest.mark.parametrize("shape", [(0, 5, 5), (3, 0, 5), (3, 3)])
@pytest.mark.parametrize("more", ["", ", atol=0.5", ", hermitian=False, tol=0.1"])
def test_ranks_of_no_matrices_are_those_of_every_entry_and_may_be_looked_at(shape: Any, more: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            ranks = eval(f"torch.linalg.matrix_rank(x{more})", {"torch": torch, "x": x})
            return ranks[ranks > 0] if not x.numel() else ranks

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = attempt(lambda: torch.vmap(function)(torch.ones(2, *shape)))
        return found if isinstance(found, torch.Tensor) else "refused"

    same(program)
