"""The few names of `torch._C` that public programs reach for, as `pullback._C`.

Only what has a meaning here: two functions of `_functions`, the switches of `_autograd`, the grad mode and the
error class of linear algebra. Anything else raises an AttributeError that says so.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pullback
from pullback.autograd import Function, graph
from pullback.autograd.node import AccumulateGrad
from pullback.autograd.saved import SavedTensor


class UndefinedGrad(Function):  # type: ignore[misc]
    """Gives its input back; the gradient that arrives stops there."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        """The input as a view of itself."""
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> None:
        """No gradient."""
        return None


class Error(Function):  # type: ignore[misc]
    """Gives its inputs back; a gradient that arrives raises."""

    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Any) -> Any:
        """The inputs, apart from the graph so far."""
        ctx.message = message
        out = tuple([tensor.detach() for tensor in tensors])
        return out[0] if len(out) == 1 else out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Raise what was asked for."""
        raise RuntimeError(ctx.message)


def undefined_grad() -> Any:
    """`torch._C._functions.UndefinedGrad()(x)`: x, whose gradient is undefined."""

    def call(*tensors: Any) -> Any:
        if len(tensors) != 1:
            raise TypeError(f"expected 1 arguments, got {len(tensors)} instead")
        return UndefinedGrad.apply(*tensors)

    return call


def delayed_error(*arguments: Any) -> Any:
    """`torch._C._functions.DelayedError(message, num_inputs)(x)`: x, whose backward raises the message."""
    if len(arguments) != 2:
        raise RuntimeError(f"Requires two arguments, got {len(arguments)}")
    message, count = arguments
    if not isinstance(message, str):
        raise RuntimeError("argument 'msg' must be a string")
    if not isinstance(count, int):
        raise RuntimeError("argument 'num_inputs' must be an int")

    def call(*tensors: Any) -> Any:
        if len(tensors) != count:
            raise TypeError(f"expected {count} arguments, got {len(tensors)} instead")
        return Error.apply(message, *tensors)

    return call


class Hooks:
    """The default saved-tensor hooks as a stack, as `torch._C._autograd` shows them."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def push(self, pack: Any, unpack: Any) -> None:
        """Make these hooks the default."""
        block = graph.saved_tensors_hooks(pack, unpack)
        block.__enter__()
        self.entered.append(block)

    def pop(self) -> None:
        """Take the last default hooks away."""
        self.entered.pop().__exit__(None, None, None)


hooks = Hooks()
_functions = SimpleNamespace(
    UndefinedGrad=undefined_grad, DelayedError=delayed_error, AccumulateGrad=AccumulateGrad, Error=Error
)
_autograd = SimpleNamespace(
    SavedTensor=SavedTensor,
    _push_saved_tensors_default_hooks=hooks.push,
    _pop_saved_tensors_default_hooks=hooks.pop,
    kineto_available=lambda: False,
)
_TensorBase = pullback.Tensor
_FunctionBase = Function
Generator = pullback.Generator


def is_grad_enabled() -> bool:
    """Whether operations are recorded."""
    return pullback.is_grad_enabled()


def _set_grad_enabled(enabled: bool) -> None:
    """Record operations from here on, or not."""
    pullback.set_grad_enabled(enabled)


def _get_tracing_state() -> None:
    """There is no tracing compiler, so it never traces."""


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def __getattr__(name: str) -> Any:
    if name == "_LinAlgError":
        return pullback.linalg.LinAlgError
    raise AttributeError(f"pullback has no torch._C.{name}: only the Python parts of torch's interface exist")
