"""Products by the number of dimensions: matmul, inner, outer, tensordot, kron; and the trace."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._modes import is_grad_enabled
from pullback._op import overrides
from pullback._op.declare import Publication, publish
from pullback._op.define import Array, function, linear, op
from pullback._op.out import as_input, exactly, write_result
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor, normal_dim
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.reduce.dims import total
from pullback.ops.linalg.matmul import bmm, dot, mm, mv
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import mul
from pullback.ops.reduce.sums import sum_all, sum_dim
from pullback.ops.shape.dims import permute_dims as permute
from pullback.ops.shape.dims import t, transpose
from pullback.ops.shape.reform import squeeze_
from pullback.ops.shape.reshape import (
    clone_contiguous,
    common_shape,
    expand,
    flatten,
    reshape_to,
    squeeze_all,
    squeeze_dim,
    unsafe_view,
    unsqueeze,
    view_,
)
from pullback.ops.supported import refuse

# ------------------------------------------------------------------ matmul


@op(
    space=None,
    name="squeeze",
    node="SqueezeBackward4",
    self=lambda grad, self_sym_sizes, dim: unsqueeze(grad, dim),
    result=linear,
)
def squeeze_fresh(self: Array, dim: int) -> Array:
    """A result nobody else has seen, without a dimension of size one: what torch squeezes in place."""
    return self.squeeze(dim)


@function(raw=True, autocast="lower", out_dtype=as_input, out_overlap="unchecked")
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Multiply two tensors as vectors, matrices or batches of matrices, according to their dimensions.

    Two vectors give their dot product, without dimensions; `(n, m)` and `(m, p)` give `(n, p)`; `(n, m)` and `(m,)`
    give `(n,)`, and `(m,)` and `(m, p)` give `(p,)`.
    With more dimensions the last two are matrices and those before them batches, which broadcast:
    `(j, 1, n, m)` and `(k, m, p)` give `(j, k, n, p)`. A vector meets every matrix of a batch. `a @ b` is the same.
    """
    try:
        if out is not None:
            if operand_ndims(input, other) == (1, 2):  # out becomes one row, and is squeezed in place
                row = write_result("matmul", mm(unsqueeze(input, 0), other), out, (input, other))
                return squeeze_(row, 0)
            return write_result("matmul", matmul(input, other), out, (input, other))
        a, b = operand_ndims(input, other)
        if a == 2 == b:
            return mm(input, other)
        if a == 1 == b:
            return dot(input, other)
        if a == 2 and b == 1:
            return mv(input, other)
        if a == 1 and b == 2:
            return squeeze_fresh(mm(unsqueeze(input, 0), other), 0)
        if a == 0 or b == 0:
            raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
        if a == 3 == b and input.shape[0] != other.shape[0]:
            # A batch of one that wants a gradient is one matrix: its gradient is then one product, not one for each.
            if input.shape[0] == 1 and records(input):
                return matmul(squeeze_dim(input, 0), other)
            if other.shape[0] == 1 and records(other):
                return matmul(input, squeeze_dim(other, 0))
        if a >= 3 > b and (records(other) or folds(input._array)):
            return folded(input, other)
        if b >= 3 > a and (records(input) or (a == 1 and folds(other._array.swapaxes(-1, -2)))):
            product = folded(transpose(other, -2, -1), t(input) if a == 2 else input)
            if a == 1:
                return product
            turned = transpose(product, -2, -1)
            return turned if turned.is_contiguous() else clone_contiguous(turned)
        return batched(input, other)
    except Exception as error:
        trim(error)
        raise


def operand_ndims(input: Any, other: Any) -> tuple[int, int]:
    """How many dimensions the operands have, or torch's error if one is no tensor."""
    if type(input) is Tensor and type(other) is Tensor:
        return input._array.ndim, other._array.ndim
    for value, name, position in ((input, "input", 1), (other, "other", 2)):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"matmul(): argument '{name}' (position {position}) must be Tensor, not {kind}")
    return input._array.ndim, other._array.ndim


def records(tensor: Tensor) -> bool:
    """True if a gradient will be wanted for this operand."""
    return is_grad_enabled() and wants_grad(tensor)


def folds(array: Array) -> bool:
    """True if all dimensions but the last become one without moving elements."""
    if array.size == 0:
        return True
    strides, shape = array.strides, array.shape
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(array.ndim - 2))


def folded(batch: Tensor, other: Tensor) -> Tensor:
    """A batch times one matrix or vector, as a single product of a tall matrix."""
    shape = batch.shape
    rows = reshape_to(batch, (prod(shape[:-1]), shape[-1]))
    if other.ndim == 1:
        return unsafe_view(mv(rows, other), tuple(shape[:-1]))
    return unsafe_view(mm(rows, other), (*shape[:-1], other.shape[1]))


def batched(input: Tensor, other: Tensor) -> Tensor:
    """The general case: both operands stretched to one batch of matrices."""
    left, right = tuple(input.shape), tuple(other.shape)
    batch = common_shape(left[:-2], right[:-2])
    matrix = left[-2:] if len(left) > 1 else (1, left[0])
    rows = reshape_to(expand(input, (*batch, *matrix)), (prod(batch), *matrix))
    if len(right) == 1:
        columns = unsqueeze(reshape_to(expand(other, (*batch, *right)), (prod(batch), *right)), 2)
        return unsafe_view(squeeze_dim(bmm(rows, columns), -1), (*batch, matrix[0]))
    columns = reshape_to(expand(other, (*batch, *right[-2:])), (prod(batch), *right[-2:]))
    size = (*batch, *(left[-2:-1] if len(left) > 1 else ()), right[-1])
    return unsafe_view(bmm(rows, columns), size)


def matmul_operator(self: Tensor, other: Any) -> Any:
    """self @ other."""
    try:
        if isinstance(other, Tensor):
            return matmul(self, other)
        if overrides.overrides(type(other)):
            overrides.let_functions_ask()
            return matmul(self, other)
        return NotImplemented
    except Exception as error:
        trim(error)
        raise


def reflected_matmul(self: Tensor, other: Any) -> Any:
    """other @ self."""
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


publish("matmul", matmul, Publication("linalg", method=False))
Tensor.__matmul__ = matmul_operator  # type: ignore[attr-defined]
Tensor.__rmatmul__ = reflected_matmul  # type: ignore[attr-defined]

# ------------------------------------------------------------------ outer, inner, kron


def check_one_dimensional(self: Tensor, vec2: Tensor) -> None:
    """Torch's demand on the operands of outer."""
    for name, vec in (("self", self), ("vec2", vec2)):
        if vec.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vec.ndim}-D")


@function(aliases=("ger",), out=True, out_overlap="resized", numpy=("outer",))
def outer(self: Array, vec2: Array) -> Array:
    """Compute the outer product of two vectors: `out[i, j] = input[i] * vec2[j]`.

    Vectors of n and m elements give a matrix `(n, m)`; nothing is conjugated.
    """
    arrays = arrays_of(self, vec2)
    if arrays is not None and arrays[0].ndim == 1 == arrays[1].ndim:
        return unrecorded(np.multiply, arrays[0][:, None], arrays[1])
    check_one_dimensional(self, vec2)
    return mul(reshape_to(self, (self.shape[0], 1)), vec2)


@function(out=True, numpy=("inner",), out_overlap="unchecked", out_copies=lambda given: given[0].ndim and given[1].ndim)
def inner(self: Array, other: Array) -> Array:
    """Compute the dot products of all vectors along the last dimension of one tensor with those of another.

    For two vectors it is one number, `sum(input * other)`. The last dimensions must have equal sizes; the shape of the
    result is `input.shape[:-1] + other.shape[:-1]`. If either tensor has no dimensions, it is their product.
    """
    if self.ndim == 0 or other.ndim == 0:
        return mul(self, other)
    if self.shape[-1] != other.shape[-1]:
        shapes = f"{shape_text(self.shape)} and {shape_text(other.shape)}"
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {shapes}")
    return tensordot(self, other, ([-1], [-1]))


@function(out=True, out_overlap="resized", numpy=("kron",))
def kron(self: Array, other: Array) -> Array:
    """Compute the Kronecker product: each element of `input` times the whole of `other`, as blocks side by side.

    Each dimension of the result has the product of the sizes of the two; the tensor with fewer dimensions gets leading
    dimensions of size 1.
    """
    ndim = max(self.ndim, other.ndim)
    a = (1,) * (ndim - self.ndim) + tuple(self.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    apart = unsafe_view(self, tuple([size for n in a for size in (n, 1)]))
    within = unsafe_view(other, tuple([size for n in b for size in (1, n)]))
    return unsafe_view(mul(apart, within), tuple([n * m for n, m in zip(a, b, strict=True)]))


# ------------------------------------------------------------------ tensordot


@function(
    raw=True,
    method=False,
    numpy=("tensordot",),
    out_dtype=exactly(
        "tensordot: Expected the output tensor to have dtype {wanted}, but got an output tensor with dtype {got}"
    ),
    out_copies=True,
)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contract two tensors: sum their products over pairs of dimensions.

    With a number `dims = d`, the last `d` dimensions of `a` meet the first `d` of `b`; 0 is the outer product.
    With two lists, the dimension `dims[0][i]` of `a` meets the dimension `dims[1][i]` of `b`.
    The result has the remaining dimensions of `a`, then those of `b`.
    """
    try:
        if out is not None:
            return write_result("tensordot", tensordot(a, b, dims), out)
        if dims == 1 and type(dims) is int:
            arrays = arrays_of(a, b)
            if (
                arrays is not None
                and arrays[0].ndim == 2 == arrays[1].ndim
                and arrays[0].shape[1] == arrays[1].shape[0]
            ):
                product = mm(a, b)
                return view_(product, product._array.shape)  # type: ignore[no-any-return]
        dims_a, dims_b = contracted_dims(a, b, dims)
        if a.dtype is not b.dtype:
            raise RuntimeError("both inputs should have same dtype")
        same = None if a.dtype.category >= 2 else a.dtype  # sums of integers are no int64 here
        for i, j in zip(dims_a, dims_b, strict=True):
            n, m = a.shape[normal_dim(i, a.ndim)], b.shape[normal_dim(j, b.ndim)]
            if m == 1 and n != 1:
                a = sum_dim(a, (i,), True, same)
            elif n == 1 and m != 1:
                b = sum_dim(b, (j,), True, same)
            elif n != m:
                raise RuntimeError(
                    f"contracted dimensions need to match, but first has size {n} in dim {i} and second has size {m} "
                    f"in dim {j}"
                )
        summed_a, summed_b = [d % a.ndim for d in dims_a], [d % b.ndim for d in dims_b]
        kept_a = [d for d in range(a.ndim) if d not in summed_a]
        kept_b = [d for d in range(b.ndim) if d not in summed_b]
        size = tuple([a.shape[d] for d in kept_a] + [b.shape[d] for d in kept_b])
        rows, columns = prod([a.shape[d] for d in kept_a]), prod([b.shape[d] for d in kept_b])
        length = prod([a.shape[d] for d in summed_a])
        a, b = permute(a, (*kept_a, *summed_a)), permute(b, (*summed_b, *kept_b))
        if rows == 1 == columns:
            return reshape_to(whole_dot(a, b, same), size)
        return reshape_to(mm(reshape_to(a, (rows, length)), reshape_to(b, (length, columns))), size)
    except Exception as error:
        trim(error)
        raise


def whole_dot(a: Tensor, b: Tensor, dtype: Any = None) -> Tensor:
    """The sum of all products of two tensors' elements, in a dtype."""
    if a._array.flags.c_contiguous and b._array.flags.c_contiguous:
        return dot(flatten(a), flatten(b))
    return sum_all(mul(squeeze_all(a), squeeze_all(b)), dtype)


def contracted_dims(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """The pairs of dimensions to sum over."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(-dims, 0)), list(range(dims))
    if not isinstance(dims, (list, tuple)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    first, second = [[d] if isinstance(d, int) else list(d) for d in dims]
    for position, (name, given) in enumerate((("dims_self", first), ("dims_other", second)), 3):
        for at, dim in enumerate(given):
            if isinstance(dim, (float, complex)):
                raise TypeError(
                    f"tensordot(): argument '{name}' (position {position}) must be tuple of ints, but found element of "
                    f"type {type(dim).__name__} at pos {at}"
                )
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    return first, second


# ------------------------------------------------------------------ the trace


def check_trace(self: Array) -> None:
    """Torch's demand on the operand of trace."""
    refuse("trace", self, "b")
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")


@op(
    kernel="trace",
    out=False,
    check=check_trace,
    autocast="float32",
    numpy=("trace",),
    vmap="trace_of_each",
    self=lambda grad, self_sym_sizes: on_diagonal(grad, self_sym_sizes),
    result=linear,
)
def trace(self: Array) -> Array:
    """Sum the diagonal of a matrix; the result has no dimensions."""
    if self.ndim != 2 or self.dtype.kind == "b":
        raise ValueError("a matrix of numbers is needed")
    diagonal = self.diagonal()
    if is_half(self.dtype):
        return total(diagonal, None, False)
    return np.add.reduce(diagonal, dtype=np.int64 if self.dtype.kind in "iu" else None)


@op(vmap="entries", space=None, node="ViewBackward0", self=lambda grad: trace(grad), result=linear)
def on_diagonal(self: Array, size: tuple[int, ...]) -> Array:
    """A matrix with one value along the diagonal, zeros elsewhere: the gradient of the trace."""
    out = np.zeros(size, self.dtype)
    np.einsum("ii->i", out[: min(size), : min(size)])[...] = self
    return out
