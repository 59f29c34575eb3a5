"""Batch normalization: over the batch in training, with running statistics in evaluation."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback._runtime.building import loaded
from pullback.nn import functional as F
from pullback.nn import init
from pullback.nn.modules.lazy import LazyModuleMixin
from pullback.nn.modules.module import Layer, Module
from pullback.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d",
    "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Layer):
    """Weight, bias and running statistics for each of num_features channels."""

    _shared_init = True
    _version = 2
    weight: Tensor
    bias: Tensor
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = pullback.empty(num_features, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        if track_running_stats:
            self.register_buffer("running_mean", pullback.zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", pullback.ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", pullback.tensor(0, dtype=pullback.long, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget what was seen: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget what was seen; weight 1, bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Before version 2 the batches were not counted.
            counted = self.num_batches_tracked
            state_dict[key] = pullback.tensor(0, dtype=pullback.long) if counted is None else counted
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    """Batch normalization, whatever the number of dimensions."""

    def forward(self, input: Tensor) -> Tensor:
        """F.batch_norm; in training, count the batch and move the running statistics."""
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)  # the mean over all batches seen
        # Statistics that are not tracked are not handed over in training, so that they stay as they are.
        known = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if known else None,
            self.running_var if known else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            factor,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalization that takes num_features from its first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device=device, dtype=dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = pullback.tensor(0, dtype=pullback.long, device=device)

    def reset_parameters(self) -> None:
        """Set the parameters, once they have a shape."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the number of features from the first input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        values: list[Any] = []
        if self.affine:
            values += [self.weight] if self.bias is None else [self.weight, self.bias]
        if self.track_running_stats:
            values += [self.running_mean, self.running_var]
        for value in values:
            value.materialize((self.num_features,))
        self.reset_parameters()


def require_dims(input: Tensor, *allowed: int) -> None:
    """Refuse an input with another number of dimensions."""
    if input.dim() not in allowed:
        text = " or ".join([f"{n}D" for n in allowed])
        raise ValueError(f"expected {text} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalization of vectors or signals."""

    def _check_input_dim(self, input: Tensor) -> None:
        require_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of images."""

    def _check_input_dim(self, input: Tensor) -> None:
        require_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of volumes."""

    def _check_input_dim(self, input: Tensor) -> None:
        require_dims(input, 5)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that takes num_features from its first input."""

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that takes num_features from its first input."""

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that takes num_features from its first input."""

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


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
