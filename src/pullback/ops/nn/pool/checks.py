"""What torch demands of windows that slide over a tensor: the arguments, in its words and its order."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any

from pullback._op.define import Array
from pullback._runtime.messages import dim_out_of_range, shape_text
from pullback.kernels.numpy.pool.sliding import pooled_size

WORDS = {1: "one", 2: "two", 3: "three"}
LETTERS = "THW"


def numbers(value: Any) -> tuple[int, ...]:
    """One number or several, as a tuple."""
    return tuple([index(v) for v in value]) if isinstance(value, (tuple, list)) else (index(value),)


def each(value: Any, ndim: int, problem: str) -> tuple[int, ...]:
    """One number for every dimension, or one for each."""
    sizes = numbers(value)
    if len(sizes) == ndim:
        return sizes
    if len(sizes) != 1:
        raise RuntimeError(problem)
    return sizes * ndim


def is_omitted(stride: Any) -> bool:
    """True if windows step by their own size."""
    return stride is None or (isinstance(stride, (tuple, list)) and not stride)


def window_arguments(
    name: str, ndim: int, kernel_size: Any, stride: Any, padding: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, stride (empty: that of the kernel) and padding, one number for each dimension."""
    if type(kernel_size) is int and type(padding) is int and (stride is None or type(stride) is int):
        return (kernel_size,) * ndim, () if stride is None else (stride,) * ndim, (padding,) * ndim
    either = "" if name == "avg_pool3d" else "either "
    several = f"a single int, or a tuple of {WORDS[ndim]} ints"
    kernel = each(kernel_size, ndim, f"{name}: kernel_size must {either}be {several}")
    steps = () if is_omitted(stride) else each(stride, ndim, f"{name}: stride must {either}be omitted, {several}")
    return kernel, steps, each(padding, ndim, f"{name}: padding must {either}be {several}")


def one_int(name: str, what: str, value: Any) -> int:
    """The only number of an argument that pools in one dimension."""
    sizes = numbers(value)
    if len(sizes) != 1:
        raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(sizes)})")
    return sizes[0]


def named(prefix: str, values: Any) -> str:
    """kT: 2 kH: 3 kW: 3."""
    return " ".join(f"{prefix}{c}: {v}" for c, v in zip(LETTERS[-len(values) :], values, strict=True))


def output_counts(
    self: Array,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    average: bool = False,
) -> tuple[int, ...]:
    """How many windows there are in each dimension; raises torch's errors if the arguments make no sense."""
    return counts_of(self.shape, kernel, stride, padding, dilation, ceil_mode, average)


@lru_cache(256)
def counts_of(
    shape: tuple[int, ...], kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, average: bool
) -> tuple[int, ...]:
    """The same for an input of a shape."""
    ndim = len(kernel)
    sizes = shape[-ndim:]
    if ndim > 1 and any(
        not -(2**31) <= value < 2**31 for values in (kernel, stride, padding, dilation) for value in values
    ):
        raise RuntimeError("value cannot be converted to type int without overflow")
    for k, s, p, d in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError("stride should not be zero")
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )
    for what, short, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(values) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {named(short, values)}")
    check_dims(shape, ndim, average)
    if ndim > 1 and any(p > k // 2 for p, k in zip(padding, kernel, strict=True)):
        *depth, tall, broad = kernel
        *back, high, wide = padding
        given = f"padW = {wide}, padH = {high}, kW = {broad}, kH = {tall}"
        if ndim == 3:
            given = f"kT: {depth[0]} kW: {broad} kH: {tall} padT: {back[0]} padW: {wide} padH: {high}"
        raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {given}")
    if average and ndim == 3 and any(n < k for n, k in zip(sizes, kernel, strict=True)):
        raise RuntimeError(f"input image ({named('', sizes)}) smaller than kernel size ({named('k', kernel)})")
    counts = tuple(
        [
            pooled_size(n, k, s, p, d, ceil_mode)
            for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation, strict=True)
        ]
    )
    if min(counts) < 1:
        channels = shape[-ndim - 1]
        given = "x".join(map(str, (channels, *sizes)))
        found = "x".join(map(str, (channels, *counts)))
        raise RuntimeError(f"Given input size: ({given}). Calculated output size: ({found}). Output size is too small")
    return counts


def check_dims(shape: tuple[int, ...], ndim: int, average: bool) -> None:
    """The input is a batch of images, or one, and only the batch may be empty."""
    if ndim == 3 and 0 in shape[-4:]:
        where = "avg_pool3d" if average else "max_pool3d_with_indices_out_cpu_template"
        raise RuntimeError(
            f"{where}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{shape_text(shape)} and non-batch dimension 0 has length zero!"
        )
    if len(shape) not in (ndim + 1, ndim + 2) or 0 in shape[len(shape) - ndim - 1 :]:
        batch = "with optional 0 dim batch size for input"
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor {batch}, but got:{shape_text(shape)}"
        )


def check_image(self: Array, ndim: int) -> None:
    """Torch's first look at the input of a maximum pooling, and of an average in three dimensions."""
    check_image_shape(self.shape, ndim)


def check_image_shape(shape: tuple[int, ...], ndim: int) -> None:
    """The same for an input of a shape."""
    if len(shape) not in (ndim + 1, ndim + 2):
        raise RuntimeError(f"non-empty {ndim + 1}D or {ndim + 2}D (batch mode) tensor expected for input")


def check_channels(self: Array, ndim: int) -> None:
    """The input has a dimension of channels before those that are pooled."""
    if self.ndim < ndim + 1:
        raise IndexError(dim_out_of_range(-ndim - 1, self.ndim))


def check_between(name: str, self: Array, low: int, high: int) -> None:
    """The input has so many dimensions."""
    if not low <= self.ndim <= high:
        raise RuntimeError(
            f"Expected {low} to {high} dimensions, but got {self.ndim}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {name})"
        )
