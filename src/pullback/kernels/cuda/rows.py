"""Ops over rows on the device: softmax, layer_norm. Each row is read once where a block can hold it.

See jit/cuda/rows.py, and long_rows.py for rows that are read again.

On the emulated device the functions of `ORACLES` compute the same with NumPy.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._runtime.quiet import quiet
from pullback.kernels.compiled import room
from pullback.kernels.cuda.array import DeviceArray, empty
from pullback.kernels.cuda.device import required, stream_on
from pullback.kernels.cuda.launch import counted, function, window
from pullback.kernels.cuda.native import backward, copied, native, reduced
from pullback.kernels.cuda.pointwise import pointwise

ELEMENTS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat"}
"""LLVM's types of what rows are made of."""
LONG = 1 << 17
"""Elements of a row that one block may have, though most multiprocessors may then have none."""
MANY = 100
"""Rows of which all multiprocessors have some."""


# ------------------------------------------------------------------ programs


def softmax_of(x: Any) -> list[Any]:
    """softmax"""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return [powers / powers.sum(-1, keepdims=True)]


def safe_softmax_of(x: Any) -> list[Any]:
    """softmax in which a row of minus infinities gives zeros."""
    none = (x == -np.inf).all(-1, keepdims=True)
    powers = np.exp(x - np.where(none, 0, x.max(-1, keepdims=True)))
    return [powers / np.where(none, 1, powers.sum(-1, keepdims=True))]


def log_softmax_of(x: Any) -> list[Any]:
    """log_softmax"""
    away = x - x.max(-1, keepdims=True)
    return [away - np.log(np.exp(away).sum(-1, keepdims=True))]


def softmax_backward_of(grad: Any, out: Any) -> list[Any]:
    """The gradient of softmax."""
    return [out * (grad - (grad * out).sum(-1, keepdims=True))]


def log_softmax_backward_of(grad: Any, out: Any) -> list[Any]:
    """The gradient of log_softmax."""
    return [grad - np.exp(out) * grad.sum(-1, keepdims=True)]


def layer_norm_of(x: Any, weight: Any, bias: Any, eps: float) -> list[Any]:
    """layer_norm, means and inverse deviations."""
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + x.dtype.type(eps))
    out = (x - mean) * rstd
    out = out if weight is None else out * weight
    return [out if bias is None else out + bias, mean, rstd]


def layer_norm_backward_of(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any) -> list[Any]:
    """The gradient of layer_norm's input."""
    normal = (x - mean[:, None]) * rstd[:, None]
    grad = grad if weight is None else grad * weight
    slope = (grad * normal).mean(-1, keepdims=True)
    return [rstd[:, None] * (grad - grad.mean(-1, keepdims=True) - normal * slope)]


def attention_of(x: Any, factor: float, period: int) -> list[Any]:
    """softmax of scores, of what each query sees, and the logarithms of the sums."""
    x = x * x.dtype.type(factor)
    if period:
        x = np.where(np.arange(x.shape[1]) <= (np.arange(x.shape[0]) % period)[:, None], x, x.dtype.type(-np.inf))
    top = x.max(-1, keepdims=True)
    total = np.exp(x - np.where(top == -np.inf, 0, top)).sum(-1)
    return [*safe_softmax_of(x), np.where(top[:, 0] == -np.inf, -np.inf, top[:, 0] + np.log(total))]


ORACLES: dict[str, Callable[..., list[Any]]] = {
    "softmax": softmax_of,
    "safe_softmax": safe_softmax_of,
    "log_softmax": log_softmax_of,
    "attention": attention_of,
    "softmax_backward": softmax_backward_of,
    "log_softmax_backward": log_softmax_backward_of,
    "layer_norm": layer_norm_of,
    "layer_norm_backward": layer_norm_backward_of,
}


def are_rows(length: int, *arrays: Any, held: bool = False) -> bool:
    """True for arrays of one dtype whose rows lie one after the other, and are not so long and few that one block for
    each is too little; with `held` they have to be short enough for registers."""
    first = arrays[0]
    return (
        room("cuda.rows") is not None
        and first.dtype.name in ELEMENTS
        and first.size > 0
        and length > 0
        and all([type(a) is DeviceArray and a.flags.c_contiguous and a.dtype == first.dtype for a in arrays])
        and (
            room("cuda.rows").shape_of(length, 1, held=True) is not None
            if held
            else length <= LONG or first.size // length >= MANY
        )
    )


def run(
    name: str,
    length: int,
    reads: list[Any],
    weight: Any = None,
    bias: Any = None,
    facts: Any = None,
    eps: float = 0.0,
    period: int = 0,
) -> Any:
    """What a program over rows writes, shaped as what it reads; `facts` are numbers of each row, written or read."""
    first = reads[0]
    out = empty(first.shape, first.dtype, None, first.device)
    rows = first.size // length
    counted("rows")
    if required().emulated:
        wide = SINGLE if is_half(first.dtype) else first.dtype
        given = [window(a).reshape(rows, length).astype(wide) for a in reads]
        if name == "layer_norm":
            given += [None if p is None else window(p).reshape(-1).astype(wide) for p in (weight, bias)] + [eps]
        elif name == "attention":
            given += [eps, period]
        elif name == "layer_norm_backward":
            given += [None if weight is None else window(weight).reshape(-1).astype(wide)]
            given += [window(fact).reshape(-1) for fact in facts]
        made = quiet().run(ORACLES[name], *given)
        window(out)[...] = made[0].reshape(out.shape)
        if len(made) > 1:
            for fact, value in zip(facts[-len(made) + 1 :], made[1:], strict=True):
                window(fact)[...] = value.reshape(fact.shape)
        return out
    kernels = room("cuda.rows")
    arrays = [*reads, out, *[p for p in (weight, bias) if p is not None]]
    wide = 16 // first.itemsize
    if length % wide or any([a.address % 16 for a in arrays]):
        wide = 1
    letters = ("w" if weight is not None else "") + ("b" if bias is not None else "")
    element, key = ELEMENTS[first.dtype.name], None
    shape = kernels.shape_of(length, wide, element, name == "attention")
    if shape is None:
        kernels, key = room("cuda.long_rows"), (name, element, wide, letters)
        threads = kernels.THREADS
    else:
        key, threads = (name, element, *shape, wide, letters), shape[0]
    index = first.device.index or 0
    ready = function(index, kernels.name_of(*key), lambda: kernels.text_of(*key))
    addresses = [a.address for a in (*reads, out)]
    addresses += [0 if a is None else a.address for a in (weight, bias, *(facts or (None, None)))]
    at_once = 8 if threads == 32 else 1
    packed = struct.pack("Q" * len(addresses) + "qqqd", *addresses, rows, length, period, eps)
    block = 256 if threads == 32 else threads
    required().launch(index, ready, (-(-rows // at_once), 1, 1), block, stream_on(index), packed)
    return out


# ------------------------------------------------------------------ softmax


def last_rows(dim: Any, *arrays: Any) -> bool:
    """True if a program can run along a dimension."""
    first = arrays[0]
    return (
        type(dim) is int
        and first.ndim > 0
        and dim in (-1, first.ndim - 1)
        and are_rows(first.shape[-1], *arrays)
        and all([a.shape == first.shape for a in arrays])
    )


def away(x: Any, largest: Any) -> Any:
    """exp(x - largest)"""
    return np.exp(x - largest)


def log_away(x: Any, largest: Any, total: Any) -> Any:
    """x - largest - log(total)"""
    return x - largest - np.log(total)


def is_row_float(array: Any, dim: Any) -> bool:
    """True for what row kernels take."""
    return array.dtype.name in ("float32", "float64") and array.size > 0 and array.ndim > 0 and type(dim) is int


@native("softmax_rows")
def softmax(array: Any, dim: int) -> Any:
    """exp(x) / sum(exp(x))"""
    if last_rows(dim, array):
        return run("softmax", array.shape[-1], [array])
    if not is_row_float(array, dim):
        return None
    powers = pointwise(away, (array, reduced("max", array, dim, True)), {})
    return None if powers is None else powers / reduced("sum", powers, dim, True)


@native("safe_softmax")
def safe_softmax(array: Any, dim: int) -> Any:
    """softmax in which a row of minus infinities gives zeros."""
    return run("safe_softmax", array.shape[-1], [array]) if last_rows(dim, array) else None


@native("log_softmax_rows")
def log_softmax(array: Any, dim: int) -> Any:
    """x - log(sum(exp(x)))"""
    if last_rows(dim, array):
        return run("log_softmax", array.shape[-1], [array])
    if not is_row_float(array, dim):
        return None
    largest = reduced("max", array, dim, True)
    powers = pointwise(away, (array, largest), {})
    return None if powers is None else pointwise(log_away, (array, largest, reduced("sum", powers, dim, True)), {})


@native("softmax_backward_data")
def softmax_backward(grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    """y * (g - sum(g * y))"""
    if last_rows(dim, grad, output):
        return run("softmax_backward", grad.shape[-1], [grad, output])
    if not is_row_float(grad, dim):
        return None
    total = reduced("sum", grad * output, dim, True)
    return pointwise(lambda_softmax, (grad, output, total), {})


def lambda_softmax(grad: Any, output: Any, total: Any) -> Any:
    """y * (g - total)"""
    return output * (grad - total)


@native("log_softmax_backward_data")
def log_softmax_backward(grad: Any, output: Any, dim: int, *rest: Any) -> Any:
    """g - exp(y) * sum(g)"""
    if last_rows(dim, grad, output):
        return run("log_softmax_backward", grad.shape[-1], [grad, output])
    if not is_row_float(grad, dim):
        return None
    return pointwise(lambda_log_softmax, (grad, output, reduced("sum", grad, dim, True)), {})


def lambda_log_softmax(grad: Any, output: Any, total: Any) -> Any:
    """g - exp(y) * total"""
    return grad - np.exp(output) * total


# ------------------------------------------------------------------ layer_norm


@native("layer_norm_op")
def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """layer_norm, the means and the inverse deviations."""
    length, k = math.prod(normalized_shape), len(normalized_shape)
    given = [input, *[p for p in (weight, bias) if p is not None]]
    if not k or input.shape[-k:] != tuple(normalized_shape) or not are_rows(length, input):
        if not (type(input) is DeviceArray and input.size and input.dtype.name in ELEMENTS):
            return None
        input = given[0] = input.copy("C")
    if not are_rows(length, *given):
        return None
    kind = SINGLE if is_half(input.dtype) else input.dtype
    lead = (*input.shape[:-k], *(1,) * k)
    mean, rstd = (empty(lead, kind, None, input.device) for _ in range(2))
    out = run("layer_norm", length, [input], weight, bias, (mean, rstd), eps)
    return [out, *[fact if kind == input.dtype else copied(fact, input.dtype) for fact in (mean, rstd)]]


@backward("layer_norm_op")
def layer_norm_backward(
    grads: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any, mean: Any, rstd: Any, wants: Any
) -> Any:
    """The gradients of the input, the weight and the bias."""
    grad, length = grads[0], math.prod(normalized_shape)
    if grad is None or grads[1] is not None or grads[2] is not None or is_half(input.dtype):
        return None
    grad, input = (a if a.flags.c_contiguous else a.copy("C") for a in (grad, input))
    if not are_rows(length, grad, input, *([] if weight is None else [weight])):
        return None
    found = run("layer_norm_backward", length, [grad, input], weight, None, (mean, rstd)) if wants[0] else None
    lead = tuple(range(input.ndim - len(normalized_shape)))
    d_weight = d_bias = None
    if wants[1]:
        products = pointwise(scaled_by_normal, (grad, input, mean, rstd), {})
        d_weight = reduced("sum", products, lead, False) if lead else products
    if wants[2]:
        d_bias = reduced("sum", grad, lead, False) if lead else grad
    return found, d_weight, d_bias


def scaled_by_normal(grad: Any, x: Any, mean: Any, rstd: Any) -> Any:
    """g * (x - mean) * rstd"""
    return grad * ((x - mean) * rstd)
