"""NumPy's names for parameters: torch takes x, a and x1 for input, x2 for other, axis for dim and keepdims for keepdim.

It does so in the functions it compiles, and not in those it writes in Python. Every function and method is called on
samples of torch's op database with each of the names it might know: what torch accepts must give the same values here.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from pullback._op.declare import REQUIRED, spaces
from tests.conformance.compare import difference
from tests.conformance.library import TORCH
from tests.conformance.signatures import overloads
from tests.conformance.test_signatures import PEER, answer, calls, paths

NUMPY_NAMES = {"x": "input", "a": "input", "x1": "input", "x2": "other", "axis": "dim", "keepdims": "keepdim"}
BY_HAND = {
    *("reshape", "flatten", "ravel", "permute", "tensor_split", "tile", "matmul", "flip", "conj", "positive"),
    *("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "linalg.cross"),
    *("Tensor.where", "Tensor.matmul", "Tensor.expand_as", "Tensor.view_as", "Tensor.reshape_as"),
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *(f"Tensor.__r{name}__" for name in ("add", "sub", "mul", "pow", "and", "or", "xor")),
}
"""Functions with a signature of their own: they know `axis` and `keepdims`, but not NumPy's names for tensors.

Collecting further keywords would cost each of their calls 25 to 80 ns, and they are among the most called."""


def renamings(path: str) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """Calls of a function in which one argument has NumPy's name."""
    given = list(itertools.islice(calls(path), 4))
    for signature in overloads(path):
        fitting = (bound for args, kwargs in given if (bound := signature.bind(args, kwargs)) is not None)
        for bound in itertools.islice(fitting, 1):
            first = tuple(bound[name] for name in signature.positional[:1] if name == "self")
            named = {name: value for name, value in bound.items() if name != "self"}
            for alias, name in NUMPY_NAMES.items():
                if name in named and alias not in named:
                    yield first, {alias if key == name else key: value for key, value in named.items()}


@pytest.mark.parametrize("path", paths())
def test_numpy_names_are_taken_where_torch_takes_them(path: str) -> None:
    torch.manual_seed(0)
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, kwargs in renamings(path):
            if path.removeprefix("nn.functional.") in BY_HAND and not kwargs.keys() & {"axis", "keepdims"}:
                continue
            try:
                expected = answer(TORCH, path, args, kwargs)
            except Exception:
                continue  # not a name torch knows here
            try:
                text = difference(expected, answer(PEER, path, args, kwargs))
            except Exception as error:
                text = f"raised {type(error).__name__}: {error}"
            if text:
                wrong.append(f"{list(kwargs)}: {text}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", ["sin", "gather", "cumsum", "index_select", "outer", "diff"])
def test_missing_arguments_are_named_as_torch_names_them(name: str) -> None:
    with pytest.raises(TypeError) as expected:
        TORCH.require(name)()
    with pytest.raises(TypeError) as found:
        PEER.require(name)()
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("norm", {"axis": 0}),
        ("unique", {"axis": 0}),
        ("nn.functional.softmax", {"axis": 0}),
        ("sum", {"dim": 0, "axis": 0}),
        ("sum", {"x": None}),
        ("sin", {"axis": 0}),
        ("Tensor.sin", {"x": None}),
    ],
)
def test_other_names_are_refused(name: str, kwargs: dict[str, Any]) -> None:
    for library in (TORCH, PEER):
        tensor = library.module.ones(2, 2)
        with pytest.raises(TypeError):
            library.require(name)(tensor, **kwargs)


def test_methods_in_place_take_numpy_names() -> None:
    results = []
    for library in (TORCH, PEER):
        tensor = library.module.ones(2, 2)
        results.append(tensor.add_(x2=tensor).cumsum_(axis=0).unsqueeze_(axis=0).tolist())
    assert results[0] == results[1]


def test_every_public_function_names_what_is_missing() -> None:
    ones = PEER.module.ones(2, 2)
    for call in {id(f): f for space in spaces.values() for f in space.values() if hasattr(f, "op")}.values():
        if "COMPILE" in call.__globals__:
            call.__globals__["COMPILE"]()
        if call.__globals__.get("RARE") is None:
            continue  # a signature of its own
        required = [p for p in call.op.params if p.default is REQUIRED and not p.keyword_only]
        for count in range(len(required)):
            given = [[ones] if p.kind == "list" else 0 if p.kind == "plain" else ones for p in required[:count]]
            with pytest.raises(TypeError, match=r"missing|invalid combination|must be"):
                call(*given)
