"""The `_foreach_*` functions: an op applied to every tensor of a list, as optimizers do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._lazy import store
from pullback._op.declare import functions, registry
from pullback._op.define import function
from pullback._tensor import Tensor
from pullback.ops.pointwise.power import pow
from pullback.ops.reduce.norms import vector_norm_dim
from pullback.ops.reduce.sums import sum_all

Tensors = Sequence[Tensor]


# ------------------------------------------------------------------ arguments


def check_list(name: str, tensors: Any) -> None:
    """Raise unless this is a list of at least one tensor."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")


def check_same_length(tensors: Tensors, others: Sequence[Any]) -> None:
    """Lists walk side by side."""
    if len(tensors) == len(others):
        return
    if others and isinstance(others[0], Tensor):
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(others)}")
    raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def spread(name: str, tensors: Tensors, other: Any, one: bool = False) -> Sequence[Any]:
    """What each tensor meets: one value for all, which may be `one` tensor, or one of a list."""
    if isinstance(other, (list, tuple)):
        check_same_length(tensors, other)
        return other
    if isinstance(other, Tensor):
        if not one:
            raise TypeError(f"_foreach_{name}(): argument 'other' (position 2) must be tuple of Tensors, not Tensor")
        if other.ndim:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other._array.size} "
                "elements."
            )
    return [other] * len(tensors)


def factors(tensors: Tensors, value: Any) -> Sequence[Any]:
    """The factors of addcmul and addcdiv: a number, a list of them, or a vector of them."""
    if isinstance(value, Tensor):
        if value._array.size != len(tensors):
            raise RuntimeError(
                f"Expected length of scalars to match input of length {len(tensors)} but got {value._array.size} "
                "instead."
            )
        return value._array.reshape(-1).tolist()
    return spread("", tensors, value)


def declare(name: str, body: Callable[..., Any], doc: str) -> None:
    """Publish `torch._foreach_<name>`."""
    body.__name__, body.__doc__ = f"_foreach_{name}", doc
    function(raw=True, method=False, name=f"_foreach_{name}")(body)


# ------------------------------------------------------------------ one tensor at a time


def declare_unary(name: str) -> None:
    """Publish the two forms of an op of one tensor."""
    plain, twin = getattr(Tensor, name), getattr(Tensor, f"{name}_")

    def new(self: Tensors) -> tuple[Tensor, ...]:
        check_list(f"_foreach_{name}", self)
        return tuple([plain(t) for t in self])

    def write(self: Tensors) -> Tensors:
        check_list(f"_foreach_{name}_", self)
        for t in self:
            twin(t)
        return self

    declare(name, new, f"{name} of every tensor.")
    declare(f"{name}_", write, f"{name} of every tensor, in place.")


# ------------------------------------------------------------------ two at a time


def bound(number_op: str, tensor_op: str) -> Callable[[Any, Any], Any]:
    """maximum and minimum, which take numbers too: a bound on one side."""
    numbers, tensors = getattr(Tensor, number_op), getattr(Tensor, tensor_op)
    return lambda self, other: tensors(self, other) if isinstance(other, Tensor) else numbers(self, other)


def forms_of(name: str, is_bound: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An op of two tensors, or of a tensor and a number, and its in-place twin."""
    if is_bound:
        side = "clamp_min" if name == "maximum" else "clamp_max"
        return bound(side, name), getattr(Tensor, f"{side}_")
    return getattr(Tensor, name), getattr(Tensor, f"{name}_")


def declare_binary(name: str, form: str) -> None:
    """Publish the two forms of an op of two tensors."""
    plain, twin = forms_of(name, form == "bound")
    one = form == "binary_or_one"

    def new(self: Any, other: Any, **alpha: Any) -> tuple[Tensor, ...]:
        if name == "pow" and not isinstance(self, (list, tuple)):
            check_list("_foreach_pow", other)
            return tuple([pow(self, t) for t in other])
        check_list(f"_foreach_{name}", self)
        return tuple([plain(t, o, **alpha) for t, o in zip(self, spread(name, self, other, one), strict=True)])

    def write(self: Tensors, other: Any, **alpha: Any) -> Tensors:
        check_list(f"_foreach_{name}_", self)
        for t, o in zip(self, spread(name, self, other, one), strict=True):
            twin(t, o, **alpha)
        return self

    declare(name, new, f"{name} of every tensor and a number, a tensor, or its partner in another list.")
    declare(f"{name}_", write, f"The same as _foreach_{name}, in place.")


def declare_with_factor(name: str) -> None:
    """Publish addcmul or addcdiv."""
    plain, twin = getattr(Tensor, name), getattr(Tensor, f"{name}_")

    def walk(step: Any, self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Any) -> list[Tensor]:
        check_list(f"_foreach_{name}", self)
        check_same_length(self, tensor1)
        check_same_length(self, tensor2)
        lists = (self, tensor1, tensor2, factors(self, value))
        return [step(t, a, b, value=v) for t, a, b, v in zip(*lists, strict=True)]

    def new(
        self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Any = 1, *, scalars: Any = None
    ) -> tuple[Tensor, ...]:
        return tuple(walk(plain, self, tensor1, tensor2, value if scalars is None else scalars))

    def write(self: Tensors, tensor1: Tensors, tensor2: Tensors, value: Any = 1, *, scalars: Any = None) -> Tensors:
        walk(twin, self, tensor1, tensor2, value if scalars is None else scalars)
        return self

    declare(name, new, f"{name} of every tensor with its partners in two other lists.")
    declare(f"{name}_", write, f"The same as _foreach_{name}, in place.")


for declared in [one for one in (*registry.values(), *functions.values()) if one.foreach]:
    if declared.foreach == "unary":
        declare_unary(declared.name)
    elif declared.foreach == "with_factor":
        declare_with_factor(declared.name)
    else:
        declare_binary(declared.name, declared.foreach)


# ------------------------------------------------------------------ the rest


def lerped(step: Any, self: Tensors, tensors1: Tensors, weight: Any) -> list[Tensor]:
    """Each tensor moved towards its partner."""
    check_list("_foreach_lerp", self)
    check_same_length(self, tensors1)
    return [step(t, end, w) for t, end, w in zip(self, tensors1, spread("", self, weight), strict=True)]


@function(raw=True, method=False)
def _foreach_lerp(self: Tensors, tensors1: Tensors, weight: Any) -> tuple[Tensor, ...]:
    """Every tensor moved towards its partner, by one weight or each by its own."""
    return tuple(lerped(Tensor.lerp, self, tensors1, weight))  # type: ignore[attr-defined]


@function(raw=True, method=False)
def _foreach_lerp_(self: Tensors, tensors1: Tensors, weight: Any) -> Tensors:
    """The same as _foreach_lerp, in place."""
    lerped(Tensor.lerp_, self, tensors1, weight)  # type: ignore[attr-defined]
    return self


@function(raw=True, method=False)
def _foreach_norm(self: Tensors, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of every tensor as one vector."""
    check_list("_foreach_norm", self)
    return tuple([vector_norm_dim(t, ord, None, False, dtype) for t in self])


@function(raw=True, method=False)
def _foreach_powsum(self: Tensors, ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the absolute values of every tensor to the power `ord`."""
    check_list("_foreach_powsum", self)
    return tuple([sum_all(pow(t.abs(), ord), dtype) for t in self])  # type: ignore[attr-defined]


@function(raw=True, method=False)
def _foreach_max(self: Tensors) -> tuple[Tensor, ...]:
    """The largest element of every tensor."""
    check_list("_foreach_max", self)
    if any(not t._array.size for t in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return tuple([t.max() for t in self])  # type: ignore[attr-defined]


@function(raw=True, method=False)
def _foreach_mm(self: Tensors, mat2: Tensors) -> tuple[Tensor, ...]:
    """The product of every matrix with its partner."""
    check_list("_foreach_mm", self)
    check_same_length(self, mat2)
    return tuple([a.mm(b) for a, b in zip(self, mat2, strict=True)])  # type: ignore[attr-defined]


@function(raw=True, method=False)
def _foreach_clone(self: Tensors) -> tuple[Tensor, ...]:
    """A copy of every tensor."""
    check_list("_foreach_clone", self)
    return tuple([t.clone() for t in self])  # type: ignore[attr-defined]


@function(raw=True, method=False)
def _foreach_copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> Tensors:
    """Overwrite every tensor by its partner."""
    check_list("_foreach_copy_", self)
    check_same_length(self, src)
    for t, source in zip(self, src, strict=True):
        t.copy_(source)  # type: ignore[attr-defined]
    return self


@function(raw=True, method=False)
def _foreach_zero_(self: Tensors) -> Tensors:
    """Fill every tensor with zeros."""
    check_list("_foreach_zero_", self)
    for t in self:
        t.zero_()  # type: ignore[attr-defined]
    return self


@function(raw=True, method=False)
def _amp_foreach_non_finite_check_and_unscale_(self: Tensors, found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply every tensor by inv_scale, and set found_inf to one if an element is infinite or nan.

    As in torch, neither counts as a write: gradients are unscaled behind the graph's back.
    """
    if any(not np.isfinite(t._array).all() for t in self):
        store(found_inf, 1)
    for t in self:
        store(t, t._array * inv_scale._array)
