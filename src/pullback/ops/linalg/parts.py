"""What the derivatives of several decompositions are made of: adjoints, diagonals, parts of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._op.define import Array, linear, op
from pullback.kernels.numpy.linalg import triangular as kernels
from pullback.ops.pointwise.arithmetic import conj, real_part
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import unsqueeze, zeros_of
from pullback.ops.shape.slicing import diagonal, slice_
from pullback.ops.supported import complex_valued


def mH(self: Any) -> Any:
    """The conjugate transpose of matrices."""
    return conj(transpose(self, -2, -1))


def mT(self: Any) -> Any:
    """The transpose of matrices."""
    return transpose(self, -2, -1)


def real(self: Any) -> Any:
    """The real part; a real tensor as it is."""
    return real_part(self) if complex_valued(self) else self


def imaginary(self: Any) -> Any:
    """i times the imaginary part of a complex tensor."""
    return self - real_part(self)


def real_like(grad: Any, dtype: Any) -> Any:
    """A gradient for an input of this NumPy dtype: that of a real input is real."""
    return grad if dtype.kind == "c" else real(grad)


def diagonal_of(self: Any) -> Any:
    """The diagonals of matrices."""
    return diagonal(self, 0, -2, -1)


def column(self: Any) -> Any:
    """Vectors as columns: a factor for the rows of matrices."""
    return unsqueeze(self, -1)


def row(self: Any) -> Any:
    """Vectors as rows: a factor for the columns of matrices."""
    return unsqueeze(self, -2)


def first_columns(self: Any, n: int) -> Any:
    """The first columns of matrices."""
    return slice_(self, -1, 0, n, 1)


def later_columns(self: Any, n: int) -> Any:
    """The columns from n on."""
    return slice_(self, -1, n, self.shape[-1], 1)


def first_rows(self: Any, n: int) -> Any:
    """The first rows of matrices."""
    return slice_(self, -2, 0, n, 1)


def later_rows(self: Any, n: int) -> Any:
    """The rows from n on."""
    return slice_(self, -2, n, self.shape[-2], 1)


def with_zero_columns(self: Any, n: int) -> Any:
    """Matrices with columns of zeros on the right, up to n columns."""
    missing = n - self.shape[-1]
    return cat([self, zeros_of(self, (*self.shape[:-1], missing))], -1) if missing else self


def with_zero_rows(self: Any, n: int) -> Any:
    """Matrices with rows of zeros at the bottom, up to n rows."""
    missing = n - self.shape[-2]
    return cat([self, zeros_of(self, (*self.shape[:-2], missing, self.shape[-1]))], -2) if missing else self


def plus(a: Any, b: Any) -> Any:
    """The sum of two gradients, either of which may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return a + b


@op(vmap="leading", space=None, self=lambda grad: zero_diagonal(grad), result=linear)
def zero_diagonal(self: Array) -> Array:
    """Matrices with zeros on the diagonal."""
    out = self.copy()
    kernels.diagonal(out)[...] = 0
    return out


@op(vmap="leading", space=None, self=lambda grad: zero_diagonal(grad), result=lambda self_t: zero_diagonal(self_t))
def unit_diagonal(self: Array) -> Array:
    """Matrices with ones on the diagonal."""
    out = self.copy()
    kernels.diagonal(out)[...] = 1
    return out


@op(vmap="leading", space=None, self=lambda grad: half_diagonal(grad), result=linear)
def half_diagonal(self: Array) -> Array:
    """Matrices with half of what they have on the diagonal."""
    out = self.copy()
    kernels.diagonal(out)[...] *= 0.5
    return out


@op(vmap="leading", space=None, self=lambda grad: real_diagonal(grad), result=lambda self_t: real_diagonal(self_t))
def real_diagonal(self: Array) -> Array:
    """Matrices without the imaginary part of their diagonal."""
    out = self.copy()
    if out.dtype.kind == "c":
        kernels.diagonal(out).imag = 0
    return out


@op(vmap="leading", space=None)
def identity_like(self: Array) -> Array:
    """The identity, in the shape of a batch of square matrices."""
    out = np.zeros(self.shape, self.dtype)
    kernels.diagonal(out)[...] = 1
    return out


def differences(values: Any) -> Any:
    """values_j - values_i for row i and column j, with ones on the diagonal: what decompositions divide by."""
    return unit_diagonal(row(values) - column(values))
