"""An unknown keyword of a constructor: the error names the class as torch's does."""

import warnings

import pytest
import torch

import pullback

DEPRECATED = {"NLLLoss2d"}  # torch's decorator has a signature of its own
CLASSES = [
    name
    for name in sorted(dir(torch.nn))
    if isinstance(getattr(torch.nn, name), type) and hasattr(pullback.nn, name) and name not in DEPRECATED
]


def refusal(library, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            getattr(library.nn, name)(no_such_keyword=1)
        except Exception as error:
            return type(error).__name__, str(error)
    return None


@pytest.mark.parametrize("name", CLASSES)
def test_an_unknown_keyword_is_refused_in_the_name_of_the_class(name):
    assert refusal(pullback, name) == refusal(torch, name)
