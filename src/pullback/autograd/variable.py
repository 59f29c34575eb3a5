"""`Variable`, and other old entries that programs still call."""

from __future__ import annotations

from typing import Any

from pullback._tensor import Tensor
from pullback.autograd.task import queue_callback


class ImperativeEngine:
    """What old programs reach for as `Variable._execution_engine`."""

    def queue_callback(self, callback: Any) -> None:
        """Call `callback` once the running backward is done."""
        queue_callback(callback)


class VariableMeta(type):
    """Every tensor is an instance of Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """The old name of Tensor: `Variable(tensor, requires_grad=True)` gives a tensor on the same memory."""

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        out = data.detach()
        return out.requires_grad_(requires_grad)
