"""The old way: one node for the whole segment, whose backward runs forward again and calls backward inside."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.task import current_task


def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """The same tensors as leaves of a new graph."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([t.detach().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t for t in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if nothing wants a gradient."""
    if not any(t.requires_grad for t in inputs if isinstance(t, torch.Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def precision_now() -> Any:
    """A block in which autocast is what it is now, for the second run."""
    enabled, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    return torch.autocast("cpu", dtype, enabled, torch.is_autocast_cache_enabled())


class CheckpointFunction(Function):
    """A segment of a program as one node."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the segment without a graph; keep only its inputs."""
        check_backward_validity(args)
        ctx.run_function, ctx.preserve_rng_state = run_function, preserve_rng_state
        ctx.rng_state = torch.get_rng_state() if preserve_rng_state else None
        ctx.precision = precision_now()
        ctx.positions = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        ctx.inputs = [None if i in ctx.positions else arg for i, arg in enumerate(args)]
        ctx.save_for_backward(*[args[i] for i in ctx.positions])
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run the segment again with a graph, and backward through it."""
        task = current_task.get()
        if task is None or task.captures is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        with torch.random.fork_rng(devices=[], enabled=ctx.preserve_rng_state):
            if ctx.preserve_rng_state:
                torch.set_rng_state(ctx.rng_state)
            detached = detach_variable(tuple(inputs))
            with torch.enable_grad(), ctx.precision:
                outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=True)
            if isinstance(out, torch.Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[t.grad if isinstance(t, torch.Tensor) else None for t in detached])
