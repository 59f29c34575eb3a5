"""Every op pullback has, compared with torch's in all aspects. What a failure means is best seen with the harness."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from . import harness
from .known_differences import KNOWN_DIFFERENCES

PEER = harness.load_peer("pullback")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("op", harness.collected(PEER))
def test_op(op: str) -> None:
    problems = harness.run([op], peer=PEER)[op].problems(KNOWN_DIFFERENCES)
    more = f"all differences: python -m tests.conformance.harness --op {op} --verbose"
    assert not problems, "\n".join(["", *problems, more])
