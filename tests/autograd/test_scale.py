"""Very deep and very wide graphs: a million nodes, under the recursion limit every program has."""

import gc
import sys

import pytest

import pullback as torch

MILLION = 1_000_000


def chain(length: int) -> torch.Tensor:
    """A leaf after backward through a chain of multiplications."""
    x = torch.ones(1, requires_grad=True)
    y = torch.ones(1)
    z = x
    for _ in range(length):
        z = z * y
    z.backward()
    return x


@pytest.mark.slow
def test_a_chain_of_a_million_ops():
    limit = sys.getrecursionlimit()
    x = chain(MILLION)
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


def lines_run(length: int) -> int:
    """How many lines of Python a chain takes, from its first node to its gradient."""
    count = 0

    def look(frame, event, argument):
        nonlocal count
        count += 1
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        chain(length)
    finally:
        sys.settrace(before)
    return count


def test_work_per_node_is_flat():
    """Twice the nodes take twice the lines. Their time is in the benchmarks: `python -m benchmarks --only scaling`."""
    chain(4_000)  # what is made once is made
    first, second, fourth = (lines_run(length) for length in (1_000, 2_000, 4_000))
    assert first > 1_000
    assert 0.99 < (fourth - second) / (2 * (second - first)) < 1.01  # the collector runs a few lines of its own


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
