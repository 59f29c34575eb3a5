"""`torch.utils._python_dispatch`: what packages ask about subclasses of Tensor."""

from __future__ import annotations

from typing import Any

from pullback import Tensor


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor of a subclass says what tensors it is made of."""
    return is_traceable_wrapper_subclass_type(type(t)) and type(t) is not Tensor


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether the tensors of a class say what tensors they are made of."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
