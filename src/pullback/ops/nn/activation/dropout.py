"""Dropout: a random part of the elements, or of the channels, set to zero; the random numbers are torch's.

The noise is drawn as torch draws it (ones with probability 1 - p, then scaled), and the result is input * noise.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback._runtime.messages import cannot_cast
from pullback._runtime.warnings import warn
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.norm.rows import number
from pullback.kernels.numpy.random import distributions as kernels
from pullback.ops.create.like import array_like
from pullback.ops.pointwise.arithmetic import add, mul
from pullback.ops.random.fill import drawn
from pullback.ops.random.generator import engine_of
from pullback.ops.shape.reshape import squeeze_dim, unsqueeze

ALPHA = 1.7580993408473766
"""Minus the value at which selu flattens out: what dropped elements are set to."""


# ------------------------------------------------------------------ noise


def kept(input: Tensor, p: float) -> Array:
    """Ones with probability 1 - p in the shape and memory order of the input."""
    return made_on(input.device, kept_elements, input._array, engine_of("bernoulli_", None), p)


def kept_elements(array: Array, engine: Any, p: float) -> Array:
    """The same for an array."""
    if array.flags.c_contiguous:
        return kernels.bernoulli(engine, array.shape, array.dtype, 1 - p)
    return drawn(array, kernels.bernoulli, engine, 1 - p)


def scaled(input: Tensor, p: float) -> Array:
    """The noise of dropout: ones with probability 1 - p, over that probability, zeros elsewhere."""
    return made_on(input.device, scaled_elements, input._array, engine_of("bernoulli_", None), p)


def scaled_elements(array: Array, engine: Any, p: float) -> Array:
    """The same for an array."""
    return divided(kept_elements(array, engine, p), 1 - p)


def kept_channels(input: Tensor, p: float) -> Array:
    """The same, once for each channel."""
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    engine = engine_of("bernoulli_", None)
    return made_on(input.device, kernels.bernoulli, engine, shape, input._array.dtype, 1 - p)


def divided(noise: Array, keep: float) -> Array:
    """The noise over the probability of keeping; half precision is divided in float32."""
    floats(noise)
    if noise.dtype.itemsize == 2:
        return (noise.astype(np.float32) / np.float32(keep)).astype(noise.dtype)
    return np.divide(noise, number(keep, noise.dtype), noise)


def floats(noise: Array) -> Array:
    """The noise, if it can be divided in place."""
    if noise.dtype.kind in "iub":
        raise RuntimeError(cannot_cast("Float", FROM_NUMPY[noise.dtype].scalar_type))
    return noise


def dropped(name: str, input: Tensor, p: float, train: bool, draw: Any, alpha: bool, inplace: bool) -> Tensor:
    """What all kinds of dropout do; `draw` makes the noise."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    p = float(p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or not input._array.size:
        return input
    times = Tensor.mul_ if inplace else mul  # type: ignore[attr-defined]
    if p == 1:
        return times(input, wrap(np.zeros((), input._array.dtype)))
    if draw is kept and not alpha:
        return times(input, wrap(scaled(input, p)))
    noise = draw(input, p)
    if not alpha:
        return times(input, wrap(divided(noise, 1 - p)))
    a = 1 / sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    shift = (noise.astype(np.int64) if noise.dtype.kind == "b" else noise) - noise.dtype.type(1)
    shift = floats(shift) * noise.dtype.type(ALPHA * a) + noise.dtype.type(ALPHA * a * p)
    noise *= noise.dtype.type(a)
    plus = Tensor.add_ if inplace else add  # type: ignore[attr-defined]
    return plus(times(input, wrap(noise)), wrap(shift))


def declare(name: str, draw: Any, alpha: bool, doc: str) -> None:
    """Publish `torch.<name>` and its in-place twin."""

    def plain(input: Tensor, p: float, train: bool) -> Tensor:
        return dropped(name, input, p, train, draw, alpha, False)

    def twin(input: Tensor, p: float, train: bool) -> Tensor:
        return dropped(f"{name}_", input, p, train, draw, alpha, True)

    plain.__name__, plain.__doc__ = name, doc
    twin.__name__, twin.__doc__ = f"{name}_", f"In-place version of :func:`{name}`."
    for made in (plain, twin):
        function(raw=True, method=False, name=made.__name__)(made)


declare(
    "dropout", kept, False, "Zero elements with probability `p` while `train`, and scale the others by `1 / (1 - p)`."
)
declare(
    "feature_dropout",
    kept_channels,
    False,
    "Zero whole channels with probability `p` while `train`, and scale the others by `1 / (1 - p)`.",
)
declare(
    "alpha_dropout",
    kept,
    True,
    "Set elements to selu's lower limit with probability `p` while `train`, keeping mean and variance.",
)
declare(
    "feature_alpha_dropout",
    kept_channels,
    True,
    "Set whole channels to selu's lower limit with probability `p` while `train`, keeping mean and variance.",
)


# ------------------------------------------------------------------ native_dropout


def keep_scale(p: float) -> float:
    """What kept elements are multiplied with."""
    return 0.0 if p == 1 else 1.0 / (1.0 - p)


@op(
    vmap="entries",
    space=None,
    name="native_dropout",
    outputs=("result0", "result1"),
    input=lambda grad, p, result1: grad * result1 * keep_scale(p),
    result=lambda input_t, p, result1: (input_t * result1 * keep_scale(p), None),
)
def dropout_and_mask(input: Array, p: float) -> Any:
    """Dropout, and the mask of what was kept."""
    mask = drawn(array_like(input, np.dtype(bool)), kernels.bernoulli, engine_of("bernoulli_", None), 1 - p)
    return input * mask * input.dtype.type(keep_scale(p)), mask


@op(
    vmap="entries",
    space=None,
    name="native_dropout",
    outputs=("result0", "result1"),
    # torch does not scale the gradient where nobody said whether this is training.
    input=lambda grad, p, result1: grad * result1,
    result=lambda input_t, p, result1: (input_t * result1, None),
)
def dropout_and_mask_untold(input: Array, p: float) -> Any:
    """Dropout, and the mask of what was kept, for train=None."""
    return dropout_and_mask(input, p)


@op(
    vmap="leading",
    space=None,
    name="native_dropout",
    outputs=("result0", "result1"),
    input=lambda grad, p, result1: grad,
    result=lambda input_t: (input_t, None),
)
def everything_and_mask(input: Array, p: float) -> Any:
    """What native_dropout does outside training: a copy, and a mask that keeps all."""
    return input.copy(), np.ones(input.shape, bool)


@function(raw=True, method=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Apply dropout, and return the mask of what was kept as well.

    While `train` is not False, elements become zero with probability `p` and the others are scaled by `1 / (1 - p)`;
    otherwise the result is a copy, and the mask is True everywhere. The mask is a bool tensor of the shape of `input`.
    """
    if not input._array.size:
        return input, wrap(np.empty_like(input._array))
    if train is False:
        return tuple(everything_and_mask(input, p))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p:g}")
    floats(input._array)
    return tuple((dropout_and_mask_untold if train is None else dropout_and_mask)(input, float(p)))


# ------------------------------------------------------------------ nn.functional


def check_p(p: float) -> None:
    """Raise unless p is a probability."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


@function(nested="shape", raw=True, space="nn.functional", method=False, name="dropout")
def functional_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set random elements to zero while training.

    Each element is zeroed with probability `p`, and the others are scaled by `1 / (1 - p)`, which keeps the mean.
    Unless `training`, the input is returned as it is. With `inplace` it is overwritten and returned.
    """
    check_p(p)
    return dropped("dropout", input, p, training, kept, False, inplace)


@function(nested="shape", raw=True, space="nn.functional", method=False, name="alpha_dropout")
def functional_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply alpha dropout while training: the kind that goes with `selu`.

    With probability `p` each element is set to the value selu tends to far below zero (about -1.7581); then all are
    scaled and shifted so that mean 0 and variance 1 are kept. Unless `training`, the input is returned as it is.
    """
    check_p(p)
    return dropped("alpha_dropout", input, p, training, kept, True, inplace)


@function(raw=True, space="nn.functional", method=False, name="feature_alpha_dropout")
def functional_feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply alpha dropout to whole channels while training.

    With probability `p` each channel of `input` `(N, C, ...)` is set to the value selu tends to far below zero (about
    -1.7581); then everything is scaled and shifted so that mean 0 and variance 1 are kept.
    Unless `training`, the input is returned as it is.
    """
    check_p(p)
    return dropped("feature_alpha_dropout", input, p, training, kept_channels, True, inplace)


def unbatched(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of the channels of a single sample."""
    if not inplace:
        return squeeze_dim(dropped("feature_dropout", unsqueeze(input, 0), p, training, kept_channels, False, False), 0)
    input.unsqueeze_(0)  # type: ignore[attr-defined]
    dropped("feature_dropout_", input, p, training, kept_channels, False, True)
    return input.squeeze_(0)  # type: ignore[attr-defined, no-any-return]


@function(raw=True, space="nn.functional", method=False)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels of signals to zero while training.

    Each channel of `input`, `(N, C, L)` or `(C, L)`, is zeroed with probability `p`, and the others are scaled by
    `1 / (1 - p)`. Unless `training`, nothing changes. With `inplace` the input is overwritten and returned.
    """
    check_p(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.ndim == 2:
        return unbatched(input, p, training, inplace)
    return dropped("feature_dropout", input, p, training, kept_channels, False, inplace)


def warn_about_dims(name: str, ndim: int, spatial: int) -> None:
    """Torch's warning for an input with an unexpected number of dimensions."""
    warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
        f"exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel dimension, and "
        f"an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
    )


@function(raw=True, space="nn.functional", method=False)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels of images to zero while training.

    Each channel of `input` `(N, C, H, W)` is zeroed with probability `p`, and the others are scaled by `1 / (1 - p)`.
    Inputs of 3 dimensions are taken as `(N, C, L)`, with a warning. Unless `training`, nothing changes.
    With `inplace` the input is overwritten and returned.
    """
    check_p(p)
    if input.ndim not in (3, 4):
        warn_about_dims("dropout2d", input.ndim, 2)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
        )
    return dropped("feature_dropout", input, p, training, kept_channels, False, inplace)


@function(raw=True, space="nn.functional", method=False)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels of volumes to zero while training.

    Each channel of `input`, `(N, C, D, H, W)` or `(C, D, H, W)`, is zeroed with probability `p`, and the others are
    scaled by `1 / (1 - p)`. Unless `training`, nothing changes. With `inplace` the input is overwritten and returned.
    """
    check_p(p)
    if input.ndim not in (4, 5):
        warn_about_dims("dropout3d", input.ndim, 3)
    if input.ndim != 5:
        return unbatched(input, p, training, inplace)
    return dropped("feature_dropout", input, p, training, kept_channels, False, inplace)
