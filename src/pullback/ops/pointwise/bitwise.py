"""Bits: & | ^ ~ << >>."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.apply import check_broadcast
from pullback._op.define import Array, Number, function, op
from pullback._tensor import Tensor
from pullback.ops.pointwise.arithmetic import NUMBERS
from pullback.ops.supported import invalid_combination, refuse


def bit_operands(name: str) -> Any:
    """The check that one operand is a tensor and the other one a tensor or a number."""

    def check(self: Any, other: Any) -> None:
        known = all(isinstance(x, (Tensor, *NUMBERS)) for x in (self, other))
        if not known or not (isinstance(self, Tensor) or isinstance(other, Tensor)):
            raise invalid_combination(name, (self, other))

    return check


def check_bits(kernel: str) -> Any:
    """Only integers and bools have bits."""

    def check(self: Array, other: Array) -> None:
        check_broadcast([self, other])
        refuse(kernel, self, "fcV")

    return check


@op(
    operator="and",
    reflected=True,
    inplace=True,
    promote=True,
    check=check_bits("bitwise_and_cpu"),
    check_operands=bit_operands("bitwise_and"),
    out_name="aten::bitwise_and",
    out_tensor_first=True,
)
def bitwise_and(self: Array | Number, other: Array | Number) -> Array:
    """Compute the bitwise AND of integers, or the logical AND of bools, elementwise with broadcasting."""
    return np.bitwise_and(self, other)


@op(
    operator="or",
    reflected=True,
    inplace=True,
    promote=True,
    check=check_bits("bitwise_or_cpu"),
    check_operands=bit_operands("bitwise_or"),
    out_name="aten::bitwise_or",
    out_tensor_first=True,
)
def bitwise_or(self: Array | Number, other: Array | Number) -> Array:
    """Compute the bitwise OR of integers, or the logical OR of bools, elementwise with broadcasting."""
    return np.bitwise_or(self, other)


@op(
    operator="xor",
    reflected=True,
    inplace=True,
    promote=True,
    check=check_bits("bitwise_xor_cpu"),
    check_operands=bit_operands("bitwise_xor"),
    out_name="aten::bitwise_xor",
    out_tensor_first=True,
)
def bitwise_xor(self: Array | Number, other: Array | Number) -> Array:
    """Compute the bitwise XOR of integers, or the logical XOR of bools, elementwise with broadcasting."""
    return np.bitwise_xor(self, other)


def same_type_of_integers(name: str, target: Any, result: Array, lone: bool) -> None:
    """Raise unless bits can be written as they are."""
    wanted = FROM_NUMPY[result.dtype]
    if target.dtype is not wanted:
        raise RuntimeError(f"Found dtype {target.dtype.scalar_type} but expected {wanted.scalar_type}")


def check_not(self: Array) -> None:
    """Only integers and bools have bits."""
    refuse("bitwise_not_cpu", self, "fcV")


@op(inplace=True, check=check_not, out_name="aten::bitwise_not", out_dtype=same_type_of_integers, numpy=("invert",))
def bitwise_not(self: Array) -> Array:
    """Invert all bits of each integer, so that x becomes -x - 1 if it is signed; negates bools."""
    return np.invert(self)


@function(raw=True, space=None, method=False, operator="invert")
def invert_operator(self: Array) -> Array:
    """~self."""
    if self._array.dtype.kind not in "iub":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


# ------------------------------------------------------------------ shifts


def shifted(kernel: str, ufunc: Any, self: Array, other: Array) -> Array:
    """Shift; by the width or more, or by a negative amount, everything is shifted out."""
    refuse(kernel, self, "bfcV")
    width = 8 * self.dtype.itemsize
    inside = (other >= 0) & (other < width)
    if np.logical_and.reduce(inside, axis=None):
        return ufunc(self, other)
    signs = ufunc is np.right_shift and self.dtype.kind == "i"
    emptied = np.right_shift(self, width - 1) if signs else self.dtype.type(0)
    return np.where(inside, ufunc(self, np.where(inside, other, other.dtype.type(0))), emptied)


@op(
    kernel="lshift_cpu",
    operator="lshift",
    inplace=True,
    promote=True,
    check_operands=bit_operands("bitwise_left_shift"),
    pointwise=True,
    untraced=True,
    out_name="aten::bitwise_left_shift",
    numpy=("left_shift",),
    out_tensor_first=True,
)
def bitwise_left_shift(self: Array | Number, other: Array | Number) -> Array:
    """Shift the bits of each integer left by `other` places: `input * 2**other`, with broadcasting.

    Bits that leave the dtype are lost.
    """
    return shifted("lshift_cpu", np.left_shift, self, other)


@op(
    kernel="rshift_cpu",
    operator="rshift",
    inplace=True,
    promote=True,
    check_operands=bit_operands("bitwise_right_shift"),
    pointwise=True,
    untraced=True,
    out_name="aten::bitwise_right_shift",
    numpy=("right_shift",),
    out_tensor_first=True,
)
def bitwise_right_shift(self: Array | Number, other: Array | Number) -> Array:
    """Shift the bits of each integer right by `other` places: `input / 2**other` rounded down, with broadcasting."""
    return shifted("rshift_cpu", np.right_shift, self, other)


@function(raw=True, space=None, method=False, operator="rlshift")
def reflected_lshift(self: Array, other: Any) -> Any:
    """other << self."""
    return bitwise_left_shift(other, self) if isinstance(other, (Tensor, int, float)) else NotImplemented


@function(raw=True, space=None, method=False, operator="rrshift")
def reflected_rshift(self: Array, other: Any) -> Any:
    """other >> self."""
    return bitwise_right_shift(other, self) if isinstance(other, (Tensor, int, float)) else NotImplemented
