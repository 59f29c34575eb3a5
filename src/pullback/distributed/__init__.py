"""`torch.distributed`: many processes that train one model. See docs of each module; torch with gloo is the peer."""

from __future__ import annotations

from pullback.distributed import distributed_c10d as distributed_c10d
from pullback.distributed.data_parallel.reducer import GradBucket as GradBucket
from pullback.distributed.debug_level import set_debug_level as set_debug_level
from pullback.distributed.debug_level import set_debug_level_from_env as set_debug_level_from_env
from pullback.distributed.device_mesh import DeviceMesh as DeviceMesh
from pullback.distributed.device_mesh import init_device_mesh as init_device_mesh
from pullback.distributed.distributed_c10d import *
from pullback.distributed.distributed_c10d import _all_gather_base as _all_gather_base
from pullback.distributed.distributed_c10d import _coalescing_manager as _coalescing_manager
from pullback.distributed.distributed_c10d import _CoalescingManager as _CoalescingManager
from pullback.distributed.distributed_c10d import _get_process_group_name as _get_process_group_name
from pullback.distributed.distributed_c10d import _rank_not_in_group as _rank_not_in_group
from pullback.distributed.distributed_c10d import _reduce_scatter_base as _reduce_scatter_base
from pullback.distributed.errors import DistBackendError as DistBackendError
from pullback.distributed.errors import DistError as DistError
from pullback.distributed.errors import DistNetworkError as DistNetworkError
from pullback.distributed.errors import DistStoreError as DistStoreError
from pullback.distributed.errors import QueueEmptyError as QueueEmptyError
from pullback.distributed.rendezvous import register_rendezvous_handler as register_rendezvous_handler
from pullback.distributed.rendezvous import rendezvous as rendezvous
from pullback.distributed.stores import FileStore as FileStore
from pullback.distributed.stores import HashStore as HashStore
from pullback.distributed.tcp_store import TCPStore as TCPStore
from pullback.distributed.world import is_available as is_available
