"""multinomial on the device: torch's algorithm on torch's draws, and torch's refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels import jit

pytestmark = pytest.mark.skipif(not jit.available(), reason="without the compiler the host draws")
WEIGHTS = [[1.0, 2.0, 0.0, 3.0], [0.0, 1.0, 1.0, 0.0], [5.0, 0.0, 0.0, 0.0]]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.cuda.reset_fallbacks()
    torch.manual_seed(3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_one_sample_is_the_category_whose_waiting_time_is_over_first(dtype: Any) -> None:
    weights = torch.rand(50, 7).to("cuda", dtype)
    for laid in (weights, weights.t().contiguous().t(), weights[0].expand(4, 7), weights[0]):
        torch.manual_seed(4)
        found = torch.multinomial(laid, 1)
        torch.manual_seed(4)
        waits = torch.empty_like(laid) if laid.stride(0) else torch.empty(laid.shape, dtype=dtype, device="cuda")
        assert found.tolist() == (laid / waits.exponential_()).argmax(-1, keepdim=True).tolist()
    assert torch.cuda.fallbacks() == {}


def test_several_samples_without_replacement_are_different_and_have_weights() -> None:
    found = torch.multinomial(torch.tensor(WEIGHTS[0], device="cuda").expand(1000, 4), 3)
    assert found.shape == (1000, 3) and torch.cuda.fallbacks() == {}
    assert {tuple(sorted(row)) for row in found.tolist()} == {(0, 1, 3)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_with_replacement_fall_among_the_running_sums(dtype: Any) -> None:
    weights = torch.tensor(WEIGHTS, device="cuda", dtype=dtype)
    found = torch.multinomial(weights, 20_000, True)
    assert torch.cuda.get_rng_state().tolist()[8:] == [4] + [0] * 7 and torch.cuda.fallbacks() == {}
    counts = np.stack([np.bincount(row, minlength=4) for row in found.cpu().numpy()])
    shares = np.array(WEIGHTS) / np.array(WEIGHTS).sum(1, keepdims=True)
    np.testing.assert_allclose(counts / 20_000, shares, atol=0.02)
    assert (counts[shares == 0] == 0).all()
    torch.manual_seed(3)
    row = torch.multinomial(weights[0], 20_000, True)
    assert row.tolist() == found[0].tolist()  # a row's threads begin where those of one row do


@pytest.mark.parametrize(("weights", "words"), [
    ([-1.0, 2.0], "either `inf`, `nan` or element < 0"), ([float("nan"), 1.0], "either `inf`, `nan` or element < 0"),
    ([float("inf"), 1.0], "either `inf`, `nan` or element < 0"), ([0.0, 0.0], "sum of probabilities <= 0"),
])  # fmt: skip
@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_none_are_refused_and_draw_nothing(weights: Any, words: str, replacement: bool) -> None:
    before = torch.cuda.get_rng_state().tolist()
    with pytest.raises(RuntimeError, match=words):
        torch.multinomial(torch.tensor(weights, device="cuda"), 2, replacement)
    assert torch.cuda.get_rng_state().tolist() == before


def test_counts_that_do_not_fit_are_refused() -> None:
    weights = torch.ones(3, device="cuda")
    for count, replacement, words in ((4, False, "n_sample > prob_dist.size"), (0, True, "n_sample <= 0 samples")):
        with pytest.raises(RuntimeError, match=words):
            torch.multinomial(weights, count, replacement)
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        torch.multinomial(weights.long(), 1)


def test_actions_of_a_policy_are_drawn_on_the_device() -> None:
    policy = torch.distributions.Categorical(logits=torch.zeros(8, 3, device="cuda"))
    action = policy.sample((5,))
    assert action.shape == (5, 8) and action.device.type == "cuda"
    assert policy.log_prob(action).shape == (5, 8) and torch.cuda.fallbacks() == {}
