"""Dtypes of the array API standard: their kinds, their limits, and which two make which third."""

from __future__ import annotations

from typing import Any, NamedTuple

import pullback as torch

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS = {
    "bool": (torch.bool,),
    "signed integer": (torch.int8, torch.int16, torch.int32, torch.int64),
    "unsigned integer": (torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    "real floating": (torch.float16, torch.bfloat16, torch.float32, torch.float64),
    "complex floating": (torch.complex32, torch.complex64, torch.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
SIGNED_OF_SIZE = {kind.itemsize: kind for kind in KINDS["signed integer"]}
SCALARS = (int, float, complex)  # a bool is an int


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: another dtype, a name such as "real floating", or one of several."""
    if isinstance(kind, tuple):
        return True in [isdtype(dtype, each) for each in kind]
    if not isinstance(kind, str):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of dtypes; these are: {', '.join(KINDS)}")
    return dtype in KINDS[kind]


def astype(x: torch.Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> torch.Tensor:
    """The same numbers in another dtype."""
    return x.to(device=device, dtype=dtype, copy=copy)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion takes an array, or a dtype, to a dtype."""
    kind = from_.dtype if isinstance(from_, torch.Tensor) else from_
    try:
        return promoted(kind, to) is to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype an operation on all of these would have: arrays, dtypes, and Python's numbers, which adapt to them."""
    found = None
    for each in arrays_and_dtypes:
        if not isinstance(each, SCALARS):
            kind = each.dtype if isinstance(each, torch.Tensor) else each
            found = kind if found is None else promoted(found, kind)
    if found is None:
        raise ValueError("at least one array or dtype is needed")
    for each in arrays_and_dtypes:
        if isinstance(each, SCALARS):
            found = promoted(found, dtype_of_scalar(each, found))
    return found


def promoted(one: Any, other: Any) -> Any:
    """The dtype of an operation on two; as torch's, and with all unsigned integers, whatever the dimensions."""
    if one is other:
        return one
    integral = KINDS["integral"]
    if one in integral and other in integral:
        small, large = sorted((one, other), key=lambda kind: kind.itemsize)
        if small.is_signed == large.is_signed or (large.is_signed and small.itemsize < large.itemsize):
            return large
        unsigned = small if large.is_signed else large
        if unsigned is torch.uint64:
            raise TypeError(f"{one} and {other} have no common dtype")
        return SIGNED_OF_SIZE[2 * unsigned.itemsize]
    for kind, partner in ((one, other), (other, one)):
        if kind in KINDS["unsigned integer"]:
            return kind if partner is torch.bool else partner
    return torch.promote_types(one, other)


def same_kind(one: Any, other: Any) -> bool:
    """Whether two dtypes are both integers, both real, or both complex."""
    return True in [one in KINDS[kind] and other in KINDS[kind] for kind in KINDS if kind != "numeric"]


def dtype_of_scalar(value: Any, partner: Any) -> Any:
    """The dtype a number of Python's takes beside an array: the array's, where that can hold its kind."""
    if isinstance(value, complex):
        if partner.is_complex:
            return partner
        return partner.to_complex() if partner.is_floating_point else torch.get_default_dtype().to_complex()
    if isinstance(value, float):
        return partner if partner.is_floating_point or partner.is_complex else torch.get_default_dtype()
    if partner is torch.bool and not isinstance(value, bool):
        return torch.int64
    return partner


def operands(*values: Any) -> tuple[torch.Tensor, ...]:
    """Arrays and numbers as tensors of the dtype they have in common; None stays what it is."""
    present = [value for value in values if value is not None]
    kind = result_type(*present)
    return tuple(value if value is None else as_operand(value, kind) for value in values)


def as_operand(value: Any, kind: Any) -> torch.Tensor:
    """An array or a number as a tensor of a dtype."""
    if not isinstance(value, torch.Tensor):
        return torch.tensor(value, dtype=kind)
    return value if value.dtype is kind else value.to(kind)


class FloatInfo(NamedTuple):
    """The limits of a real dtype, or of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class IntInfo(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of an array's."""
    kind = type.dtype if isinstance(type, torch.Tensor) else type
    real = kind.to_real() if kind.is_complex else kind
    found = torch.finfo(real)
    return FloatInfo(found.bits, found.eps, found.max, found.min, found.smallest_normal, real)


def iinfo(type: Any, /) -> IntInfo:
    """The limits of an integer dtype, or of an array's."""
    kind = type.dtype if isinstance(type, torch.Tensor) else type
    found = torch.iinfo(kind)
    return IntInfo(found.bits, found.max, found.min, kind)
