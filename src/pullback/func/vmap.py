"""vmap: a function of single examples, applied to a batch of them at once.

The function gets tensors without the batch dimension; each op runs on the whole batch (see pullback.batching).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from pullback._modes import transforming
from pullback._pytree import TreeSpec, broadcast_to, tree_flatten, tree_leaves, tree_unflatten
from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trimming
from pullback.batching import run  # noqa: F401 (attaches how ops run on batches)
from pullback.batching.allocating import drawing_allowed
from pullback.batching.tensor import at_level, batched, entered, level_of
from pullback.ops.random.generator import default_generator
from pullback.ops.shape.dims import movedim
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import expand, unsqueeze
from pullback.ops.shape.stacking import tensor_split


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function mapped over a dimension of its inputs.

    Args:
        func: takes and returns tensors, or tuples, lists and dicts of them.
        in_dims: the dimension to map over, None for inputs that are the same for all; may have the inputs' structure.
        out_dims: where the mapped dimension appears in the outputs.
        randomness: what random ops do: "error", "different" for each entry, or the "same" for all.
        chunk_size: how many entries to compute at once; None for all.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @trimming
    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        check_out_dims(out_dims, func)
        size, dims, leaves, spec = mapped_inputs(in_dims, args, func)
        if chunk_size is None:
            return call_mapped(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
        return in_chunks(func, size, dims, leaves, spec, out_dims, randomness, kwargs, chunk_size)

    return mapped


def name_of(func: Any) -> str:
    """How errors call a function."""
    if hasattr(func, "__name__"):
        return str(func.__name__)
    return f"functools.partial({name_of(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


def call_mapped(
    func: Callable[..., Any],
    size: int,
    dims: list[Any],
    leaves: list[Any],
    spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
) -> Any:
    """One call for the whole batch."""
    with entered(size, randomness) as level, drawing_allowed(), transforming():
        inputs = [
            leaf if dim is None else batched(leaf, dim, level.number) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        outputs = func(*tree_unflatten(inputs, spec), **kwargs)
        return mapped_outputs(outputs, out_dims, level.number, size, func)


# ------------------------------------------------------------------ inputs


def mapped_inputs(in_dims: Any, args: tuple[Any, ...], func: Any) -> tuple[int, list[Any], list[Any], TreeSpec]:
    """The size of the batch, and the leaves of the inputs with the dimension each is mapped over."""
    start = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{start}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_to(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{start}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        ndim = leaf.dim()
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"{start}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {ndim} so "
                f"expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims[i] = dim % ndim
    return batch_size(leaves, dims), dims, leaves, spec


def batch_size(leaves: list[Any], dims: list[Any]) -> int:
    """The one size of all mapped dimensions."""
    sizes = [leaf._array.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0]  # type: ignore[no-any-return]


# ------------------------------------------------------------------ outputs


def check_out_dims(out_dims: Any, func: Any) -> None:
    """Raise unless out_dims is made of ints and None."""
    for dim in tree_leaves(out_dims):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )


def mapped_outputs(outputs: Any, out_dims: Any, level: int, size: int, func: Any) -> Any:
    """The outputs with the mapped dimension back in its place."""
    leaves, spec = tree_flatten(outputs)
    if isinstance(outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims: list[Any] | None = list(out_dims)
    else:
        dims = broadcast_to(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    shown = name_of(func)
    return tree_unflatten(
        [mapped_output(leaf, dim, level, size, shown) for leaf, dim in zip(leaves, dims, strict=True)], spec
    )


def mapped_output(output: Any, out_dim: int | None, level: int, size: int, shown: str) -> Any:
    """One output with the mapped dimension at `out_dim`."""
    if out_dim is None:
        if level_of(output) == level and at_level(output, level)[1] is not None:
            raise ValueError(f"vmap({shown}, ...): `{shown}` can not return a BatchedTensor when out_dim is None")
        return at_level(output, level)[0] if isinstance(output, Tensor) else output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({shown}, ...): `{shown}` must only return Tensors, got type {type(output)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    value, dim = at_level(output, level)
    if dim is None:
        value = expand(unsqueeze(value, 0), (size, *value._array.shape))
        dim = 0
    ndim = value._array.ndim
    if not -ndim <= out_dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {out_dim})"
        )
    return value if dim == out_dim % ndim else movedim(value, dim, out_dim)


# ------------------------------------------------------------------ chunks


def in_chunks(
    func: Callable[..., Any],
    size: int,
    dims: list[Any],
    leaves: list[Any],
    spec: TreeSpec,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
    chunk_size: int,
) -> Any:
    """One call for every `chunk_size` entries, results put together."""
    sizes = [chunk_size] * (size // chunk_size) + ([size % chunk_size] if size % chunk_size else [])
    ends = tuple(accumulate(sizes))[:-1]
    parts = [
        tensor_split(leaf, ends, dim) if dim is not None else [leaf] * len(sizes)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    state = default_generator.get_state() if randomness == "same" else None
    rows, out_spec = [], spec
    for length, chunk in zip(sizes, zip(*parts, strict=True), strict=True):
        if state is not None:
            default_generator.set_state(state)
        outputs = call_mapped(func, length, dims, list(chunk), spec, out_dims, randomness, kwargs)
        flat, out_spec = tree_flatten(outputs)
        rows.append(flat)
    where = broadcast_to(out_dims, out_spec) or [0] * out_spec.num_leaves
    columns = [
        column[0] if dim is None else cat(list(column), dim)
        for column, dim in zip(zip(*rows, strict=True), where, strict=True)
    ]
    return tree_unflatten(columns, out_spec)
