"""`torch.utils._python_dispatch`: modes that are told of every op, and what programs ask about subclasses of Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import Tensor
from pullback.library.dispatch import BaseTorchDispatchMode as BaseTorchDispatchMode
from pullback.library.dispatch import TorchDispatchMode as TorchDispatchMode
from pullback.library.dispatch import _disable_current_modes as _disable_current_modes
from pullback.library.dispatch import _get_current_dispatch_mode as _get_current_dispatch_mode
from pullback.library.dispatch import _get_current_dispatch_mode_stack as _get_current_dispatch_mode_stack
from pullback.library.dispatch import _len_torch_dispatch_stack as _len_torch_dispatch_stack


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor of a subclass says what tensors it is made of."""
    return is_traceable_wrapper_subclass_type(type(t)) and type(t) is not Tensor


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether the tensors of a class say what tensors they are made of."""
    return issubclass(t, Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """The same with another tensor in the place of each one it is made of."""
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if made.shape != outer_size:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have shape equal to {outer_size}, but got: "
            f"{made.shape}"
        )
    if made.stride() != outer_stride:
        raise AssertionError(
            f"Expected return value from {type(t)}__tensor_unflatten__() to have stride equal to {outer_stride}, but "
            f"got: {made.stride()}"
        )
    return made


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """What a handler returns of an op: where the schema says that a result is an argument, that argument itself."""
    schema = func._schema
    if not any([r.alias_info is not None and r.alias_info.is_write for r in schema.returns]):
        return out
    given = {**{a.name: v for a, v in zip(schema.arguments, args, strict=False)}, **kwargs}
    owners = {
        label: given[a.name]
        for a in schema.arguments
        if a.alias_info is not None and a.name in given
        for label in a.alias_info.before_set
    }

    def own(argument: Any, value: Any) -> Any:
        if argument.alias_info is None or not argument.alias_info.is_write:
            return value
        return next((owners[label] for label in argument.alias_info.before_set if label in owners), value)

    if len(schema.returns) == 1:
        return own(schema.returns[0], out)
    return type(out)([own(argument, value) for argument, value in zip(schema.returns, out, strict=True)])


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is told of ops."""
    return bool(_len_torch_dispatch_stack())
