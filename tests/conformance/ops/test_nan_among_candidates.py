"""What becomes of nan and infinities where elements are searched, sampled, counted or cast: as in torch."""

from __future__ import annotations

import pytest

from tests.conformance.ops.test_what_random_programs_found import agree

TABLE = "torch.tensor([[nan, 1.0], [1.0, nan], [2.0, 0.5], [nan, nan]], dtype=torch.{})"


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64"])
@pytest.mark.parametrize("right", [False, True])
def test_searching_among_boundaries_in_no_order_bisects_as_torch_does(dtype: str, right: bool) -> None:
    values = f"torch.tensor([5, -1, 3, 9, 0, 2, 7, -4, 3]).to(torch.{dtype})"
    agree(f"torch.bucketize({values}, torch.tensor([3, -2, 8, 1, 0]).to(torch.{dtype}), right={right})")
    agree(f"torch.searchsorted(torch.tensor([[4, 1, 7], [1, 2, 3]]).to(torch.{dtype}), "
          f"{values}[:8].view(2, 4), right={right})")  # fmt: skip


@pytest.mark.parametrize("p", ["0.0", "0.5", "1.0", "2.0", "3.0", "inf"])
def test_distances_between_rows_that_hold_nan(p: str) -> None:
    rows = "torch.tensor([[nan, 1.0, 2.0], [0.5, 1.0, inf], [nan, nan, nan], [0.5, 1.0, -1.0]])"
    agree(f"torch.cdist({rows}, {rows}, {p})")
    agree(f"torch.nn.functional.pdist({rows}, {p})")


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("corners", [False, True])
def test_samples_at_points_that_are_no_numbers(mode: str, padding: str, corners: bool) -> None:
    ends = "torch.tensor([nan, inf, -inf, 0.3, -1.2, 1.7])"
    how = f"mode='{mode}', padding_mode='{padding}', align_corners={corners}"
    points = f"torch.cartesian_prod({ends}, {ends}).view(1, 6, 6, 2)"
    agree(f"torch.nn.functional.grid_sample(torch.arange(24.0).view(1, 2, 3, 4), {points}, {how})")
    if mode != "bicubic":
        points = f"torch.cartesian_prod({ends}, {ends}, {ends}).view(1, 6, 6, 6, 3)"
        agree(f"torch.nn.functional.grid_sample(torch.arange(48.0).view(1, 2, 2, 3, 4), {points}, {how})")


@pytest.mark.parametrize("loss", ["multi_margin_loss", "multilabel_margin_loss"])
def test_margins_to_nan_are_kept(loss: str) -> None:
    target = "torch.tensor([0, 1, 2])" if loss == "multi_margin_loss" else "torch.tensor([[0, 2, -1, 0]] * 3)"
    scores = "torch.tensor([[nan, 1.0, 2.0, 0.1], [0.5, nan, inf, 0.2], [0.3, -inf, 0.7, 0.1]])"
    agree(f"torch.nn.functional.{loss}({scores}, {target}, reduction='none')")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bag", ["[0, 1, 2]", "[1, 0, 2]", "[2, 3]", "[3, 0]", "[1]"])
def test_only_the_first_nan_of_a_bag_is_its_largest_element(dtype: str, bag: str) -> None:
    offsets = "torch.tensor([0])"
    agree(f"torch.embedding_bag({TABLE.format(dtype)}, torch.tensor({bag}), {offsets}, False, 2)")


def test_numbers_beyond_32_bits_wrap_around_in_bytes() -> None:
    wide = "torch.tensor([2.0**33 + 5, -(2.0**40) - 3, 2.0**63, 1e30, nan, inf, -1.5, 300.0], dtype=torch.float64)"
    agree(f"{wide}.to(torch.uint8)")
    agree(f"torch.zeros(8, dtype=torch.uint8).copy_({wide})")
    agree(f"torch.complex({wide}, {wide}).byte()")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("corners", [False, True])
def test_grids_of_affine_maps_keep_their_dtype(dtype: str, corners: bool) -> None:
    maps = f"torch.tensor([[[0.5, 0.25, 1.0], [0.0, 2.0, -1.0]]], dtype=torch.{dtype})"
    agree(f"torch.nn.functional.affine_grid({maps}, (1, 1, 3, 2), align_corners={corners})")
