"""Batch, group and instance norm in single passes over the channels of images, forward and backward.

A group of numbers with one mean lies in memory as `runs` stretches of equal length. For batch norm a group is a
channel and its runs are the images; for group norm a group is part of one image and its runs are the channels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback.kernels.jit.language.code import Code, Value
from pullback.kernels.jit.rows.norms import inverse_root
from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, fold, scalar, share, spread, vector_of, write_row
from pullback.kernels.jit.runtime import calls

Array = np.ndarray[Any, Any]


@cache
def channel_norm_kernel(element: str, weighted: bool, biased: bool) -> Callable[..., bool]:
    """out = (x - mean) * rstd * weight + bias for groups made of runs; also their means, rstds and variances.

    Run r of group i begins at i * group_stride + r * run_stride. Its weight is number (i % turn) * step + r * each.
    """
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *values: Value) -> None:
        given = iter(values)
        x = next(given)
        weight = next(given) if weighted else None
        bias = next(given) if biased else None
        out, means, rstds, variances, _, _, runs, length, group_stride, run_stride, turn, step, each, eps = given
        size = code.convert(runs * length, element)
        with code.loop(code.begin, code.end) as group:
            start = group * group_stride
            total = fold_runs(code, x, start, runs, run_stride, length, element, lambda v: v)
            mean = total / size
            centre = spread(code, mean)
            total = fold_runs(code, x, start, runs, run_stride, length, element, lambda v: (v - centre) * (v - centre))
            variance = total / size
            rstd = scalar(code, inverse_root, variance + eps)
            code.store(mean, means, group)
            code.store(rstd, rstds, group)
            code.store(variance, variances, group)
            with code.loop(0, runs) as run:
                source, target = (code.at(p, start + run * run_stride, element) for p in (x, out))
                channel = group % turn * step + run * each
                factor = rstd * code.load(weight, channel, element) if weight is not None else rstd
                scale = spread(code, factor)
                shift = spread(code, code.load(bias, channel, element)) if bias is not None else None

                def write(i: Value) -> None:
                    value = (code.load(source, i, type) - centre) * scale
                    code.store(value if shift is None else value + shift, target, i)

                write_row(code, length, element, write)

    whole = calls.array(dtype, "groups*runs*length")
    per_group = calls.array(dtype, "groups", write=True)
    per_channel = calls.array(dtype, "channels")
    params = [whole, *[per_channel] * (weighted + biased), whole._replace(write=True), *[per_group] * 3]
    params += [calls.integer(n) for n in ("groups", "channels", "runs", "length", "", "", "", "", "")]
    params += [calls.number()]
    name = f"channel_norm_{'w' * weighted}{'b' * biased}_{dtype}"
    return calls.kernel(name, params, describe, element=element)


def fold_runs(
    code: Code,
    x: Value,
    start: Value,
    runs: Value,
    stride: Value,
    length: Value,
    element: str,
    each: Callable[[Value], Value],
) -> Value:
    """The sum of `each(x)` over the runs of a group: run by run, so that long groups round little."""
    type = vector_of(element)
    total = code.variable(code.const(0.0, element))
    with code.loop(0, runs) as run:
        source = code.at(x, start + run * stride, element)
        (part,) = fold(code, length, element, lambda i: (each(code.load(source, i, type)),), ["add"])
        total.set(total.get() + part)
    return total.get()


def batch_norm(
    x: Array, weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array, Array, Array, Array] | None:
    """(N, C, *) normalized by the statistics of each channel: the result, mean, rstd and variance of the channels."""
    n, channels = x.shape[:2]
    length = x.size // (n * channels)
    return channel_norm(
        x, weight, bias, eps, (channels, channels, n, length, length, channels * length, channels, 1, 0)
    )


def group_norm(
    x: Array, weight: Array | None, bias: Array | None, channels: int, length: int, groups: int, eps: float
) -> tuple[Array, Array, Array, Array] | None:
    """(N, C, *) normalized by the statistics of each group of channels of each image."""
    per = channels // groups
    sizes = (x.size // (per * length), channels, per, length, per * length, length, groups, per, 1)
    return channel_norm(x, weight, bias, eps, sizes)


def channel_norm(
    x: Array, weight: Array | None, bias: Array | None, eps: float, sizes: tuple[int, ...]
) -> tuple[Array, Array, Array, Array] | None:
    """Run the kernel; None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.size == 0 or (weight is None and bias is not None):
        return None
    out = np.empty(x.shape, x.dtype)
    mean, rstd, variance = (np.empty(sizes[0], x.dtype) for _ in range(3))
    given = [array for array in (weight, bias) if array is not None]
    kernel = channel_norm_kernel(element, weight is not None, bias is not None)
    grain = share(sizes[2] * sizes[3])
    if kernel(x, *given, out, mean, rstd, variance, *sizes, eps, sizes[0], grain):
        return out, mean, rstd, variance
    return None


@cache
def channel_norm_backward_kernel(element: str, weighted: bool) -> Callable[..., bool]:
    """The gradient of x for groups made of runs, and for each run the sums of grad and of grad times standardized x."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *values: Value) -> None:
        given = iter(values)
        grad, x, means, rstds = (next(given) for _ in range(4))
        weight = next(given) if weighted else None
        out, sums, products, _, _, runs, length, group_stride, run_stride, turn, step, each = given
        size = code.convert(runs * length, element)
        with code.loop(code.begin, code.end) as group:
            start = group * group_stride
            centre = spread(code, code.load(means, group, element))
            rstd = code.load(rstds, group, element)
            scale = spread(code, rstd)
            totals = [code.variable(code.const(0.0, element)) for _ in range(2)]

            def factor(run: Value) -> Value:
                if weight is None:
                    return code.const(1.0, element)
                return code.load(weight, group % turn * step + run * each, element)

            with code.loop(0, runs) as run:
                g, source = (code.at(p, start + run * run_stride, element) for p in (grad, x))

                def part(i: Value) -> tuple[Value, Value]:
                    gi = code.load(g, i, type)
                    return gi, gi * ((code.load(source, i, type) - centre) * scale)

                found = fold(code, length, element, part, ["add", "add"], 2)
                for place, slot, value in zip((sums, products), totals, found, strict=True):
                    code.store(value, place, group * runs + run)
                    slot.set(slot.get() + value * factor(run))
            mean_grad, mean_product = (spread(code, slot.get() / size) for slot in totals)
            with code.loop(0, runs) as run:
                g, source, target = (code.at(p, start + run * run_stride, element) for p in (grad, x, out))
                weight_here = spread(code, factor(run))

                def write(i: Value) -> None:
                    normal = (code.load(source, i, type) - centre) * scale
                    change = code.load(g, i, type) * weight_here - mean_grad - normal * mean_product
                    code.store(change * scale, target, i)

                write_row(code, length, element, write)

    whole, per_group = calls.array(dtype, "groups*runs*length"), calls.array(dtype, "groups")
    per_run = calls.array(dtype, "groups*runs", write=True)
    params = [whole, whole, per_group, per_group, *[calls.array(dtype, "channels")] * weighted]
    params += [whole._replace(write=True), per_run, per_run]
    params += [calls.integer(n) for n in ("groups", "channels", "runs", "length", "", "", "", "", "")]
    return calls.kernel(f"channel_norm_backward_{'w' * weighted}_{dtype}", params, describe)


def channel_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, sizes: tuple[int, ...]
) -> tuple[Array, Array, Array] | None:
    """The gradient of x, and for each run the sums of grad and of grad * standardized x; None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.size == 0:
        return None
    out = np.empty(x.shape, x.dtype)
    sums, products = (np.empty((sizes[0], sizes[2]), x.dtype) for _ in range(2))
    given = [] if weight is None else [weight]
    kernel = channel_norm_backward_kernel(element, weight is not None)
    grain = share(sizes[2] * sizes[3])
    if kernel(grad, x, mean, rstd, *given, out, sums, products, *sizes, sizes[0], grain):
        return out, sums, products
    return None


def batch_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None
) -> tuple[Array, Array, Array] | None:
    """The gradients of x, weight and bias."""
    n, channels = x.shape[:2]
    length = x.size // (n * channels)
    sizes = (channels, channels, n, length, length, channels * length, channels, 1, 0)
    made = channel_norm_backward(grad, x, mean, rstd, weight, sizes)
    return None if made is None else (made[0], np.add.reduce(made[2], 1), np.add.reduce(made[1], 1))


def group_norm_backward(
    grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, channels: int, length: int, groups: int
) -> tuple[Array, Array, Array] | None:
    """The gradients of x, weight and bias."""
    per = channels // groups
    sizes = (x.size // (per * length), channels, per, length, per * length, length, groups, per, 1)
    made = channel_norm_backward(grad, x, mean, rstd, weight, sizes)
    if made is None:
        return None
    return made[0], *(np.add.reduce(part.reshape(-1, channels), 0) for part in (made[2], made[1]))


# ------------------------------------------------------------------ with statistics that are given


@cache
def rescale_kernel(element: str) -> Callable[..., bool]:
    """out = x * scale + shift with one scale and shift for each run of a channel. An item is a run."""
    dtype, type = DTYPES[element], vector_of(element)

    def describe(code: Code, *values: Value) -> None:
        x, scales, shifts, out, _, channels, length = values
        with code.loop(code.begin, code.end) as run:
            source, target = (code.at(p, run * length, element) for p in (x, out))
            channel = run % channels
            scale, shift = (spread(code, code.load(p, channel, element)) for p in (scales, shifts))
            write_row(
                code, length, element, lambda i: code.store(code.load(source, i, type) * scale + shift, target, i), 4
            )

    whole, per_channel = calls.array(dtype, "samples*channels*length"), calls.array(dtype, "channels")
    params = [whole, per_channel, per_channel, whole._replace(write=True)]
    params += [calls.integer(n) for n in ("samples", "channels", "length")]
    return calls.kernel(f"rescale_channels_{dtype}", params, describe)


def rescale(x: Array, scale: Array, shift: Array) -> Array | None:
    """x * scale + shift, one of each per channel of (N, C, *); None if unsupported."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or x.size == 0:
        return None
    samples, channels = x.shape[:2]
    length = x.size // (samples * channels)
    out = np.empty(x.shape, x.dtype)
    runs = samples * channels
    done = rescale_kernel(element)(x, scale, shift, out, samples, channels, length, runs, share(length))
    return out if done else None
