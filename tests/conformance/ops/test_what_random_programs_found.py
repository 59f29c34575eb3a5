"""Corners in which random programs met differences: each is a program run on both libraries."""

from __future__ import annotations

from typing import Any

import pytest

from ..core.both import attempt, same
from .test_quiet_differences import value_of

DEGREES = "torch.tensor([nan, inf, -inf, 2.5, 1e30, -1.0, 3.0])"
POLYNOMIALS = [
    f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"
] + ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]  # fmt: skip
WINDOWS = [
    "exponential", "cosine", "gaussian", "kaiser", "bartlett", "hamming", "hann", "blackman", "nuttall",
    "general_hamming",
]  # fmt: skip


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_degrees_no_integer_can_hold_are_zero(name: str) -> None:
    for x in ("0.5", "1.0"):
        agree(f"torch.special.{name}({x}, {DEGREES})")


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_that_requires_grad_is_the_result_of_ops(name: str) -> None:
    def names(node: Any) -> Any:
        return None if node is None else [type(node).__name__, [names(below) for below, _ in node.next_functions]]

    def program(torch: Any) -> Any:
        window = getattr(torch.signal.windows, name)
        return [names(window(M, requires_grad=True).grad_fn) for M in (0, 1, 2, 5)]

    same(program)


@pytest.mark.parametrize(
    "source",
    [
        "torch.view_copy(torch.arange(6).view(2, 3).t(), (2, 3))",
        "torch.view_copy(torch.ones(1, 5).expand(4, 5), (5, -1))",
        "torch.view_copy(torch.ones(4), (3, -1))",
    ],
)
def test_view_copy_copies_what_no_view_could_show(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_unravel_index_gives_int64(dtype: str) -> None:
    agree(f"torch.unravel_index(torch.tensor([3, 5], dtype=torch.{dtype}), (2, 3))")


@pytest.mark.parametrize("decimals", [400, 2**40, -(2**40)])
def test_rounding_to_more_decimals_than_there_are_gives_nan(decimals: int) -> None:
    agree(f"torch.round(torch.tensor([1.5, -2.0]), decimals={decimals}).isnan()")


@pytest.mark.parametrize(
    "source",
    [
        "torch.tensor([True]).cumsum_(0)",
        "torch.tensor(True).cumsum_(0)",
        "torch.tensor([], dtype=torch.bool).cumprod_(0)",
        "torch.tensor([1]).cumsum_(0, dtype=torch.float32)",
        "torch.tensor([1.0]).cumprod_(0, dtype=torch.float64)",
        "torch.tensor([100, 100], dtype=torch.int8).cumsum_(0)",
        "torch.tensor([[1.0, 2.0], [3.0, 4.0]]).cumsum_(1)",
        "torch.tensor([1.0]).cumsum_(3)",
    ],
)
def test_running_sums_in_place_keep_the_dtype_they_find(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "call", ["to(torch.float32, memory_format={})", "to(memory_format={})", "float(memory_format={})"]
)
def test_a_tensor_that_is_not_channels_last_counts_as_contiguous(call: str) -> None:
    for start in ("torch.ones(2, 3).t()", "torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)"):
        agree(f"x = {start}; y = x.{call.format('torch.contiguous_format')}; [y is x, list(y.stride())]")


@pytest.mark.parametrize(
    "source",
    [
        "torch.linspace(0, 1, 1, dtype=torch.bool)",
        "torch.linspace(0, 1, 2, dtype=torch.bool)",
        "torch.tensordot(torch.ones(1, 1, dtype=torch.int8), torch.ones(2, 1, dtype=torch.int8), ([0, 1], [0, 1]))",
        "torch.tensordot(torch.ones(1, 1, dtype=torch.bool), torch.ones(2, 1, dtype=torch.bool), ([0, 1], [0, 1]))",
        "F.max_unpool2d(torch.ones(1, 1, 1, dtype=torch.uint8), torch.zeros(1, 1, 1, dtype=torch.int64), 2)",
    ],
)
def test_dtypes_with_and_without_kernels(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.softmax(torch.ones(2, 0, dtype=torch.int64), -1)",
        "torch.softmax(torch.ones(2, 0, dtype=torch.complex64), 3)",
        "torch.log_softmax(torch.ones(0, 2, dtype=torch.bool), 0)",
        "torch.softmax(torch.ones(2, dtype=torch.bool), 0)",
        "torch.cummax(torch.ones(2, 0, dtype=torch.complex64), 0)",
        "torch.cummin(torch.tensor(1j), 0)",
        "torch.cummin(torch.tensor([1j]), 0)",
        "torch.mode(torch.ones(2, 0, dtype=torch.complex64), 0)",
        "torch.mode(torch.tensor(1j), 0)",
        "torch.mm(torch.ones(2, 0, dtype=torch.bool), torch.ones(0, 2, dtype=torch.bool))",
        "torch.mv(torch.ones(0, 2, dtype=torch.bool), torch.ones(2, dtype=torch.bool))",
        "torch.bmm(torch.ones(0, 2, 2, dtype=torch.bool), torch.ones(0, 2, 2, dtype=torch.bool))",
        "torch.cumsum(torch.ones(0), 0, dtype=torch.bool)",
        "F.max_unpool2d(torch.ones(0, 1, 1, 1, dtype=torch.uint8), torch.zeros(0, 1, 1, 1, dtype=torch.int64), 2)",
    ],
)
def test_no_kernel_is_missing_where_there_are_no_elements(source: str) -> None:
    agree(source)
