"""The arguments of a call matched with the parameters of what is called."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

__all__ = ["ArgsKwargsPair", "normalize_function", "normalize_module"]

RARE = ("axis", "keepdims", "out")
"""What the schemas of torch's ops have not: other names of parameters, and what only some calls take."""


class ArgsKwargsPair(NamedTuple):
    """Arguments by place and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _args_kwargs_to_normalized_args_kwargs(
    sig: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], normalize_to_only_use_kwargs: bool
) -> ArgsKwargsPair | None:
    """The arguments with defaults filled in; None where a parameter has no single name or place."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named_self = list(sig.parameters) != ["input", "from", "to", "generator"]
    if any(p.kind not in kinds for p in sig.parameters.values()) and named_self:
        return None
    bound = sig.bind(*args, **kwargs)
    bound.apply_defaults()
    new_args: list[Any] = []
    new_kwargs: dict[str, Any] = {}
    for i, (name, parameter) in enumerate(sig.parameters.items()):
        by_place = parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and i < len(args)
        if by_place and not normalize_to_only_use_kwargs:
            new_args.append(bound.arguments[name])
        else:
            new_kwargs[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(new_args), new_kwargs)


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function matched with its parameters; None where it shows no signature."""
    try:
        signature = inspect.signature(inspect.unwrap(target))
    except (ValueError, TypeError):
        return None
    if hasattr(target, "op"):
        kept = [p for name, p in signature.parameters.items() if name not in RARE or name in (kwargs or {})]
        signature = signature.replace(parameters=kept)
    return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a module of torch.nn matched with the parameters of its `forward`; None for other modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if not type(module).__module__.startswith("pullback.nn"):
        return None
    signature = inspect.signature(module.forward)
    return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs or {}, normalize_to_only_use_kwargs)
