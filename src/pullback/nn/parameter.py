"""Tensors that modules register: Parameter, Buffer, and those whose shape the first forward decides."""

from __future__ import annotations

from typing import Any

import pullback
from pullback import Tensor
from pullback._tensor import Parameter

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class BufferMeta(type):
    """A tensor made by `Buffer(...)` counts as an instance of Buffer although it is a plain tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=BufferMeta):
    """A tensor that modules register as part of their state, not to be learnt."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = pullback.empty(0)
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


class UninitializedTensorMixin:
    """What a parameter and a buffer without a shape have in common."""

    requires_grad: bool
    cls_to_become: type
    _allowed_methods = {
        "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int", "long",
        "cuda", "cpu", "to", "_to_copy", "get_device", "detach", "requires_grad_",
    }  # fmt: skip

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or tensor of this shape."""
        old = self.data  # type: ignore[attr-defined]
        self.data = pullback.empty(shape, device=device or old.device, dtype=dtype or old.dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        """There is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: Any) -> Any:
        return (type(self), (self.requires_grad,))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", None) in cls._allowed_methods:
            return super().__torch_function__(func, types, args, kwargs)  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param: Any) -> bool:
    """True for a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return Parameter.__new__(cls, pullback.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        memory = pullback.empty(0, device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, memory, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
