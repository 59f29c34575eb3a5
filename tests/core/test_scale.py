"""Very deep and very wide graphs: a million nodes, under the recursion limit every program has."""

import gc
import sys
from time import perf_counter

import pytest

import pullback as torch

MILLION = 1_000_000


def chain(length: int) -> tuple[torch.Tensor, float]:
    """A leaf after backward through a chain of multiplications, and the seconds it took per node."""
    x = torch.ones(1, requires_grad=True)
    y = torch.ones(1)
    start = perf_counter()
    z = x
    for _ in range(length):
        z = z * y
    z.backward()
    del z
    return x, (perf_counter() - start) / length


@pytest.mark.slow
def test_a_chain_of_a_million_ops():
    limit = sys.getrecursionlimit()
    x, _ = chain(MILLION)
    assert x.grad.tolist() == [1.0]
    assert sys.getrecursionlimit() == limit


@pytest.mark.slow
def test_a_tree_of_a_million_leaves():
    leaves = level = [torch.ones(1, requires_grad=True) for _ in range(MILLION)]
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + odd
    (root,) = level
    assert root.item() == MILLION
    root.backward()
    assert all(leaf.grad.item() == 1.0 for leaf in (leaves[0], leaves[MILLION // 2], leaves[-1]))
    assert sum(leaf.grad is not None for leaf in leaves) == MILLION


@pytest.mark.slow
def test_differentiating_a_deep_chain_twice():
    x = torch.ones(1, requires_grad=True)
    z = x
    for _ in range(100_000):
        z = z * 1.0
    (g,) = torch.autograd.grad(z * z, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert h.tolist() == [2.0]


@pytest.mark.slow
def test_time_per_node_is_flat():
    """The least of several runs counts, because other programs use the machine too; so a few more may be needed."""
    best: dict[int, float] = {}
    for _ in range(10):
        for length, runs in ((1_000, 10), (10_000, 10), (100_000, 3), (MILLION, 1)):
            for _ in range(runs):
                gc.collect()
                best[length] = min(best.get(length, 1.0), chain(length)[1])
        if max(best.values()) <= 1.3 * best[1_000]:
            return
    pytest.fail(f"time per node: { {length: f'{seconds * 1e6:.2f} us' for length, seconds in best.items()} }")


@pytest.mark.slow
def test_ten_thousand_training_steps_without_the_collector_leave_memory_flat():
    probe = pytest.importorskip("benchmarks.probe")
    x, w = torch.ones(16, 8), torch.ones(8, 4, requires_grad=True)

    def step() -> None:
        loss = (x @ w).exp().sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=1e-6)
        w.grad = None

    gc.collect()
    gc.disable()
    try:
        for _ in range(500):
            step()
        before = probe.resident()
        for _ in range(10_000):
            step()
        grown = probe.resident() - before
    finally:
        gc.enable()
    assert grown < 1 << 20, f"{grown / 1024:.0f} KiB more after 10,000 steps"
