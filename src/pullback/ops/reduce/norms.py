"""Vector norms and distances."""

from __future__ import annotations

from math import inf, isinf
from typing import Any

import numpy as np

from pullback._arrays.layout import strided
from pullback._dtype import FROM_NUMPY, promote_types
from pullback._op.declare import spaces
from pullback._op.define import Array, Number, function, op
from pullback._op.missing import Missing
from pullback._op.out import exact
from pullback._tensor import Tensor
from pullback.kernels.numpy.norm import moments as kernels
from pullback.ops.pointwise.arithmetic import abs, conj, real_part, refuse_bools, sgn
from pullback.ops.reduce.sums import axes, dims_of, restore, sum_dim, zero_where


@op(vmap="compared", space=None)
def reaching(self: Array, norm: Array, dim: Any) -> Array:
    """One over their number where an absolute value equals the norm or is nan, zero elsewhere."""
    mask = (self == norm) | (self != self)
    return mask.astype(self.dtype) / np.add.reduce(mask, axes(dim, self.ndim), np.int64, None, True).astype(self.dtype)


def norm_backward(grad: Any, self: Any, p: Number, norm: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of the p-norm, by cases; torch's values where the norm is not differentiable."""
    grad, norm = restore(grad, self.ndim, dim, keepdim), restore(norm, self.ndim, dim, keepdim)
    return norm_slope(self, p, norm, dim, grad)


def negated(grad: Any) -> Any:
    """-grad, if there is one."""
    return None if grad is None else -grad


def norm_slope(self: Any, p: Number, norm: Any, dim: Any, grad: Any) -> Any:
    """The gradient of the p-norm, once the reduced dimensions are back."""
    if p == 0:
        return None
    if p == 1:
        return sgn(self) * grad
    if p == 2:
        return grad * zero_where(self / norm, norm == 0)
    size = abs(self)
    if isinf(p):
        return sgn(self) * (grad * reaching(size, norm, dim))
    if p < 1:
        return sgn(self) * zero_where(size ** (p - 1), self == 0) * grad * norm ** (1 - p)
    scale = zero_where(grad / norm ** (p - 1), norm == 0)
    return (sgn(self) * size ** (p - 1) if p < 2 else self * size ** (p - 2)) * scale


def norm_tangent(self_t: Any, self: Any, p: Number, norm: Any, dim: Any, keepdim: bool) -> Any:
    """The tangent of the p-norm."""
    if p == 0:
        return norm * 0
    if isinf(p):
        slope = norm_slope(self, p, restore(norm, self.ndim, dim, keepdim), dim, 1)
        return sum_dim(real_part(conj(slope) * self_t), dim, keepdim)
    # The sum is taken first, of numbers that torch rounds in this order, and scaled then.
    moves = real_part((self if p >= 2 else sgn(self)) * conj(self_t))
    if p == 1:
        return sum_dim(moves, dim, keepdim)
    if p == 2:
        return zero_where(sum_dim(moves, dim, keepdim) / norm, norm == 0)
    size = abs(self)
    if p < 1:
        return sum_dim(zero_where(size ** (p - 1), self == 0) * moves, dim, keepdim) * norm ** (1 - p)
    total = sum_dim(size ** (p - 1 if p < 2 else p - 2) * moves, dim, keepdim)
    return zero_where(total / norm ** (p - 1), norm == 0)


def check_norm(self: Array, ord: Number, dim: Any, keepdim: bool, dtype: Any) -> None:
    """Torch's errors of linalg.vector_norm."""
    kind = FROM_NUMPY[self.dtype]
    if kind.category < 2:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got " + kind.scalar_type
        )
    if dtype is not None:
        if dtype.category < 2:
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be floating point or complex, but got {dtype.scalar_type}"
            )
        if kind.category != dtype.category:
            which = "complex" if kind.category == 3 else "real"
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {which} for {which} inputs, but got {dtype.scalar_type}"
            )
        if promote_types(kind, dtype) is not dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({kind.scalar_type}) should be convertible without "
                f"narrowing to the specified dtype ({dtype.scalar_type})"
            )
    if not self.size and (ord < 0 or ord == inf):
        refuse_empty_norm(self, ord, dim)


def refuse_empty_norm(self: Array, ord: Number, dim: Any) -> None:
    """Raise for a norm that no elements do not have."""
    if not dim:
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the operation does not "
            "have "
            "an identity"
        )
    for d in dim:
        if -self.ndim <= d < self.ndim and not self.shape[d]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {ord:g} norm on the dimension {d}because this dimension is "
                "empty "
                "and the operation does not have an identity"
            )


@op(
    space=None,
    name="linalg_vector_norm",
    self=lambda grad, self, ord, result, dim, keepdim: norm_backward(grad, self, ord, result, dim, keepdim),
    result=lambda self_t, self, ord, result, dim, keepdim: norm_tangent(self_t, self, ord, result, dim, keepdim),
    check=check_norm,
)
def vector_norm_dim(self: Array, ord: Number = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """The p-norm of the elements over the dimensions `dim`."""
    if self.dtype.kind in "iub" or not self.size or dtype is not None:
        check_norm(self, ord, dim, keepdim, dtype)
        if dtype is not None:
            self = self.astype(dtype.numpy)
    over = axes(dim, self.ndim)
    return kernels.vector_norm(self, ord, over if self.ndim or not dim else (), keepdim)


def as_number(value: Any) -> Any:
    """The order of a norm given as a tensor, as a number."""
    value = value.item() if isinstance(value, Tensor) else value
    if isinstance(value, complex):
        raise RuntimeError("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")
    return value


NOT_GIVEN: Any = Missing()


@function(space="linalg", method=False, out=True, out_dtype=exact)
def vector_norm(
    self: Any = NOT_GIVEN,
    ord: Number = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    x: Any = NOT_GIVEN,
) -> Array:
    """Compute a vector norm of all elements, or of the vectors along one or more dimensions.

    It is `sum(abs(x) ** ord) ** (1 / ord)`; `inf` is the largest absolute value, `-inf` the smallest,
    and 0 counts the elements that are not zero.
    `dim` is a dimension or a tuple of them; None takes the tensor as one vector, whatever its shape.
    With `keepdim` the reduced dimensions stay, with size 1. `dtype` converts the elements first.
    The tensor may also be given as `x`, its other name in torch.
    """
    self = x if self is NOT_GIVEN else self
    if self is NOT_GIVEN:
        raise TypeError('linalg_vector_norm() missing 1 required positional arguments: "input"')
    ord = as_number(ord)
    if isinstance(ord, str):
        raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str")
    return vector_norm_dim(self, ord, dims_of(dim), keepdim, dtype)


@function(out=True, numpy_names=False, out_dtype=exact, out_copies=lambda given: given[1] == "nuc")
def norm(self: Array, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    """Compute the p-norm of all elements, or of those along one or more dimensions; `linalg.norm` is its successor.

    It is `sum(abs(x) ** p) ** (1 / p)`; `inf` is the largest absolute value, `-inf` the smallest,
    and 0 counts the elements that are not zero.
    "fro" is the 2-norm, and "nuc" the sum of the singular values of matrices, whose two dimensions are in `dim`.
    With `keepdim` the reduced dimensions stay, with size 1. `dtype` converts the elements first.
    """
    if getattr(self, "layout", strided) is not strided:
        return self.norm(p, dim, keepdim, dtype)  # type: ignore[no-any-return, attr-defined]
    dim = dims_of(dim)
    if isinstance(p, str):
        if p == "fro" and (dim is None or len(dim) <= 2):
            return vector_norm_dim(self, 2, dim, keepdim, dtype)
        return matrix_norm(self, p, dim, keepdim, dtype)
    return vector_norm_dim(self, 2 if p is None else as_number(p), dim, keepdim, dtype)


def matrix_norm(self: Array, p: str, dim: tuple[int, ...] | None, keepdim: bool, dtype: Any) -> Array:
    """A norm of matrices. Singular values belong to linalg, a later module: it is asked by its public name."""
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if self.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    dim = tuple(range(self.ndim)) if dim is None else dim
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    found = spaces.get("linalg", {}).get("matrix_norm")
    if found is None:
        raise NotImplementedError("norm(p='nuc') needs pullback.linalg")
    return found(self, p, dim, keepdim, dtype=dtype)


@op(
    vmap="entries",
    sparse="distance",
    kernel="add_stub",
    promote=True,
    self=lambda grad, self, other, p, result: norm_backward(grad, self - other, p, result, None, False),
    other=lambda grad, self, other, p, result: negated(norm_backward(grad, self - other, p, result, None, False)),
    result=lambda self_t, other_t, self, other, p, result: norm_tangent(
        self_t - other_t, self - other, p, result, None, False
    ),
    out=False,
    check_operands=lambda self, other, p: refuse_bools(self, other, 1),
)
def dist(self: Array, other: Array, p: Number = 2) -> Array:
    """Compute the p-norm of the difference of two tensors, as one number: `norm(input - other, p)`.

    The tensors broadcast against each other.
    """
    if self.dtype.kind in "iub":
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got "
            f"{FROM_NUMPY[self.dtype].scalar_type} instead."
        )
    return kernels.vector_norm(self - other, as_number(p), None, False)
