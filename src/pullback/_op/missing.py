"""Arguments nobody gave."""

from __future__ import annotations

from typing import Any


class Missing:
    """The default of an argument that nobody gave, where None would be one that somebody did."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()
"""The default of an argument that is required, but may come under another name."""


class Unnamed:
    """The default of dimensions that nobody named, where None names all of them; shown as None."""

    def __repr__(self) -> str:
        return "None"


UNNAMED = Unnamed()
"""A sum or mean of everything is another function in torch than one along all dimensions."""


def lacking(value: Any) -> bool:
    """True for the default of a required argument."""
    return value is MISSING


def refuse_missing(function: str, arguments: dict[str, Any]) -> None:
    """Raise as torch does if a required argument is missing."""
    names = [f'"{name}"' for name, value in arguments.items() if value is MISSING]
    if names:
        plural = "arguments" if len(names) == 1 else "argument"  # so it says
        raise TypeError(f"{function}() missing {len(names)} required positional {plural}: {', '.join(names)}")


def missing_dim(name: str) -> None:
    """Raise as torch does for a required dim."""
    refuse_missing(name, {"dim": MISSING})
