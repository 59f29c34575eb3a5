"""Recurrent networks: RNN, LSTM and GRU over whole sequences, packed or not."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Number
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import init
from pullback.nn.modules.module import Module
from pullback.nn.modules.parts.rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase
from pullback.nn.parameter import Parameter
from pullback.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
"""How many gates each kind has."""


class RNNBase(Module):
    """The weights of all layers and directions, and what the three kinds do with their arguments."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        check_dropout(dropout, num_layers)
        check_sizes(input_size, hidden_size, num_layers, proj_size, bias, batch_first)
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = self._shapes(layer)
                self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])
                for name, shape in shapes.items():
                    empty = pullback.empty(shape, device=device, dtype=dtype)
                    setattr(self, f"{name}_l{layer}{suffix}", Parameter(empty))
        self.reset_parameters()

    def _shapes(self, layer: int) -> dict[str, Any]:
        """The shapes of the weights of one layer in one direction, in torch's order."""
        gates = GATES[self.mode] * self.hidden_size
        hidden = self.proj_size or self.hidden_size
        received = self.input_size if layer == 0 else hidden * self._directions
        shapes: dict[str, Any] = {"weight_ih": (gates, received), "weight_hh": (gates, hidden)}
        if self.bias:
            shapes.update(bias_ih=gates, bias_hh=gates)
        if self.proj_size > 0:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: only a GPU wants the weights in one piece of memory."""

    def reset_parameters(self) -> None:
        """Draw everything uniformly from -1/sqrt(hidden_size) to 1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        # Torch's modules keep these two lists, so checkpoints have them.
        return {**self.__dict__, "_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        computed = ("_flat_weights_names", "_flat_weights")
        super().__setstate__({key: value for key, value in state.items() if key not in computed})
        self.__dict__.setdefault("proj_size", 0)

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the default."""
        shown = [str(self.input_size), str(self.hidden_size)]
        usual = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False
        }  # fmt: skip
        shown += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join(shown)

    # ---------------------------------------------------------------- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input that does not fit the weights."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch_of(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0) if self.batch_first else input.size(1)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for this input."""
        batch = self._batch_of(input, batch_sizes)
        return (self.num_layers * self._directions, batch, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected: tuple[int, ...], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a hidden state of another shape."""
        if hx.size() != expected:
            raise RuntimeError(msg.format(expected, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse an input and a hidden state that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The hidden state with its batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---------------------------------------------------------------- running

    def _run(self, function: Callable[..., Any], input: Any, hx: Any) -> Any:
        """Everything around the function over sequences: unpacking, adding a batch, the first hidden state."""
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = self._zeros(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
            self._check_packed(data, hx, batch_sizes)
            output, hidden = self._call(function, data, hx, batch_sizes)
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(hidden, back)
        if input.dim() not in (2, 3):
            raise ValueError(self._wrong_dims(input))
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if hx is not None:
            hx = self._with_batch(hx, batched)
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zeros(input, None)
        self.check_forward_args(input, hx, None)
        output, hidden = self._call(function, input, hx, None)
        return (output, hidden) if batched else (output.squeeze(batch_dim), self._without_batch(hidden))

    def _call(self, function: Callable[..., Any], input: Tensor, hx: Any, batch_sizes: Tensor | None) -> Any:
        settings = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if batch_sizes is None:
            output, *hidden = function(input, hx, *settings, self.batch_first)
        else:
            output, *hidden = function(input, batch_sizes, hx, *settings)
        return output, hidden[0] if len(hidden) == 1 else tuple(hidden)

    def _check_packed(self, data: Tensor, hx: Any, batch_sizes: Tensor) -> None:
        self.check_forward_args(data, hx, batch_sizes)

    def _wrong_dims(self, input: Tensor) -> str:
        return f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        size = self.get_expected_hidden_size(input, batch_sizes)
        return pullback.zeros(size, dtype=input.dtype, device=input.device)

    def _with_batch(self, hx: Tensor, batched: bool) -> Any:
        if batched and hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")
        if not batched and hx.dim() != 2:
            raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)

    def _without_batch(self, hidden: Any) -> Any:
        return hidden.squeeze(1)


def check_dropout(dropout: Any, num_layers: int) -> None:
    """Refuse what is no probability; warn where there is nothing to drop."""
    if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


def check_sizes(
    input_size: Any, hidden_size: Any, num_layers: int, proj_size: int, bias: Any, batch_first: Any
) -> None:
    """Refuse sizes and switches of the wrong type or value."""
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


ONLY_LSTM = "proj_size argument is only supported for LSTM, not RNN or GRU"


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or with a rectifier.

    RNN(input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(ONLY_LSTM)
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__("RNN_" + nonlinearity.upper(), *args[:3], *args[4:], **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """The outputs of the last layer, and the last hidden states of all layers."""
        return self._run(pullback.rnn_tanh if self.mode == "RNN_TANH" else pullback.rnn_relu, input, hx)

    def _wrong_dims(self, input: Tensor) -> str:
        return f"RNN: Expected input to be 2D or 3D, got {input.dim()}D tensor instead"


class GRU(RNNBase):
    """A recurrent network with gates for resetting and updating.

    GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    device=None, dtype=None)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError(ONLY_LSTM)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """The outputs of the last layer, and the last hidden states of all layers."""
        return self._run(pullback.gru, input, hx)


class LSTM(RNNBase):
    """A recurrent network with a cell that remembers.

    LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0, device=None, dtype=None)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        """The outputs of the last layer, and the last hidden and cell states of all layers."""
        return self._run(pullback.lstm, input, hx)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the cell state for this input."""
        return (self.num_layers * self._directions, self._batch_of(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse an input, a hidden state and a cell state that do not fit."""
        self.check_input(input, batch_sizes)
        expected = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for i in range(2):
            self.check_hidden_size(hidden[i], expected[i], f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Hidden and cell state with their batch in another order."""
        return hx if permutation is None else tuple([state.index_select(1, permutation) for state in hx])

    def _check_packed(self, data: Tensor, hx: Any, batch_sizes: Tensor) -> None:
        pass  # torch leaves the checks of packed sequences to the function

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        return (
            super()._zeros(input, batch_sizes),
            pullback.zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device),
        )

    def _with_batch(self, hx: Any, batched: bool) -> Any:
        got = f"got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
        if batched and (hx[0].dim() != 3 or hx[1].dim() != 3):
            raise RuntimeError(f"For batched 3-D input, hx and cx should also be 3-D but {got}")
        if not batched and (hx[0].dim() != 2 or hx[1].dim() != 2):
            raise RuntimeError(f"For unbatched 2-D input, hx and cx should also be 2-D but {got}")
        return hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))

    def _without_batch(self, hidden: Any) -> Any:
        return (hidden[0].squeeze(1), hidden[1].squeeze(1))
