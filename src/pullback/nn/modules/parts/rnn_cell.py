"""One step of a recurrent network: RNNCell, LSTMCell and GRUCell."""

from __future__ import annotations

import math
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import init
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter

HOME = "pullback.nn.modules.rnn"
"""Where checkpoints look for these classes, as torch has them there."""


class RNNCellBase(Module):
    """The weights of one step."""

    __module__ = HOME

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(pullback.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(pullback.empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            values = Parameter(pullback.empty(gates, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw everything uniformly from -1/sqrt(hidden_size) to 1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the default."""
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown

    @property
    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, what: str, tensor: Tensor | None) -> None:
        if tensor is not None and tensor.dim() not in (1, 2):
            name = type(self).__name__
            raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")

    def _zeros(self, input: Tensor) -> Tensor:
        return pullback.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _step(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """One step with a single state; an input without a batch is a batch of one."""
        self._check("input", input)
        self._check("hidden", hx)
        if input.dim() == 1:
            alone = function(input.unsqueeze(0), None if hx is None else hx.unsqueeze(0))
            return alone.squeeze(0)
        return function(input, hx)


class RNNCell(RNNCellBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or with a rectifier."""

    __module__ = HOME

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        return self._step(self._next, input, hx)

    def _next(self, input: Tensor, hx: Tensor | None) -> Tensor:
        hx = self._zeros(input) if hx is None else hx
        if self.nonlinearity == "tanh":
            return pullback.rnn_tanh_cell(input, hx, *self._weights)
        if self.nonlinearity == "relu":
            return pullback.rnn_relu_cell(input, hx, *self._weights)
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class GRUCell(RNNCellBase):
    """One step with gates for resetting and updating."""

    __module__ = HOME

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next hidden state."""
        return self._step(self._next, input, hx)

    def _next(self, input: Tensor, hx: Tensor | None) -> Tensor:
        return pullback.gru_cell(input, self._zeros(input) if hx is None else hx, *self._weights)


class LSTMCell(RNNCellBase):
    """One step with a cell that remembers."""

    __module__ = HOME

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next hidden state and the next cell state."""
        self._check("input", input)
        for i, state in enumerate(hx or ()):
            self._check(f"hx[{i}]", state)
        alone = input.dim() == 1
        if alone:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif alone:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = pullback.lstm_cell(input, hx, *self._weights)
        return (h.squeeze(0), c.squeeze(0)) if alone else (h, c)
