"""layer_norm in single passes over rows, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, fold, scalar, share, spread, vector_of, write_row
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]
ROWS = 64
"""Rows whose share of the weight's gradient is summed in one place before the places are added."""


def inverse_root(code: Code, value: Value) -> Value:
    """1 / sqrt(value), both rounded."""
    return code.const(1.0, value.type) / code.sqrt(value)


@cache
def layer_norm_kernel(element: str, weighted: bool, biased: bool) -> Callable[..., bool]:
    """out = (x - mean) * rstd * weight + bias, and the rows' mean and rstd."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *values: Value) -> None:
        given = iter(values)
        x = next(given)
        weight = next(given) if weighted else None
        bias = next(given) if biased else None
        out, means, rstds, _, length, eps = given
        size = code.convert(length, element)
        with code.loop(code.begin, code.end) as row:
            source, target = code.at(x, row * length, element), code.at(out, row * length, element)
            (total,) = fold(code, length, element, lambda i: (code.load(source, i, type),), ["add"])
            mean = total / size
            centre = spread(code, mean)

            def square(i: Value) -> tuple[Value]:
                off = code.load(source, i, type) - centre
                return (off * off,)

            (total,) = fold(code, length, element, square, ["add"])
            rstd = scalar(code, inverse_root, total / size + eps)
            code.store(mean, means, row)
            code.store(rstd, rstds, row)
            scale = spread(code, rstd)

            def write(i: Value) -> None:
                value = (code.load(source, i, type) - centre) * scale
                if weight is not None:
                    value = value * code.load(weight, i, type)
                if bias is not None:
                    value = value + code.load(bias, i, type)
                code.store(value, target, i)

            write_row(code, length, element, write)

    whole, part = calls.array(dtype, "count*length"), calls.array(dtype, "length")
    per_row = calls.array(dtype, "count", write=True)
    params = [whole, *[part] * (weighted + biased), whole._replace(write=True), per_row, per_row]
    params += [calls.integer("count"), calls.integer("length"), calls.number()]
    name = f"layer_norm_{'w' * weighted}{'b' * biased}_{dtype}"
    return calls.kernel(name, params, describe, element=element)


def layer_norm(
    x: Array, weight: Array | None, bias: Array | None, length: int, eps: float
) -> tuple[Array, Array, Array] | None:
    """The normalized rows of x with their means and 1/sqrt(var + eps), one each; None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.size == 0 or (weight is None and bias is not None):
        return None
    count = x.size // length
    out, mean, rstd = np.empty(x.shape, x.dtype), np.empty(count, x.dtype), np.empty(count, x.dtype)
    given = [array for array in (weight, bias) if array is not None]
    kernel = layer_norm_kernel(element, weight is not None, bias is not None)
    if kernel(x, *given, out, mean, rstd, count, length, eps, count, share(length)):
        return out, mean, rstd
    return None


@cache
def layer_norm_backward_kernel(element: str, weighted: bool) -> Callable[..., bool]:
    """The gradient of x; of weight and bias one part for each block of rows. An item is a block."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *values: Value) -> None:
        given = iter(values)
        grad, x, means, rstds = (next(given) for _ in range(4))
        weight = next(given) if weighted else None
        out, d_weight, d_bias, count, length, _ = given
        size = code.convert(length, element)
        with code.loop(code.begin, code.end) as block:
            to_weight, to_bias = (code.at(p, block * length, element) for p in (d_weight, d_bias))
            zero = code.const(0.0, type)

            def clear(i: Value) -> None:
                code.store(zero, to_weight, i)
                code.store(zero, to_bias, i)

            write_row(code, length, element, clear)
            first = block * ROWS
            last = code.select(first + ROWS < count, first + ROWS, count)
            with code.loop(first, last) as row:
                g, source, target = (code.at(p, row * length, element) for p in (grad, x, out))
                centre = spread(code, code.load(means, row, element))
                rstd = code.load(rstds, row, element)
                scale = spread(code, rstd)

                def parts(i: Value) -> tuple[Value, Value, Value]:
                    """The gradient before the weight, the standardized x, and the gradient behind the weight."""
                    gi = code.load(g, i, type)
                    normal = (code.load(source, i, type) - centre) * scale
                    return gi, normal, gi * code.load(weight, i, type) if weight is not None else gi

                def total(i: Value) -> tuple[Value, Value]:
                    gi, normal, behind = parts(i)
                    code.store(code.load(to_weight, i, type) + gi * normal, to_weight, i)
                    code.store(code.load(to_bias, i, type) + gi, to_bias, i)
                    return behind, behind * normal

                sums = fold(code, length, element, total, ["add", "add"], 2)
                mean_grad, mean_product = (spread(code, s / size) for s in sums)

                def write(i: Value) -> None:
                    _, normal, behind = parts(i)
                    code.store((behind - mean_grad - normal * mean_product) * scale, target, i)

                write_row(code, length, element, write)

    whole, rows = calls.array(dtype, "count*length"), calls.array(dtype, "count")
    parts = calls.array(dtype, "blocks*length", write=True)
    params = [whole, whole, rows, rows, *[calls.array(dtype, "length")] * weighted, whole._replace(write=True)]
    params += [parts, parts, calls.integer("count"), calls.integer("length"), calls.integer("blocks")]
    return calls.kernel(f"layer_norm_backward_{'w' * weighted}_{dtype}", params, describe)


def layer_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, length: int
) -> tuple[Array, Array, Array] | None:
    """The gradients of x, weight and bias (the last two as flat rows); None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.size == 0:
        return None
    count = x.size // length
    blocks = -(-count // ROWS)
    out = np.empty(x.shape, x.dtype)
    d_weight, d_bias = np.empty((blocks, length), x.dtype), np.empty((blocks, length), x.dtype)
    given = [] if weight is None else [weight]
    kernel = layer_norm_backward_kernel(element, weight is not None)
    sizes = (count, length, blocks, blocks, max(1, share(length) // ROWS))
    if not kernel(grad, x, mean, rstd, *given, out, d_weight, d_bias, *sizes):
        return None
    if blocks == 1:
        return out, d_weight[0], d_bias[0]
    return out, np.add.reduce(d_weight), np.add.reduce(d_bias)
