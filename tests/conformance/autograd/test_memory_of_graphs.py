"""Memory per node of a deep graph: not more than torch's."""

import pytest

from benchmarks.probe import probe


@pytest.mark.slow
@pytest.mark.parametrize("saving", [0, 1], ids=["one input wants a gradient", "both inputs want gradients"])
def test_a_node_takes_no_more_memory_than_in_torch(saving):
    ours, theirs = (probe("chain_memory", module, 200_000, saving)["bytes"] for module in ("pullback", "torch"))
    assert ours <= theirs, f"{ours:.0f} bytes per node, torch {theirs:.0f}"
