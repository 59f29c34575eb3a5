"""Trading time for memory: a checkpointed segment keeps its inputs only and computes the rest again in backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pullback as torch
from pullback.autograd.graph import saved_tensors_hooks
from pullback.autograd.profiler import log_ops
from pullback.utils.checkpoint.errors import CheckpointError, with_logs
from pullback.utils.checkpoint.frames import Frame
from pullback.utils.checkpoint.reentrant import (
    CheckpointFunction,
    check_backward_validity,
    detach_variable,
    precision_now,
)

__all__ = [
    "checkpoint",
    "checkpoint_sequential",
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_early_stop",
    "set_checkpoint_debug_enabled",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]
forced: dict[str, bool | None] = {"early_stop": None, "debug": None}
"""What set_checkpoint_early_stop and set_checkpoint_debug_enabled say, over what the call says."""


def noop_context_fn() -> Contexts:
    """Nothing around the first run, nothing around the second."""
    return nullcontext(), nullcontext()


def metadata(tensor: Any) -> dict[str, Any]:
    """What must be the same in both runs."""
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


CHECKS: dict[str, Callable[[Any], Any]] = {"default": metadata, "none": lambda tensor: None}


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)` without keeping what its ops save; backward will call it again.

    Args:
        function: the segment.
        *args: its arguments, which are kept.
        use_reentrant: False for saved-tensor hooks (better), True for one node that runs backward inside backward.
        context_fn: makes two context managers, for the first run and for the second.
        determinism_check: "default" compares shapes, dtypes and devices of both runs, "none" does not.
        debug: on a difference, list every op of both runs.
        early_stop: whether the second run ends when the last needed tensor is there.
        **kwargs: more arguments of the function; `preserve_rng_state=False` to not repeat the random numbers.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        debug = debug if forced["debug"] is None else forced["debug"]
        stop = early_stop if forced["early_stop"] is None else forced["early_stop"]
        return with_holders(function, args, kwargs, preserve, context_fn, determinism_check, debug, bool(stop))
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def with_holders(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve: bool,
    context_fn: Callable[[], Contexts],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    """The call without re-entrance: see frames.py."""
    explain = None
    if debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn, explain = debugging()
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    first, second = context_fn()
    state = torch.get_rng_state() if preserve else None
    precision = precision_now()

    def recompute(*inputs: Any) -> None:
        with torch.random.fork_rng(devices=[], enabled=preserve):
            if preserve:
                torch.set_rng_state(state)
            with precision, second:
                function(*inputs, **kwargs)

    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    frame = Frame(recompute, args, early_stop, CHECKS[determinism_check], explain)
    result = suppressed = object()
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    if result is suppressed:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    frame.forward_completed = True
    return result


def debugging() -> tuple[Callable[[], Contexts], Callable[[CheckpointError], Any]]:
    """Contexts that log the ops of both runs, and what to do with the logs when they differ."""
    logs: tuple[list[Any], list[Any]] = ([], [])

    def explain(error: CheckpointError) -> None:
        raise CheckpointError(with_logs(*logs)) from error

    return lambda: (log_ops(logs[0]), log_ops(logs[1])), explain


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions one after the other in `segments` checkpointed pieces, the last of which is kept as usual."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass "
            "use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if hasattr(functions, "children"):
        functions = functions.children()
    functions = list(functions)
    size = len(functions) // segments

    def piece(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in functions[start:end]:
                value = function(value)
            return value

        return run

    starts = range(0, size * (segments - 1), size)
    for start in starts:
        input = checkpoint(piece(start, start + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return piece(len(starts) * size, len(functions))(input)


@contextmanager
def setting(name: str, value: bool | None) -> Iterator[None]:
    """Force one option of every checkpoint inside."""
    before = forced[name]
    forced[name] = value
    try:
        yield
    finally:
        forced[name] = before


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Inside, recomputation ends early (or never does), whatever the calls say."""
    return setting("early_stop", enable)


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Inside, every checkpoint runs in debug mode (or none does), whatever the calls say."""
    return setting("debug", enabled)


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Contexts:
    """Not available: which single ops to keep is decided by a dispatcher, and there is none here."""
    raise NotImplementedError(
        "create_selective_checkpoint_contexts needs torch's dispatcher, which does not exist here. Checkpoint smaller "
        "segments instead, so that what should be kept is computed between them."
    )
