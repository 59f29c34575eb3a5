"""The Python array API standard on tensors, for libraries written for any array: `tensor.__array_namespace__()`.

Most functions are torch's under the same name. The others differ in a name, in an argument or in what they return.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import pullback as torch
from pullback import fft as fft
from pullback import linalg as linalg

__array_api_version__ = "2023.12"

# ------------------------------------------------------------------ the same in both

SAME = (
    "abs", "acos", "acosh", "add", "arange", "argmax", "argmin", "asarray", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "broadcast_to", "ceil",
    "concat", "conj", "copysign", "cos", "cosh", "divide", "empty", "empty_like", "exp", "expm1", "eye", "finfo",
    "floor", "floor_divide", "from_dlpack", "full", "full_like", "greater", "greater_equal", "hypot", "iinfo", "imag",
    "isfinite", "isinf", "isnan", "less", "less_equal", "linspace", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "maximum", "minimum", "moveaxis", "multiply",
    "negative", "not_equal", "ones", "ones_like", "positive", "pow", "real", "remainder", "reshape", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "stack", "subtract", "tan", "tanh", "tile", "tril", "triu",
    "trunc", "where", "zeros", "zeros_like", "e", "inf", "nan", "newaxis", "pi", "bool", "int8", "int16", "int32",
    "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
globals().update({name: getattr(torch, name) for name in SAME})

RENAMED = {
    "bitwise_invert": "bitwise_not",
    "broadcast_arrays": "broadcast_tensors",
    "equal": "eq",
    "expand_dims": "unsqueeze",
}
globals().update({name: getattr(torch, theirs) for name, theirs in RENAMED.items()})

Axis = int | Sequence[int] | None

# ------------------------------------------------------------------ dtypes

KINDS = {
    "bool": lambda kind: kind is torch.bool,
    "signed integer": lambda kind: kind.is_signed and not kind.is_floating_point and not kind.is_complex,
    "unsigned integer": lambda kind: not kind.is_signed and kind is not torch.bool,
    "real floating": lambda kind: kind.is_floating_point,
    "complex floating": lambda kind: kind.is_complex,
}
KINDS["integral"] = lambda kind: KINDS["signed integer"](kind) or KINDS["unsigned integer"](kind)
KINDS["numeric"] = lambda kind: kind is not torch.bool


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: another dtype, a name such as "real floating", or one of several."""
    if isinstance(kind, tuple):
        return True in [isdtype(dtype, each) for each in kind]
    return KINDS[kind](dtype) if isinstance(kind, str) else dtype is kind


def astype(x: torch.Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> torch.Tensor:
    """The same numbers in another dtype."""
    return x.to(device=device, dtype=dtype, copy=copy)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether an array, or a dtype, can be converted."""
    return torch.can_cast(from_.dtype if isinstance(from_, torch.Tensor) else from_, to)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype an operation on all of these would have."""
    found = None
    for each in arrays_and_dtypes:
        kind = each.dtype if isinstance(each, torch.Tensor) else each
        found = kind if found is None else torch.promote_types(found, kind)
    return found


# ------------------------------------------------------------------ shapes


def permute_dims(x: torch.Tensor, /, axes: tuple[int, ...]) -> torch.Tensor:
    """The dimensions in another order."""
    return torch.permute(x, axes)


def matrix_transpose(x: torch.Tensor, /) -> torch.Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def flip(x: torch.Tensor, /, *, axis: Axis = None) -> torch.Tensor:
    """The elements in reverse order along some dimensions, all by default."""
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else as_tuple(axis))


def roll(x: torch.Tensor, /, shift: Any, *, axis: Axis = None) -> torch.Tensor:
    """The elements shifted around."""
    return torch.roll(x, shift) if axis is None else torch.roll(x, shift, axis)


def squeeze(x: torch.Tensor, /, axis: Axis) -> torch.Tensor:
    """Without dimensions of size one."""
    for dim in as_tuple(axis):
        if x.shape[dim] != 1:
            raise ValueError(f"dimension {dim} has the size {x.shape[dim]}, not one")
    return torch.squeeze(x, as_tuple(axis))


def unstack(x: torch.Tensor, /, *, axis: int = 0) -> tuple[torch.Tensor, ...]:
    """The slices along a dimension."""
    return torch.unbind(x, axis)


def repeat(x: torch.Tensor, repeats: Any, /, *, axis: int | None = None) -> torch.Tensor:
    """Each element several times."""
    return torch.repeat_interleave(x, repeats, axis)


def meshgrid(*arrays: torch.Tensor, indexing: str = "xy") -> list[torch.Tensor]:
    """Coordinates of a grid."""
    return list(torch.meshgrid(*arrays, indexing=indexing))


def as_tuple(axis: Any) -> tuple[int, ...]:
    """One dimension or several, as a tuple."""
    return (axis,) if isinstance(axis, int) else tuple(axis)


# ------------------------------------------------------------------ statistics


def all_dims(x: torch.Tensor, axis: Axis) -> tuple[int, ...]:
    """The dimensions a reduction is over."""
    return tuple(range(x.ndim)) if axis is None else as_tuple(axis)


def sum(x: torch.Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> torch.Tensor:
    """The sum over some dimensions, all by default."""
    return torch.sum(x, axis, keepdims, dtype=dtype)


def mean(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """The mean over some dimensions, all by default."""
    return torch.mean(x, axis, keepdims)


def prod(x: torch.Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> torch.Tensor:
    """The product over some dimensions, all by default."""
    for dim in sorted([d % (x.ndim or 1) for d in all_dims(x, axis)], reverse=True):
        x = torch.prod(x, dim, keepdims, dtype=dtype)
    return x


def max(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """The largest element over some dimensions, all by default."""
    return torch.amax(x, all_dims(x, axis), keepdims)


def min(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """The smallest element over some dimensions, all by default."""
    return torch.amin(x, all_dims(x, axis), keepdims)


def std(x: torch.Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    """The standard deviation over some dimensions, all by default."""
    return torch.std(x, all_dims(x, axis), correction=correction, keepdim=keepdims)


def var(x: torch.Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> torch.Tensor:
    """The variance over some dimensions, all by default."""
    return torch.var(x, all_dims(x, axis), correction=correction, keepdim=keepdims)


def any(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """Whether an element is not zero."""
    return torch.any(x.bool(), axis, keepdims)


def all(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """Whether all elements are not zero."""
    return torch.all(x.bool(), axis, keepdims)


def cumulative_sum(
    x: torch.Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> torch.Tensor:
    """The running sum; with `include_initial` it begins with a zero."""
    dim = 0 if axis is None else axis
    out = torch.cumsum(x, dim, dtype=dtype)
    if not include_initial:
        return out
    shape = list(out.shape)
    shape[dim] = 1
    return torch.cat([torch.zeros(shape, dtype=out.dtype), out], dim)


def clip(x: torch.Tensor, /, min: Any = None, max: Any = None) -> torch.Tensor:
    """The elements moved into a range."""
    return x.clone() if min is None and max is None else torch.clamp(x, min, max)


def tensordot(x1: torch.Tensor, x2: torch.Tensor, /, *, axes: Any = 2) -> torch.Tensor:
    """The product summed over several dimensions."""
    return torch.tensordot(x1, x2, axes)


def vecdot(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """The scalar product along a dimension; the first operand counts conjugated."""
    return torch.sum(torch.conj(x1) * x2, axis)


# ------------------------------------------------------------------ order and search


def sort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The elements in order along a dimension."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: torch.Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> torch.Tensor:
    """The positions of the elements in order."""
    return torch.sort(x, dim=axis, descending=descending, stable=stable).indices


def nonzero(x: torch.Tensor, /) -> tuple[torch.Tensor, ...]:
    """The positions of the elements that are not zero, dimension by dimension."""
    return torch.nonzero(x, as_tuple=True)


def searchsorted(x1: torch.Tensor, x2: torch.Tensor, /, *, side: str = "left", sorter: Any = None) -> torch.Tensor:
    """Where elements would have to be put to keep an order."""
    return torch.searchsorted(x1, x2, side=side, sorter=sorter)


def take(x: torch.Tensor, indices: torch.Tensor, /, *, axis: int | None = None) -> torch.Tensor:
    """The slices at some positions of a dimension."""
    return torch.index_select(x, 0 if axis is None else axis, indices)


UniqueAll = namedtuple("unique_all_result", ("values", "indices", "inverse_indices", "counts"))
UniqueCounts = namedtuple("unique_counts_result", ("values", "counts"))
UniqueInverse = namedtuple("unique_inverse_result", ("values", "inverse_indices"))


def unique_values(x: torch.Tensor, /) -> torch.Tensor:
    """Every element once."""
    return torch.unique(x)


def unique_counts(x: torch.Tensor, /) -> UniqueCounts:
    """Every element once, and how often it occurs."""
    return UniqueCounts(*torch.unique(x, return_counts=True))


def unique_inverse(x: torch.Tensor, /) -> UniqueInverse:
    """Every element once, and where each element of x is among them."""
    return UniqueInverse(*torch.unique(x, return_inverse=True))


def unique_all(x: torch.Tensor, /) -> UniqueAll:
    """All of it, and where each element occurs first."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    order = torch.argsort(inverse.reshape(-1), stable=True)
    starts = torch.cumsum(counts, 0) - counts
    return UniqueAll(values, order[starts], inverse, counts)
