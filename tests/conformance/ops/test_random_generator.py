"""Generators and the errors of random functions, on torch and on pullback."""

import warnings

import numpy as np

from tests.conformance.both import attempt, on_both


@on_both
def test_what_a_generator_takes_as_a_seed(torch):
    def first(seed):
        generator = torch.Generator().manual_seed(seed)
        return [generator.initial_seed(), torch.rand(2, generator=generator)]

    seeds = [0, -3, 2**32 + 5, 2**64 - 1, 2**64, -(2**63) - 1, 1.5, "a", True, None]
    return [attempt(lambda s=s: first(s)) for s in seeds]


@on_both
def test_what_the_function_takes_as_a_seed(torch):
    seeds = [1.5, True, np.int64(3), torch.tensor(4), "a", None]
    return [attempt(lambda s=s: torch.manual_seed(s).initial_seed()) for s in seeds]


@on_both
def test_what_is_no_state(torch):
    states = [3, torch.zeros(3, dtype=torch.uint8), torch.zeros(5056), torch.zeros(5056, dtype=torch.uint8)]
    return [attempt(lambda s=s: torch.set_rng_state(s)) for s in states]


@on_both
def test_a_fork_of_a_device_nobody_knows(torch):
    return attempt(lambda: torch.random.fork_rng(device_type="xyz").__enter__())


@on_both
def test_means_and_deviations_that_do_not_broadcast(torch):
    return attempt(lambda: torch.normal(torch.zeros(2), torch.ones(3)))


@on_both
def test_multinomial_with_rows_that_share_their_memory(torch):
    torch.manual_seed(5)
    weights = torch.arange(1.0, 8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [
            torch.multinomial(weights.expand(4, 7), 3),
            torch.multinomial(weights.expand(4, 7), 1),
            torch.multinomial(weights[:, None].expand(7, 3), 2),
            torch.multinomial(weights.view(7, 1).expand(7, 3).t(), 2),
            torch.rand(2),
        ]


def test_small_draws_of_all_kinds_in_any_order_are_torchs_numbers():
    import random

    import torch

    import pullback

    calls = [
        lambda t, n: t.rand(n),
        lambda t, n: t.rand(n, dtype=t.float64),
        lambda t, n: t.randn(n),
        lambda t, n: t.randn(2 * n),
        lambda t, n: t.randn(n, dtype=t.float64),
        lambda t, n: t.randint(9, (n,)),
        lambda t, n: t.randint(-3, 1 << 30, (n,)),
        lambda t, n: t.empty(n).uniform_(),
        lambda t, n: t.empty(n).uniform_(-1, 2),
        lambda t, n: t.empty(n).normal_(),
        lambda t, n: t.empty(n).normal_(1, 3),
        lambda t, n: t.empty(n, 2).t().normal_(),
        lambda t, n: t.empty(n).exponential_(),
        lambda t, n: t.empty(n, dtype=t.bfloat16).normal_(),
        lambda t, n: t.empty(n, dtype=t.int64).random_(7),
        lambda t, n: t.rand_like(t.empty(n)),
        lambda t, n: t.randn_like(t.empty(n, 2)),
        lambda t, n: t.bernoulli(t.full((n,), 0.3)),
        lambda t, n: t.randperm(n),
        lambda t, n: t.set_rng_state(t.get_rng_state()) or t.rand(n),
    ]
    order = random.Random(0)
    for library in (torch, pullback):
        library.manual_seed(5)
    for _ in range(6000):
        call, n = order.choice(calls), order.choice((1, 2, 3, 5, 8, 15, 16, 33, 127, 128, 700))
        theirs, ours = call(torch, n), call(pullback, n)
        assert ours.tolist() == theirs.tolist() and str(ours.dtype) == str(theirs.dtype)
    assert pullback.get_rng_state().tolist() == torch.get_rng_state().tolist()
