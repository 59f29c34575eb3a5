"""Shapes, layouts and memory formats: what a tensor says about how its elements are arranged."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from pullback._runtime import messages


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints that prints as torch.Size([...])."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({messages.shape_text(self)})"

    def numel(self) -> int:
        """The number of elements a tensor of this shape has."""
        count = 1
        for n in self:
            count *= n
        return count

    def __add__(self, other: tuple[int, ...]) -> Size:  # type: ignore[override]
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, other: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Size: ...
    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size(item) if type(index) is slice else item

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))


class layout:
    """How a tensor keeps its elements: one after the other, or only those that differ from zero."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """An order of strides."""

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
