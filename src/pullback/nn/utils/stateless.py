"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback import Tensor
from pullback.nn.modules.module import Module

__all__ = ["functional_call"]

ABSENT = object()
"""Stands for a tensor that the module does not have."""


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old place of torch.func.functional_call."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call the module with these tensors in the place of its own."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Put tensors in the place of the module's own while the context lasts."""
    wanted = with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        check_keys(module, wanted)
    before: dict[str, Any] = {}
    try:
        for name, tensor in wanted.items():
            before[name] = swap(module, name, tensor)
        yield
    finally:
        after = {name: swap(module, name, tensor) for name, tensor in before.items()}
        # A buffer the module has replaced is what the caller gets back.
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def named_tensors(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers, shared ones under all their names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def with_tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The given tensors, also under the other names of what they replace."""
    names_of: dict[Tensor, list[str]] = {}
    for name, tensor in named_tensors(module).items():
        names_of.setdefault(tensor, []).append(name)
    out = dict(given)
    for names in names_of.values():
        told = [given[name] for name in names if name in given]
        if len(names) < 2 or not told:
            continue
        if len({id(tensor) for tensor in told}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        out.update(dict.fromkeys(names, told[0]))
    return out


def check_keys(module: Module, given: dict[str, Tensor]) -> None:
    """Refuse names the module does not have, and a module whose names are not all given."""
    known = named_tensors(module)
    problems = []
    for kind, keys in (("Unexpected", given.keys() - known.keys()), ("Missing", known.keys() - given.keys())):
        if keys:
            problems.append(f"{kind} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if problems:
        shown = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{shown}")


def swap(module: Module, path: str, tensor: Any) -> Any:
    """Put a tensor (or nothing: ABSENT) in the place with this dotted name; returns what was there."""
    prefix, _, name = path.rpartition(".")
    owner: Any = module.get_submodule(prefix)
    if tensor is not ABSENT and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            if tensor is ABSENT:
                del table[name]
            else:
                table[name] = tensor
            return before
    before = getattr(owner, name, ABSENT)
    if before is not ABSENT and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not ABSENT:
        setattr(owner, name, tensor)
    elif before is not ABSENT:
        delattr(owner, name)
    return before
