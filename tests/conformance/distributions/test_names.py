"""The names of torch.distributions and of its modules."""

import importlib
import pkgutil

import pytest
import torch

import pullback
import pullback.distributions


def test_the_public_names_are_torchs():
    assert set(pullback.distributions.__all__) == set(torch.distributions.__all__)


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(torch.distributions.__path__)])
def test_torchs_modules_can_be_imported_and_have_its_names(name: str):
    theirs = importlib.import_module(f"torch.distributions.{name}")
    ours = importlib.import_module(f"pullback.distributions.{name}")
    assert [public for public in theirs.__all__ if not hasattr(ours, public)] == []
    assert getattr(pullback.distributions, name) is ours


def test_the_package_is_loaded_when_it_is_first_named():
    assert pullback.distributions.Normal(0.0, 1.0).batch_shape == ()
