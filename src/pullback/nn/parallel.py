"""Several devices: there is one here, so DataParallel calls its module as it is. Several processes: see distributed."""

from __future__ import annotations

from typing import Any

from pullback._building import loaded
from pullback.nn.modules.module import Module

__all__ = ["DataParallel", "DistributedDataParallel"]  # noqa: F822


class DataParallel(Module):
    """Calls its module; where torch finds no GPU it does the same."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        if device_ids:
            raise NotImplementedError(
                "DataParallel(device_ids=...) spreads a batch over GPUs, which pullback does not have; leave "
                "device_ids out to run the module as it is"
            )
        self.dim = dim
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module itself."""
        return self.module(*inputs, **kwargs)


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":  # it needs several processes, which few programs have
        return loaded("pullback.distributed.data_parallel.ddp").DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
