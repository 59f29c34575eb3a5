"""Calls by keyword: every function and method takes torch's arguments by torch's names, in torch's order.

Each overload is called on samples of torch's op database in three ways: all arguments by name, the defaults written
out as well, and all that may be positional by position. What torch accepts must give the same values here.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.conformance.aspects import UNDEFINED_VALUES, op_path
from tests.conformance.compare import describe, difference
from tests.conformance.harness import load_peer
from tests.conformance.library import TORCH, Conversion, Library, Unconvertible
from tests.conformance.samples import ops
from tests.conformance.signatures import Signature, overloads

PEER = load_peer("pullback")
SKIPPED = {
    "linalg.eig": "the signs of eigenvectors",
    "linalg.eigh": "the signs of eigenvectors",
    "linalg.svd": "the signs of singular vectors",
    "svd": "the signs of singular vectors",
    "matrix_exp": "more digits than torch's",
    "linalg.matrix_exp": "more digits than torch's",
}
SAMPLES = 6


def paths() -> list[str]:
    found = []
    for info in ops().values():
        path = op_path(info)
        if path.removeprefix("Tensor.") not in SKIPPED:
            name = path.rpartition(".")[2]
            methods = [] if path.count(".") else [f"Tensor.{name}", f"Tensor.{name}_"]
            found += [each for each in (path, *methods) if overloads(each)]
    return list(dict.fromkeys(found))


def calls(path: str) -> Iterator[tuple[tuple, dict[str, Any]]]:
    name = path.rpartition(".")[2] if path.startswith("Tensor.") else path
    for info in ops().values():
        if info.name in (name, name.rstrip("_")):
            dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if info.supports_dtype(d, "cpu")), None)
            if dtype is not None:
                for sample in itertools.islice(info.sample_inputs("cpu", dtype), SAMPLES):
                    yield (sample.input, *sample.args), dict(sample.kwargs)


def forms(signature: Signature, bound: dict[str, Any]) -> Iterator[tuple[tuple, dict[str, Any]]]:
    first = tuple(bound[name] for name in signature.positional[:1] if name == "self")
    named = {name: value for name, value in bound.items() if name != "self"}
    yield first, named
    for name, default in {**signature.defaults, "out": None}.items():
        if name in signature.names and name not in named:
            yield first, {**named, name: default}
    leading = itertools.takewhile(named.__contains__, signature.positional[len(first) :])
    placed = list(leading)
    yield (*first, *[named[name] for name in placed]), {k: v for k, v in named.items() if k not in placed}


def answer(library: Library, path: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    conversion = Conversion(library, requires_grad=False)
    library.seed()
    result = library.require(path)(*conversion(args), **conversion(kwargs))
    undefined = path.rpartition(".")[2] in UNDEFINED_VALUES
    return describe(library, result, (lambda tensor: tuple(tensor.shape)) if undefined else library.array)


@pytest.mark.parametrize("path", paths())
def test_calls_by_name_and_by_position_agree(path: str) -> None:
    torch.manual_seed(0)
    wrong, is_method = [], path.startswith("Tensor.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = list(calls(path))
        for signature in overloads(path):
            if not is_method and "self" in signature.names:
                continue  # a Python number before a tensor: torch names it self, here it has only its place
            fitting = (bound for args, kwargs in given if (bound := signature.bind(args, kwargs)) is not None)
            for bound in itertools.islice(fitting, 2):
                for args, kwargs in forms(signature, bound):
                    wrong += compared(path, args, kwargs)
    assert not wrong, "\n".join(wrong)


def compared(path: str, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    try:
        expected = answer(TORCH, path, args, kwargs)
    except Unconvertible:
        return []
    except Exception:
        return []  # torch has another overload for these arguments
    try:
        found = difference(expected, answer(PEER, path, args, kwargs))
    except Exception as error:
        found = f"raised {type(error).__name__}: {error}"
    return [f"{len(args)} by position, {list(kwargs)} by name: {found}"] if found else []
