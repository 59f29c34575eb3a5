"""A module with other parameters and buffers than its own, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback._tensor import Tensor

ABSENT: Any = object()
"""Stands for a tensor that the module does not have."""


@contextmanager
def replaced_state(
    module: Any, given: dict[str, Any], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Inside, the module has the given tensors; a buffer it replaces meanwhile is written back to the dict."""
    wanted = with_tied(module, given) if tie_weights else given
    if strict:
        check_names(module, wanted)
    before: dict[str, Any] = {}
    try:
        for name, tensor in wanted.items():
            before[name] = swap(module, name, tensor)
        yield
    finally:
        after = {name: swap(module, name, tensor) for name, tensor in before.items()}
        given.update({name: after[name] for name in given if name in after})


def named_tensors(module: Any) -> dict[str, Tensor]:
    """All parameters and buffers by name, tied ones under every name."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def with_tied(module: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What was given for one of several tied tensors, for all of them."""
    names_of: dict[Tensor, list[str]] = {}
    for name, tensor in named_tensors(module).items():
        names_of.setdefault(tensor, []).append(name)
    out = dict(given)
    for names in names_of.values():
        told = [given[name] for name in names if name in given]
        if len(names) < 2 or not told:
            continue
        if any(tensor is not told[0] for tensor in told):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        out.update(dict.fromkeys(names, told[0]))
    return out


def check_names(module: Any, given: dict[str, Any]) -> None:
    """Strict mode: exactly the module's names."""
    known = named_tensors(module)
    problems = []
    for kind, names in (("Unexpected", given.keys() - known.keys()), ("Missing", known.keys() - given.keys())):
        if names:
            problems.append(f"{kind} key(s): {', '.join(map(repr, sorted(names)))}.")
    if problems:
        shown = "\n\t".join(problems)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{shown}")


def swap(module: Any, path: str, tensor: Any) -> Any:
    """Put a tensor (or nothing: ABSENT) in the place with this dotted name; returns what was there."""
    prefix, _, name = path.rpartition(".")
    owner = module.get_submodule(prefix)
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
