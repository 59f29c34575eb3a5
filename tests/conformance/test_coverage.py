"""docs/coverage.md is written from a run of the harness, read back, and compared with a later run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.conformance import batching, coverage, harness, wrong_peer
from tests.conformance.library import Library
from tests.conformance.samples import Sample, ops
from tests.conformance.ties import leaves_open, named_elements

WRONG = Library(wrong_peer)
WAYS = {"mul": "batched", "log": "loops: log1p"}


@pytest.fixture(scope="module")
def results() -> harness.Results:
    return harness.run(["mul", "log"], ["value", "dtype", "shape"], peer=WRONG)


def test_the_page_says_what_was_counted(results: harness.Results) -> None:
    found = coverage.recorded(coverage.page(results, WAYS))
    expected = {
        (name, aspect): (tally.passed, tally.total)
        for name, result in results.items()
        for aspect, tally in result.tallies.items()
    }
    assert found == expected and len(found) == 6


def test_every_op_of_torch_has_a_row(results: harness.Results) -> None:
    page = coverage.page(results, WAYS)
    assert all(f"| {name} |" in page for name in coverage.every_op())


def test_the_page_says_which_ops_run_entry_by_entry_under_vmap(results: harness.Results) -> None:
    page = coverage.page(results, WAYS)
    assert "| loops | 1 |" in page and "| batched | 1 |" in page
    assert next(line for line in page.splitlines() if line.startswith("| log |")).endswith("| loops: log1p |")


def test_how_ops_run_under_vmap_is_found_by_running_them() -> None:
    found = batching.ways(["mul", "histc", "nonzero", "zeros"])
    assert found == {"mul": "batched", "histc": "loops: histc", "nonzero": "refused", "zeros": "-"}


def test_every_op_only_torch_can_have_has_a_reason() -> None:
    inner = [name for name in coverage.every_op() if name not in ops()]
    assert inner and all(coverage.reason(name) != coverage.NOT_YET for name in inner)
    assert coverage.reason("linalg.svd") == coverage.NOT_YET


def test_nothing_has_fallen_in_the_same_run(results: harness.Results) -> None:
    assert coverage.fallen(results, coverage.page(results, WAYS)) == []


def test_a_number_that_fell_is_found(results: harness.Results) -> None:
    page = coverage.page(results, WAYS)
    worse = harness.run(["mul", "log"], ["value", "dtype", "shape"], peer=WRONG)
    worse["log"].tallies["value"].passed -= 1
    assert len(coverage.fallen(worse, page)) == 1
    del worse["mul"]
    assert len(coverage.fallen(worse, page)) == 1 + 3


def test_indices_of_equal_elements_are_compared_by_what_they_name() -> None:
    sample = Sample("ties", torch.int64, torch.tensor([[3, 1, 3], [2, 2, 0]]), (2,), {})
    assert leaves_open("topk", sample) and not leaves_open("gather", sample)
    one, other = ([np.array([[3, 3], [2, 2]]), np.array(places)] for places in ([[0, 2], [0, 1]], [[2, 0], [1, 0]]))
    first, second = (named_elements("topk", sample, side) for side in (one, other))
    assert np.array_equal(first[1][0], second[1][0]) and first[1][1] == second[1][1] == "all indices different"
    wrong = named_elements("topk", sample, [one[0], np.array([[0, 0], [0, 1]])])
    assert wrong[1][1] == "some index twice"


def test_stable_sorts_leave_nothing_open() -> None:
    x = torch.tensor([1, 1])
    assert leaves_open("sort", Sample("any", torch.int64, x, (), {}))
    assert not leaves_open("sort", Sample("stable", torch.int64, x, (), {"stable": True}))
