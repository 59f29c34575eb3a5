"""Adam and AdamW: steps scaled by running averages of the gradient and of its square."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import (
    Group,
    Rule,
    State,
    Tensors,
    check_betas,
    check_fused,
    check_lr,
    check_not_negative,
    check_steps,
    next_step,
    step_by,
    step_count,
    zeros_like,
)


class Adam(Rule):
    """m, v <- means of grad and grad^2, corrected for their start at zero; p <- p - lr m / (sqrt(v) + eps)."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr, foreach, capturable)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)
            group.setdefault("decoupled_weight_decay", isinstance(self, AdamW))

    def start(self, parameter: Tensor, group: Group) -> State:
        """Averages that have seen nothing yet."""
        state = {"step": step_count(), "exp_avg": zeros_like(parameter), "exp_avg_sq": zeros_like(parameter)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(parameter)
        return state

    def check_sparse(self, group: Group) -> None:
        """Refused, as in torch."""
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def averages(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> tuple[Tensor, Tensor]:
        """The running averages of the gradient and of its square, weight decay included."""
        lr, (beta1, beta2), weight_decay = group["lr"], group["betas"], group["weight_decay"]
        if weight_decay != 0:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(parameter, alpha=weight_decay)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(torch.maximum(state["max_exp_avg_sq"], square))
        return mean, square

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        step = next_step(state)
        mean, square = self.averages(parameter, grad, state, group)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        denominator = (square.sqrt() / correction2**0.5).add_(eps)
        parameter.addcdiv_(mean, denominator, value=-(lr / correction1))

    def update_on_device(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update whose numbers are on the device: those that depend on the step are tensors."""
        lr, (beta1, beta2), eps = group["lr"], group["betas"], group["eps"]
        step = state["step"].add_(1)
        mean, square = self.averages(parameter, grad, state, group)
        size = -(lr / (1 - beta1**step))
        denominator = (square.sqrt() / ((1 - beta2**step).sqrt() * size)).add_(eps / size)
        parameter.addcdiv_(mean, denominator)


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters themselves and does not enter the averages."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def adam(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    state_steps: Tensors,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of Adam with a state of one's own."""
    check_steps(state_steps)
    states = {"step": state_steps, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "max_exp_avg_sq": max_exp_avg_sqs}
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        amsgrad=amsgrad,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
    )
    step_by(Adam, params, grads, states, group, grad_scale, found_inf)
