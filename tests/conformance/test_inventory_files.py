"""The files in tests/inventory are torch's own lists of names."""

import inspect
from pathlib import Path

import pytest
import torch

INVENTORY = Path(__file__).parent.parent / "inventory"
SPACES = {"torch": torch, "fft": torch.fft, "linalg": torch.linalg, "special": torch.special}


def functions_of(module):
    public = [(name, getattr(module, name)) for name in dir(module) if not name.startswith("_")]
    return {name for name, value in public if callable(value) and not inspect.isclass(value)}


@pytest.mark.parametrize("space", SPACES)
def test_the_functions_listed_are_torchs(space):
    assert set((INVENTORY / f"{space}.txt").read_text().split()) == functions_of(SPACES[space])


def test_the_names_listed_of_the_tensor_are_torchs():
    names = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    assert set((INVENTORY / "tensor.txt").read_text().split()) == names
