"""The named tuples of ops with several results: their names, fields and constructors, as torch has them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import pullback

pytestmark = pytest.mark.conformance

NAMES = [name for name, kind in vars(torch.return_types).items() if getattr(kind, "n_fields", 0) and name[0] != "_"]


def fields_of(made: Any) -> list[str]:
    return [line.partition("=")[0] for line in repr(made).splitlines()[1:]]


@pytest.mark.parametrize("name", NAMES)
def test_a_return_type_has_torchs_name_and_fields(name: str) -> None:
    expected, actual = (getattr(library.return_types, name) for library in (torch, pullback))
    assert actual.__name__ == expected.__name__
    assert actual.n_fields == expected.n_fields
    values = list(range(expected.n_fields))
    assert repr(actual(values)) == repr(expected(values))


@pytest.mark.parametrize("values", [3, [1], [1, 2, 3]])
def test_a_return_type_refuses_what_torchs_refuses(values: Any) -> None:
    texts = []
    for library in (torch, pullback):
        with pytest.raises(TypeError) as raised:
            library.return_types.sort(values)
        texts.append(str(raised.value))
    assert texts[0] == texts[1]


def test_a_call_returns_the_type_that_is_published() -> None:
    assert type(pullback.ones(2, 2).max(0)) is pullback.return_types.max
    assert type(pullback.linalg.eigh(pullback.eye(2))) is pullback.return_types.linalg_eigh
    assert type(pullback.slogdet(pullback.eye(2))) is pullback.return_types.slogdet


@pytest.mark.parametrize(
    ("name", "arguments", "dtypes"),
    [
        ("max", (0,), ("float32", "int64")),
        ("sort", (), ("float32", "int64")),
        ("aminmax", (), ("float32", "float32")),
        ("frexp", (), ("float32", "int32")),
        ("slogdet", (), ("float32", "float32")),
        ("linalg.qr", (), ("float32", "float32")),
        ("linalg.lu_factor", (), ("float32", "int32")),
        ("svd", (), ("float32", "float32", "float32")),
        ("histogram", (2,), ("float32", "float32")),
    ],
)
def test_a_call_with_out_returns_named_fields(name: str, arguments: tuple, dtypes: tuple[str, ...]) -> None:
    found = []
    for library in (torch, pullback):
        function: Any = library
        for part in name.split("."):
            function = getattr(function, part)
        out = tuple(library.empty(0, dtype=getattr(library, dtype)) for dtype in dtypes)
        result = function(library.eye(2), *arguments, out=out)
        assert all(one is other for one, other in zip(result, out, strict=True))
        found.append((type(result).__name__, fields_of(result)))
    assert found[0] == found[1]


def test_named_results_can_be_copied_and_pickled() -> None:
    result = pullback.tensor([[1.0, 3.0]]).max(1)
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert type(again) is type(result)
        assert again.values.item() == 3.0 and again.indices.item() == 1
