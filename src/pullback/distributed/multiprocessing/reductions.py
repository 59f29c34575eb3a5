"""Tensors in queues and pipes of processes: they move to shared memory, and what is sent is a handle on it.

Sender and receiver look at the same elements, as in torch. A tensor's memory is moved when it is first sent; views made
before keep looking at the old one.
"""

from __future__ import annotations

import mmap
import os
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import numpy as np

from pullback import Tensor, nn
from pullback._arrays.kinds import is_foreign
from pullback._lazy import LazyTensor, stored
from pullback._tensor import fresh

NON_LEAF = (
    "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
    "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., "
    "putting it on the queue)."
)


class Shareable(mmap.mmap):
    """Memory with a file descriptor that another process can be handed."""

    descriptor = -1

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def on_descriptor(descriptor: int, size: int) -> Shareable:
    """The memory behind a descriptor, which it keeps."""
    memory = Shareable(descriptor, size)
    memory.descriptor = descriptor
    return memory


def home_of(array: np.ndarray[Any, Any]) -> Shareable | None:
    """The shareable memory that an array lies in."""
    base: Any = array
    while base is not None and not isinstance(base, Shareable):
        base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
    return base


def moved(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements of an array in shareable memory, with its dimensions in the same order."""
    descriptor = os.memfd_create("pullback")
    os.ftruncate(descriptor, array.nbytes)
    memory = np.frombuffer(on_descriptor(descriptor, array.nbytes), array.dtype)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    out = memory.reshape([array.shape[d] for d in order]).transpose(np.argsort(order))
    out[...] = array
    return out


def reduce_tensor(tensor: Tensor) -> Any:
    """How a tensor is sent."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(NON_LEAF)
    array = stored(tensor)
    if is_foreign(array) or not array.size or type(array) is not np.ndarray:
        return tensor.__reduce_ex__(2)
    home = home_of(array)
    if home is None:
        array = moved(array)
        tensor._array = array
        home = home_of(array)
    assert home is not None
    start = np.frombuffer(home, np.uint8).ctypes.data
    place = array.ctypes.data - start, tensor.dtype, array.shape, array.strides
    is_parameter = isinstance(tensor, nn.Parameter)
    return rebuild_tensor, (DupFd(home.descriptor), len(home), *place, tensor.requires_grad, is_parameter)


def rebuild_tensor(
    handle: Any, size: int, offset: int, dtype: Any, shape: Any, strides: Any, requires_grad: bool, is_parameter: bool
) -> Tensor:
    """A tensor that looks at memory another process has sent."""
    memory = on_descriptor(handle.detach(), size)
    out = fresh(np.ndarray(shape, dtype.numpy, memory, offset, strides))
    if is_parameter:
        return nn.Parameter(out, requires_grad)
    out.requires_grad = requires_grad
    return out


def init_reductions() -> None:
    """Let queues and pipes send tensors this way, where the system has memory without a name."""
    if hasattr(os, "memfd_create"):
        for kind in (Tensor, LazyTensor, nn.Parameter):
            ForkingPickler.register(kind, reduce_tensor)
