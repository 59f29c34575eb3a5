"""Negative log likelihoods of counts and measurements: poisson_nll_loss and gaussian_nll_loss."""

from __future__ import annotations

import math

import numpy as np

from pullback._modes import grad_enabled
from pullback._op.define import function
from pullback._tensor import Tensor, wrap
from pullback.ops.create.copy import clone
from pullback.ops.index.masked import masked_fill
from pullback.ops.nn.loss.reduction import apply_reduction, legacy_reduction, reduction_code
from pullback.ops.nn.number import plus, times
from pullback.ops.pointwise.arithmetic import add, div, mul, sub
from pullback.ops.pointwise.elementary import exp, log
from pullback.ops.pointwise.power import pow
from pullback.ops.shape.reshape import unsqueeze

REDUCTIONS = ("none", "mean", "sum")


@function(raw=True, method=False, autocast="float32")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """Compute the negative log likelihood of counts that follow a Poisson distribution.

    As `nn.functional.poisson_nll_loss`, with all arguments given and `reduction` as a number: 0 none, 1 mean, 2 sum.
    """
    if eps is None or isinstance(eps, complex):
        raise TypeError(f"poisson_nll_loss(): argument 'eps' (position 5) must be float, not {type(eps).__name__}")
    if log_input:
        loss = sub(exp(input), mul(target, input))
    else:
        loss = sub(input, mul(target, log(plus(input, eps))))
    if full:
        # Stirling's approximation of log(target!).
        stirling = add(sub(mul(target, log(target)), target), times(log(times(target, 2 * math.pi)), 0.5))
        loss.add_(masked_fill(stirling, target <= 1, 0))  # in place, so that counts do not decide about the dtype
    return apply_reduction(loss, reduction)


@function(raw=True, space="nn.functional", method=False, name="poisson_nll_loss")
def functional_poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood of counts that follow a Poisson distribution.

    The loss is `exp(input) - target * input` where `input` is the logarithm of the rate (`log_input`), and
    `input - target * log(input + eps)` where it is the rate. `full` adds Stirling's approximation of `log(target!)` for
    targets above 1. `reduction` is 'mean', 'sum' or 'none' (one loss per element); `size_average` and `reduce` are its
    older, deprecated spelling.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return poisson_nll_loss(input, target, log_input, full, eps, reduction_code(reduction))


@function(raw=True, space="nn.functional", method=False)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood of targets that follow a normal distribution.

    With mean `input` and variance `v = max(var, eps)` the loss is `(log(v) + (input - target) ** 2 / v) / 2`; `full`
    adds `log(2 * pi) / 2`. `var` is a float, has the shape of `input`, or the same shape with the last dimension 1 or
    missing.
    The bound `eps` is not seen by gradients. `reduction` is 'mean', 'sum' or 'none' (one loss per element).
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = wrap(np.full_like(input._array, var))
    elif (var._array < 0).any():
        raise ValueError("var has negative entry/entries")
    if tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = unsqueeze(var, -1)
        elif input.ndim != var.ndim or sum(b for a, b in zip(input.shape, var.shape, strict=True) if a != b) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    var = clone(var)
    # As in torch, the bound is out of the graph.
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        var.clamp_(min=eps)  # type: ignore[attr-defined]
    finally:
        grad_enabled.set(before)
    loss = mul(add(log(var), div(pow(sub(input, target), 2), var)), 0.5)
    if full:
        loss += 0.5 * math.log(2 * math.pi)  # type: ignore[operator]
    return apply_reduction(loss, reduction_code(reduction))
