"""`torch.distributed.fsdp`: parameters in parts on many ranks."""

from __future__ import annotations

from pullback.distributed.fsdp.fully_shard import FSDPModule as FSDPModule
from pullback.distributed.fsdp.fully_shard import UnshardHandle as UnshardHandle
from pullback.distributed.fsdp.fully_shard import fully_shard as fully_shard
from pullback.distributed.fsdp.fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from pullback.distributed.fsdp.policies import CPUOffloadPolicy as CPUOffloadPolicy
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy as MixedPrecisionPolicy
from pullback.distributed.fsdp.policies import OffloadPolicy as OffloadPolicy
