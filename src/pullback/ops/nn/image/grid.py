"""Sampling at any points: grid_sample, and the points of an affine map: affine_grid."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, linear, not_implemented, op
from pullback._runtime.messages import shape_text
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.kernels.numpy.image import grid as kernels
from pullback.ops.supported import refuse

MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}

# ------------------------------------------------------------------ grid_sample


def check_grid(input: Array, grid: Array, interpolation_mode: int, padding_mode: int) -> None:
    """Torch's demands on an image and the points it is sampled at."""
    interpolation_mode, _ = index(interpolation_mode), index(padding_mode)
    shapes = f"input with sizes {shape_text(input.shape)} and grid with sizes {shape_text(grid.shape)}"
    if grid.shape[0] != input.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got {shapes}")
    if input.ndim != grid.ndim and input.ndim in (4, 5):
        raise RuntimeError(
            f"grid_sampler(): expected {input.ndim}D input and grid with same number of dimensions, but got {shapes}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
            f"{shape_text(grid.shape)}"
        )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got {shapes}"
        )
    for dim in range(2, input.ndim):
        if not input.shape[dim]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{shape_text(input.shape)} with dimension {dim} being empty"
            )
    if input.ndim == 5 and interpolation_mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if input.ndim == 5:
        refuse("grid_sampler3d_cpu", input, "iubc")
    if nothing_to_sample(input, grid):
        return  # torch asks where it computes
    if input.dtype != grid.dtype:
        kinds = [FROM_NUMPY[array.dtype].scalar_type for array in (input, grid)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    if input.ndim == 4:
        refuse("grid_sampler_2d_cpu_kernel_impl", input, "iubc")


def nothing_to_sample(input: Array, grid: Array) -> bool:
    """True for no images, no channels or no points."""
    return not input.size or not grid.size


def sampled(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """What is found at the points."""
    check_grid(input, grid, interpolation_mode, padding_mode)
    if type(input) is np.ndarray and nothing_to_sample(input, grid):
        return np.empty((*input.shape[:2], *grid.shape[1:-1]), input.dtype)
    return kernels.grid_sample(input, grid, interpolation_mode, padding_mode, align_corners)


def sampler_rule(
    grad: Any,
    input: Any,
    grid: Any,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    wants: tuple[bool, ...],
) -> Any:
    """The gradients of the image and of the points."""
    backward = grid_sampler_2d_backward if len(input.shape) == 4 else grid_sampler_3d_backward
    return backward(grad, input, grid, interpolation_mode, padding_mode, align_corners, wants)


def sampler_double_rule(
    grads: Any,
    grad_output: Any,
    input: Any,
    grid: Any,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Any:
    """The gradients of those gradients."""
    return grid_sampler_double_backward(
        grads[0], grads[1], grad_output, input, grid, interpolation_mode, padding_mode, align_corners
    )


@op(vmap="samples", method=False, out=False, node="GridSampler2DBackward0", autocast="float32", backward=sampler_rule)
def grid_sampler_2d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Sample images at the points of a grid.

    As `nn.functional.grid_sample`, with modes as numbers: `interpolation_mode` is 0 bilinear, 1 nearest or 2 bicubic,
    `padding_mode` is 0 zeros, 1 border or 2 reflection.
    """
    return sampled(input, grid, interpolation_mode, padding_mode, align_corners)


@op(vmap="samples", method=False, out=False, node="GridSampler3DBackward0", autocast="float32", backward=sampler_rule)
def grid_sampler_3d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Sample volumes at the points of a grid.

    As `nn.functional.grid_sample`, with modes as numbers: `interpolation_mode` is 0 trilinear or 1 nearest,
    `padding_mode` is 0 zeros, 1 border or 2 reflection.
    """
    return sampled(input, grid, interpolation_mode, padding_mode, align_corners)


@op(
    vmap="samples",
    space=None,
    node="GridSampler2DBackwardBackward0",
    outputs=("result0", "result1"),
    backward=sampler_double_rule,
)
def grid_sampler_2d_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Any,
) -> Any:
    """The gradients of the images and of the points."""
    return kernels.grid_sample_backward(
        grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
    )


@op(
    vmap="samples",
    space=None,
    node="GridSampler3DBackwardBackward0",
    outputs=("result0", "result1"),
    backward=sampler_double_rule,
)
def grid_sampler_3d_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Any,
) -> Any:
    """The gradients of the volumes and of the points."""
    return kernels.grid_sample_backward(
        grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
    )


@op(
    vmap="samples",
    space=None,
    outputs=("result0", "result1", "result2"),
    for_image=not_implemented,
    for_grid=not_implemented,
    grad_output=not_implemented,
    input=not_implemented,
    grid=not_implemented,
)
def grid_sampler_double_backward(
    for_image: Array | None,
    for_grid: Array | None,
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Any:
    """The second derivative of sampling."""
    return kernels.grid_sample_double_backward(
        for_image, for_grid, grad_output, input, grid, interpolation_mode, padding_mode, align_corners
    )


@function(raw=True, method=False, autocast="float32")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Sample images or volumes at the points of a grid.

    As `nn.functional.grid_sample`, with modes as numbers: `interpolation_mode` is 0 bilinear, 1 nearest or 2 bicubic,
    `padding_mode` is 0 zeros, 1 border or 2 reflection.
    """
    sampler = grid_sampler_3d if input.ndim == 5 else grid_sampler_2d
    return sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def corners_or_warn(align_corners: bool | None) -> bool:
    """Torch's warning where nobody says what the coordinates -1 and 1 mean."""
    if align_corners is None:
        warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
        )
        return False
    return align_corners


@function(raw=True, space="nn.functional", method=False)
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Sample images or volumes at the points of a grid.

    `input` is `(N, C, H, W)` and `grid` is `(N, H_out, W_out, 2)` with points (x, y), or `(N, C, D, H, W)` and
    `(N, D_out, H_out, W_out, 3)` with points (x, y, z); coordinates run from -1 to 1 across the image, between the
    centres of the corner pixels with `align_corners`, between their outer edges without. `mode` is 'bilinear',
    'nearest' or 'bicubic' (images only); `padding_mode` says what lies outside: 'zeros', 'border' or 'reflection'.
    Returns `(N, C, H_out, W_out)` or `(N, C, D_out, H_out, W_out)`.
    """
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return grid_sampler(input, grid, MODES[mode], PADDINGS[padding_mode], corners_or_warn(align_corners))


# ------------------------------------------------------------------ affine_grid


@op(
    vmap="entries",
    method=False,
    out=False,
    theta=lambda grad, size, align_corners: affine_grid_generator_backward(grad, size, align_corners),
    result=linear,
)
def affine_grid_generator(theta: Array, size: Any, align_corners: bool) -> Array:
    """Make the grid of points with which `grid_sampler` applies affine maps.

    As `nn.functional.affine_grid`, with all arguments given.
    """
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    wanted = (size[0], len(size) - 1)
    found = (theta.shape[0], theta.shape[-1])
    if found != wanted:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {shape_text(wanted)} but got: "
            f"{shape_text(found)}."
        )
    return kernels.affine_grid(theta, tuple(size), align_corners)


@op(
    vmap="entries",
    space=None,
    node="TransposeBackward0",
    grad_output=lambda grad, size, align_corners: affine_grid_generator(grad, size, align_corners),
    result=linear,
)
def affine_grid_generator_backward(grad_output: Array, size: Any, align_corners: bool) -> Array:
    """The gradient of the affine maps."""
    return kernels.affine_grid_backward(grad_output, tuple(size), align_corners)


@function(raw=True, space="nn.functional", method=False)
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Make the grid of points with which `grid_sample` applies affine maps.

    `theta` holds a matrix for each sample: `(N, 2, 3)` for a `size` of `(N, C, H, W)`, `(N, 3, 4)` for one of
    `(N, C, D, H, W)`. Every point of the output, in coordinates from -1 to 1, is mapped to where to look in the input.
    `align_corners` is as in `grid_sample`, and should be the same there.
    Returns `(N, H, W, 2)` or `(N, D, H, W, 3)`.
    """
    align_corners = corners_or_warn(align_corners)
    if not theta.is_floating_point():  # type: ignore[attr-defined]
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    ndim = len(size) - 2
    if ndim not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (ndim, ndim + 1):
        wanted = f"{ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for size {size}"
        raise ValueError(f"Expected a batch of {wanted}. Got {theta.shape}.")
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, tuple(size), align_corners)
