"""`torch.distributed.tensor`: tensors that lie on many ranks."""

from __future__ import annotations

from pullback.distributed.tensor import layers as layers
from pullback.distributed.tensor import products as products
from pullback.distributed.tensor import shapes as shapes
from pullback.distributed.tensor.api import distribute_module as distribute_module
from pullback.distributed.tensor.api import distribute_tensor as distribute_tensor
from pullback.distributed.tensor.api import empty as empty
from pullback.distributed.tensor.api import full as full
from pullback.distributed.tensor.api import ones as ones
from pullback.distributed.tensor.api import rand as rand
from pullback.distributed.tensor.api import randn as randn
from pullback.distributed.tensor.api import zeros as zeros
from pullback.distributed.tensor.dtensor import DTensor as DTensor
from pullback.distributed.tensor.placement_types import Partial as Partial
from pullback.distributed.tensor.placement_types import Placement as Placement
from pullback.distributed.tensor.placement_types import Replicate as Replicate
from pullback.distributed.tensor.placement_types import Shard as Shard
from pullback.ops.interop.overriding import install as _install

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "zeros",
]
_install()  # functions ask the class of their arguments from now on
