"""Written by `python -m pullback._op.stubs` from the registry of ops; do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pullback import _dtype
from pullback._layout import Size
from pullback._tensor import Tensor

Number = builtins.bool | builtins.int | builtins.float | builtins.complex


def vector_norm(x: Tensor, ord: Number = 2, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None, axis: Any = ..., keepdims: Any = ..., out: Any = None) -> Tensor: ...
