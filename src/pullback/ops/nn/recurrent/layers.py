"""Recurrent networks: torch.lstm, gru, rnn_tanh and rnn_relu, over sequences of one length or packed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._dtype import float32
from pullback._op.define import function
from pullback._tensor import Tensor, wrap
from pullback.ops.nn.activation.dropout import dropped, kept
from pullback.ops.nn.recurrent.cell import Weights, gru_step, lstm_step, relu_step, tanh_step
from pullback.ops.nn.recurrent.lstm import run_layer
from pullback.ops.nn.recurrent.packed import packed_layer
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.join import cat, stack, unbind
from pullback.ops.shape.reshape import clone_contiguous, is_contiguous
from pullback.ops.shape.slicing import select_int

State = tuple[Tensor, ...]
Step = Callable[[Tensor, Any, Weights], Any]


# ------------------------------------------------------------------ parameters and states


def layers_of(params: Sequence[Tensor], has_biases: bool, projected: bool, fused: bool) -> list[Weights]:
    """The parameters of each layer and direction."""
    each = (4 if has_biases else 2) + bool(projected)
    if len(params) % each:
        if fused:
            raise RuntimeError(f"MatrixRef: ArrayRef size {len(params)} not divisible by stride {each}")
        raise RuntimeError("got an incorrect number of RNN parameters")
    out = []
    for start in range(0, len(params), each):
        own = list(params[start : start + each])
        w_hr = own.pop() if projected else None
        out.append(Weights(own[0], own[1], *(own[2:] if has_biases else (None, None)), w_hr=w_hr))
    return out


def check_layers(layers: list[Weights], states: Sequence[Tensor], count: int) -> None:
    """There must be parameters and a first state for each layer and direction."""
    if any(state.shape[0] < count for state in states):
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    if len(layers) < count:
        raise RuntimeError("Expected more weights in stacked_rnn")


# ------------------------------------------------------------------ one layer over time


def full_layer(x: Tensor, weights: Weights, state: State, step: Step, reverse: bool) -> tuple[Tensor, State]:
    """The outputs of all steps of a sequence (time, sample, feature), and the last state."""
    if not x.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    inputs = unbind(weights.of_input(x), 0)
    outputs = []
    for one in reversed(inputs) if reverse else inputs:
        state = step(one, state, weights)
        outputs.append(state[0])
    return stack(outputs[::-1] if reverse else outputs, 0), state


Layer = Callable[[Tensor, Weights, State, bool], tuple[Tensor, State]]


def layer_stack(
    x: Tensor,
    layers: list[Weights],
    states: list[State],
    run: Layer,
    num_layers: int,
    bidirectional: bool,
    dropout: float,
    train: bool,
) -> tuple[Tensor, list[State]]:
    """Layers on top of each other: the outputs of the last, and the last states of all."""
    finals: list[State] = []
    directions = (False, True) if bidirectional else (False,)
    for nr in range(num_layers):
        outputs = []
        for reverse in directions:
            place = nr * len(directions) + reverse
            output, final = run(x, layers[place], states[place], reverse)
            outputs.append(output)
            finals.append(final)
        x = outputs[0] if len(outputs) == 1 else cat(outputs, outputs[0].ndim - 1)
        if dropout != 0 and train and nr < num_layers - 1:
            x = dropped("dropout", x, dropout, True, kept, False, False)
    return x, finals


def stacked(finals: list[State]) -> list[Tensor]:
    """The last states of all layers, part by part."""
    return [stack([state[k] for state in finals], 0) for k in range(len(finals[0]))]


# ------------------------------------------------------------------ public


def recurrent(
    step: Step,
    input: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """A network over sequences of one length: the outputs, then the last states."""
    projected = len(hx) == 2 and hx[0].shape[2] != hx[1].shape[2]
    fused = step is lstm_step and not projected and fits_fused(input, params)
    layers = layers_of(params, has_biases, projected, fused)
    count = num_layers * (2 if bidirectional else 1)
    if not fused:
        check_layers(layers, hx, count)
    elif len(layers) < count:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {len(params)}; M = 4; size = {len(params)}")
    x = transpose(input, 0, 1) if batch_first else input
    if fused:
        states = [tuple([select_int(part, 0, nr) for part in hx]) for nr in range(count)]
        facts = (num_layers, has_biases, bidirectional, batch_first, train)
        output, finals = layer_stack(x, layers, states, fused_layer(facts), num_layers, bidirectional, dropout, train)
    else:
        states = list(zip(*(unbind(part, 0) for part in hx), strict=True))

        def run(x: Tensor, weights: Weights, state: State, reverse: bool) -> tuple[Tensor, State]:
            return full_layer(x, weights, state, step, reverse)

        output, finals = layer_stack(x, layers, states, run, num_layers, bidirectional, dropout, train)
    if batch_first and step is lstm_step:
        output = transpose(output, 0, 1)
    elif batch_first:
        output.transpose_(0, 1)  # type: ignore[attr-defined]
    return output, *stacked(finals)


def fits_fused(input: Tensor, params: Sequence[Tensor]) -> bool:
    """True if torch runs whole layers as one op: float32, and something to do."""
    return input._array.size > 0 and all(p.dtype is float32 for p in (input, *params))


def fused_layer(facts: tuple[int, bool, bool, bool, bool]) -> Layer:
    """A layer of an LSTM run as one op."""

    def run(x: Tensor, weights: Weights, state: State, reverse: bool) -> tuple[Tensor, State]:
        if weights.b_ih is None:
            none = wrap(made_on(weights.w_ih.device, np.zeros, weights.w_ih.shape[0], np.float32))
            weights = Weights(weights.w_ih, weights.w_hh, none, none)
        x = x if is_contiguous(x) else clone_contiguous(x)
        output, h, c = run_layer(x, weights, state, reverse, facts)  # type: ignore[arg-type]
        return output, (h, c)

    return run


def recurrent_packed(
    step: Step,
    data: Tensor,
    batch_sizes: Tensor,
    hx: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """A network over packed sequences: the outputs, packed alike, then the last states."""
    projected = len(hx) == 2 and hx[0].shape[2] != hx[1].shape[2]
    layers = layers_of(params, has_biases, projected, False)
    check_layers(layers, hx, num_layers * (2 if bidirectional else 1))
    sizes = batch_sizes._array.tolist()
    states = list(zip(*(unbind(part, 0) for part in hx), strict=True))

    def run(x: Tensor, weights: Weights, state: State, reverse: bool) -> tuple[Tensor, State]:
        return packed_layer(x, sizes, weights, state, step, reverse)

    output, finals = layer_stack(data, layers, states, run, num_layers, bidirectional, dropout, train)
    return output, *stacked(finals)


@function(raw=True, method=False)
def lstm(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """Run an LSTM over sequences, and return the outputs, the last hidden states and the last cell states.

    Called as `lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or for
    packed sequences as `lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
    `input` is `(T, N, I)`, or `(N, T, I)` with `batch_first`; `hx` is the pair of first states,
    `(num_layers * directions, N, H)` each, where `directions` is 2 if `bidirectional`; `params` lists `w_ih`, `w_hh`
    and, with `has_biases`, `b_ih`, `b_hh` of every layer and direction, shaped as for `lstm_cell`.
    `dropout` is applied between layers while `train`. The outputs are `(T, N, directions * H)`.
    """
    packed = "batch_sizes" in kwargs or (bool(args) and isinstance(args[0], Tensor))
    states = kwargs.get("hx", args[1 if packed else 0] if len(args) > packed else ())
    if len(states) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return (recurrent_packed if packed else recurrent)(lstm_step, input, *args, **kwargs)


def declare(name: str, step: Step, doc: str) -> None:
    """Publish `torch.<name>`, a network whose state is one tensor."""

    def network(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        packed = "batch_sizes" in kwargs or (len(args) > 1 and isinstance(args[1], Tensor))
        if "hx" in kwargs:
            kwargs["hx"] = (kwargs["hx"],)
        else:
            place = 1 if packed else 0
            args = (*args[:place], (args[place],), *args[place + 1 :])
        return (recurrent_packed if packed else recurrent)(step, input, *args, **kwargs)

    network.__name__, network.__doc__ = name, doc
    function(raw=True, method=False, name=name)(network)


declare(
    "gru",
    gru_step,
    """Run a GRU over sequences, and return the outputs and the last hidden states.

    Called as `gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or for
    packed sequences as `gru(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
    `input` is `(T, N, I)`, or `(N, T, I)` with `batch_first`; `hx` is `(num_layers * directions, N, H)`, where
    `directions` is 2 if `bidirectional`; `params` lists `w_ih`, `w_hh` and, with `has_biases`, `b_ih`, `b_hh` of every
    layer and direction, shaped as for `gru_cell`. `dropout` is applied between layers while `train`.
    The outputs are `(T, N, directions * H)`, the last hidden states have the shape of `hx`.
    """,
)
declare(
    "rnn_tanh",
    tanh_step,
    """Run a plain recurrent network with tanh over sequences, and return the outputs and the last hidden states.

    The arguments and shapes are those of `gru`, with weights shaped as for `rnn_tanh_cell`.
    """,
)
declare(
    "rnn_relu",
    relu_step,
    """Run a plain recurrent network with relu over sequences, and return the outputs and the last hidden states.

    The arguments and shapes are those of `gru`, with weights shaped as for `rnn_relu_cell`.
    """,
)
