"""Written by `python -m pullback._op.stubs` from the registry of ops; do not edit."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from pullback import _dtype
from pullback._arrays.layout import Size
from pullback._tensor import Tensor
from pullback.autograd.hooks import RemovableHandle
from pullback.autograd.node import Node

Number = builtins.bool | builtins.int | builtins.float | builtins.complex


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor: ...
def log_softmax(input: Tensor, dim: builtins.int, *, dtype: Any = None) -> Tensor: ...
def mm(mat1: Tensor, mat2: Tensor, reduce: Any = None) -> Tensor: ...
def softmax(input: Tensor, dim: builtins.int, *, dtype: Any = None) -> Tensor: ...
def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor: ...
def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor: ...
