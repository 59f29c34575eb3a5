"""Fake quantization: numbers rounded to the few that integers of a quantised tensor could stand for.

The result stays a floating point tensor. The gradient passes where the integer lay between its bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor, normal_dim
from pullback.ops.supported import SINGLE, invalid_combination, refuse, refuse_gradient


def check_bounds(quant_min: int, quant_max: int) -> None:
    """The smallest integer comes first."""
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or         equal to `quant_max`.")


def check_zero(least: int, most: int, quant_min: int, quant_max: int) -> None:
    """Zero is among the integers."""
    if least < quant_min or most > quant_max:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def rounded(self: Array, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """One scale for all elements; it counts as a float32, and so does the result until the end."""
    refuse("fake_quantize_tensor_cachemask_kernel_type_handling", self, "iubc")
    wide = self if self.dtype.itemsize > 2 else self.astype(SINGLE)
    step, zero = np.float32(scale), np.float32(zero_point)
    whole = (np.rint(wide * (np.float32(1) / step)) + zero).astype(SINGLE)
    inside = (whole >= quant_min) & (whole <= quant_max)
    return ((np.fmin(np.fmax(whole, quant_min), quant_max) - zero) * step).astype(self.dtype), inside


@op(
    vmap="leading",
    space=None,
    name="fake_quantize_per_tensor_affine_cachemask",
    outputs=("result", "mask"),
    visible=1,
    self=lambda grad, mask: grad * mask,
)
def by_numbers(self: Array, scale: float, zero_point: int, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """The same scale and zero for all elements."""
    check_bounds(quant_min, quant_max)
    check_zero(zero_point, zero_point, quant_min, quant_max)
    return rounded(self, scale, zero_point, quant_min, quant_max)


@op(
    vmap="entries",
    space=None,
    name="_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
    node="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    outputs=("result", "mask"),
    visible=1,
    self=lambda grad, mask: grad * mask,
)
def by_tensors(self: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int) -> tuple[Array, Array]:
    """The same, both given as tensors of one element."""
    check_bounds(quant_min, quant_max)
    for array in (scale, zero_point):
        if array.size != 1:
            raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    return rounded(self, scale.item(), int(zero_point.item()), quant_min, quant_max)


@function(method=False)
def fake_quantize_per_tensor_affine(self: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Array:
    """Round to the multiples of `scale` that whole numbers between two bounds stand for, `zero_point` for zero."""
    if isinstance(self, Tensor) and isinstance(scale, Tensor) and isinstance(zero_point, Tensor):
        refuse_gradient(by_tensors.op.name, scale=scale, zero_point=zero_point)
        return by_tensors(self, scale, zero_point, quant_min, quant_max)
    scale, zero_point = (v.item() if isinstance(v, Tensor) and not v.ndim else v for v in (scale, zero_point))
    if not isinstance(self, Tensor) or not isinstance(scale, (int, float)) or not isinstance(zero_point, int):
        given = (self, scale, zero_point, quant_min, quant_max)
        raise invalid_combination("fake_quantize_per_tensor_affine", given)
    return by_numbers(self, scale, zero_point, quant_min, quant_max)


def check_channels(self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> None:
    """Torch's demands on the scales and zeros of channels, in its order."""
    kinds = FROM_NUMPY[scale.dtype], FROM_NUMPY[zero_point.dtype]
    if kinds[0].scalar_type not in ("Float", "BFloat16"):
        raise RuntimeError(f"Scale must be Float or BFloat16, found {kinds[0].scalar_type}")
    if kinds[1].scalar_type not in ("Int", "Float", "Half"):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {kinds[1].scalar_type}")
    for array, name in ((scale, "scale"), (zero_point, "zero point")):
        if array.ndim != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
    if scale.size != zero_point.size:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    if self.shape[normal_dim(axis, self.ndim)] != scale.size:
        raise RuntimeError("dimensions of scale and zero-point are not consistent with input tensor")
    check_bounds(quant_min, quant_max)
    if not scale.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    check_zero(zero_point.min(), zero_point.max(), quant_min, quant_max)
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")


@op(
    vmap="entries",
    space=None,
    name="fake_quantize_per_channel_affine_cachemask",
    outputs=("result", "mask"),
    visible=1,
    self=lambda grad, mask: grad * mask,
)
def by_channels(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> tuple[Array, Array]:
    """A scale and a zero for each channel."""
    check_channels(self, scale, zero_point, axis, quant_min, quant_max)
    refuse("fake_quantize_channel_cachemask_cpu_type_handling", self, "iubc")
    shape = [-1 if dim == axis else 1 for dim in range(self.ndim)]
    step, zero = scale.astype(SINGLE).reshape(shape), zero_point.reshape(shape)
    turns = (self if self.dtype.itemsize > 2 else self.astype(SINGLE)) * (np.float32(1) / step)
    # As whole numbers, where what is too large for one, and nan, becomes the smallest there is.
    if zero.dtype.kind == "i":
        whole = (np.rint(turns) + zero.astype(turns.dtype)).astype(np.int64)
    else:
        whole = np.rint(turns + zero.astype(SINGLE)).astype(np.int64)
    inside = (whole >= quant_min) & (whole <= quant_max)
    kept = np.minimum(np.maximum(whole, quant_min), quant_max).astype(np.float64)
    return ((kept - zero) * step).astype(self.dtype), inside


@function(method=False)
def fake_quantize_per_channel_affine(
    self: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Array:
    """The same with a scale and a zero point for each index of the dimension `axis`."""
    for position, (name, value) in enumerate((("input", self), ("scale", scale), ("zero_point", zero_point))):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(
                f"fake_quantize_per_channel_affine(): argument '{name}' (position {position + 1}) must be Tensor, not "
                f"{kind}"
            )
    refuse_gradient(by_channels.op.name, scale=scale, zero_point=zero_point)
    return by_channels(self, scale, zero_point, axis, quant_min, quant_max)
