"""`torch.distributed.fsdp`: parameters in parts on many ranks."""

from __future__ import annotations

from pullback.distributed.fsdp import wrap as wrap
from pullback.distributed.fsdp.fully_shard import FSDPModule as FSDPModule
from pullback.distributed.fsdp.fully_shard import UnshardHandle as UnshardHandle
from pullback.distributed.fsdp.fully_shard import fully_shard as fully_shard
from pullback.distributed.fsdp.fully_shard import register_fsdp_forward_method as register_fsdp_forward_method
from pullback.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel as FullyShardedDataParallel
from pullback.distributed.fsdp.options import BackwardPrefetch as BackwardPrefetch
from pullback.distributed.fsdp.options import CPUOffload as CPUOffload
from pullback.distributed.fsdp.options import FullOptimStateDictConfig as FullOptimStateDictConfig
from pullback.distributed.fsdp.options import FullStateDictConfig as FullStateDictConfig
from pullback.distributed.fsdp.options import MixedPrecision as MixedPrecision
from pullback.distributed.fsdp.options import OptimStateDictConfig as OptimStateDictConfig
from pullback.distributed.fsdp.options import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from pullback.distributed.fsdp.options import ShardedStateDictConfig as ShardedStateDictConfig
from pullback.distributed.fsdp.options import ShardingStrategy as ShardingStrategy
from pullback.distributed.fsdp.options import StateDictConfig as StateDictConfig
from pullback.distributed.fsdp.options import StateDictSettings as StateDictSettings
from pullback.distributed.fsdp.options import StateDictType as StateDictType
from pullback.distributed.fsdp.policies import CPUOffloadPolicy as CPUOffloadPolicy
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy as MixedPrecisionPolicy
from pullback.distributed.fsdp.policies import OffloadPolicy as OffloadPolicy
