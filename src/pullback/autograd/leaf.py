"""`Tensor.grad` and `Tensor.grad_dtype`: what a leaf collects, and what may be put there by hand."""

from __future__ import annotations

import warnings
from typing import Any

from pullback._dtype import dtype
from pullback._runtime import messages
from pullback._tensor import OWN_DTYPE, Tensor, extra_of

NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
    "the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


def get_grad(self: Tensor) -> Tensor | None:
    """The gradient accumulated by `backward`; None before the first."""
    if self._grad is None and self._edge is not None and not self.retains_grad:
        warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
    return self._grad


def set_grad(self: Tensor, value: Tensor | None) -> None:
    """Put a gradient there by hand; it must fit."""
    if value is not None:
        check_assigned_grad(self, value)
    self._grad = value


def delete_grad(self: Tensor) -> None:
    """`del tensor.grad` is `tensor.grad = None`."""
    self._grad = None


def check_assigned_grad(tensor: Tensor, grad: Any) -> None:
    """Raise unless `grad` may become `tensor.grad`."""
    if not isinstance(grad, Tensor):
        kind = messages.type_name(grad)
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = dtype_of_grad(tensor)
    if wanted is not None and grad.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype.cpp_name}' to a tensor with "
            "grad_dtype "
            f"'{wanted.scalar_type}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
            "dtype). "
            "You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
            "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems "
            "that assume they match."
        )
    if grad.device is not tensor.device and grad.device.type != tensor.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor with device type "
            f"'{tensor.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if grad._array.shape != tensor._array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{messages.shape_text(grad._array.shape)}' to a tensor of size "
            f"'{messages.shape_text(tensor._array.shape)}'. Please ensure that the gradient and the tensor are the "
            "same size"
        )


def dtype_of_grad(tensor: Tensor) -> dtype | None:
    """The dtype the gradient of a leaf has: its own unless somebody chose another; None for any."""
    extra = tensor._extra
    return tensor.dtype if extra is None or extra.grad_dtype is OWN_DTYPE else extra.grad_dtype


def get_grad_dtype(self: Tensor) -> dtype | None:
    """The dtype `.grad` has; None if any will do."""
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return dtype_of_grad(self)


def set_grad_dtype(self: Tensor, value: dtype | None) -> None:
    """Choose the dtype of `.grad`; None lets gradients arrive in the dtype they have."""
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and self._grad is not None and self._grad.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_type}' because there is already a gradient with dtype "
            f"'{self._grad.dtype.cpp_name}'. Please clear the gradient (.grad = None) before changing "
            "grad_dtype, or "
            "ensure the new grad_dtype matches the existing gradient's dtype."
        )
    extra = extra_of(self)
    extra.grad_dtype = value
    extra.accumulator = None


Tensor.grad = property(get_grad, set_grad, delete_grad)
Tensor.grad_dtype = property(get_grad_dtype, set_grad_dtype)
