"""Choosing between values: where, maximum, minimum, clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.kinds import laid_out
from pullback._dtype import FROM_NUMPY, result_numpy_dtype
from pullback._op.apply import cast, check_broadcast
from pullback._op.constants import constant
from pullback._op.define import Array, Number, function, op
from pullback._op.inplace import make_inplace
from pullback._op.out import write_result
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trim
from pullback.kernels.numpy.index.subscript import BOOL
from pullback.ops.pointwise.arithmetic import NUMBERS, logical_not, where_tensors
from pullback.ops.pointwise.compare import isnan, logical_and, logical_or
from pullback.ops.reduce.sums import zero_where
from pullback.ops.supported import invalid_combination, refuse

# ------------------------------------------------------------------ the larger, the smaller


def refuse_complex(name: str) -> Any:
    """Complex numbers are not ordered."""

    def check(self: Array, other: Array) -> None:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name} not implemented for complex tensors.")
        check_broadcast([self, other])

    return check


@op(
    promote=True,
    check=refuse_complex("maximum"),
    foreach="bound",
    self=lambda grad, self, other: shared(grad, self == other, self < other),
    other=lambda grad, self, other: shared(grad, self == other, self > other),
    result=lambda self_t, other_t, self, other: winner(self_t, other_t, self == other, self > other),
)
def maximum(self: Array, other: Array) -> Array:
    """Return the elementwise maximum of two tensors, with broadcasting; nan where either is nan."""
    return np.maximum(self, other)


@op(
    promote=True,
    check=refuse_complex("minimum"),
    foreach="bound",
    self=lambda grad, self, other: shared(grad, self == other, self > other),
    other=lambda grad, self, other: shared(grad, self == other, self < other),
    result=lambda self_t, other_t, self, other: winner(self_t, other_t, self == other, self < other),
)
def minimum(self: Array, other: Array) -> Array:
    """Return the elementwise minimum of two tensors, with broadcasting; nan where either is nan."""
    return np.minimum(self, other)


def winner(self_t: Any, other_t: Any, tie: Any, won: Any) -> Any:
    """The tangent of the competitor that won; the mean at a tie, that of `other` where there is a nan."""
    return where_tensors(tie, (self_t + other_t) / 2, where_tensors(won, self_t, other_t))


def shared(grad: Any, tie: Any, lost: Any) -> Any:
    """The gradient for one of two competitors: half at a tie, none where the other one won."""
    return zero_where(where_tensors(tie, grad / 2, grad), lost)


@op(
    promote=True,
    check=refuse_complex("fmax"),
    self=lambda grad, self, other: zero_where(grad, logical_not(logical_or(self >= other, isnan(other)))),
    other=lambda grad, self, other: zero_where(grad, logical_or(self >= other, isnan(other))),
    result=lambda self_t, other_t, self, other: where_tensors(logical_or(self > other, isnan(other)), self_t, other_t),
)
def fmax(self: Array, other: Array) -> Array:
    """Return the elementwise maximum of two tensors, ignoring nan: the result is nan only where both are."""
    return np.fmax(self, other)


@op(
    promote=True,
    check=refuse_complex("fmin"),
    self=lambda grad, self, other: zero_where(grad, logical_not(logical_or(self <= other, isnan(other)))),
    other=lambda grad, self, other: zero_where(grad, logical_or(self <= other, isnan(other))),
    result=lambda self_t, other_t, self, other: where_tensors(logical_or(self <= other, isnan(other)), self_t, other_t),
)
def fmin(self: Array, other: Array) -> Array:
    """Return the elementwise minimum of two tensors, ignoring nan: the result is nan only where both are."""
    return np.fmin(self, other)


# ------------------------------------------------------------------ clamp


def bounded(self: Array, low: Any, high: Any) -> Array:
    """Each element, but not below `low` nor above `high`; where they contradict, `high` wins."""
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if low is None:
        return np.minimum(high, self)  # of 0.0 and -0.0 the second: the element stays as it is
    raised = np.maximum(low, self)
    return raised if high is None else np.minimum(high, raised)


def inside(self: Any, low: Any, high: Any) -> Any:
    """True where clamp changes nothing."""
    if low is None:
        return self <= high
    return self >= low if high is None else logical_and(self >= low, self <= high)


@op(
    kernel="clamp_scalar_cpu",
    space=None,
    name="clamp",
    node="ClampBackward1",
    pointwise=True,
    self=lambda grad, self, min, max: where_tensors(inside(self, min, max), grad, 0),
    result=lambda self_t, self, min, max: where_tensors(inside(self, min, max), self_t, 0),
)
def clamp_numbers(self: Array, min: Number | None = None, max: Number | None = None) -> Array:
    """Clamp between numbers."""
    self, min, max = same_dtype(self, min, max)
    refuse(
        "clamp_min_scalar_cpu" if max is None else "clamp_max_scalar_cpu" if min is None else "clamp_scalar_cpu",
        self,
        "b",
    )
    return bounded(self, min, max)


def same_dtype(self: Array, low: Any, high: Any) -> tuple[Array, Any, Any]:
    """An array and its bounds, arrays or numbers, in the dtype they promote to."""
    dtype = self.dtype
    lowest = low if low is None else constant(low, dtype)
    highest = high if high is None else constant(high, dtype)
    if (low is None or lowest is not None) and (high is None or highest is not None):
        return self, lowest, highest
    common = result_numpy_dtype([x for x in (self, low, high) if x is not None])
    return cast(self, common), bound_in(low, common), bound_in(high, common)


def compared(self: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """The same with bounds without dimensions in the dtype of a tensor that has some, as torch compares them."""
    if not isinstance(self, np.ndarray) or not self.ndim or self.dtype.kind != "f":
        return self, low, high
    bounds = [cast(b, self.dtype) if b is not None and not b.ndim and b.dtype.kind == "f" else b for b in (low, high)]
    return self, *bounds


def bound_in(bound: Any, dtype: np.dtype[Any]) -> Any:
    """A bound in a dtype; a number has to fit."""
    if bound is None or isinstance(bound, np.ndarray):
        return None if bound is None else cast(bound, dtype)
    return np.asarray(exact_number(bound, FROM_NUMPY[dtype]), dtype)


@op(
    kernel="clamp_scalar_cpu",
    space=None,
    name="clamp",
    node="ClampBackward0",
    pointwise=True,
    layout="own",
    self=lambda grad, self, min, max: where_tensors(inside(*compared(self, min, max)), grad, 0),
    min=lambda grad, self, min, max: where_tensors(at_low(*compared(self, min, max)), grad, 0),
    max=lambda grad, self, min, max: where_tensors(at_high(*compared(self, min, max)), grad, 0),
    result=lambda self_t, min_t, max_t, self, min, max: clamp_moves(self_t, min_t, max_t, self, min, max),
)
def clamp_tensors(self: Array, min: Array | None = None, max: Array | None = None) -> Array:
    """Clamp between tensors."""
    check_broadcast([bound for bound in (self, min, max) if bound is not None])
    self, min, max = same_dtype(self, min, max)
    if min is not None and max is not None:
        refuse("clamp_cpu", self, "b")
    return laid_out(bounded(self, min, max), (self, min, max))


def at_low(self: Any, low: Any, high: Any) -> Any:
    """True where the result is the lower bound."""
    return self < low if high is None else logical_and(self < low, low < high)


def at_high(self: Any, low: Any, high: Any) -> Any:
    """True where the result is the upper bound."""
    return self > high if low is None else logical_or(self > high, high < low)


def clamp_moves(self_t: Any, min_t: Any, max_t: Any, self: Any, low: Any, high: Any) -> Any:
    """How the clamped value moves: with self inside, with a bound beyond it, with the only bound also at it."""
    if high is None:
        return where_tensors(self > low, self_t, min_t)
    if low is None:
        return where_tensors(self < high, self_t, max_t)
    within = where_tensors(self > high, max_t, self_t)
    return where_tensors(low > high, max_t, where_tensors(self < low, min_t, within))


clamp_numbers_ = make_inplace(clamp_numbers.op)
clamp_tensors_ = make_inplace(clamp_tensors.op)


def clamp_call(self: Any, low: Any, high: Any, numbers: Any, tensors: Any) -> Any:
    """Pick the overload: tensors if a bound is one."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        if not isinstance(low, NUMBERS) and not isinstance(high, NUMBERS):
            return tensors(self, low, high)
        low, high = as_number(low), as_number(high)
    for bound in (low, high):
        if type(bound) is not float and bound is not None and not isinstance(bound, NUMBERS):
            given = tuple([x for x in (self, low, high) if x is not None])
            raise invalid_combination("clamp", given)
    return numbers(self, low, high)


def as_number(bound: Any) -> Any:
    """A tensor that counts as its number, beside a bound that is one; any other is left as it is."""
    counts = isinstance(bound, Tensor) and not bound._array.ndim and not bound.requires_grad
    return bound.item() if counts else bound


@function(out=True, aliases=("clip",), numpy=("clip",))
def clamp(self: Array, min: Any = None, max: Any = None) -> Array:
    """Clamp every element to the range from `min` to `max`.

    The bounds are numbers, or tensors that broadcast with the input; either of them may be left out.
    nan stays nan, and where `min` is above `max` the result is `max`.
    """
    return clamp_call(self, min, max, clamp_numbers, clamp_tensors)


@function(name="clamp_", aliases=("clip_",))
def clamp_inplace(self: Array, min: Any = None, max: Any = None) -> Array:
    """In-place version of :func:`clamp`."""
    return clamp_call(self, min, max, clamp_numbers_, clamp_tensors_)


@op(
    kernel="clamp_min_scalar_cpu",
    space=None,
    name="clamp_min",
    node="ClampMinBackward0",
    pointwise=True,
    self=lambda grad, self, min: where_tensors(self >= min, grad, 0),
    result=lambda self_t, self, min: where_tensors(self >= min, self_t, 0),
)
def clamp_min_number(self: Array, min: Number) -> Array:
    """Clamp from below with a number."""
    self, min, _ = same_dtype(self, min, None)
    refuse("clamp_min_scalar_cpu", self, "b")
    return bounded(self, min, None)


@op(
    kernel="clamp_min_scalar_cpu",
    space=None,
    name="clamp_min",
    node="ClampMinBackward1",
    promote=True,
    pointwise=True,
    self=lambda grad, self, min: where_tensors(self >= min, grad, 0),
    min=lambda grad, self, min: where_tensors(self < min, grad, 0),
    result=lambda self_t, min_t, self, min: where_tensors(self >= min, self_t, min_t),
)
def clamp_min_tensor(self: Array, min: Array) -> Array:
    """Clamp from below with a tensor."""
    refuse("maximum_cpu", self, "c")
    return bounded(self, min, None)


@op(
    kernel="clamp_max_scalar_cpu",
    space=None,
    name="clamp_max",
    node="ClampMaxBackward0",
    pointwise=True,
    self=lambda grad, self, max: where_tensors(self <= max, grad, 0),
    result=lambda self_t, self, max: where_tensors(self <= max, self_t, 0),
)
def clamp_max_number(self: Array, max: Number) -> Array:
    """Clamp from above with a number."""
    self, _, max = same_dtype(self, None, max)
    refuse("clamp_max_scalar_cpu", self, "b")
    return bounded(self, None, max)


@op(
    kernel="clamp_max_scalar_cpu",
    space=None,
    name="clamp_max",
    node="ClampMaxBackward1",
    promote=True,
    pointwise=True,
    self=lambda grad, self, max: where_tensors(self <= max, grad, 0),
    max=lambda grad, self, max: where_tensors(self > max, grad, 0),
    result=lambda self_t, max_t, self, max: where_tensors(self <= max, self_t, max_t),
)
def clamp_max_tensor(self: Array, max: Array) -> Array:
    """Clamp from above with a tensor."""
    refuse("minimum_cpu", self, "c")
    return bounded(self, None, max)


def check_one_bound(name: str, bound: str, self: Any, value: Any) -> None:
    """Raise unless self is a tensor and the bound a tensor or a number."""
    if not isinstance(self, Tensor) or not isinstance(value, (Tensor, *NUMBERS)):
        raise invalid_combination(name, (self, value))


@function(out=True, foreach="binary")
def clamp_min(self: Array, min: Any) -> Array:
    """Clamp every element from below: the larger of the element and `min`, a number or a tensor."""
    check_one_bound("clamp_min", "min", self, min)
    return (clamp_min_tensor if isinstance(min, Tensor) else clamp_min_number)(self, min)


@function(out=True, foreach="binary")
def clamp_max(self: Array, max: Any) -> Array:
    """Clamp every element from above: the smaller of the element and `max`, a number or a tensor."""
    check_one_bound("clamp_max", "max", self, max)
    return (clamp_max_tensor if isinstance(max, Tensor) else clamp_max_number)(self, max)


clamp_min_number_ = make_inplace(clamp_min_number.op)
clamp_min_tensor_ = make_inplace(clamp_min_tensor.op)
clamp_max_number_ = make_inplace(clamp_max_number.op)
clamp_max_tensor_ = make_inplace(clamp_max_tensor.op)


@function(name="clamp_min_")
def clamp_min_inplace(self: Array, min: Any) -> Array:
    """In-place version of :func:`clamp_min`."""
    return (clamp_min_tensor_ if isinstance(min, Tensor) else clamp_min_number_)(self, min)


@function(name="clamp_max_")
def clamp_max_inplace(self: Array, max: Any) -> Array:
    """In-place version of :func:`clamp_max`."""
    return (clamp_max_tensor_ if isinstance(max, Tensor) else clamp_max_number_)(self, max)


# ------------------------------------------------------------------ where


def warn_byte_condition() -> None:
    """Torch's warning, once, about a condition of bytes."""
    warn_once(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
        "version of PyTorch. Use a boolean condition instead.",
    )


def where_call(condition: Any, self: Any, other: Any) -> Any:
    """`where` with three arguments: numbers count as numbers in promotion."""
    if condition._array.dtype.kind != "b" and condition._array.dtype != np.uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.scalar_type}"
        )
    if condition._array.dtype.kind != "b":
        warn_byte_condition()
        condition = condition != 0
    # A float of this size fits every dtype a float promotes to.
    small = lambda x: type(x) is float and -65504 <= x <= 65504
    numbers = [x for x in (self, other) if not isinstance(x, Tensor) and not small(x)]
    if numbers:
        kind = FROM_NUMPY[result_numpy_dtype([x._array if isinstance(x, Tensor) else x for x in (self, other)])]
        for number in numbers:
            convert_number(number, kind)
    return where_tensors(condition, self, other)


@function(raw=True, method=False, numpy=("where",))
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Choose elements of `input` where `condition` is True, and of `other` elsewhere.

    All three are broadcast; `input` and `other` are tensors or numbers and get a common dtype.
    Called with the condition alone, it returns the indices of its nonzero elements, one vector for each dimension.
    """
    try:
        if type(condition) is type(input) is type(other) is Tensor and condition._array.dtype is BOOL and out is None:
            return where_tensors(condition, input, other)
        if input is None and other is None:
            return condition.nonzero(as_tuple=True)
        if not all(isinstance(x, (Tensor, *NUMBERS)) for x in (input, other)) or not isinstance(condition, Tensor):
            given = (condition, input, other)
            raise invalid_combination("where", given[: 3 if other is not None else 2])
        result = where_call(condition, input, other)
        return result if out is None else write_result("where", result, out, (input, other))
    except Exception as error:
        trim(error)
        raise


@function(raw=True, name="where", space=None)
def where_method(self: Array, condition: Array, other: Array | Number) -> Array:
    """Choose elements of this tensor where `condition` is True, and of `other` elsewhere, with broadcasting."""
    return where(condition, self, other)
