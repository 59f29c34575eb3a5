"""Arguments of wrong types. Torch looks at types before anything else; here they are looked at once a call has failed,
so that calls which succeed pay nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import _messages as messages
from pullback._op.declare import Parameter
from pullback._op.signatures import public_name
from pullback._tensor import Tensor

NUMBERS = (bool, int, float, complex, np.generic)
TENSORS = ("Array", "Tensor", "Array | Number")
WANTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "Array": ("Tensor", (Tensor,)),
    "Tensor": ("Tensor", (Tensor,)),
    "Array | Number": ("Tensor", (Tensor, *NUMBERS)),
    "Number": ("Number", NUMBERS),
    "float": ("float", (bool, int, float, np.number)),
    "int": ("int", (int, np.integer)),
    "bool": ("bool", (bool, np.bool_)),
    "str": ("str", (str,)),
}
"""What a parameter takes by its annotation: torch's word for it, and the types."""


def refuse_wrong_type(
    error: Exception, name: str, params: list[Parameter], annotations: dict[str, Any], values: tuple[Any, ...]
) -> None:
    """After a call has failed: raise torch's TypeError for the first argument that has a wrong type."""
    known = ("invalid combination of arguments", f"{name}(): argument")
    if isinstance(error, TypeError) and any([text in str(error) for text in known]):
        return  # the op knows its overloads better
    for position, (param, value) in enumerate(zip(params, values, strict=True), 1):
        annotation = str(annotations.get(param.name)).removesuffix(" | None")
        optional = annotation != annotations.get(param.name) or param.default is None
        if annotation not in WANTED or fits(annotation, value, optional):
            continue
        place = "" if param.keyword_only else f" (position {position})"
        wanted, found, name = WANTED[annotation][0], messages.type_name(value), name.lstrip("_")
        raise TypeError(
            f"{name}(): argument '{public_name(param.name)}'{place} must be {wanted}, not {found}"
        ) from None


def fits(annotation: str, value: Any, optional: bool) -> bool:
    """Whether a parameter takes a value; a tensor without dimensions counts as its number."""
    if value is None:
        return optional
    if isinstance(value, Tensor):
        return annotation in TENSORS or value.dim() == 0
    return isinstance(value, WANTED[annotation][1]) and not (annotation == "int" and isinstance(value, bool))
