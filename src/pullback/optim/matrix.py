"""Adafactor and Muon: rules that know that a parameter is a matrix."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import (
    Group,
    Rule,
    State,
    next_step,
    step_count,
    zeros_like,
)


class Adafactor(Rule):
    """Adam without the mean, and with the mean square of a matrix kept as the product of its rows and columns."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = dict(
            lr=lr,
            beta2_decay=beta2_decay,
            eps=eps,
            d=d,
            weight_decay=weight_decay,
            foreach=foreach,
            maximize=maximize,
        )
        super().__init__(params, defaults)

    def start(self, parameter: Tensor, group: Group) -> State:
        """Mean squares: of rows and columns of a matrix, of each element of a vector."""
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if parameter.dim() > 1:
            rows, columns = list(parameter.shape), list(parameter.shape)
            rows[-1] = columns[-2] = 1
            row_var, col_var = parameter.new_zeros(rows), parameter.new_zeros(columns)
            return {"step": step_count(), "row_var": row_var, "col_var": col_var}
        return {"step": step_count(), "variance": zeros_like(parameter)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, (eps1, eps2), threshold = group["lr"], group["eps"], group["d"]
        if eps1 is None:
            eps1 = torch.finfo(parameter.dtype).eps
        step = next_step(state)
        newest = step ** group["beta2_decay"]
        rate = min(lr, 1 / step**0.5)
        size = max(eps2, parameter.norm(2).item() / parameter.numel() ** 0.5) * rate
        if group["weight_decay"] != 0:
            parameter.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows = torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1))
            row_var = state["row_var"].lerp_(rows, newest)
            columns = torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2))
            col_var = state["col_var"].lerp_(columns, newest)
            variance = row_var @ col_var
            variance.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(grad * grad, newest).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        clipping = max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * threshold))
        parameter.add_(update, alpha=-size / clipping)


LARGEST_NUMBER_OF_ITERATIONS = 100


class Muon(Rule):
    """Momentum whose matrix is replaced by the nearest matrix with orthonormal rows or columns; 2-D parameters only."""

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = dict(
            lr=lr,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            ns_coefficients=ns_coefficients,
            eps=eps,
            ns_steps=ns_steps,
            adjust_lr_fn=adjust_lr_fn,
        )
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
                    )

    def start(self, parameter: Tensor, group: Group) -> State:
        """No momentum."""
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros_like(parameter)}

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of a parameter."""
        lr, momentum = group["lr"], group["momentum"]
        velocity = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(velocity, momentum) if group["nesterov"] else velocity
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(update, alpha=-lr * rate_factor(group["adjust_lr_fn"], parameter))


def orthogonalized(grad: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Newton and Schulz's iteration in bfloat16: all singular values move towards 1."""
    if steps >= LARGEST_NUMBER_OF_ITERATIONS:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = grad.bfloat16()
    tall = grad.size(0) > grad.size(1)
    if tall:
        x = x.T
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def rate_factor(kind: str | None, parameter: Tensor) -> float:
    """How a matrix of this shape scales the learning rate."""
    rows, columns = parameter.shape[:2]
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
