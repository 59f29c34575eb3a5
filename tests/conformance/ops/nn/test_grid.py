"""grid_sample and affine_grid: values, graphs, first and second derivatives, errors."""

import itertools

import pytest

from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

MODES = list(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (True, False)))


@pytest.mark.parametrize("mode, padding, corners", MODES)
def test_samples_of_images_are_torchs_in_every_order(mode, padding, corners):
    settings = f"mode='{mode}', padding_mode='{padding}', align_corners={corners}"
    call = f"F.grid_sample(x(2, 3, 4, 5), x(2, 3, 2, 2) * 0.9, {settings})"
    agree_on(call)
    agree_in_every_order(call, forward=False)


@pytest.mark.parametrize("mode, padding, corners", [case for case in MODES if case[0] != "bicubic"])
def test_samples_of_volumes_are_torchs_in_every_order(mode, padding, corners):
    settings = f"mode='{mode}', padding_mode='{padding}', align_corners={corners}"
    call = f"F.grid_sample(x(1, 2, 3, 4, 3), x(1, 2, 2, 3, 3), {settings})"
    agree_on(call)
    agree_in_every_order(call, forward=False)


CALLS = lines("""
torch.grid_sampler(x(1, 2, 3, 3), x(1, 2, 2, 2), 0, 0, False)
torch.grid_sampler_2d(x(1, 2, 3, 3), x(1, 2, 2, 2), 2, 1, True)
torch.grid_sampler_3d(x(1, 2, 3, 3, 2), x(1, 2, 2, 2, 3), 0, 2, True)
F.grid_sample(x(1, 2, 1, 1), x(1, 2, 2, 2), padding_mode='reflection', align_corners=True)
F.grid_sample(x(1, 2, 3, 3), x(1, 2, 2, 2))
F.affine_grid(x(2, 2, 3), (2, 1, 3, 4), align_corners=True)
F.affine_grid(x(2, 2, 3), (2, 1, 1, 4), align_corners=True)
F.affine_grid(x(2, 2, 3), [2, 1, 3, 4])
F.affine_grid(x(1, 3, 4), (1, 1, 2, 3, 4), align_corners=False)
torch.affine_grid_generator(x(2, 2, 3), (2, 1, 3, 4), False)
""")


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_torchs_with_its_graph_warnings_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", CALLS[5:6] + CALLS[8:])
def test_an_affine_grid_has_torchs_gradient_and_tangent(call):
    agree_in_every_order(call)


@on_both
def test_points_far_outside_and_nowhere_sample_as_torchs_do(torch):
    x = torch.arange(12.0).reshape(1, 1, 3, 4)
    grid = torch.tensor([[[[1e30, 0.0], [-5.0, 9.0], [1.0, 1.0]]]])
    sample = torch.nn.functional.grid_sample
    return [
        [sample(x, grid, mode, padding, align_corners=False) for mode in ("bilinear", "nearest")]
        for padding in ("zeros", "border")
    ]


@on_both
def test_forward_mode_is_refused_as_by_torch(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
        try:
            torch.nn.functional.grid_sample(x, torch.zeros(1, 1, 1, 2), align_corners=False)
        except NotImplementedError as error:
            return str(error).split("\n")[0]
        return None


ERRORS = lines("""
F.grid_sample(x(2, 3, 4, 4), x(2, 3, 3, 2), mode='linear')
F.grid_sample(x(2, 3, 4, 4), x(2, 3, 3, 2), padding_mode='wrap')
F.grid_sample(x(2, 3, 4, 4), x(2, 3, 3, 3), align_corners=True)
F.grid_sample(x(2, 3, 4, 4), x(1, 3, 3, 2), align_corners=True)
F.grid_sample(x(2, 3, 4, 4), x(2, 3, 2), align_corners=True)
F.grid_sample(x(2, 3, 0, 4), x(2, 3, 3, 2), align_corners=True)
F.grid_sample(x(2, 3, 4, 4, 4), x(2, 3, 3, 3, 3), mode='bicubic', align_corners=True)
F.grid_sample(x(2, 3, 4, 4), x(2, 3, 3, 2).float(), align_corners=True)
F.affine_grid(x(2, 2, 3), (2, 1, 4), align_corners=True)
F.affine_grid(x(2, 3, 3), (2, 1, 4, 4), align_corners=True)
F.affine_grid(x(2, 2, 3).long(), (2, 1, 4, 4), align_corners=True)
F.affine_grid(x(2, 2, 3), (2, 1, 0, 4), align_corners=True)
F.affine_grid(x(2, 2, 3), (1, 1, 3, 4), align_corners=True)
torch.affine_grid_generator(x(2, 2, 3), (2, 1, 4), True)
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)
