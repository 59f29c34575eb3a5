"""The vector product in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.apply import check_broadcast
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, function, op
from pullback._op.out import exact, write_result
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, normal_dim
from pullback.autograd.tracebacks import trim
from pullback.kernels.compiled import OnFirstUse
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.supported import refuse


def check_cross(self: Array, other: Array, *, dim: int) -> None:
    """Torch's demands on the vectors."""
    if isinstance(dim, (float, complex)):
        raise TypeError(f"linalg_cross(): argument 'dim' must be int, not {type(dim).__name__}")
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = normal_dim(dim, self.ndim)
    sizes = self.shape[at], other.shape[at]
    if sizes != (3, 3):
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    check_broadcast([self, other])
    if self.dtype != other.dtype:
        kinds = [FROM_NUMPY[a.dtype].scalar_type for a in (self, other)]
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    refuse("cross", self, "b")


@op(
    space=None,
    name="linalg_cross",
    check=check_cross,
    absent_tangent="product",
    self=lambda grad, other, dim: linalg_cross(conj(other), grad, dim=dim),
    other=lambda grad, self, dim: linalg_cross(grad, conj(self), dim=dim),
    result=lambda self_t, other_t, self, other, dim: (
        linalg_cross(self_t, other, dim=dim) + linalg_cross(self, other_t, dim=dim)
    ),
)
def linalg_cross(self: Array, other: Array, *, dim: int = -1) -> Array:
    """The vector orthogonal to both, as long as the area they span."""
    if type(dim) is bool or self.dtype != other.dtype or self.ndim != other.ndim:
        raise ValueError("a dimension and vectors of one dtype are needed")
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise ValueError("vectors of three elements are needed")
    return CROSS.head(self, other, dim)


def cross_of_any(self: Array, other: Array, dim: int) -> Array:
    """The same by NumPy."""
    before = (slice(None),) * (dim % self.ndim)
    x, y, z = ((*before, i) for i in range(3))
    first = self[y] * other[z] - self[z] * other[y]
    out = np.empty(first.shape[: len(before)] + (3,) + first.shape[len(before) :], self.dtype)
    out[x] = first
    out[y] = self[z] * other[x] - self[x] * other[z]
    out[z] = self[x] * other[y] - self[y] * other[x]
    return out


CROSS = OnFirstUse(
    "small.vectors", lambda made: made.cross("float32", made.cross("float64", cross_of_any)), cross_of_any
)


def warn_default_dim() -> None:
    """Torch's warning, once, about a dimension that was not named."""
    warn_once(
        "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
        "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
        "in a future release.",
    )


@function(numpy=("cross",), out_dtype=exact)
def cross(self: Array, other: Array, dim: int | None = None, *, out: Any = None) -> Array:
    """Compute the cross product of vectors of three elements along a dimension.

    Both have the same number of dimensions; all but `dim` broadcast.
    Without `dim` it is the first one of size 3, which is deprecated; `linalg.cross` takes the last instead.
    """
    if not isinstance(self, Tensor):
        raise TypeError(f"cross(): argument 'input' (position 1) must be Tensor, not {type(self).__name__}")
    if not isinstance(other, Tensor):
        raise TypeError(f"cross(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if dim is None:
        warn_default_dim()
        sizes = self._array.shape
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    result = linalg_cross(self, other, dim=dim)
    return result if out is None else write_result("cross", result, out, ([self, other],))


def vector_product(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the cross product of vectors of three elements along `dim`, the last dimension by default.

    The result is orthogonal to both vectors and as long as the area they span. All dimensions but `dim` broadcast.
    """
    try:
        result = linalg_cross(input, other, dim=dim)
        if out is not None:
            exact("linalg_cross", out, result._array, True)
        return result if out is None else write_result("linalg_cross", result, out, ([input, other],))
    except Exception as error:
        trim(error)
        raise


publish("cross", vector_product, Publication("linalg", method=False))
