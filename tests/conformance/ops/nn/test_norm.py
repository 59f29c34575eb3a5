"""Normalizations: values, graphs, gradients of every order, running statistics and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree

F = "torch.nn.functional"
EXPRESSIONS = f"""
{F}.layer_norm(x(3, 4), (4,), x(4), x(4))
{F}.layer_norm(x(3, 4), [4])
{F}.layer_norm(x(2, 3, 4), (3, 4), x(3, 4))
{F}.layer_norm(x(4), (4,), None, x(4), eps=0.1)
{F}.layer_norm(x(3, 4), (3, 4))
{F}.layer_norm(x(0, 4), (4,))
{F}.layer_norm(x(3, 4, grad=False).half(), (4,), x(4, dtype=torch.float32, grad=False))
torch.native_layer_norm(x(2, 4), (4,), x(4), x(4), 1e-5)
{F}.group_norm(x(2, 4, 3), 2, x(4), x(4))
{F}.group_norm(x(2, 4, 3, 2), 4)
{F}.group_norm(x(2, 6), 3, x(6))
torch.native_group_norm(x(2, 4, 3), x(4), x(4), 2, 4, 3, 2, 1e-5)[0]
{F}.instance_norm(x(2, 3, 4), None, None, x(3), x(3))
{F}.instance_norm(x(2, 3, 4, 2))
{F}.instance_norm(x(2, 3, 4), torch.zeros(3).double(), torch.ones(3).double(), use_input_stats=False)
{F}.batch_norm(x(5, 3), None, None, x(3), x(3), True)
{F}.batch_norm(x(2, 3, 4), torch.zeros(3).double(), torch.ones(3).double(), x(3), x(3))
{F}.batch_norm(x(2, 3, 4, 2), None, None, training=True, eps=0.1)
{F}.batch_norm(x(0, 3), torch.zeros(3).double(), torch.ones(3).double(), x(3), x(3))
torch.native_batch_norm(x(5, 3), x(3), x(3), None, None, True, 0.1, 1e-5)
torch.native_batch_norm(x(5, 3), None, None, torch.zeros(3).double(), torch.ones(3).double(), False, 0.1, 1e-5)
{F}.rms_norm(x(3, 4), (4,), x(4))
{F}.rms_norm(x(2, 3, 4), (3, 4), eps=0.1)
{F}.rms_norm(x(3, 4, dtype=torch.float16), (4,), x(4, dtype=torch.float16))
{F}.rms_norm(x(3, 4, dtype=c128), (4,))
{F}.normalize(x(3, 4))
{F}.normalize(x(3, 4), 3.0, 0)
{F}.normalize(x(3, 4), dim=(0, 1), eps=9.0)
{F}.local_response_norm(x(2, 4, 3), 3)
{F}.local_response_norm(x(2, 4, 3, 3), 2, 0.1, 0.5, 2.0)
"""
REFUSED = f"""
{F}.layer_norm(x(3, 4), (3,))
{F}.layer_norm(x(3, 4), ())
{F}.layer_norm(x(3, 4), 4)
{F}.layer_norm(x(3, 4), [4.0])
{F}.layer_norm(x(3, 4), (4,), x(3))
{F}.layer_norm(x(3, 4), (4,), x(4), x(3))
{F}.layer_norm(x(3, 4), (4,), x(4, dtype=torch.float32))
{F}.layer_norm(x(3, 4, dtype=torch.float32), (4,), x(4))
{F}.layer_norm(torch.ones(3, 4, dtype=torch.long), (4,))
{F}.rms_norm(x(3, 4), (3,))
{F}.rms_norm(x(3, 4), (4,), x(3))
{F}.rms_norm(torch.ones(3, 4, dtype=torch.long), (4,))
{F}.group_norm(x(2, 4, 3), 3)
{F}.group_norm(x(2, 4, 3), 2, x(3))
{F}.group_norm(x(2, 4, 3), 2, x(4), x(3))
{F}.group_norm(x(3), 2)
{F}.group_norm(x(1, 4), 4)
torch.group_norm(x(2, 4, 3), 0)
{F}.group_norm(torch.ones(2, 4, 3, dtype=torch.long), 2)
{F}.batch_norm(x(2, 3), None, None)
{F}.batch_norm(x(1, 3), None, None, training=True)
{F}.batch_norm(x(2, 3), torch.zeros(4), torch.ones(3))
{F}.batch_norm(x(2, 3), torch.zeros(3), torch.ones(4))
{F}.batch_norm(x(2, 3), None, None, x(4), None, True)
{F}.batch_norm(x(2, 3), None, None, None, x(4), True)
{F}.batch_norm(x(2, 3), torch.zeros(3), None)
{F}.batch_norm(x(2, 3), torch.zeros(3), torch.ones(3))
{F}.batch_norm(x(2, 3), x(3), torch.ones(3).double())
{F}.batch_norm(x(2, 3), None, None, training=True, eps=0.0)
{F}.batch_norm(x(2, 3), None, None, eps=-1.0)
{F}.batch_norm(torch.ones(2, 3, dtype=torch.long), None, None, training=True)
{F}.instance_norm(x(2, 3))
{F}.instance_norm(x(2, 3, 1))
{F}.instance_norm(x(2, 3, 2), use_input_stats=False)
{F}.instance_norm(x(2, 3, 2), weight=x(4))
{F}.local_response_norm(x(2, 3), 2)
{F}.normalize(torch.ones(2, 3, dtype=torch.long))
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_a_normalization_is_torchs_in_value_graph_and_gradients(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", REFUSED.strip().splitlines())
def test_what_cannot_be_normalized_is_refused_in_torchs_words(expression: str) -> None:
    agree(expression)


@on_both
def test_training_moves_the_running_statistics_and_counts_no_write(torch: Any) -> Any:
    mean, var = torch.zeros(3), torch.ones(3)
    x = torch.arange(24.0).reshape(2, 3, 4).sin()
    seen = []
    for momentum in (0.1, 0.5):
        torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=momentum)
        seen += [mean.clone(), var.clone(), mean._version]
    torch.nn.functional.batch_norm(x, mean, var)
    return [*seen, mean, var]


@on_both
def test_instance_norm_averages_the_running_statistics_of_the_samples(torch: Any) -> Any:
    mean, var = torch.zeros(3), torch.ones(3)
    out = torch.nn.functional.instance_norm(torch.arange(24.0).reshape(2, 3, 4).cos(), mean, var, momentum=0.3)
    return [out, mean, var, mean._version]


def spelled_out(x: Any, dim: int, weight: Any) -> Any:
    """Standardize with plain ops."""
    mean = x.mean(dim, keepdim=True)
    var = ((x - mean) ** 2).mean(dim, keepdim=True)
    return (x - mean) * (var + 0.1).rsqrt() * weight


FUSED = {
    "layer_norm": (lambda x, w: pullback.nn.functional.layer_norm(x, (4,), w, eps=0.1), 1),
    "batch_norm": (lambda x, w: pullback.nn.functional.batch_norm(x, None, None, w, None, True, eps=0.1), 0),
    "group_norm": (lambda x, w: pullback.nn.functional.group_norm(x, 1, w, eps=0.1), 1),
}


@pytest.mark.parametrize("name", FUSED)
def test_the_third_derivative_is_that_of_the_same_formula_in_plain_ops(name: str) -> None:
    fused, dim = FUSED[name]
    array = np.random.default_rng(0).standard_normal((3, 4))

    def third(function: Any) -> Any:
        x = pullback.tensor(array, requires_grad=True)
        weight = pullback.tensor([1.0, 2.0, -1.0, 0.5], dtype=pullback.float64)
        out = function(x, weight)
        for power in (2, 3, 2):
            (out,) = pullback.autograd.grad((out**power).sum(), x, create_graph=True)
        return out.detach().numpy()

    expected = third(lambda x, w: spelled_out(x, dim, w))
    assert np.allclose(third(fused), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
