"""Complex tensors from two real ones: complex and polar."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.memory import empty_in_order, order_of_result
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, op
from pullback.ops.pointwise.arithmetic import conj, real_part, sgn
from pullback.ops.pointwise.trigonometric import cos, sin
from pullback.ops.supported import refuse

WHOLE = {"float16": np.dtype(np.complex64), "float32": np.dtype(np.complex64), "float64": np.dtype(np.complex128)}


def check_parts(first: Array, second: Array) -> None:
    """Torch's rules for the two parts: real floating point, and of the same dtype."""
    kinds = FROM_NUMPY[first.dtype].scalar_type, FROM_NUMPY[second.dtype].scalar_type
    if first.dtype.name not in WHOLE or second.dtype.name not in WHOLE:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {kinds[0]} and {kinds[1]}"
        )
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {kinds[0]} but got scalar type {kinds[1]} for second argument"
        )


def imaginary_part(number: Any) -> Any:
    """The imaginary part, by the real one."""
    return real_part(number * -1j)


def room_for(one: Any, other: Any) -> Any:
    """An array for the complex numbers with these parts, in the memory order of pointwise results."""
    shape = np.broadcast_shapes(one.shape, other.shape)
    return empty_in_order(shape, order_of_result((one, other), shape), WHOLE[one.dtype.name])


def check_whole(targets: list[Any], arrays: list[Any], bound: dict[str, Any]) -> None:
    """Torch's demand on the tensor complex and polar write to."""
    if targets[0]._array.dtype is not arrays[0].dtype:
        wanted, got = FROM_NUMPY[arrays[0].dtype].scalar_type, targets[0].dtype.scalar_type
        raise RuntimeError(f"Expected object of scalar type {wanted} but got scalar type {got} for argument 'out'")


@op(
    vmap="paired",
    name="complex",
    node="ComplexBackward0",
    method=False,
    check_out=check_whole,
    real=lambda grad, real: real_part(grad),
    imag=lambda grad, imag: imaginary_part(grad),
    result=lambda real_t, imag_t, real, imag: complex_from_parts(real_t, imag_t),
)
def complex_from_parts(real: Array, imag: Array) -> Array:
    """Build a complex tensor from its real and imaginary parts: `real + 1j * imag`.

    Both are floats of one dtype and are broadcast; float32 gives complex64, float64 complex128.
    """
    check_parts(real, imag)
    out = room_for(real, imag)
    out.real, out.imag = real, imag
    return out


@op(
    vmap="paired",
    method=False,
    check_out=check_whole,
    autocast="float32",
    abs=lambda grad, result: real_part(conj(grad) * sgn(result)),
    angle=lambda grad, result: real_part(conj(grad) * (result * 1j)),
    result=lambda abs_t, angle_t, angle, result: (
        complex_from_parts(cos(angle), sin(angle)) * abs_t + result * 1j * angle_t
    ),
)
def polar(abs: Array, angle: Array) -> Array:
    """Build a complex tensor from polar coordinates: `abs * (cos(angle) + 1j * sin(angle))`.

    Both are floats of one dtype and are broadcast; angles are in radians. float32 gives complex64, float64 complex128.
    """
    check_parts(abs, angle)
    if abs.dtype.itemsize == 2:
        refuse("polar_cpu", abs, "f")
    out = room_for(abs, angle)
    out.real, out.imag = abs * np.cos(angle), abs * np.sin(angle)
    return out
