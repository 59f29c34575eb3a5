"""Calls as they were written once: `add_(2, x)`, `addcmul(x, 2, y, z)`, `addmm(2, x, 3, y, z)`.

Numbers that are keywords today stood among the tensors then. Torch still takes such calls, and warns.
"""

from __future__ import annotations

from typing import Any

from pullback._op.arguments import caller, written
from pullback._op.declare import Op, Parameter
from pullback._op.signatures import public_name
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor

NUMBERS = (bool, int, float, complex)


def in_todays_order(op: Op, given: tuple[Any, ...], keywords: dict[str, Any], twin: bool = False) -> tuple[Any, ...]:
    """The tensors and, by name, the numbers of a call in the order of once; TypeError if it never was one.

    `given` begins with self. The numbers stand right behind it; in a call of a function beta even stands before it.
    """
    wanted = [p for p in op.params if not p.keyword_only]
    spare = len(given) - len(wanted) - sum([isinstance(value, NUMBERS) for value in given])
    given = tuple([as_number(value) if 0 < i <= spare else value for i, value in enumerate(given)])
    numbers = tuple([i for i, value in enumerate(given) if isinstance(value, NUMBERS)])
    tensors = tuple([value for value in given if isinstance(value, Tensor)])
    names = op.formerly[: len(numbers)]
    seen = None if twin else written(caller())
    method = twin or (seen is not None and seen[0] == len(given) - 1)
    once = {(1,): False, (1, 2): False, (0,): True, (0, 2): True}
    allowed = [places for places, first in once.items() if not first or (op.formerly[0] == "beta" and not twin)]
    if (
        numbers not in allowed
        or len(numbers) > len(op.formerly)
        or (len(tensors), len(tensors) + len(numbers)) != (len(wanted), len(given))
        or any(name in keywords for name in op.formerly)
    ):
        shown = len(wanted) - method
        raise TypeError(
            f"{op.name}{'_' * twin}() takes {shown} positional argument{'s' if shown != 1 else ''} but "
            f"{len(given) - method} were given"
        )
    warn(op, names, numbers, twin, method)
    return tensors, dict(zip(names, [given[i] for i in numbers], strict=True))


def as_number(value: Any) -> Any:
    """A tensor without dimensions, where a number is wanted."""
    return value.item() if isinstance(value, Tensor) and not value.dim() and not value.requires_grad else value


def warn(op: Op, names: tuple[str, ...], places: tuple[int, ...], twin: bool, method: bool) -> None:
    """Warn as torch does: for the first of these calls, whatever its op, on the line that makes it.

    Methods and functions are one here. Where a call does not tell, the text is that of the function.
    """
    method = method or (op.formerly[0] == "beta" and places[0] == 1)
    out = "" if method else "Tensor out = None"
    tensors = [p for p in op.params if not p.keyword_only][method:]
    before: list[str] = [typed(p) for p in tensors]
    for name, place in zip(names, places, strict=True):
        before.insert(place - method, f"Number {name}")
    today = ", ".join([typed(p) for p in tensors])
    keywords = ", ".join([*(f"Number {name} = 1" for name in op.formerly), *([out] if out else [])])
    name = f"{op.name}_" if twin else op.name
    lines = [
        f"This overload of {name} is deprecated:",
        f"\t{name}({', '.join(before)}{', *, ' + out if out else ''})",
        "Consider using one of the following signatures instead:",
        f"\t{name}({today}, *, {keywords})",
    ]
    if op.takes_out_dtype and not method:
        lines.append(f"\t{name}({today}, torch.dtype out_dtype, *, {keywords})")
    warn_once("\n".join(lines), "deprecated overload")


def typed(parameter: Parameter) -> str:
    """A tensor in a signature."""
    return f"Tensor {public_name(parameter.name)}"


def call_of_once(op: Op, given: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run a call of once."""
    changed = {name: value for name, value in keywords.items() if value is not default_of(op, name)}
    tensors, numbers = in_todays_order(op, given, changed)
    return op.call(*tensors, **{**keywords, **numbers})


def default_of(op: Op, name: str) -> Any:
    """What a keyword is if nobody gives it."""
    return next((p.default for p in op.params if p.name == name), None)
