"""Pooling to a size asked for, at random places, and back: values, graphs, derivatives of every order, errors."""

import pytest

from tests.conformance.both import on_both
from tests.conformance.ops.spatial import agree_in_every_order, agree_on, lines

CALLS = lines("""
F.adaptive_avg_pool1d(x(2, 3, 8), 3)
F.adaptive_avg_pool1d(x(3, 8), 1)
F.adaptive_avg_pool1d(x(2, 3, 4), 9)
F.adaptive_avg_pool2d(x(2, 3, 6, 7), (4, 5))
F.adaptive_avg_pool2d(x(2, 3, 6, 8), (3, 4))
F.adaptive_avg_pool2d(x(3, 6, 7), (None, 2))
F.adaptive_avg_pool2d(x(2, 3, 6, 7), 1)
F.adaptive_avg_pool3d(x(2, 4, 5, 6), (3, 2, 4))
F.adaptive_avg_pool3d(x(1, 2, 4, 5, 6), 1)
F.adaptive_max_pool1d(x(2, 3, 8), 3)
F.adaptive_max_pool1d(x(3, 8), 5, True)
F.adaptive_max_pool2d(x(2, 3, 6, 7), (4, 5))
F.adaptive_max_pool2d(x(3, 6, 8), (3, 4), return_indices=True)
F.adaptive_max_pool3d(x(1, 2, 4, 5, 6), (3, 2, 7), return_indices=True)
torch.adaptive_avg_pool1d(x(2, 3, 8), 3)
torch.adaptive_max_pool1d(x(2, 3, 8), 3)
F.max_unpool1d(x(2, 3, 2), torch.tensor([0, 3]).expand(2, 3, 2), 2)
F.max_unpool2d(x(1, 2, 2, 2), torch.tensor([[0, 3], [9, 15]]).expand(1, 2, 2, 2), 2)
F.max_unpool2d(x(2, 2, 2), torch.tensor([[0, 3], [9, 15]]).expand(2, 2, 2), 2, output_size=(5, 4))
F.max_unpool3d(x(2, 1, 1, 2), torch.tensor([0, 15]).reshape(1, 1, 2).expand(2, 1, 1, 2), 2)
""")


@pytest.mark.parametrize("call", CALLS)
def test_a_pooling_is_torchs_with_its_graph_and_gradients(call):
    agree_on(call)


@pytest.mark.parametrize("call", [call for call in CALLS if not call.endswith(", 1)")])
def test_a_pooling_has_torchs_second_derivatives_and_tangents(call):
    agree_in_every_order(call)


FRACTIONAL = lines("""
F.fractional_max_pool2d(x(2, 3, 9, 8), 2, output_size=(4, 5))
F.fractional_max_pool2d(x(3, 9, 8), (3, 2), output_ratio=(0.5, 0.7), return_indices=True)
F.fractional_max_pool2d(x(1, 1, 6, 6), 2, 5)
F.fractional_max_pool3d(x(1, 2, 6, 7, 6), 2, output_size=(3, 4, 2), return_indices=True)
F.fractional_max_pool3d(x(2, 6, 7, 6), (2, 1, 3), output_ratio=(0.5, 0.6, 0.4))
""")


@pytest.mark.parametrize("call", FRACTIONAL)
def test_windows_at_random_places_are_at_torchs_places(call):
    agree_in_every_order(call)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_random_places_follow_the_seed_in_every_precision(kind):
    def program(torch):
        torch.manual_seed(3)
        x = torch.arange(5 * 2 * 13 * 11, dtype=getattr(torch, kind)).reshape(5, 2, 13, 11)
        first = torch.nn.functional.fractional_max_pool2d(x, 3, output_size=(7, 8), return_indices=True)
        return [first, torch.rand(2)]

    on_both(program)()


@on_both
def test_places_given_are_the_places_used(torch):
    x = torch.arange(72.0).reshape(1, 2, 6, 6)
    samples = torch.tensor([[[0.1, 0.9], [0.5, 0.3]]])
    return torch.nn.functional.fractional_max_pool2d(x, 2, output_size=4, _random_samples=samples)


ERRORS = lines("""
F.adaptive_avg_pool1d(x(3), 2)
F.adaptive_avg_pool1d(x(3, 4), (2, 2))
F.adaptive_avg_pool1d(x(3, 4), -1)
F.adaptive_avg_pool1d(x(3, 4), None)
F.adaptive_avg_pool1d(x(3, 0), 2)
F.adaptive_avg_pool2d(x(4, 4), 2)
F.adaptive_avg_pool2d(x(4, 4, 4), (2, 2, 2))
F.adaptive_avg_pool2d(x(4, 4, 4), ())
F.adaptive_avg_pool2d(x(4, 0, 4), 2)
F.adaptive_avg_pool2d(x(4, 4, 4).long(), 2)
F.adaptive_avg_pool3d(x(4, 4, 4), 2)
F.adaptive_avg_pool3d(x(4, 4, 4, 4), -2)
F.adaptive_max_pool1d(x(3), 2)
F.adaptive_max_pool1d(x(3, 4), -1)
F.adaptive_max_pool2d(x(4, 4), 2)
F.adaptive_max_pool2d(x(4, 0, 4), 2)
F.adaptive_max_pool2d(x(4, 4, 4).long(), 2)
F.adaptive_max_pool3d(x(4, 4, 4, 4), (2, 2))
F.fractional_max_pool2d(x(3, 4, 4), 2)
F.fractional_max_pool2d(x(4, 4), 2, output_size=2)
F.fractional_max_pool2d(x(3, 4, 4), 5, output_size=2)
F.fractional_max_pool2d(x(3, 4, 4), (2, 2, 2), output_size=2)
F.fractional_max_pool2d(x(3, 4, 4), 2, output_size=2, _random_samples=x(1, 2, 2, grad=False))
F.fractional_max_pool2d(x(3, 4, 4), 2, output_size=2, _random_samples=x(1, 3, 2))
F.fractional_max_pool3d(x(3, 4, 4, 4), 2, output_size=4)
F.max_unpool2d(x(2, 3, 2, 2), torch.zeros(2, 3, 2, 2).int(), 2)
F.max_unpool2d(x(2, 3, 2, 2), torch.zeros(2, 3, 2, 3).long(), 2)
F.max_unpool2d(x(2, 2), torch.zeros(2, 2).long(), 2)
F.max_unpool2d(x(2, 3, 2, 2), torch.full((2, 3, 2, 2), 100), 2)
F.max_unpool2d(x(2, 3, 2, 2), torch.zeros(2, 3, 2, 2).long(), 2, output_size=(9, 9))
F.max_unpool2d(x(2, 3, 2, 2), torch.zeros(2, 3, 2, 2).long(), 2, output_size=(9,))
F.max_unpool3d(x(2, 3, 2), torch.zeros(2, 3, 2).long(), 2)
""")


@pytest.mark.parametrize("call", ERRORS)
def test_a_wrong_call_raises_torchs_error(call):
    agree_on(call)


@on_both
def test_a_nan_or_infinity_stays_in_its_own_window(torch):
    x = torch.arange(14.0).reshape(1, 2, 7)
    x[0, 0, 3], x[0, 1, 5] = float("nan"), float("inf")
    return [torch.nn.functional.adaptive_avg_pool1d(x, 3), torch.nn.functional.adaptive_max_pool1d(x, 3, True)]
