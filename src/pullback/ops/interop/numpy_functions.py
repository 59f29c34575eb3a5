"""NumPy's functions on tensors: `np.sin(tensor)`, `array * tensor`, `np.concatenate([tensor, tensor])` give tensors.

Where no gradient is wanted NumPy computes, with its own rules of promotion, and its results come back as tensors. Where
one is wanted, torch's op of the same meaning computes, so that the result is part of the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pullback._dtype import result_dtype
from pullback._op.declare import functions, registry, spaces
from pullback._tensor import Tensor, wrap
from pullback.ops.create.data import shared
from pullback.ops.interop.arrays import from_result, numpy
from pullback.ops.shape.dims import permute_dims

# ------------------------------------------------------------------ ufuncs


@cache
def named() -> dict[str, Any]:
    """Torch's functions by NumPy's names, as they declare them."""
    declared = (*functions.values(), *registry.values())
    return {name: spaces["torch"][one.name] for one in declared for name in one.numpy}


def call_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
    """`np.sin(tensor)` and `array * tensor`: torch's op for operators and gradients, NumPy's own otherwise."""
    if method == "__call__" and out is None and not kwargs:
        op = named().get(ufunc.__name__) or spaces["torch"].get(ufunc.__name__)
        # A scalar of NumPy is a number. Beside an array NumPy's rules of promotion hold; what is compared is bool.
        as_torch = (np.ndarray, np.generic) if ufunc.types[1].endswith("?") else np.generic
        numbers = any(isinstance(x, as_torch) for x in inputs)
        if op is not None and (numbers or any(isinstance(x, Tensor) and x.requires_grad for x in inputs)):
            return op(*ufunc_operands(op, inputs))
    arrays = [numpy(x) if isinstance(x, Tensor) else x for x in inputs]
    if out is not None:
        kwargs["out"] = tuple([numpy(x) if isinstance(x, Tensor) else x for x in out])
    result = getattr(ufunc, method)(*arrays, **kwargs)
    if out is not None:
        return out[0] if len(out) == 1 else out
    if isinstance(result, tuple):
        return tuple([from_result(self, r) for r in result])
    return result if result is None else from_result(self, result)


def ufunc_operands(op: Any, inputs: tuple[Any, ...]) -> list[Any]:
    """The operands of a ufunc as an op takes them: tensors for arrays, numbers only where the op takes numbers."""
    operands = [wrap(shared(x)) if isinstance(x, np.ndarray) else x for x in inputs]
    tensors = [x for x in operands if isinstance(x, Tensor)]
    for position, (value, parameter) in enumerate(zip(operands, op.op.params, strict=False)):
        if not isinstance(value, Tensor) and (position == 0 or parameter.kind == "tensor"):
            # In the dtype of the result: a number counts for less than a tensor in promotion.
            operands[position] = wrap(np.asarray(value).astype(result_dtype([*tensors, value]).numpy))
    return operands


# ------------------------------------------------------------------ other functions

KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction", "a_min": "min", "a_max": "max", "axes": "dims"}


FACTS = {
    "can_cast",
    "iscomplexobj",
    "isrealobj",
    "may_share_memory",
    "ndim",
    "result_type",
    "shape",
    "shares_memory",
    "size",
}
"""Functions that do not compute with the elements: gradients do not matter to them."""


def transposed(a: Tensor, axes: Any = None) -> Tensor:
    """np.transpose: the dimensions in another order, reversed by default."""
    return permute_dims(a, tuple(reversed(range(a._array.ndim))) if axes is None else tuple(axes))


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors among arguments."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else []


def replaced(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """The same arguments with every array, or every tensor, replaced."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {key: replaced(item, kind, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([replaced(item, kind, change) for item in value])
    return value


def call_function(self: Tensor, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's other functions: as for arrays, or torch's op where a gradient is wanted; arrays come as tensors."""
    name = func.__name__
    if name in FACTS:
        return func(*replaced(args, Tensor, array_of), **replaced(kwargs, Tensor, array_of))
    if any(tensor.requires_grad for tensor in tensors_in((args, kwargs))):
        op = transposed if name == "transpose" else named().get(name)
        if op is not None:
            options = {key if op is transposed else KEYWORDS.get(key, key): value for key, value in kwargs.items()}
            if op is not transposed and any(p.name == "correction" for p in op.op.params):
                options.setdefault("correction", 0)
            return op(*replaced(args, np.ndarray, lambda x: wrap(shared(x))), **options)
    arrays, options = replaced(args, Tensor, numpy), replaced(kwargs, Tensor, numpy)
    result = func(*arrays, **options)
    return replaced(result, (np.ndarray, np.number), lambda array: from_result(self, array))


def array_of(tensor: Tensor) -> Any:
    """The array of a tensor, whether it wants gradients or not."""
    return tensor._array


def namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The functions of the Python array API standard, on tensors."""
    found = sys.modules["pullback"].array_api
    if api_version is not None and api_version not in found.SUPPORTED_VERSIONS:
        raise ValueError(f"version {api_version!r} of the array API standard is not supported")
    return found


Tensor.__array_ufunc__ = call_ufunc  # type: ignore[attr-defined]
Tensor.__array_function__ = call_function  # type: ignore[attr-defined]
Tensor.__array_namespace__ = namespace  # type: ignore[attr-defined]
