"""Tensors of the sparse layouts: a class of their own, so that nothing is asked of plain tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pullback._arrays.layout import layout, sparse_coo, sparse_csr
from pullback._dtype import TYPE_NAME
from pullback._foreign import ForeignParameter, ForeignTensor, hold
from pullback._sparse.array import EntriesArray
from pullback._tensor import Parameter, Tensor

NAMES = {
    "sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc", "sparse_bsr": "SparseBsr",
    "sparse_bsc": "SparseBsc", "strided": "Strided",
}  # fmt: skip
"""What torch calls the layouts in its errors."""


class SparseTensor(ForeignTensor):
    """A tensor that keeps only some of its elements; the others are zero."""

    __slots__ = ()
    __hash__ = Tensor.__hash__

    @property
    def layout(self) -> layout:
        """How the elements are kept."""
        return self._array.layout  # type: ignore[attr-defined, no-any-return]

    is_sparse = property(lambda self: self._array.layout is sparse_coo, doc="True for sparse_coo.")
    is_sparse_csr = property(lambda self: self._array.layout is sparse_csr, doc="True for sparse_csr.")

    @property
    def nbytes(self) -> int:
        """Not defined."""
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
            "numel() by element_size()"
        )

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: no strides lead to an element."""
        if self._array.layout is not sparse_coo:  # type: ignore[attr-defined]
            raise RuntimeError("Sparse CSR tensors do not have strides")
        return super().stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """False: the elements do not lie one after the other."""
        if self._array.layout is not sparse_coo:  # type: ignore[attr-defined]
            raise RuntimeError("Sparse CSR tensors do not have is_contiguous")
        return False

    def data_ptr(self) -> int:
        """There is no memory with all elements."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def storage_offset(self) -> int:
        """0."""
        return 0

    def untyped_storage(self) -> Any:
        """There is no memory with all elements."""
        kind = "SparseTensorImpl" if self.is_sparse else "SparseCsrTensorImpl"
        raise NotImplementedError(f"Cannot access storage of {kind}")

    storage = _typed_storage = untyped_storage

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self._array.size != 1:
            raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
        return self._array.to_dense().item()  # type: ignore[attr-defined]

    def tolist(self) -> Any:
        """Refused, as torch does."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: NumPy knows no sparse arrays."""
        name = NAMES[self.layout.name]
        raise TypeError(f"can't convert {name} layout tensor to numpy. Use Tensor.to_dense() first.")

    def type(self, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        """The name of the tensor's type, or the tensor in another type."""
        if dtype is not None:
            return Tensor.type(self, dtype, non_blocking, **kwargs)
        if not self.is_sparse:
            raise RuntimeError("Unimplemented backend SparseCsrCPU")
        return TYPE_NAME[self.dtype].replace("torch.", "torch.sparse.", 1)

    def __iter__(self) -> Iterator[Any]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self))])


class SparseParameter(SparseTensor, ForeignParameter):
    """A sparse parameter."""

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        return Parameter.__new__(cls, data, requires_grad)

    __hash__ = Tensor.__hash__


hold(EntriesArray, SparseTensor, SparseParameter)
EntriesArray.has_views = False
