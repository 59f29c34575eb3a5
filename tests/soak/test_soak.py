"""A short version of each part of the soak run."""

import itertools
import random

import pytest

from tests.soak.parts import PARTS


@pytest.mark.parametrize("name", sorted(set(PARTS) - {"ranks", "restarts"}))  # see tests/distributed/test_faults.py
def test_everything_holds(name):
    part, _, _ = PARTS[name]
    stream = part(random.Random(f"0 {name}"))
    trials = list(itertools.islice(stream, 3 if name in ("disk", "kills") else 1))
    stream.close()
    assert not [problem for _, problem in trials if problem]
    assert sum(events for events, _ in trials) > 0
