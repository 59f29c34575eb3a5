"""Products of matrices and vectors: the primitives that `matmul`, `linear` and `einsum` are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.half import is_half
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, Number, function, op
from pullback._op.inplace import bind, make_inplace
from pullback._op.out import as_input, exact, exactly, of_transform
from pullback._tensor import bump_version
from pullback._thresholds import LEAST_WORK
from pullback.autograd.view import check_inplace, rebase_history
from pullback.kernels.numpy.linalg.products import batch_product, product, product_plus, write_scaled
from pullback.ops.linalg.checks import scalar_type
from pullback.ops.pointwise.arithmetic import conj, scaled
from pullback.ops.shape.dims import t, transpose
from pullback.ops.shape.reshape import check_expand, expand, unsqueeze
from pullback.ops.supported import check_factors, check_ranks, need_dims, refuse

# ------------------------------------------------------------------ what the checks of several products say


def check_matrices(a: Array, b: Array) -> None:
    """Raise torch's error unless the inner sizes agree."""
    if a.shape[1] != b.shape[0]:
        shapes = f"{a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]}"
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({shapes})")


def different(a: Array, b: Array) -> TypeError:
    """For forwards: NumPy would promote where torch refuses. The check says it in torch's words."""
    return TypeError(f"{a.dtype} and {b.dtype}, {a.ndim} and {b.ndim} dimensions")


# ------------------------------------------------------------------ gradients of a product, shared by several


def grad_of_left(grad: Any, mat2: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The gradient of the left matrix, laid out in memory as that matrix is."""
    if strides[0] == 1 and strides[1] == sizes[0]:
        return t(mm(conj(mat2), t(grad)))
    return mm(grad, t(conj(mat2)))


def grad_of_right(grad: Any, mat1: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The gradient of the right matrix, laid out as it is: that of `weight.t()` gives a contiguous one for `weight`."""
    if strides[0] == 1 and strides[1] == sizes[0]:
        return t(mm(t(grad), conj(mat1)))
    return mm(t(conj(mat1)), grad)


def column_times_row(column: Any, row: Any) -> Any:
    """The outer product of two vectors."""
    return unsqueeze(column, 1) * row


def plus_scaled(product: Array, alpha: Number, self: Array, beta: Number, skips: Any = 0, length: Any = None) -> Array:
    """beta * self + alpha * product, written into the product; with beta 0, self is not even looked at, nor is alpha
    where sums had no `length`, nor the product with alpha 0 where torch's BLAS `skips` it: its NaNs are not seen.
    """
    if length is not None and not (length and product.size):
        return product if beta == 0 else write_scaled(product, self, beta)
    if skips and alpha == 0:
        product[...] = 0
    elif alpha != 1:
        product *= exact_number(alpha, FROM_NUMPY[product.dtype])
    if beta == 1:
        product += self
    elif beta != 0:
        product += self * exact_number(beta, FROM_NUMPY[product.dtype])
    return product


def in_single(kernel: Any, operands: tuple[Array, ...], beta: Number, alpha: Number) -> Array:
    """A sum with a product of half precision, computed in float32."""
    wide = [operand.astype(np.float32) for operand in operands]
    if alpha == 0:  # which hides no NaNs here
        wide[1] *= np.float32(0)
        alpha = 1
    return kernel(*wide, beta=beta, alpha=alpha).astype(operands[0].dtype)


# ------------------------------------------------------------------ vectors


def check_vectors(self: Array, tensor: Array) -> None:
    """Torch's demands on the vectors of a dot product."""
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype is not tensor.dtype:
        found = f"{scalar_type(self)} and {scalar_type(tensor)}"
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {found}")
    if self.shape != tensor.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.size}] and src [{tensor.size}] to have the same number "
            f"of elements, but got {self.size} and {tensor.size} elements respectively"
        )
    refuse("dot", self, "b")


@op(
    kernel="dot",
    check=check_vectors,
    numpy=("dot",),
    absent_tangent="inner",
    vmap="vector_vector",
    self=lambda grad, tensor: grad * conj(tensor),
    tensor=lambda grad, self: grad * conj(self),
    result=lambda self_t, tensor_t, self, tensor: dot(self_t, tensor) + dot(self, tensor_t),
    out_dtype=as_input,
)
def dot(self: Array, tensor: Array) -> Array:
    """Compute the dot product of two vectors of equal length, `sum(input * tensor)`, without conjugating either."""
    if self.ndim != 1 or tensor.ndim != 1 or self.dtype is not tensor.dtype or self.dtype.kind == "b":
        raise different(self, tensor)
    return self.dot(tensor)


@op(
    check=check_vectors,
    absent_tangent="inner",
    vmap="vector_vector",
    self=lambda grad, other: conj(grad) * other,
    other=lambda grad, self: grad * self,
    result=lambda self_t, other_t, self, other: vdot(self_t, other) + vdot(self, other_t),
    out_dtype=as_input,
)
def vdot(self: Array, other: Array) -> Array:
    """Compute the dot product of two vectors, the first conjugated: `sum(conj(input) * other)`."""
    if self.ndim != 1 or other.ndim != 1 or self.dtype is not other.dtype or self.dtype.kind == "b":
        raise different(self, other)
    return np.vdot(self, other)


# ------------------------------------------------------------------ a matrix and a vector


def check_mv(self: Array, vec: Array) -> None:
    """Torch's demands, which speak of a result to add to."""
    if self.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {self.ndim}, {vec.ndim}")
    if self.shape[1] != vec.size:
        sizes = f"input ({self.shape[0]}), mat ({self.shape[0]}x{self.shape[1]}), vec ({vec.size})"
        raise RuntimeError(f"size mismatch, got {sizes}")
    if self.dtype is not vec.dtype:
        dtypes = f"{scalar_type(vec)}, {scalar_type(self)}, and {scalar_type(vec)}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {dtypes}")
    refuse("addmv_impl_cpu", self, "b", idle=True)


@op(
    sparse="matrix_vector",
    kernel="addmv_impl_cpu",
    check=check_mv,
    vmap="matrix_vector",
    self=lambda grad, vec: column_times_row(grad, conj(vec)),
    vec=lambda grad, self: mv(t(conj(self)), grad),
    result=lambda self_t, vec_t, self, vec: mv(self_t, vec) + mv(self, vec_t),
    out_dtype=exactly("addmv input tensors must have the same dtype, but got {got}, {wanted}, and {wanted}"),
)
def mv(self: Array, vec: Array) -> Array:
    """Multiply a matrix `(n, m)` by a vector `(m,)`; the result is a vector `(n,)`."""
    if self.ndim != 2 or vec.ndim != 1 or self.dtype is not vec.dtype or (self.dtype.kind == "b" and self.size):
        check_mv(self, vec)  # nobody has, where a formula meets factors of two dtypes in addr
        raise different(self, vec)
    if self.size > LEAST_WORK and is_half(self.dtype):
        return self.astype(np.float32).dot(vec.astype(np.float32)).astype(self.dtype)
    return self.dot(vec)


def check_addmv(self: Array, mat: Array, vec: Array, *, beta: Number, alpha: Number) -> None:
    """Torch's demands on the operands of addmv."""
    if self.ndim > 1 or mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.size or self.size not in (1, mat.shape[0]):
        sizes = f"input ({self.size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.size})"
        raise RuntimeError(f"size mismatch, got {sizes}")
    if not self.dtype is mat.dtype is vec.dtype:
        dtypes = f"{scalar_type(self)}, {scalar_type(mat)}, and {scalar_type(vec)}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {dtypes}")
    refuse("addmv_impl_cpu", self, "b")


@op(
    inplace=True,
    check=check_addmv,
    formerly=("beta", "alpha"),
    out_overlap="self",
    vmap="plus_matrix_vector",
    self=lambda grad, beta: scaled(grad, beta),
    mat=lambda grad, vec, alpha: scaled(column_times_row(grad, conj(vec)), alpha),
    vec=lambda grad, mat, alpha: scaled(mv(t(conj(mat)), grad), alpha),
    result=lambda self_t, mat_t, vec_t, mat, vec, beta, alpha: addmv(
        addmv(self_t, mat_t, vec, beta=beta, alpha=alpha), mat, vec_t, alpha=alpha
    ),
    out_dtype=exact,
)
def addmv(self: Array, mat: Array, vec: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """Return `beta * input + alpha * (mat @ vec)` for shapes `(n, m)` and `(m,)`; `input` broadcasts to `(n,)`."""
    if self.shape not in ((), (1,), mat.shape[:1]) or not self.dtype is mat.dtype is vec.dtype:
        raise different(self, mat)
    if is_half(self.dtype):  # torch rounds the factors here, and beta * self
        first, other = (self.dtype.type(exact_number(factor, FROM_NUMPY[self.dtype])) for factor in (beta, alpha))
        return in_single(addmv, (self * first, mat, vec), int(beta != 0), float(other))
    return plus_scaled(mv(mat, vec), alpha, self, beta, self.dtype.kind == "f")


def check_addr(self: Array, vec1: Array, vec2: Array, *, beta: Number, alpha: Number) -> None:
    """Torch's demands on the operands of addr."""
    for name, vec in (("vec1", vec1), ("vec2", vec2)):
        if vec.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vec.ndim}-D")
    check_expand(self, (vec1.size, vec2.size))
    check_factors(self.dtype.kind, beta=beta, alpha=alpha)


@op(
    vmap="entries",
    inplace=True,
    promote=True,
    stretched="self",
    check=check_addr,
    formerly=("beta", "alpha"),
    self=lambda grad, beta: scaled(grad, beta),
    vec1=lambda grad, vec2, alpha: scaled(mv(grad, conj(vec2)), alpha),
    vec2=lambda grad, vec1, alpha: scaled(mv(t(grad), conj(vec1)), alpha),
    result=lambda self_t, vec1_t, vec2_t, vec1, vec2, beta, alpha: addr(
        addr(self_t, vec1_t, vec2, beta=beta, alpha=alpha), vec1, vec2_t, alpha=alpha
    ),
)
def addr(self: Array, vec1: Array, vec2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """Return `beta * input + alpha * outer(vec1, vec2)`; `input` broadcasts to the shape `(n, m)` of the product."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        raise different(vec1, vec2)
    check_expand(self, (vec1.size, vec2.size))  # also where nothing is taken of it
    check_factors(self.dtype.kind, beta=beta, alpha=alpha)
    if is_half(self.dtype):  # rounded at every step, as torch does it here
        column = vec1 if alpha == 1 else vec1 * self.dtype.type(exact_number(alpha, FROM_NUMPY[self.dtype]))
        return plus_scaled(np.multiply(column[:, None], vec2), 1, self, beta)
    return plus_scaled(np.multiply(vec1[:, None], vec2), alpha, self, beta)


# ------------------------------------------------------------------ matrices


def check_mm(self: Array, mat2: Array) -> None:
    """Torch's demands on two matrices."""
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_matrices(self, mat2)
    if self.dtype is not mat2.dtype:
        names = f"{FROM_NUMPY[self.dtype].cpp_name} != {FROM_NUMPY[mat2.dtype].cpp_name}"
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {names}")
    refuse("addmm_impl_cpu_", self, "b", idle=True)


@op(
    sparse="matrix_product",
    check=check_mm,
    autocast="lower",
    vmap="matrix_matrix",
    flops="product",
    self=lambda grad, mat2, self_sym_sizes, self_sym_strides: grad_of_left(
        grad, mat2, self_sym_sizes, self_sym_strides
    ),
    mat2=lambda grad, self, mat2_sym_sizes, mat2_sym_strides: grad_of_right(
        grad, self, mat2_sym_sizes, mat2_sym_strides
    ),
    result=lambda self_t, mat2_t, self, mat2: mm(self_t, mat2) + mm(self, mat2_t),
    out_dtype=exact,
)
def mm(self: Array, mat2: Array) -> Array:
    """Multiply a matrix `(n, m)` by a matrix `(m, p)`; the result is `(n, p)`. Nothing broadcasts: see `matmul`."""
    if self.ndim != 2 or mat2.ndim != 2 or self.dtype is not mat2.dtype or (self.dtype.kind == "b" and self.size):
        raise different(self, mat2)
    return product(self, mat2) if self.size * mat2.shape[1] > LEAST_WORK else self.dot(mat2)


def check_addmm(self: Array, mat1: Array, mat2: Array, *, beta: Number, alpha: Number) -> None:
    """Torch's demands on the operands of addmm."""
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {mat.ndim}-D tensor")
    check_matrices(mat1, mat2)
    check_expand(self, (mat1.shape[0], mat2.shape[1]))
    for name, a, b in (("mat1", mat1, mat2), ("self", self, mat2)):
        if a.dtype is not b.dtype and (name == "self" or self.dtype is b.dtype):
            both = f"{scalar_type(a)} and {scalar_type(b)}"
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {both}")
    refuse("addmm_impl_cpu_", self, "b")


@op(
    sparse="plus_product",
    inplace=True,
    check=check_addmm,
    formerly=("beta", "alpha"),
    out_overlap="self",
    autocast="lower",
    takes_out_dtype=True,
    vmap="plus_matrix_matrix",
    flops="product_and_sum",
    self=lambda grad, beta: scaled(grad, beta),
    mat1=lambda grad, mat2, mat1_sym_sizes, mat1_sym_strides, alpha: scaled(
        grad_of_left(grad, mat2, mat1_sym_sizes, mat1_sym_strides), alpha
    ),
    mat2=lambda grad, mat1, mat2_sym_sizes, mat2_sym_strides, alpha: scaled(
        grad_of_right(grad, mat1, mat2_sym_sizes, mat2_sym_strides), alpha
    ),
    result=lambda self_t, mat1_t, mat2_t, mat1, mat2, beta, alpha: addmm(
        addmm(self_t, mat1_t, mat2, beta=beta, alpha=alpha), mat1, mat2_t, alpha=alpha
    ),
    out_dtype=exact,
)
def addmm(self: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """Return `beta * input + alpha * (mat1 @ mat2)`; `input` broadcasts to the shape `(n, p)` of the product."""
    if mat1.ndim != 2 or mat2.ndim != 2 or not self.dtype is mat1.dtype is mat2.dtype or self.dtype.kind == "b":
        raise different(mat1, mat2)
    if is_half(self.dtype):
        return in_single(addmm, (self, mat1, mat2), beta, alpha)
    if alpha == 1 == beta:
        if mat1.size * mat2.shape[1] > LEAST_WORK:
            return product_plus(mat1, mat2, self)
        out = mat1.dot(mat2)
        out += self
        return out
    out = product(mat1, mat2)
    check_expand(self, out.shape)
    return plus_scaled(out, alpha, self, beta, True, mat1.shape[1])


# ------------------------------------------------------------------ batches of matrices


def check_bmm(self: Array, mat2: Array) -> None:
    """Torch's demands on the operands of bmm."""
    check_batches("bmm", self, mat2)


def check_batches(kernel: str, self: Array, mat2: Array) -> None:
    """Torch's demands on two batches of matrices."""
    check_ranks(self, mat2)
    wanted = [self.shape[0], self.shape[2]]
    if list(mat2.shape[:2]) != wanted:
        got = list(mat2.shape[:2])
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {wanted} but got: {got}.")
    refuse(kernel, self, "b", idle=True)
    if self.dtype is not mat2.dtype and self.size and mat2.size:
        raise RuntimeError(f"expected scalar type {scalar_type(self)} but found {scalar_type(mat2)}")


@op(
    sparse="products",
    check=check_bmm,
    autocast="lower",
    vmap="batches_of_matrices",
    flops="product",
    out_dtype=exact,
    self=lambda grad, mat2: bmm(grad, transpose(conj(mat2), 1, 2)),
    mat2=lambda grad, self: bmm(transpose(conj(self), 1, 2), grad),
    result=lambda self_t, mat2_t, self, mat2: bmm(self_t, mat2) + bmm(self, mat2_t),
)
def bmm(self: Array, mat2: Array) -> Array:
    """Multiply the matrices of two batches pair by pair: `(b, n, m)` by `(b, m, p)` gives `(b, n, p)`."""
    if self.ndim != 3 or mat2.ndim != 3 or (self.shape[0], self.shape[2]) != mat2.shape[:2]:
        raise different(self, mat2)
    if self.dtype is not mat2.dtype:
        if self.size and mat2.size:
            raise different(self, mat2)
        return np.zeros((*self.shape[:2], mat2.shape[2]), mat2.dtype)
    refuse("bmm", self, "b", idle=True)
    out = batch_product(self, mat2)
    return out if out.dtype is self.dtype else out.astype(self.dtype)


def check_baddbmm(self: Array, batch1: Array, batch2: Array, *, beta: Number, alpha: Number) -> None:
    """Torch's demands on the operands of baddbmm."""
    if self.dtype is not batch1.dtype:
        own, one, two = [FROM_NUMPY[given.dtype].cpp_name for given in (self, batch1, batch2)]
        raise RuntimeError(f"Input dtypes must be the same, got: input {own}, batch1: {one}, batch2: {two}")
    need_dims((batch1, 0), (batch1, 1), (batch2, 2))
    check_batches("baddbmm", batch1, batch2)
    check_expand(self, (*batch1.shape[:2], batch2.shape[2]))


OWN_PRODUCTS = 400
"""Batches of matrices that take fewer products each, torch multiplies without BLAS."""


@op(
    inplace=True,
    check=check_baddbmm,
    formerly=("beta", "alpha"),
    out_overlap="self",
    autocast="lower",
    takes_out_dtype=True,
    vmap="plus_batches_of_matrices",
    flops="product_and_sum",
    self=lambda grad, beta: scaled(grad, beta),
    batch1=lambda grad, batch2, alpha: scaled(bmm(grad, transpose(conj(batch2), 1, 2)), alpha),
    batch2=lambda grad, batch1, alpha: scaled(bmm(transpose(conj(batch1), 1, 2), grad), alpha),
    result=lambda self_t, batch1_t, batch2_t, batch1, batch2, beta, alpha: baddbmm(
        baddbmm(self_t, batch1_t, batch2, beta=beta, alpha=alpha), batch1, batch2_t, alpha=alpha
    ),
    out_dtype=exact,
)
def baddbmm(self: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """Return `beta * input + alpha * bmm(batch1, batch2)`; `input` broadcasts to their shape `(b, n, p)`."""
    if not self.dtype is batch1.dtype is batch2.dtype:
        if self.dtype is not batch1.dtype or (batch1.size and batch2.size):
            raise different(self, batch1)
        self = self.astype(batch2.dtype)
    if is_half(self.dtype):
        return in_single(baddbmm, (self, batch1, batch2), beta, alpha)
    out = bmm(batch1, batch2)
    check_expand(self, out.shape)
    length = batch1.shape[2]
    return plus_scaled(out, alpha, self, beta, length * out[:1].size >= OWN_PRODUCTS, length)


def check_addbmm(self: Array, batch1: Array, batch2: Array, *, beta: Number, alpha: Number) -> None:
    """Torch's demands on the operands of addbmm."""
    need_dims((batch1, 1), (batch2, 2))
    check_ranks(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        counts = f"{batch1.shape[0]} and {batch2.shape[0]}"
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {counts}")
    if batch1.shape[2] != batch2.shape[1]:
        sizes = f"{batch1.shape[1]}x{batch1.shape[2]} and {batch2.shape[1]}x{batch2.shape[2]}"
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({sizes})")
    check_expand(self, (batch1.shape[1], batch2.shape[2]))
    for name, given in (("mat1", batch1), ("self", self)):
        if given.dtype != batch2.dtype:
            kinds = f"{FROM_NUMPY[given.dtype].scalar_type} and {FROM_NUMPY[batch2.dtype].scalar_type}"
            raise RuntimeError(f"{name} and mat2 must have the same dtype, but got {kinds}")


@op(
    vmap="entries",
    check=check_addbmm,
    formerly=("beta", "alpha"),
    out_overlap="self",
    autocast="lower",
    self=lambda grad, beta: scaled(grad, beta),
    batch1=lambda grad, batch2, batch1_sym_argsize_0, batch1_sym_argsize_1, batch2_sym_argsize_2, alpha: scaled(
        bmm(repeated(grad, batch1_sym_argsize_0), transpose(conj(batch2), 1, 2)), alpha
    ),
    batch2=lambda grad, batch1, batch1_sym_argsize_0, batch1_sym_argsize_1, batch2_sym_argsize_2, alpha: scaled(
        bmm(transpose(conj(batch1), 1, 2), repeated(grad, batch1_sym_argsize_0)), alpha
    ),
    result=lambda self_t, batch1_t, batch2_t, batch1, batch2, beta, alpha: addbmm(
        addbmm(self_t, batch1_t, batch2, beta=beta, alpha=alpha), batch1, batch2_t, alpha=alpha
    ),
    out_dtype=exactly("self and mat2 must have the same dtype, but got {got} and {wanted}"),
)
def addbmm(self: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """Return `beta * input + alpha * bmm(batch1, batch2).sum(0)`; `input` broadcasts to its shape `(n, p)`."""
    if self.dtype is not batch1.dtype:
        raise different(self, batch1)
    if is_half(self.dtype) and len(batch1):  # torch adds one product after the other, and rounds each sum
        for first, second in zip(batch1, batch2, strict=True):
            self, beta = addmm(self, first, second, beta=beta, alpha=alpha), 1
        return self
    out = np.add.reduce(bmm(batch1, batch2), axis=0, dtype=self.dtype)
    check_expand(self, out.shape)
    return plus_scaled(out, alpha, self, beta, True, batch1.shape[2])


def repeated(grad: Any, count: int) -> Any:
    """The gradient of a sum over a batch: the same for each of its matrices."""
    return expand(grad, (count, *grad.shape))


addbmm_written = make_inplace(addbmm.op)


@function(raw=True, name="addbmm_", space=None)
def addbmm_inplace(self: Array, *args: Any, **kwargs: Any) -> Array:
    """In-place version of :func:`addbmm`; self takes the shape of the result."""
    batch1, batch2, beta, alpha = bind(addbmm.op, self, args, kwargs)
    fits = self.shape == (batch1.shape[-2], batch2.shape[-1]) or self._view is not None
    if fits or of_transform(self, batch1, batch2) is not None:
        return addbmm_written(self, batch1, batch2, beta=beta, alpha=alpha)
    result = addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    check_inplace(self, result._requires_grad)
    self._array = result._array
    bump_version(self)
    if result._requires_grad:
        rebase_history(self, result.grad_fn)
    return self
