"""PyTorch's tensor and autograd system, in Python: `import pullback as torch`.

This module is the facade: the names users type as torch.*. Ops come from the registry, so none is listed here;
subpackages that few programs need are loaded when first named.
"""

from __future__ import annotations

import warnings as _warnings
from importlib import import_module as _import_module
from typing import Any as _Any

import numpy as _np

from pullback import _dtype, autograd, ops
from pullback._device import device, get_default_device, set_default_device
from pullback._modes import is_grad_enabled, is_inference_mode_enabled
from pullback._op.declare import spaces as _spaces
from pullback._tensor import (
    Size,
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)

# NumPy warns about divisions by zero, overflows and NaNs; torch's arithmetic is silent about them. The setting is
# per thread, so threads started later are covered by the filter.
_np.seterr(all="ignore")
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"pullback\.")

for _name in ops.MODULES:
    _import_module(f"pullback.ops.{_name}")

from pullback import printing
from pullback.autograd import api as _api
from pullback.autograd import tensor_hooks as _tensor_hooks
from pullback.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from pullback.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from pullback.printing import set_printoptions
from pullback.show import show

globals().update(_spaces["torch"])
globals().update({_name: getattr(_dtype, _name) for _name in _dtype.NAMES})

__version__ = "0.1.0"

_LAZY = {"fft", "linalg", "nn", "random", "special", "utils"}
"""Subpackages loaded when first named."""


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"pullback.{name}")
    raise AttributeError(f"module 'pullback' has no attribute {name!r}")
