"""Making a module without drawing its first values."""

from __future__ import annotations

import inspect
from typing import Any

import pullback
from pullback.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters hold anything; the random numbers that follow are as if nothing was drawn."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    state = pullback.get_rng_state()
    module = module_cls(*args, **kwargs)
    pullback.set_rng_state(state)
    return module
