"""What the distributions share: parameters of one shape, probabilities and logits, properties computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.nn import functional as F

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

Number = bool | int | float
"""A number a parameter may be given as."""
Shape = Sequence[int]
"""What a function takes as a shape."""

euler_constant = 0.57721566490153286060


def is_tensor_like(value: Any) -> bool:
    """Whether a value is a tensor, or takes part in calls of tensor functions as one."""
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """All values as tensors of one shape; a number takes the dtype and device of the first tensor, or the defaults."""
    if not all(is_tensor_like(value) or isinstance(value, Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((value for value in values if isinstance(value, Tensor)), None)
    kind = torch.get_default_dtype() if first is None else first.dtype
    place = None if first is None else first.device
    tensors = [value if is_tensor_like(value) else torch.tensor(value, dtype=kind, device=place) for value in values]
    return tuple(torch.broadcast_tensors(*tensors))


def one_of(first: str, second: str, given_first: Any, given_second: Any) -> str:
    """The name of the one parameter that was given, of two that say the same."""
    if (given_first is None) == (given_second is None):
        raise ValueError(f"Either `{first}` or `{second}` must be specified, but not both.")
    return second if given_first is None else first


def _standard_normal(shape: Shape, dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


# ------------------------------------------------------------------ probabilities


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities of logits: their sigmoid if binary, their softmax otherwise."""
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved away from 0 and 1 by the precision of their dtype."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits of probabilities: log odds if binary, logarithms otherwise."""
    inner = clamp_probs(probs)
    return torch.log(inner) - torch.log1p(-inner) if is_binary else torch.log(inner)


# ------------------------------------------------------------------ properties computed once


class lazy_property:
    """A property computed when first read, with gradients recorded, and kept on the instance from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        # No __set__ is defined, so the value on the instance hides this property.
        setattr(instance, self.wrapped.__name__, value)
        return value


# ------------------------------------------------------------------ triangles of matrices


def _tril_mask(n: int, diag: int) -> Tensor:
    """True on and below the diagonal number `diag` of an n x n matrix."""
    places = torch.arange(n)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal, row after row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _tril_mask(n, diag)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The square matrix whose elements on and below a diagonal are these, and zero above."""
    # The triangle of an n x n matrix has n * (n + 1 + 2 * diag) / 2 elements, but for a corner: solved for n.
    odd = 1 + 2 * diag
    side = (-odd + (odd**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    n = round(side)
    if n - side > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., _tril_mask(n, diag)] = vec
    return mat
