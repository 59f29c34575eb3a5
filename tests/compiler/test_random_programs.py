"""Random programs of the fuzzer, compiled: results, gradients, leaves, versions and errors are those of eager code."""

import warnings

import pytest

pytest.importorskip("torch")
from tests.compiler import fuzz
from tests.fuzz.generate import Theme


@pytest.mark.parametrize("first", [0, 1000, 2000, 3000])
def test_random_programs_compiled(first):
    theme, programs = Theme(first), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 12):
            made = fuzz.compare(seed, theme)
            if made is not None:
                compiled, text = made
                assert text == ""
                programs += sum([entry.calls for entry in compiled._compiled.entries if entry.why is None])
    assert programs >= 6
