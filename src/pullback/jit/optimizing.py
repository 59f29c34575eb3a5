"""Settings and passes of the TorchScript compiler. Without one, a frozen module is a copy, and settings are kept."""

from __future__ import annotations

import builtins
import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pullback
from pullback.jit.scripting import USE_COMPILE, ScriptModule, deprecated, refuse

fusion: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]
onednn = False


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """A copy of a scripted module in eval mode that sees the same memory and wants no gradients.

    Its parameters stay parameters, where torch makes constants of them.
    """
    deprecated("freeze", USE_COMPILE)
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            "'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    same = {id(p): pullback.nn.Parameter(p.detach(), requires_grad=False) for p in mod.parameters()}
    return copy.deepcopy(mod, same | {id(b): b.detach() for b in mod.buffers()})


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Nothing to do: there are no passes."""


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The scripted module frozen; there are no passes that would make it faster."""
    deprecated("optimize_for_inference", USE_COMPILE)
    if not builtins.isinstance(mod, ScriptModule):
        raise RuntimeError(
            "optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace "
            "to script your 'nn.Module'."
        )
    return freeze(mod.eval())


class strict_fusion:
    """A block that must be fused in TorchScript; outside of it, it does nothing and says so, as in torch."""

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, *error: object) -> None:
        """Nothing to do."""


def set_fusion_strategy(strategy: Any) -> list[tuple[str, int]]:
    """Keep how kernels would be specialised; the strategy before comes back."""
    global fusion
    deprecated("set_fusion_strategy", USE_COMPILE)
    try:
        wanted = [(str(kind), int(depth)) for kind, depth in strategy]
    except (TypeError, ValueError):
        raise TypeError(
            "_jit_set_fusion_strategy(): incompatible function arguments. The following argument types are "
            "supported:\n    1. (arg0: collections.abc.Sequence[tuple[str, typing.SupportsInt | "
            f"typing.SupportsIndex]]) -> list[tuple[str, int]]\n\nInvoked with: {strategy!r}"
        ) from None
    before, fusion = fusion, wanted
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Keep the setting; there is no oneDNN."""
    global onednn
    onednn = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """The setting."""
    return onednn


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block in which TorchScript would optimise or not; Python runs the program in any case."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block with a fuser of TorchScript's; there are none, and Python runs the program in any case."""
    yield


def last_executed_optimized_graph() -> Any:
    """Not available: there are no graphs."""
    refuse("torch.jit.last_executed_optimized_graph", "use pullback.fx.symbolic_trace for a graph")


def export_opnames(m: Any) -> Any:
    """Not available: there is no list of ops in a module."""
    refuse("torch.jit.export_opnames", "use pullback.fx.symbolic_trace and look at its nodes")
