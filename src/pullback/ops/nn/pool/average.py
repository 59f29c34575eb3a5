"""Pooling by average: avg_pool1d, 2d and 3d."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any

from pullback._arrays.half import is_half
from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, function, op
from pullback._op.out import exact
from pullback.kernels.compiled import room
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.pool import sliding as kernels
from pullback.ops.nn.pool.checks import (
    check_between,
    check_channels,
    check_image,
    counts_of,
    is_omitted,
    one_int,
    output_counts,
    window_arguments,
)
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze, zeros_of
from pullback.ops.supported import SINGLE, refuse

# ------------------------------------------------------------------ averages


@lru_cache(256)
def quick_average(
    shape: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Any:
    """What averages inputs of a shape, after all checks, compiled; None where it is not."""
    ndim = len(kernel_size)
    counts = counts_of(shape, kernel_size, stride, padding, (1,) * ndim, ceil_mode, True)
    divisor = kernels.divisors(shape[-ndim:], counts, kernel_size, stride, padding, count_include_pad, None)
    compiled = room("conv.pools")
    if compiled is None:
        return None
    return compiled.averager(shape, SINGLE, counts, kernel_size, stride, padding, divisor)


def averaging(ndim: int) -> tuple[Any, Any]:
    """The op that averages windows over the last `ndim` dimensions, and the op of its derivative."""

    def average(
        self: Array,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:
        if divisor_override is None and self.dtype is SINGLE and self.flags.c_contiguous and self.ndim == ndim + 2:
            quick = quick_average(self.shape, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad)
            out = None if quick is None else quick(self)
            if out is not None:
                return out
        (check_channels if ndim == 2 else check_image)(self, ndim)
        if divisor_override is not None and index(divisor_override) == 0:
            raise RuntimeError("divisor must be not zero")
        stride = stride or kernel_size
        counts = output_counts(self, kernel_size, stride, padding, (1,) * ndim, ceil_mode, average=True)
        if self.dtype is not SINGLE:
            name = "avg_pool2d" if ndim == 2 else "avg_pool3d_out_frame"
            refuse(name, self, "bc" if self.dtype == "int64" else "bciu")
            if ndim == 3 and is_half(self.dtype):
                refuse(name, self, "fV")
        out = kernels.avg_pool(self, counts, kernel_size, stride, padding, count_include_pad, divisor_override)
        return laid_out_as(out, self)

    def average_backward(
        grad_output: Array,
        self: Array,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Array:
        sizes, stride = self.shape[-ndim:], stride or kernel_size
        return kernels.avg_pool_backward(
            grad_output, sizes, kernel_size, stride, padding, count_include_pad, divisor_override
        )

    average.__name__, average_backward.__name__ = f"avg_pool_{ndim}d", f"avg_pool{ndim}d_backward"
    average.__doc__ = f"The averages of windows over the last {ndim} dimensions."
    average_backward.__doc__ = f"Each window's gradient, shared among its elements in {ndim} dimensions."
    forward = op(
        vmap="samples",
        space=None,
        name=f"avg_pool{ndim}d",
        node=f"AvgPool{ndim}DBackward0",
        self=lambda grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            average_ops(ndim)[1](
                grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )
        ),
        result=lambda self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: average_ops(
            ndim
        )[0](self_t, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
    )(average)
    backward = op(
        vmap="samples",
        space=None,
        node=f"AvgPool{ndim}DBackwardBackward0",
        grad_output=lambda grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            average_ops(ndim)[0](grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        ),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self, kernel_size, stride, padding, count_include_pad, divisor_override: (
            average_ops(ndim)[1](
                grad_output_t, self, kernel_size, stride, padding, False, count_include_pad, divisor_override
            )
        ),
    )(average_backward)
    return forward, backward


avg_pool_2d, avg_pool2d_backward = averaging(2)
avg_pool_3d, avg_pool3d_backward = averaging(3)


def average_ops(ndim: int) -> tuple[Any, Any]:
    """The op for so many dimensions, and that of its derivative."""
    return (avg_pool_2d, avg_pool2d_backward) if ndim == 2 else (avg_pool_3d, avg_pool3d_backward)


@function(space="nn.functional", method=False, out=True, out_dtype=exact, out_overlap="unchecked")
def avg_pool2d(
    self: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Apply 2-D average pooling: the mean of each window that slides over the images.

    `input` is `(N, C, H, W)` or `(C, H, W)`; sizes are ints or pairs. `stride` is `kernel_size` unless given; `padding`
    adds zeros on all sides, which count in the means unless `count_include_pad` is False. `divisor_override` is what
    the sums are divided by instead of the number of elements.
    Returns `(N, C, H_out, W_out)` with `H_out = floor((H + 2 * padding - kernel_size) / stride) + 1`, or rounded up
    with `ceil_mode`.
    """
    kernel, strides, pads = window_arguments("avg_pool2d", 2, kernel_size, stride, padding)
    return avg_pool_2d(self, kernel, strides, pads, ceil_mode, count_include_pad, divisor_override)


@function(space="nn.functional", method=False, out=True, autocast="float32", out_dtype=exact)
def avg_pool3d(
    self: Array,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Apply 3-D average pooling: the mean of each window that slides over the volumes.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`; sizes are ints or triples. `stride` is `kernel_size` unless given;
    `padding` adds zeros on all sides, which count in the means unless `count_include_pad` is False. `divisor_override`
    is what the sums are divided by instead of the number of elements.
    Returns `(N, C, D_out, H_out, W_out)`, each size `floor((size + 2 * padding - kernel) / stride) + 1`, or rounded up
    with `ceil_mode`.
    """
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
    """Apply 1-D average pooling: the mean of each window that slides over the signals.

    `input` is `(N, C, L)` or `(C, L)`. `stride` is `kernel_size` unless given; `padding` adds zeros at both ends, which
    count in the means unless `count_include_pad` is False.
    Returns `(N, C, L_out)` with `L_out = floor((L + 2 * padding - kernel_size) / stride) + 1`, or rounded up with
    `ceil_mode`.
    """
    check_between("avg_pool1d", self, 2, 3)
    kernel = one_int("avg_pool1d", "kernel_size", kernel_size)
    step = kernel if is_omitted(stride) else one_int("avg_pool1d", "stride", stride)
    pads = (0, one_int("avg_pool1d", "padding", padding))
    image = unsqueeze(self, -2)
    return squeeze_dim(avg_pool_2d(image, (1, kernel), (1, step), pads, ceil_mode, count_include_pad, None), -2)


publish("avg_pool1d", avg_pool1d, TORCH)
