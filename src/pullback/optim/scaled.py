"""Adagrad, Adadelta and RMSprop: steps divided by the size of the gradients so far."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import (
    Group,
    Rule,
    State,
    check_fused,
    check_lr,
    check_not_negative,
    next_step,
    step_count,
    zeros_like,
)


class Adagrad(Rule):
    """Each element is divided by the root of the sum of its squared gradients."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = dict(
            lr=lr,
            lr_decay=lr_decay,
            eps=eps,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            fused=fused,
        )
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter].update(self.start(parameter, group))

    def start(self, parameter: Tensor, group: Group) -> State:
        """The sum before any gradient; torch makes it with the optimizer, not at the first step."""
        first = group["initial_accumulator_value"]
        first = complex(first, first) if parameter.is_complex() else first
        total = torch.full_like(parameter, first, memory_format=torch.preserve_format)
        return {"step": step_count(), "sum": total}

    def share_memory(self) -> None:
        """Put the sums into shared memory."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        step = next_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"].addcmul_(grad, grad, value=1)
        parameter.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-rate)

    def check_sparse(self, group: Group) -> None:
        """Every row would decay."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def update_sparse(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """The same of the rows a sparse gradient has."""
        step = next_step(state)
        rate = group["lr"] / (1 + (step - 1) * group["lr_decay"])
        grad = grad.coalesce()
        indices, values, size = grad._indices(), grad._values(), grad.shape
        if indices.numel() == 0 or values.numel() == 0:
            return
        state["sum"].add_(torch.sparse_coo_tensor(indices, values.pow(2), size, is_coalesced=True))
        root = state["sum"].sparse_mask(grad)._values().sqrt_().add_(group["eps"])
        parameter.add_(torch.sparse_coo_tensor(indices, values / root, size, is_coalesced=True), alpha=-rate)


class Adadelta(Rule):
    """Steps in the units of the parameter: the root mean square of the steps over that of the gradients."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps=eps, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
            maximize=maximize,
            capturable=capturable,
            foreach=foreach,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Mean squares of gradients and of steps."""
        return {"step": step_count(), "square_avg": zeros_like(parameter), "acc_delta": zeros_like(parameter)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        rho, eps = group["rho"], group["eps"]
        next_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta, alpha=-group["lr"])


class RMSprop(Rule):
    """Steps divided by the root of the mean square of the gradient (its standard deviation, if centered)."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            alpha=alpha,
            eps=eps,
            centered=centered,
            weight_decay=weight_decay,
            capturable=capturable,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Averages that have seen nothing yet."""
        state = {"step": step_count(), "square_avg": zeros_like(parameter)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = zeros_like(parameter)
        return state

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        alpha = group["alpha"]
        next_step(state)
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            size = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            size = square.sqrt()
        size = size.add_(group["eps"])
        if group["momentum"] > 0:
            velocity = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, size)
            parameter.add_(velocity, alpha=-group["lr"])
        else:
            parameter.addcdiv_(grad, size, value=-group["lr"])
