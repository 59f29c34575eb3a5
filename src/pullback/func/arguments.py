"""What the transforms say about arguments that do not fit."""

from __future__ import annotations

from typing import Any

from pullback._pytree import tree_leaves
from pullback._tensor import Tensor


def positions(argnums: Any, count: int) -> Any:
    """Which arguments are meant, counted from the front."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, int):
        return position(argnums, count)
    which = tuple([position(argnum, count) for argnum in argnums])
    if not which:
        raise RuntimeError("argnums must be non-empty")
    if len(set(which)) != len(which):
        raise RuntimeError(f"argnums elements must be unique, got {which}")
    return which


def position(argnum: Any, count: int) -> int:
    """One argument, counted from the front."""
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def selected(args: tuple[Any, ...], which: Any) -> Any:
    """The arguments meant."""
    return args[which] if isinstance(which, int) else tuple([args[i] for i in which])


def with_aux(output: Any, caller: str) -> tuple[Any, Any]:
    """The two outputs of a function with has_aux."""
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{caller}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def check_outputs(outputs: list[Any], caller: str) -> None:
    """Raise unless there are outputs, and all are tensors."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(f"{caller}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for out in outputs:
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"{caller}: expected f(*primals) to return only tensors, got unsupported type {type(out)}"
            )


def check_real(caller: str, tree: Any, what: str) -> None:
    """Raise for complex tensors."""
    for i, value in enumerate(tree_leaves(tree)):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{caller}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )
