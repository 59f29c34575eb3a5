"""Every public name of torch is accounted for: it works, it tells the truth, or it says what is missing.

The files in tests/inventory hold the public names of torch 2.13, one to a line. `only_raise.txt` lists the names that
do nothing but raise an error; a name comes to it, or leaves it, on purpose only.
"""

from inspect import isfunction
from pathlib import Path

import pytest

import pullback

INVENTORY = Path(__file__).parent / "inventory"
SEED = Path(__file__).parent / "seeds" / "names_of_a_tensor.txt"
SPACES = {
    "torch": pullback,
    "fft": pullback.fft,
    "linalg": pullback.linalg,
    "special": pullback.special,
}
DROPPED = {"align_as", "align_to", "has_names", "is_mlc", "names", "refine_names", "rename", "rename_"}
"""Names of the document that torch has given up since."""
REMOVED = ("eig", "lstsq", "solve", "symeig")
"""Names torch keeps only to say what to use instead."""


def listed(name):
    return (INVENTORY / f"{name}.txt").read_text(encoding="utf-8").split()


ONLY_RAISE = listed("only_raise")


def found(path):
    space, name = path.split(".")
    return getattr(pullback.Tensor if space == "Tensor" else pullback, name)


@pytest.mark.parametrize("space", SPACES)
def test_every_function_of_the_namespace_is_there(space):
    missing = [name for name in listed(space) if not hasattr(SPACES[space], name)]
    assert not missing, f"torch.{space} has {missing}"


def test_every_name_of_torchs_tensor_is_there():
    missing = [name for name in listed("tensor") if not hasattr(pullback.Tensor, name)]
    assert not missing, f"torch.Tensor has {missing}"


def test_every_public_name_of_the_document_is_there():
    names = [name for name in SEED.read_text(encoding="utf-8").split() if not name.startswith("_")]
    missing = [name for name in names if name not in DROPPED and not hasattr(pullback.Tensor, name)]
    assert not missing


def test_the_names_that_only_raise_are_those_listed():
    raising = [
        f"{space}.{name}"
        for space, home in (("Tensor", pullback.Tensor), ("torch", pullback))
        for name in sorted(vars(home))
        if isfunction(getattr(home, name, None)) and hasattr(getattr(home, name), "out_of_scope")
    ]
    assert sorted(raising) == sorted(ONLY_RAISE)


@pytest.mark.parametrize("path", ONLY_RAISE)
def test_a_name_that_only_raises_says_why(path):
    x = pullback.ones(2, 2)
    with pytest.raises((NotImplementedError, RuntimeError, AssertionError)) as raised:
        found(path)(x, x)
    text = str(raised.value)
    assert len(text.split()) >= 5
    assert text == found(path).__doc__


@pytest.mark.parametrize("path", [path for path in ONLY_RAISE if path.startswith("torch.")])
def test_a_function_out_of_scope_names_what_is_missing(path):
    text = str(found(path).__doc__)
    assert path.partition(".")[2] in text or "sparse" in text


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_name_says_what_to_use_instead(name):
    x = pullback.ones(2, 2)
    with pytest.raises(RuntimeError, match=r"This function was deprecated since version 1\.9 and is now removed"):
        getattr(pullback.Tensor, name)(x, x)


@pytest.mark.parametrize("name", ["is_mkldnn", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan"])
def test_a_tensor_says_that_it_is_of_no_other_kind(name):
    assert getattr(pullback.ones(2), name) is False


def test_a_dense_tensor_is_dense():
    x = pullback.ones(2, 3)
    assert x.to_dense() is x
    assert x.dequantize() is x
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)


def test_every_public_function_says_what_it_does():
    silent = [
        f"{space}.{name}"
        for space, home in SPACES.items()
        for name in listed(space)
        if not (getattr(home, name, None) is None or getattr(home, name).__doc__)
    ]
    assert not silent
