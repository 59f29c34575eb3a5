"""What an error says of lines follows torch's text, which comes first, whole and with the same type."""

import warnings

import pytest
import torch

import pullback
from tests.insight.test_error_lines import CUTS, HOOKS, STYLES, TWICE

PROGRAMS = {
    f"{table} {name}": source
    for table, programs in {"written": STYLES, "twice": TWICE, "cut": CUTS, "hook": HOOKS}.items()
    for name, source in programs.items()
}


def failure(library, source):
    """The type and text of the error a program ends with on one library."""
    names = {"torch": library, "nn": library.nn, "F": library.nn.functional}
    source = source.replace("import pullback.nn.functional as F\n", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            exec(source, names)
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("program", PROGRAMS)
def test_torchs_text_comes_first_and_ours_goes_on(program):
    kind, text = failure(torch, PROGRAMS[program])
    ours, longer = failure(pullback, PROGRAMS[program])
    assert ours is kind
    assert longer.startswith(text)
    assert longer[len(text) :].startswith("\n  ")
