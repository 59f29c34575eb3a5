"""interpolate in all its modes, and its older names: values, graphs, derivatives of every order, errors."""

import itertools

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

SHAPES = {1: "2, 2, 5", 2: "1, 2, 4, 5", 3: "1, 1, 3, 4, 3"}
MODES = [
    *itertools.product(("nearest", "nearest-exact", "area"), (1, 2, 3)),
    ("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3),
]  # fmt: skip


@pytest.mark.parametrize(
    "scale", ["size=3", "size=8", "scale_factor=1.7", "scale_factor=0.6, recompute_scale_factor=True"]
)
@pytest.mark.parametrize("mode, ndim", MODES)
def test_scaling_is_torchs_in_every_order(mode, ndim, scale):
    call = f"F.interpolate(x({SHAPES[ndim]}), {scale}, mode='{mode}')"
    agree_on(call)
    agree_in_every_order(call)


@pytest.mark.parametrize("size", ["size=(1, 9)", "size=(7, 2)", "scale_factor=(1.5, 0.5)"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_aligned_corners_are_torchs(mode, size):
    agree_in_every_order(f"F.interpolate(x(1, 2, 4, 5), {size}, mode='{mode}', align_corners=True)")


@pytest.mark.parametrize("corners", [", align_corners=True", ", align_corners=False", ""])
@pytest.mark.parametrize("size", ["size=(3, 4)", "size=(9, 3)", "scale_factor=0.4"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_antialiased_scaling_is_torchs(mode, size, corners):
    agree_on(f"F.interpolate(x(1, 2, 7, 8), {size}, mode='{mode}', antialias=True{corners})")


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_scaling_has_torchs_second_derivatives(mode):
    agree_in_every_order(f"F.interpolate(x(1, 2, 7, 8), size=(4, 3), mode='{mode}', antialias=True)")


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("kind", ["float32", "float64", "uint8"])
def test_the_nearest_element_is_torchs_at_every_size(kind, mode):
    for size, count in itertools.product((1, 3, 7, 10, 31), (1, 2, 5, 6, 9, 14, 20, 33, 62, 100)):
        array = np.arange(size).astype(kind).reshape(1, 1, size)
        image = np.ascontiguousarray(np.broadcast_to(array[..., None], (1, 1, size, 2)))
        for given, wanted in ((array, count), (image, (count, 2))):
            expected = peer.nn.functional.interpolate(peer.tensor(given), wanted, mode=mode)
            found = pullback.nn.functional.interpolate(pullback.tensor(given), wanted, mode=mode)
            np.testing.assert_array_equal(found.numpy(), expected.numpy(), f"{size} to {count}")


@pytest.mark.parametrize("size", [(9, 31), (17, 8), (40, 23)])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("settings", [{}, {"antialias": True}, {"align_corners": True}])
def test_bytes_are_rounded_as_torchs_are(mode, size, settings):
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 17, 23)).astype("uint8")
    expected = peer.nn.functional.interpolate(peer.tensor(image), size, mode=mode, **settings)
    found = pullback.nn.functional.interpolate(pullback.tensor(image), size, mode=mode, **settings)
    np.testing.assert_array_equal(found.numpy(), expected.numpy())


OLDER = [
    "F.upsample(x(1, 2, 3), 5)",
    "F.upsample_nearest(x(1, 2, 3, 3), scale_factor=2)",
    "F.upsample_bilinear(x(1, 2, 3, 3), 5)",
]


@pytest.mark.parametrize("call", OLDER)
def test_the_older_names_warn_as_torchs_do(call):
    agree_on(call)


@on_both
def test_the_node_saves_sizes_and_factors(torch):
    x = torch.ones(1, 2, 4, 4, requires_grad=True)
    by_size = torch.nn.functional.interpolate(x, 6, mode="bilinear").grad_fn
    by_factor = torch.nn.functional.interpolate(x, scale_factor=1.5).grad_fn
    return [
        [
            by_size._saved_output_size,
            by_size._saved_scales_h,
            by_size._saved_align_corners,
            by_size._saved_self_sym_sizes,
        ],
        [by_factor._saved_output_size, by_factor._saved_scales_h, by_factor._saved_scales_w],
    ]


ERRORS = lines("""
F.interpolate(x(2, 3, 4), size=0)
F.interpolate(x(2, 3, 0), size=3)
F.interpolate(x(2, 0, 4), size=3)
F.interpolate(x(2, 3, 4, 4), size=(3, 0), mode='bilinear')
F.interpolate(x(2, 3, 4, 4, 4), size=(3, 0, 0), mode='trilinear')
F.interpolate(x(2, 3, 4), size=(3, 3))
F.interpolate(x(2, 3, 4), scale_factor=(3, 3))
F.interpolate(x(2, 3, 4))
F.interpolate(x(2, 3, 4), size=3, scale_factor=2)
F.interpolate(x(2, 3, 4), size=3, recompute_scale_factor=True)
F.interpolate(x(2, 3, 4), size=3, mode='bilinear')
F.interpolate(x(2, 3, 4), size=3, mode='bicubic')
F.interpolate(x(2, 3, 4, 4, 4), size=3, mode='linear')
F.interpolate(x(2, 3), size=3)
F.interpolate(x(2, 3, 4), size=3, mode='far')
F.interpolate(x(2, 3, 4), size=3, align_corners=True)
F.interpolate(x(2, 3, 4), size=3, mode='linear', antialias=True)
F.interpolate(x(2, 3, 4, 4), size=3, mode='lanczos')
F.interpolate(x(2, 3, 4, 4), size=3, mode='lanczos', align_corners=True, antialias=True)
F.interpolate(x(2, 3, 4, 4), size=(2.5, 2))
F.interpolate(x(2, 3, 4, 4), scale_factor=0.1)
F.interpolate(x(2, 3, 4, 4).long(), size=3)
F.interpolate(x(2, 3, 4, 4).long(), size=3, mode='bilinear')
F.interpolate(x(2, 3, 4).long(), size=3, mode='linear')
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)


def test_an_antialiased_column_is_scaled_in_both_dimensions():
    """Torch drops the vertical interpolation of images it makes one pixel wide; their gradient has it."""
    image = pullback.arange(20.0).reshape(1, 1, 2, 10)
    column = pullback.nn.functional.interpolate(image, size=(4, 1), mode="bilinear", antialias=True)
    assert column.flatten().tolist() == pytest.approx([4.5, 7.0, 12.0, 14.5])
