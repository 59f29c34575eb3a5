"""A mistake gives torch's error, in a traceback that is no longer than torch's but for the lines we add to its text."""

import os

import pytest
import torch

import pullback
from tests.errors.mistakes import MISTAKES, traceback_of


def lines(text):
    return len(text.splitlines())


@pytest.mark.skipif(os.environ.get("PULLBACK_TRACEBACK") == "full", reason="tracebacks are shown in full")
@pytest.mark.parametrize("name", MISTAKES)
def test_traceback_is_as_short_as_torchs(name):
    theirs, error = traceback_of(torch, name)
    ours, our_error = traceback_of(pullback, name)
    added = lines(str(our_error)) - lines(str(error))
    assert lines(ours) <= lines(theirs) + added


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_gives_torchs_error(name):
    _, error = traceback_of(torch, name)
    _, ours = traceback_of(pullback, name)
    assert type(ours) is type(error)
    rest = str(ours).removeprefix(str(error))
    assert rest != str(ours)
    assert rest == "" or rest.startswith("\n  ")
