"""Shapes of nested tensors of the jagged layout: the batch stays in front, and the ragged dimension as it is."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback.nested.jagged import NestedTensor, gathered, inner, rule, wrapped
from pullback.nested.tensor import NestedInt, first_of, refuse, sizes_text


@rule
def permute(self: Any, *dims: Any) -> Any:
    """The dimensions in another order; the batch stays in front."""
    order = [wrapped(d, self.dim()) for d in (dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)]
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = self._values.permute([d - 1 for d in order[1:]])
    return NestedTensor.around(values, self.ragged, order.index(self._ragged_idx))


@rule
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    a, b = wrapped(dim0, self.dim()), wrapped(dim1, self.dim())
    if a != b and 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    order = list(range(self.dim()))
    order[a], order[b] = b, a
    return permute(self, order)


@rule
def view(self: Any, *size: Any) -> Any:
    """The same elements in another shape: the batch in front, and the ragged dimension as it is."""
    sizes = list(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    place = self._ragged_idx
    given = next((d for d, n in enumerate(sizes) if isinstance(n, NestedInt)), None)
    if given is None:
        given = place if place < len(sizes) and sizes[place] == -1 else None
    if not sizes or sizes[0] not in (len(self), -1) or given is None:
        refuse(f"view(): cannot view shape {sizes_text(self.shape)} as {sizes}")
    sizes[given] = self._values.shape[place - 1]
    return NestedTensor.around(self._values.reshape(sizes[1:]), self.ragged, given)


NestedTensor.rules["reshape"] = view


@rule
def expand(self: Any, *size: Any) -> Any:
    """The shape it has: nothing else fits."""
    sizes = list(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    if sizes != list(self.shape):
        refuse(f"expand(): cannot expand shape {sizes_text(self.shape)} -> {sizes}")
    return self


@rule
def view_as(self: Any, other: Any) -> Any:
    """The shape of another."""
    return view(self, other.shape)


@rule
def unsqueeze(self: Any, dim: int) -> Any:
    """One dimension more, of size 1."""
    dim = wrapped(dim, self.dim() + 1)
    if dim == 0:
        refuse("unsqueeze(): not supported for NestedTensor on dim=0")
    place = self._ragged_idx + (dim <= self._ragged_idx)
    return NestedTensor.around(self._values.unsqueeze(dim - 1), self.ragged, place)


@rule
def squeeze(self: Any, dim: Any = None) -> Any:
    """Without dimensions of size 1."""
    if dim is None:
        refuse("squeeze(): not supported for NestedTensor without a dim")
    own = inner(self, dim, "squeeze")
    values = self._values.squeeze(own)
    gone = values.dim() < self._values.dim() and own + 1 < self._ragged_idx
    return NestedTensor.around(values, self.ragged, self._ragged_idx - gone)


@rule
def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Several dimensions as one; the ragged one is not among them."""
    start, end = wrapped(start_dim, self.dim()), wrapped(end_dim, self.dim())
    if start == end:
        return self
    if start == 0:
        refuse("flatten(): not supported for NestedTensor on dim=0")
    if start <= self._ragged_idx <= end:
        refuse("flatten(): not supported for NestedTensor on ragged dim")
    place = self._ragged_idx - (end - start if end < self._ragged_idx else 0)
    return NestedTensor.around(self._values.flatten(start - 1, end - 1), self.ragged, place)


@rule
def unflatten(self: Any, dim: int, sizes: Any) -> Any:
    """One dimension as several."""
    own = inner(self, dim, "unflatten")
    place = self._ragged_idx + (len(sizes) - 1 if own + 1 < self._ragged_idx else 0)
    return NestedTensor.around(self._values.unflatten(own, sizes), self.ragged, place)


@rule
def chunk(self: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """In so many pieces: of the batch, or of each row of a sequence."""
    if wrapped(dim, self.dim()) == 0:
        parts = self.parts()
        step = -(-len(parts) // chunks)
        groups = [parts[i : i + step] for i in range(0, len(parts), step)]
        return tuple([gathered(group, self._ragged_idx - 1) for group in groups])
    return tuple([self.like(piece) for piece in self._values.chunk(chunks, inner(self, dim, "chunk"))])


@rule
def split(self: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """In pieces of these sizes."""
    own = inner(self, dim, "split")
    return tuple([self.like(piece) for piece in self._values.split(split_size_or_sections, own)])


NestedTensor.rules["split_with_sizes"] = split


@rule
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    """A piece of each row."""
    return self.like(self._values.narrow(inner(self, dim, "narrow"), start, length))


@rule
def select(self: Any, dim: int, index: int) -> Any:
    """One sequence, or one entry of each row."""
    if wrapped(dim, self.dim()) == 0:
        return self.parts()[index]
    own = inner(self, dim, "select")
    return NestedTensor.around(
        self._values.select(own, index), self.ragged, self._ragged_idx - (own + 1 < self._ragged_idx)
    )


@rule
def __getitem__(self: Any, key: Any) -> Any:
    """One sequence, and what follows of it; or a part of each row."""
    part, keys = first_of(self, key)
    if part is not None:
        return part
    if Ellipsis in [one for one in keys if one is Ellipsis]:
        at = next(i for i, one in enumerate(keys) if one is Ellipsis)
        whole = self.dim() - (len(keys) - 1 - sum([one is None for one in keys]))
        keys[at : at + 1] = [slice(None)] * whole
    elif (keys and keys[0] != slice(None)) or len(keys) > 1:
        refuse("slice(): not supported for NestedTensor on dim=0")
    out, dim = self, 0
    for one in keys:
        if one is None:
            out = unsqueeze(out, dim)
            dim += 1
        elif isinstance(one, int):
            out = select(out, dim, one)
        elif one == slice(None):
            dim += 1
        elif isinstance(one, slice):
            own = inner(out, dim, "slice")
            out = out.like(out._values[(slice(None),) * own + (one,)])
            dim += 1
        else:
            raise NotImplementedError("aten.index.Tensor is not implemented for nested tensors; use unbind()")
    return out


@rule
def cat(tensors: Any, dim: int = 0) -> Any:
    """Several of one shape, one beside the other."""
    first = tensors[0]
    if not all([isinstance(one, NestedTensor) and one.ragged is first.ragged for one in tensors]):
        refuse("cat(): expected all tensors to be nested tensors with the same offsets")
    return first.like(torch.cat([one._values for one in tensors], inner(first, dim, "cat")))


@rule
def stack(tensors: Any, dim: int = 0) -> Any:
    """Several of one shape, along a new dimension."""
    return (
        cat([unsqueeze(one, dim) for one in tensors], dim)
        if dim
        else refuse("stack(): not supported for NestedTensor on dim=0")
    )


NestedTensor.rules |= {"concat": cat, "concatenate": cat}
