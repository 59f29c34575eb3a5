"""Batches in parts: how arguments are split, and outputs put together."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.utils._pytree import tree_flatten, tree_map, tree_unflatten


class TensorChunkSpec:
    """The dimension along which a tensor is split."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{self.__class__.__module__}.{self.__class__.__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any:
        """One for each positional argument."""
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any:
        """One for each keyword argument."""
        return tree_map(TensorChunkSpec, chunk_dims)


TensorChunkSpec.__module__ = "torch.distributed.pipelining.microbatch"


class _Replicate:
    """Every part gets the whole."""


def split_tensor(tensor: Tensor, dim: int, chunks: int) -> list[Tensor]:
    """A tensor in so many parts."""
    if tensor.size(dim) < chunks:
        raise AssertionError(f"Tensor size {tensor.size(dim)} is smaller than num_chunks")
    parts = list(torch.tensor_split(tensor, chunks, dim))
    if tensor.requires_grad and tensor.is_leaf:
        for part in parts:
            part.retain_grad()
    return parts


def split_tree(values: Any, spec: Any, chunks: int) -> list[Any]:
    """Arguments for each part; tensors are split along their first dimension unless the spec says otherwise."""
    leaves, shape = tree_flatten(values)
    if spec is None:
        wanted = [TensorChunkSpec(0) if isinstance(leaf, Tensor) else _Replicate() for leaf in leaves]
    else:
        wanted = tree_flatten(spec)[0]
        if len(wanted) != len(leaves):
            raise ValueError(f"args_values and args_chunk_spec have {len(leaves)} and {len(wanted)} entries")
    columns = []
    for leaf, one in zip(leaves, wanted):
        if isinstance(one, TensorChunkSpec) and isinstance(leaf, Tensor):
            columns.append(split_tensor(leaf, one.split_dim, chunks))
        else:
            columns.append([leaf] * chunks)
    return [tree_unflatten([column[i] for column in columns], shape) for i in range(chunks)]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: Any = None,
    kwargs_chunk_spec: Any = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The positional and the keyword arguments of each part."""
    return split_tree(tuple(args), args_chunk_spec, chunks), split_tree(kwargs or {}, kwargs_chunk_spec, chunks)


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """The outputs of all parts in one: tensors are joined, of other things the first is kept."""
    columns = [tree_flatten(chunk)[0] for chunk in chunks]
    shape = tree_flatten(chunks[0])[1]
    wanted = [TensorChunkSpec(0)] * len(columns[0]) if chunk_spec is None else tree_flatten(chunk_spec)[0]
    merged = []
    for index, one in enumerate(wanted):
        values = [column[index] for column in columns]
        if isinstance(one, TensorChunkSpec) and isinstance(values[0], Tensor):
            merged.append(torch.cat(values, dim=one.split_dim))
        else:
            merged.append(values[0])
    return tree_unflatten(merged, shape)
