"""Run each program of the seed documents on pullback and, where it is installed, on torch too.

A program is a function of the module `torch`, written as the document writes it. What it should print was printed by
torch 2.13, so running the same tests on torch itself checks the tests.
"""

import importlib
import importlib.util
import re

import pytest

MODULES = ["pullback"] + [name for name in ["torch"] if importlib.util.find_spec(name)]


@pytest.fixture(params=MODULES)
def torch(request):
    """Return the module under test, seeded, and leave its modes as they were."""
    module = importlib.import_module(request.param)
    module.manual_seed(0)
    with module.set_grad_enabled(True):
        yield module


@pytest.fixture
def printed(torch, capsys):
    """Return a function that runs a program and returns what it printed, with the addresses of objects left out."""

    def run(program):
        capsys.readouterr()
        program(torch)
        return re.sub(r"0x[0-9a-f]+", "0x", capsys.readouterr().out)

    return run


@pytest.fixture
def error_of(torch):
    """Return a function that runs a program which must raise, and returns the error as "Type: text"."""

    def run(program):
        with pytest.raises(Exception) as caught:
            program(torch)
        return f"{type(caught.value).__name__}: {caught.value}"

    return run
