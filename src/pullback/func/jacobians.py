"""Whole matrices of derivatives: jacrev by rows, jacfwd by columns, hessian by columns of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from pullback._pytree import tree_flatten, tree_unflatten
from pullback.autograd.tracebacks import trimming
from pullback.func.arguments import check_real, positions, selected, with_aux
from pullback.func.forward import pushed
from pullback.func.reverse import pulled
from pullback.func.vmap import vmap
from pullback.ops.create.filled import zeros
from pullback.ops.shape.dims import movedim
from pullback.ops.shape.join import cat


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` by backward passes, `chunk_size` rows at a time."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @trimming
    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacrev", args, "inputs")
        which = positions(argnums, len(args))
        output, pull, aux = pulled(func, args, which, has_aux)
        outputs, out_spec = tree_flatten(output)
        check_real("jacrev", outputs, "outputs")
        inputs, in_spec = tree_flatten(selected(args, which))
        parts: list[list[Any]] = [[] for _ in inputs]
        for basis in bases(outputs, chunk_size):
            rows = vmap(lambda *starts: tuple(tree_flatten(pull(tree_unflatten(starts, out_spec)))[0]))(*basis)
            for column, row in zip(parts, rows, strict=True):
                column.append(row)
        stacked = [column[0] if len(column) == 1 else cat(column, 0) for column in parts]
        split = [rows.split([out.numel() for out in outputs]) for rows in stacked]
        matrices = []
        for i, out in enumerate(outputs):
            blocks = [rows[i].reshape((*out.shape, *given.shape)) for rows, given in zip(split, inputs, strict=True)]
            matrices.append(tree_unflatten(blocks, in_spec))
        result = tree_unflatten(matrices, out_spec)
        return (result, aux) if has_aux else result

    return jacobian


def bases(tensors: list[Any], chunk_size: int | None) -> Iterator[tuple[Any, ...]]:
    """The directions of all elements of all tensors, some at a time: for each tensor [directions, *its shape]."""
    numels = [tensor.numel() for tensor in tensors]
    total = sum(numels)
    step = total if not chunk_size or chunk_size >= total else chunk_size
    for first in range(0, max(total, 1), max(step, 1)):
        count = min(step, total - first)
        chunk = []
        for i, (tensor, numel) in enumerate(zip(tensors, numels, strict=True)):
            directions = zeros(count, numel, dtype=tensor.dtype, device=tensor.device)
            start = sum(numels[:i])
            directions.diagonal(first - start).fill_(1)
            chunk.append(directions.view(count, *tensor.shape))
        yield tuple(chunk)


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` by forward passes, all columns at a time."""

    @trimming
    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        check_real("jacfwd", args, "inputs")
        which = positions(argnums, len(args))
        inputs, in_spec = tree_flatten(selected(args, which))
        (basis,) = bases(inputs, None)

        def column(*directions: Any) -> Any:
            out = pushed(func, args, which, tree_unflatten(directions, in_spec), False, has_aux)
            check_real("jacfwd", out[0], "outputs")
            return out[1:] if has_aux else out[1]

        results = vmap(column, randomness=randomness)(*basis)
        aux = None
        if has_aux:
            results, aux = with_aux(results, "jacfwd")
            flat_aux, aux_spec = tree_flatten(aux)
            aux = tree_unflatten([value[0] for value in flat_aux], aux_spec)
        outputs, out_spec = tree_flatten(results)
        numels = [given.numel() for given in inputs]
        matrices = []
        for out in outputs:
            columns = movedim(out, 0, -1).split(numels, -1)
            blocks = [block.view((*out.shape[1:], *given.shape)) for block, given in zip(columns, inputs, strict=True)]
            matrices.append(tree_unflatten(blocks, in_spec))
        result = tree_unflatten(matrices, out_spec)
        return (result, aux) if has_aux else result

    return jacobian


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of `func`: forward mode over backward mode."""
    return jacfwd(jacrev(func, argnums), argnums)
