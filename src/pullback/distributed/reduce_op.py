"""`ReduceOp`: how the tensors of several ranks become one."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from pullback import Tensor
from pullback._arrays.packed import is_packed

LOGICAL = {"SUM": np.logical_or, "PRODUCT": np.logical_and}
REFUSED = ("int16", "uint16", "uint32", "uint64")


class RedOpType(Enum):
    """The kinds of reductions."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__

    def __call__(self, *args: Any) -> RedOpType:
        raise TypeError("a reduction cannot be called")


RedOpType.__module__, RedOpType.__qualname__ = "torch._C._distributed_c10d", "ReduceOp.RedOpType"


class ReduceOp:
    """A kind of reduction; `ReduceOp.SUM` and the others are the kinds themselves."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        self.op = kind(op)

    def __eq__(self, other: object) -> bool:
        return self.op == kind(other)

    def __hash__(self) -> int:
        return hash(self.op)


UFUNCS: dict[RedOpType, Any] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}


def kind(op: Any) -> RedOpType:
    """The kind of a reduction."""
    if isinstance(op, ReduceOp):
        return op.op
    if not isinstance(op, RedOpType):
        raise TypeError(
            "(): incompatible function arguments. The following argument types are supported:\n"
            "    1. (self: torch._C._distributed_c10d.AllreduceOptions, arg0: torch._C._distributed_c10d.ReduceOp) -> "
            f"None\n\nInvoked with: {op!r}"
        )
    return op


def combiner(op: Any, tensor: Tensor) -> Callable[..., Any]:
    """The function that combines two arrays like this tensor's; what gloo refuses is refused."""
    op, dtype = kind(op), tensor.dtype
    name = str(dtype).removeprefix("torch.")
    if op is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with Gloo")
    if name in REFUSED or is_packed(tensor._array):
        raise RuntimeError("Invalid scalar type")
    if op.name[0] == "B" and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is RedOpType.AVG and not (dtype.is_floating_point or dtype.is_complex):
        shown = {"int64": "Long", "int32": "Int", "int8": "Char", "uint8": "Byte", "bool": "Bool"}[name]
        raise RuntimeError(f"result type Float can't be cast to the desired output type {shown}")
    return LOGICAL.get(op.name, UFUNCS[op]) if name == "bool" else UFUNCS[op]


def supports_complex(reduceOp: Any) -> bool:
    """Whether a reduction is for complex numbers too."""
    return kind(reduceOp) in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)


class _reduce_op:
    """The old names of the reductions."""

    def __getattr__(self, name: str) -> Any:
        if name in ("SUM", "PRODUCT", "MIN", "MAX"):
            return RedOpType[name]
        raise AttributeError(name)


reduce_op = _reduce_op()
