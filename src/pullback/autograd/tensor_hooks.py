"""Hooks on tensors: register_hook, retain_grad, register_post_accumulate_grad_hook."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

from pullback._tensor import Tensor, extra_of
from pullback.autograd.hooks import RemovableHandle, register
from pullback.autograd.node import hooks_of
from pullback.autograd.view import get_grad_fn, get_output_nr, wants_grad


def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call `hook(grad)` whenever the gradient of this tensor has been computed; a return value replaces it."""
    if not wants_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    extra = extra_of(self)
    if extra.hooks is None:
        extra.hooks = OrderedDict()
        node = get_grad_fn(self)
        if node is not None:
            # The hooks belong to this value: after an in-place write they stay with the old node.
            hooks_of(node).tensor_pre.append((get_output_nr(self), extra.hooks))
    return register(extra.hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Any], None]) -> RemovableHandle:
    """Call `hook(tensor)` after this leaf's gradient has been accumulated into `.grad`."""
    if not wants_grad(self):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if get_grad_fn(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    extra = extra_of(self)
    if extra.post_accumulate is None:
        extra.post_accumulate = OrderedDict()
    return register(extra.post_accumulate, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this tensor in `.grad` although it is not a leaf."""
    if not wants_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._edge is None:
        return
    node = get_grad_fn(self)
    if node is None or self.retains_grad:
        return
    hooks_of(node).retain[get_output_nr(self)] = ref(self)
    extra_of(self).retains_grad = True


def get_backward_hooks(self: Tensor) -> Any:
    """The dict of this tensor's hooks, or None."""
    return None if self._extra is None else self._extra.hooks


def set_backward_hooks(self: Tensor, hooks: Any) -> None:
    """Replace the dict of this tensor's hooks."""
    extra_of(self).hooks = hooks


Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook
Tensor.retain_grad = retain_grad


def delete_backward_hooks(self: Tensor) -> None:
    """Refuse, as torch does."""
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


Tensor._backward_hooks = property(get_backward_hooks, set_backward_hooks, delete_backward_hooks)
