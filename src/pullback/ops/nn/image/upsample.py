"""The ops behind interpolate: each mode in each number of dimensions, with its derivative."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._arrays.sizes import check_storage
from pullback._op.define import Array, linear, op
from pullback._runtime.messages import shape_text
from pullback._thresholds import SMALL_IMAGE
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.image import resample as kernels
from pullback.ops.supported import SINGLE, refuse

KERNELS = {"nearest": "nearest", "nearest_exact": "nearest", "linear": "linear", "cubic": "cubic"}

BY_NEAREST = ("nearest", "nearest_exact")


def check_sizes(shape: tuple[int, ...], output_size: Any, itemsize: int) -> None:
    """Torch's demands on the shape of what is scaled, and the size it is scaled to."""
    sizes, ndim = shape[2:], len(output_size)
    if min(sizes) <= 0 or min(output_size) <= 0:
        letters = "DHW"[3 - ndim :]
        given = ", ".join(f"{c}: {n}" for c, n in zip(letters, sizes, strict=True))
        wanted = ", ".join(f"{c}: {n}" for c, n in zip(letters, output_size, strict=True))
        join = " and" if ndim == 1 else ""
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({given}){join} output ({wanted})"
        )
    if 0 in shape[1:]:
        raise RuntimeError(
            f"Non-empty {ndim + 2}D data tensor expected but got a tensor with sizes {shape_text(shape)}"
        )
    check_storage((*shape[:2], *output_size), itemsize)


def check_dtype(self: Array, ndim: int, mode: str) -> None:
    """Torch's demands on the dtype of what is scaled."""
    if self.dtype != np.uint8 or (mode == "linear" and ndim != 2):
        kernel = "compute_index_ranges_weights" if mode.endswith("_aa") else f"compute_indices_weights_{KERNELS[mode]}"
        if ndim == 2 and mode in ("nearest", "nearest_exact", "linear"):
            kernel = f"upsample_{'bilinear' if mode == 'linear' else 'nearest'}2d_channels_last"
        refuse(kernel, self, "iubc")


def tables(sizes: Any, output_size: Any, align_corners: Any, scales: Any, mode: str, dtype: Any) -> Any:
    """Where the elements along each dimension come from."""
    double = dtype == np.float64 or (dtype == np.uint8 and not mode.startswith("nearest"))
    real = np.float64 if double else np.float32
    return tuple(
        [
            kernels.interpolation(mode, n, count, bool(align_corners), scale, real)
            for n, count, scale in zip(sizes, output_size, scales, strict=True)
        ]
    )


@lru_cache(256)
def checked_tables(shape: Any, output_size: Any, align_corners: Any, scales: Any, mode: str, dtype: Any) -> Any:
    """The tables of a call whose sizes torch accepts."""
    check_sizes(shape, output_size, dtype.itemsize)
    by_index = mode in BY_NEAREST and len(output_size) == 2 and sum(output_size) <= SMALL_IMAGE
    return tables(shape[2:], output_size, align_corners, scales, f"{mode}_index" if by_index else mode, dtype)


def upsampled(self: Array, output_size: Any, align_corners: Any, scales: Any, mode: str) -> Array:
    """The array scaled to another size."""
    found = checked_tables(self.shape, output_size, align_corners, scales, mode, self.dtype)
    if self.dtype is not SINGLE:
        check_dtype(self, len(output_size), mode)
    if self.dtype == np.uint8 and found[0].weights is not None:
        return laid_out_as(kernels.resample_bytes(self, found), self)
    return laid_out_as(kernels.resample_all(self, found), self)


def upsampling(name: str, node: str, mode: str, ndim: int) -> tuple[Any, Any]:
    """The op of a mode in so many dimensions, and that of its derivative; its scales are called as torch calls them."""
    if ndim == 1:

        def forward(self: Array, output_size: Any, align_corners: Any, scales: Any) -> Array:
            return upsampled(self, output_size, align_corners, (scales,), mode)

        def aligned(grad: Any, self_sym_sizes: Any, output_size: Any, align_corners: Any, scales: Any) -> Any:
            return upsample_ops(mode, 1)[1](grad, self_sym_sizes, output_size, align_corners, (scales,))

        def nearest(grad: Any, self_sym_sizes: Any, output_size: Any, scales: Any) -> Any:
            return upsample_ops(mode, 1)[1](grad, self_sym_sizes, output_size, None, (scales,))

    elif ndim == 2:

        def forward(self: Array, output_size: Any, align_corners: Any, scales_h: Any, scales_w: Any) -> Array:
            return upsampled(self, output_size, align_corners, (scales_h, scales_w), mode)

        def aligned(
            grad: Any, self_sym_sizes: Any, output_size: Any, align_corners: Any, scales_h: Any, scales_w: Any
        ) -> Any:
            return upsample_ops(mode, 2)[1](grad, self_sym_sizes, output_size, align_corners, (scales_h, scales_w))

        def nearest(grad: Any, self_sym_sizes: Any, output_size: Any, scales_h: Any, scales_w: Any) -> Any:
            return upsample_ops(mode, 2)[1](grad, self_sym_sizes, output_size, None, (scales_h, scales_w))

    else:

        def forward(
            self: Array, output_size: Any, align_corners: Any, scales_d: Any, scales_h: Any, scales_w: Any
        ) -> Array:
            return upsampled(self, output_size, align_corners, (scales_d, scales_h, scales_w), mode)

        def aligned(
            grad: Any,
            self_sym_sizes: Any,
            output_size: Any,
            align_corners: Any,
            scales_d: Any,
            scales_h: Any,
            scales_w: Any,
        ) -> Any:
            scales = (scales_d, scales_h, scales_w)
            return upsample_ops(mode, 3)[1](grad, self_sym_sizes, output_size, align_corners, scales)

        def nearest(
            grad: Any, self_sym_sizes: Any, output_size: Any, scales_d: Any, scales_h: Any, scales_w: Any
        ) -> Any:
            return upsample_ops(mode, 3)[1](grad, self_sym_sizes, output_size, None, (scales_d, scales_h, scales_w))

    def backward(grad_output: Array, input_size: Any, output_size: Any, align_corners: Any, scales: Any) -> Array:
        kind = f"{mode}_index" if mode in BY_NEAREST else mode
        found = tables(input_size[2:], output_size, align_corners, scales, kind, grad_output.dtype)
        return kernels.resample_all_backward(grad_output, found)

    forward.__name__, backward.__name__ = name, f"{name}_backward"
    forward.__doc__ = f"Scale the last {ndim} dimensions in the mode {mode}."
    backward.__doc__ = f"The gradient of {name}."
    first = op(
        vmap="samples",
        space=None,
        node=f"{node}Backward0",
        self=nearest if mode.startswith("nearest") else aligned,
        result=linear,
    )(forward)
    second = op(
        vmap="samples",
        space=None,
        node=f"{node}BackwardBackward0",
        grad_output=lambda grad, output_size, align_corners, scales: upsample_ops(mode, ndim)[0](
            grad, output_size, align_corners, *scales
        ),
        result=linear,
    )(backward)
    return first, second


upsample_nearest1d, upsample_nearest1d_backward = upsampling("upsample_nearest1d", "UpsampleNearest1D", "nearest", 1)
upsample_nearest2d, upsample_nearest2d_backward = upsampling("upsample_nearest2d", "UpsampleNearest2D", "nearest", 2)
upsample_nearest3d, upsample_nearest3d_backward = upsampling("upsample_nearest3d", "UpsampleNearest3D", "nearest", 3)
upsample_exact1d, upsample_exact1d_backward = upsampling(
    "_upsample_nearest_exact1d", "UpsampleNearestExact1D", "nearest_exact", 1
)
upsample_exact2d, upsample_exact2d_backward = upsampling(
    "_upsample_nearest_exact2d", "UpsampleNearestExact2D", "nearest_exact", 2
)
upsample_exact3d, upsample_exact3d_backward = upsampling(
    "_upsample_nearest_exact3d", "UpsampleNearestExact3D", "nearest_exact", 3
)
upsample_linear1d, upsample_linear1d_backward = upsampling("upsample_linear1d", "UpsampleLinear1D", "linear", 1)
upsample_bilinear2d, upsample_bilinear2d_backward = upsampling("upsample_bilinear2d", "UpsampleBilinear2D", "linear", 2)
upsample_trilinear3d, upsample_trilinear3d_backward = upsampling(
    "upsample_trilinear3d", "UpsampleTrilinear3D", "linear", 3
)
upsample_bicubic2d, upsample_bicubic2d_backward = upsampling("upsample_bicubic2d", "UpsampleBicubic2D", "cubic", 2)
upsample_bilinear_aa, upsample_bilinear_aa_backward = upsampling(
    "_upsample_bilinear2d_aa", "UpsampleBilinear2DAa", "linear_aa", 2
)
upsample_bicubic_aa, upsample_bicubic_aa_backward = upsampling(
    "_upsample_bicubic2d_aa", "UpsampleBicubic2DAa", "cubic_aa", 2
)
upsample_lanczos_aa, upsample_lanczos_aa_backward = upsampling(
    "_upsample_lanczos2d_aa", "UpsampleLanczos2DAa", "lanczos_aa", 2
)


def upsample_ops(mode: str, ndim: int) -> tuple[Any, Any]:
    """The op of a mode in so many dimensions, and that of its derivative."""
    if ndim == 2 and mode == "nearest":
        return upsample_nearest2d, upsample_nearest2d_backward
    if ndim == 2 and mode == "linear":
        return upsample_bilinear2d, upsample_bilinear2d_backward
    return {
        ("nearest", 1): (upsample_nearest1d, upsample_nearest1d_backward),
        ("nearest", 2): (upsample_nearest2d, upsample_nearest2d_backward),
        ("nearest", 3): (upsample_nearest3d, upsample_nearest3d_backward),
        ("nearest_exact", 1): (upsample_exact1d, upsample_exact1d_backward),
        ("nearest_exact", 2): (upsample_exact2d, upsample_exact2d_backward),
        ("nearest_exact", 3): (upsample_exact3d, upsample_exact3d_backward),
        ("linear", 1): (upsample_linear1d, upsample_linear1d_backward),
        ("linear", 2): (upsample_bilinear2d, upsample_bilinear2d_backward),
        ("linear", 3): (upsample_trilinear3d, upsample_trilinear3d_backward),
        ("cubic", 2): (upsample_bicubic2d, upsample_bicubic2d_backward),
        ("linear_aa", 2): (upsample_bilinear_aa, upsample_bilinear_aa_backward),
        ("cubic_aa", 2): (upsample_bicubic_aa, upsample_bicubic_aa_backward),
        ("lanczos_aa", 2): (upsample_lanczos_aa, upsample_lanczos_aa_backward),
    }[mode, ndim]
