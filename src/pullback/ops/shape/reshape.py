"""Shapes: view, reshape, flatten, and dimensions of size one that come, go and stretch."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from pullback._arrays.memory import memory_of
from pullback._arrays.sizes import check_ints, check_numel, translated
from pullback._dtype import FROM_NUMPY, dtype
from pullback._op.define import Array, explain, function, linear, op
from pullback._runtime import messages
from pullback._tensor import Size, Tensor, normal_dim
from pullback._thresholds import LARGE
from pullback.autograd.tracebacks import trim
from pullback.kernels.jit.pointwise.fused import row_major_copy
from pullback.kernels.jit.small.choose import Viewing
from pullback.kernels.numpy.index import strided
from pullback.ops.shape.bytes_view import no_view, view_dtype
from pullback.ops.supported import listed

# ------------------------------------------------------------------ what formulas of every topic use


@op(space=None, vmap="zeros")
def zeros_of(like: Array, size: Any) -> Array:
    """Zeros of a shape, in the dtype of another tensor."""
    return np.zeros(size, like.dtype)


def ints(name: str, what: str, args: Any) -> tuple[int, ...]:
    """Sizes or dims as a tuple of ints, whether they came as one sequence or one by one."""
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = args[0]
    for arg in args:
        if type(arg) is not int:
            alone = len(args) == 1
            return tuple([arg if type(arg) is int else an_int(name, what, arg, i, alone) for i, arg in enumerate(args)])
    return tuple(args)


def an_int(name: str, what: str, value: Any, position: int, alone: bool) -> int:
    """One size that is no plain int: a tensor, a NumPy number, or a bool behind the first place."""
    try:
        if isinstance(value, bool) and position == 0:
            raise TypeError("not an integer")
        return int(index(value))
    except TypeError:
        kind = messages.type_name(value)
        found = f"not {kind}" if alone else f"but found element of type {kind} at pos {position}"
        raise TypeError(f"{name}(): argument '{what}' (position 1) must be tuple of ints, {found}") from None


# ------------------------------------------------------------------ view and reshape


def inferred(size: Sequence[int], numel: int) -> tuple[int, ...]:
    """A shape with its -1 filled in; raises torch's errors for shapes that cannot hold `numel` elements."""
    known, unknown = 1, None
    for i, n in enumerate(size):
        if n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {messages.shape_text(size)}")
        else:
            known *= n
    if known == numel and unknown is None:
        return tuple(size)
    if unknown is not None and known == 0 == numel:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {messages.shape_text(size)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    if unknown is None or known == 0 or numel % known:
        raise RuntimeError(f"shape '{messages.shape_text(size)}' is invalid for input of size {numel}")
    return (*size[:unknown], numel // known, *size[unknown + 1 :])


def check_view(self: Array, size: Any) -> None:
    """Raise torch's errors for a shape this memory cannot be seen in."""
    size = inferred(ints("view", "size", (size,)), self.size)
    if not viewable(self, size):
        raise RuntimeError(NOT_VIEWABLE)


NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


def viewable(self: Any, size: Any) -> bool:
    """True if the elements can be seen in another shape without moving."""
    array = getattr(self, "_array", self)
    if array.flags.c_contiguous:
        return True
    try:
        return memory_of(array.reshape(size)) is memory_of(array)
    except MemoryError as error:
        raise translated(error) from None


@op(
    view=True,
    space=None,
    name="view",
    check=check_view,
    vmap="reshaped",
    self=lambda grad, self_sym_sizes: reshape_to(grad, self_sym_sizes),
    result=lambda self_t, size: reshape_to(self_t, size),
)
def view_(self: Array, size: Any) -> Array:
    """The same memory in another shape."""
    return VIEW.head(self, size)


def plain_view(self: Array, size: Any) -> Array:
    """The same by NumPy, which would also copy."""
    out = self.reshape(size)
    if out.shape != size and min(size) < -1:
        raise ValueError("NumPy takes any negative size for -1")
    if not self.flags.c_contiguous and memory_of(out) is not memory_of(self):
        raise ValueError("the elements would have to move")
    return strided.with_view_strides(self, out) if 1 in self.shape else out


VIEW = Viewing(plain_view, "viewing")


@op(
    view=True,
    space=None,
    vmap="reshaped",
    self=lambda grad, self_sym_sizes: reshape_to(grad, self_sym_sizes),
    result=lambda self_t, size: reshape_to(self_t, size),
)
def reshape_alias(self: Array, size: Any) -> Array:
    """Another shape for memory with gaps, where nothing need move."""
    return self.reshape(size)


@op(
    space=None,
    vmap="reshaped",
    self=lambda grad, self_sym_sizes: reshape_to(grad, self_sym_sizes),
    result=lambda self_t, size: reshape_to(self_t, size),
    name="_unsafe_view",
    node="UnsafeViewBackward0",
)
def unsafe_view(self: Array, size: Any) -> Array:
    """Another shape for memory nobody else looks at: not a view."""
    return self.reshape(size)


@op(vmap="leading", packed="moved", space=None, name="clone", self=lambda grad: grad, result=linear)
def clone_contiguous(self: Array) -> Array:
    """A copy in row-major order."""
    return self.copy("C") if self.size < LARGE else row_major_copy(self, self.dtype)


def reshape_to(self: Any, size: tuple[int, ...]) -> Any:
    """Another shape: a view if the elements need not move, else a copy."""
    if is_contiguous(self):
        return view_(self, size)
    return reshape_alias(self, size) if viewable(self, size) else unsafe_view(clone_contiguous(self), size)


def is_contiguous(self: Any) -> bool:
    """True if the elements of a tensor or array are contiguous without gaps."""
    return getattr(self, "_array", self).flags.c_contiguous


@function(raw=True, space=None)
def view(self: Tensor, *sizes: Any, size: Any = None, dtype: dtype | None = None) -> Tensor:
    """Return a view of the same memory in another shape (one size may be -1), or with its bytes read as `dtype`."""
    try:
        if dtype is not None:
            return view_dtype(self, dtype)
        if size is not None:
            sizes = (size,)
        if len(sizes) == 1 and type(sizes[0]) is not int:
            if type(sizes[0]) is DTYPE:
                return view_dtype(self, sizes[0])
            if not isinstance(sizes[0], (tuple, list, Tensor, np.generic)) and not hasattr(sizes[0], "__index__"):
                raise no_view(sizes)
            return view_(self, ints("view", "size", sizes))
        if not sizes or type(sizes[0]) is DTYPE:
            raise no_view(sizes)
        return view_(self, sizes)
    except Exception as error:
        trim(error)
        raise


DTYPE = dtype


@function(raw=True, explained=True, space=None)
def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a view of the same memory in the shape of `other`; short for `self.view(other.size())`."""
    try:
        return view_(self, other.shape)
    except Exception as error:
        trim(error)
        raise


@function(raw=True, numpy=("reshape",))
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Give a tensor another shape, keeping the order of its elements.

    One size may be -1: it is worked out from the others. A view where the strides allow it, else a copy.
    """
    try:
        if shape is not None:
            sizes = (shape,)
        elif not sizes:
            raise TypeError('reshape() missing 1 required positional arguments: "shape"')
        size = ints("reshape", "shape", sizes)
        return (
            view_(input, size) if input._array.flags.c_contiguous else reshape_to(input, inferred(size, input.numel()))
        )
    except Exception as error:
        explain(error, reshape, input, *sizes)
        raise


@function(raw=True, explained=True, space=None)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Reshape to the shape of `other`: a view where the strides allow it, else a copy."""
    try:
        return reshape_to(self, inferred(other.shape, self.numel()))
    except Exception as error:
        trim(error)
        raise


@function(raw=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dimensions from `start_dim` to `end_dim`, both included, into one; by default all of them."""
    try:
        self = input
        shape = self._array.shape
        if start_dim == 0 and end_dim == -1 and shape:
            if len(shape) == 1:
                return self
            if self._array.flags.c_contiguous:
                return view_(self, (-1,))
        first, last = index(normal_dim(start_dim, len(shape))), index(normal_dim(end_dim, len(shape)))
        if first > last:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if not shape:
            return reshape_to(self, (1,))
        if first == last:
            return self
        return reshape_to(self, (*shape[:first], Size(shape[first : last + 1]).numel(), *shape[last + 1 :]))
    except Exception as error:
        explain(error, flatten, input, start_dim, end_dim)
        raise


@function()
def unflatten(self: Array, dim: int, sizes: Any) -> Array:
    """Split dimension `dim` into several of sizes `sizes`, whose product is its size; one of them may be -1."""
    sizes = ints("unflatten", "sizes", (sizes,))
    dim = normal_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    length = self.shape[dim]
    known = Size([n for n in sizes if n != -1]).numel()
    unknown = sizes.count(-1)
    if unknown > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    if (known != length and not unknown) or (unknown and (known == 0 or length % known)):
        raise RuntimeError(
            f"unflatten: Provided sizes {messages.shape_text(sizes)} don't multiply up to the size of dim {dim} "
            f"({length}) in the input tensor"
        )
    sizes = [length // known if n == -1 else n for n in sizes]
    return view_(self, (*self.shape[:dim], *sizes, *self.shape[dim + 1 :]))


@function(raw=True, numpy=("ravel",))
def ravel(input: Tensor) -> Tensor:
    """Flatten a tensor to one dimension, contiguous in memory; copies only if the elements have to move."""
    try:
        array = input._array
        return view_(input if array.flags.c_contiguous else clone_contiguous(input), (array.size,))
    except Exception as error:
        explain(error, ravel, input)
        raise


# ------------------------------------------------------------------ dimensions of size one


def wrapped(dim: int, ndim: int) -> int:
    """A dimension counted from the front; raises for one that does not exist."""
    if not -ndim <= dim < ndim:
        raise IndexError(messages.dim_out_of_range(dim, ndim))
    return dim + ndim if dim < 0 else dim


@op(sparse="widened", vmap="new_dims", view=True, numpy=("expand_dims",),
    self=lambda grad, dim: squeeze_dim(grad, dim), result=linear, inplace=False)  # fmt: skip
def unsqueeze(self: Array, dim: int) -> Array:
    """Insert a dimension of size one at position `dim`, which may be from `-ndim - 1` to `ndim`. Returns a view."""
    shape = self.shape
    if dim:
        dim = wrapped(dim, len(shape) + 1)
    if self.flags.c_contiguous and 1 not in shape:
        return VIEW.head(self, (*shape[:dim], 1, *shape[dim:]) if dim else (1, *shape))
    # Of a dimension of size one NumPy does not know the stride torch would give it.
    return strided.unsqueeze(self, dim)


@op(
    view=True,
    space=None,
    name="squeeze",
    vmap="squeezed",
    self=lambda grad, self_sym_sizes: unsqueeze_where(grad, range(len(self_sym_sizes)), self_sym_sizes),
    result=linear,
)
def squeeze_all(self: Array) -> Array:
    """Remove all dimensions of size one."""
    return self.squeeze()


@op(
    view=True,
    space=None,
    name="squeeze",
    node="SqueezeBackward1",
    self=lambda grad, self_sym_sizes, dim: unsqueeze_where(grad, (dim,), self_sym_sizes),
    result=linear,
)
def squeeze_dim(self: Array, dim: int) -> Array:
    """Remove one dimension, if it has size one."""
    at = wrapped(dim, self.ndim or 1)
    return self.squeeze(at) if self.ndim and self.shape[at] == 1 else self[...]


@op(
    vmap="given_dims",
    view=True,
    space=None,
    name="squeeze",
    node="SqueezeBackward2",
    self=lambda grad, self_sym_sizes, dim: unsqueeze_where(grad, dim, self_sym_sizes),
    result=linear,
)
def squeeze_dims(self: Array, dim: Any) -> Array:
    """Remove those of the given dimensions that have size one."""
    seen: set[int] = set()
    for d in dim:
        d = wrapped(d, self.ndim or 1)
        if d in seen:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        seen.add(d)
    return self.squeeze(tuple([d for d in seen if self.ndim and self.shape[d] == 1]))


def unsqueeze_where(grad: Any, dims: Any, sizes: tuple[int, ...]) -> Any:
    """Bring back those of the given dimensions that had size one, the first of them first."""
    ndim = len(sizes)
    for dim in sorted([d % ndim for d in dims]) if ndim else ():
        if sizes[dim] == 1:
            grad = unsqueeze(grad, dim)
    return grad


@function(numpy=("squeeze",))
def squeeze(self: Array, dim: Any = None) -> Array:
    """Remove the dimensions of size one: all of them, or only those in `dim` (an int or a tuple). Returns a view."""
    if dim is None:
        return squeeze_all(self)
    return squeeze_dim(self, dim) if type(dim) is int else squeeze_dims(self, ints("squeeze", "dim", (dim,)))


def unsqueeze_multiple(grad: Any, dim: Any, ndim: int) -> Any:
    """Bring back reduced dimensions as dimensions of size one."""
    if type(dim) is int:
        return unsqueeze(grad, dim % ndim)
    for d in sorted([d % ndim for d in dim]) if dim is not None and len(dim) else range(ndim):
        grad = unsqueeze(grad, d)
    return grad


# ------------------------------------------------------------------ stretching


def check_expand(self: Array, size: Any) -> None:
    """Raise torch's errors for a shape the tensor cannot be stretched to."""
    shape, lead = self.shape, len(size) - self.ndim
    if lead < 0:
        kind = FROM_NUMPY[self.dtype].scalar_type
        raise RuntimeError(
            f"expand(torch.{kind}Tensor{{{messages.shape_text(shape)}}}, size={messages.shape_text(size)}): the number "
            f"of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    for dim in reversed(range(len(size))):
        n = size[dim]
        if dim < lead and n < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing dimension {dim}"
            )
        if dim >= lead and n not in (-1, shape[dim - lead]) and (shape[dim - lead] != 1 or n < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({shape[dim - lead]}) at "
                f"non-singleton dimension {dim}.  Target sizes: {messages.shape_text(size)}.  Tensor sizes: "
                f"{messages.shape_text(shape)}"
            )
    check_ints("expand", {"size": size})
    check_numel([shape[dim - lead] if n == -1 else n for dim, n in enumerate(size)])


@op(
    view=True,
    space=None,
    check=lambda self, size: check_expand(self, ints("expand", "size", (size,))),
    vmap="expanded",
    self=lambda grad, self_sym_sizes: grad,
    result=linear,
)
def expand(self: Array, size: Any) -> Array:
    """Stretch dimensions of size one, without copying."""
    return EXPAND.head(self, size)


EXPAND = Viewing(strided.expand, "stretching")


@function(raw=True, space=None, name="expand")
def expand_method(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Expand dimensions of size one to the given sizes without copying; -1 keeps a size, new dimensions go in front."""
    try:
        if size is None:
            if len(sizes) > 1 and type(sizes[0]) is int:
                return expand(self, sizes)
            sizes = sizes or ((),)
        return expand(self, ints("expand", "size", sizes if size is None else (size,)))
    except Exception as error:
        trim(error)
        raise


@function(raw=True, explained=True, space=None)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand dimensions of size one to the shape of `other`, without copying."""
    try:
        return expand(self, tuple(other.shape))
    except Exception as error:
        trim(error)
        raise


@function(numpy=("broadcast_to",))
def broadcast_to(self: Array, size: Any) -> Array:
    """Broadcast a tensor to the shape `size` as a view: expanded dimensions get stride zero and nothing is copied."""
    return expand(self, ints("broadcast_to", "size", (size,)))


@function(raw=True, method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Broadcast all tensors to their common shape; returns a tuple of views, which share memory with the originals."""
    tensors = listed(tensors)
    shape: tuple[int, ...] = ()
    for tensor in tensors:
        shape = common_shape(shape, tensor.shape)
    return tuple([tensor if tuple(tensor.shape) == shape else expand(tensor, shape) for tensor in tensors])


def common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two shapes broadcast to, or torch's error."""
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    for dim in reversed(range(ndim)):
        if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
            raise RuntimeError(messages.size_mismatch(a[dim], b[dim], dim))
    return tuple([m if n == 1 else n for n, m in zip(a, b, strict=True)])
