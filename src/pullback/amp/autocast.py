"""autocast: lower precision where it does no harm. There is no device here that gains from it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pullback as torch

LOWER = (torch.bfloat16, torch.float16)


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` can be in effect on a kind of device."""
    torch.device(device_type)
    return False


class autocast:
    """A block in which torch would compute some ops in a lower precision.

    For a device that does not exist here it warns and does nothing, as torch does. On the CPU it raises: computing in
    bfloat16 here saves no time, and computing in float32 instead would not give torch's numbers. Pass `enabled=False`,
    or convert the model with `model.to(torch.bfloat16)`.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        torch.device(device_type)
        self.device, self.fast_dtype = device_type, torch.bfloat16 if dtype is None else dtype
        self._enabled = bool(enabled)
        self._cache_enabled = True if cache_enabled is None else cache_enabled
        if self._enabled and device_type == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
            self._enabled = False
        elif self._enabled and device_type == "cpu" and self.fast_dtype not in LOWER:
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only "
                "supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            self._enabled = False
        elif self._enabled:
            raise NotImplementedError(
                f"autocast on {device_type!r} is not available in pullback; pass enabled=False, or convert the model "
                "with model.to(torch.bfloat16)"
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return within
