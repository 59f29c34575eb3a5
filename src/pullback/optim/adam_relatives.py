"""Adamax, NAdam and RAdam: Adam with another norm, with Nesterov momentum, with a cautious start."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import (
    Group,
    Rule,
    State,
    check_betas,
    check_lr,
    check_not_negative,
    next_step,
    step_count,
    zeros_like,
)


class Adamax(Rule):
    """Adam with the largest gradient so far, slowly forgotten, in place of the root of the mean square."""

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Averages that have seen nothing yet."""
        return {"step": step_count(), "exp_avg": zeros_like(parameter), "exp_inf": zeros_like(parameter)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        beta1, beta2 = group["betas"]
        step = next_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(torch.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        parameter.addcdiv_(mean, largest, value=-group["lr"] / (1 - beta1**step))


class NAdam(Rule):
    """Adam that looks one step of momentum ahead, with a momentum that grows over time."""

    def __init__(
        self,
        params: Params,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Averages that have seen nothing yet, and the product of all momenta."""
        return {
            "step": step_count(),
            "mu_product": step_count() + 1,
            "exp_avg": zeros_like(parameter),
            "exp_avg_sq": zeros_like(parameter),
        }

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, (beta1, beta2) = group["lr"], group["betas"]
        step = next_step(state)
        grad = decayed(parameter, grad, group)
        momentum = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        next_momentum = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        state["mu_product"] *= momentum
        product = state["mu_product"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        parameter.addcdiv_(grad, denominator, value=-lr * (1.0 - momentum) / (1.0 - product))
        parameter.addcdiv_(mean, denominator, value=-lr * next_momentum / (1.0 - product * next_momentum))


class RAdam(Rule):
    """Adam that takes plain momentum steps until the mean square has seen enough gradients to be trusted."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            decoupled_weight_decay=decoupled_weight_decay,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Averages that have seen nothing yet."""
        return {"step": step_count(), "exp_avg": zeros_like(parameter), "exp_avg_sq": zeros_like(parameter)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, (beta1, beta2) = group["lr"], group["betas"]
        step = next_step(state)
        grad = decayed(parameter, grad, group)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        corrected = mean / (1 - beta1**step)
        correction2 = 1 - beta2**step
        length_at_infinity = 2 / (1 - beta2) - 1
        length = length_at_infinity - 2 * step * beta2**step / correction2
        if length <= 5.0:
            parameter.add_(corrected * lr, alpha=-1.0)
            return
        rectified = (
            (length - 4)
            * (length - 2)
            * length_at_infinity
            / ((length_at_infinity - 4) * (length_at_infinity - 2) * length)
        ) ** 0.5
        adaptive = correction2**0.5 / square.sqrt().add_(group["eps"])
        parameter.add_(corrected * lr * adaptive * rectified, alpha=-1.0)


def decayed(parameter: Tensor, grad: Tensor, group: Group) -> Tensor:
    """Weight decay: in the parameter itself if decoupled, else in its gradient."""
    if group["weight_decay"] == 0:
        return grad
    if group["decoupled_weight_decay"]:
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        return grad
    return grad.add(parameter, alpha=group["weight_decay"])
