"""Pointwise ops in place, the short way: one kernel that writes where it reads, for tensors that nobody records.

What is more than that (histories, views, other dtypes, memory that overlaps) is done as on the host, by the op machine.
"""

from __future__ import annotations

from typing import Any

from pullback._modes import is_grad_enabled, modes
from pullback._op.constants import constant
from pullback._op.declare import Op
from pullback._op.ufuncs import is_loss, is_traced, large_forward
from pullback._tensor import INFERENCE, Tensor, about_to_write, bump_version
from pullback.kernels.cuda.array import DeviceArray
from pullback.kernels.cuda.kind import DeviceParameter, DeviceTensor
from pullback.kernels.cuda.pointwise import pointwise

CLASSES = (DeviceTensor, DeviceParameter)
functions: dict[Op, Any] = {}
"""What ops compute for each element, and which of their parameters follow keywords; None for other ops."""


def function_of(op: Op) -> Any:
    """What an op computes for each element, with how many of its parameters are positional; None if it is more."""
    if op.untraced or op.check_operands is not None or not is_traced(op) or is_loss(op):
        return None
    return large_forward(op).function, sum([not p.keyword_only for p in op.params])


def owner(array: DeviceArray) -> DeviceArray:
    """Whose memory an array looks at."""
    return array if array.base is None else array.base


def written(op: Op, self: Any, bound: dict[str, Any]) -> Any:
    """Run an op in place on a tensor of the device; NotImplemented, with nothing written, to do it as on the host."""
    if op not in functions:
        functions[op] = function_of(op)
    known = functions[op]
    if known is None or modes.active or modes.dual_level >= 0 or type(self) not in CLASSES:
        return NotImplemented
    array, records = self._array, is_grad_enabled()
    if self._view is not None or self._edge is not None or self._counter is INFERENCE or array.dtype.kind not in "fc":
        return NotImplemented
    if (records and self._requires_grad) or array.itemsize < 4:
        return NotImplemented
    function, many = known
    given, detached = [array], self._detached_at
    for name, value in list(bound.items())[1:]:
        if isinstance(value, Tensor):
            other: Any = value._array
            if name not in op.tensors:  # a tensor that stands for a number
                return NotImplemented
            if type(value) not in CLASSES or value._view is not None or (records and value._requires_grad):
                return NotImplemented
            if other.dtype != array.dtype or other.device is not array.device:
                return NotImplemented
            if other is not array and owner(other) is owner(array):
                return NotImplemented
            detached = value._detached_at or detached
            value = other
        elif name in op.promote:
            value = constant(value, array.dtype)
            if value is None:
                return NotImplemented
        given.append(value)
    keywords = dict(zip(op.param_names[many:], given[many:], strict=True))
    if op.check is not None:
        op.check(*given[:many], **keywords)
    about_to_write(self)
    if pointwise(function, given[:many], keywords, array) is None:
        return NotImplemented
    bump_version(self)
    self._detached_at = detached
    return self


DeviceArray.written = staticmethod(written)  # type: ignore[method-assign]
