"""One layer of an LSTM as a single op, which torch's CPU build uses for float32: mkldnn_rnn_layer."""

from __future__ import annotations

from typing import Any

from pullback._op.define import Array, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.sequence import recurrent as kernels
from pullback.ops.linalg.matmul import mm
from pullback.ops.nn.norm.layer_norm import plain_tuple
from pullback.ops.pointwise.elementary import sigmoid
from pullback.ops.pointwise.trigonometric import tanh
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.dims import t
from pullback.ops.shape.join import cat, stack
from pullback.ops.shape.slicing import narrow, select_int


def layer_grads(
    grads: Any,
    input: Any,
    weight0: Any,
    weight1: Any,
    weight2: Any,
    weight3: Any,
    hx_: Any,
    cx_: Any,
    result0: Any,
    result1: Any,
    result2: Any,
    result3: Any,
    reverse: bool,
    batch_sizes: Any,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> Any:
    """The gradients of the input, the four parameters and the two first states.

    The plain arguments are those torch's node shows; for this one kind of layer only `reverse` matters.
    """
    if isinstance(input, Tensor):
        parameters = (weight0, weight1, weight2, weight3)
        d_x, d_w_ih, d_w_hh, d_b, d_h, d_c = composed_grads(grads[:3], input, *parameters, hx_, cx_, reverse)
    else:
        d_x, d_w_ih, d_w_hh, d_b, d_h, d_c = kernels.lstm_layer_backward(
            grads[:3], input, weight0, weight1, hx_, cx_, result0, result3, reverse
        )
    return d_x, d_w_ih, d_w_hh, d_b, d_b, d_h, d_c


def quarters(gates: Any, size: int) -> list[Any]:
    """The four gates of a step."""
    return [narrow(gates, 1, k * size, size) for k in range(4)]


def composed_grads(
    grads: Any, x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, c0: Any, reverse: bool
) -> tuple[Any, ...]:
    """The same in terms of ops, from a forward pass of its own, so that it can be differentiated again."""
    steps, size = x.shape[0], w_hh.shape[1]
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    h, c, trace = h0, c0, []
    for nr in order:
        step = select_int(x, 0, nr)
        i, f, g, o = quarters(mm(step, t(w_ih)) + b_ih + mm(h, t(w_hh)) + b_hh, size)
        i, f, g, o = sigmoid(i), sigmoid(f), tanh(g), sigmoid(o)
        after = f * c + i * g
        trace.append((nr, step, h, c, i, f, g, o, tanh(after)))
        c = after
        h = o * tanh(c)
    d_h, d_c = 0 if grads[1] is None else grads[1], 0 if grads[2] is None else grads[2]
    d_x: list[Any] = [None] * steps
    d_gates, inputs, states = [], [], []
    for nr, step, h, c, i, f, g, o, tanh_c in reversed(trace):
        if grads[0] is not None:
            d_h = d_h + select_int(grads[0], 0, nr)
        d_c = d_c + d_h * o * (1 - tanh_c * tanh_c)
        parts = [d_c * g * i * (1 - i), d_c * c * f * (1 - f), d_c * i * (1 - g * g), d_h * tanh_c * o * (1 - o)]
        gates = cat(parts, 1)
        d_gates.append(gates)
        inputs.append(step)
        states.append(h)
        d_x[nr] = mm(gates, w_ih)
        d_c = d_c * f
        d_h = mm(gates, w_hh)
    flat = cat(d_gates, 0)
    return stack(d_x, 0), mm(t(flat), cat(inputs, 0)), mm(t(flat), cat(states, 0)), sum_dim(flat, (0,)), d_h, d_c


@op(
    vmap="entries",
    space=None,
    name="mkldnn_rnn_layer",
    outputs=("result0", "result1", "result2", "result3"),
    visible=3,
    autocast="lower",
    input="one formula for all",
    weight0="one formula for all",
    weight1="one formula for all",
    weight2="one formula for all",
    weight3="one formula for all",
    hx_="one formula for all",
    cx_="one formula for all",
    backward=layer_grads,
)
def lstm_layer(
    input: Array,
    weight0: Array,
    weight1: Array,
    weight2: Array,
    weight3: Array,
    hx_: Array,
    cx_: Array,
    reverse: bool,
    batch_sizes: tuple[int, ...],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> Any:
    """The outputs of all steps (time, sample, feature), the last hidden and cell state; the gates are only saved."""
    return kernels.lstm_layer(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse)


lstm_layer.op.fields = plain_tuple
LSTM_MODE = 2
"""The number by which torch's kernels know an LSTM."""


def run_layer(
    x: Tensor, weights: Any, state: tuple[Tensor, Tensor], reverse: bool, facts: tuple[int, bool, bool, bool, bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs and last states of one layer and direction; `facts` are those torch's node shows."""
    num_layers, has_biases, bidirectional, batch_first, train = facts
    h, c = state
    out, h, c = lstm_layer(
        x,
        weights.w_ih,
        weights.w_hh,
        weights.b_ih,
        weights.b_hh,
        h,
        c,
        reverse,
        (),
        LSTM_MODE,
        weights.w_hh.shape[1],
        num_layers,
        has_biases,
        bidirectional,
        batch_first,
        train,
    )
    return out, h, c
