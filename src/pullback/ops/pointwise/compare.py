"""Comparisons, and the questions one can ask of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._dtype import FROM_NUMPY
from pullback._op.apply import check_broadcast
from pullback._op.constants import constant
from pullback._op.declare import Op
from pullback._op.define import Array, Number, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.math.direct import empty_like
from pullback.ops.pointwise.arithmetic import NUMBERS
from pullback.ops.shape.reshape import zeros_of
from pullback.ops.supported import invalid_combination, refuse, with_number

# ------------------------------------------------------------------ == != < <= > >=


def operands_of(name: str) -> Any:
    """The check that self is a tensor and other a tensor or a number."""

    def check(self: Any, other: Any) -> None:
        if not isinstance(self, Tensor) or not isinstance(other, (Tensor, *NUMBERS)):
            raise invalid_combination(name, (self, other))

    return check


def overwriting(name: str, ufunc: Any) -> Callable[..., Op]:
    """The ops a comparison in place is recorded as: what it writes are numbers, whose derivative is zero."""
    zero = {"self": lambda grad: zeros_of(grad, grad.shape), "result": lambda self_t: zeros_of(self_t, self_t.shape)}

    def by_number(self: Array, other: Number) -> Array:
        return ufunc(*with_number(self, other))

    def by_tensor(self: Array, other: Array) -> Array:
        return ufunc(self, other)

    made = []
    for nr, forward in enumerate((by_number, by_tensor)):
        forward.__name__ = f"{name}_{forward.__name__}"
        forward.__doc__ = f"The in-place form of {name}."
        more: dict[str, Any] = {"promote": True, "other": zero["self"]} if nr else {}
        if ufunc not in (np.equal, np.not_equal):
            more["check"] = check_ordered(name)
        made.append(
            op(
                space=None,
                name=name,
                node=f"{name.capitalize()}Backward{nr}",
                check_operands=operands_in_place(name),
                pointwise=True,
                untraced=("self", "other"),
                **zero,
                **more,
            )(forward).op
        )
    return lambda other: made[isinstance(other, Tensor)]


def operands_in_place(name: str) -> Any:
    """The check that a tensor is compared in place with a tensor or a number."""

    def check(self: Any, other: Any) -> None:
        if not isinstance(other, (Tensor, *NUMBERS)):
            raise invalid_combination(f"{name}_", (other,))

    return check


def check_ordered(name: str) -> Any:
    """NumPy orders complex numbers; torch does not."""

    def check(self: Array, other: Array) -> None:
        check_broadcast([self, other])
        refuse(f"{name}_cpu", self, "c")

    return check


@op(
    nested="strided",
    packed="compared",
    operator="eq",
    inplace=True,
    overwrites=overwriting("eq", np.equal),
    promote=True,
    check_operands=operands_of("eq"),
    numpy=("equal",),
)
def eq(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input == other`, a tensor or a number. Returns bools."""
    return np.equal(self, other)


@op(
    packed="compared",
    operator="ne",
    inplace=True,
    overwrites=overwriting("ne", np.not_equal),
    promote=True,
    aliases=("not_equal",),
    check_operands=operands_of("ne"),
    numpy=("not_equal",),
)
def ne(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input != other`, a tensor or a number. Returns bools."""
    return np.not_equal(self, other)


@op(
    operator="lt",
    inplace=True,
    overwrites=overwriting("lt", np.less),
    promote=True,
    check=check_ordered("lt"),
    aliases=("less",),
    check_operands=operands_of("lt"),
    numpy=("less",),
)
def lt(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input < other`, a tensor or a number. Returns bools."""
    return np.less(self, other)


@op(
    operator="le",
    inplace=True,
    overwrites=overwriting("le", np.less_equal),
    promote=True,
    check=check_ordered("le"),
    aliases=("less_equal",),
    check_operands=operands_of("le"),
    numpy=("less_equal",),
)
def le(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input <= other`, a tensor or a number. Returns bools."""
    return np.less_equal(self, other)


@op(
    nested="strided",
    operator="gt",
    inplace=True,
    overwrites=overwriting("gt", np.greater),
    promote=True,
    check=check_ordered("gt"),
    aliases=("greater",),
    check_operands=operands_of("gt"),
    numpy=("greater",),
)
def gt(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input > other`, a tensor or a number. Returns bools."""
    return np.greater(self, other)


@op(
    nested="strided",
    operator="ge",
    inplace=True,
    overwrites=overwriting("ge", np.greater_equal),
    promote=True,
    check=check_ordered("ge"),
    aliases=("greater_equal",),
    check_operands=operands_of("ge"),
    numpy=("greater_equal",),
)
def ge(self: Array, other: Array | Number) -> Array:
    """Compare elementwise with broadcasting: True where `input >= other`, a tensor or a number. Returns bools."""
    return np.greater_equal(self, other)


# ------------------------------------------------------------------ logic


@op(inplace=True, promote=True)
def logical_and(self: Array, other: Array) -> Array:
    """Compute the logical AND elementwise with broadcasting: True where both elements are nonzero."""
    return np.logical_and(self, other)


@op(inplace=True, promote=True)
def logical_or(self: Array, other: Array) -> Array:
    """Compute the logical OR elementwise with broadcasting: True where at least one of two elements is nonzero."""
    return np.logical_or(self, other)


@op(inplace=True, promote=True)
def logical_xor(self: Array, other: Array) -> Array:
    """Compute the logical XOR elementwise with broadcasting: True where exactly one of two elements is nonzero."""
    return np.logical_xor(self, other)


# ------------------------------------------------------------------ nan, inf, signs


@op(nested="strided", sparse="values", packed="compared", out=False)
def isnan(self: Array) -> Array:
    """Return True where an element is nan; a complex number is if either of its parts is."""
    return np.isnan(self)


@op(nested="strided", sparse="values", packed="compared_complex", kernel="isinf", out=False)
def isinf(self: Array) -> Array:
    """Return True where an element is infinite, of either sign; a complex number is if either of its parts is."""
    return np.isinf(self)


@op(packed="compared_complex", kernel="isfinite", out=False)
def isfinite(self: Array) -> Array:
    """Return True where an element is finite: neither infinite nor nan."""
    return np.isfinite(self)


def check_infinite(name: str) -> Any:
    """Infinity has a sign only among real numbers."""

    def check(self: Array) -> None:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")

    return check


def only_bools(name: str, target: Any, result: Array, lone: bool) -> None:
    """Raise unless answers can be written as they are."""
    if target._array.dtype != result.dtype:
        raise RuntimeError(f"{name} does not support non-boolean outputs.")


@op(nested="strided", sparse="values", check=check_infinite("isposinf"), pointwise=True, out_dtype=only_bools)
def isposinf(self: Array) -> Array:
    """Return True where an element is positive infinity."""
    return is_infinity(self, np.inf)


@op(nested="strided", sparse="values", check=check_infinite("isneginf"), pointwise=True, out_dtype=only_bools)
def isneginf(self: Array) -> Array:
    """Return True where an element is negative infinity."""
    return is_infinity(self, -np.inf)


def is_infinity(self: Array, infinity: float) -> Array:
    """True where an element is this infinity; complex numbers are `check_infinite`'s to refuse."""
    if self.dtype.kind == "c":
        raise TypeError("a complex number has no sign")
    if self.dtype.kind in "iub":
        return np.zeros_like(self, np.bool_)
    return np.equal(self, constant(infinity, self.dtype))


@op(nested="jagged", vmap="leading", out=False)
def isreal(self: Array) -> Array:
    """Return True where an element is real: its imaginary part is zero. Always True for real dtypes."""
    if self.dtype.kind == "c":
        return np.equal(self.imag, 0)
    out = empty_like(self, np.bool_)
    out.fill(True)
    return out


def check_signbit(self: Array) -> None:
    """A complex number has no sign bit."""
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")


@op(sparse="values", check=check_signbit, pointwise=True, out_dtype=only_bools)
def signbit(self: Array) -> Array:
    """Return True where the sign bit of an element is set: for negative numbers, and also for -0.0."""
    if self.dtype.kind in "iub":
        return np.zeros_like(self) if self.dtype.kind == "b" else np.less(self, 0)
    return np.signbit(self)


# ------------------------------------------------------------------ whole tensors


def has_batch(tensor: Any) -> bool:
    """True if a tensor has other elements for each entry of a batch: see batching/tensor.py."""
    while hasattr(type(tensor), "run_op"):
        if tensor._array.bdim is not None:
            return True
        tensor = tensor._array.value
    return False


@function()
def equal(self: Array, other: Array) -> bool:
    """Return True, as a Python bool, if two tensors have the same shape and equal elements.

    nan equals nothing, not even itself.
    """
    for name, value, position in (("input", self, 1), ("other", other, 2)):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"equal(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}"
            )
    if has_batch(self) or has_batch(other):
        raise RuntimeError("Batching rule not implemented for aten::equal. We could not generate a fallback.")
    if self._array.shape != other._array.shape:
        return False
    return eq(self, other)._array.all().item()  # type: ignore[no-any-return]


@op(packed="compared_complex", kernel="mul_cpu_reduced_float", space=None, name="isclose", pointwise=True)
def close(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """True where the elements differ by at most atol + rtol * |other|."""
    if self.dtype != other.dtype:
        raise RuntimeError(f"{FROM_NUMPY[self.dtype].scalar_type} did not match {FROM_NUMPY[other.dtype].scalar_type}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    near = np.equal(self, other)
    if equal_nan and self.dtype.kind not in "iub":
        near = near | (np.isnan(self) & np.isnan(other))
    if rtol == 0 and atol == 0:
        return near
    if self.dtype.kind in "iub":
        self, other = self.astype(np.float64), other.astype(np.float64)
    difference = np.absolute(self - other)
    return near | (np.isfinite(difference) & (difference <= atol + np.absolute(rtol * other)))


@function()
def isclose(self: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Return True where two tensors are equal within a tolerance.

    The test is |input - other| <= atol + rtol * |other|, elementwise with broadcasting.
    With `equal_nan` two nan are close as well; infinities are only close to themselves.
    """
    return close(self, other, rtol, atol, equal_nan)


@function()
def allclose(self: Array, other: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return True, as a Python bool, if all elements of two tensors are equal within a tolerance.

    The test is |input - other| <= atol + rtol * |other| everywhere; with `equal_nan` two nan are close as well.
    """
    return close(self, other, rtol, atol, equal_nan)._array.all().item()  # type: ignore[no-any-return]
