"""Batch normalization over the batches of several processes."""

from __future__ import annotations

from typing import Any

from pullback import Tensor
from pullback._building import loaded
from pullback.nn.modules.batchnorm import _BatchNorm
from pullback.nn.modules.module import Module

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several processes; with one process it is batch normalization."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        """Normalize by the statistics of all ranks while training, if there are several; else as batch norm does."""
        self._check_input_dim(input)
        own = self.training or (self.running_mean is None and self.running_var is None)
        distributed = loaded("pullback.distributed.world") if own else None
        if distributed is None or not distributed.is_initialized():
            return super().forward(input)
        group = distributed.group_or_default(self.process_group)
        if group.size() == 1 or not self.training:
            return super().forward(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / self.num_batches_tracked.item()
        normalized = loaded("pullback.distributed.sync_batch_norm").SyncBatchNorm
        return normalized.apply(  # type: ignore[no-any-return]
            input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, factor, group
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Put a SyncBatchNorm in the place of every batch normalization."""
        out = module
        if isinstance(module, _BatchNorm):
            out = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                out.weight, out.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(out, name, getattr(module, name))
        for name, child in module.named_children():
            out.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return out
