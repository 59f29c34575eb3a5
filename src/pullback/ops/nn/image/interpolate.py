"""Scaling to another size: interpolate in all its modes, and its older names."""

from __future__ import annotations

import math
from typing import Any

from pullback._arrays.sizes import LARGEST
from pullback._op.define import function
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor
from pullback.ops.create.filled import is_int
from pullback.ops.nn.image.upsample import upsample_ops
from pullback.ops.nn.pool.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

NDIM = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3, "lanczos": 2}
MODES = {"linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic", "lanczos": "lanczos"}


def sizes_and_factors(input: Any, size: Any, scale_factor: Any, rounded: bool) -> tuple[Any, Any]:
    """The size asked for or the factors, one for each dimension; the other is None.

    Factors that are `rounded` to a size at once may be tensors.
    """
    dim = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    spatial = list(input.shape[2:])
    form = "Please provide input tensor in (N, C, d1, d2, ...,dK) format and"
    if size is None:
        if not isinstance(scale_factor, (list, tuple)):
            if not isinstance(scale_factor, (int, float, Tensor) if rounded else (int, float)):
                given = type(scale_factor).__name__
                raise TypeError(f"expected scale_factor to be a number or a tuple of numbers, but got {given}")
            return None, (scale_factor,) * dim
        if len(scale_factor) != dim:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {spatial} and scale_factor of shape {scale_factor}. {form} scale_factor in (s1, s2, "
                "...,sK) format."
            )
        if not rounded and any([isinstance(factor, Tensor) for factor in scale_factor]):
            raise TypeError("expected scale_factor to be a number or a tuple of numbers, but got a tuple with Tensor")
        return None, tuple(scale_factor)
    if not isinstance(size, (list, tuple)):
        if not is_int(size):
            raise TypeError(f"expected size to be an int or a tuple of ints, but got {type(size).__name__}")
        return (int(size),) * dim, None
    if len(size) != dim:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {spatial} and output size of {size}. {form} output size in (o1, o2, ...,oK) format."
        )
    if not all([is_int(n) or (nr and isinstance(n, bool)) for nr, n in enumerate(size)]):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(n) for n in size]}"
        )
    return tuple([int(n) for n in size]), None


@function(raw=True, space="nn.functional", method=False)
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize the spatial dimensions of signals, images or volumes, to a size or by a factor.

    `input` is `(N, C, L)`, `(N, C, H, W)` or `(N, C, D, H, W)`. Give `size` or `scale_factor`, one number or one for
    each spatial dimension. `mode` is 'nearest', 'nearest-exact', 'linear' (3-D input), 'bilinear', 'bicubic' or
    'lanczos' (4-D), 'trilinear' (5-D) or 'area'. With `align_corners` the outermost samples of input and output
    coincide, otherwise the outer edges of their pixels do. `recompute_scale_factor` derives the scale from the rounded
    size, and `antialias` (bilinear, bicubic; always for lanczos) smooths when images shrink.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            modes = "linear | bilinear | bicubic | trilinear"
            raise ValueError(f"align_corners option can only be set with the interpolating modes: {modes}")
    elif align_corners is None:
        align_corners = False
    dim = input.ndim - 2
    rounded = bool(recompute_scale_factor) or mode == "area"
    sizes, factors = sizes_and_factors(input, size, scale_factor, rounded)
    if recompute_scale_factor and sizes is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if rounded and sizes is None:
        sizes, factors = tuple([math.floor(float(n) * f) for n, f in zip(input.shape[2:], factors, strict=True)]), None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and dim == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if dim not in (1, 2, 3) or NDIM.get(mode, dim) != dim:
        raise wrong_dimensions(input.ndim, mode)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[dim - 1](input, sizes)
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if mode not in MODES and mode not in ("nearest", "nearest-exact"):
        raise wrong_dimensions(input.ndim, mode)
    if sizes is None:
        sizes = tuple([scaled(n, f) for n, f in zip(input.shape[2:], factors, strict=True)])
    scales = (None,) * dim if factors is None else tuple([float(f) for f in factors])
    kind = MODES.get(mode, mode.replace("-", "_")) + ("_aa" if antialias else "")
    return upsample_ops(kind, dim)[0](input, sizes, align_corners, *scales)


def scaled(n: int, factor: float) -> int:
    """A size times a factor, if 64 bits can hold it."""
    size = n * float(factor)
    if not -LARGEST <= size <= LARGEST:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(size)


def wrong_dimensions(ndim: int, mode: str) -> NotImplementedError:
    """Torch's error for a mode that does not exist for inputs of so many dimensions."""
    if mode in ("linear", "bilinear", "trilinear") and ndim in (3, 4, 5):
        return NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {NDIM[mode] + 2}D input")
    return NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def deprecated(name: str) -> None:
    """Torch's warning about the older names."""
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@function(raw=True, space="nn.functional", method=False)
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Resize the spatial dimensions: the deprecated name of `interpolate`, with a warning."""
    deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(raw=True, space="nn.functional", method=False)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize the spatial dimensions in the mode 'nearest': deprecated, use `interpolate`."""
    deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@function(raw=True, space="nn.functional", method=False)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize images in the mode 'bilinear' with `align_corners=True`: deprecated, use `interpolate`."""
    deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
