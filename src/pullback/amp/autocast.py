"""autocast: a block in which ops choose their own precision."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback._runtime.interrupts import Block
from pullback.ops.autocast import state

LOWER = (torch.bfloat16, torch.float16)
DEVICES = ("cpu", "cuda", "xpu", "mps", "xla", "hpu", "mtia", "maia", "ipu", "privateuseone")


def is_autocast_available(device_type: str) -> bool:
    """Whether torch has `autocast` for a kind of device."""
    return torch.device(device_type).type in DEVICES


class autocast(Block):
    """A block, or a decorated function, in which products run in a lower precision and losses in float32.

    It is for the tensors of one kind of device; for kinds that do not exist here the block changes nothing.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = torch.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = torch.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled
        if enabled and device_type == "cuda" and not torch.cuda.is_available():
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            self._enabled = False
        elif enabled and self.fast_dtype not in LOWER:
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False

    def _before(self) -> Any:
        """What holds around."""
        self.prev_cache_enabled = torch.is_autocast_cache_enabled()
        self.prev = torch.is_autocast_enabled(self.device)
        self.prev_fastdtype = torch.get_autocast_dtype(self.device)
        return state.get(), self.prev_cache_enabled, self.prev, self.prev_fastdtype

    def _begin(self, before: Any) -> autocast:
        """Cast, or not."""
        torch.set_autocast_enabled(self.device, bool(self._enabled))
        torch.set_autocast_dtype(self.device, self.fast_dtype)
        torch.autocast_increment_nesting()
        torch.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def _end(self, before: Any) -> None:
        """As it was."""
        around, cached, enabled, dtype = before
        if around.nesting == 0:
            torch.clear_autocast_cache()
        torch.set_autocast_enabled(self.device, enabled)
        torch.set_autocast_dtype(self.device, dtype)
        torch.set_autocast_cache_enabled(cached)
        state.set(state.get()._replace(nesting=around.nesting))

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return decorate_autocast
