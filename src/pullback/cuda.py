"""Questions about CUDA, answered truthfully: there is none."""

from __future__ import annotations

from typing import Any, NoReturn

from pullback.amp import GradScaler as GradScaler
from pullback.amp import autocast as _autocast


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
    raise AssertionError("Torch not compiled with CUDA enabled")


synchronize = current_device = set_device = get_device_name = get_device_properties = refuse
get_device_capability = current_stream = mem_get_info = refuse


class amp:
    """The old place of autocast and GradScaler."""

    GradScaler = GradScaler

    @staticmethod
    def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> Any:
        """Autocasting on CUDA, which is never in effect here."""
        return _autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
