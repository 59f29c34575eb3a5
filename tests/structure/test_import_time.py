"""Importing pullback is quick."""

import pytest

BUDGET_MS = 60.0

MEASURE = """
import time, numpy
start = time.perf_counter()
import pullback; pullback.Tensor  # an empty package is no import
print((time.perf_counter() - start) * 1e3)
"""


@pytest.mark.slow
def test_import_takes_at_most_60_ms_more_than_numpy(run_python):
    run_python(MEASURE)  # compiles the files, which happens once
    best = min(float(run_python(MEASURE)) for _ in range(7))
    assert best <= BUDGET_MS, f"import pullback took {best:.0f} ms on top of numpy"
