"""Functions of two and three tensors: products and quotients added, interpolation, hypotenuse, angles, signs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pullback._arrays.element import convert_number
from pullback._arrays.half import is_half, widened
from pullback._arrays.kinds import laid_out
from pullback._dtype import FROM_NUMPY, defaults, result_numpy_dtype
from pullback._op.apply import cast
from pullback._op.constants import constant
from pullback._op.define import Array, Number, function, not_implemented, op
from pullback._op.inplace import make_inplace
from pullback._op.out import exactly
from pullback._tensor import Tensor
from pullback.kernels import complex_functions
from pullback.kernels.numpy.math.numbers import ONE
from pullback.ops.pointwise.arithmetic import NUMBERS, conj, mul_number, where_tensors
from pullback.ops.pointwise.elementary import LN_2, exp, exp2
from pullback.ops.pointwise.power import number_to_power
from pullback.ops.pointwise.remainder import overload
from pullback.ops.reduce.sums import zero_where
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import invalid_combination, refuse

# ------------------------------------------------------------------ a product or a quotient added


@op(
    packed="rounded_complex",
    vmap="boxed",
    kernel="addcmul_cpu_out",
    inplace=True,
    promote=True,
    formerly=("value",),
    pointwise=True,
    foreach="with_factor",
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(times_number(tensor2, value)),
    tensor2=lambda grad, tensor1, value: grad * conj(times_number(tensor1, value)),
    result=lambda self_t, tensor1_t, tensor2_t, tensor1, tensor2, value: (
        self_t + tensor1_t * times_number(tensor2, value) + times_number(tensor1, value) * tensor2_t
    ),
)
def addcmul(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """Multiply two tensors elementwise and add the scaled product: `input + value * tensor1 * tensor2`.

    All three are broadcast and get a common dtype.
    """
    refuse("addcmul_cpu_out", self, "b")
    if is_half(self.dtype):
        return addcmul(*map(widened, (self, tensor1, tensor2)), value=value).astype(self.dtype)
    if type(value) is int and value == 1:
        return np.add(self, np.multiply(tensor1, tensor2))
    return np.add(self, np.multiply(np.multiply(tensor1, factor(value, self)), tensor2))


def times_number(tensor: Any, value: Number) -> Any:
    """A tensor times a number; integers beside a number with a point have the default dtype, not NumPy's double."""
    if not isinstance(value, int) and isinstance(tensor, np.ndarray) and tensor.dtype.kind in "iub":
        tensor = tensor.astype(defaults.numpy)
    return tensor * value


def factor(value: Number, self: Array) -> Array:
    """A factor as an element of the dtype of self."""
    found = constant(value, self.dtype)
    if found is not None:
        return found
    return np.asarray(convert_number(value, FROM_NUMPY[self.dtype]), self.dtype)


def refuse_integers(self: Any, tensor1: Any, tensor2: Any, value: Number) -> None:
    """Torch once rounded quotients of integers here and now refuses them."""
    if all(isinstance(t, Tensor) and t._array.dtype.kind in "iub" for t in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


@op(
    kernel="addcdiv_cpu_out",
    vmap="boxed",
    inplace=True,
    promote=True,
    check_operands=refuse_integers,
    formerly=("value",),
    pointwise=True,
    foreach="with_factor",
    self=lambda grad: grad,
    tensor1=lambda grad, tensor2, value: grad * conj(value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: -grad * conj(times_number(tensor1, value) / (tensor2 * tensor2)),
    result=lambda self_t, tensor1_t, tensor2_t, tensor1, tensor2, value: (
        self_t
        + times_number(tensor1_t / tensor2, value)
        - times_number(tensor1 * (tensor2_t / tensor2) / tensor2, value)  # not by a square, which may vanish
    ),
)
def addcdiv(self: Array, tensor1: Array, tensor2: Array, *, value: Number = 1) -> Array:
    """Divide two tensors elementwise and add the scaled quotient: `input + value * tensor1 / tensor2`.

    All three are broadcast. `tensor1` and `tensor2` must not both be integers.
    """
    if self.dtype.kind in "iub":
        raise TypeError("integers are not divided here")
    if is_half(self.dtype):
        return addcdiv(*map(widened, (self, tensor1, tensor2)), value=value).astype(self.dtype)
    return np.add(self, np.true_divide(np.multiply(tensor1, factor(value, self)), tensor2))


# ------------------------------------------------------------------ interpolation


def between(self: Array, end: Array, weight: Array) -> Array:
    """The point between self and end, computed from the nearer one."""
    if is_half(self.dtype):
        return between(widened(self), widened(end), widened(weight)).astype(self.dtype)
    span = np.subtract(end, self)
    if weight.ndim == 0:
        if abs(weight.item()) < 0.5:
            return np.add(self, np.multiply(weight, span))
        return np.subtract(end, np.multiply(span, np.subtract(ONE[weight.dtype], weight)))
    return np.where(np.absolute(weight) < 0.5, self + weight * span, end - span * (1 - weight))


def same_dtypes(self: Array, **others: Any) -> None:
    """lerp does not promote."""
    for name, other in others.items():
        if other.dtype != self.dtype:
            expected, got = FROM_NUMPY[self.dtype].cpp_name, FROM_NUMPY[other.dtype].cpp_name
            raise RuntimeError(f"expected dtype {expected} for `{name}` but got dtype {got}")


def check_weight(self: Tensor, end: Tensor, weight: Tensor) -> None:
    """The same of weights; one without dimensions counts as a number, which has no dtype of its own."""
    others = {"end": end._array, "weight": weight._array} if weight.ndim else {"end": end._array}
    same_dtypes(self._array, **others)


@op(
    kernel="lerp_kernel_tensor",
    space=None,
    name="lerp",
    node="LerpBackward0",
    pointwise=True,
    vmap_inplace="inplace arithmetic",
    self=lambda grad, weight: mul_number(grad, (1 - weight).conjugate()),
    end=lambda grad, weight: mul_number(grad, weight.conjugate()),
    result=lambda self_t, end_t, weight: lerp_number(self_t, end_t, weight),
)
def lerp_number(self: Array, end: Array, weight: Number) -> Array:
    """Interpolate with one weight."""
    dtype = self.dtype
    if dtype is not end.dtype or dtype.kind in "iub":
        same_dtypes(self, end=end)
        refuse("lerp_kernel_scalar", self, "iub")
    if is_half(dtype):
        return lerp_number(widened(self), widened(end), weight).astype(dtype)
    if not self.ndim or not weight:
        return between(self, end, factor(weight, self))
    from_self, step = step_from_nearer(weight, dtype)
    span = np.subtract(end, self)
    span *= step
    return np.add(self, span) if from_self else np.subtract(end, span)


@lru_cache(256)
def step_from_nearer(weight: Number, dtype: np.dtype[Any]) -> tuple[bool, Array]:
    """Whether the nearer end is self, and the part of the way to go from there, in a dtype."""
    step = factor(weight, np.empty(0, dtype))
    if abs(step.item()) < 0.5:
        return True, step
    return False, np.array(np.subtract(ONE[dtype], step))


@op(
    kernel="lerp_kernel_tensor",
    space=None,
    name="lerp",
    node="LerpBackward1",
    check_operands=check_weight,
    promote=True,
    pointwise=True,
    vmap="boxed",
    vmap_inplace="inplace arithmetic",
    self=lambda grad, weight: grad * conj(1 - weight),
    end=lambda grad, weight: grad * conj(weight),
    weight=lambda grad, self, end: grad * conj(end - self),
    result=lambda self_t, end_t, weight_t, self, end, weight: (
        lerp_tensor(self_t, end_t, weight) + weight_t * (end - self)
    ),
)
def lerp_tensor(self: Array, end: Array, weight: Array) -> Array:
    """Interpolate with a weight for each element."""
    refuse("lerp_kernel_tensor", self, "iub")
    return between(self, end, weight)


lerp_number_ = make_inplace(lerp_number.op)
lerp_tensor_ = make_inplace(lerp_tensor.op)


WEIGHTS = (Tensor, *NUMBERS)


@function(out=True)
def lerp(self: Array, end: Array, weight: Array | Number) -> Array:
    """Interpolate linearly between two tensors: `input + weight * (end - input)`.

    `weight` is a number or a tensor that broadcasts: 0 gives `input` and 1 gives `end`.
    """
    if type(self) is Tensor and type(end) is Tensor and type(weight) is float:
        return lerp_number(self, end, weight)
    if not isinstance(self, Tensor) or not isinstance(end, Tensor) or not isinstance(weight, WEIGHTS):
        raise invalid_combination("lerp", (self, end, weight))
    return (lerp_tensor if isinstance(weight, Tensor) else lerp_number)(self, end, weight)


@function(name="lerp_", space=None)
def lerp_inplace(self: Array, end: Array, weight: Array | Number) -> Array:
    """In-place version of :func:`lerp`."""
    return (lerp_tensor_ if isinstance(weight, Tensor) else lerp_number_)(self, end, weight)


# ------------------------------------------------------------------ triangles


@op(
    inplace=True,
    promote=True,
    pointwise=True,
    self=lambda grad, self, result: grad * self / result,
    other=lambda grad, other, result: grad * other / result,
    result=lambda self_t, other_t, self, other, result: self_t * (self / result) + other_t * (other / result),
)
def hypot(self: Array, other: Array) -> Array:
    """Compute the hypotenuse of a right triangle elementwise: `sqrt(input**2 + other**2)`, without overflow."""
    refuse("hypot_cpu", self, "iubc")
    return np.hypot(self, other)


@op(
    inplace=True,
    promote=True,
    floats=True,
    aliases=("arctan2",),
    pointwise=True,
    numpy=("arctan2",),
    self=lambda grad, self, other: grad * other * inverse_square(self, other),
    other=lambda grad, self, other: grad * -self * inverse_square(self, other),
    result=lambda self_t, other_t, self, other: (self_t * other - other_t * self) / (self * self + other * other),
)
def atan2(self: Array, other: Array) -> Array:
    """Compute the angle of the points with `input` as y and `other` as x, elementwise with broadcasting.

    This is atan(input / other) in the right quadrant, in radians between -pi and pi.
    """
    refuse("atan2_cpu", self, "c")
    return np.arctan2(self, other)


def inverse_square(self: Any, other: Any) -> Any:
    """One over the squared distance from the origin, and zero there."""
    squared = self * self + other * other
    return where_tensors(squared != 0, 1 / squared, 0)


# ------------------------------------------------------------------ sums of exponentials


@op(
    promote=True,
    pointwise=True,
    self=lambda grad, self, other: grad / conj(1 + exp(other - self)),
    other=lambda grad, self, other: grad / conj(1 + exp(self - other)),
    result=lambda self_t, other_t, self, other: self_t / (1 + exp(other - self)) + other_t / (1 + exp(self - other)),
)
def logaddexp(self: Array, other: Array) -> Array:
    """Compute log(exp(input) + exp(other)) elementwise without overflow: adds numbers given by their logarithms."""
    refuse("logaddexp_cpu", self, "iub")
    if self.dtype.kind != "c":
        return np.logaddexp(self, other)
    first = self.real >= other.real
    smaller, larger = np.where(first, other, self), np.where(first, self, other)
    out = larger + complex_functions.log1p(np.exp(smaller - larger))
    level = (smaller.real == larger.real) & np.isinf(larger.real)
    out = np.where(level, np.where(larger.real < 0, smaller, np.log(np.exp(smaller) + np.exp(larger))), out)
    return np.where(np.isnan(self) | np.isnan(other), self.dtype.type(complex(np.nan, np.nan)), out)


@op(
    promote=True,
    pointwise=True,
    self=lambda grad, self, other: grad / (1 + exp2(other - self)),
    other=lambda grad, self, other: grad / (1 + exp2(self - other)),
    result=lambda self_t, other_t, self, other: self_t / (1 + exp2(other - self)) + other_t / (1 + exp2(self - other)),
)
def logaddexp2(self: Array, other: Array) -> Array:
    """Compute `log2(2**input + 2**other)` elementwise without overflow."""
    refuse("logaddexp2_cpu", self, "iubc")
    return np.logaddexp2(self, other)


# ------------------------------------------------------------------ signs and neighbours


def copied_sign(self: Array, other: Array) -> Array:
    """The size of one and the sign of the other."""
    refuse("copysign_cpu", self, "c")
    return np.copysign(self, other)


def copysign_backward(grad: Any, self: Any, result: Any) -> Any:
    """The gradient of copysign: flat at zero."""
    return grad * zero_where(result / self, self == 0)


@op(
    space=None,
    name="copysign",
    node="CopysignBackward0",
    promote=True,
    floats=True,
    pointwise=True,
    untraced=("other",),
    self=lambda grad, self, result: copysign_backward(grad, self, result),
    other=lambda grad: zeros_of(grad, grad.shape),
    result=lambda self_t, self, result: copysign_backward(self_t, self, result),
)
def copysign_tensors(self: Array, other: Array) -> Array:
    """The size of self with the sign of another tensor."""
    return copied_sign(self, other)


@op(
    space=None,
    name="copysign",
    node="CopysignBackward1",
    promote=True,
    floats=True,
    pointwise=True,
    self=lambda grad, self, result: copysign_backward(grad, self, result),
    result=lambda self_t, self, result: copysign_backward(self_t, self, result),
)
def copysign_number(self: Array, other: Array | Number) -> Array:
    """The size of self with the sign of a number."""
    return copied_sign(self, other)


copysign_tensors_ = make_inplace(copysign_tensors.op)
copysign_number_ = make_inplace(copysign_number.op)


@function(out=True)
def copysign(self: Array, other: Array | Number) -> Array:
    """Return the magnitude of `input` with the sign of `other`, a tensor or a number, elementwise.

    The sign of zero counts: -0.0 is negative. Integers give floating-point results.
    """
    return overload("copysign", self, other, copysign_tensors, copysign_number)


@function(name="copysign_", space=None)
def copysign_inplace(self: Array, other: Array | Number) -> Array:
    """In-place version of :func:`copysign`."""
    return overload("copysign_", self, other, copysign_tensors_, copysign_number_)


@op(
    inplace=True,
    promote=True,
    pointwise=True,
    untraced=("other",),
    self=lambda grad, self, other: where_tensors(self != other, grad, 0),
    other=lambda grad: zeros_of(grad, grad.shape),
    result=lambda self_t, self, other: where_tensors(self != other, self_t, 0),
)
def nextafter(self: Array, other: Array) -> Array:
    """Return the next floating-point number after `input` in the direction of `other`, elementwise."""
    refuse("nextafter_cpu", self, "iubc")
    return np.nextafter(self, other)


def check_heaviside(input: Any, values: Any) -> None:
    """heaviside neither promotes nor orders complex numbers."""
    if not isinstance(input, Tensor) or not isinstance(values, Tensor):
        return
    if input.is_complex() or values.is_complex():
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@op(
    inplace=True,
    promote=True,
    check_operands=check_heaviside,
    pointwise=True,
    input=not_implemented,
    values=not_implemented,
    out_dtype=exactly("heaviside is not yet implemented for tensors with different dtypes."),
)
def heaviside(input: Array, values: Array) -> Array:
    """Compute the Heaviside step function: 0 for negative elements, 1 for positive ones, and `values` at zero.

    `values` broadcasts with `input` and must have its dtype.
    """
    if input.dtype.kind == "c":
        raise TypeError("complex numbers are not ordered")
    return np.where(input == 0, values, (input > 0).astype(input.dtype))


# ------------------------------------------------------------------ powers of two


def powers_of_two(self: Array, other: Array) -> Array:
    """2**other as ldexp computes it: one number in the precision of self, by exp if self is complex."""
    kind = self.dtype.kind
    if kind == "f" and other.dtype.kind in "iu":
        return number_to_power(2.0, other.astype(self.dtype))
    if other.dtype.kind != "f" or kind not in "fc":
        return number_to_power(2.0, other)
    if not other.ndim and (self.ndim or self.real.dtype == np.float64):
        other = other.astype(self.real.dtype)
    if kind == "f":
        return number_to_power(2.0, other)
    return np.exp(np.multiply(other, other.dtype.type(LN_2)).astype(np.float64)).astype(other.dtype)


@op(
    kernel="pow",
    vmap="paired",
    inplace=True,
    pointwise=True,
    layout="own",
    out_overlap="self",
    untraced=("forward",),
    self=lambda grad, other: grad * conj(number_to_power(2, other)),
    other=lambda grad, result: grad * conj(result) * LN_2,
    result=lambda self_t, other_t, other, result: self_t * number_to_power(2, other) + other_t * result * LN_2,
)
def ldexp(self: Array, other: Array) -> Array:
    """Multiply by a power of two elementwise: `input * 2**other`, with broadcasting."""
    if self.dtype.kind in "fV":
        refuse("ldexp_cpu_exp", other, "b")
    kinds = self.dtype.kind, other.dtype.kind
    if kinds[0] == "f" and kinds[1] in "iu":
        # 2**other alone may overflow; torch too reads 32 bits of it
        made = np.ldexp(self, other.astype(np.int32))
        return laid_out(made, (self,) if made.shape == self.shape else (self, other))
    if kinds[0] == "c" and kinds[1] in "iub":
        common = result_numpy_dtype((self, other))
        powers = complex_functions.power(common.type(2), cast(other, common))
    else:
        powers = powers_of_two(self, other)
        common = result_numpy_dtype((self, powers))
    if kinds[0] == "V" and kinds[1] in "iu":
        made = np.multiply(self, powers).astype(self.dtype)
        return laid_out(made, (self,) if made.shape == self.shape else (self, other))
    if kinds[0] not in "iub" and self.dtype != np.float32:  # powers of a two of single precision lie row by row
        powers = laid_out(powers, (other,))
    factors = cast(self, common), cast(powers, common)
    return laid_out(np.multiply(*factors), factors)


def parts_of_float(name: str, target: Any, array: Array, lone: bool) -> None:
    """The demand that mantissas and exponents have their dtypes."""
    whole = array.dtype == np.int32
    text = "exponent to have int dtype" if whole else "mantissa to have dtype {c_wanted}"
    exactly(f"torch.frexp() expects {text} but got {{c_got}}")(name, target, array, lone)


@op(
    vmap="leading",
    outputs=("mantissa", "exponent"),
    out_dtype=parts_of_float,
    self=lambda grad_mantissa, exponent: grad_mantissa / exp2(exponent),
    result=lambda self_t, exponent: (self_t / exp2(exponent), None),
)
def frexp(self: Array) -> tuple[Array, Array]:
    """Decompose each float into a mantissa and an exponent: x = mantissa * 2**exponent.

    Returns the tuple `(mantissa, exponent)`: mantissas with 0.5 <= |m| < 1 (0 for zero) and int32 exponents.
    """
    if self.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return np.frexp(self)
