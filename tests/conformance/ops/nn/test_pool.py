"""Pooling with sliding windows: averages, maxima, power means; values, graphs, derivatives of every order, errors."""

import numpy as np
import pytest
import torch as peer

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

CALLS = lines("""
F.avg_pool1d(x(2, 3, 8), 3)
F.avg_pool1d(x(3, 8), 3, 2, 1, True, False)
F.avg_pool2d(x(2, 3, 6, 7), 2)
F.avg_pool2d(x(3, 6, 7), (3, 2), 2, 1, count_include_pad=False)
F.avg_pool2d(x(2, 3, 6, 7), 3, 2, 1, ceil_mode=True, divisor_override=5)
F.avg_pool3d(x(2, 2, 4, 5, 4), 2, ceil_mode=True)
F.avg_pool3d(x(2, 4, 5, 4), (2, 3, 1), 1, (1, 0, 0))
F.max_pool1d(x(2, 3, 8), 3)
F.max_pool1d(x(3, 8), 3, 2, 1, ceil_mode=True, return_indices=True)
F.max_pool1d(x(2, 3, 9), 2, 3, dilation=3)
F.max_pool2d(x(2, 3, 6, 7), 2)
F.max_pool2d(x(3, 6, 7), (3, 2), 2, 1, return_indices=True)
F.max_pool2d(x(2, 3, 9, 8), 3, 1, 1, 2, ceil_mode=True)
F.max_pool2d(x(1, 2, 6, 6).transpose(2, 3), 3, 2)
F.max_pool3d(x(2, 2, 4, 5, 4), 2, return_indices=True)
F.max_pool3d(x(2, 4, 5, 4), (2, 3, 1), 1, (1, 0, 0))
F.max_pool2d_with_indices(x(2, 6, 6), 2)
F.lp_pool1d(x(2, 3, 8).abs(), 2.0, 3)
F.lp_pool2d(x(2, 3, 6, 7).abs(), 3.0, 2, 1)
F.lp_pool2d(x(2, 6, 7), float('inf'), 2)
F.lp_pool3d(x(2, 2, 4, 5, 4).abs(), 2.0, (2, 2, 1), ceil_mode=True)
torch.max_pool1d(x(2, 3, 8), 3)
torch.max_pool1d_with_indices(x(2, 3, 8), 3)
torch.max_pool2d(x(2, 3, 8, 8), 3)
torch.avg_pool1d(x(2, 3, 8), 3)
""")


@pytest.mark.parametrize("call", CALLS)
def test_a_pooling_is_torchs_with_its_graph_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", CALLS)
def test_a_pooling_has_torchs_second_derivatives_and_tangents(call):
    agree_in_every_order(call)


@pytest.mark.parametrize(
    "call", [call.replace("x(", "torch.nn.functional.relu(x(", 1).replace(")", "))", 1) for call in CALLS[7:11]]
)
def test_of_equal_elements_the_first_is_the_maximum(call):
    agree_on(call)


@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_special_values_have_torchs_places(special):
    def program(torch):
        x = torch.zeros(1, 4, 7) + torch.arange(7.0)
        x[0, 1, 2:6], x[0, 3, 1], x[0, 2] = special, special, special
        image = x[:, None]
        return [
            torch.nn.functional.max_pool1d(x, 3, 2, 1, return_indices=True),
            torch.nn.functional.max_pool2d(image, 3, 2, 1, return_indices=True),
            torch.nn.functional.max_pool2d(image, 3, 2, 1),
            torch.nn.functional.avg_pool2d(image, 2),
        ]

    on_both(program)()


OF_A_KIND = lines("""
F.max_pool2d({0}, 2)
F.max_pool2d({0}, 3, 2, 1, return_indices=True)
F.max_pool1d({0}[0], 2)
F.avg_pool2d({0}, 2)
F.avg_pool3d({0}, 2)
""")


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "float32", "bool", "complex64"])
@pytest.mark.parametrize("call", OF_A_KIND)
def test_dtypes_pool_as_torchs_do(call, kind):
    agree_on(call.format(f"(x(2, 2, 6, 6, grad=False) * 5).to(torch.{kind})"))


ERRORS = lines("""
F.max_pool1d(x(3), 2)
F.max_pool1d(x(3, 4), 0)
F.max_pool1d(x(3, 4), 2, stride=0)
F.max_pool1d(x(3, 4), 2, padding=2)
F.max_pool1d(x(3, 4), 2, padding=-1)
F.max_pool1d(x(3, 4), 2, dilation=0)
F.max_pool1d(x(3, 4), 5)
F.max_pool1d(x(3, 4), (2, 2))
F.max_pool2d(x(4, 4), 2)
F.max_pool2d(x(3, 4, 4), (2, 2, 2))
F.max_pool2d(x(3, 4, 4), 2, stride=(2, 2, 2))
F.max_pool2d(x(3, 4, 4), 2, dilation=(2, 2, 2))
F.max_pool2d(x(3, 4, 4), 2, stride=0)
F.max_pool2d(x(3, 4, 4), 2, stride=-1)
F.max_pool2d(x(3, 4, 4), 2, padding=2)
F.max_pool2d(x(3, 4, 4), 2, dilation=0)
F.max_pool2d(x(3, 4, 4), 5)
F.max_pool2d(x(3, 0, 4), 2)
F.max_pool3d(x(3, 4, 4), 2)
F.max_pool3d(x(3, 4, 4, 4), (2, 2))
F.max_pool3d(x(0, 4, 4, 4), 2)
F.avg_pool1d(x(3), 2)
F.avg_pool1d(x(3, 4), (2, 2))
F.avg_pool2d(x(4, 4), 2)
F.avg_pool2d(x(4, 4, 4), 2, padding=2)
F.avg_pool2d(x(4, 4, 4), 2, stride=0)
F.avg_pool2d(x(4, 4, 4), 5)
F.avg_pool2d(x(4, 4, 4), 2, divisor_override=0)
F.avg_pool3d(x(4, 4, 4, 4), (2, 2))
F.avg_pool3d(x(4, 4, 4, 4), 5)
F.avg_pool3d(x(0, 4, 4, 4), 2)
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)


@on_both
def test_an_average_goes_where_out_says(torch):
    out = torch.empty(2, 3, 3)
    result = torch.nn.functional.avg_pool2d(torch.arange(72.0).reshape(2, 6, 6), 2, out=out)
    return [result is out, out]


@pytest.mark.parametrize("arguments", [(3, 2, 1), (2,), (3, 1, 1, 2), (5, 3, 2)])
def test_maxima_without_gradient_are_those_with_one(arguments):
    array = np.random.default_rng(0).standard_normal((2, 3, 20, 21)).astype("f")
    x = pullback.tensor(array)
    plain = pullback.max_pool2d(x, *arguments)
    recorded = pullback.max_pool2d(x.clone().requires_grad_(), *arguments)
    assert plain.equal(recorded) and plain.grad_fn is None
    np.testing.assert_array_equal(plain.numpy(), peer.max_pool2d(peer.tensor(array), *arguments).numpy())
