"""Activations: each module keeps the settings of a function of `nn.functional` and calls it."""

from __future__ import annotations

import warnings
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn import init as initial
from pullback.nn.modules.module import Layer
from pullback.nn.modules.parts.attention import MultiheadAttention
from pullback.nn.parameter import Parameter

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


# ------------------------------------------------------------------ nothing to set


class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """sigmoid."""
        return pullback.sigmoid(input)


class Tanh(Layer):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """tanh."""
        return pullback.tanh(input)


class LogSigmoid(Layer):
    """log(1 / (1 + exp(-x)))."""

    def forward(self, input: Tensor) -> Tensor:
        """F.logsigmoid."""
        return F.logsigmoid(input)


class Softsign(Layer):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """F.softsign."""
        return F.softsign(input)


class Tanhshrink(Layer):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """F.tanhshrink."""
        return F.tanhshrink(input)


# ------------------------------------------------------------------ in place or not


class MayBeInPlace(Layer):
    """An activation that can write its result into its input."""

    _shared_init = True
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return "inplace=True" if self.inplace else ""


def settings(module: Any, *names: str) -> str:
    """The settings of a module as text: 'alpha=1.0, inplace=True'."""
    shown = [f"{name}={getattr(module, name)}" for name in names]
    return ", ".join([*shown, "inplace=True"] if module.inplace else shown)


class ReLU(MayBeInPlace):
    """max(0, x)."""

    def forward(self, input: Tensor) -> Tensor:
        """F.relu."""
        return F.relu(input, self.inplace)


class SiLU(MayBeInPlace):
    """x * sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """F.silu."""
        return F.silu(input, self.inplace)


class Mish(MayBeInPlace):
    """x * tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """F.mish."""
        return F.mish(input, self.inplace)


class SELU(MayBeInPlace):
    """The self-normalizing ELU."""

    def forward(self, input: Tensor) -> Tensor:
        """F.selu."""
        return F.selu(input, self.inplace)


class Hardsigmoid(MayBeInPlace):
    """The sigmoid, as three straight lines."""

    def forward(self, input: Tensor) -> Tensor:
        """F.hardsigmoid."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing, as in torch."""
        return ""


class Hardswish(MayBeInPlace):
    """x * hardsigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """F.hardswish."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Nothing, as in torch."""
        return ""


class Threshold(Layer):
    """x where it is above the threshold, elsewhere one value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """F.threshold."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return settings(self, "threshold", "value")


class RReLU(Layer):
    """A leaky rectifier whose slope is drawn anew for each element in training."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """F.rrelu."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return settings(self, "lower", "upper")


class Hardtanh(Layer):
    """x, held between two bounds."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        renamed = "keyword argument `{0}ue` is deprecated and renamed to `{0}`"
        if min_value is not None:
            warnings.warn(renamed.format("min_val"), FutureWarning, stacklevel=2)
            min_val = min_value
        if max_value is not None:
            warnings.warn(renamed.format("max_val"), FutureWarning, stacklevel=2)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """F.hardtanh."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return settings(self, "min_val", "max_val")


class ReLU6(Hardtanh):
    """x, held between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether the input is overwritten."""
        return settings(self)


class ELU(Layer):
    """x above 0, alpha * (exp(x) - 1) below."""

    _shared_init = True

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """F.elu."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return settings(self, "alpha")


class CELU(ELU):
    """x above 0, alpha * (exp(x / alpha) - 1) below."""

    def forward(self, input: Tensor) -> Tensor:
        """F.celu."""
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(Layer):
    """x above 0, negative_slope * x below."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """F.leaky_relu."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return settings(self, "negative_slope")


# ------------------------------------------------------------------ one or two settings


class GELU(Layer):
    """x times the normal distribution function of x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """F.gelu."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """How it is computed."""
        return f"approximate={self.approximate!r}"


class Hardshrink(Layer):
    """x, but 0 from -lambd to lambd."""

    _shared_init = True

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """F.hardshrink."""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        """The bound."""
        return str(self.lambd)


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd."""

    def forward(self, input: Tensor) -> Tensor:
        """F.softshrink."""
        return F.softshrink(input, self.lambd)


class Softplus(Layer):
    """log(1 + exp(beta * x)) / beta."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """F.softplus."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Layer):
    """A leaky rectifier whose slope is learnt, one for all channels or one for each."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(pullback.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """F.prelu."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """How many slopes."""
        return f"num_parameters={self.num_parameters}"


# ------------------------------------------------------------------ along one dimension


class AlongDim(Layer):
    """An activation that looks along one dimension."""

    _shared_init = True

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class GLU(AlongDim):
    """The first half times the sigmoid of the second."""

    dim: int

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        """F.glu."""
        return F.glu(input, self.dim)


class Softmin(AlongDim):
    """The softmax of -x."""

    def forward(self, input: Tensor) -> Tensor:
        """F.softmin."""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(AlongDim):
    """exp(x), scaled so that the sum is 1."""

    def forward(self, input: Tensor) -> Tensor:
        """F.softmax."""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(AlongDim):
    """The logarithm of the softmax."""

    def forward(self, input: Tensor) -> Tensor:
        """F.log_softmax."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Layer):
    """The softmax over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        """F.softmax over dimension -3."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
