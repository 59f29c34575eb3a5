"""Embeddings: rows of a matrix looked up by number, one by one or in bags."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn import init
from pullback.nn.modules.module import Layer
from pullback.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Layer):
    """A matrix with one row for each thing that can be looked up."""

    weight: Tensor
    padding_idx: int | None

    def _fill(self, weight: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        """Make the matrix, or take the one that is given."""
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            empty = pullback.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(empty, requires_grad=not freeze)
            self.reset_parameters()
            return
        if tuple(weight.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draw from the normal distribution; the row of the padding is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with pullback.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def _shown(self, *names: str) -> list[str]:
        """The sizes, then the settings that are not the default, in this order."""
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
        shown = [str(self.num_embeddings), str(self.embedding_dim)]
        for name in names:
            value = getattr(self, name)
            if name not in usual or value != usual[name]:
                shown.append(f"{name}={value!r}")
        return shown


def padding_row(padding_idx: int | None, num_embeddings: int, name: str) -> int | None:
    """The row of the padding, counted from the start."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings and padding_idx != 0:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx + num_embeddings if padding_idx < 0 else padding_idx


def sizes_of(embeddings: Tensor) -> tuple[int, int]:
    """The rows and columns of a matrix of embeddings."""
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """The row of each number."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_row(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._fill(_weight, _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        """F.embedding."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The sizes, and the settings that are not the default."""
        return ", ".join(self._shown("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding with this matrix, not to be learnt unless `freeze` is False."""
        rows, columns = sizes_of(embeddings)
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows of each bag of numbers."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = padding_row(padding_idx, num_embeddings, "padding_idx")
        self._fill(_weight, False, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """F.embedding_bag."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The sizes, the mode, and the settings that are not the default."""
        return ", ".join(self._shown("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx"))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag with this matrix, not to be learnt unless `freeze` is False."""
        rows, columns = sizes_of(embeddings)
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
