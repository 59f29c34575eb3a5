"""Convolutions, pooling and norms of images on the device."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.kernels.compiled import room

from .agreeing import agree

pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")
TF32 = 5e-3


def numbers(*shape: int, dtype: Any = torch.float32) -> Any:
    torch.manual_seed(sum(shape))
    return torch.randn(*shape).to(dtype)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"padding": 1},
    {"stride": 2},
    {"stride": 2, "padding": 2},
    {"dilation": 2, "padding": 1},
    {"stride": (3, 1), "padding": (0, 4), "dilation": (1, 2)},
    {"groups": 2, "padding": 1},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_convolutions_and_their_gradients(settings: dict[str, Any]) -> None:
    groups = settings.get("groups", 1)
    x, w, b = numbers(2, 4, 7, 8), numbers(6, 4 // groups, 3, 3), numbers(6)
    agree(lambda x, w, b: F.conv2d(x, w, b, **settings), x, w, b, tolerance=TF32)


def test_convolutions_without_rounding_to_tf32() -> None:
    torch.backends.cudnn.allow_tf32 = False
    try:
        agree(lambda x, w: F.conv2d(x, w, padding=1), numbers(2, 3, 6, 5), numbers(4, 3, 3, 3))
        agree(
            lambda x, w: F.conv2d(x, w),
            numbers(2, 3, 6, 5, dtype=torch.float64),
            numbers(4, 3, 1, 1, dtype=torch.float64),
        )
    finally:
        torch.backends.cudnn.allow_tf32 = True


def test_convolutions_of_one_and_three_dimensions_and_in_halves() -> None:
    agree(lambda x, w: F.conv1d(x, w, padding=2), numbers(2, 3, 9), numbers(4, 3, 5), tolerance=TF32)
    agree(lambda x, w: F.conv3d(x, w, stride=2), numbers(1, 2, 5, 5, 5), numbers(3, 2, 3, 3, 3), tolerance=TF32)
    x, w, b = (numbers(*s, dtype=torch.bfloat16) for s in ((2, 3, 6, 6), (4, 3, 3, 3), (4,)))
    agree(lambda x, w, b: F.conv2d(x, w, b, padding=1), x, w, b)


def test_transposed_convolutions() -> None:
    for settings in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}):
        groups = settings.get("groups", 1)
        x, w, b = numbers(2, 4, 5, 4), numbers(4, 6 // groups, 3, 3), numbers(6)

        def compute(x: Any, w: Any, b: Any, settings: Any = settings) -> Any:
            return F.conv_transpose2d(x, w, b, **settings)

        agree(compute, x, w, b, tolerance=TF32)


def test_images_with_their_channels_last() -> None:
    x = numbers(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    out = F.conv2d(x.cuda(), numbers(5, 4, 3, 3).cuda())
    assert out.is_contiguous(memory_format=torch.channels_last)
    agree(
        lambda x, w: F.conv2d(x.contiguous(memory_format=torch.channels_last), w),
        x,
        numbers(5, 4, 3, 3),
        tolerance=TF32,
    )
