"""The order of dimensions: permute, transpose, and the properties T, mT."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

from pullback._op.define import Array, function, linear, op
from pullback._runtime import messages
from pullback._runtime.warnings import warn_once
from pullback._tensor import Size, Tensor, normal_dim
from pullback.autograd.tracebacks import trim
from pullback.ops.shape.reshape import ints
from pullback.ops.shape.slicing import alias

DIMENSIONS = [frozenset(range(-ndim, ndim)) for ndim in range(65)]
"""By the number of dimensions how they are called: NumPy looks only at the lower half of the numbers of an order."""


def check_permute(self: Array, dims: Any) -> None:
    """Raise torch's errors for dims that are no order of all dimensions."""
    if len(dims) != self.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
        )
    seen = set()
    for dim in dims:
        dim = normal_dim(dim, self.ndim)
        if dim in seen:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen.add(dim)


@op(
    vmap="permuted",
    sparse="permuted",
    view=True,
    space=None,
    name="permute",
    check=check_permute,
    self=lambda grad, dims: permute_dims(grad, inverse(dims)),
    result=linear,
)
def permute_dims(self: Array, dims: Any) -> Array:
    """The dimensions in another order."""
    if len(dims) != self.ndim or not DIMENSIONS[self.ndim].issuperset(dims):
        raise ValueError("not an order of all dimensions")
    return self.transpose(dims)


def inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The order that undoes an order."""
    ndim = len(dims)
    places = {d % ndim: place for place, d in enumerate(dims)}
    return tuple([places[d] for d in range(ndim)])


@function(raw=True)
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Reorder the dimensions of a tensor.

    Dimension `i` of the result is dimension `dims[i]` of the input; every dimension must occur exactly once.
    The order is given as separate ints or as one tuple. Returns a view.
    """
    try:
        if not order and dims is None:
            raise TypeError('permute() missing 1 required positional arguments: "dims"')
        return permute_dims(input, ints("permute", "dims", order if dims is None else (dims,)))
    except Exception as error:
        trim(error)
        raise


def check_transpose(self: Array, dim0: int, dim1: int) -> None:
    """Both dimensions are there; of numbers of many digits NumPy says something else."""
    normal_dim(as_index(dim0), self.ndim)
    normal_dim(as_index(dim1), self.ndim)


@op(
    sparse="exchanged",
    view=True,
    check=check_transpose,
    self=lambda grad, dim0, dim1: transpose(grad, dim0, dim1),
    result=linear,
)
def transpose(self: Array, dim0: int, dim1: int) -> Array:
    """Swap the dimensions `dim0` and `dim1` of a tensor.

    For a matrix `transpose(0, 1)` is the usual transpose. Returns a view that shares its memory with the input.
    """
    if self.ndim == 0:
        normal_dim(as_index(dim0), 0)
        normal_dim(as_index(dim1), 0)
        return self[...]
    return self.swapaxes(dim0, dim1)


@function(numpy=("swapaxes",))
def swapaxes(self: Array, axis0: int, axis1: int) -> Array:
    """Swap the dimensions `axis0` and `axis1`; NumPy's name for `transpose`."""
    return transpose(self, axis0, axis1)


@function()
def swapdims(self: Array, dim0: int, dim1: int) -> Array:
    """Swap the dimensions `dim0` and `dim1`; another name for `transpose`."""
    return transpose(self, dim0, dim1)


@op(sparse="turned", view=True, vmap="transposed_matrix", self=lambda grad: t(grad), result=linear)
def t(self: Array) -> Array:
    """Transpose a matrix; tensors with fewer than two dimensions are returned as they are.

    Takes at most two dimensions (use `mT` or `transpose` for batches). Returns a view.
    """
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.transpose()


@function(aliases=("moveaxis",), numpy=("moveaxis",))
def movedim(self: Array, source: Any, destination: Any) -> Array:
    """Move dimensions to new positions; the remaining ones keep their order.

    `source` and `destination` are ints, or tuples of equal length: `source[i]` becomes dimension `destination[i]`.
    Returns a view.
    """
    source = ints("movedim", "source", (source,))
    destination = ints("movedim", "destination", (destination,))
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({messages.shape_text(source)} dims) should contain "
            f"the same number of dims as destination ({messages.shape_text(destination)} dims)"
        )
    ndim = self.ndim
    sources = [normal_dim(d, ndim) for d in source]
    destinations = [normal_dim(d, ndim) for d in destination]
    if len(set(sources)) < len(sources):
        raise RuntimeError(f"movedim: repeated dim in `source` ({messages.shape_text(source)})")
    if len(set(destinations)) < len(destinations):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({messages.shape_text(destination)})")
    if ndim == 0:
        return alias(self)
    order = [d for d in range(ndim) if d not in sources]
    for place, d in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, d)
    return permute_dims(self, tuple(order))


REVERSAL = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
    "error in a future release. Consider `x.mT` to transpose batches of matrices or "
    "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
)
IDENTITY = "is deprecated on 0-D tensors. This function is the identity in these cases."


def reversed_dims(self: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    if self._array.ndim != 2:
        warn_once(REVERSAL if self._array.ndim else f"Tensor.T {IDENTITY}")
    return permute_dims(self, tuple(range(self._array.ndim - 1, -1, -1)))


def matrix_transpose(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    if self._array.ndim == 0:
        warn_once(f"Tensor.mT {IDENTITY}")
        return self
    if self._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


Tensor.T = property(reversed_dims)  # type: ignore[attr-defined]
Tensor.mT = property(matrix_transpose)  # type: ignore[attr-defined]


# ------------------------------------------------------------------ shapes alone


@function(raw=True, method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that tensors of the given shapes broadcast to, without making any tensor."""
    given = [(shape,) if isinstance(shape, int) else shape for shape in shapes if shape is not None]
    for shape in given:
        if not isinstance(shape, (tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    out = [1] * max([len(shape) for shape in given], default=0)
    for nr, shape in enumerate(given):
        for i in range(-1, -len(shape) - 1, -1):
            if out[i] == 1 != shape[i]:
                if shape[i] < 0:
                    raise ValueError("Attempting to broadcast a dimension with negative length!")
                out[i] = shape[i]
            if shape[i] != 1 and shape[i] != out[i]:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index "
                    f"{nr} had {shape}; but expected shape should be broadcastable to {out}"
                )
    for i, size in enumerate(out):
        if not isinstance(size, int):
            raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(size).__name__}')")
    return Size(out)
