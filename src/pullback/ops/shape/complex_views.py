"""Complex numbers as pairs of real ones, in the same memory: view_as_real, real, imag; and adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._lazy import signs
from pullback._op.define import Array, function, linear, op
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor, contiguous_format
from pullback.ops.create.copy import clone
from pullback.ops.pointwise.arithmetic import conj, neg
from pullback.ops.shape.dims import transpose
from pullback.ops.shape.slicing import select_int

PARTS = {"complex64": "float32", "complex128": "float64"}
WHOLE = {part: whole for whole, part in PARTS.items()}


@op(
    space=None,
    name="_neg_view",
    node="NegViewBackward0",
    view=True,
    changes_dtype=True,
    flips="negative",
    self=lambda grad: neg(grad),
    result=lambda self_t: neg_view(self_t),
)
def neg_view(self: Array) -> Array:
    """The negative of a tensor: the same memory seen through a sign."""
    return np.negative(self)


def refuse_conjugate(self: Tensor) -> None:
    """Raise torch's error for a lazy conjugate, whose memory does not hold its imaginary parts."""
    if signs(self)[0]:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )


def resolved(self: Any) -> Any:
    """A gradient whose parts can be seen: a copy of a lazy conjugate."""
    return clone(self) if isinstance(self, Tensor) and signs(self)[0] else self


def in_order(grad: Any) -> Any:
    """A gradient whose pairs lie side by side: that of a sum is one number expanded."""
    if not isinstance(grad, Tensor):
        return np.ascontiguousarray(grad)
    return (
        grad
        if type(grad) is Tensor and grad._array.flags.c_contiguous
        else clone(grad, memory_format=contiguous_format)
    )


@op(
    nested="shape",
    vmap="leading",
    view=True,
    changes_dtype=True,
    method=False,
    check_operands=refuse_conjugate,
    self=lambda grad: view_as_complex(in_order(grad)),
    result=lambda self_t: view_as_real(resolved(self_t)),
)
def view_as_real(self: Array) -> Array:
    """View a complex tensor as pairs of real numbers.

    Shape `(...)` becomes `(..., 2)`: the last dimension holds the real and the imaginary part. Nothing is copied.
    """
    if self.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return self[..., None].view(PARTS[self.dtype.name])


@op(
    vmap="leading",
    view=True,
    changes_dtype=True,
    method=False,
    autocast="float32",
    self=lambda grad: view_as_real(resolved(grad)),
    result=linear,
)
def view_as_complex(self: Array) -> Array:
    """View pairs of real numbers as complex numbers.

    Shape `(..., 2)` becomes `(...)`: the last dimension must hold the real and the imaginary part, next to each other
    in memory. Nothing is copied; the inverse of `view_as_real`.
    """
    check_pairs(self)
    return self.view(WHOLE[self.dtype.name])[..., 0]


def check_pairs(array: Array) -> None:
    """Raise torch's errors for memory that holds no pairs."""
    if array.dtype.name == "float16":
        raise NotImplementedError("view_as_complex of float16 would be complex32, of which there are no tensors here")
    if array.dtype.name not in WHOLE:
        kind = FROM_NUMPY[array.dtype].scalar_type
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{kind}"
        )
    if array.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if not array.size:
        return  # an array without elements lies nowhere
    if array.strides[-1] != array.dtype.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % (2 * array.dtype.itemsize) for stride in array.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")


@function(method=False)
def real(self: Array) -> Array:
    """Return the real part of a complex tensor as a view; a real tensor is returned as it is."""
    return select_int(view_as_real(stored_side(self)), self.ndim, 0) if self.is_complex() else self


@function(method=False)
def imag(self: Array) -> Array:
    """Return the imaginary part of a complex tensor as a view; real tensors raise an error."""
    if not self.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    pairs = view_as_real(stored_side(self))
    return select_int(neg_view(pairs) if signs(self)[0] else pairs, self.ndim, 1)


def stored_side(self: Tensor) -> Tensor:
    """A complex tensor, or what a lazy conjugate is the conjugate of."""
    return conj(self) if signs(self)[0] else self  # type: ignore[no-any-return]


def adjoint_of(self: Tensor, what: str) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    ndim = self._array.ndim
    if ndim == 0:
        return conjugate_number(self, what)
    if ndim < 2:
        raise RuntimeError(f"tensor.{what} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    out = transpose(self, -2, -1)
    return conj(out) if self._array.dtype.kind == "c" else out


def conjugate_number(self: Tensor, what: str) -> Tensor:
    """What the conjugate transpose is for a tensor without dimensions."""
    name = what if what == "adjoint()" else f"Tensor.{what}"
    warn_once(f"{name} is deprecated on 0-D tensors. Consider using x.conj().")
    return conj(self) if self._array.dtype.kind == "c" else self


@function()
def adjoint(self: Array) -> Array:
    """Return the conjugate transpose of matrices.

    Swaps the last two dimensions of `(..., n, m)` and conjugates complex elements. Returns a view.
    """
    return adjoint_of(self, "adjoint()")


def hermitian(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    ndim = self._array.ndim
    if ndim not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{hint}")
    return adjoint_of(self, "H")


def set_real(self: Tensor, value: Any) -> None:
    """Overwrite the real parts."""
    real(self).copy_(value)  # type: ignore[attr-defined]


def set_imag(self: Tensor, value: Any) -> None:
    """Overwrite the imaginary parts."""
    imag(self).copy_(value)  # type: ignore[attr-defined]


Tensor.real = property(lambda self: real(self), set_real)  # type: ignore[attr-defined]
Tensor.imag = property(lambda self: imag(self), set_imag)  # type: ignore[attr-defined]
Tensor.H = property(hermitian)  # type: ignore[attr-defined]
Tensor.mH = property(lambda self: adjoint_of(self, "mH"))  # type: ignore[attr-defined]
