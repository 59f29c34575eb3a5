"""PyTorch's tensor and autograd system, in Python: `import pullback as torch`.

This module is the facade: the names users type as torch.*. Ops come from the registry, so none is listed here;
subpackages that few programs need are loaded when first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any as _Any

from pullback import _dtype
from pullback import autograd as autograd
from pullback import ops as _ops
from pullback import printing as _printing
from pullback._device import device as device
from pullback._device import get_default_device as get_default_device
from pullback._device import set_default_device as set_default_device
from pullback._dtype import dtype as dtype
from pullback._modes import is_grad_enabled as is_grad_enabled
from pullback._modes import is_inference_mode_enabled as is_inference_mode_enabled
from pullback._op import overrides as _overrides
from pullback._op.declare import spaces as _spaces
from pullback._runtime.building import loaded as _loaded
from pullback._runtime.messages import like as _like
from pullback._tensor import Size as Size
from pullback._tensor import Tensor as Tensor
from pullback._tensor import channels_last as channels_last
from pullback._tensor import channels_last_3d as channels_last_3d
from pullback._tensor import contiguous_format as contiguous_format
from pullback._tensor import contiguous_format as legacy_contiguous_format
from pullback._tensor import layout as layout
from pullback._tensor import memory_format as memory_format
from pullback._tensor import preserve_format as preserve_format
from pullback._tensor import strided as strided
from pullback.autograd import api as _api
from pullback.autograd import tensor_hooks as _tensor_hooks
from pullback.autograd.anomaly_mode import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from pullback.autograd.anomaly_mode import is_anomaly_enabled as is_anomaly_enabled
from pullback.autograd.anomaly_mode import switch as set_anomaly_enabled
from pullback.autograd.grad_mode import enable_grad as enable_grad
from pullback.autograd.grad_mode import inference_mode as inference_mode
from pullback.autograd.grad_mode import no_grad as no_grad
from pullback.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from pullback.autograd.tracebacks import trim as _trim
from pullback.printing import set_printoptions as set_printoptions
from pullback.show import show as show

if TYPE_CHECKING:
    from pullback._stubs.lazy import *
    from pullback._stubs.torch import *
globals().update(_spaces["torch"])
globals().update({_name: getattr(_dtype, _name) for _name in _dtype.NAMES})

__version__ = "0.1.0"

_LAZY = {
    **{
        _name: _name
        for _name in (
            "accelerator",
            "amp",
            "array_api",
            "backends",
            "compat",
            "cpu",
            "cuda",
            "distributed",
            "distributions",
            "fft",
            "func",
            "functional",
            "fx",
            "insight",
            "jit",
            "library",
            "linalg",
            "masked",
            "models",
            "nested",
            "nn",
            "optim",
            "overrides",
            "profiler",
            "quasirandom",
            "random",
            "return_types",
            "serialization",
            "signal",
            "sparse",
            "special",
            "testing",
            "utils",
            "version",
        )
    },
    "_C": "compat.c_names",
    "_utils": "compat.private_utils",
    "multiprocessing": "distributed.multiprocessing",
}
"""Modules loaded when first named."""
_LAZY_NAMES = {"autocast": "amp", "compile": "compat.compiling", "get_device_module": "cpu", "load": "serialization"}
_LAZY_NAMES |= {"_assert": "compat.compiling", "save": "serialization", "vmap": "func", "OutOfMemoryError": "cuda"}
_LAZY_NAMES |= {"explain": "insight.explain", "memory_report": "insight.memory", "why_no_grad": "insight.why"}
_LAZY_NAMES |= {"find_nonfinite": "autograd.nonfinite", "explore": "insight.explorer"}
_LAZY_NAMES |= {"config": "kernels.report", "memory_stats": "kernels.report", "empty_cache": "kernels.report"}
_LAZY_NAMES |= {"_html_of": "insight.explorer.notebook", "Tag": "library.tags"}
_LAZY_NAMES |= {"Future": "jit.futures", "GradScaler": "amp", "Stream": "cuda.queues", "Event": "cuda.queues"}
_LAZY_NAMES |= {"DisableTorchFunction": "compat.c_names", "DisableTorchFunctionSubclass": "compat.c_names"}
"""Functions whose modules are loaded when they are first named."""


def _repr_html_(self: _Any) -> str:
    """How notebooks show tensors, nodes and modules."""
    return _named("_html_of")(self)  # type: ignore[no-any-return]


Tensor._repr_html_ = autograd.graph.Node._repr_html_ = _repr_html_  # type: ignore[attr-defined]


def _op_space(name: str) -> _Any:
    """`torch.ops.aten`: a namespace of ops, unless the package of ops has something of that name."""
    if name.startswith("__"):
        raise AttributeError(f"module 'pullback.ops' has no attribute {name!r}")
    return getattr(_loaded("pullback.library").ops, name)


def _make_wrapper_subclass(cls: _Any, size: _Any, *args: _Any, **options: _Any) -> _Any:
    """A tensor of a subclass that has a shape and a dtype and no elements of its own."""
    return _loaded("pullback.library.dispatch")._make_wrapper_subclass(cls, size, *args, **options)


def _let_class_be_told(cls: _Any) -> None:
    """A class with `__torch_dispatch__` is defined."""
    _loaded("pullback.library").prepare(cls)


_ops.__getattr__ = _op_space  # type: ignore[method-assign]
_overrides.let_class_be_told = _let_class_be_told
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)


if not TYPE_CHECKING:  # which knows all names from the stubs, and says which are wrong

    def __getattr__(name: str) -> _Any:
        try:
            return _named(name)
        except AttributeError as error:
            _trim(error)
            raise


def _named(name: str) -> _Any:
    """What a name stands for that is not there yet."""
    if name in _LAZY:
        return _loaded(f"pullback.{_LAZY[name]}")
    if name in _LAZY_NAMES:
        return getattr(_loaded(f"pullback.{_LAZY_NAMES[name]}"), name)
    if not name.startswith("__"):
        _ops.load_all()
        globals().update(_spaces["torch"])
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module 'torch' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """What is said of a name that is not here: why, if torch has it; else which one was meant, if one looks like it."""
    if name.startswith("_"):  # programs ask for such names only to see whether they are there
        return ""
    if name in _loaded("pullback.compat.missing").torch_names()["torch"]:
        return f"\n  torch has it and pullback has not: {_loaded('pullback.compat.reasons').reason('torch.' + name)}"
    return _like(name, {*globals(), *_LAZY, *_LAZY_NAMES})
