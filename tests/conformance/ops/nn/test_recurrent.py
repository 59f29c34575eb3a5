"""torch.lstm, gru, rnn_tanh, rnn_relu and the cells: values, graphs and gradients, packed or not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree, tree

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
OPTIONS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"num_layers": 2, "dropout": 0.4},
    {"has_biases": False, "bidirectional": True},
    {"batch_first": True},
    {"packed": True},
    {"packed": True, "num_layers": 2, "bidirectional": True},
    {"projection": 2, "bidirectional": True},
    {"projection": 2, "has_biases": False, "packed": True},
]


def network(torch: Any, kind: str, dtype: Any, options: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The outputs of a network with fixed parameters, and all its inputs."""
    chosen = {"num_layers": 1, "bidirectional": False, "dropout": 0.0, "has_biases": True} | options
    numbers = np.random.default_rng(0)
    size, features = 3, 5
    output = chosen.get("projection", size)
    directions = 2 if chosen["bidirectional"] else 1
    packed, first = chosen.get("packed", False), chosen.get("batch_first", False)

    def x(*shape: int) -> Any:
        return torch.tensor(numbers.standard_normal(shape) * 0.6, dtype=dtype, requires_grad=True)

    data = x(11, features) if packed else x(*((2, 4) if first else (4, 2)), features)
    samples, layers = 4 if packed else 2, chosen["num_layers"] * directions
    states = [x(layers, samples, output)] + ([x(layers, samples, size)] if kind == "lstm" else [])
    params = []
    for place in range(layers):
        inputs = features if place < directions else output * directions
        params += [x(GATES[kind] * size, inputs), x(GATES[kind] * size, output)]
        params += [x(GATES[kind] * size), x(GATES[kind] * size)] if chosen["has_biases"] else []
        params += [x(output, size)] if "projection" in chosen else []
    hx = tuple(states) if kind == "lstm" else states[0]
    rest = (chosen["has_biases"], chosen["num_layers"], chosen["dropout"], True, chosen["bidirectional"])
    torch.manual_seed(4)
    if packed:
        out = getattr(torch, kind)(data, torch.tensor([4, 3, 3, 1]), hx, params, *rest)
    else:
        out = getattr(torch, kind)(data, hx, params, *rest, first)
    return out, [data, *states, *params]


CASES = [(kind, options) for kind in GATES for options in OPTIONS if kind == "lstm" or "projection" not in options]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_a_recurrent_network_is_torchs(kind: str, options: dict[str, Any], dtype: str) -> None:
    @on_both
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out, inputs = network(torch, kind, getattr(torch, dtype), options)
        # A small loss: float32 gradients are compared to six places.
        grads = torch.autograd.grad(sum((part * part).mean() for part in out), inputs)
        return [list(out), list(grads), [tree(part.grad_fn, 5) for part in out]]

    program()


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}])
def test_a_layer_run_as_one_op_has_torchs_second_derivative(options: dict[str, Any]) -> None:
    @on_both
    def program(torch: Any) -> Any:
        out, inputs = network(torch, "lstm", torch.float32, options)
        first = torch.autograd.grad((out[0] ** 2).mean() + out[2].mean(), inputs, create_graph=True)
        return list(torch.autograd.grad(sum((part**2).sum() for part in first), inputs))

    program()


CELLS = """
torch.lstm_cell(x(4, 6), (x(4, 3), x(4, 3)), x(12, 6), x(12, 3), x(12), x(12))
torch.lstm_cell(x(4, 6), (x(4, 3), x(4, 3)), x(12, 6), x(12, 3))
torch.gru_cell(x(4, 6), x(4, 3), x(9, 6), x(9, 3), x(9), x(9))
torch.gru_cell(x(4, 6), x(4, 3), x(9, 6), x(9, 3))
torch.rnn_tanh_cell(x(4, 6), x(4, 3), x(3, 6), x(3, 3), x(3), x(3))
torch.rnn_relu_cell(x(4, 6), x(4, 3), x(3, 6), x(3, 3))
torch.lstm_cell(x(4, 6), (x(4, 3),), x(12, 6), x(12, 3))
torch.lstm_cell(x(4, 5), (x(4, 3), x(4, 3)), x(12, 6), x(12, 3))
torch.lstm_cell(x(4, 6), (x(3, 3), x(4, 3)), x(12, 6), x(12, 3))
torch.lstm_cell(x(4, 6), (x(4, 3), x(4, 2)), x(12, 6), x(12, 3))
torch.gru_cell(x(4, 6), x(4, 2), x(9, 6), x(9, 3))
torch.lstm(x(5, 4, 6), (x(1, 4, 3),), (x(12, 6), x(12, 3)), False, 1, 0.0, True, False, False)
torch.lstm(x(5, 4, 6), (x(1, 4, 3), x(1, 4, 3)), (x(12, 6), x(12, 3), x(12)), True, 1, 0.0, True, False, False)
torch.lstm(x(0, 4, 6), (x(1, 4, 3), x(1, 4, 3)), (x(12, 6), x(12, 3)), False, 1, 0.0, True, False, False)
torch.gru(x(5, 4, 6), x(1, 4, 3), (x(9, 6), x(9, 3), x(9)), True, 1, 0.0, True, False, False)
torch.gru(x(5, 4, 6), x(1, 4, 3), (x(9, 6), x(9, 3)), False, 1, 0.0, True, False, True)
torch.rnn_tanh(x(5, 4, 6), x(1, 4, 3), (x(3, 6), x(3, 3)), False, 2, 0.0, True, False, False)
"""


@pytest.mark.parametrize("expression", CELLS.strip().splitlines())
def test_a_cell_is_torchs_and_refuses_what_torch_refuses(expression: str) -> None:
    agree(expression)
