"""First values: the same numbers from the same seed."""

import pytest

from tests.conformance.both import attempt, on_both
from tests.conformance.nn.layers import bits

CALLS = [
    "uniform_(w, -2.0, 3.0)",
    "normal_(w, 1.0, 2.0)",
    "trunc_normal_(w)",
    "trunc_normal_(w, mean=1.0, std=0.5, a=0.0, b=1.2)",
    "trunc_normal_(w, std=0.1, a=0.3, b=0.5)",
    "constant_(w, 0.3)",
    "ones_(w)",
    "zeros_(w)",
    "xavier_uniform_(w, gain=2.0)",
    "xavier_normal_(w)",
    "kaiming_uniform_(w, a=0.2)",
    "kaiming_uniform_(w, mode='fan_out', nonlinearity='relu')",
    "kaiming_normal_(w)",
    "kaiming_normal_(w, mode='fan_out', nonlinearity='tanh')",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", [(3, 4), (40, 30), (4, 3, 3, 2)])
def test_the_values_are_torchs_to_the_last_bit(call, shape):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        w = torch.empty(shape, requires_grad=True)
        result = eval("init." + call, {"init": torch.nn.init, "w": w})
        return bits(w), result is w, w.requires_grad, w.is_leaf

    program()


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_dtypes_are_filled_too(dtype):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        w = torch.empty(5, 4, dtype=getattr(torch, dtype))
        return [fill(w).clone() for fill in (torch.nn.init.xavier_normal_, torch.nn.init.kaiming_uniform_)]

    program()


@on_both
def test_identities(torch):
    init = torch.nn.init
    return [
        init.eye_(torch.empty(2, 3)),
        init.dirac_(torch.empty(3, 2, 3)),
        init.dirac_(torch.empty(4, 2, 3, 3), groups=2),
        init.dirac_(torch.empty(2, 2, 1, 2, 3)),
    ]


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal_matrices(shape):
    @on_both
    def program(torch):
        torch.manual_seed(0)
        return torch.nn.init.orthogonal_(torch.empty(shape), gain=2.0)

    program()


@on_both
def test_sparse_columns(torch):
    torch.manual_seed(0)
    return torch.nn.init.sparse_(torch.empty(6, 5), sparsity=0.4)


@on_both
def test_gains(torch):
    gain = torch.nn.init.calculate_gain
    known = (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose2d",
        "sigmoid",
        "tanh",
        "relu",
        "selu",
        "leaky_relu",
    )
    return [gain(name) for name in known] + [
        gain("leaky_relu", 0.3),
        attempt(lambda: gain("leaky_relu", "x")),
        attempt(lambda: gain("leaky_relu", True)),
        attempt(lambda: gain("some")),
    ]


@on_both
def test_what_cannot_be_filled_is_refused(torch):
    init = torch.nn.init
    vector, matrix = torch.empty(3), torch.empty(3, 3)
    return [
        attempt(lambda: init.xavier_uniform_(vector)),
        attempt(lambda: init.eye_(vector)),
        attempt(lambda: init.dirac_(matrix)),
        attempt(lambda: init.dirac_(torch.empty(3, 1, 1), groups=2)),
        attempt(lambda: init.orthogonal_(vector)),
        attempt(lambda: init.sparse_(vector, 0.1)),
        attempt(lambda: init.kaiming_normal_(matrix, mode="some")),
        attempt(lambda: init.kaiming_normal_(matrix, nonlinearity="some")),
        attempt(lambda: init.kaiming_uniform_(torch.empty(0, 3))),
        attempt(lambda: init.trunc_normal_(matrix, mean=10.0).shape),
    ]


@on_both
def test_the_old_names_warn(torch):
    torch.manual_seed(0)
    return [
        getattr(torch.nn.init, name)(torch.empty(2, 2))
        for name in ("uniform", "normal", "xavier_uniform", "kaiming_normal")
    ]


@on_both
def test_a_generator_of_ones_own_is_used(torch):
    generator = torch.Generator().manual_seed(3)
    torch.manual_seed(0)
    init = torch.nn.init
    return [
        fill(torch.empty(3, 3), generator=generator)
        for fill in (init.uniform_, init.normal_, init.xavier_uniform_, init.kaiming_normal_)
    ]
