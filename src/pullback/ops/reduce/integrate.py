"""Numerical integration and differentiation of samples: trapezoid, cumulative_trapezoid, gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.kinds import made_on
from pullback._arrays.sizes import without_bools
from pullback._op.define import function
from pullback._tensor import Tensor, fresh, normal_dim
from pullback.ops.nn.number import over, times
from pullback.ops.reduce.scan import cumsum
from pullback.ops.reduce.sums import dims_of, sum_dim
from pullback.ops.shape.join import cat
from pullback.ops.shape.reshape import reshape_to, view_
from pullback.ops.shape.slicing import select_int, slice_

# ------------------------------------------------------------------ arithmetic with numbers


def times_number(self: Tensor, number: Any) -> Tensor:
    """self * number; integers become floating point numbers."""
    return times(self, number) if self.dtype.category >= 2 and not isinstance(number, complex) else self * number


def over_number(self: Tensor, number: Any) -> Tensor:
    """self / number; integers become floating point numbers."""
    return over(self, number) if self.dtype.category >= 2 and not isinstance(number, complex) else self / number


# ------------------------------------------------------------------ trapezoid


def invalid_trapezoid(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """Torch's error for arguments of neither form."""
    kinds = [type(value).__name__ for value in args]
    kinds += [f"{key}={type(value).__name__}" for key, value in kwargs.items()]
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:\n"
        " * (Tensor y, Tensor x, *, int dim = -1)\n * (Tensor y, *, Number dx = 1, int dim = -1)\n"
    )


def check_samples(name: str, y: Tensor, x: Tensor | None, dx: Any) -> None:
    """Torch's demands on the samples and their distances."""
    if x is not None:
        if y._array.dtype.kind == "b" or x._array.dtype.kind == "b":
            raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
        return
    if y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if isinstance(dx, (complex, bool)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def distances(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """The distances between the places `x` of the samples, shaped so that they broadcast along `dim`."""
    ndim = y._array.ndim
    if x._array.ndim == 1:
        if x._array.size != y._array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = view_(x, tuple([x._array.size if d == dim else 1 for d in range(ndim)]))
    elif x._array.ndim < ndim:
        x = view_(x, (1,) * (ndim - x._array.ndim) + x._array.shape)
    return slice_(x, dim, 1) - slice_(x, dim, 0, -1)


def samples(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor | None, Any, int]:
    """Sort out the two forms: samples at places, or at equal distances."""
    rest = dict(kwargs)
    dim, dx = rest.pop("dim", -1), rest.pop("dx", None)
    y, x = (*args, None, None)[:2]
    given = len(args) > 1 or "x" in rest
    y, x = rest.pop("y", y), rest.pop("x", x)
    if not isinstance(y, Tensor) or (given and (not isinstance(x, Tensor) or dx is not None)) or len(args) > 2 or rest:
        raise invalid_trapezoid(name, args, kwargs)
    return y, x, 1 if dx is None else dx, dim


@function(raw=True, explained=True, method=False, aliases=("trapz",))
def trapezoid(*args: Any, **kwargs: Any) -> Tensor:
    """Integrate samples along a dimension by the trapezoidal rule: `trapezoid(y, x)` or `trapezoid(y, dx=1)`.

    It is the sum of `(x[i] - x[i - 1]) * (y[i] + y[i - 1]) / 2`. `x` holds the places of the samples; without it they
    are `dx` apart. `dim`, the last by default, is dropped from the shape.
    """
    y, x, dx, dim = samples("trapezoid", args, kwargs)
    if not y._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = normal_dim(dim, y._array.ndim)
    if not y._array.shape[at]:
        return fresh(made_on(y.device, np.zeros, y._array.shape[:at] + y._array.shape[at + 1 :], y._array.dtype))
    check_samples("trapezoid", y, x, dx)
    if x is not None:
        steps = distances("trapezoid", y, x, at)
        return over_number(sum_dim((slice_(y, at, 0, -1) + slice_(y, at, 1)) * steps, (at,), False), 2.0)
    ends = times_number(select_int(y, dim, 0) + select_int(y, dim, -1), 0.5)
    return times_number(sum_dim(y, (dim,), False) - ends, float(dx))


@function(raw=True, explained=True, method=False)
def cumulative_trapezoid(*args: Any, **kwargs: Any) -> Tensor:
    """Compute the running integral of samples along a dimension by the trapezoidal rule.

    The arguments are those of `trapezoid`. The result has one element less than `y` along `dim`: element i is the
    integral up to sample `i + 1`.
    """
    y, x, dx, dim = samples("cumulative_trapezoid", args, kwargs)
    if x is not None:
        dim = normal_dim(dim, y._array.ndim)
    check_samples("cumulative_trapezoid", y, x, dx)
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if x is not None:
        steps = distances("cumulative_trapezoid", y, x, dim)
        return over_number(cumsum((slice_(y, dim, 0, -1) + slice_(y, dim, 1)) * steps, dim), 2.0)
    return cumsum(times_number(slice_(y, dim, 0, -1) + slice_(y, dim, 1), dx / 2.0), dim)


# ------------------------------------------------------------------ gradient


@function(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate the derivative of a sampled function along each dimension, by central differences.

    Returns a tuple with one tensor in the shape of `input` for each dimension in `dim`, all by default.
    `spacing` is the distance between samples, one number or one for each dimension, or tensors with their places.
    `edge_order` is 1 or 2, the order of the one-sided differences at the two ends.
    """
    spacing = spacing.item() if isinstance(spacing, Tensor) else spacing
    dims = without_bools(dims_of(dim))
    several = isinstance(spacing, (list, tuple))
    check_gradient(input, len(spacing) if several else None, dims, edge_order)
    dims = tuple(range(input._array.ndim)) if dims is None else dims
    by = list(spacing) if several else [1.0 if spacing is None else spacing] * len(dims)
    return tuple([derivative(input, by[i], normal_dim(d, input._array.ndim), edge_order) for i, d in enumerate(dims)])


def check_gradient(input: Tensor, count: int | None, dims: Any, edge_order: int) -> None:
    """Torch's demands on the arguments of gradient."""
    shape = input._array.shape
    if input._array.dtype == np.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if count is not None and dims is None and count != len(shape):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
            f"{len(shape)}', since dim argument was not given, but got a list of length {count}"
        )
    if count is not None and dims is not None and count != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {count} and a dim argument of length {len(dims)}."
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    places = range(len(shape)) if dims is None else [normal_dim(d, len(shape)) for d in dims]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise RuntimeError(f"dim {place} appears multiple times in the list of dims")
    for place in places:
        if (shape[place] if shape else 1) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def derivative(self: Tensor, spacing: Any, dim: int, edge_order: int) -> Tensor:
    """The derivative along one dimension."""
    if isinstance(spacing, Tensor):
        return derivative_at_places(self, spacing, dim, edge_order)

    def part(start: int, end: int | None = None) -> Tensor:
        return slice_(self, dim, start, end)

    if edge_order == 1:
        first, last = part(1, 2) - part(0, 1), part(-1) - part(-2, -1)
    else:
        first = times_number(part(0, 1), -1.5) + times_number(part(1, 2), 2) - times_number(part(2, 3), 0.5)
        last = times_number(part(-3, -2), 0.5) - times_number(part(-2, -1), 2) + times_number(part(-1), 1.5)
    middle = over_number(over_number(part(2) - part(0, -2), spacing), 2)
    return cat([over_number(first, spacing), middle, over_number(last, spacing)], dim)


def derivative_at_places(self: Tensor, places: Tensor, dim: int, edge_order: int) -> Tensor:
    """The derivative along one dimension whose samples lie at given places."""
    if places._array.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an element with "
            f"{places._array.ndim} dimensions!"
        )

    def part(start: int, end: int | None = None) -> Tensor:
        return slice_(self, dim, start, end)

    steps = slice_(places, 0, 1) - slice_(places, 0, 0, -1)
    left, right = slice_(steps, 0, 0, -1), slice_(steps, 0, 1)
    shape = tuple([-1 if d == dim else 1 for d in range(self._array.ndim)])
    before = reshape_to(-right / (left * (left + right)), shape)
    here = reshape_to((right - left) / (left * right), shape)
    after = reshape_to(left / (right * (left + right)), shape)
    middle = before * part(0, -2) + here * part(1, -1) + after * part(2)
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / select_int(steps, 0, 0)
        last = (part(-1) - part(-2, -1)) / select_int(steps, 0, -1)
        return cat([first, middle, last], dim)
    near, far = select_int(steps, 0, 0), select_int(steps, 0, 1)
    first = (
        -(2.0 * near + far) / (near * (near + far)) * part(0, 1)
        + (near + far) / (near * far) * part(1, 2)
        + -near / (far * (near + far)) * part(2, 3)
    )
    near, far = select_int(steps, 0, -1), select_int(steps, 0, -2)
    last = (
        near / (far * (near + far)) * part(-3, -2)
        + -(near + far) / (near * far) * part(-2, -1)
        + (2 * near + far) / (near * (near + far)) * part(-1)
    )
    return cat([first, middle, last], dim)
