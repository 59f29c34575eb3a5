"""renorm: sub-tensors scaled down to a largest norm."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, widened
from pullback._arrays.memory import row_major
from pullback._op.define import Array, Number, linear, op
from pullback._op.out import exact
from pullback._tensor import normal_dim
from pullback.ops.pointwise.arithmetic import conj, real_part, where_tensors
from pullback.ops.reduce.norms import norm_backward, norm_tangent, vector_norm_dim
from pullback.ops.reduce.sums import sum_dim

TINY = 1e-7
"""What torch adds to a norm before it divides by it."""
WIDER = {**dict.fromkeys("fd", np.dtype(np.float64)), **dict.fromkeys("FD", np.dtype(np.complex128))}


def check_renorm(self: Array, p: Number, dim: int, maxnorm: Number) -> None:
    """Torch's demands on the arguments."""
    dim = index(dim)
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if self.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions")
    normal_dim(dim, self.ndim)


def others(ndim: int, dim: int) -> tuple[int, ...]:
    """All dimensions but one."""
    return tuple([d for d in range(ndim) if d != dim % ndim])


@op(
    vmap="entries",
    inplace=True,
    check=check_renorm,
    self=lambda grad, self, p, dim, maxnorm: renorm_backward(grad, self, p, dim, maxnorm),
    result=lambda self_t, self, p, dim, maxnorm: renorm_tangent(self_t, self, p, dim, maxnorm),
    out_dtype=exact,
)
def renorm(self: Array, p: Number, dim: int, maxnorm: Number) -> Array:
    """Scale down every slice along a dimension whose p-norm is larger than `maxnorm`, so that it has that norm.

    Slice i is `input.select(dim, i)`; slices with a smaller norm stay as they are.
    """
    check_renorm(self, p, dim, maxnorm)
    size = vector_norm_dim(widened(self), p, others(self.ndim, dim), True, None)
    factor = np.where(size > maxnorm, size.dtype.type(maxnorm) / (size + size.dtype.type(TINY)), size.dtype.type(1))
    return row_major(self * factor.astype(self.real.dtype))


@op(space=None, pointwise=True, untraced=("self",), self=lambda grad: grad, result=linear)
def twice_as_wide(self: Array) -> Array:
    """Numbers in the precision torch adds them in: halves in single, others in double."""
    return self.astype(WIDER.get(self.dtype.char, SINGLE))


def renorm_backward(grad: Any, self: Any, p: Number, dim: int, maxnorm: Number) -> Any:
    """The gradient as it is where nothing was scaled; elsewhere what changes the norm cannot come through.

    It is computed in a wider dtype than that of self, whose largest number times a large norm is infinite.
    """
    rest = others(self.ndim, dim)
    size = vector_norm_dim(twice_as_wide(self), p, rest, True, None)
    along = sum_dim(twice_as_wide(real_part(conj(self) * grad)), rest, True)
    back = norm_backward(along, self, p, size, rest, True)
    inverse = 1 / (size + TINY)
    return where_tensors(size > maxnorm, maxnorm * inverse * (grad - inverse * back), grad)


def renorm_tangent(self_t: Any, self: Any, p: Number, dim: int, maxnorm: Number) -> Any:
    """The tangent as it is where nothing was scaled; elsewhere scaled, less the change of the norm."""
    rest = others(self.ndim, dim)
    size = vector_norm_dim(self, p, rest, True, None)
    change = norm_tangent(self_t, self, p, size, rest, True)
    inverse = 1 / (size + TINY)
    return where_tensors(size > maxnorm, maxnorm * inverse * (self_t - self * inverse * change), self_t)
