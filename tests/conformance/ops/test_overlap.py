"""Writing into memory that an operand shares: for every op with `out=` or an in-place form, torch's error or none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import pullback
from tests.conformance.library import TORCH, Conversion, Library, Unconvertible
from tests.conformance.samples import ops, samples

PEER = Library(pullback)
OVERLAP = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory"
COMPOSITE = {"ldexp", "ormqr", "triangular_solve", "take_along_dim"}
"""Ops whose parts notice the overlap at another moment, or in one of the libraries only."""


def shifted(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A copy of a tensor, and the same memory one element later."""
    base = torch.zeros(tensor.numel() + 1, dtype=tensor.dtype)
    first, second = base[:-1].view(tensor.shape), base[1:].view(tensor.shape)
    first.copy_(tensor)
    return first, second


def detached(value: Any) -> Any:
    """Arguments that want no gradient."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return type(value)(map(detached, value)) if type(value) in (list, tuple) else value


def calls(info: Any, args: list[Any], kwargs: dict[str, Any], result: Any) -> Iterator[tuple[str, Callable, Any]]:
    """Calls whose result goes where an operand lies, partly or wholly."""
    for nr, given in enumerate(args):
        if not isinstance(given, torch.Tensor) or given.numel() < 2:
            continue
        if info.supports_out and isinstance(result, torch.Tensor) and given.shape == result.shape:
            if given.dtype == result.dtype:
                first, second = shifted(given)
                yield f"out= beside argument {nr}", info.op, ([*args[:nr], first, *args[nr + 1 :]], kwargs, second)
                whole = given.clone()
                yield f"out= is argument {nr}", info.op, ([*args[:nr], whole, *args[nr + 1 :]], kwargs, whole)
        first = args[0]
        if nr and info.inplace_variant is not None and isinstance(first, torch.Tensor) and first.dtype == given.dtype:
            if first.shape == given.shape:
                target, operand = shifted(first)
                rest = [*args[1:nr], operand, *args[nr + 1 :]]
                yield f"in place beside argument {nr}", info.inplace_variant, ([target, *rest], kwargs, None)


def outcome(library: Library, function: Callable, call: Any) -> tuple[str, bool]:
    """The error about overlaps, or none; and whether an argument changed in spite of it."""
    args, kwargs, out = call
    if library is TORCH:
        args, kwargs, out = copy.deepcopy(call)
    else:
        convert = Conversion(library, requires_grad=False)
        args, kwargs, out = [convert(a) for a in args], {k: convert(v) for k, v in kwargs.items()}, convert(out)
    tensors = [a for a in (*args, out) if library.is_tensor(a)]
    before = [library.array(t) for t in tensors]
    try:
        function(*args, **kwargs, **({} if out is None else {"out": out}))
    except RuntimeError as error:
        if not str(error).startswith(OVERLAP):
            return str(error), False
        same = all(np.array_equal(a, library.array(t), equal_nan=a.dtype.kind == "f") for a, t in zip(before, tensors))
        return OVERLAP, not same
    return "", False


@pytest.mark.parametrize("name", sorted(set(ops()) - COMPOSITE))
@pytest.mark.filterwarnings("ignore")
def test_an_op_refuses_to_write_where_it_reads_if_torch_does(name):
    info = ops()[name]
    for sample in samples(info, torch.float64)[:1]:
        args, kwargs = [detached(sample.input), *map(detached, sample.args)], dict(sample.kwargs)
        try:
            result = info.op(*args, **kwargs)
        except Exception:
            continue
        for label, function, call in calls(info, args, kwargs, result):
            try:
                ours = outcome(PEER, PEER.counterpart(function), call)
            except (Unconvertible, AttributeError):
                continue
            theirs = outcome(TORCH, function, call)
            if OVERLAP in (theirs[0], ours[0]):
                assert ours[0] == theirs[0], f"{name}, {label}, {sample}"
                assert not ours[1], f"{name}, {label}: an argument was changed"


def test_indices_that_share_memory_with_what_is_written_do_not_change_on_the_way():
    memory = pullback.zeros(12, dtype=pullback.int64)
    every_other, index = memory.view(6, 2)[:, 0], memory[1:12:2]
    index.copy_(pullback.tensor([5, 4, 3, 2, 1, 0]))
    every_other.index_add_(0, index, pullback.arange(6) * 2**40)
    assert every_other.tolist() == [n * 2**40 for n in (5, 4, 3, 2, 1, 0)]
    memory.scatter_(0, index, 2**50)
    assert memory.tolist()[:6] == [2**50] * 6
