"""Changing the dtype, device or memory of everything a module holds, as methods of Module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import pullback
from pullback import Tensor
from pullback.nn.parameter import Parameter

M = TypeVar("M")
COMPLEX_MODULE = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not "
    "work as expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as "
    "expected."
)


NO_DATA = (
    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
    "when moving module from meta to a different device."
)


def _apply(self: Any, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
    """Put what `fn` makes of each parameter, gradient and buffer in its place."""
    if recurse:
        for module in self.children():
            module._apply(fn)
    for name, param in self._parameters.items():
        if param is None:
            continue
        grad = param.grad
        with pullback.no_grad():
            changed = fn(param)
            if not compatible(param, changed):  # another parameter takes its place
                self._parameters[name] = moved = Parameter(changed, param.requires_grad)
                if grad is not None:
                    moved.grad = fn(grad).requires_grad_(grad.requires_grad)
                continue
            param.data = changed
            if grad is not None:
                grad.data = fn(grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self


def compatible(param: Tensor, changed: Tensor) -> bool:
    """True if a parameter can have the elements of another tensor, and stay the same parameter for whoever holds it."""
    return changed.device == param.device or pullback._has_compatible_shallow_copy_type(param, changed)  # type: ignore[attr-defined, no-any-return]


def to(self: M, *args: Any, **kwargs: Any) -> M:
    """Change the dtype or device of parameters and buffers, in place."""
    given = [*args, *kwargs.values()]
    like = next((value for value in given if isinstance(value, Tensor)), None)
    probe = pullback.empty(0, device="cpu")
    moved = probe.to(*args, **{k: v for k, v in kwargs.items() if k != "memory_format"})  # or torch's errors
    place: Any = moved.device
    named = any(isinstance(value, (pullback.dtype, type)) for value in given)  # a type of Python's names a dtype, too
    wanted = moved.dtype if named or like is not None else None
    if like is None and not any(isinstance(value, (str, pullback.device)) for value in given):
        place = None
    format = kwargs.get("memory_format")
    waits = not (kwargs.get("non_blocking") or any([value is True for value in args]))
    if wanted is not None:
        if not (wanted.is_floating_point or wanted.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )
        if wanted.is_complex:
            warnings.warn(COMPLEX_MODULE, stacklevel=2)

    def convert(t: Tensor) -> Tensor:
        to = wanted if t.is_floating_point() or t.is_complex() else None
        if t.is_meta and place is not None and place != t.device:
            raise NotImplementedError(NO_DATA)
        if format is not None and t.dim() in (4, 5):
            return t.to(place, to or t.dtype, not waits, memory_format=format)
        return t.to(place, to) if waits else t.to(place, to, True)

    return self._apply(convert)


def to_empty(self: Any, *, device: Any = None, recurse: bool = True) -> Any:
    """Give parameters and buffers new memory, without values."""
    return self._apply(lambda t: pullback.empty_like(t, device=device), recurse=recurse)


def type_(self: Any, dst_type: Any) -> Any:
    """Cast all parameters and buffers."""
    return self._apply(lambda t: t.type(dst_type))


def float_(self: Any) -> Any:
    """Cast floating point parameters and buffers to float32."""
    return self._apply(lambda t: t.float() if t.is_floating_point() else t)


def double(self: Any) -> Any:
    """Cast floating point parameters and buffers to float64."""
    return self._apply(lambda t: t.double() if t.is_floating_point() else t)


def half(self: Any) -> Any:
    """Cast floating point parameters and buffers to float16."""
    return self._apply(lambda t: t.half() if t.is_floating_point() else t)


def bfloat16(self: Any) -> Any:
    """Cast floating point parameters and buffers to bfloat16."""
    return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)


def cpu(self: Any) -> Any:
    """Move everything to the CPU, where it most often already is."""
    return self._apply(lambda t: t.cpu())


def cuda(self: Any, device: Any = None) -> Any:
    """There is no CUDA here: raises as torch's CPU build does."""
    return self._apply(lambda t: t.cuda(device))


def ipu(self: Any, device: Any = None) -> Any:
    """There is no IPU here: raises."""
    return self._apply(lambda t: t.to("ipu"))


def xpu(self: Any, device: Any = None) -> Any:
    """There is no XPU here: raises."""
    return self._apply(lambda t: t.to("xpu"))


def mtia(self: Any, device: Any = None) -> Any:
    """There is no MTIA here: raises."""
    return self._apply(lambda t: t.to("mtia"))


def share_memory(self: Any) -> Any:
    """Move parameters and buffers where other processes see them."""
    return self._apply(lambda t: t.share_memory_())
