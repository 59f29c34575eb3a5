"""Elements taken several times: repeat_interleave, cartesian_prod, combinations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._arrays.sizes import LARGEST, check_ints, check_numel, check_storage
from pullback._op.define import Array, function
from pullback._runtime import messages
from pullback._tensor import Tensor, fresh, normal_dim
from pullback.ops.index.gather import index_select
from pullback.ops.index.masked import masked_select
from pullback.ops.shape.join import stack
from pullback.ops.shape.reshape import clone_contiguous, expand, flatten, reshape_to, unsqueeze
from pullback.ops.shape.stacking import meshgrid
from pullback.ops.supported import all_tensors


@function()
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each element of a tensor, the copies next to each other: `[a, b]` twice is `[a, a, b, b]`.

    `repeats` is one int for all, or a vector with a count for each index of `dim`. Without `dim` the input is
    flattened first. `output_size` may give the resulting size of the dimension; it must be right.
    Called with one argument, a vector of counts, it returns the indices: `[2, 1]` gives `[0, 0, 1]`.
    """
    if repeats is None:
        return fresh(interleaved(input, output_size))
    if dim is None:
        input, dim = flatten(input), 0
    dim = normal_dim(dim, input.ndim)
    if not isinstance(repeats, Tensor):
        if isinstance(repeats, bool):
            raise TypeError("repeat_interleave(): argument 'repeats' must be int, not bool")
        check_ints("repeat_interleave", {"repeats": repeats})
        expected = (input.shape[dim] if input.ndim else 1) * repeats
        if output_size is not None and repeats >= 0 and output_size != expected:
            raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {expected} but got {output_size}")
        return repeat_equally(input, repeats, dim)
    size = input.shape[dim] if input.ndim else 1
    if repeats.ndim == 0 or (repeats.ndim == 1 and repeats.shape[0] == 1):
        repeats = expand(reshape_to(repeats, (1,)), (size,))
    elif repeats.ndim != 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    elif repeats.shape[0] != size:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} and "
            f"input.size({dim}) = {size}"
        )
    return index_select(input, dim, fresh(interleaved(repeats, output_size)))


def interleaved(repeats: Tensor, output_size: int | None) -> Array:
    """Index 0 as often as the first element says, index 1 as often as the second, and so on."""
    counts = repeats._array
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.dtype.name not in ("int64", "int32"):
        kind = repeats.dtype.scalar_type
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    total = sum(counts.tolist()) if counts.size and int(counts.max()) > LARGEST // counts.size else int(counts.sum())
    if output_size is not None and output_size != total and counts.size:
        raise RuntimeError("allocated size does not match required size")
    check_storage((total,), counts.dtype.itemsize)
    return made_on(repeats.device, np.repeat, np.arange(counts.size, dtype=counts.dtype), counts)  # type: ignore[no-any-return]


def repeat_equally(input: Tensor, repeats: int, dim: int) -> Tensor:
    """Every index of a dimension `repeats` times in a row."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if input.ndim == 0:
        input = unsqueeze(input, 0)
    shape = input.shape
    stretched = expand(unsqueeze(input, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return flatten(clone_contiguous(stretched), dim, dim + 1)


def check_vector(tensor: Tensor) -> None:
    """Raise torch's error for anything but a vector."""
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {messages.shape_text(tensor.shape)}")


@function(raw=True, method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """Return the Cartesian product of vectors: every way to take one element from each.

    Vectors of sizes `n` and `m` give `(n * m, 2)`, one combination per row, the last element varying fastest.
    A single vector is returned as it is.
    """
    for tensor in all_tensors(tensors):
        check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in meshgrid(*tensors, indexing="ij")], 1)


@function(method=False)
def combinations(self: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """Return all combinations of `r` elements of a vector, in the order of `itertools.combinations`.

    The result has shape `(number of combinations, r)`. With `with_replacement` an element may be taken repeatedly.
    """
    check_vector(self)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return fresh(made_on(self.device, np.empty, 0, self._array.dtype))
    if self.numel() <= 1 and r >= 64:  # more dimensions than an array has
        mask = fresh(np.full(self.numel(), with_replacement))
        return stack([masked_select(self, mask)] * r, 1)
    if r >= 64:
        raise RuntimeError("numel: integer multiplication overflow")
    check_numel((self.numel(),) * r)
    places = np.meshgrid(*[np.arange(self.numel())] * r, indexing="ij")
    taken = np.ones(places[0].shape, np.bool_)
    for earlier, later in pairwise(places):
        taken &= earlier <= later if with_replacement else earlier < later
    mask = fresh(made_on(self.device, np.asarray, taken))
    return stack([masked_select(grid, mask) for grid in meshgrid(*[self] * r, indexing="ij")], 1)
