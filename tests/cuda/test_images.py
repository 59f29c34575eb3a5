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


# ------------------------------------------------------------------ pooling


def test_maxima_of_windows() -> None:
    agree(lambda x: F.max_pool2d(x, 2), numbers(2, 3, 6, 8))
    agree(lambda x: F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True), numbers(2, 3, 7, 8))
    agree(lambda x: F.max_pool2d(x, (2, 3), dilation=2, ceil_mode=True), numbers(3, 9, 8))
    agree(lambda x: F.max_pool3d(x, 2), numbers(1, 2, 4, 4, 4))
    agree(lambda x: F.max_pool2d(x, 2), numbers(2, 3, 6, 8, dtype=torch.bfloat16))
    x = numbers(1, 1, 4, 4)
    x[0, 0, 1, 2] = float("nan")
    x[0, 0, 2:] = float("-inf")
    agree(lambda x: F.max_pool2d(x, 2, return_indices=True), x, grad=False)


def test_averages_of_windows() -> None:
    agree(lambda x: F.avg_pool2d(x, 2), numbers(2, 3, 6, 8))
    agree(lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), numbers(2, 3, 7, 8))
    agree(lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), numbers(3, 8, 8))
    agree(lambda x: F.avg_pool2d(x, 2, divisor_override=3), numbers(3, 8, 8))
    agree(lambda x: F.avg_pool3d(x, 2), numbers(1, 2, 4, 4, 4))
    agree(lambda x: F.adaptive_avg_pool2d(x, 1), numbers(2, 3, 6, 8))
    agree(lambda x: F.adaptive_avg_pool2d(x, (3, 2)), numbers(2, 3, 6, 8))


def test_averages_of_uneven_windows() -> None:
    agree(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), numbers(2, 3, 7, 8))
    agree(lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), numbers(1, 2, 5, 4, 3))
    agree(lambda x: F.adaptive_avg_pool2d(x, (4, 1)), numbers(2, 7, 3, dtype=torch.bfloat16))
    agree(lambda x: F.interpolate(x, (5, 3), mode="area"), numbers(1, 2, 7, 8, dtype=torch.float64))


# ------------------------------------------------------------------ other sizes

SCALINGS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), {"size": 5}),
    ((2, 3, 4), {"scale_factor": 2.5, "mode": "linear"}),
    ((2, 3, 5, 6), {"scale_factor": 2}),
    ((2, 3, 5, 6), {"size": (7, 4), "mode": "nearest-exact"}),
    ((2, 3, 5, 6), {"size": (8, 4), "mode": "bilinear"}),
    ((2, 3, 5, 6), {"scale_factor": (0.7, 1.9), "mode": "bilinear", "align_corners": True}),
    ((1, 2, 4, 5), {"size": (9, 3), "mode": "bicubic"}),
    ((1, 2, 9, 8), {"size": (4, 3), "mode": "bicubic", "antialias": True}),
    ((1, 2, 9, 8), {"size": (4, 12), "mode": "bilinear", "antialias": True}),
    ((1, 2, 3, 4, 5), {"scale_factor": 1.5, "mode": "trilinear"}),
    ((1, 2, 3, 4, 5), {"size": (2, 7, 3)}),
]


@pytest.mark.parametrize(("shape", "options"), SCALINGS)
def test_images_of_other_sizes_and_their_gradients(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    agree(lambda x: F.interpolate(x, **options), numbers(*shape))


def test_scaling_of_other_dtypes_layouts_and_values() -> None:
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        agree(lambda x: F.interpolate(x, (7, 4), mode="bilinear"), numbers(1, 2, 5, 6, dtype=dtype))
    x = numbers(2, 4, 6, 6).contiguous(memory_format=torch.channels_last)
    out = F.interpolate(x.cuda(), scale_factor=2, mode="bilinear")
    assert out.is_contiguous(memory_format=torch.channels_last)
    agree(lambda x: F.interpolate(x.contiguous(memory_format=torch.channels_last), (3, 9)), x)
    x = numbers(1, 1, 4, 4)
    x[0, 0, 1, 2], x[0, 0, 3, 0] = float("nan"), float("inf")
    for options in ({"scale_factor": 2}, {"size": (6, 3), "mode": "bilinear"}, {"size": (3, 3), "mode": "area"}):
        agree(lambda x, options=options: F.interpolate(x, **options), x, grad=False)
    with pytest.raises(RuntimeError, match="Input and output sizes should be greater than 0"):
        F.interpolate(x.cuda(), (0, 3))
    room_text = room("cuda.resample").text_of("float")
    assert ".visible .entry" in room("cuda.ptx").compiled(room_text, (7, 0))


# ------------------------------------------------------------------ norms


@pytest.mark.parametrize("shape", [(4, 3, 5, 6), (6, 3), (3, 2, 7)])
def test_batch_norm_and_its_gradients(shape: tuple[int, ...]) -> None:
    c = shape[1]

    def train(x: Any, w: Any, b: Any) -> Any:
        mean, var = torch.zeros(c, device=x.device), torch.ones(c, device=x.device)
        return F.batch_norm(x, mean, var, w, b, True, 0.3), mean, var

    agree(train, numbers(*shape), numbers(c), numbers(c) * 2)
    agree(lambda x: F.batch_norm(x, None, None, training=True), numbers(*shape))
    agree(lambda x, m, v: F.batch_norm(x, m, v.abs()), numbers(*shape), numbers(c), numbers(c), grad=False)


def test_group_norm_and_its_gradients() -> None:
    agree(lambda x, w, b: F.group_norm(x, 2, w, b), numbers(3, 4, 5, 5), numbers(4), numbers(4) * 2)


def test_norms_and_variances() -> None:
    x = numbers(5, 7)
    agree(lambda x: [torch.linalg.vector_norm(x, o, 1) for o in (1, 2)], x)
    agree(lambda x: [torch.linalg.vector_norm(x, o) for o in (float("inf"), -float("inf"))], x, grad=False)
    agree(lambda x: torch.nn.utils.get_total_norm([x, x]), x, grad=False)
    agree(lambda x: [x.var(), x.std(0), x.var(1, correction=0, keepdim=True)], x)
    agree(lambda x: torch.var_mean(x, 1), x)
