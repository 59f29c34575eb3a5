"""The optimizer of sparse gradients."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.optim.optimizer import Params
from pullback.optim.rule import Group, Rule, State


class SparseAdam(Rule):
    """Adam for sparse gradients: only the rows that have a gradient, and their averages, move."""

    complex_as_real = False

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        found = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, parameter in enumerate(group["params"])
            if parameter.is_sparse
        ]
        if found:
            raise ValueError(f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors")

    def start(self, parameter: Tensor, group: Group) -> State:
        """The averages before the first update."""
        zeros = [torch.zeros_like(parameter, memory_format=torch.preserve_format) for _ in range(2)]
        return {"step": 0, "exp_avg": zeros[0], "exp_avg_sq": zeros[1]}

    def check_sparse(self, group: Group) -> None:
        """They are what it is for."""

    def update(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """Refused: every element would move."""
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def update_sparse(self, parameter: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """One update of the rows that have a gradient."""
        state["step"] += 1
        grad = grad.coalesce()
        indices, values, size = grad._indices(), grad._values(), grad.shape
        if values.numel() == 0:
            return
        beta1, beta2 = group["betas"]

        def entries(values: Tensor) -> Tensor:
            return torch.sparse_coo_tensor(indices, values, size, is_coalesced=True)

        mean = state["exp_avg"].sparse_mask(grad)._values()
        step = values.sub(mean).mul_(1 - beta1)
        state["exp_avg"].add_(entries(step))
        square = state["exp_avg_sq"].sparse_mask(grad)._values()
        moved = values.pow(2).sub_(square).mul_(1 - beta2)
        state["exp_avg_sq"].add_(entries(moved))
        step.add_(mean)
        root = moved.add_(square).sqrt_().add_(group["eps"])
        corrections = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        size_of_step = group["lr"] * math.sqrt(corrections[1]) / corrections[0]
        parameter.add_(entries(-size_of_step * step.div_(root)))
