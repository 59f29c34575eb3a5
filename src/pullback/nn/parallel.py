"""Several devices: there is at most one here, on which DataParallel runs. Several processes: see distributed."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback._runtime.building import loaded
from pullback.nn.modules.module import Module
from pullback.utils._pytree import tree_map

__all__ = ["DataParallel", "DistributedDataParallel"]  # noqa: F822


class DataParallel(Module):
    """Calls its module, with inputs moved to its device; where there is no GPU, as it is."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.dim, self.module = dim, module
        self.device_ids: list[int] = []
        if not pullback.cuda.is_available():
            return
        given = list(range(pullback.cuda.device_count())) if device_ids is None else device_ids
        if not given:
            raise RuntimeError("no available devices were found")
        self.device_ids = [pullback.device(one).index or 0 if not isinstance(one, int) else one for one in given]
        if len(self.device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel(device_ids={self.device_ids}) spreads a batch over several GPUs, which is not here: use "
                "DistributedDataParallel with one process for each"
            )
        self.output_device = self.device_ids[0] if output_device is None else output_device
        self.src_device_obj = pullback.device("cuda", self.device_ids[0])
        module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module, on the device."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in (*self.module.parameters(), *self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but "
                    f"found one of them on device: {tensor.device}"
                )
        moved = lambda one: one.to(self.src_device_obj) if isinstance(one, Tensor) else one
        return self.module(*tree_map(moved, inputs), **tree_map(moved, kwargs))


def __getattr__(name: str) -> Any:
    if name == "DistributedDataParallel":  # it needs several processes, which few programs have
        return loaded("pullback.distributed.data_parallel.ddp").DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
