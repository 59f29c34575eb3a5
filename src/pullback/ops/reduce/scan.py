"""Running sums and extremes along a dimension: cumsum, cummax, cummin, logcumsumexp, and differences: diff."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._arrays.element import finfo
from pullback._dtype import FROM_NUMPY, bool_, named_dtype
from pullback._op.define import Array, function, linear, op
from pullback._op.out import exactly, write_result
from pullback._tensor import normal_dim
from pullback.kernels.jit.small.choose import Scanning
from pullback.kernels.numpy.reduce import scan as kernels
from pullback.ops.create.like import zeros_like
from pullback.ops.index.gather import scatter_add
from pullback.ops.pointwise.arithmetic import conj
from pullback.ops.pointwise.elementary import exp, log
from pullback.ops.reduce.extremum import pick, refuse_complex
from pullback.ops.reduce.products import recurrence, running_sum, scan_into, shifted
from pullback.ops.reduce.sums import in_dtype, zero_where
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import clone_contiguous, zeros_of
from pullback.ops.shape.slicing import narrow


@op(
    kernel="cumsum_out_cpu",
    inplace=scan_into("cumsum", np.add),
    out_decides="computed",
    numpy=("cumsum",),
    self=lambda grad, dim: cumsum_backward(grad, dim),
    result=linear,
)
def cumsum(self: Array, dim: int, *, dtype: Any = None) -> Array:
    """Compute the running sum along a dimension: `y[i] = x[0] + x[1] + ... + x[i]`.

    The result has the shape of `input`. `dtype` converts the elements first; without it, integers become int64.
    """
    if dtype is None and (dim == -1 or dim == self.ndim - 1) and self.dtype.char in "fd":
        return RUNNING_SUM.head(self)
    if named_dtype(dtype) is bool_ and self.ndim and self.size:
        raise NotImplementedError("\"cumsum_out_cpu\" not implemented for 'Bool'")
    return kernels.accumulate(np.add, in_dtype(self, dtype), dim)


RUNNING_SUM = Scanning(lambda self: kernels.accumulate(np.add, self, -1))


def cumsum_backward(grad: Any, dim: int) -> Any:
    """The running sum from the other end."""
    return grad if grad.ndim == 0 or grad.shape[dim] == 1 else running_sum(grad, dim, True)


def running_extreme(name: str, ufunc: np.ufunc, self: Array, dim: int) -> tuple[Array, Array]:
    """cummax and cummin, with torch's errors."""
    if self.dtype.kind == "c" and self.ndim:
        refuse_complex(f"{name}_cpu", self, idle=True)
    if not self.ndim and dim not in (0, -1):
        raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
    if not self.size:  # torch does not look at the dimension then, only at what it is
        index(dim)
        return np.empty(self.shape, self.dtype), np.empty(self.shape, np.int64)
    return kernels.running_extreme(ufunc, self, dim)


@op(
    outputs=("values", "indices"),
    out_overlap="unchecked",
    out_dtype=exactly("expected scalar_type {wanted} but found {got}"),
    self=lambda grad, self, dim, indices: scatter_add(zeros_of(grad, self.shape), dim, indices, grad),
    result=lambda self_t, dim, indices: (pick(self_t, dim, indices, True, True), None),
)
def cummax(self: Array, dim: int) -> tuple[Array, Array]:
    """Compute the running maximum along a dimension, and where it was found.

    Returns the named tuple `(values, indices)`, both in the shape of `input`; of equal elements the index is the last.
    """
    return running_extreme("cummax", np.maximum, self, dim)


@op(
    outputs=("values", "indices"),
    out_overlap="unchecked",
    out_dtype=exactly("expected scalar_type {wanted} but found {got}"),
    self=lambda grad, self, dim, indices: scatter_add(zeros_of(grad, self.shape), dim, indices, grad),
    result=lambda self_t, dim, indices: (pick(self_t, dim, indices, True, True), None),
)
def cummin(self: Array, dim: int) -> tuple[Array, Array]:
    """Compute the running minimum along a dimension, and where it was found.

    Returns the named tuple `(values, indices)`, both in the shape of `input`; of equal elements the index is the last.
    """
    return running_extreme("cummin", np.minimum, self, dim)


# ------------------------------------------------------------------ logcumsumexp


@op(
    vmap="leading",
    space=None,
    self=lambda grad, self, sign: zero_where(grad / self, self * sign <= 0),
    result=lambda self_t, self, sign: zero_where(self_t / self, self * sign <= 0),
)
def log_of_part(self: Array, sign: int) -> Array:
    """The logarithm of the absolute value where self has this sign, the lowest number elsewhere."""
    return np.where(self * sign > 0, np.log(np.absolute(self)), self.dtype.type(finfo(FROM_NUMPY[self.dtype]).min))


def logcumsumexp_backward(grad: Any, self: Any, result: Any, dim: int, reverse: bool) -> Any:
    """The sum over all later results of grad * exp(self - result), in logarithms so that nothing overflows."""
    if not self.ndim or 0 in self.shape:
        return grad
    if self.dtype.kind == "c" if isinstance(self.dtype, np.dtype) else self.dtype.is_complex:
        return conj(exp(running_logsumexp(log(conj(grad)) - result, dim, not reverse) + self))
    positive = exp(running_logsumexp(log_of_part(grad, 1) - result, dim, not reverse) + self)
    negative = exp(running_logsumexp(log_of_part(grad, -1) - result, dim, not reverse) + self)
    return positive - negative


def logcumsumexp_tangent(self_t: Any, self: Any, result: Any, dim: int, reverse: bool) -> Any:
    """The running mean of the tangents, weighted by the exponentials."""
    if not self.ndim:
        return clone_contiguous(self_t)
    kept = exp(shifted(result, dim, -1 if reverse else 1, 0) - result)
    return recurrence(kept, self_t * exp(self - result), dim, reverse)


@op(
    space=None,
    self=lambda grad, self, result, dim, reverse: logcumsumexp_backward(grad, self, result, dim, reverse),
    result=lambda self_t, self, result, dim, reverse: logcumsumexp_tangent(self_t, self, result, dim, reverse),
)
def running_logsumexp(self: Array, dim: int, reverse: bool) -> Array:
    """The logarithm of the sum of exponentials so far, from either end."""
    return kernels.running_logsumexp(self, dim, reverse)


@op(
    kernel="logcumsumexp_out_cpu",
    self=lambda grad, self, result, dim: logcumsumexp_backward(grad, self, result, dim, False),
    result=lambda self_t, self, result, dim: logcumsumexp_tangent(self_t, self, result, dim, False),
    out_dtype=exactly("expected scalar_type {wanted} but found {got}"),
)
def logcumsumexp(self: Array, dim: int) -> Array:
    """Compute the logarithm of the running sum of exponentials along a dimension, without overflow.

    The formula is `y[i] = log(exp(x[0]) + ... + exp(x[i]))`; the result has the shape of `input`.
    """
    if self.dtype.kind in "iub":
        kind = FROM_NUMPY[self.dtype].scalar_type
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{kind}'")
    return kernels.running_logsumexp(self, dim, False)


# ------------------------------------------------------------------ diff


@function(out_copies=lambda given: given[1] == 0)
def diff(self: Array, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *, out: Any = None) -> Array:
    """Compute the differences between neighbours along a dimension: `out[i] = input[i + 1] - input[i]`.

    `n` is how many times to take them; each time the dimension loses one element. For bools it is exclusive or.
    `prepend` and `append` are tensors joined to `input` along `dim` before the first time.
    """
    found = differences(self, n, dim, prepend, append)
    if out is None:
        return found
    recorded = found.dtype is not bool_  # truths leave the history of what was there
    return write_result("diff", found, out, (self, n, dim, prepend, append), recorded)  # type: ignore[no-any-return]


def differences(self: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    """What `diff` returns."""
    n, dim = index(n), index(dim)
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0 and prepend is None and append is None:
        return zeros_like(self).copy_(self)
    dim = normal_dim(dim, self.ndim)
    for other in (prepend, append):
        if other is not None and other.ndim != self.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, size in enumerate(self.shape if other is not None else ()):
            if i != dim and other.shape[i] != size:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({i}) = {size}, but got tensor.size({i}) = {other.shape[i]}"
                )
    if n == 0:
        return zeros_like(self).copy_(self)
    parts = [part for part in (prepend, self, append) if part is not None]
    whole = cat(parts, dim) if len(parts) > 1 else self
    for _ in range(min(n, whole.shape[dim])):
        later, earlier = (narrow(whole, dim, start, whole.shape[dim] - 1) for start in (1, 0))
        whole = later.logical_xor(earlier) if whole.dtype is bool_ else later - earlier
    return whole
