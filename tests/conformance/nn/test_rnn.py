"""Recurrent networks and their cells."""

import pytest

import pullback
from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import copies_agree, same_layer

SETTINGS = [
    "3, 4",
    "3, 4, num_layers=2",
    "3, 4, bias=False",
    "3, 4, batch_first=True",
    "3, 4, num_layers=2, bidirectional=True",
    "3, 4, num_layers=2, dropout=0.5",
]
LAYERS = [(f"nn.{kind}({settings})", "x(5, 2, 3)") for kind in ("RNN", "LSTM", "GRU") for settings in SETTINGS] + [
    ("nn.RNN(3, 4, nonlinearity='relu')", "x(5, 2, 3)"),
    ("nn.RNN(3, 4, 2, 'relu')", "x(5, 3)"),
    ("nn.RNN(3, 4)", "x(5, 2, 3), x(1, 2, 4)"),
    ("nn.GRU(3, 4)", "x(5, 3), x(1, 4)"),
    ("nn.LSTM(3, 4)", "x(5, 3)"),
    ("nn.LSTM(3, 4)", "x(5, 2, 3), (x(1, 2, 4), x(1, 2, 4))"),
    ("nn.LSTM(3, 4)", "x(5, 3), (x(1, 4), x(1, 4))"),
    ("nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)", "x(5, 2, 3)"),
    ("nn.LSTM(3, 4, proj_size=2, bias=False)", "x(5, 2, 3)"),
    ("nn.RNNCell(3, 4)", "x(2, 3)"),
    ("nn.RNNCell(3, 4, nonlinearity='relu', bias=False)", "x(2, 3), x(2, 4)"),
    ("nn.RNNCell(3, 4)", "x(3), x(4)"),
    ("nn.GRUCell(3, 4)", "x(2, 3)"),
    ("nn.GRUCell(3, 4, bias=False)", "x(3), x(4)"),
    ("nn.LSTMCell(3, 4)", "x(2, 3)"),
    ("nn.LSTMCell(3, 4)", "x(2, 3), (x(2, 4), x(2, 4))"),
    ("nn.LSTMCell(3, 4, bias=False)", "x(3), (x(4), x(4))"),
]


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_recurrent_network_is_the_same_as_torchs(layer, inputs):
    same_layer(layer, inputs)


@pytest.mark.parametrize(("layer", "inputs"), LAYERS)
def test_a_copied_or_pickled_network_does_the_same(layer, inputs):
    if "dropout" not in layer:
        copies_agree(pullback, layer, inputs)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_packed_sequences_are_run_each_to_its_own_end(kind, enforce_sorted):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True)
        x = torch.arange(30.0).reshape(5, 2, 3).sin().requires_grad_()
        rnn = torch.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, [5, 3] if enforce_sorted else [2, 5], enforce_sorted=enforce_sorted)
        output, hidden = layer(packed)
        padded, lengths = rnn.pad_packed_sequence(output)
        padded.square().sum().backward()
        return padded, lengths, hidden, x.grad, [p.grad for p in layer.parameters()], list(output.batch_sizes)

    program()


@on_both
def test_settings_of_the_wrong_kind_are_refused(torch):
    nn = torch.nn
    calls = [
        lambda: nn.RNN(3, 4, nonlinearity="some"),
        lambda: nn.GRU(3, 4, proj_size=2),
        lambda: nn.RNN(3, 4, proj_size=2),
        lambda: nn.LSTM(3, 4, proj_size=4),
        lambda: nn.LSTM(3, 4, proj_size=-1),
        lambda: nn.LSTM(0, 4),
        lambda: nn.LSTM(3, 4.0),
        lambda: nn.LSTM(3, 0),
        lambda: nn.LSTM(3, 4, 0),
        lambda: nn.LSTM(3, 4, dropout=2),
        lambda: nn.LSTM(3, 4, bias=1),
        lambda: nn.LSTM(3, 4, batch_first=None),
        lambda: nn.LSTM(3, 4, dropout=0.5),
        lambda: nn.RNNBase("some", 3, 4),
    ]
    return [attempt(lambda call=call: str(call())) for call in calls]


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_inputs_and_states_that_do_not_fit_are_refused(kind):
    @on_both
    def program(torch):
        layer = getattr(torch.nn, kind)(3, 4)
        state = (lambda *s: (torch.zeros(s), torch.zeros(s))) if kind == "LSTM" else (lambda *s: torch.zeros(s))
        return [
            attempt(lambda: layer(torch.ones(2))),
            attempt(lambda: layer(torch.ones(5, 2, 4))),
            attempt(lambda: layer(torch.ones(5, 2, 3).double())),
            attempt(lambda: layer(torch.ones(5, 2, 3), state(1, 4))),
            attempt(lambda: layer(torch.ones(5, 3), state(1, 2, 4))),
            attempt(lambda: layer(torch.ones(5, 2, 3), state(1, 3, 4))),
        ]

    program()


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell"])
def test_cells_want_one_or_two_dimensions(kind):
    @on_both
    def program(torch):
        cell = getattr(torch.nn, kind)(3, 4)
        return [
            attempt(lambda: cell(torch.ones(2, 2, 3))),
            attempt(lambda: cell(torch.ones(2, 3), torch.ones(2, 2, 4))),
        ]

    program()


@on_both
def test_an_lstm_cell_wants_one_or_two_dimensions_everywhere(torch):
    cell = torch.nn.LSTMCell(3, 4)
    one = torch.ones(2, 4)
    return [
        attempt(lambda: cell(torch.ones(2, 2, 3))),
        attempt(lambda: cell(torch.ones(2, 3), (torch.ones(1, 2, 4), one))),
        attempt(lambda: cell(torch.ones(2, 3), (one, torch.ones(1, 2, 4)))),
    ]


@on_both
def test_weights_can_be_replaced_and_are_listed(torch):
    torch.manual_seed(0)
    layer = torch.nn.GRU(2, 2, num_layers=2)
    layer.weight_ih_l0 = torch.nn.Parameter(torch.zeros(6, 2))
    layer.flatten_parameters()
    return layer(torch.ones(3, 1, 2)), [[w.shape for w in weights] for weights in layer.all_weights]
