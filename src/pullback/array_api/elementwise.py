"""Functions of the array API standard that treat every element by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback.array_api.dtypes import operands, same_kind

Elementwise = Callable[..., torch.Tensor]

UNARY = {
    name: name
    for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1",
        "floor", "imag", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not", "negative",
        "positive", "real", "reciprocal", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    )
} | {"bitwise_invert": "bitwise_not", "conj": "conj_physical"}  # fmt: skip
"""Functions of one array, and torch's names of them."""

BINARY = {
    name: name
    for name in (
        "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
        "copysign", "divide", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp",
        "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow",
        "remainder", "subtract",
    )
} | {"equal": "eq"}  # fmt: skip
"""Functions of two arrays, or of an array and a number."""

__all__ = ["clip", "round", "sign", *UNARY, *BINARY]


def of_one(name: str, op: Elementwise) -> Elementwise:
    """A function of one array."""

    def function(x: torch.Tensor, /) -> torch.Tensor:
        return op(x)

    return named(function, name, op)


def of_two(name: str, op: Elementwise) -> Elementwise:
    """A function of two arrays, or of an array and a number, in the dtype they have in common."""

    def function(x1: torch.Tensor | complex, x2: torch.Tensor | complex, /) -> torch.Tensor:
        return op(*operands(x1, x2))

    return named(function, name, op)


def named(function: Elementwise, name: str, op: Elementwise) -> Elementwise:
    """The function under its own name, with the first sentence of torch's."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = op.__doc__
    return function


globals().update({name: of_one(name, getattr(torch, theirs)) for name, theirs in UNARY.items()})
globals().update({name: of_two(name, getattr(torch, theirs)) for name, theirs in BINARY.items()})


def sign(x: torch.Tensor, /) -> torch.Tensor:
    """One, zero or minus one; of a complex number its direction; NaN of NaN."""
    if x.dtype.is_complex:
        return torch.sgn(x)
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def round(x: torch.Tensor, /) -> torch.Tensor:
    """The nearest integer, the even one of two; of a complex number, each of its parts."""
    if x.dtype.is_complex:
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x)


def clip(x: torch.Tensor, /, min: Any = None, max: Any = None) -> torch.Tensor:
    """The elements moved into a range; the bounds are arrays or numbers, and leave the dtype if it can hold them."""
    if min is None and max is None:
        return x.clone()
    clipped = torch.clamp(*operands(x, min, max))
    return clipped.to(x.dtype) if same_kind(clipped.dtype, x.dtype) else clipped
