"""Lists of tensors by device and dtype, as the foreach functions want them."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor

TensorListList = list[list[Any]]
Indices = list[int]
_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The devices where torch prefers foreach functions."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The devices where torch has fused optimizers."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[TensorListList, Indices]]:
    """The lists apart, by the device and the dtype of the tensors of the first; and, if asked for, where they stood."""
    if not tensorlistlist or any(len(row) != len(tensorlistlist[0]) for row in tensorlistlist if row):
        raise RuntimeError("Tensor lists must have the same length")
    groups: dict[tuple[Any, Any], tuple[TensorListList, Indices]] = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for own, row in zip(lists, tensorlistlist, strict=True):
            if row:
                own.append(row[place])
        if with_indices:
            indices.append(place)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    """Whether the foreach functions work there."""
    return torch.device(device).type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Whether the foreach functions take these tensors."""
    return _device_has_foreach_support(device) and all(
        [tensor is None or type(tensor) in _foreach_supported_types for tensor in tensors]
    )
