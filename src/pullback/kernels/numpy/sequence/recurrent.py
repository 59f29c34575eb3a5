"""One layer of an LSTM over all its time steps, and back through time.

The gates of a step are i (input), f (forget), g (what to write) and o (output):
    c' = f * c + i * g        h' = o * tanh(c')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.numpy.linalg.products import product, product_plus
from pullback.kernels.numpy.math.numbers import ONE

Array = Any


def sigmoid_into(x: Array) -> None:
    """1 / (1 + exp(-x)), written over x; as a tanh it cannot overflow."""
    half = x.dtype.type(0.5)
    x *= half
    np.tanh(x, out=x)
    x *= half
    x += half


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) of few elements."""
    out = np.negative(x)
    np.exp(out, out)
    np.add(out, ONE[x.dtype], out)
    return np.reciprocal(out, out)


def contribution(x: Array, weight: Array, bias: Array | None) -> Array:
    """What an input or a state contributes to the gates."""
    return product(x, weight.T) if bias is None else product_plus(x, weight.T, bias)


def lstm_cell(
    x: Array, h: Array, c: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None
) -> tuple[Array, Array]:
    """One step: the new h and c."""
    gates = contribution(h, w_hh, b_hh)
    np.add(gates, contribution(x, w_ih, b_ih), gates)
    size = w_hh.shape[1]
    g = np.tanh(gates[:, 2 * size : 3 * size])
    gates = sigmoid(gates)  # that of g is not needed, but one call costs less than two
    c = np.multiply(gates[:, size : 2 * size], c)
    np.add(c, np.multiply(gates[:, :size], g, g), c)
    return np.multiply(gates[:, 3 * size :], np.tanh(c)), c


def gru_cell(x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None) -> Array:
    """One step: the new h."""
    inputs, hidden = contribution(x, w_ih, b_ih), contribution(h, w_hh, b_hh)
    size = w_hh.shape[1]
    gates = sigmoid(np.add(hidden[:, : 2 * size], inputs[:, : 2 * size]))
    n = np.multiply(hidden[:, 2 * size :], gates[:, :size])
    np.add(n, inputs[:, 2 * size :], n)
    np.tanh(n, n)
    out = np.subtract(h, n)
    np.multiply(out, gates[:, size:], out)
    return np.add(out, n, out)


def plain_cell(
    function: Any, x: Array, h: Array, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None
) -> Array:
    """One step of a network with one gate: a function of both contributions."""
    out = contribution(h, w_hh, b_hh)
    return function(np.add(out, contribution(x, w_ih, b_ih), out))


def lstm_layer(
    x: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array, h: Array, c: Array, reverse: bool
) -> tuple[Array, Array, Array, Array]:
    """The outputs of all steps, the last h and c, and a workspace: the gates and c of every step."""
    steps, samples, _ = x.shape
    size = w_hh.shape[1]
    gates = product(x.reshape(steps * samples, -1), w_ih.T)
    gates += b_ih + b_hh
    gates = gates.reshape(steps, samples, 4 * size)
    out, cells = np.empty((steps, samples, size), x.dtype), np.empty((steps, samples, size), x.dtype)
    transposed = w_hh.T
    for t in reversed(range(steps)) if reverse else range(steps):
        step = gates[t]
        step += product(h, transposed)
        sigmoid_into(step[:, : 2 * size])
        np.tanh(step[:, 2 * size : 3 * size], out=step[:, 2 * size : 3 * size])
        sigmoid_into(step[:, 3 * size :])
        c = np.multiply(step[:, size : 2 * size], c, out=cells[t])
        c += step[:, :size] * step[:, 2 * size : 3 * size]
        h = np.multiply(step[:, 3 * size :], np.tanh(c), out=out[t])
    return out, h.copy(), c.copy(), np.concatenate((gates, cells), axis=2)


def lstm_layer_backward(
    grads: Any, x: Array, w_ih: Array, w_hh: Array, h0: Array, c0: Array, out: Array, workspace: Array, reverse: bool
) -> tuple[Array, ...]:
    """The gradients of x, the two weights, the bias (the same for both), h0 and c0."""
    steps, samples, size = out.shape
    grad_out, d_h, d_c = grads
    d_h = np.zeros((samples, size), x.dtype) if d_h is None else d_h
    d_c = np.zeros((samples, size), x.dtype) if d_c is None else d_c
    gates, cells = workspace[:, :, : 4 * size], workspace[:, :, 4 * size :]
    d_gates = np.empty((steps, samples, 4 * size), x.dtype)
    for t in range(steps) if reverse else reversed(range(steps)):
        before = t + 1 if reverse else t - 1
        c_before = cells[before] if 0 <= before < steps else c0
        if grad_out is not None:
            d_h = d_h + grad_out[t]
        i, f, g, o = (gates[t][:, k * size : (k + 1) * size] for k in range(4))
        tanh_c = np.tanh(cells[t])
        d_c = d_c + d_h * o * (1 - tanh_c * tanh_c)
        step = d_gates[t]
        step[:, :size] = d_c * g * i * (1 - i)
        step[:, size : 2 * size] = d_c * c_before * f * (1 - f)
        step[:, 2 * size : 3 * size] = d_c * i * (1 - g * g)
        step[:, 3 * size :] = d_h * tanh_c * o * (1 - o)
        d_c = d_c * f
        d_h = product(step, w_hh)
    flat = d_gates.reshape(steps * samples, 4 * size)
    inputs = x.reshape(steps * samples, -1)
    states = np.concatenate((out[1:], h0[None]) if reverse else (h0[None], out[:-1])).reshape(steps * samples, size)
    d_x = product(flat, w_ih).reshape(x.shape)
    return d_x, product(flat.T, inputs), product(flat.T, states), np.add.reduce(flat, axis=0), d_h, d_c
