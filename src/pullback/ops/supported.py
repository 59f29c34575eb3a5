"""What several topics ask before they compute: of dtypes, of numbers beside tensors, of what is written by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.memory import overlaps_itself
from pullback._dtype import FROM_NUMPY, bool_, defaults, dtype, result_numpy_dtype, uint8
from pullback._modes import is_grad_enabled
from pullback._op.apply import cast
from pullback._op.constants import constant
from pullback._op.forward_mode import tangent_of
from pullback._op.out import each, exact, no_overlap
from pullback._op.parser import refusal
from pullback._runtime import messages
from pullback._runtime.messages import dim_out_of_range, no_dimensions, shape_text
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor
from pullback.autograd.view import wants_grad
from pullback.kernels.numpy.index.subscript import key_of

DOUBLE = np.dtype(np.float64)


def refuse(kernel: str, array: Any, kinds: str, idle: bool = False) -> None:
    """Raise torch's error if a kernel does not exist for the dtype of an array; `kinds` are NumPy's letters.

    With `idle` it is not looked for where there are no elements.
    """
    if array.dtype.kind in kinds and not (idle and not array.size):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[array.dtype].scalar_type}'")


def need_dims(*asked: tuple[Any, int]) -> None:
    """Raise torch's error if a dimension whose size is asked for is not there."""
    for array, dim in asked:
        if array.ndim <= dim:
            raise IndexError(dim_out_of_range(dim, array.ndim) if array.ndim else no_dimensions(dim))


def check_ranks(*batches: Any) -> None:
    """Batches of matrices have three dimensions."""
    for nr, batch in enumerate(batches, 1):
        if batch.ndim != 3:
            raise RuntimeError(f"batch{nr} must be a 3D tensor")


def warn_if_expanded(name: str, self: Any, example: str = "mask] = scalar") -> None:
    """Warn, the first time, of a write to a tensor that overlaps itself, where torch does not refuse it."""
    if isinstance(self, Tensor) and overlaps_itself(self._array):
        warn_once(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
            f"operation. This also applies to advanced indexing e.g. tensor[{example}",
            5,
        )


def refuse_gradient(name: str, **constants: Any) -> None:
    """Raise torch's error if one of the arguments that count as constants wants a gradient."""
    for argument, tensor in constants.items():
        if isinstance(tensor, Tensor) and wants_anywhere(tensor) and is_grad_enabled():
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot "
                "have requires_grad True."
            )


def moves(tensor: Any) -> bool:
    """Whether a tensor has a tangent."""
    return isinstance(tensor, Tensor) and tangent_of(tensor) is not None


def wants_anywhere(tensor: Any) -> bool:
    """Whether a gradient is wanted for a tensor, or inside vmap for what it holds."""
    while isinstance(tensor, Tensor):
        if wants_grad(tensor):
            return True
        tensor = getattr(tensor._array, "value", None)
    return False


def no_derivative(what: str) -> Any:
    """Torch's error for a derivative nobody wrote."""
    raise NotImplementedError(f"the derivative for '{what}' is not implemented.")


def floating(self: Any) -> Any:
    """The array, if it holds no integers: the fast path leaves them to the one that promotes."""
    if self.dtype.kind in "iub":
        raise TypeError("integers are promoted first")
    return self


def inverse(self: Any) -> Any:
    """One divided by each element; of complex zeros, which NumPy's reciprocal makes nan, as torch has it."""
    return np.true_divide(1, self) if self.dtype.kind == "c" else np.reciprocal(self)


def invalid_combination(name: str, given: tuple[Any, ...]) -> TypeError:
    """Torch's error for arguments that fit no overload of a function, or of a method that writes in place."""
    return refusal(name, name.endswith("_"), given, {}) or TypeError(f"{name}(): arguments of wrong types")


def complex_valued(self: Any) -> bool:
    """True for complex arrays and complex tensors: formulas ask it in both readings."""
    kind = self.dtype
    return kind.is_complex if type(kind) is dtype else kind.kind == "c"


def with_number(self: Any, number: Any) -> tuple[Any, Any]:
    """An array and a Python number in the dtype they promote to."""
    value = constant(number, self.dtype)
    if value is not None:
        return self, value
    common = result_numpy_dtype((self, number))
    return cast(self, common), cast(number, common)


def floats_with_number(self: Any, number: Any) -> tuple[Any, Any]:
    """An array and a Python number in the floating point dtype they promote to; integers count as the default dtype."""
    return with_number(cast(self, defaults.numpy) if self.dtype.kind in "iub" else self, number)


def wide_floats(self: Any) -> Any:
    """Half precision as float32: a formula of several steps rounds once, at the end, as torch's kernels do."""
    return self.astype(SINGLE) if is_half(self.dtype) else floating(self)


same_dtype = each(exact)
"""The check of `out=` for an op that converts nothing."""


def same_dtype_elsewhere(targets: list[Any], arrays: list[Any], bound: dict[str, Any]) -> None:
    """The same for one that also reads its inputs while it writes."""
    same_dtype(targets, arrays, bound)
    no_overlap(targets, arrays, bound)


def listed(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors that came one by one or as one list."""
    return all_tensors(tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors)


def all_tensors(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, if they are tensors."""
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {messages.type_name(value)}")
    return values


# ------------------------------------------------------------------ indices and values of index_put


def check_count(self: Any, indices: Any) -> None:
    """There are no more indices than dimensions: a mask without dimensions counts as well."""
    if len(indices) > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim} (got {len(indices)})")


def check_indices(name: str, indices: Any) -> None:
    """Raise torch's errors for indices that are no sequence of tensors."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    for position, item in enumerate(indices):
        if not isinstance(item, Tensor):
            kind = type(item).__name__
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {kind}")


def check_values(self: Any, indices: Any, values: Any, accumulate: bool) -> None:
    """Values have no more dimensions than what is selected, unlike those written to a subscript; a mask takes one."""
    if not isinstance(values, Tensor) or not values.ndim or (values.ndim == 1 and indices and indices[0].ndim):
        return
    masks = [item.dtype is bool_ or item.dtype is uint8 for item in indices]
    if all(masks) and values.numel() == 1 and not accumulate:
        return
    shared = max([1 if mask else item.ndim for item, mask in zip(indices, masks, strict=True)], default=0)
    taken = sum([item.ndim if mask else 1 for item, mask in zip(indices, masks, strict=True)])
    if values.ndim > shared + self.ndim - taken:
        selected = self._array[key_of(self._array, [item._array for item in indices])]
        mine, its = shape_text(values.shape), shape_text(selected.shape)
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {mine} cannot be broadcast to indexing result of shape {its}"
        )


def check_factors(kind: str, **factors: Any) -> None:
    """Raise torch's error for factors that do not fit elements of this kind, by their names."""
    for name, factor in factors.items():
        if isinstance(factor, bool) and kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if kind in "iub" and isinstance(factor, float | complex):
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
