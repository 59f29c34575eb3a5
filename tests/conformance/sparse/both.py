"""Expressions on sparse tensors, evaluated by torch and by pullback and compared part by part."""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any

import numpy as np
import torch

import pullback

OVERLOAD = re.compile(r"'aten::(\w+)\.\w+'")


def namespace(module: Any) -> dict[str, Any]:
    """The tensors that expressions are about."""
    torch = module
    indices = torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    values = torch.tensor([3.0, 4.0, 5.0, 6.0])
    u = torch.sparse_coo_tensor(indices, values, (2, 3))
    d = torch.arange(6.0).reshape(2, 3)
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "i": indices,
        "v": values,
        "u": u,  # not coalesced
        "s": u.coalesce(),
        "o": torch.sparse_coo_tensor(torch.tensor([[0, 1], [0, 2]]), torch.tensor([1.0, 2.0]), (2, 3)).coalesce(),
        "h": torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.ones(2, 3), (2, 3)),  # with a dense dimension
        "d": d,
        "csr": d.to_sparse_csr(),
        "csc": d.to_sparse_csc(),
        "bsr": d.to_sparse_bsr((1, 3)),
        "crow": torch.tensor([0, 2, 3]),
        "col": torch.tensor([0, 1, 2]),
    }


def plain(tensor: Any) -> Any:
    """The elements of a dense tensor."""
    return ["dense", str(tensor.dtype), list(tensor.shape), tensor.detach().tolist()]


def node(tensor: Any) -> str:
    """The name of the node that made a tensor."""
    return type(tensor.grad_fn).__name__


def described(module: Any, value: Any, flags: bool = True) -> Any:
    """A result as plain data; `flags` says whether entries count, or only what they sum to."""
    if isinstance(value, module.Tensor):
        name = str(value.layout).removeprefix("torch.")
        facts = [name, list(value.shape), node(value), value.requires_grad]
        if name == "strided":
            return [*plain(value), *facts[2:]]
        if name == "sparse_coo":
            one = value.detach() if flags else value.detach().to_dense().to_sparse(value.sparse_dim())
            more = [value.is_coalesced(), value.sparse_dim(), value.dense_dim()] if flags else []
            return [*facts, plain(one._indices()), plain(one._values()), *more]
        rows = value.layout in (module.sparse_csr, module.sparse_bsr)
        parts = (value.crow_indices(), value.col_indices()) if rows else (value.ccol_indices(), value.row_indices())
        return [*facts, *[plain(part) for part in (*parts, value.values())], value._nnz()]
    if isinstance(value, (list, tuple)):
        return [described(module, one, flags) for one in value]
    if isinstance(value, (bool, int, float, type(None))):
        return value
    return str(value).replace("pullback", "torch")


def outcome(module: Any, action: Any, flags: bool = True) -> Any:
    """What an action gives, or the type and the first sentence of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return described(module, action(), flags)
        except Exception as error:
            text = OVERLOAD.sub(r"'aten::\1'", str(error).split("\n")[0])
            return ["raised", type(error).__name__, re.split(r"backend\.", text)[0].rstrip(". ")]


def difference(expected: Any, actual: Any) -> str | None:
    """Where two outcomes differ; floats may differ by rounding."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return next((found for a, b in zip(expected, actual, strict=True) if (found := difference(a, b))), None)
    if isinstance(expected, float) and isinstance(actual, float):
        if np.isclose(expected, actual, rtol=2e-5, atol=1e-6, equal_nan=True):
            return None
    elif type(expected) is type(actual) and expected == actual:
        return None
    return f"expected {expected!r}, got {actual!r}"


def agree(program: Any, flags: bool = True) -> None:
    """Assert that a program `f(module, names)`, or an expression, gives the same on both."""
    outcomes = []
    for module in (torch, pullback):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = namespace(module)
        run = program if callable(program) else lambda module, names: eval(program, names)
        outcomes.append(outcome(module, partial(run, module, names), flags))
    found = difference(*outcomes)
    assert found is None, f"{found}\n{outcomes[0]}\n{outcomes[1]}"
