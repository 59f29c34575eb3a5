"""`torch.utils.module_tracker`: which modules are running, forwards or backwards."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from pullback import Tensor
from pullback.autograd import Variable
from pullback.autograd.graph import register_multi_grad_hook
from pullback.autograd.task import current_task
from pullback.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from pullback.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]

logger = logging.getLogger(__name__)


class ModuleTracker:
    """A block in which `parents` holds the names of the modules that are running, and always "Global"."""

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._known_modules: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._seen_modules: WeakSet[Any] = WeakSet()
        self._has_callback = False
        self._hooks: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return current_task.get() is not None

    def _get_mod_name(self, mod: Any) -> str:
        """The name of a module: its class, or its place in the module it was first seen in."""
        name = self._known_modules.setdefault(mod, type(mod).__name__)
        if mod not in self._seen_modules:
            for child, inner in mod.named_children():
                self._known_modules[inner] = f"{name}.{child}"
                self._get_mod_name(inner)
            self._seen_modules.add(mod)
        return name

    def _end_with_backward(self) -> None:
        """Once the running backward is done, no module is running."""
        if self._has_callback:
            return

        def done() -> None:
            self.parents = {"Global"}
            self._has_callback = False

        Variable._execution_engine.queue_callback(done)
        self._has_callback = True

    def _entering(self, name: str, is_bw: bool) -> Callable[..., None]:
        """What happens when a module begins."""

        def enter(*unused: Any) -> None:
            if is_bw:
                self._end_with_backward()
            if name in self.parents:
                logger.info(
                    "The module hierarchy tracking seems to be broken as this Module was already entered. %s during %s",
                    name,
                    "backward" if is_bw else "forward",
                )
            self.parents.add(name)

        return enter

    def _leaving(self, name: str, is_bw: bool) -> Callable[..., None]:
        """What happens when a module ends."""

        def leave(*unused: Any) -> None:
            if name in self.parents:
                self.parents.remove(name)
            else:
                logger.info(
                    "The Module hierarchy tracking is confused as we're exiting a Module that was never entered. %s "
                    "during %s",
                    name,
                    "backward" if is_bw else "forward",
                )

        return leave

    def _watch(self, values: Any, hook: Callable[..., None]) -> None:
        """Call a hook when the gradients of all these tensors are known."""
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, hook))

    def _fw_pre_hook(self, mod: Any, input: Any) -> None:
        name = self._get_mod_name(mod)
        self._entering(name, False)()
        self._watch(input, self._leaving(name, True))

    def _fw_post_hook(self, mod: Any, input: Any, output: Any) -> None:
        name = self._get_mod_name(mod)
        self._leaving(name, False)()
        self._watch(output, self._entering(name, True))

    def __enter__(self) -> ModuleTracker:
        self._fw_pre_handle = register_module_forward_pre_hook(self._fw_pre_hook)
        self._fw_post_handle = register_module_forward_hook(self._fw_post_hook)
        return self

    def __exit__(self, *error: object) -> None:
        self._fw_pre_handle.remove()
        self._fw_post_handle.remove()
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
