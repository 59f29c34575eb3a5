"""ctc_loss runs on the device, a kernel for each step in time, and nothing goes by the host."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.kernels.compiled import room

from .agreeing import agree

F = torch.nn.functional
pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")


def scores(times: int = 8, samples: int = 3, classes: int = 5, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(times, samples, classes, generator=generator).to(dtype)


def loss(x: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
    return F.ctc_loss(x.log_softmax(2), targets, *args, **kwargs)


ROWS = torch.tensor([[1, 2, 3], [2, 2, 0], [4, 1, 1]])
"""One sample after the other; what lies behind the end of the second is no label."""


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_of_rows_of_labels_are_those_of_the_host(dtype: Any, reduction: str) -> None:
    times, labels = torch.tensor([8, 7, 6]), torch.tensor([3, 2, 3])
    agree(lambda x, t: loss(x, t, times, labels, reduction=reduction), scores(dtype=dtype), ROWS)


def test_losses_of_labels_end_to_end_are_those_of_the_host() -> None:
    agree(lambda x, t: loss(x, t, (8, 7, 8), (3, 2, 3), blank=4), scores(), torch.tensor([1, 2, 3, 2, 2, 0, 1, 1]))


def test_samples_without_labels_or_without_time_are_those_of_the_host() -> None:
    agree(lambda x, t: loss(x, t, (8, 0, 5), (0, 0, 3), reduction="none"), scores(), ROWS)
    agree(lambda x, t: loss(x, t, (8, 8, 8), (0, 0, 0), reduction="sum"), scores(), ROWS)


def test_labels_that_no_alignment_has_room_for_are_those_of_the_host() -> None:
    for zero in (False, True):
        agree(lambda x, t: loss(x, t, (2, 8, 3), (3, 2, 3), reduction="none", zero_infinity=zero), scores(), ROWS)  # noqa: B023


def test_one_sample_alone_has_the_loss_of_the_host() -> None:
    agree(lambda x, t: F.ctc_loss(x.log_softmax(1), t, (6,), (2,)), scores(6, 1)[:, 0], torch.tensor([1, 1]))


def test_labels_out_of_bounds_are_refused_as_on_the_host() -> None:
    for place in ("cpu", "cuda"):
        with pytest.raises(IndexError, match=r"Target 9 is out of bounds\."):
            loss(scores(samples=1).to(place), torch.tensor([[9]]).to(place), (8,), (1,))
