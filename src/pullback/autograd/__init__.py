"""Automatic differentiation: backward, grad, custom Functions, grad modes, hooks on the graph.

The names are loaded on first use, because the lower layers keep their graph structures in this package too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pullback._runtime.building import loaded

__all__ = [  # noqa: F405  (loaded when first named)
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

MODULES = (
    "anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "gradcheck", "profiler", "variable",
)  # fmt: skip
NAMES = {
    "backward": "api",
    "batched_gradients": "batched",
    "grad": "api",
    "Variable": "variable",
    "Function": "function",
    "SavedTensor": "saved",
    "NestedIOFunction": "function",
    "detect_anomaly": "anomaly_mode",
    "find_nonfinite": "nonfinite",
    "set_detect_anomaly": "anomaly_mode",
    "no_grad": "grad_mode",
    "enable_grad": "grad_mode",
    "set_grad_enabled": "grad_mode",
    "inference_mode": "grad_mode",
    "enforce_grad_layout_policy": "grad_mode",
    "set_multithreading_enabled": "grad_mode",
    "gradgradcheck": "gradcheck",
    "steps": "stepper",
}


if TYPE_CHECKING:
    from pullback._stubs.autograd import *
else:

    def __getattr__(name: str) -> Any:
        if name in NAMES:
            return getattr(loaded(f"pullback.autograd.{NAMES[name]}"), name)
        if name in MODULES:
            return loaded(f"pullback.autograd.{name}")
        raise AttributeError(f"module 'pullback.autograd' has no attribute {name!r}")
