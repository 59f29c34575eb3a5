"""One step of a recurrent network: lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell; recorded op by op."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback._op.define import function
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor
from pullback.kernels.numpy.math.numbers import ZERO
from pullback.kernels.numpy.sequence import recurrent as kernels
from pullback.ops.linalg.matmul import mm
from pullback.ops.nn.activation.piecewise import relu
from pullback.ops.nn.linear import linear
from pullback.ops.nn.unrecorded import arrays_of, unrecorded, without_history
from pullback.ops.pointwise.arithmetic import add, mul, sub
from pullback.ops.pointwise.elementary import sigmoid
from pullback.ops.pointwise.trigonometric import tanh
from pullback.ops.shape.dims import t
from pullback.ops.shape.join import unsafe_chunk


class Weights:
    """The parameters of one layer and direction: input to hidden, hidden to hidden, their biases, a projection."""

    __slots__ = ("b_hh", "b_ih", "w_hh", "w_hr", "w_ih")

    def __init__(
        self,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
        w_hr: Tensor | None = None,
    ) -> None:
        self.w_ih, self.w_hh, self.b_ih, self.b_hh, self.w_hr = w_ih, w_hh, b_ih, b_hh, w_hr

    def of_input(self, x: Tensor) -> Tensor:
        """What the input contributes to the gates."""
        return linear(x, self.w_ih, self.b_ih)

    def of_hidden(self, h: Tensor) -> Tensor:
        """What the hidden state contributes to the gates."""
        return linear(h, self.w_hh, self.b_hh)


# A step takes what the input contributes, the state and the weights, and gives the new state. The first part of a
# state is the hidden state, which is also the output.


def lstm_step(gates_of_input: Tensor, state: tuple[Tensor, Tensor], weights: Weights) -> tuple[Tensor, Tensor]:
    """c' = f * c + i * g, h' = o * tanh(c')."""
    h, c = state
    gates = add(weights.of_hidden(h), gates_of_input)
    i, f, g, o = unsafe_chunk(gates, 4, 1)
    c = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))
    h = mul(sigmoid(o), tanh(c))
    return (h if weights.w_hr is None else mm(h, t(weights.w_hr))), c


def gru_step(gates_of_input: Tensor, state: tuple[Tensor], weights: Weights) -> tuple[Tensor]:
    """h' = n + z * (h - n), where n is what would be written if h were forgotten as far as r says."""
    (h,) = state
    r_input, z_input, n_input = unsafe_chunk(gates_of_input, 3, 1)
    r_hidden, z_hidden, n_hidden = unsafe_chunk(weights.of_hidden(h), 3, 1)
    r = sigmoid(add(r_hidden, r_input))
    z = sigmoid(add(z_hidden, z_input))
    n = tanh(add(n_input, mul(n_hidden, r)))
    return (add(mul(sub(h, n), z), n),)


def tanh_step(gates_of_input: Tensor, state: tuple[Tensor], weights: Weights) -> tuple[Tensor]:
    """h' = tanh of both contributions."""
    return (tanh(add(weights.of_hidden(state[0]), gates_of_input)),)


def relu_step(gates_of_input: Tensor, state: tuple[Tensor], weights: Weights) -> tuple[Tensor]:
    """h' = relu of both contributions."""
    return (relu(add(weights.of_hidden(state[0]), gates_of_input)),)


# ------------------------------------------------------------------ public


def check_cell(input: Tensor, states: Sequence[Tensor], weights: Weights) -> None:
    """Torch's demands on the shapes of a cell's arguments."""
    expected = weights.w_ih._array.shape[1]
    shape = input._array.shape
    if shape[1] != expected:
        raise RuntimeError(f"input has inconsistent input_size: got {shape[1]} expected {expected}")
    hidden = weights.w_hh._array.shape[1]
    for nr, state in enumerate(states):
        own = state._array.shape
        if shape[0] != own[0]:
            raise RuntimeError(f"Input batch size {shape[0]} doesn't match hidden{nr} batch size {own[0]}")
        if own[1] != hidden:
            raise RuntimeError(f"hidden{nr} has inconsistent hidden_size: got {own[1]}, expected {hidden}")


@function(raw=True, method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run one step of an LSTM, and return the new hidden state and cell state.

    `input` is `(N, I)`, `hx` the pair of hidden state and cell state, `(N, H)` each; `w_ih` is `(4 * H, I)`, `w_hh` is
    `(4 * H, H)`, and the biases are `(4 * H,)`, in the order of the gates i, f, g, o.
    With `i, f, o` through a sigmoid and `g` through tanh: `c' = f * c + i * g` and `h' = o * tanh(c')`.
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    weights = Weights(w_ih, w_hh, b_ih, b_hh)
    check_cell(input, hx, weights)
    arrays = cell_arrays(4, input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh)
    if arrays is not None:
        h, c = quiet().run(kernels.lstm_cell, *arrays)
        return without_history(h), without_history(c)
    return lstm_step(weights.of_input(input), (hx[0], hx[1]), weights)


def cell_arrays(gates: int, input: Tensor, *others: Tensor | None) -> list[Any] | None:
    """The arrays of a call that is not recorded and whose parameters have the right shapes."""
    arrays = arrays_of(input, *others)
    if arrays is None or arrays[0].ndim != 2:
        return None
    w_ih, w_hh, b_ih, b_hh = arrays[-4:]
    rows = gates * w_hh.shape[1]
    fits = w_ih.ndim == w_hh.ndim == 2 and w_ih.shape[0] == w_hh.shape[0] == rows
    for bias in (b_ih, b_hh):
        fits = fits and (bias is None or bias.shape == (rows,))
    return arrays if fits and arrays[0].size else None


def relu_of(x: Any) -> Any:
    """The positive part."""
    return np.maximum(ZERO[x.dtype], x)


def declare_cell(name: str, step: Any, gates: int, kernel: Any, doc: str) -> None:
    """Publish `torch.<name>`, a cell whose state is one tensor."""

    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        weights = Weights(w_ih, w_hh, b_ih, b_hh)
        check_cell(input, (hx,), weights)
        arrays = cell_arrays(gates, input, hx, w_ih, w_hh, b_ih, b_hh)
        if arrays is not None:
            return unrecorded(kernel, *arrays)
        return step(weights.of_input(input), (hx,), weights)[0]  # type: ignore[no-any-return]

    cell.__name__, cell.__doc__ = name, doc
    function(raw=True, method=False, name=name)(cell)


declare_cell(
    "gru_cell",
    gru_step,
    3,
    kernels.gru_cell,
    """Run one step of a GRU, and return the new hidden state.

    `input` is `(N, I)` and `hx` is `(N, H)`; `w_ih` is `(3 * H, I)`, `w_hh` is `(3 * H, H)`, and the biases are
    `(3 * H,)`, in the order of the gates r, z, n. With `r` and `z` through a sigmoid it is
    `n = tanh(w_in @ x + b_in + r * (w_hn @ h + b_hn))` and `h' = (1 - z) * n + z * h`.
    """,
)
declare_cell(
    "rnn_tanh_cell",
    tanh_step,
    1,
    partial(kernels.plain_cell, np.tanh),
    """Run one step of a plain recurrent network: `h' = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)`.

    `input` is `(N, I)` and `hx` is `(N, H)`; `w_ih` is `(H, I)`, `w_hh` is `(H, H)`, and the biases are `(H,)`.
    """,
)
declare_cell(
    "rnn_relu_cell",
    relu_step,
    1,
    partial(kernels.plain_cell, relu_of),
    """Run one step of a plain recurrent network: `h' = relu(w_ih @ x + b_ih + w_hh @ h + b_hh)`.

    `input` is `(N, I)` and `hx` is `(N, H)`; `w_ih` is `(H, I)`, `w_hh` is `(H, H)`, and the biases are `(H,)`.
    """,
)
