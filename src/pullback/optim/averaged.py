"""ASGD and Rprop: averaged descent, and descent by the signs of gradients alone."""

from __future__ import annotations

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import (
    Group,
    Rule,
    State,
    check_lr,
    check_not_negative,
    next_step,
    step_count,
    zeros_like,
)


class ASGD(Rule):
    """Gradient descent with a falling learning rate that also keeps the average of all iterates, as `ax`."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check_not_negative(weight_decay=weight_decay)
        defaults = dict(
            lr=lr,
            lambd=lambd,
            alpha=alpha,
            t0=t0,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """The rate and the weight of the newest iterate in the average, and the average."""
        return {
            "step": step_count(),
            "eta": step_count() + group["lr"],
            "mu": step_count() + 1,
            "ax": zeros_like(parameter),
        }

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, lambd = group["lr"], group["lambd"]
        step, eta, weight, average = next_step(state), state["eta"].item(), state["mu"].item(), state["ax"]
        if group["weight_decay"] != 0:
            grad = grad.add(parameter, alpha=group["weight_decay"])
        parameter.mul_(1 - lambd * eta)
        parameter.add_(grad, alpha=-eta)
        if weight != 1:
            average.add_(parameter.sub(average).mul_(weight))
        else:
            average.copy_(parameter)
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))


class Rprop(Rule):
    """Each element has its own step size: larger while its gradient keeps its sign, smaller when it turns."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = dict(
            lr=lr,
            etas=etas,
            step_sizes=step_sizes,
            foreach=foreach,
            maximize=maximize,
            differentiable=differentiable,
            capturable=capturable,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """No gradient before, and equal step sizes."""
        lr = complex(group["lr"], group["lr"]) if parameter.is_complex() else float(group["lr"])
        return {"step": step_count(), "prev": zeros_like(parameter), "step_size": torch.full_like(parameter, lr)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        (shrink, grow), (smallest, largest) = group["etas"], group["step_sizes"]
        next_step(state)
        agreement = grad.mul(state["prev"]).sign()
        turned = agreement.lt(0)
        factor = torch.where(agreement.gt(0), grow, torch.where(turned, shrink, 1.0)).to(parameter.dtype)
        size = state["step_size"].mul_(factor).clamp_(smallest, largest)
        grad = grad.masked_fill(turned, 0)
        parameter.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)
