"""Hooks on whole modules: what a module receives and gives back during backward.

A module is not a node of the graph, so two identity nodes are put around it:

    input -> BackwardHookFunction -> forward -> BackwardHookFunction -> output

The node behind the output tells the gradients that arrive, the node in front of the input those that leave.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pullback import Tensor, is_grad_enabled
from pullback.autograd import Function
from pullback.autograd.hooks import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

NO_INPUT_GRADIENT = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
    "register_full_backward_hook for more details."
)


class BackwardHookFunction(Function):
    """The identity, as a node that hooks can hang on."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        """Hand the tensors on."""
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        """Hand the gradients on."""
        return args


class BackwardHook:
    """The full backward hooks and pre-hooks of a module, during one call of it."""

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs, behind a node that calls the user's hooks once the gradients of the inputs are known."""
        args, self.input_tensors_index = through_identity(args, self.input_gradients_known)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """The outputs, in front of a node that notes (and lets pre-hooks change) the gradients that arrive."""
        outputs = args if isinstance(args, tuple) else (args,)
        outputs, self.output_tensors_index = through_identity(outputs, self.output_gradients_known)
        self.n_outputs = len(outputs)
        return outputs if isinstance(args, tuple) else outputs[0]

    def input_gradients_known(self, grad_input: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
        """Call the user's hooks; what they return replaces the gradients of the inputs."""
        if self.grad_outputs is None:
            # The gradient came around the module (an input that was also used elsewhere inside): nothing to report.
            return None
        index = self.input_tensors_index or []
        gradients = spread(index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            out = hook(self.module, gradients, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(gradients):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(out)}, but expected "
                    f"{len(gradients)}"
                )
            gradients = out
        self.grad_outputs = None
        return tuple([gradients[i] for i in index])

    def output_gradients_known(self, _: Any, grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
        """Note the gradients of the outputs, as the user's pre-hooks leave them."""
        index = self.output_tensors_index or []
        gradients = spread(index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            out = hook(self.module, gradients)
            if out is None:
                continue
            if len(out) != len(gradients):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(out)}, but expected "
                    f"{len(gradients)}"
                )
            gradients = out
        self.grad_outputs = gradients
        if self.input_tensors_index is None:
            self.report_without_inputs()
        return tuple([gradients[i] for i in index])

    def report_without_inputs(self) -> None:
        """No input wants a gradient, so the user's hooks are called now or never."""
        warnings.warn(NO_INPUT_GRADIENT, stacklevel=2)
        for hook in self.user_hooks:
            out = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(item is None for item in out)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None


def spread(index: list[int], values: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """A tuple with the values at their places and None elsewhere."""
    out = [None] * size
    for i, value in zip(index, values, strict=True):
        out[i] = value
    return tuple(out)


def through_identity(args: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int] | None]:
    """Send the tensors among `args` through a node with this hook; also tell where they are (None: nothing to do)."""
    index = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    if not is_grad_enabled() or not any(args[i].requires_grad for i in index):
        return args, None
    passed = BackwardHookFunction.apply(*[args[i] for i in index])
    node = next(tensor.grad_fn for tensor in passed if tensor.grad_fn is not None)
    node.register_hook(hook)
    out = list(args)
    for i, tensor in zip(index, passed, strict=True):
        out[i] = tensor
    return (tuple(out) if type(args) is tuple else type(args)(*out)), index


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook that is dropped without a warning when its tensor is saved."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn about hooks that are lost when the tensor is saved."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
