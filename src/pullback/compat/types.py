"""`torch.types`: the names programs use in annotations."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, TypeAlias

import pullback
from pullback import Size as Size
from pullback import Tensor as Tensor
from pullback import UntypedStorage

_int, _float, _bool = int, float, bool
_complex = complex
_dtype = pullback.dtype
_device = pullback.device
_layout = pullback.layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
Number: TypeAlias = int | float | bool
Device: TypeAlias = pullback.device | str | int | None
FileLike: TypeAlias = str | PathLike[str] | IO[bytes]
Storage = UntypedStorage
SymInt = int
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
PySymType: TypeAlias = Any
