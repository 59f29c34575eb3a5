"""`torch.distributed.tensor.parallel`: one module on many ranks."""

from __future__ import annotations

from pullback.distributed.tensor.layers import loss_parallel as loss_parallel
from pullback.distributed.tensor.parallel.api import parallelize_module as parallelize_module
from pullback.distributed.tensor.parallel.style import ColwiseParallel as ColwiseParallel
from pullback.distributed.tensor.parallel.style import ParallelStyle as ParallelStyle
from pullback.distributed.tensor.parallel.style import PrepareModuleInput as PrepareModuleInput
from pullback.distributed.tensor.parallel.style import PrepareModuleInputOutput as PrepareModuleInputOutput
from pullback.distributed.tensor.parallel.style import PrepareModuleOutput as PrepareModuleOutput
from pullback.distributed.tensor.parallel.style import RowwiseParallel as RowwiseParallel
from pullback.distributed.tensor.parallel.style import SequenceParallel as SequenceParallel
