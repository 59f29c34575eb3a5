"""Pooling by maximum: max_pool1d, 2d and 3d, with the places the maxima came from."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from pullback._modes import is_grad_enabled, modes
from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.kernels.compiled import room
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.pool import sliding as kernels
from pullback.ops.index.gather import gather
from pullback.ops.nn.pool.checks import (
    WORDS,
    check_between,
    check_image,
    check_image_shape,
    counts_of,
    each,
    is_omitted,
    numbers,
    output_counts,
    window_arguments,
)
from pullback.ops.shape.reshape import reshape_to, squeeze_dim, unsqueeze, view_, zeros_of
from pullback.ops.supported import DOUBLE, SINGLE, refuse

# ------------------------------------------------------------------ taking from places, and putting there


def gather_places(self: Any, indices: Any, ndim: int) -> Any:
    """The elements of the last `ndim` dimensions, flattened, that indices point at."""
    flat = reshape_to(self, (*self.shape[:-ndim], prod(self.shape[-ndim:])))
    places = reshape_to(indices, (*indices.shape[:-ndim], prod(indices.shape[-ndim:])))
    return view_(gather(flat, -1, places), tuple(indices.shape))


@op(
    vmap="samples",
    kernel="scatter_gather_tensor_cpu",
    space=None,
    name="scatter_add",
    node="ScatterAddBackward0",
    self=lambda grad, indices, sizes: gather_places(grad, indices, len(sizes)),
    result=lambda self_t, indices, sizes: scatter_places(self_t, indices, sizes),
)
def scatter_places(self: Array, indices: Array, sizes: Any) -> Array:
    """Add elements at the places indices point at."""
    return kernels.scatter_to_places(self, indices, tuple(sizes))


# ------------------------------------------------------------------ the ops


def window_counts(
    self: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[int, ...]:
    """How many windows there are; torch's errors if the arguments make no sense."""
    ndim = len(kernel_size)
    check_image(self, ndim)
    counts = output_counts(self, kernel_size, stride or kernel_size, padding, dilation, ceil_mode)
    if self.dtype.kind != "f":
        refuse(f"max_pool{ndim}d" if ndim > 1 else "max_pool1d_impl", self, "bc" if ndim > 1 else "bciu")
    return counts


@lru_cache(256)
def disjoint(kernel_size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> bool:
    """True if no two windows share an element."""
    return all(s > (k - 1) * d for k, s, d in zip(kernel_size, stride, dilation, strict=True))


@lru_cache(256)
def checked_call(
    shape: tuple[int, ...], dtype: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """The compiled kernel for inputs of a shape, after all checks."""
    check_image_shape(shape, len(kernel_size))
    counts = counts_of(shape, kernel_size, stride, padding, dilation, ceil_mode, False)
    return room("conv.pools").maximizer(shape, dtype, counts, kernel_size, stride, padding, dilation)


def quick_maxima(self: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """The maxima of the windows and their places, compiled; None where they are not."""
    dtype = self.dtype
    if (dtype is not SINGLE and dtype is not DOUBLE) or not self.flags.c_contiguous or room("conv.pools") is None:
        return None
    call = checked_call(self.shape, dtype, kernel_size, stride or kernel_size, padding, dilation, ceil_mode)
    return None if call is None else call(self)


def pooling(ndim: int) -> tuple[Any, Any]:
    """The op that takes maxima over the last `ndim` dimensions, and the op of its derivative."""

    def maxima(self: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
        quick = quick_maxima(self, kernel_size, stride, padding, dilation, ceil_mode)
        if quick is not None:
            return quick
        counts = window_counts(self, kernel_size, stride, padding, dilation, ceil_mode)
        values, places = kernels.max_pool(self, counts, kernel_size, stride or kernel_size, padding, dilation)
        if self.flags.c_contiguous:
            return values, places
        return laid_out_as(values, self), laid_out_as(places, self)

    def maxima_backward(
        grad_output: Array,
        self: Array,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
        indices: Array,
    ) -> Array:
        apart = disjoint(kernel_size, stride or kernel_size, dilation)
        return kernels.scatter_to_places(grad_output, indices, self.shape[-ndim:], apart)

    maxima.__name__ = f"max_pool_{ndim}d"
    maxima.__doc__ = f"The maxima of windows over the last {ndim} dimensions, and their places."
    maxima_backward.__name__ = f"max_pool{ndim}d_with_indices_backward"
    maxima_backward.__doc__ = f"Each window's gradient, where its maximum came from, in {ndim} dimensions."
    forward = op(
        vmap="samples",
        space=None,
        name=f"max_pool{ndim}d_with_indices",
        node=f"MaxPool{ndim}DWithIndicesBackward0",
        outputs=("result0", "result1"),
        self=lambda grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1: pool_ops(ndim)[1](
            grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1
        ),
        result=lambda self_t, result1: (gather_places(self_t, result1, ndim), None),
    )(maxima)
    backward = op(
        vmap="samples",
        space=None,
        node=f"MaxPool{ndim}DWithIndicesBackwardBackward0",
        grad_output=lambda grad, indices: gather_places(grad, indices, ndim),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self, indices: scatter_places(grad_output_t, indices, self.shape[-ndim:]),
    )(maxima_backward)
    return forward, backward


max_pool_2d, max_pool2d_with_indices_backward = pooling(2)
max_pool_3d, max_pool3d_with_indices_backward = pooling(3)


def pool_ops(ndim: int) -> tuple[Any, Any]:
    """The op for so many dimensions, and that of its derivative."""
    if ndim == 2:
        return max_pool_2d, max_pool2d_with_indices_backward
    return max_pool_3d, max_pool3d_with_indices_backward


@op(vmap="samples", space=None, name="max_pool")
def max_pool_values(self: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Array:
    """The maxima of windows, without their places: all that is needed where nobody differentiates."""
    quick = quick_maxima(self, kernel_size, stride, padding, dilation, ceil_mode)
    if quick is not None:
        return quick[0]
    counts = window_counts(self, kernel_size, stride, padding, dilation, ceil_mode)
    return laid_out_as(kernels.max_values(self, counts, kernel_size, stride or kernel_size, padding, dilation), self)


def needs_places(self: Any) -> bool:
    """True if a derivative may be asked for."""
    return modes.active or type(self) is not Tensor or (self.requires_grad and is_grad_enabled())


# ------------------------------------------------------------------ what users call


def dilations(name: str, ndim: int, dilation: Any) -> tuple[int, ...]:
    """How far apart the elements of a window are, one number for each dimension."""
    return each(dilation, ndim, f"{name}: dilation must be either a single int, or a tuple of {WORDS[ndim]} ints")


def pooled(
    name: str, ndim: int, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """Values and places over two or three dimensions."""
    kernel, strides, pads = window_arguments(name, ndim, kernel_size, stride, padding)
    spread = (dilation,) * ndim if type(dilation) is int else dilations(name, ndim, dilation)
    return pool_ops(ndim)[0](self, kernel, strides, pads, spread, ceil_mode)


def pooled_values(
    name: str, ndim: int, self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    """Values over two or three dimensions."""
    kernel, strides, pads = window_arguments(name, ndim, kernel_size, stride, padding)
    spread = (dilation,) * ndim if type(dilation) is int else dilations(name, ndim, dilation)
    if needs_places(self):
        return pool_ops(ndim)[0](self, kernel, strides, pads, spread, ceil_mode)[0]
    return max_pool_values(self, kernel, strides, pads, spread, ceil_mode)


def pooled_line(self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    """Values and places of signals: those of images one pixel high."""
    check_between("max_pool1d", self, 2, 3)
    (kernel,), (pad,), (spread,) = numbers(kernel_size), numbers(padding), numbers(dilation)
    step = kernel if is_omitted(stride) else numbers(stride)[0]
    image = unsqueeze(self, -2)
    values, places = max_pool_2d(image, (1, kernel), (1, step), (0, pad), (1, spread), ceil_mode)
    return squeeze_dim(values, -2), squeeze_dim(places, -2)


def check_line(self: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> None:
    """Torch's demands on windows that slide over signals."""
    if type(kernel_size) is int and stride is None and padding == 0 and dilation == 1:
        shape = self._array.shape  # what most calls bring
        if len(shape) == 3 and 0 < kernel_size <= shape[2] and shape[1]:
            return
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{shape_text(self.shape)}"
        )
    found = {}
    for what, given in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding), ("dilation", dilation)):
        if what == "stride" and is_omitted(given):
            found[what] = found["kernel_size"]
            continue
        values = numbers(given)
        if len(values) != 1:
            allowed = "an int, list of ints or tuple of ints of size 1"
            raise RuntimeError(f"max_pool1d() {what} must be {allowed} but got size {len(values)}")
        found[what] = values[0]
    kernel, pad = found["kernel_size"], found["padding"]
    for what in ("kernel_size", "stride"):
        if found[what] <= 0:
            raise RuntimeError(f"max_pool1d() {what} must be greater than zero, but got {found[what]}")
    if pad < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pad}")
    if pad > kernel // 2:
        given = f"padding={pad} and kernel_size={kernel}"
        raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got {given}")
    if found["dilation"] <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {found['dilation']}")
    count = kernels.pooled_size(self.shape[-1], kernel, found["stride"], pad, found["dilation"], ceil_mode)
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")


@function(raw=True, space="nn.functional", method=False)
def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Apply 1-D max pooling: the largest element of each window that slides over the signals.

    `input` is `(N, C, L)` or `(C, L)`. `stride` is `kernel_size` unless given; `padding`, at most half the kernel, adds
    elements of minus infinity at both ends; `dilation` spaces the elements of a window.
    Returns `(N, C, L_out)` with `L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1`, or
    rounded up with `ceil_mode`; with `return_indices` also where each maximum lies, as `max_unpool1d` takes it.
    """
    if return_indices:
        return pooled_line(input, kernel_size, stride, padding, dilation, ceil_mode)
    check_line(input, kernel_size, stride, padding, dilation, ceil_mode)
    if not needs_places(input) or input._array.dtype.kind in "iubc":
        step = () if is_omitted(stride) else numbers(stride)
        return max_pool_values(input, numbers(kernel_size), step, numbers(padding), numbers(dilation), ceil_mode)
    return pooled_line(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@function(raw=True, space="nn.functional", method=False)
def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Apply 2-D max pooling: the largest element of each window that slides over the images.

    `input` is `(N, C, H, W)` or `(C, H, W)`; the other arguments are ints or pairs. `stride` is `kernel_size` unless
    given; `padding`, at most half the kernel, adds minus infinity on all sides; `dilation` spaces a window's elements.
    Returns `(N, C, H_out, W_out)` with
    `H_out = floor((H + 2 * padding - dilation * (kernel_size - 1) - 1) / stride) + 1`, or rounded up with `ceil_mode`.
    With `return_indices` also the place of each maximum in its flattened image, as `max_unpool2d` takes it.
    """
    if return_indices:
        return tuple(pooled("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode))
    return pooled_values("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode)


@function(raw=True, space="nn.functional", method=False, autocast="float32_alone")
def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Apply 3-D max pooling: the largest element of each window that slides over the volumes.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`; the other arguments are ints or triples. `stride` is `kernel_size`
    unless given; `padding`, at most half the kernel, adds minus infinity on all sides; `dilation` spaces a window's
    elements. Returns `(N, C, D_out, H_out, W_out)`, each size
    `floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1`, or rounded up with `ceil_mode`.
    With `return_indices` also the place of each maximum in its flattened volume, as `max_unpool3d` takes it.
    """
    if return_indices:
        return tuple(pooled("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode))
    return pooled_values("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode)


@function(raw=True, space="nn.functional", method=False)
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Apply 1-D max pooling and return the maxima and their places in the signals, both `(N, C, L_out)`.

    The arguments are those of `max_pool1d`; `return_indices` is ignored, since indices always come back.
    """
    return pooled_line(input, kernel_size, stride, padding, dilation, ceil_mode)


@function(raw=True, space="nn.functional", method=False)
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Apply 2-D max pooling and return the maxima and their places, both `(N, C, H_out, W_out)`.

    The places count along the flattened images. The arguments are those of `max_pool2d`; `return_indices` is ignored,
    since indices always come back.
    """
    return tuple(pooled("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode))


@function(raw=True, space="nn.functional", method=False)
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Apply 3-D max pooling and return the maxima and their places, both `(N, C, D_out, H_out, W_out)`.

    The places count along the flattened volumes. The arguments are those of `max_pool3d`; `return_indices` is ignored,
    since indices always come back.
    """
    return tuple(pooled("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode))


for call in (max_pool1d, max_pool2d, max_pool3d, max_pool1d_with_indices):
    publish(call.__name__, call, TORCH)
