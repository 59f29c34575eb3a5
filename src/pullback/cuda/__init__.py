"""CUDA: which devices there are, their memory, streams and events.

Where there is no device, the questions are answered truthfully, and what needs one raises what a build of torch without
CUDA raises.
"""

from __future__ import annotations

from typing import Any

from pullback.amp import GradScaler as GradScaler
from pullback.amp import autocast as _autocast
from pullback.amp import custom_bwd as _custom_bwd
from pullback.amp import custom_fwd as _custom_fwd
from pullback.cuda import nvtx as nvtx
from pullback.cuda.devices import can_device_access_peer as can_device_access_peer
from pullback.cuda.devices import current_device as current_device
from pullback.cuda.devices import device as device
from pullback.cuda.devices import device_count as device_count
from pullback.cuda.devices import device_of as device_of
from pullback.cuda.devices import fallbacks as fallbacks
from pullback.cuda.devices import get_arch_list as get_arch_list
from pullback.cuda.devices import get_device_capability as get_device_capability
from pullback.cuda.devices import get_device_name as get_device_name
from pullback.cuda.devices import get_device_properties as get_device_properties
from pullback.cuda.devices import get_gencode_flags as get_gencode_flags
from pullback.cuda.devices import init as init
from pullback.cuda.devices import ipc_collect as ipc_collect
from pullback.cuda.devices import is_available as is_available
from pullback.cuda.devices import is_bf16_supported as is_bf16_supported
from pullback.cuda.devices import is_initialized as is_initialized
from pullback.cuda.devices import is_tf32_supported as is_tf32_supported
from pullback.cuda.devices import refuse as refuse
from pullback.cuda.devices import reset_fallbacks as reset_fallbacks
from pullback.cuda.devices import set_device as set_device
from pullback.cuda.devices import synchronize as synchronize
from pullback.cuda.graphs import CUDAGraph as CUDAGraph
from pullback.cuda.graphs import graph as graph
from pullback.cuda.graphs import graph_pool_handle as graph_pool_handle
from pullback.cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
from pullback.cuda.graphs import make_graphed_callables as make_graphed_callables
from pullback.cuda.memory import MemPool as MemPool
from pullback.cuda.memory import caching_allocator_alloc as caching_allocator_alloc
from pullback.cuda.memory import caching_allocator_delete as caching_allocator_delete
from pullback.cuda.memory import empty_cache as empty_cache
from pullback.cuda.memory import get_allocator_backend as get_allocator_backend
from pullback.cuda.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from pullback.cuda.memory import max_memory_allocated as max_memory_allocated
from pullback.cuda.memory import max_memory_cached as max_memory_cached
from pullback.cuda.memory import max_memory_reserved as max_memory_reserved
from pullback.cuda.memory import mem_get_info as mem_get_info
from pullback.cuda.memory import memory_allocated as memory_allocated
from pullback.cuda.memory import memory_cached as memory_cached
from pullback.cuda.memory import memory_reserved as memory_reserved
from pullback.cuda.memory import memory_snapshot as memory_snapshot
from pullback.cuda.memory import memory_stats as memory_stats
from pullback.cuda.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from pullback.cuda.memory import memory_summary as memory_summary
from pullback.cuda.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from pullback.cuda.memory import reset_max_memory_allocated as reset_max_memory_allocated
from pullback.cuda.memory import reset_max_memory_cached as reset_max_memory_cached
from pullback.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from pullback.cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from pullback.cuda.memory import use_mem_pool as use_mem_pool
from pullback.cuda.monitor import check_error as check_error
from pullback.cuda.monitor import clock_rate as clock_rate
from pullback.cuda.monitor import cudart as cudart
from pullback.cuda.monitor import cudaStatus as cudaStatus
from pullback.cuda.monitor import device_memory_used as device_memory_used
from pullback.cuda.monitor import get_sync_debug_mode as get_sync_debug_mode
from pullback.cuda.monitor import list_gpu_processes as list_gpu_processes
from pullback.cuda.monitor import memory_usage as memory_usage
from pullback.cuda.monitor import power_draw as power_draw
from pullback.cuda.monitor import set_sync_debug_mode as set_sync_debug_mode
from pullback.cuda.monitor import temperature as temperature
from pullback.cuda.monitor import utilization as utilization
from pullback.cuda.random import generator as _generator
from pullback.cuda.random import get_rng_state as get_rng_state
from pullback.cuda.random import get_rng_state_all as get_rng_state_all
from pullback.cuda.random import initial_seed as initial_seed
from pullback.cuda.random import manual_seed as manual_seed
from pullback.cuda.random import manual_seed_all as manual_seed_all
from pullback.cuda.random import seed as seed
from pullback.cuda.random import seed_all as seed_all
from pullback.cuda.random import set_rng_state as set_rng_state
from pullback.cuda.random import set_rng_state_all as set_rng_state_all
from pullback.cuda.streams import Event as Event
from pullback.cuda.streams import ExternalStream as ExternalStream
from pullback.cuda.streams import Stream as Stream
from pullback.cuda.streams import StreamContext as StreamContext
from pullback.cuda.streams import current_stream as current_stream
from pullback.cuda.streams import default_stream as default_stream
from pullback.cuda.streams import get_stream_from_external as get_stream_from_external
from pullback.cuda.streams import set_stream as set_stream
from pullback.cuda.streams import stream as stream
from pullback.kernels.cuda.errors import AcceleratorError as AcceleratorError
from pullback.kernels.cuda.errors import OutOfMemoryError as OutOfMemoryError
from pullback.ops.create.legacy import ON_CUDA as _ON_CUDA


class _Amp:
    """The old place of autocast and GradScaler."""

    GradScaler = GradScaler

    @staticmethod
    def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
        """`pullback.amp.custom_fwd` for CUDA."""
        return _custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)

    @staticmethod
    def custom_bwd(bwd: Any = None) -> Any:
        """`pullback.amp.custom_bwd` for CUDA."""
        return _custom_bwd(bwd, device_type="cuda")

    @staticmethod
    def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Any:
        """Autocasting on CUDA."""
        return _autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


amp = _Amp()
"""Stands for the module of that name."""

has_half = True
"""Halves are computed with on every device."""
CudaError = AcceleratorError
globals().update(_ON_CUDA)


def __getattr__(name: str) -> Any:
    """What depends on the devices there are."""
    if name == "default_generators":
        return tuple([_generator(index) for index in range(device_count())])
    raise AttributeError(f"module 'torch.cuda' has no attribute {name!r}")
