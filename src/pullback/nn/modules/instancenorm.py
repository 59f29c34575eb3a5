"""Instance normalization: each channel of each example by itself."""

from __future__ import annotations

import warnings
from typing import Any

from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.batchnorm import _LazyNormBase, _NormBase, require_dims

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    """Instance normalization, whatever the number of dimensions."""

    _dims: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        require_dims(input, self._dims + 1, self._dims + 2)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            stats = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if stats:
                error_msgs.append(unexpected_stats(" and ".join([f'"{key}"' for key in stats]), type(self).__name__))
                for key in stats:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        """F.instance_norm; an input without a batch is a batch of one."""
        self._check_input_dim(input)
        alone = input.dim() == self._dims + 1
        self._check_channels(input, 0 if alone else 1)
        out = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if alone else out

    def _check_channels(self, input: Tensor, dim: int) -> None:
        if input.size(dim) == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                f"{input.size(dim)}."
            )
        warnings.warn(
            f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=3,
        )


def unexpected_stats(names: str, kind: str) -> str:
    """Torch's text about running statistics in a checkpoint from before 0.4."""
    return (
        f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict is a "
        f"checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats by default "
        "since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, instead set "
        f"track_running_stats=True in {kind} to enable them. See the documentation of {kind} for details."
    )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of signals."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of images."""

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of volumes."""

    _dims = 3


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that takes num_features from its first input."""

    cls_to_become = InstanceNorm1d
    _dims = 1


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that takes num_features from its first input."""

    cls_to_become = InstanceNorm2d
    _dims = 2


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that takes num_features from its first input."""

    cls_to_become = InstanceNorm3d
    _dims = 3
