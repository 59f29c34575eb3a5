"""`torch._vmap_internals`: vmap as it was before functorch, which maps over functions that return tensors or tuples."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from pullback import Tensor, movedim
from pullback import func as transforms


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The old vmap, with a warning that there is a new one."""
    text = "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """A function of tensors mapped over a dimension.

    Args:
        func: returns a tensor, or a tuple of them.
        in_dims: the dimension to map over, None for inputs that are the same for all; may have the inputs' structure.
        out_dims: where the mapped dimension appears in the outputs; one for all, or a tuple.
        allow_none_pass_through: whether outputs in a tuple may be None.
    """
    shown = func.__name__ if hasattr(func, "__name__") else repr(func)

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        check_out_dims(out_dims, shown)
        outputs: Any = None

        def returned(*inputs: Any) -> list[Tensor]:
            nonlocal outputs
            outputs = func(*inputs)
            row = list(outputs) if isinstance(outputs, tuple) else [outputs]
            if not allow_none_pass_through:
                check_outputs(outputs, row, shown)
            return [output for output in row if output is not None]

        mapped = iter(transforms.vmap(functools.update_wrapper(returned, func), in_dims)(*args))
        if not isinstance(outputs, tuple):
            return moved(next(mapped), dims_of(out_dims, 1, shown)[0])
        dims = dims_of(out_dims, len(outputs), shown)
        return tuple([None if out is None else moved(next(mapped), dim) for out, dim in zip(outputs, dims)])

    return wrapped


def moved(output: Tensor, dim: int) -> Tensor:
    """An output with its first dimension elsewhere."""
    return movedim(output, 0, dim) if dim else output


def dims_of(out_dims: Any, count: int, shown: str) -> tuple[int, ...]:
    """One dimension for each output."""
    if not isinstance(out_dims, tuple):
        return (out_dims,) * count
    if len(out_dims) != count:
        raise ValueError(
            f"vmap({shown}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got {count} outputs) "
            f"of {shown}."
        )
    return out_dims


def check_out_dims(out_dims: Any, shown: str) -> None:
    """Raise unless out_dims is an integer or a tuple of them."""
    if not all(isinstance(dim, int) for dim in (out_dims if isinstance(out_dims, tuple) else (out_dims,))):
        raise ValueError(
            f"vmap({shown}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int representing where "
            "in the outputs the vmapped dimension should appear."
        )


def check_outputs(outputs: Any, row: list[Any], shown: str) -> None:
    """Raise unless a function returned tensors only."""
    for place, output in enumerate(row):
        if not isinstance(output, Tensor):
            where = f"for return {place}" if isinstance(outputs, tuple) else "as the return"
            raise ValueError(
                f"vmap({shown}, ...): `{shown}` must only return Tensors, got type {type(output)} {where}."
            )
