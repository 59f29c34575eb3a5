"""Gradients of each sample: a module is called with weights of its own for each sample of a batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.autograd import Function
from pullback.func import functional_call, vmap
from pullback.utils._pytree import arg_tree_leaves, tree_map


class ForEachSample(Function):  # type: ignore[misc]
    """A weight, repeated for each sample; what comes back for each is put into its `grad_sample`."""

    @staticmethod
    def forward(ctx: Any, weight: Any, batch_size: int, scale: int) -> Any:
        """One for each."""
        ctx.weight, ctx.scale = weight, scale
        return weight.detach().expand(batch_size, *weight.shape)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        """The gradients of the samples are kept; the weight itself has none."""
        kept = getattr(ctx.weight, "grad_sample", None)
        grad = grad * ctx.scale
        ctx.weight.grad_sample = grad if kept is None else kept + grad
        return None, None, None


def call_for_per_sample_grads(
    module: Any, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """`module` as a function whose backward puts the gradients of each sample into `parameter.grad_sample`."""
    if loss_reduction not in ["sum", "mean"]:
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, torch.nn.Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple "
                f"calls without clearing gradients. Please clear out the grad_sample parameter of {weight} or "
                "post an issue to pytorch/pytorch to prioritize correct behavior"
            )
    dim = 0 if batch_first else 1

    @wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        count = common_size(dim, *args, **kwargs) if batch_size is None else batch_size
        scale = count if loss_reduction == "mean" else 1
        named = dict(module.named_parameters())
        own = {name: ForEachSample.apply(w, count, scale) for name, w in named.items() if w.requires_grad}

        def one(weights: Any, args: Any, kwargs: Any) -> Any:
            """One sample, as a batch of its own: modules expect one."""
            alone = tree_map(lambda x: x.unsqueeze(dim) if isinstance(x, Tensor) else x, (args, kwargs))
            return tree_map(lambda y: y.squeeze(dim), functional_call(module, weights, *alone))

        dims = tree_map(lambda x: dim if isinstance(x, Tensor) else None, (args, kwargs))
        return vmap(one, in_dims=(0, *dims), out_dims=dim, randomness="different")(own, args, kwargs)

    return call


def common_size(dim: int, *args: Any, **kwargs: Any) -> int:
    """The size that all tensors have in the dimension of the batch."""
    size = None
    for value in arg_tree_leaves(*args, **kwargs):
        if not isinstance(value, Tensor):
            continue
        if size is not None and size != value.shape[dim]:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {size} and one with batch size "
                f"{value.shape[dim]}. Please specify it explicitly using the batch size kwarg in "
                "call_for_per_sample_grads"
            )
        size = value.shape[dim]
    if size is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so "
            "ExpandedWeights cannot compute the batch size from the inputs. Please specify it explicitly"
        )
    return size  # type: ignore[no-any-return]
