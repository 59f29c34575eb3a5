"""Results that lie row by row, or as one operand does, whatever the others look like: torch's strides."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.conformance.both import same


def orders(torch: Any, *shape: int, dtype: str = "float64") -> Any:
    """Zeros of a shape in every order of dimensions, and stretched along the first."""
    kind = getattr(torch, dtype)
    for order in itertools.permutations(range(len(shape))):
        made = torch.zeros([shape[dim] for dim in order], dtype=kind)
        yield made.permute([order.index(dim) for dim in range(len(shape))])
    yield torch.zeros(shape[1:], dtype=kind).expand(shape)


CALLS = {
    "complex": lambda torch, x, y: torch.complex(x, y),
    "polar": lambda torch, x, y: torch.polar(x, y),
    "huber_loss": lambda torch, x, y: torch.nn.functional.huber_loss(x, y, reduction="none"),
    "cdist": lambda torch, x, y: [torch.cdist(x, y, p) for p in (0.0, 1.0, 2.0, 3.0)],
    "diff of nothing": lambda torch, x, y: [torch.diff(x, n=0), torch.diff(x, n=0, prepend=y, append=y)],
    "matrix_power": lambda torch, x, y: [torch.linalg.matrix_power(x, n) for n in (0, 1, 2, 3)],
    "pinv": lambda torch, x, y: torch.linalg.pinv(x, rtol=y[..., 0]),
    "lu_unpack": lambda torch, x, y: list(torch.lu_unpack(x, torch.ones(x.shape[:-1], dtype=torch.int32))),
}


@pytest.mark.parametrize("call", CALLS)
def test_results_of_operands_in_every_order(call: str) -> None:
    def program(torch: Any) -> Any:
        for x, y in itertools.product(orders(torch, 2, 3, 3), repeat=2):
            made = CALLS[call](torch, x, y)
            yield x.stride(), y.stride(), [one.stride() for one in (made if isinstance(made, list) else [made])]

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("call", ["complex", "polar", "huber_loss"])
def test_results_of_a_stretched_operand_beside_one_in_another_order(call: str) -> None:
    def program(torch: Any) -> Any:
        for x, y in itertools.product(orders(torch, 3, 4), (torch.zeros(4), torch.zeros(3, 1), torch.zeros(1, 3, 1))):
            yield [CALLS[call](torch, one, other.double()).stride() for one, other in ((x, y), (y.double(), x))]

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("call", ["nll_loss", "cross_entropy"])
def test_losses_of_every_target_lie_row_by_row(call: str) -> None:
    def program(torch: Any) -> Any:
        for x, target in itertools.product(orders(torch, 2, 3, 2, 2), orders(torch, 2, 2, 2, dtype="int64")):
            yield getattr(torch.nn.functional, call)(x, target, reduction="none").stride()

    same(lambda torch: list(program(torch)))


def test_histc_of_equal_integers_is_refused_as_of_others() -> None:
    same(lambda torch: torch.histc(torch.tensor(-8), 3))
    same(lambda torch: torch.histc(torch.tensor([3, 3], dtype=torch.int32), 3, 1, 1))
    same(lambda torch: torch.histc(torch.tensor([3, 4], dtype=torch.uint8), 3))
