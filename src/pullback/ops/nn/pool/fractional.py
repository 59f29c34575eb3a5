"""Pooling with windows at random places: fractional_max_pool2d and 3d."""

from __future__ import annotations

from typing import Any

from pullback._op.define import Array, function, op
from pullback._runtime.messages import dim_out_of_range, shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.pool import sliding as even
from pullback.kernels.numpy.pool import uneven as kernels
from pullback.ops.nn.pool.checks import numbers
from pullback.ops.nn.pool.maximum import gather_places, scatter_places
from pullback.ops.random.draw import rand
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import refuse, refuse_gradient

NAMES = ("time", "height", "width")


def check_fractional(self: Array, kernel_size: Any, output_size: Any, random_samples: Array) -> None:
    """Torch's demands on a fractional pooling."""
    ndim = len(kernel_size)
    name = "fractional_max_pool2d" if ndim == 2 else "fractional_max_pool3d_out"
    for dim in range(self.ndim - ndim - 1, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got"
                f"{shape_text(self.shape)} with dimension {dim} being empty."
            )
    sizes = self.shape[-ndim:]
    for dim in (0, 1) if ndim == 2 else (0, 2, 1):
        what, n, k, count = NAMES[dim - ndim], sizes[dim], kernel_size[dim], output_size[dim]
        if count + k - 1 > n - (ndim == 3):
            raise RuntimeError(f"{name}(): pool {what} {k} too large relative to input {what} {n}")
    if random_samples.dtype != self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if random_samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {random_samples.ndim}")
    batch, channels = (1 if self.ndim == ndim + 1 else self.shape[0]), self.shape[-ndim - 1]
    if random_samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if random_samples.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if random_samples.shape[2] != ndim:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {ndim}; got {random_samples.shape[2]}.")
    refuse(f"fractional_max_pool{ndim}d", self, "iubc")


def fractional(ndim: int) -> tuple[Any, Any]:
    """The op that takes maxima at random places in the last `ndim` dimensions, and that of its derivative."""
    name = f"fractional_max_pool{ndim}d"

    def maxima(self: Array, kernel_size: Any, output_size: Any, random_samples: Array) -> Any:
        check_fractional(self, kernel_size, output_size, random_samples)
        batch = self if self.ndim == ndim + 2 else self[None]
        # Images have the sample of their width first.
        samples = random_samples[: batch.shape[0]]
        samples = samples[..., ::-1] if ndim == 2 else samples
        values, places = kernels.fractional_max(batch, samples, output_size, kernel_size)
        return (values, places) if batch is self else (values[0], places[0])

    def maxima_backward(grad_output: Array, self: Array, kernel_size: Any, output_size: Any, indices: Array) -> Array:
        return even.scatter_to_places(grad_output, indices, self.shape[-ndim:])

    maxima.__name__, maxima_backward.__name__ = f"_{name}", f"{name}_backward"
    maxima.__doc__ = f"The maxima of windows at random places over the last {ndim} dimensions, and their places."
    maxima_backward.__doc__ = f"The gradient of {name}."
    forward = op(
        vmap="pooled_at_random",
        space=None,
        name=name,
        node=f"FractionalMaxPool{ndim}DBackward0",
        outputs=("result0", "result1"),
        self=lambda grad, self, kernel_size, output_size, result1: fractional_ops(ndim)[1](
            grad, self, kernel_size, output_size, result1
        ),
        result=lambda self_t, result1: (gather_places(self_t, result1, ndim), None),
    )(maxima)
    backward = op(
        vmap="samples",
        space=None,
        node=f"FractionalMaxPool{ndim}DBackwardBackward0",
        grad_output=lambda grad, indices: gather_places(grad, indices, ndim),
        self=lambda grad, self_sym_sizes: zeros_of(grad, self_sym_sizes),
        result=lambda grad_output_t, self, indices: scatter_places(grad_output_t, indices, self.shape[-ndim:]),
    )(maxima_backward)
    return forward, backward


_fractional_max_pool2d, fractional_max_pool2d_backward = fractional(2)
_fractional_max_pool3d, fractional_max_pool3d_backward = fractional(3)


def fractional_ops(ndim: int) -> tuple[Any, Any]:
    """The op for so many dimensions, and that of its derivative."""
    if ndim == 2:
        return _fractional_max_pool2d, fractional_max_pool2d_backward
    return _fractional_max_pool3d, fractional_max_pool3d_backward


def fractional_maxima(
    ndim: int, self: Any, kernel_size: Any, output_size: Any, output_ratio: Any, random_samples: Any
) -> tuple[Any, Any]:
    """Values and places of windows at places drawn now, or given."""
    name = f"fractional_max_pool{ndim}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if ndim == 2 and len(output_ratio) > 2:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratios = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * ndim
        output_size = [int(self.shape[dim - ndim] * ratios[dim]) for dim in range(ndim)]
    if self.ndim < ndim + 1:
        raise IndexError(dim_out_of_range(-ndim - 1, self.ndim))
    if random_samples is None:
        batch = 1 if self.ndim == ndim + 1 else self.shape[0]
        refuse("check_uniform_bounds", self._array, "iub")
        random_samples = rand(batch, self.shape[-ndim - 1], ndim, dtype=self.dtype, device=self.device)
    refuse_gradient(name, random_samples=random_samples)
    several = "a single Int or tuple of Ints" if ndim == 2 else "a single Int or tuple of three Ints"
    kernel, sizes = numbers(kernel_size), numbers(output_size)
    for called, given, found in (("kernel_size", kernel_size, kernel), ("output_size", output_size, sizes)):
        if isinstance(given, (tuple, list)) and len(found) != ndim:
            raise RuntimeError(f"{name}: {called} must either be {several}")
    kernel, sizes = kernel * (ndim // len(kernel)), sizes * (ndim // len(sizes))
    return tuple(fractional_ops(ndim)[0](self, kernel, sizes, random_samples))


@function(raw=True, space="nn.functional", method=False)
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply 2-D fractional max pooling, and return the maxima and their places in the flattened images.

    The arguments are those of `fractional_max_pool2d`; `return_indices` is ignored, since indices always come back.
    """
    return fractional_maxima(2, input, kernel_size, output_size, output_ratio, _random_samples)


@function(raw=True, space="nn.functional", method=False)
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply 3-D fractional max pooling, and return the maxima and their places in the flattened volumes.

    The arguments are those of `fractional_max_pool3d`; `return_indices` is ignored, since indices always come back.
    """
    return fractional_maxima(3, input, kernel_size, output_size, output_ratio, _random_samples)


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply 2-D fractional max pooling: maxima of windows whose places are drawn at random.

    `input` is `(N, C, H, W)` or `(C, H, W)`, and the windows are `kernel_size` large. Give the size of the output as
    `output_size`, a number or a pair, or as `output_ratio`, a pair of fractions of the input's size, between 0 and 1.
    With `return_indices` the places of the maxima in the flattened images are returned too.
    `_random_samples` `(N, C, 2)`, between 0 and 1, takes the place of the random numbers.
    """
    found = fractional_maxima(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@function(raw=True, space="nn.functional", method=False, autocast="float32")
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Apply 3-D fractional max pooling: maxima of windows whose places are drawn at random.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`, and the windows are `kernel_size` large. Give the size of the output
    as `output_size`, or as `output_ratio`, a fraction of the input's between 0 and 1; both are numbers or triples.
    With `return_indices` the places of the maxima in the flattened volumes are returned too.
    `_random_samples` `(N, C, 3)`, between 0 and 1, takes the place of the random numbers.
    """
    found = fractional_maxima(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
