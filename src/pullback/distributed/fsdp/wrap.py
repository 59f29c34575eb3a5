"""Which parts of a module are wrapped by themselves: the policies of `FullyShardedDataParallel`."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any

from pullback import nn

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every module."""
    return True


class _Policy(ABC):
    """A policy that looks at the whole module at once."""

    @abstractmethod
    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]) -> Any:
        """The modules to wrap, with what each is told."""


class ModuleWrapPolicy(_Policy):
    """Wrap the modules of some classes."""

    def __init__(self, module_classes: Iterable[type[nn.Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]) -> Any:
        kinds = tuple(self._module_classes)
        found = [one for one in root_module.modules() if one not in ignored_modules and isinstance(one, kinds)]
        return {one: dict(root_kwargs) for one in found}

    def __call__(self, module: nn.Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """As a policy that is asked about each module."""
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wrap what a function says: False, True, or a dict of what is told."""

    def __init__(self, lambda_fn: Callable[[nn.Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module: nn.Module, ignored_modules: set[nn.Module], root_kwargs: dict[str, Any]) -> Any:
        found: dict[nn.Module, dict[str, Any]] = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            said = self._lambda_fn(module)
            if not isinstance(said, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{said}"
                )
            if said is not False and said != {}:
                found[module] = {**root_kwargs, **(said if isinstance(said, dict) else {})}
        return found


def lambda_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[nn.Module], bool]
) -> bool:
    """Wrap what a function says."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: nn.Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[nn.Module]]
) -> bool:
    """Wrap the layers of a transformer."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: nn.Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[nn.Module]] | None = None,
    exclude_wrap_modules: set[type[nn.Module]] | None = None,
) -> bool:
    """Wrap modules with so many parameters that are not yet wrapped."""
    leaves = force_leaf_modules or {nn.MultiheadAttention}
    excluded = exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict}
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(leaves if recurse else excluded))


# ------------------------------------------------------------------ by hand

around: ContextVar[Any] = ContextVar("enable_wrap", default=None)


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which `wrap(module)` wraps."""
    token = around.set(partial(wrapper_cls, **wrapper_kwargs))
    try:
        yield
    finally:
        around.reset(token)


def wrap(module: nn.Module, **wrap_overrides: Any) -> nn.Module:
    """The module, wrapped inside `enable_wrap`."""
    make = around.get()
    return module if make is None else make(module, **wrap_overrides)  # type: ignore[no-any-return]


# ------------------------------------------------------------------ inside of a module


def wrap_parts(root: nn.Module, policy: Any, ignored: set[nn.Module], make: Callable[..., nn.Module]) -> None:
    """Wrap the parts of a module, not the module itself, innermost first."""
    if isinstance(policy, _Policy):
        told = policy._run_policy(root, ignored, {})
        wrapped: dict[nn.Module, nn.Module] = {}

        def visit(module: nn.Module) -> None:
            for name, part in module.named_children():
                if part in wrapped:
                    setattr(module, name, wrapped[part])
                    continue
                visit(part)
                if part in told:
                    wrapped[part] = make(part, **told[part])
                    setattr(module, name, wrapped[part])

        visit(root)
        return
    by_numbers(root, policy, ignored, make, top=True)


def by_numbers(module: nn.Module, policy: Any, ignored: set[nn.Module], make: Any, top: bool) -> tuple[nn.Module, int]:
    """A module wrapped if the policy says so, and how many parameters were wrapped in it."""
    left = sum([param.numel() for param in module.parameters()])
    if not policy(module=module, recurse=True, nonwrapped_numel=left):
        return module, 0
    inside = 0
    for name, part in module.named_children():
        if part not in ignored:
            part, count = by_numbers(part, policy, ignored, make, top=False)
            setattr(module, name, part)
            inside += count
    if not top and policy(module=module, recurse=False, nonwrapped_numel=left - inside):
        return make(module), left
    return module, inside
