"""The sum over ranks of sparse tensors: every rank gets the entries of all, and adds those at one place."""

from __future__ import annotations

import numpy as np

import pullback as torch
from pullback import Tensor
from pullback.distributed.reduce_op import RedOpType
from pullback.distributed.transport.engine import Array, Engine


def check_sparse(tensor: Tensor, op: RedOpType) -> None:
    """Refuse what gloo refuses."""
    if tensor.layout is not torch.sparse_coo:
        raise RuntimeError("ProcessGroupGloo::allreduce: unsupported layout")
    if op is not RedOpType.SUM:
        raise RuntimeError(
            "ProcessGroupGloo::allreduce: unsupported reduction operation (allreduce of sparse tensors only works with "
            "ReduceOp.SUM)"
        )


def sparse_sum(engine: Engine, tensor: Tensor) -> None:
    """The sum over ranks, in place. Ranks may have different numbers of entries."""
    mine = tensor.detach().coalesce()
    counts = [int(one[0]) for one in gathered(engine, np.array([mine._nnz()], np.int64))]
    indices = gathered(engine, padded(mine.indices().t(), max(counts)))
    values = gathered(engine, padded(mine.values(), max(counts)))
    rows = torch.from_numpy(np.concatenate([one[:count] for one, count in zip(indices, counts)]))
    entries = torch.empty(len(rows), *mine.values().shape[1:], dtype=tensor.dtype)
    np.concatenate([one[:count] for one, count in zip(values, counts)], out=entries._array)
    with torch.no_grad():
        tensor.copy_(torch.sparse_coo_tensor(rows.t(), entries, tensor.shape).coalesce())


def gathered(engine: Engine, array: Array) -> list[Array]:
    """The arrays of all ranks."""
    if engine.size == 1:
        return [array]
    outs = [np.empty_like(array) for _ in range(engine.size)]
    engine.all_gather(outs, array)
    return outs


def padded(entries: Tensor, count: int) -> Array:
    """Rows of zeros behind those there are."""
    out = torch.zeros(count, *entries.shape[1:], dtype=entries.dtype)
    out[: len(entries)] = entries
    return out._array
