"""What is stretched, and converted to another dtype, has memory of its own before it decides about that of a result."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

from tests.conformance.both import same

LAYOUTS = {
    "rows": lambda torch: torch.zeros(2, 3),
    "columns": lambda torch: torch.zeros(3, 2).t(),
    "one row": lambda torch: torch.zeros(3).expand(2, 3),
    "one column": lambda torch: torch.zeros(2, 1).expand(2, 3),
    "steps": lambda torch: torch.zeros(3, 4).t()[::2],
}
DTYPES = ["float32", "int64", "uint8", "float64"]


def laid_out(torch: Any, layout: str, dtype: str) -> Any:
    """Zeros of a dtype that lie in memory so."""
    made = LAYOUTS[layout](torch)
    return torch.zeros(12, dtype=getattr(torch, dtype)).as_strided(made.shape, made.stride())


@pytest.mark.parametrize("op", ["add", "maximum", "eq", "copysign", "logical_and", "addcmul", "atan2"])
@pytest.mark.parametrize("first", LAYOUTS)
def test_results_of_two_dtypes_lie_in_memory_as_torchs_do(op: str, first: str) -> None:
    def program(torch: Any) -> Any:
        for second, one, other in itertools.product(LAYOUTS, DTYPES, DTYPES):
            a, b = laid_out(torch, first, one), laid_out(torch, second, other)
            yield second, one, other, getattr(torch, op)(a, *[b] * (2 if op == "addcmul" else 1)).stride()

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("first", [*LAYOUTS, "one number", "one row of one number"])
def test_powers_of_two_of_single_precision_lie_row_by_row_before_they_are_multiplied(first: str) -> None:
    def program(torch: Any) -> Any:
        halves = ["float16", "bfloat16"]
        for second, one in itertools.product(LAYOUTS, [*DTYPES, *halves, "complex64", "complex128"]):
            if first in LAYOUTS:
                a = laid_out(torch, first, one)
            else:
                a = torch.zeros((1,) * ("row" in first), dtype=getattr(torch, one))
            for other in DTYPES if "complex" in one else [*DTYPES, *halves, "complex64"]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch resizes what it makes of a float and an integer
                    yield second, one, other, torch.ldexp(a, laid_out(torch, second, other)).stride()

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("first", LAYOUTS)
def test_clamped_tensors_of_several_dtypes_lie_in_memory_as_torchs_do(first: str) -> None:
    def program(torch: Any) -> Any:
        for low, high, dtypes in itertools.product(LAYOUTS, LAYOUTS, itertools.product(DTYPES[:2], repeat=3)):
            operands = map(laid_out, [torch] * 3, (first, low, high), dtypes)
            yield low, high, dtypes, torch.clamp(*operands).stride()

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("dim", [0, 1])
def test_gated_halves_of_expanded_tensors_lie_in_memory_as_torchs_do(dim: int, dtype: str) -> None:
    def program(torch: Any) -> Any:
        rows = torch.ones(4).to(getattr(torch, dtype))
        for made in (rows.expand(6, 4), rows[:, None].expand(4, 6), rows.expand(6, 4).t(), rows.expand(6, 4)[:, ::2]):
            yield torch.nn.functional.glu(made, dim).stride()

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("op", ["logical_and", "logical_or", "logical_xor"])
def test_logic_of_two_dtypes(op: str) -> None:
    def program(torch: Any) -> Any:
        for one, other in itertools.product([*DTYPES, "bool", "complex64", "float16"], repeat=2):
            a = torch.tensor([0.0, 0.5, 2.0, 0.0]).to(getattr(torch, one))
            b = torch.tensor([0.0, 0.0, 3.0, 1.0]).to(getattr(torch, other))
            yield getattr(torch, op)(a, b), getattr(a, f"{op}_")(b)

    same(lambda torch: list(program(torch)))
