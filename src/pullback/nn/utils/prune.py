"""Pruning: parts of a parameter are hidden by a mask of zeros and ones.

A pruned module has `weight_orig` (learnt) and `weight_mask`; a hook sets `weight` to their product before each forward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn.modules.module import Module
from pullback.nn.utils.convert_parameters import parameters_to_vector

# ------------------------------------------------------------------ the hook


class BasePruningMethod(ABC):
    """A way to choose what is hidden; subclasses write compute_mask."""

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for this tensor, where default_mask tells what is hidden already."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with zeros where it is hidden."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any) -> Any:
        """Hide parts of a parameter from now on, on top of what is hidden already."""
        method = combined(cls(*args, **kwargs), module, name)
        original = getattr(module, name)
        check_scores(importance_scores, original, f"parameter {name} of {module}")
        scores = original if importance_scores is None else importance_scores
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            default_mask = pullback.ones_like(original)
        else:
            default_mask = getattr(module, name + "_mask").detach().clone(memory_format=pullback.contiguous_format)
        try:
            mask = method.compute_mask(scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with zeros where this method would hide it."""
        check_scores(importance_scores, t, "tensor t")
        scores = t if importance_scores is None else importance_scores
        mask = pullback.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Leave the zeros in the parameter and forget the mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, self._tensor_name):
            delattr(module, self._tensor_name)
        original = module._parameters.pop(self._tensor_name + "_orig")
        original.data = weight.data
        del module._buffers[self._tensor_name + "_mask"]
        setattr(module, self._tensor_name, original)


def check_scores(scores: Tensor | None, like: Tensor, whose: str) -> None:
    """Refuse importance scores of another shape."""
    if scores is not None and scores.shape != like.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {whose}, got {scores.shape} vs {like.shape}"
        )


def combined(method: BasePruningMethod, module: Any, name: str) -> BasePruningMethod:
    """The method, together with the one that already works on this parameter, whose hook is taken away."""
    found = [key for key, hook in module._forward_pre_hooks.items() if is_pruning(hook, name)]
    if len(found) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    method._tensor_name = name
    if not found:
        return method
    old = module._forward_pre_hooks.pop(found[0])
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


def is_pruning(hook: Any, name: str) -> bool:
    """Whether a hook hides parts of this parameter."""
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter; the last one chooses among what the others left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method that works on the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far, with what the newest method hides of the rest."""
        method = self._pruning_methods[-1]
        left = what_is_left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype)
        part = method.compute_mask(t[left], default_mask=default_mask[left])
        mask[left] = part.to(dtype=mask.dtype)
        return mask


def what_is_left(method: Any, t: Tensor, mask: Tensor) -> Any:
    """The index of what earlier methods have not hidden: elements, channels or everything."""
    everything: list[Any] = [slice(None)] * t.dim()
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return tuple(everything)
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim if method.dim >= 0 else t.dim() + method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
    everything[dim] = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
    return tuple(everything)


# ------------------------------------------------------------------ what to hide


class Identity(BasePruningMethod):
    """Hides nothing, but makes mask and hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What is hidden already."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Hides elements at random."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        check_amount(amount)
        self.amount = amount

    def _scores(self, t: Tensor) -> Tensor:
        return -pullback.rand_like(t)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros at the elements with the smallest scores."""
        count = how_many(self.amount, t.nelement())
        mask = default_mask.clone(memory_format=pullback.contiguous_format)
        if count != 0:
            smallest = pullback.topk(self._scores(t).view(-1), k=count, largest=False)
            mask.view(-1)[smallest.indices] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """Hides the elements with the smallest absolute values."""

    def _scores(self, t: Tensor) -> Tensor:
        return pullback.abs(t)


class RandomStructured(BasePruningMethod):
    """Hides channels at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros in the channels that are drawn."""
        check_channels(t, self.dim)
        size = t.shape[self.dim]
        count = how_many(self.amount, size)
        if count == 0:
            return default_mask
        drawn = pullback.rand(size)
        kept = drawn > pullback.kthvalue(drawn, k=count).values
        return only(t, self.dim, kept, default_mask)


class LnStructured(BasePruningMethod):
    """Hides the channels with the smallest n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros in the channels with the smallest norms."""
        check_channels(t, self.dim)
        size = t.shape[self.dim]
        count = how_many(self.amount, size)
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        largest = pullback.topk(pullback.norm(t, p=self.n, dim=others), k=size - count, largest=True)
        return default_mask if count == 0 else only(t, self.dim, largest.indices, default_mask)


class CustomFromMask(BasePruningMethod):
    """Hides what a mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Zeros where either mask has them."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def only(t: Tensor, dim: int, kept: Tensor, default_mask: Tensor) -> Tensor:
    """The mask with zeros in all channels but these."""
    mask = pullback.zeros_like(t)
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = kept
    mask[tuple(index)] = 1
    mask *= default_mask.to(dtype=mask.dtype)
    return mask


def check_amount(amount: Any) -> None:
    """Refuse what is neither a number of elements nor a fraction of them."""
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, Integral) and float(amount) > 1.0):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def how_many(amount: Any, size: int) -> int:
    """A number or a fraction of `size` things, as a number."""
    count = int(amount) if isinstance(amount, Integral) else round(amount * size)
    if count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
    return count


def check_channels(t: Tensor, dim: int) -> None:
    """Refuse a tensor without channels, and a dimension it does not have."""
    if t.dim() <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} "
            f"with {t.dim()} dims"
        )
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


# ------------------------------------------------------------------ functions


def identity(module: Module, name: str) -> Module:
    """Make mask and hook without hiding anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Hide elements at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: float, importance_scores: Tensor | None = None) -> Module:
    """Hide the smallest elements."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Hide channels at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Hide the channels with the smallest norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Hide what a mask says."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: type[Any], importance_scores: dict[Any, Tensor] | None = None, **kwargs: Any
) -> None:
    """Hide the smallest (or other) elements of several parameters as if they were one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    all_scores = parameters_to_vector([scores.get((m, name), getattr(m, name)) for m, name in parameters])
    masks = parameters_to_vector(
        [getattr(m, name + "_mask", pullback.ones_like(getattr(m, name))) for m, name in parameters]
    )
    container = PruningContainer()
    method = pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    final = container.compute_mask(all_scores, masks)
    start = 0
    for module, name in parameters:
        param = getattr(module, name)
        end = start + param.numel()
        custom_from_mask(module, name, mask=final[start:end].view_as(param))
        start = end


def remove(module: Any, name: str) -> Any:
    """Leave the zeros in the parameter and forget mask and hook."""
    for key, hook in module._forward_pre_hooks.items():
        if is_pruning(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether this module or one below it is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
