"""Pooling to a size asked for: adaptive_avg_pool1d, 2d, 3d and adaptive_max_pool1d, 2d, 3d."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.sizes import check_storage
from pullback._op.declare import TORCH, publish
from pullback._op.define import Array, function, op
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.conv.images import laid_out_as
from pullback.kernels.numpy.norm.rows import SINGLE
from pullback.kernels.numpy.pool import sliding as even
from pullback.kernels.numpy.pool import uneven as kernels
from pullback.ops.nn.pool.checks import check_between, numbers, one_int
from pullback.ops.nn.pool.maximum import gather_places, scatter_places
from pullback.ops.reduce.sums import mean_dim
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze, zeros_of
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ what torch demands


def sizes_or_own(self: Any, output_size: Any) -> Any:
    """The sizes asked for; None stands for the input's own."""
    if isinstance(output_size, int):
        return output_size
    if len(output_size) >= self.ndim:
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = self.shape[self.ndim - len(output_size) :]
    return tuple([n if v is None else v for v, n in zip(output_size, own, strict=True)])


def check_adaptive(name: str, self: Array, ndim: int, colon: str) -> None:
    """Torch's demands on the input of an adaptive pooling."""
    if self.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got{colon} {shape_text(self.shape)}"
        )
    check_filled(name, self, self.ndim - 2 if name == "adaptive_avg_pool2d" else 1)


def check_filled(name: str, self: Any, first: int = 1) -> None:
    """Only the batch may be empty, and of averaged images the channels."""
    for dim in range(first, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{shape_text(self.shape)} with dimension {dim} being empty"
            )


# ------------------------------------------------------------------ averages


def adaptive_average(ndim: int) -> tuple[Any, Any]:
    """The op that averages as many windows as asked for in the last `ndim` dimensions, and that of its derivative."""
    name = f"adaptive_avg_pool{ndim}d"

    def average(self: Array, output_size: Any) -> Array:
        if self.dtype is SINGLE and self.ndim == ndim + 2 and self.flags.c_contiguous:
            quick = kernels.even_averager(self.shape, output_size)
            out = None if quick is None else quick(self)
            if out is not None:
                return out
        check_adaptive(name, self, ndim, "")
        if ndim == 3 or (0 not in output_size and self.size):
            refuse(name if ndim == 2 else f"{name}_cpu", self, "iubc")
        check_storage((*self.shape[:-ndim], *output_size), self.dtype.itemsize)
        if not self.size:
            return np.zeros((*self.shape[:-ndim], *output_size), self.dtype)
        return laid_out_as(kernels.adaptive_avg(self, output_size), self)

    def average_backward(grad_output: Array, self: Array) -> Array:
        return kernels.adaptive_avg_backward(grad_output, self.shape[-ndim:])

    average.__name__, average_backward.__name__ = f"_{name}", f"_{name}_backward"
    average.__doc__ = f"The averages of windows that cover the last {ndim} dimensions."
    average_backward.__doc__ = f"The gradient of {name}."
    forward = op(
        vmap="samples",
        space=None,
        node=f"AdaptiveAvgPool{ndim}DBackward0",
        self=lambda grad, self: average_ops(ndim)[1](grad, self),
        result=lambda self_t, output_size: average_ops(ndim)[0](self_t, output_size),
    )(average)
    backward = op(
        vmap="samples",
        space=None,
        node=f"AdaptiveAvgPool{ndim}DBackwardBackward0",
        grad_output=lambda grad, grad_output: average_ops(ndim)[0](grad, grad_output.shape[-ndim:]),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self: average_ops(ndim)[1](grad_output_t, self),
    )(average_backward)
    return forward, backward


_adaptive_avg_pool2d, _adaptive_avg_pool2d_backward = adaptive_average(2)
_adaptive_avg_pool3d, _adaptive_avg_pool3d_backward = adaptive_average(3)


def average_ops(ndim: int) -> tuple[Any, Any]:
    """The op for so many dimensions, and that of its derivative."""
    if ndim == 2:
        return _adaptive_avg_pool2d, _adaptive_avg_pool2d_backward
    return _adaptive_avg_pool3d, _adaptive_avg_pool3d_backward


def averaged(self: Any, output_size: Any, ndim: int) -> Any:
    """Averages over two or three dimensions; a single window is a mean."""
    sizes = (output_size,) if type(output_size) is int else numbers(output_size)
    sizes = sizes if isinstance(output_size, (tuple, list)) else sizes * ndim
    if len(sizes) != ndim:
        raise RuntimeError(f"adaptive_avg_pool{ndim}d: output_size must be {ndim}")
    if min(sizes) < 0:
        shown = f"{sizes[0]}, {','.join(map(str, sizes[1:]))}"
        raise RuntimeError(
            f"adaptive_avg_pool{ndim}d: elements of output_size must be greater than or equal to 0 but received "
            f"{{{shown}}}"
        )
    if sizes == (1,) * ndim:
        return mean_dim(self, tuple(range(-1, -ndim - 1, -1)), True)
    return average_ops(ndim)[0](self, sizes)


@function(space="nn.functional", method=False)
def adaptive_avg_pool1d(self: Array, output_size: Any) -> Array:
    """Apply 1-D average pooling to a given output size, whatever the input size.

    `input` is `(N, C, L)` or `(C, L)`; returns `(N, C, output_size)`. Window `i` reaches from
    `floor(i * L / output_size)` to `ceil((i + 1) * L / output_size)`.
    """
    if not isinstance(output_size, (int, tuple, list)):
        wanted = f"tuple of ints, not {type(output_size).__name__}"
        raise TypeError(f"adaptive_avg_pool1d(): argument 'output_size' (position 2) must be {wanted}")
    check_between("adaptive_avg_pool1d", self, 2, 3)
    size = one_int("adaptive_avg_pool1d", "output_size", output_size)
    return squeeze_dim(averaged(unsqueeze(self, -2), (1, size), 2), -2)


@function(space="nn.functional", method=False)
def adaptive_avg_pool2d(self: Array, output_size: Any) -> Array:
    """Apply 2-D average pooling to a given output size, whatever the input size.

    `input` is `(N, C, H, W)` or `(C, H, W)`; returns `(N, C, *output_size)`, where `output_size` is an int for squares,
    or a pair in which None keeps the size. Window `i` reaches from `floor(i * H / H_out)` to
    `ceil((i + 1) * H / H_out)`.
    """
    return averaged(self, sizes_or_own(self, output_size), 2)


@function(space="nn.functional", method=False, autocast="float32")
def adaptive_avg_pool3d(self: Array, output_size: Any) -> Array:
    """Apply 3-D average pooling to a given output size, whatever the input size.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`; returns `(N, C, *output_size)`, where `output_size` is an int for
    cubes, or a triple in which None keeps the size. Window `i` reaches from `floor(i * D / D_out)` to
    `ceil((i + 1) * D / D_out)`.
    """
    return averaged(self, sizes_or_own(self, output_size), 3)


publish("adaptive_avg_pool1d", adaptive_avg_pool1d, TORCH)

# ------------------------------------------------------------------ maxima


def adaptive_maximum(ndim: int) -> tuple[Any, Any]:
    """The op that takes maxima of windows in the last `ndim` dimensions, and that of its derivative."""
    name = f"adaptive_max_pool{ndim}d"

    def maxima(self: Array, output_size: Any) -> Any:
        check_adaptive(name, self, ndim, ":")
        if len(output_size) != ndim:
            raise RuntimeError(f"{name}(): internal error: output_size.size() must be {ndim}")
        check_storage((*self.shape[:-ndim], *output_size), self.dtype.itemsize)
        refuse(name if ndim == 2 else f"{name}_cpu", self, "iubc")
        values, places = kernels.adaptive_max(self, output_size)
        return laid_out_as(values, self), laid_out_as(places, self)

    def maxima_backward(grad_output: Array, self: Array, indices: Array) -> Array:
        return even.scatter_to_places(grad_output, indices, self.shape[-ndim:])

    maxima.__name__, maxima_backward.__name__ = f"_{name}", f"{name}_backward"
    maxima.__doc__ = f"The maxima of windows that cover the last {ndim} dimensions, and their places."
    maxima_backward.__doc__ = f"The gradient of {name}."
    forward = op(
        vmap="samples",
        space=None,
        name=name,
        node=f"AdaptiveMaxPool{ndim}DBackward0",
        outputs=("result0", "result1"),
        self=lambda grad, self, result1: maximum_ops(ndim)[1](grad, self, result1),
        result=lambda self_t, result1: (gather_places(self_t, result1, ndim), None),
    )(maxima)
    backward = op(
        vmap="samples",
        space=None,
        node=f"AdaptiveMaxPool{ndim}DBackwardBackward0",
        grad_output=lambda grad, indices: gather_places(grad, indices, ndim),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self, indices: scatter_places(grad_output_t, indices, self.shape[-ndim:]),
    )(maxima_backward)
    return forward, backward


_adaptive_max_pool2d, adaptive_max_pool2d_backward = adaptive_maximum(2)
_adaptive_max_pool3d, adaptive_max_pool3d_backward = adaptive_maximum(3)


def maximum_ops(ndim: int) -> tuple[Any, Any]:
    """The op for so many dimensions, and that of its derivative."""
    if ndim == 2:
        return _adaptive_max_pool2d, adaptive_max_pool2d_backward
    return _adaptive_max_pool3d, adaptive_max_pool3d_backward


def maxima_of(self: Any, output_size: Any, ndim: int) -> tuple[Any, Any]:
    """Values and places over two or three dimensions."""
    sizes = numbers(sizes_or_own(self, output_size))
    several = isinstance(output_size, (tuple, list))
    return tuple(maximum_ops(ndim)[0](self, sizes if several else sizes * ndim))


@function(raw=True, space="nn.functional", method=False)
def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Apply 1-D max pooling to a given output size, and return the maxima and their places in the signals.

    The arguments are those of `adaptive_max_pool1d`; `return_indices` is ignored, since indices always come back.
    """
    check_between("adaptive_max_pool1d", input, 2, 3)
    size = one_int("adaptive_max_pool1d", "output_size", output_size)
    check_filled("adaptive_max_pool1d", input)
    values, places = _adaptive_max_pool2d(unsqueeze(input, -2), (1, size))
    return squeeze_dim(values, -2), squeeze_dim(places, -2)


@function(raw=True, space="nn.functional", method=False)
def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Apply 2-D max pooling to a given output size, and return the maxima and their places in the flattened images.

    The arguments are those of `adaptive_max_pool2d`; `return_indices` is ignored, since indices always come back.
    """
    return maxima_of(input, output_size, 2)


@function(raw=True, space="nn.functional", method=False)
def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Apply 3-D max pooling to a given output size, and return the maxima and their places in the flattened volumes.

    The arguments are those of `adaptive_max_pool3d`; `return_indices` is ignored, since indices always come back.
    """
    return maxima_of(input, output_size, 3)


@function(raw=True, space="nn.functional", method=False)
def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Apply 1-D max pooling to a given output size, whatever the input size.

    `input` is `(N, C, L)` or `(C, L)`; returns `(N, C, output_size)`, with `return_indices` also the places of the
    maxima.
    Window `i` reaches from `floor(i * L / output_size)` to `ceil((i + 1) * L / output_size)`.
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


@function(raw=True, space="nn.functional", method=False)
def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Apply 2-D max pooling to a given output size, whatever the input size.

    `input` is `(N, C, H, W)` or `(C, H, W)`; returns `(N, C, *output_size)`, where `output_size` is an int for squares,
    or a pair in which None keeps the size. With `return_indices` also the places of the maxima in the flattened images.
    Window `i` reaches from `floor(i * H / H_out)` to `ceil((i + 1) * H / H_out)`.
    """
    found = maxima_of(input, output_size, 2)
    return found if return_indices else found[0]


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Apply 3-D max pooling to a given output size, whatever the input size.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`; returns `(N, C, *output_size)`, where `output_size` is an int for
    cubes, or a triple in which None keeps the size. With `return_indices` also the places of the maxima in the
    flattened volumes.
    Window `i` reaches from `floor(i * D / D_out)` to `ceil((i + 1) * D / D_out)`.
    """
    found = maxima_of(input, output_size, 3)
    return found if return_indices else found[0]


publish("adaptive_max_pool1d", adaptive_max_pool1d_with_indices, TORCH)
