"""Types of tensors with shapes: annotations for passes that check shapes."""

from __future__ import annotations

from typing import Any


class TensorType:
    """A tensor of some dimensions; `Dyn` stands for one that is not known."""

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Any:
        """The dimensions."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        dims = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
        return TensorType(tuple(dims))


class _DynType:
    """A type nothing is known of."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether one type may be where the other is expected, if what is not known fits."""
    if t1 == t2 or isinstance(t1, _DynType) or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        same = len(t1.dims) == len(t2.dims)
        return same and all([is_consistent(a, b) for a, b in zip(t1.dims, t2.dims, strict=True)])
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says everything the second does."""
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        same = len(t1.dims) == len(t2.dims)
        return same and all([is_more_precise(a, b) for a, b in zip(t1.dims, t2.dims, strict=True)])
    return False
