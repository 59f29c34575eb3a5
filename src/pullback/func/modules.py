"""Modules as functions of their parameters: functional_call, stack_module_state; and functionalize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback._tensor import Tensor
from pullback.autograd.tracebacks import trimming
from pullback.func.replaced import replaced_state
from pullback.ops.shape.join import stack


@trimming
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers, given by name.

    Args:
        module: the module.
        parameter_and_buffer_dicts: names to tensors; or several such dicts.
        args: the arguments of the call; one that is not a tuple stands for itself.
        kwargs: its keyword arguments.
        tie_weights: whether a tensor given for one of several tied parameters counts for all.
        strict: whether every parameter and buffer must be given, and nothing else.
    """
    given = merged(parameter_and_buffer_dicts)
    call = args if isinstance(args, tuple) else () if args is None else (args,)
    with replaced_state(module, given, tie_weights, strict):
        return module(*call, **(kwargs or {}))


def merged(dicts: Any) -> dict[str, Any]:
    """One dict of several with different names."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got " + str(type(dicts))
        )
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for d in dicts for name in d]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several models of one kind, each stacked along a new first dimension."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: stacked([dict(m.named_parameters())[name] for m in models]) for name, _ in models[0].named_parameters()
    }
    buffers = {name: stacked([dict(m.named_buffers())[name] for m in models]) for name, _ in models[0].named_buffers()}
    return parameters, buffers


def stacked(tensors: list[Tensor]) -> Any:
    """Tensors along a new first dimension; a leaf if they are leaves."""
    wanting = [t.requires_grad for t in tensors]
    if any(wanting) and not all(wanting):
        raise RuntimeError("Expected tensors from each model to have the same .requires_grad")
    out = stack(tensors)
    return out.detach().requires_grad_(wanting[0]) if all(t.is_leaf for t in tensors) else out


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: it gives the same results, and nothing here needs it without in-place ops."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove="
            f"{remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy."
        )
    return func


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let the batch norms of a module forget their running statistics, which a transform could not update."""
    for module in root.modules():
        if any(kind.__name__ == "_BatchNorm" for kind in type(module).__mro__) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
