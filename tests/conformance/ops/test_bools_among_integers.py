"""A bool in a list of integers counts as an integer behind the first place, of which alone torch asks the type."""

from __future__ import annotations

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

X = "torch.arange(24.).reshape(2, 3, 4)"
TAKEN = [
    f"torch.sum({X}, (0, True))",
    f"{X}.amax((0, True))",
    f"torch.mean({X}, (0, True))",
    f"torch.count_nonzero({X}, (0, True))",
    f"torch.norm({X}, 2, (0, True))",
    f"torch.norm({X}, 'fro', (0, True))",
    f"torch.linalg.vector_norm({X}, dim=(0, True))",
    f"torch.gradient({X}, dim=(0, True))",
    f"{X}.view(24, True)",
    f"{X}.reshape((24, True))",
    f"{X}.permute(0, 2, True)",
    f"{X}[:1, :1].expand(2, True, 4)",
    f"{X}.resize_(2, True)",
    f"{X}.new_zeros(2, True)",
    "torch.zeros(2, True)",
    "torch.full((2, True), 1.0)",
    "torch.randint(1, (2, True))",
    "torch.empty_strided((2, True), (1, True)).stride()",
    f"F.interpolate({X}[None], size=(2, True))",
]
REFUSED = [
    f"torch.sum({X}, (True, 0))",
    f"torch.norm({X}, 2, (True, 0))",
    f"torch.norm({X}[0], 'nuc', [True, 2])",
]


@pytest.mark.parametrize("source", TAKEN)
def test_a_bool_behind_the_first_place_counts_as_an_integer(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("source", REFUSED)
def test_a_bool_in_the_first_place_is_refused(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("call", [f"{X}.view(True, 24)", f"{X}.view((True, 24))", f"{X}.permute(True, 0, 2)"])
def test_a_bool_in_the_first_place_of_a_shape_is_a_type_error(call: str) -> None:
    same(lambda torch: type(raised(torch, call)).__name__)


def raised(torch: object, call: str) -> Exception | None:
    """What a call raises."""
    try:
        value_of(torch, call)
    except TypeError as error:
        return error
    return None


def test_the_gradient_of_a_sum_over_a_bool_is_that_over_one() -> None:
    def program(torch: object) -> object:
        x = torch.ones(2, 3, 4, requires_grad=True)  # type: ignore[attr-defined]
        x.sum((0, True)).pow(2).sum().backward()
        return x.grad

    same(program)
