"""The optimizer of sparse gradients, of which there are none here."""

from __future__ import annotations

from typing import Any

from pullback.optim.optimizer import Optimizer


class SparseAdam(Optimizer):
    """Adam for gradients that are sparse tensors; refused, because there are no sparse tensors."""

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8, **options: Any
    ) -> None:
        raise NotImplementedError("SparseAdam needs sparse gradients, which are not available; use Adam")
