"""Questions about CUDA, answered truthfully: there is none."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NoReturn

from pullback._messages import ONLY_CPU as _ONLY_CPU
from pullback.amp import GradScaler as GradScaler
from pullback.amp import autocast as _autocast
from pullback.amp import custom_bwd as _custom_bwd
from pullback.amp import custom_fwd as _custom_fwd


class OutOfMemoryError(RuntimeError):
    """What torch raises when the memory of a device is full; nothing here raises it, programs may catch it."""


def is_available() -> bool:
    """False: this library computes on the CPU."""
    return False


def is_initialized() -> bool:
    """False: there is nothing to initialise."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no device that could."""
    return False


def device_count() -> int:
    """None."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to seed; ignored, as torch ignores it without CUDA."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed; ignored, as torch ignores it without CUDA."""


def seed() -> None:
    """Nothing to seed; ignored, as torch ignores it without CUDA."""


seed_all = seed


def is_tf32_supported() -> bool:
    """False: there is no device that could."""
    return False


def get_arch_list() -> list[str]:
    """No kernels were compiled for any device."""
    return []


def get_rng_state_all() -> list[Any]:
    """One state per device: none."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Set the state of each device."""
    for _ in new_states:
        refuse()


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """No statistics."""
    return OrderedDict()


def empty_cache() -> None:
    """Nothing is cached."""


def memory_allocated(device: Any = None) -> int:
    """No memory of a device is in use."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> NoReturn:
    """There are no statistics."""
    refuse()


def refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """What torch says when it was built without CUDA."""
    raise AssertionError("Torch not compiled with CUDA enabled" + _ONLY_CPU)


synchronize = current_device = set_device = get_device_name = get_device_properties = refuse
get_device_capability = current_stream = default_stream = mem_get_info = memory_summary = ipc_collect = init = refuse
get_rng_state = set_rng_state = initial_seed = can_device_access_peer = set_per_process_memory_fraction = refuse
reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


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
        """Autocasting on CUDA, which is never in effect here."""
        return _autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


amp = _Amp()
"""Stands for the module of that name."""


class Stream:
    """A queue of work on a device, of which there is none."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        """Refuse."""
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A mark in a stream, of which there is none."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        """Refuse."""
        raise RuntimeError("Tried to instantiate dummy base class Event")


class device:
    """Within the block, another device is the current one; there is none, so entering raises."""

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> NoReturn:
        raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *error: object) -> None:
        """Nothing was entered."""
