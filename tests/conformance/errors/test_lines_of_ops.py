"""Calls that torch refuses: ours show hardly more lines of the library than torch's, and no other error."""

import os
import warnings
from pathlib import Path

import pytest
import torch

import pullback
from tests.conformance.aspects import Call
from tests.conformance.library import TORCH, Library, Unconvertible
from tests.conformance.samples import error_samples, ops

PEER = Library(pullback)
OURS = (str(Path(pullback.__file__).parent), "<pullback")
THEIRS = (str(Path(torch.__file__).parent),)


def is_written_by_hand(name):
    """Whether users call the function as it is written: the generated ones are all alike."""
    declared = getattr(PEER.resolve(name) or PEER.resolve(f"Tensor.{name}"), "op", None)
    return getattr(declared, "body", None) is getattr(declared, "call", None)


REFUSING = {
    name: info
    for name, info in ops().items()
    if info.error_inputs_func is not None and (is_written_by_hand(name) or name in ("add", "gather", "cat", "sum"))
}


def shown(error, files):
    """The functions of a library that a traceback shows."""
    names, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(files):
            names.append(code.co_name)
        trace = trace.tb_next
    return names


def refused(library, info, sample):
    try:
        Call(library, info, sample).outputs
    except Exception as error:
        return error
    return None


@pytest.mark.skipif(os.environ.get("PULLBACK_TRACEBACK") == "full", reason="tracebacks are shown in full")
@pytest.mark.parametrize("name", REFUSING)
def test_a_refused_call_shows_hardly_any_lines_of_the_library(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in error_samples(REFUSING[name]):
            theirs = refused(TORCH, REFUSING[name], sample)
            ours = refused(PEER, REFUSING[name], sample)
            if theirs is None or ours is None or isinstance(theirs, Unconvertible):
                continue
            assert len(shown(ours, OURS)) <= len(shown(theirs, THEIRS)) + 1, sample
            assert ours.__context__ is None or ours.__suppress_context__, sample
