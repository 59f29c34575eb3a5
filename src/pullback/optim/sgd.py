"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import Group, Rule, State, Tensors, check_fused, check_lr, check_not_negative, step_by


class SGD(Rule):
    """p <- p - lr v, where v is the gradient or its running sum v <- momentum v + (1 - dampening) grad."""

    complex_as_real = False

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            maximize=maximize,
            foreach=foreach,
            differentiable=differentiable,
            fused=fused,
        )
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, default in (("nesterov", False), ("maximize", False), ("foreach", None), ("fused", None)):
                group.setdefault(name, default)
            group.setdefault("differentiable", False)

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        momentum = group["momentum"]
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        if momentum != 0:
            velocity = state.get("momentum_buffer")
            if velocity is None:
                velocity = state["momentum_buffer"] = grad.clone().detach()
            else:
                velocity.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(velocity, alpha=momentum) if group["nesterov"] else velocity
        parameter.add_(grad, alpha=-group["lr"])

    def check_sparse(self, group: Group) -> None:
        """They are like any other."""

    update_sparse = update


def sgd(
    params: Tensors,
    d_p_list: Tensors,
    momentum_buffer_list: Tensors,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of SGD with a state of one's own; the list of buffers is filled in the first step."""
    group = dict(
        lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, maximize=maximize
    )
    step_by(SGD, params, d_p_list, {"momentum_buffer": momentum_buffer_list}, group, grad_scale, found_inf)
