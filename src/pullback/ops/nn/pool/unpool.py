"""The way back from a maximum pooling: max_unpool1d, 2d and 3d."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.pool import uneven as kernels
from pullback.ops.nn.pool.maximum import gather_places
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze
from pullback.ops.supported import refuse


def check_unpool(self: Array, indices: Array, output_size: Any, stride: Any = None) -> None:
    """Torch's demands on values and the places they go to."""
    ndim = len(output_size)
    if indices.dtype != np.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {FROM_NUMPY[indices.dtype].scalar_type}")
    if self.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Input to max_unpooling{ndim}d should be a {ndim + 1}d or {ndim + 2}d Tensor, but got a tensor with "
            f"{self.ndim} dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({shape_text(self.shape)}) but got "
            f"indices tensor with shape: {shape_text(indices.shape)}"
        )
    for dim in range(1, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"max_unpooling{ndim}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {shape_text(self.shape)} with dimension {dim} being empty."
            )
    if stride is not None and min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {shape_text(stride)}")
    wrong = (indices < 0) | (indices >= int(np.prod(output_size)))
    if wrong.any() and 0 not in output_size:
        volume = "x".join(map(str, output_size))
        raise RuntimeError(f"Found an invalid max index: {indices[wrong][-1]} (output volumes are of size {volume})")
    refuse(f"max_unpool{ndim}d", self, "biuc", idle=True)


@op(
    vmap="samples",
    space=None,
    name="max_unpool2d",
    node="MaxUnpool2DBackward0",
    autocast="float32",
    self=lambda grad, indices: gather_places(grad, indices, 2),
    result=lambda self_t, indices, output_size: max_unpool_2d(self_t, indices, output_size),
)
def max_unpool_2d(self: Array, indices: Array, output_size: Any) -> Array:
    """Zeros in images of that size, and the values at their places."""
    check_unpool(self, indices, output_size)
    return laid_out_as(kernels.unpooled(self, indices, output_size), self)


@op(
    vmap="samples",
    space=None,
    name="max_unpool3d",
    node="MaxUnpool3DBackward0",
    autocast="float32",
    self=lambda grad, indices: gather_places(grad, indices, 3),
    result=lambda self_t, indices, output_size, stride, padding: max_unpool_3d(
        self_t, indices, output_size, stride, padding
    ),
)
def max_unpool_3d(self: Array, indices: Array, output_size: Any, stride: Any, padding: Any) -> Array:
    """Zeros in volumes of that size, and the values at their places."""
    check_unpool(self, indices, output_size, stride)
    return laid_out_as(kernels.unpooled(self, indices, output_size), self)


def several(value: Any, ndim: int) -> tuple[Any, ...]:
    """One number for each dimension, or as many as are given."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * ndim


def whole(ndim: int, name: str, position: int, values: tuple[Any, ...]) -> tuple[int, ...]:
    """The values, if each is an integer: torch looks only at what it needs."""
    for place, value in enumerate(values):
        if isinstance(value, float) and place:
            raise TypeError(
                f"max_unpool{max(ndim, 2)}d(): argument '{name}' failed to unpack the object at pos {place + 1} with "
                'error "type must be tuple of ints,but got float"'
            )
        if isinstance(value, float):
            raise TypeError(
                f"max_unpool{max(ndim, 2)}d(): argument '{name}' (position {position}) must be tuple of ints, but "
                "found element of type float at pos 0"
            )
    return values


def unpool_arguments(
    self: Any, ndim: int, kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The size of the result, the stride and the padding; the size may differ from the usual by less than a stride."""
    kernel, pads = several(kernel_size, ndim), several(padding, ndim)
    steps = kernel if stride is None else several(stride, ndim)
    count = len(kernel)  # which says to torch how many dimensions there are
    usual = [(self.shape[d - count] - 1) * steps[d] + kernel[d] - 2 * pads[d] for d in range(count)]
    sizes = usual
    if output_size is not None:
        sizes = output_size[2:] if len(output_size) == count + 2 else output_size
        if len(sizes) != count:
            raise ValueError(
                f"output_size should be a sequence containing {count} or {count + 2} elements, but it has a length of "
                f"'{len(sizes)}'"
            )
        for d in range(count):
            low, high = usual[d] - steps[d], usual[d] + steps[d]
            if not low < sizes[d] < high:
                raise ValueError(f'invalid output_size "{sizes}" (dim {d} must be between {low} and {high})')
    sizes = positive(ndim, sizes)
    for name, given in (("output_size", sizes), ("stride", steps), ("padding", pads)):
        if len(given) != ndim and (ndim == 3 or name == "output_size"):
            words = "three elements (depth, height, width)" if ndim == 3 else "two elements (height, width)"
            got = f" {len(given) + (ndim == 1)}" if name == "output_size" else f": {len(given)}"
            raise RuntimeError(f"There should be exactly {words} in {name}, but got{got} elements.")
    return sizes, steps, pads


def positive(ndim: int, sizes: Any) -> tuple[int, ...]:
    """The size of the result, or torch's error if it cannot be one."""
    for d, size in enumerate(sizes):
        if size < 0:
            raise ValueError(
                f"max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[{d}]="
                f"{size}"
            )
    return whole(ndim, "output_size", 3, tuple(sizes))


@function(raw=True, space="nn.functional", method=False)
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo 1-D max pooling as far as possible: maxima go back to their places, all other elements are zero.

    `input` and `indices`, `(N, C, L)` or `(C, L)`, are what `max_pool1d` returned with `return_indices`; `kernel_size`,
    `stride` and `padding` are those it was given. The result has the length
    `(L - 1) * stride - 2 * padding + kernel_size`, unless `output_size` names another among those that pool to `L`.
    """
    sizes, _, _ = unpool_arguments(input, 1, kernel_size, stride, padding, output_size)
    return squeeze_dim(max_unpool_2d(unsqueeze(input, -1), unsqueeze(indices, -1), (*sizes, 1)), -1)


@function(raw=True, space="nn.functional", method=False)
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo 2-D max pooling as far as possible: maxima go back to their places, all other pixels are zero.

    `input` and `indices`, `(N, C, H, W)` or `(C, H, W)`, are what `max_pool2d` returned with `return_indices`;
    `kernel_size`, `stride` and `padding` are those it was given. The result has the height
    `(H - 1) * stride - 2 * padding + kernel_size`, and such a width, unless `output_size` names others that pool to
    them.
    """
    return max_unpool_2d(input, indices, unpool_arguments(input, 2, kernel_size, stride, padding, output_size)[0])


@function(raw=True, space="nn.functional", method=False)
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Undo 3-D max pooling as far as possible: maxima go back to their places, all other voxels are zero.

    `input` and `indices`, `(N, C, D, H, W)` or `(C, D, H, W)`, are what `max_pool3d` returned with `return_indices`;
    `kernel_size`, `stride` and `padding` are those it was given. The result has the depth
    `(D - 1) * stride - 2 * padding + kernel_size`, and such a height and width, unless `output_size` names others that
    pool to them.
    """
    sizes, steps, pads = unpool_arguments(input, 3, kernel_size, stride, padding, output_size)
    return max_unpool_3d(input, indices, sizes, whole(3, "stride", 4, steps), whole(3, "padding", 5, pads))
