"""How a tensor lies on the ranks along one dimension of a mesh: `Shard`, `Replicate`, `Partial`."""

from __future__ import annotations

from typing import Any

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """What the ranks along one dimension of a mesh hold."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each holds a part, of this dimension if one is named."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each holds the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether what they hold must still be combined."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)

    def _key(self) -> tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), *self._key()))


class Shard(Placement):
    """Each holds a part of dimension `dim`, in the sizes `torch.chunk` gives."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def _key(self) -> tuple[Any, ...]:
        return (self.dim,)

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class Replicate(Placement):
    """Each holds the whole."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """Each holds a tensor of the whole shape; combined by `reduce_op` they are the tensor."""

    def __init__(self, reduce_op: str = "sum") -> None:
        self.reduce_op = reduce_op

    def _key(self) -> tuple[Any, ...]:
        return (self.reduce_op,)

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


class _NormPartial(Partial):
    """Each holds the norm of its part; the norm of these is that of the whole."""

    def __init__(self, norm_type: float = 2) -> None:
        super().__init__({float("inf"): "max", float("-inf"): "min"}.get(norm_type, "sum"))
        self.norm_type = norm_type

    def _key(self) -> tuple[Any, ...]:
        return (self.norm_type,)

    def __repr__(self) -> str:
        return f"_NormPartial({self.norm_type:g})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type:g})"


def share(size: int, parts: int, index: int) -> tuple[int, int]:
    """Where part `index` of a dimension begins and how long it is, cut as `torch.chunk` does."""
    each = -(-size // parts)
    start = min(each * index, size)
    return start, min(each, size - start)
