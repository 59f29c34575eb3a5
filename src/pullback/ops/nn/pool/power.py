"""Pooling by power mean: lp_pool1d, 2d and 3d."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from pullback._op.define import Array, function
from pullback.ops.nn.activation.piecewise import relu
from pullback.ops.nn.pool.average import avg_pool1d, avg_pool2d, avg_pool3d
from pullback.ops.nn.pool.maximum import max_pool1d, max_pool2d, max_pool3d
from pullback.ops.pointwise.arithmetic import abs as absolute
from pullback.ops.pointwise.arithmetic import mul, neg, sign
from pullback.ops.pointwise.power import pow


def power_mean(
    self: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool, ndim: int, average: Any, maximum: Any
) -> Any:
    """The p-norm of each window, from the average of its powers; its largest or smallest magnitude if p is infinite."""
    if norm_type == inf:
        return maximum(absolute(self), kernel_size, stride, 0, 1, ceil_mode)
    if norm_type == -inf:
        return neg(maximum(neg(absolute(self)), kernel_size, stride, 0, 1, ceil_mode))
    means = average(pow(self, norm_type), kernel_size, stride, 0, ceil_mode)
    count = prod(kernel_size) if isinstance(kernel_size, (tuple, list)) else kernel_size**ndim
    return pow(mul(mul(sign(means), relu(absolute(means))), count), 1.0 / norm_type)


@function(space="nn.functional", method=False)
def lp_pool1d(self: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Apply 1-D power-average pooling: `sum(x ** p) ** (1 / p)` of each window, `p = norm_type`.

    `input` is `(N, C, L)` or `(C, L)`; `stride` is `kernel_size` unless given, and `ceil_mode` rounds the output size
    up.
    An infinite `norm_type` gives the largest magnitude of each window, minus infinity the smallest.
    """
    return power_mean(self, norm_type, kernel_size, stride, ceil_mode, 1, avg_pool1d, max_pool1d)


@function(space="nn.functional", method=False)
def lp_pool2d(self: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Apply 2-D power-average pooling: `sum(x ** p) ** (1 / p)` of each window, `p = norm_type`.

    `input` is `(N, C, H, W)` or `(C, H, W)`; `stride` is `kernel_size` unless given, and `ceil_mode` rounds the output
    size up. An infinite `norm_type` gives the largest magnitude of each window, minus infinity the smallest.
    """
    return power_mean(self, norm_type, kernel_size, stride, ceil_mode, 2, avg_pool2d, max_pool2d)


@function(space="nn.functional", method=False)
def lp_pool3d(self: Array, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
    """Apply 3-D power-average pooling: `sum(x ** p) ** (1 / p)` of each window, `p = norm_type`.

    `input` is `(N, C, D, H, W)` or `(C, D, H, W)`; `stride` is `kernel_size` unless given, and `ceil_mode` rounds the
    output size up. An infinite `norm_type` gives the largest magnitude of each window, minus infinity the smallest.
    """
    return power_mean(self, norm_type, kernel_size, stride, ceil_mode, 3, avg_pool3d, max_pool3d)
