"""Sparse Jacobians and Hessians: as many passes as colours, instead of one per column.

Columns that share no row can be computed together: the derivative along the sum of their directions holds the entries
of all of them, each in rows of its own. So the columns are coloured, columns that share a row differently, and one
forward pass per colour (or, for rows, one backward pass) gives the whole matrix. Where the entries are is found out
once: from the derivatives at the given point and at random points around it, whose zeros are zeros of the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._runtime.building import loaded
from pullback._tensor import Tensor, wrap
from pullback.func.arguments import check_real, position
from pullback.func.forward import pushed
from pullback.func.reverse import grad, pulled
from pullback.func.vmap import vmap

POINTS = 2
"""Random points, besides the given one, where the pattern is looked for."""


def jacobian_sparse(
    func: Callable[..., Any], argnums: int = 0, *, pattern: Any = None, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` as a scipy.sparse matrix [output elements, input elements].

    Args:
        func: returns one tensor.
        argnums: for which argument.
        pattern: where entries may differ from zero (a matrix, dense or sparse); without it, the first call finds out.
        chunk_size: how many columns to look at together while finding out.
    """
    plans: dict[Any, Plan] = {}

    @functools.wraps(func)
    def jacobian(*args: Any) -> Any:
        which = position(argnums, len(args))
        given = args[which]
        check_real("jacobian_sparse", args, "inputs")
        output, pull, _ = pulled(func, args, which)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"jacobian_sparse: Expected func to return one Tensor, got {type(output)}")
        shape = (output.numel(), given.numel())
        plan = plans.get(shape)
        if plan is None:
            found = as_pattern(pattern, shape) if pattern is not None else found_pattern(func, args, which, chunk_size)
            plan = plans[shape] = Plan(found)
        if plan.by_rows:
            return plan.matrix(vmap(pull)(plan.directions(output)))

        def push(direction: Any) -> Any:
            return pushed(func, args, which, direction, False, False)[1]

        return plan.matrix(vmap(push)(plan.directions(given)))

    return jacobian


def hessian_sparse(
    func: Callable[..., Any], argnums: int = 0, *, pattern: Any = None, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that computes the Hessian of a scalar function as a scipy.sparse matrix."""
    slope = grad(func, argnums)
    return jacobian_sparse(slope, argnums, pattern=pattern, chunk_size=chunk_size)


# ------------------------------------------------------------------ where the entries are


def as_pattern(pattern: Any, shape: tuple[int, int]) -> Any:
    """A given pattern as a sparse matrix of ones."""
    found = loaded("scipy.sparse").csr_matrix(pattern.numpy() if isinstance(pattern, Tensor) else pattern).astype(bool)
    found.sum_duplicates()
    if found.shape != shape:
        raise ValueError(f"the pattern has shape {found.shape}, but the matrix has {shape}")
    return found


def found_pattern(func: Callable[..., Any], args: tuple[Any, ...], which: int, chunk_size: int | None) -> Any:
    """Where the Jacobian differs from zero, here or at random points around."""
    given = args[which]
    generator = np.random.Generator(np.random.PCG64(0))
    size = given.numel()
    step = chunk_size or max(1, min(size, 4096))
    rows, columns, count = [], [], 0
    for point in range(POINTS + 1):
        array = given._array
        if point:
            array = (array + 0.1 * generator.standard_normal(array.shape) * (1 + np.abs(array))).astype(array.dtype)
        moved = (*args[:which], wrap(array), *args[which + 1 :])

        def column(direction: Any, moved: tuple[Any, ...] = moved) -> Any:
            return pushed(func, moved, which, direction, False, False)[1]

        for first in range(0, size, step):
            last = min(first + step, size)
            unit = np.zeros((last - first, size), array.dtype)
            unit[np.arange(last - first), np.arange(first, last)] = 1
            block = vmap(column)(wrap(unit.reshape((last - first, *array.shape))))
            moved_by, moving = np.nonzero(block._array.reshape(last - first, -1).T)
            rows.append(moved_by)
            columns.append(moving + first)
            count = block._array.size // (last - first)
    # Each place once: what SciPy makes of places named several times depends on its version.
    places = np.unique(np.concatenate(rows) * size + np.concatenate(columns))
    return loaded("scipy.sparse").csr_matrix(
        (np.ones(places.size, bool), divmod(places, max(size, 1))), shape=(count, size)
    )


# ------------------------------------------------------------------ which are computed together


def coloured(pattern: Any) -> Any:
    """A colour for every column, greedily: columns that share a row get different ones."""
    rows, columns = pattern.tocsr(), pattern.tocsc()
    colours = np.full(pattern.shape[1], -1)
    # Columns with many entries first: they are the hardest to place.
    for column in np.argsort(-np.diff(columns.indptr), kind="stable"):
        own = columns.indices[columns.indptr[column] : columns.indptr[column + 1]]
        taken: set[int] = set()
        for row in own:
            taken.update(colours[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]].tolist())
        colour = 0
        while colour in taken:
            colour += 1
        colours[column] = colour
    return colours


class Plan:
    """The pattern of a matrix, and the colours of its columns or, if these are fewer, of its rows."""

    def __init__(self, pattern: Any) -> None:
        columns, rows = coloured(pattern), coloured(pattern.T.tocsr())
        self.by_rows = bool(pattern.size) and rows.max(initial=0) < columns.max(initial=0)
        self.colours = rows if self.by_rows else columns
        self.count = int(self.colours.max(initial=0)) + 1
        self.shape = pattern.shape
        entries = pattern.tocoo()
        self.row, self.column = entries.row, entries.col

    def directions(self, like: Tensor) -> Tensor:
        """One direction per colour: the sum of the unit vectors of that colour."""
        out = np.zeros((self.count, self.colours.size), like._array.dtype)
        out[self.colours, np.arange(self.colours.size)] = 1
        return wrap(out.reshape((self.count, *like._array.shape)))

    def matrix(self, results: Any) -> Any:
        """The sparse matrix from the derivatives along the directions."""
        values = results._array.reshape(self.count, -1)
        if self.by_rows:
            entries = values[self.colours[self.row], self.column]
        else:
            entries = values[self.colours[self.column], self.row]
        return loaded("scipy.sparse").csr_matrix((entries, (self.row, self.column)), shape=self.shape)
