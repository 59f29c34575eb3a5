"""Random numbers of the device: what torch 2.11 drew on an H200, how generators are seeded, saved and restored."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels import jit
from pullback.kernels.cuda import device
from pullback.kernels.cuda.launch import launches
from pullback.kernels.cuda.random import computed, engine_on, spread


def test_small_draws_are_the_ones_of_torch_for_the_same_seed() -> None:
    torch.manual_seed(0)
    np.testing.assert_allclose(torch.rand(2, device="cuda").tolist(), [0.39904648, 0.51667917], 1e-7)
    np.testing.assert_allclose(torch.randn(3, device="cuda")[0].item(), 0.18082583, 1e-5)
    assert torch.randint(100, (3,), device="cuda").tolist() == [33, 63, 84]
    assert torch.cuda.get_rng_state().tolist() == [0] * 8 + [12] + [0] * 7


@pytest.mark.parametrize(("kind", "near"), [
    ("uniform", False), ("normal", False), ("integers", False), ("wide", False), ("uniform64", False),
    ("normal64", False), ("uniform", True),
])  # fmt: skip
def test_a_kernel_draws_what_its_description_says(kind: str, near: bool) -> None:
    if not jit.available():
        pytest.skip("kernels are compiled")
    calls: dict[str, Any] = {
        "uniform": lambda n: torch.rand(n, device="cuda") if not near else None,
        "normal": lambda n: torch.randn(n, device="cuda"),
        "integers": lambda n: torch.randint(-3, 1000, (n,), device="cuda"),
        "wide": lambda n: torch.randint(-3, 1 << 40, (n,), device="cuda"),
        "uniform64": lambda n: torch.rand(n, device="cuda", dtype=torch.float64),
        "normal64": lambda n: torch.randn(n, device="cuda", dtype=torch.float64),
    }
    n = 1036
    torch.manual_seed(1 << 40)
    blocks, turns = spread(0, n, 2 if kind.endswith("64") or kind == "wide" else 4)
    bounds = {"integers": (1003, -3, 0), "wide": ((1 << 40) + 3, -3, 0)}.get(kind, (1.0, 0.0, 1.0))
    wanted = computed(kind, n, 1 << 40, 0, blocks * 256, near, *bounds)
    if near:
        made = torch.nn.functional.dropout(torch.ones(n, device="cuda"), 0.25)
        assert ((made != 0).cpu().numpy() == (wanted < 0.75)).all()
    else:
        made = calls[kind](n)
        tolerance = 1e-5 if kind == "normal" else 1e-12
        np.testing.assert_allclose(made.cpu().numpy(), wanted.astype(made.cpu().numpy().dtype), tolerance, tolerance)
    assert engine_on(0).offset == 4 * turns


def test_neighbours_are_written_together_up_to_the_end() -> None:
    n = 1037
    torch.manual_seed(9)
    made = torch.full((n,), 0.3, device="cuda").bernoulli().cpu().numpy()
    wanted = computed("uniform", n, 9, 0, spread(0, n, 4)[0] * 256, True, 1.0, 0.0, np.nan)
    assert (made == (wanted <= np.float32(0.3))).all()


@pytest.mark.skipif(not jit.available(), reason="without a compiler there is no kernel")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_noise_of_dropout_is_drawn_and_scaled_by_one_kernel(dtype: str) -> None:
    x = torch.ones(512, device="cuda", dtype=getattr(torch, dtype))
    before = dict(launches)
    made = torch.nn.functional.dropout(x, 0.3)
    counts = {name: count - before.get(name, 0) for name, count in launches.items() if count > before.get(name, 0)}
    assert counts.pop("random") == 1 and sum(counts.values()) == (1 if dtype == "float32" else 2)
    kept = torch.ones(512, dtype=x.dtype) / 0.7
    assert set(made.cpu().tolist()) == {0.0, kept[0].item()}


MADE: dict[str, Any] = {
    "exponential": (lambda x: x.exponential_(2.0), lambda u, z: -torch.log(u) / 2),
    "cauchy": (lambda x: x.cauchy_(1.0, 2.0), lambda u, z: 1 + 2 * torch.tan(np.pi * (u - 0.5))),
    "geometric": (lambda x: x.geometric_(0.3), lambda u, z: torch.ceil(torch.log(u) / np.log1p(-0.3))),
    "log-normal": (lambda x: x.log_normal_(0.5, 0.7), lambda u, z: torch.exp(z * 0.7 + 0.5)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", MADE)
def test_draws_of_other_distributions_are_made_of_torchs_uniform_and_normal_ones(name: str, dtype: Any) -> None:
    """As the headers of torch 2.13 say it (ATen/core/TransformationHelper.h), one draw for each element."""
    wide, found = torch.float64 if dtype is torch.float64 else torch.float32, []
    for draw in (torch.rand, torch.randn):
        torch.manual_seed(3)
        found.append(draw(1000, device="cuda", dtype=wide).cpu().to(torch.float64))
    torch.cuda.reset_fallbacks()
    torch.manual_seed(3)
    before = torch.get_rng_state()
    made = MADE[name][0](torch.empty(1000, device="cuda", dtype=dtype))
    assert torch.cuda.fallbacks() == {} or not jit.available()
    assert torch.equal(before, torch.get_rng_state())
    assert torch.cuda.get_rng_state().tolist()[8:] == [4] + [0] * 7
    expected, bound = MADE[name][1](*found).to(dtype), {4: 3e-4, 8: 1e-10}.get(dtype.itemsize, 1e-2)
    np.testing.assert_allclose(made.cpu().double().numpy(), expected.double().numpy(), bound, bound)


def test_draws_of_other_distributions_are_refused_as_on_the_host() -> None:
    for place in ("cpu", "cuda"):
        for call, words in (
            (lambda: torch.empty(3, device=place).exponential_(-1), "exponential_ expects lambda > 0.0"),  # noqa: B023
            (lambda: torch.empty(3, device=place).geometric_(2.0), "geometric_ expects p to be in"),  # noqa: B023
            (lambda: torch.empty(3, device=place).cauchy_(0, -1), "cauchy_ expects sigma > 0.0"),  # noqa: B023
            (lambda: torch.empty(3, device=place).log_normal_(0, -1), "log_normal_ expects std > 0.0"),  # noqa: B023
            (lambda: torch.ones(3, device=place, dtype=torch.int64).exponential_(), "must be a floating point"),  # noqa: B023
        ):
            with pytest.raises(RuntimeError, match=words):
                call()


def test_numbers_of_tosses_are_drawn_as_integers_in_any_order_of_memory() -> None:
    torch.manual_seed(5)
    floats = torch.empty(3, 4, device="cuda").geometric_(0.2)
    torch.manual_seed(5)
    whole = torch.zeros(3, 4, dtype=torch.int64, device="cuda").geometric_(0.2)
    assert whole.tolist() == floats.tolist() and whole.min() >= 1
    torch.manual_seed(5)
    turned = torch.empty(4, 3, device="cuda").t().geometric_(0.2)
    assert turned.t().reshape(-1).tolist() == floats.reshape(-1).tolist()


def test_large_draws_are_spread_over_the_threads_of_the_device() -> None:
    facts = device.required().devices[0].attributes
    threads = facts["multi_processor_count"] * facts["max_threads_per_multi_processor"]
    torch.manual_seed(3)
    x = torch.rand(threads + 5, device="cuda")
    assert engine_on(0).offset == 4
    torch.manual_seed(3)
    y = torch.rand(8, device="cuda")
    assert x[:8].tolist() == y.tolist()  # the first of every thread
    x = torch.rand(4 * threads + 1, device="cuda")
    assert engine_on(0).offset == 12


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_draws_have_the_moments_of_their_distributions(dtype: str) -> None:
    torch.manual_seed(7)
    kind, n = getattr(torch, dtype), 40_000
    u = torch.rand(n, device="cuda", dtype=kind).double().cpu()
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.01 and abs(u.var() - 1 / 12) < 0.01
    z = torch.empty(n, device="cuda", dtype=kind).normal_(1, 2).double().cpu()
    assert abs(z.mean() - 1) < 0.05 and abs(z.std() - 2) < 0.05
    w = torch.empty(n, device="cuda", dtype=kind).uniform_(-2, 3).double().cpu()
    assert w.min() >= -2 and w.max() < 3 and abs(w.mean() - 0.5) < 0.05
    b = torch.full((n,), 0.3, device="cuda", dtype=kind).bernoulli().double().cpu()
    assert set(b.unique().tolist()) == {0, 1} and abs(b.mean() - 0.3) < 0.02
    d = torch.nn.functional.dropout(torch.ones(n, device="cuda", dtype=kind), 0.25).double().cpu()
    assert abs((d == 0).double().mean() - 0.25) < 0.02 and abs(d.max() - 4 / 3) < 0.01


def test_generators_of_the_device_are_seeded_saved_and_restored() -> None:
    torch.manual_seed(5)
    first = torch.rand(3, device="cuda").tolist()
    state = torch.cuda.get_rng_state()
    second = torch.rand(3, device="cuda").tolist()
    torch.cuda.set_rng_state(state)
    assert torch.rand(3, device="cuda").tolist() == second != first
    torch.cuda.manual_seed(5)
    assert torch.rand(3, device="cuda").tolist() == first and torch.cuda.initial_seed() == 5
    torch.cuda.manual_seed_all(5)
    with torch.random.fork_rng(devices=[0]):
        torch.rand(100, device="cuda")
        torch.manual_seed(9)
    assert torch.rand(3, device="cuda").tolist() == first
    own = torch.Generator(device="cuda").manual_seed(5)
    assert own.device == torch.device("cuda:0") and own.get_offset() == 0
    assert torch.rand(3, device="cuda", generator=own).tolist() == first and own.get_offset() == 4
    for other in (pickle.loads(pickle.dumps(own)), own.clone_state(), copy.copy(own)):
        assert torch.rand(3, device="cuda", generator=other).tolist() == second
    own.set_offset(0)
    assert torch.empty(3, device="cuda").uniform_(generator=own).tolist() == first
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        own.set_offset(3)
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.cuda.set_rng_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.rand(3, device="cuda", generator=torch.Generator())
    before = torch.get_rng_state().tolist()
    torch.rand(3, device="cuda")
    assert torch.get_rng_state().tolist() == before  # the CPU's generator is another
    assert torch.rand_like(torch.ones(2, 2, device="cuda")).shape == (2, 2)
    assert torch.empty(2, device="cuda").exponential_(generator=own).min() > 0  # by way of the host
