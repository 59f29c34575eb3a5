"""What cannot be set or deleted on a tensor: torch's errors. This module comes last, when all properties are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback._lazy import LazyTensor
from pullback._tensor import Tensor

DELETING = {
    "data": "Deleting tensor data is not allowed. Delete tensor instead!",
    "requires_grad": "requires_grad must be a bool",
    "_grad_fn": "Deletion of _grad_fn not allowed. Detach tensor instead!",
}
"""Torch's texts for attributes that can be set but not deleted; all others it calls not writable."""


def not_writable(name: str) -> Callable[..., None]:
    """A setter or deleter that refuses."""

    def refuse(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    refuse.refuses = True  # type: ignore[attr-defined] # so that type stubs do not offer it
    return refuse


def not_deleted(text: str) -> Callable[[Tensor], None]:
    """A deleter that refuses with a text."""

    def refuse(self: Tensor) -> None:
        raise RuntimeError(text)

    return refuse


def nothing(self: Tensor) -> None:
    """Torch still lets programs delete `volatile`; it has been False for years."""


def delete_imag(self: Tensor) -> None:
    """Refuse: first for a tensor that has no such part."""
    self.imag  # noqa: B018 (raises)
    not_writable("imag")(self)


DELETERS = {**{name: not_deleted(text) for name, text in DELETING.items()}, "volatile": nothing, "imag": delete_imag}

for kind in (Tensor, LazyTensor):
    for name, known in list(vars(kind).items()):
        if type(known) is property:
            refuse = not_writable(name)
            deleter = known.fdel or DELETERS.get(name, refuse)
            setattr(kind, name, property(known.fget, known.fset or refuse, deleter, known.__doc__))
