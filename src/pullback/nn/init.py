"""First values of parameters: each function fills its tensor, unrecorded, and returns it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pullback
from pullback import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_",
]  # fmt: skip

GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4, "sigmoid": 1, "linear": 1}
"""How much a nonlinearity shrinks a signal, to be made up for by the weights."""


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity (`param`: the slope of leaky_relu)."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity in GAINS:
        return GAINS[nonlinearity]
    if nonlinearity in [f"conv{mode}{n}d" for mode in ("", "_transpose") for n in (1, 2, 3)]:
        return 1
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a layer with this weight has, and how many outputs each input."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


# ------------------------------------------------------------------ plain distributions


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw uniformly from a to b."""
    with pullback.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from a normal distribution."""
    with pullback.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from a normal distribution, without what lies outside a to b."""

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=3,
        )
    with pullback.no_grad():
        if below((b - mean) / std) - below((a - mean) / std) > 0.3:
            return redraw_outliers(tensor, mean, std, a, b, generator)
        return accept_uniform(tensor, mean, std, a, b, generator)


def redraw_outliers(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Draw normally, and again where the value lies outside."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            break
        again = pullback.empty_like(result).normal_(mean, std, generator=generator)
        result = pullback.where(outside, again, result)
    return tensor if tensor is result else tensor.copy_(result)


def accept_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Draw uniformly, and keep each value as often as the normal density says, compared with its peak in a to b."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2

    def refused(candidates: Tensor) -> Tensor:
        # The order of draws and roundings is torch's, so that the same seed gives the same values.
        log_density = candidates.clone().sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return pullback.empty_like(tensor).uniform_(generator=generator).log_().gt(log_density)

    result = tensor.uniform_(a, b, generator=generator)
    pending = refused(result)
    while pending.any():
        candidates = pullback.empty_like(tensor).uniform_(a, b, generator=generator)
        result = pullback.where(pending, candidates, result)
        pending = pullback.where(pending, refused(candidates), pending)
    return tensor if tensor is result else tensor.copy_(result)


# ------------------------------------------------------------------ fixed values


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with pullback.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    with pullback.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Make a matrix the identity."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with pullback.no_grad():
        return tensor.copy_(pullback.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weight of a convolution hand on as many channels as it can."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    middle = [n // 2 for n in tensor.shape[2:]]
    with pullback.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


# ------------------------------------------------------------------ scaled to the size of the layer


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's uniform distribution: keeps the variance forward and backward."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot's normal distribution."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation He recommends; None, with a warning, if there is nothing to fill."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's uniform distribution: keeps the variance through a rectifier."""
    std = kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """He's normal distribution."""
    std = kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Make the rows (or, if there are fewer, the columns) orthogonal to each other."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    random = tensor.detach().new_empty((rows, columns)).normal_(0, 1, generator=generator)
    q, r = pullback.linalg.qr(random.t() if rows < columns else random)
    q = q * pullback.diag(r, 0).sign()  # the sign makes the distribution uniform
    with pullback.no_grad():
        tensor.view(rows, columns).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw normally, then set the fraction `sparsity` of each column to 0."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with pullback.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[pullback.randperm(rows)[:zeros], column] = 0
    return tensor


# ------------------------------------------------------------------ old names


def deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The old name of a function, without the underscore."""
    new = function.__name__

    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{new[:-1]}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    renamed.__name__ = new[:-1]
    renamed.__doc__ = f"The old name of {new}."
    return renamed


uniform = deprecated(uniform_)
normal = deprecated(normal_)
constant = deprecated(constant_)
eye = deprecated(eye_)
dirac = deprecated(dirac_)
xavier_uniform = deprecated(xavier_uniform_)
xavier_normal = deprecated(xavier_normal_)
kaiming_uniform = deprecated(kaiming_uniform_)
kaiming_normal = deprecated(kaiming_normal_)
orthogonal = deprecated(orthogonal_)
sparse = deprecated(sparse_)
