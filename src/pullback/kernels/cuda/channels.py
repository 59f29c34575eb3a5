"""Norms over channels and groups on the device, as reductions and pointwise kernels; norms of vectors, variances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.native import backward, copied, dims_of, native, reduced
from pullback.kernels.cuda.pointwise import pointwise

FLOATS = ("float32", "float64", "float16", "bfloat16")


def wide(array: Any) -> Any:
    """Halves in float32; all else as it is."""
    return copied(array, SINGLE) if array is not None and is_half(array.dtype) else array


def away_squared(x: Any, mean: Any) -> Any:
    """(x - mean)^2"""
    return (x - mean) * (x - mean)


def inverse_deviation(total: Any, count: int, eps: float) -> Any:
    """1 / sqrt(total / count + eps)"""
    kind = total.dtype.type
    return kind(1) / np.sqrt(total / kind(count) + kind(eps))


def standard(x: Any, mean: Any, rstd: Any) -> Any:
    """(x - mean) * rstd"""
    return (x - mean) * rstd


def standard_scaled(x: Any, mean: Any, rstd: Any, weight: Any, bias: Any) -> Any:
    """(x - mean) * rstd * weight + bias"""
    return (x - mean) * rstd * weight + bias


def with_running(running: Any, value: Any, momentum: float, factor: float) -> Any:
    """What moves a running statistic."""
    kind = running.dtype.type
    return running * kind(1 - momentum) + value * kind(momentum * factor)


def statistics(x: Any, dims: Any, eps: float) -> tuple[Any, Any, Any, int]:
    """Mean, sum of squares away from it, and inverse deviation over some dimensions, kept as ones."""
    count = math.prod([x.shape[d] for d in dims])
    mean = reduced("sum", x, dims, True) / x.dtype.type(count)
    squares = reduced("sum", pointwise(away_squared, (x, mean), {}), dims, True)
    return mean, squares, pointwise(inverse_deviation, (squares, count, eps), {}), count


def is_taken(x: Any, *others: Any) -> bool:
    """True for floats on the device, none of them empty, where there are kernels that add them up."""
    if room("cuda.reductions") is None:
        return False
    return all([o is None or (type(o) is DeviceArray and o.dtype.name in FLOATS and o.size) for o in (x, *others)])


def finished(x: Any, mean: Any, rstd: Any, weight: Any, bias: Any, dtype: Any) -> Any:
    """The standardized array, scaled and shifted where there is something to scale and shift by."""
    if weight is not None and bias is not None:
        out = pointwise(standard_scaled, (x, mean, rstd, weight, bias), {})
    else:
        out = pointwise(standard, (x, mean, rstd), {})
        out = out if weight is None else out * weight
        out = out if bias is None else out + bias
    return out if out.dtype == dtype else copied(out, dtype)


def shaped(values: Any, ndim: int) -> Any:
    """One value for each channel, to broadcast against images."""
    return None if values is None else values.reshape(1, -1, *[1] * (ndim - 2))


# ------------------------------------------------------------------ batch_norm


@native("batch_norm_op")
def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: Any, eps: float
) -> Any:
    """Channels with mean zero and variance one, scaled and shifted; training moves the running statistics."""
    given = (weight, bias, running_mean, running_var)
    if not is_taken(input, *given) or input.ndim < 2 or (not training and running_mean is None):
        return None
    kind, ndim = SINGLE if is_half(input.dtype) else input.dtype, input.ndim
    if any([p is not None and (p.dtype not in (kind, input.dtype) or not p.flags.c_contiguous) for p in given]):
        return None
    x, scale, shift = wide(input), shaped(wide(weight), ndim), shaped(wide(bias), ndim)
    if not training:
        squares = shaped(wide(running_var), ndim)
        rstd = pointwise(inverse_deviation, (squares, 1, eps), {})
        out = finished(x, shaped(wide(running_mean), ndim), rstd, scale, shift, input.dtype)
        return [out, *[empty((0,), kind, None, input.device) for _ in range(2)]]
    mean, squares, rstd, count = statistics(x, (0, *range(2, ndim)), eps)
    if running_mean is not None:
        if momentum is None or count < 2:
            return None
        pairs = ((running_mean, mean, 1.0), (running_var, squares, 1 / (count - 1)))
        for running, value, factor in pairs:
            own = wide(running)
            pointwise(with_running, (own, value.reshape(-1), float(momentum), factor), {}, own)
            if own is not running:
                running[...] = own
    out = finished(x, mean, rstd, scale, shift, input.dtype)
    return [out, mean.reshape(-1), rstd.reshape(-1)]


def slope(grad: Any, normal: Any, rstd: Any, total: Any, along: Any, count: int) -> Any:
    """rstd * (g - sum(g) / n - normal * sum(g * normal) / n)"""
    kind = grad.dtype.type
    return rstd * (grad - total / kind(count) - normal * (along / kind(count)))


@backward("batch_norm_op")
def batch_norm_backward(
    grads: Any, input: Any, weight: Any, running_mean: Any, running_var: Any, training: bool, eps: float, mean: Any,
    rstd: Any, wants: Any,
) -> Any:  # fmt: skip
    """The gradients of the input, the weight and the bias."""
    grad, ndim = grads[0], input.ndim
    if not training or grad is None or grads[1] is not None or grads[2] is not None:
        return None
    if not is_taken(input, weight, grad) or is_half(input.dtype):
        return None
    dims = (0, *range(2, ndim))
    count = math.prod([input.shape[d] for d in dims])
    mean, rstd, scale = (shaped(values, ndim) for values in (mean, rstd, weight))
    normal = pointwise(standard, (input, mean, rstd), {})
    total, along = reduced("sum", grad, dims, True), reduced("sum", grad * normal, dims, True)
    found = None
    if wants[0]:
        factor = rstd if scale is None else rstd * scale
        found = pointwise(slope, (grad, normal, factor, total, along, count), {})
    return found, along.reshape(-1) if wants[1] else None, total.reshape(-1) if wants[2] else None


# ------------------------------------------------------------------ group_norm


@native("group_norm_op")
def group_norm(input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    """Groups of channels with mean zero and variance one, the channels scaled and shifted."""
    if not is_taken(input, weight, bias) or not input.flags.c_contiguous:
        return None
    kept = input.dtype if weight is None else weight.dtype
    if kept != input.dtype and kept != SINGLE:
        return None
    if any([p is not None and p.dtype != kept for p in (weight, bias)]):
        return None
    channel = (1, group, C // group, 1)
    x = wide(input).reshape(N, group, C // group, HxW)
    mean, _, rstd, _ = statistics(x, (2, 3), eps)
    scale, shift = (None if p is None else wide(p).reshape(channel) for p in (weight, bias))
    out = finished(x, mean, rstd, scale, shift, input.dtype)
    stats = [s if s.dtype == kept else copied(s, kept) for s in (mean, rstd)]
    return [out.reshape(input.shape), *[s.reshape(N, group) for s in stats]]


# ------------------------------------------------------------------ norms and variances


@native("vector_norm_dim")
def vector_norm(self: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Norms of the orders 1, 2 and infinity."""
    if not is_taken(self) or dtype is not None or ord not in (1, 2, math.inf, -math.inf):
        return None
    x = wide(self)
    dims = dims_of(dim, x.ndim)
    if dims is None:
        return None
    if ord == 2:
        made = np.sqrt(reduced("sum", x * x, dims, keepdim))
    elif ord == 1:
        made = reduced("sum", np.absolute(x), dims, keepdim)
    else:
        made = reduced("max" if ord > 0 else "min", np.absolute(x), dims, keepdim)
    return made if made.dtype == self.dtype else copied(made, self.dtype)


def moments(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Mean and variance; None if no kernels can give them."""
    if not is_taken(self) or is_half(self.dtype) or type(correction) not in (int, float, type(None)):
        return None
    dims = dims_of(dim, self.ndim)
    if dims is None:
        return None
    count = math.prod([self.shape[d] for d in dims])
    left = count - (1 if correction is None else correction)
    if left <= 0:
        return None
    mean = reduced("sum", self, dims, True) / self.dtype.type(count)
    squares = reduced("sum", pointwise(away_squared, (self, mean), {}), dims, keepdim)
    return mean.reshape(squares.shape), squares / self.dtype.type(left)


@native("var_dim")
def var(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Variances."""
    found = moments(self, dim, correction, keepdim)
    return None if found is None else found[1]


@native("std_dim")
def std(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Standard deviations."""
    found = moments(self, dim, correction, keepdim)
    return None if found is None else np.sqrt(found[1])


@native("var_mean_dim")
def var_mean(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    """Variances and means."""
    found = moments(self, dim, correction, keepdim)
    return None if found is None else [found[1], found[0]]
