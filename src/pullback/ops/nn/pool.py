"""Pooling by average: avg_pool1d, 2d and 3d."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._messages import dim_out_of_range, shape_text
from pullback._op.define import Array, function, op
from pullback._tensor import Tensor
from pullback.kernels import pool as kernels
from pullback.ops.shape import squeeze_dim, unsqueeze
from pullback.ops.supported import refuse

WORDS = {1: "one", 2: "two", 3: "three"}

# ------------------------------------------------------------------ what all poolings ask


def as_sizes(name: str, what: str, value: Any, ndim: int) -> tuple[int, ...]:
    """One number for every dimension, or one for each."""
    if isinstance(value, (tuple, list)):
        sizes = tuple([index(v) for v in value])
    else:
        sizes = (index(value),)
    if len(sizes) not in (1, ndim):
        extra = "omitted, a single int, or" if what == "stride" else "either be a single int, or"
        verb = "must either be" if what == "stride" else "must"
        raise RuntimeError(f"{name}: {what} {verb} {extra} a tuple of {WORDS[ndim]} ints")
    return sizes * ndim if len(sizes) == 1 else sizes


def check_window(
    self: Array, counts: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any, name: str
) -> None:
    """Torch's demands on windows that slide over an array."""
    ndim = len(kernel)
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0 or p > ((k - 1) * d + 1) // 2:
            if p < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )
    if any(c < 1 for c in counts):
        channels = self.shape[-ndim - 1]
        given = "x".join(map(str, (channels, *self.shape[-ndim:])))
        found = "x".join(map(str, (channels, *counts)))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({found}). Output size is too small")


def check_dims(self: Array, ndim: int) -> None:
    """The input is a batch of images, or one."""
    if self.ndim not in (ndim + 1, ndim + 2):
        if ndim == 3:
            raise RuntimeError("non-empty 4D or 5D (batch mode) tensor expected for input")
        if self.ndim < ndim + 1:
            raise IndexError(dim_out_of_range(-ndim - 1, self.ndim))
    if 0 in self.shape[self.ndim - ndim - 1 :]:
        batch = "with optional 0 dim batch size for input"
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor {batch}, but got:{shape_text(self.shape)}"
        )


# ------------------------------------------------------------------ averages


def averaged_windows(
    self: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The average of every window; the number of dimensions is that of the kernel."""
    ndim = len(kernel_size)
    name = f"avg_pool{ndim}d"
    check_dims(self, ndim)
    stride = tuple(stride) or tuple(kernel_size)
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    refuse(name, self, "bc")
    ones = (1,) * ndim
    counts = tuple(
        [
            kernels.pooled_size(n, k, s, p, 1, ceil_mode)
            for n, k, s, p in zip(self.shape[-ndim:], kernel_size, stride, padding, strict=True)
        ]
    )
    check_window(self, counts, kernel_size, stride, padding, ones, name)
    return kernels.avg_pool(self, counts, kernel_size, stride, padding, count_include_pad, divisor_override)


def spread_windows(
    grad: Any,
    self: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """The gradient of every window, shared among its elements."""
    sizes = tuple(self.shape[-len(kernel_size) :])
    return avg_pool_backward(
        grad, sizes, kernel_size, tuple(stride) or kernel_size, padding, ceil_mode, count_include_pad, divisor_override
    )


@op(
    space=None,
    name="avg_pool2d",
    node="AvgPool2DBackward0",
    self=spread_windows,
    result=lambda self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool_2d(
        self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
)
def avg_pool_2d(
    self: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The averages of windows over the last two dimensions."""
    return averaged_windows(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@op(
    space=None,
    name="avg_pool3d",
    node="AvgPool3DBackward0",
    self=spread_windows,
    result=lambda self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: avg_pool_3d(
        self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    ),
)
def avg_pool_3d(
    self: Array,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The averages of windows over the last three dimensions."""
    return averaged_windows(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@op(
    space=None,
    grad_output=lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
        averaged_windows(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        if isinstance(grad, np.ndarray)
        else (avg_pool_2d if len(kernel_size) == 2 else avg_pool_3d)(
            grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    ),
    result=lambda grad_output_t, sizes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
        avg_pool_backward(
            grad_output_t, sizes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
    ),
)
def avg_pool_backward(
    grad_output: Array,
    sizes: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    """The gradient of an average pooling."""
    return kernels.avg_pool_backward(
        grad_output, sizes, kernel_size, stride, padding, count_include_pad, divisor_override
    )


def window_arguments(name: str, ndim: int, kernel_size: Any, stride: Any, padding: Any) -> tuple[Any, Any, Any]:
    """Kernel, stride (empty: that of the kernel) and padding, one number for each dimension."""
    kernel = as_sizes(name, "kernel_size", kernel_size, ndim)
    given = stride is not None and stride != () and stride != []
    strides = as_sizes(name, "stride", stride, ndim) if given else ()
    return kernel, strides, as_sizes(name, "padding", padding, ndim)


@function(space="nn.functional", method=False)
def avg_pool2d(
    self: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The averages of windows that slide over images."""
    kernel, strides, pads = window_arguments("avg_pool2d", 2, kernel_size, stride, padding)
    return avg_pool_2d(self, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override)


@function(space="nn.functional", method=False)
def avg_pool3d(
    self: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The averages of windows that slide over volumes."""
    kernel, strides, pads = window_arguments("avg_pool3d", 3, kernel_size, stride, padding)
    return avg_pool_3d(self, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override)


@function(space="nn.functional", method=False)
def avg_pool1d(
    self: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The averages of windows that slide over signals."""
    if self.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {self.ndim}-dimensional tensor for argument #1 'self' (while checking "
            "arguments for avg_pool1d)"
        )
    (kernel,), strides, (pad,) = window_arguments("avg_pool1d", 1, kernel_size, stride, padding)
    image = unsqueeze(self, -2)
    wide = (1, *strides) if strides else ()
    return squeeze_dim(avg_pool_2d(image, (1, kernel), wide, (0, pad), ceil_mode, count_include_pad, None), -2)
