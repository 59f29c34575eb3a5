"""`torch._C._functorch`: what a tensor inside vmap and the other transforms of func stands for."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pullback.batching.tensor import BatchedTensor, current_level

TransformType = Enum("TransformType", {"Torch": 0, "Vmap": 1, "Grad": 2, "Jvp": 3, "Functionalize": 4})
RandomnessType = Enum("RandomnessType", {"Error": 0, "Same": 1, "Different": 2})


def is_batchedtensor(tensor: Any) -> bool:
    """Whether it stands for one tensor of a batch."""
    return isinstance(tensor, BatchedTensor) and tensor._array.bdim is not None


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether it only belongs to a level of a transform; what is differentiated without vmap is an ordinary tensor."""
    return isinstance(tensor, BatchedTensor) and tensor._array.bdim is None


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether there is another tensor behind it."""
    return isinstance(tensor, BatchedTensor)


def is_functionaltensor(tensor: Any) -> bool:
    """Never: functions are not made free of writes here."""
    return False


is_legacy_batchedtensor = is_dead_tensor_wrapper = is_functionaltensor


def maybe_get_level(tensor: Any) -> int:
    """The number of the transform it belongs to; -1 for an ordinary tensor."""
    return int(tensor._array.level) if isinstance(tensor, BatchedTensor) else -1


def maybe_get_bdim(tensor: Any) -> int:
    """The dimension of the batch; -1 if there is none."""
    return int(tensor._array.bdim) if is_batchedtensor(tensor) else -1


def maybe_current_level() -> int | None:
    """The number of the innermost transform; None outside."""
    level = current_level()
    return None if level is None else level.number


def get_unwrapped(tensor: Any) -> Any:
    """The tensor behind it."""
    if not isinstance(tensor, BatchedTensor):
        raise RuntimeError("No wrappers present!")
    return tensor._array.value


def unwrap_if_dead(tensor: Any) -> Any:
    """The tensor itself: none outlives its transform."""
    return tensor
