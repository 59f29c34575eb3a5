"""Every op pullback has, compared with torch's in all aspects; no number of docs/coverage.md may fall.

What a failure means is best seen with the harness.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.conformance import coverage, harness
from tests.conformance.known_differences import KNOWN_DIFFERENCES

PEER = harness.load_peer("pullback")
RECORDED = coverage.recorded(coverage.FILE.read_text())


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("op", harness.collected(PEER))
def test_op(op: str) -> None:
    result = harness.run([op], peer=PEER)[op]
    problems = result.problems(KNOWN_DIFFERENCES)
    for (name, aspect), numbers in RECORDED.items():
        if name == op and (complaint := coverage.fell(result, name, aspect, *numbers)):
            problems.append(f"docs/coverage.md: {complaint}")
    more = f"all differences: python -m tests.conformance.harness --op {op} --verbose"
    assert not problems, "\n".join(["", *problems, more])
