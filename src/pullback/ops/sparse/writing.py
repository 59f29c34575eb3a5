"""Sparse tensors in place, by index, in graphs and in NumPy's operators: what ties the kind to the machine of ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.layout import sparse_coo
from pullback._modes import is_grad_enabled
from pullback._op import apply
from pullback._op.declare import Op
from pullback._op.define import Array, Number, op
from pullback._op.inplace import check_result, keep_output, snapshot, write
from pullback._op.results import bring_up_to_date, detached_at, differentiable_inputs, record
from pullback._runtime import messages
from pullback._sparse.array import CompressedArray, EntriesArray, SparseArray, refused
from pullback._sparse.tensor import NAMES, SparseTensor
from pullback._tensor import Tensor, about_to_write, bump_version, new, wrap
from pullback.autograd.view import check_inplace, rebase_history, wants_grad
from pullback.ops.create.copy import clone
from pullback.ops.pointwise.arithmetic import mul
from pullback.ops.shape.reshape import unsqueeze
from pullback.ops.shape.slicing import select
from pullback.ops.sparse.compressed import empty_compressed
from pullback.ops.sparse.rules import compressed, direct, is_sparse, norm_of, rules

# ------------------------------------------------------------------ nodes


def noted(node: type[Any], inputs: list[Any]) -> Any:
    """The node of an op on sparse tensors: its formulas run on tensors, which know the rules."""
    found = nodes.get(node)
    if found is None:
        found = nodes[node] = type(node.__name__, (OnTensors, node), {"__slots__": (), "__module__": "builtins"})
    return new(found)


class OnTensors:
    """A node whose formulas run on tensors in any case."""

    __slots__ = ()

    def backward(self, grad: Any) -> Any:
        """One step of a backward pass on arrays."""
        given = [None if g is None else wrap(g) for g in grad] if type(grad) is list else wrap(grad)
        outs = self.backward_tensors(given)  # type: ignore[attr-defined]
        return tuple([None if out is None else out._array for out in outs])


nodes: dict[Any, Any] = {}


def stepped(node: Any, grad: Any) -> Any:
    """The same on tensors that nobody wants recorded."""
    return node.backward_tensors(grad)


# ------------------------------------------------------------------ in place


def written(op: Op, self: Tensor, bound: dict[str, Any]) -> Any:
    """Run an op in place where self or another operand is sparse."""
    given = [value for value in bound.values() if isinstance(value, SparseTensor)]
    other = next((one for one in given if type(one._array) is CompressedArray), None)
    unknown = op.sparse not in rules or (other is not None and op.sparse not in compressed)
    if unknown or op.sparse == "power_of":
        raise refused(f"{op.name}_", (other or given[0])._array.backend)  # type: ignore[union-attr]
    if op.sparse == "values" and isinstance(self, SparseTensor) and self.is_sparse and not self._array.coalesced:  # type: ignore[attr-defined]
        raise RuntimeError(f"{op.name}_ requires coalesced input")
    tracked = is_grad_enabled() and any(
        isinstance(t, Tensor) and wants_grad(t) for t in differentiable_inputs(op, bound)
    )
    arrays = apply.operands(op, bound, twin=True)
    check_inplace(self, tracked or (is_grad_enabled() and bool(op.differentiable) and wants_grad(self)))
    if tracked:
        bring_up_to_date(op, bound)
    elif type(self._array) is np.ndarray and op.sparse in direct and arrays["other"].shape == self._array.shape:
        if self._array.dtype == arrays["other"].dtype:
            about_to_write(self)
            direct[op.sparse](op, self._array, arrays["other"], arrays.get("alpha", 1))
            bump_version(self)
            return self
    result = apply.compute(op, arrays)
    if is_sparse(result) and not isinstance(self, SparseTensor):
        result = result.to_dense()
    if isinstance(self, SparseTensor) and not is_sparse(result):
        raise refused(f"{op.name}_", self._array.backend)  # type: ignore[attr-defined]
    check_result(self, result)
    if result.dtype != self._array.dtype:
        result = result.astype(self._array.dtype)
    if tracked and op.param_names[0] in op.saved:
        bound[op.param_names[0]] = snapshot(self)
    node = record(op, bound, [wrap(result)], later=True) if tracked else None
    if isinstance(self, SparseTensor):
        replace(self, result)
    else:
        write(self, result)
    if node is not None:
        keep_output(op, node, self)
        rebase_history(self, node)
    elif self._edge is None and (cut := detached_at(op, bound)) is not None:
        self._detached_at = cut
    return self


def replace(self: Tensor, array: Any) -> None:
    """Give a sparse tensor other entries, and count it."""
    about_to_write(self)
    self._array = array
    bump_version(self)


def check_write(self: Tensor) -> None:
    """Raise for a leaf that wants a gradient."""
    check_inplace(self, is_grad_enabled() and wants_grad(self))


@op(vmap="entries", space=None, name="zero", sparse="own", self=lambda grad: mul(grad, 0))
def without_entries(self: Array) -> Array:
    """The same size without entries."""
    return emptied(self)


def emptied(self: Any) -> Any:
    """An array of the same size and layout without entries."""
    if type(self) is CompressedArray:
        return empty_compressed(self.shape, self.layout, self.dtype)
    places = np.empty((self.sparse_dim, 0), np.int64)
    return SparseArray(places, np.empty((0, *self.values.shape[1:]), self.dtype), self.shape, True)


def taken_over(self: Tensor, made: Tensor) -> Tensor:
    """Self with the entries and the history of a result."""
    edge = made._edge
    replace(self, made._array)
    if edge is not None:
        rebase_history(self, edge)
    return self


def sparse_zero_(self: Any) -> Any:
    """Forget all entries."""
    check_write(self)
    return taken_over(self, without_entries(self))


def sparse_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Take over the entries of another sparse tensor."""
    if not isinstance(src, Tensor) or src.layout is not self.layout:
        kind = src.type() if isinstance(src, Tensor) else messages.type_name(src)
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {kind}"
        )
    if self.shape != src.shape:
        raise refused("copy_", self._array.backend)
    check_write(self)
    kept = self._requires_grad or src._requires_grad
    if kept and is_grad_enabled():
        return taken_over(self, clone(src.to(self.dtype)))
    replace(self, src._array.astype(self._array.dtype).copy())  # type: ignore[attr-defined]
    return self


def sparse_fill_(self: Any, value: Any) -> Any:
    """Refused: every element would be there."""
    check_write(self)
    raise refused("fill_.Scalar", self._array.backend)


# ------------------------------------------------------------------ by index


def get_item(self: Any, key: Any) -> Any:
    """Parts by numbers, `:` , `...` and None; nothing else, as in torch."""
    parts = list(key) if type(key) is tuple else [key]
    taken = sum([part is not None and part is not Ellipsis for part in parts])
    if taken > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    if Ellipsis in [part if part is Ellipsis else None for part in parts]:
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts[at : at + 1] = [slice(None)] * (self.ndim - taken)
    for part in parts:
        if isinstance(part, slice) and part != slice(None):
            raise refused("as_strided", self._array.backend)
        whole = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
        if part is not None and not isinstance(part, slice) and not whole:
            if not (isinstance(part, Tensor) and part.ndim == 0 and part._array.dtype.kind in "iu"):
                raise refused("index.Tensor", self._array.backend)
    out, dim, own = self, 0, 0
    for part in parts:
        if part is None:
            out, dim = unsqueeze(out, dim), dim + 1
            continue
        if isinstance(part, slice):
            dim += 1
        else:
            size = out.shape[dim]
            if not -size <= int(part) < size:
                raise IndexError(f"index {int(part)} is out of bounds for dimension {own} with size {size}")
            out = select(out, dim, int(part))
        own += 1
    return out


def set_item(self: Any, key: Any, value: Any) -> None:
    """Refused, as in torch."""
    raise refused("index_put_" if isinstance(key, Tensor) else "copy_", self._array.backend)


# ------------------------------------------------------------------ other methods


@op(
    vmap="entries",
    space=None,
    name="norm",
    node="NormBackward1",
    sparse="own",
    self=lambda grad, self: refuse_norm(grad, self),
)
def norm_op(self: Array, p: Number) -> Array:
    """The p-norm of all elements."""
    return norm_of(self, p)


def refuse_norm(grad: Any, self: Any) -> Any:
    """Torch has no derivative of it on sparse tensors."""
    raise refused("masked_fill_.Scalar", self._array.backend)


def sparse_norm(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The p-norm of all elements."""
    if self.layout is not sparse_coo:
        raise refused("norm.out", self._array.backend)
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if dims and len({d % self.ndim for d in dims}) < self.ndim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if p == "nuc":
        raise refused("linalg_svd", self._array.backend)
    return norm_op(self if dtype is None else self.to(dtype), 2 if p in ("fro", None) else p)


def sparse_contiguous(self: Any, memory_format: Any = None) -> Any:
    """Refused: entries do not lie one after the other."""
    if self.layout is not sparse_coo:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    raise RuntimeError("unsupported memory format option Contiguous")


def refuse_reshape(self: Any, *shape: Any, **options: Any) -> Any:
    """Refused: entries have no order that a reshape could keep."""
    if self.layout is not sparse_coo:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
    raise RuntimeError("reshape is not implemented for sparse tensors")


def refuse_expand(self: Any, *shape: Any, **options: Any) -> Any:
    """Refused: no strides could stretch it."""
    raise RuntimeError(f"expand is unsupported for {NAMES[self.layout.name]} tensors")


def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the size; with entries, dimensions can only grow."""
    check_write(self)
    one: Any = self._array
    size = tuple([int(n) for n in size])
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{sparse_dim}, dense_dim = {dense_dim}"
        )
    if one.nnz and (sparse_dim, dense_dim) != (one.sparse_dim, one.dense_dim):
        raise RuntimeError("changing the number of sparse or dense dimensions on a non-empty tensor is not supported")
    if one.nnz and (
        any([n < m for n, m in zip(size, one.shape, strict=True)]) or size[sparse_dim:] != one.values.shape[1:]
    ):
        raise RuntimeError("shrinking dimensions, or changing dense ones, on a non-empty tensor is not supported")
    places = one.indices if one.nnz else np.empty((sparse_dim, 0), np.int64)
    values = one.values if one.nnz else np.empty((0, *size[sparse_dim:]), one.dtype)
    replace(self, SparseArray(places, values, size, one.coalesced))
    return self


def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the size and forget all entries."""
    check_write(self)
    size = tuple([int(n) for n in size])
    places = np.empty((sparse_dim, 0), np.int64)
    replace(self, SparseArray(places, np.empty((0, *size[sparse_dim:]), self._array.dtype), size, True))
    return self


SparseTensor.zero_, SparseTensor.copy_, SparseTensor.fill_ = sparse_zero_, sparse_copy_, sparse_fill_  # type: ignore[method-assign]
SparseTensor.norm, SparseTensor.contiguous = sparse_norm, sparse_contiguous  # type: ignore[method-assign]
SparseTensor.sparse_resize_ = sparse_resize_  # type: ignore[method-assign]
SparseTensor.sparse_resize_and_clear_ = sparse_resize_and_clear_  # type: ignore[method-assign]
SparseTensor.reshape = SparseTensor.flatten = refuse_reshape  # type: ignore[method-assign]
SparseTensor.expand = refuse_expand  # type: ignore[method-assign]
SparseTensor.__getitem__ = get_item  # type: ignore[method-assign]
SparseTensor.__setitem__ = set_item  # type: ignore[method-assign]
EntriesArray.noted = staticmethod(noted)  # type: ignore[method-assign]
EntriesArray.stepped = staticmethod(stepped)  # type: ignore[method-assign]
EntriesArray.written = staticmethod(written)  # type: ignore[method-assign]
