"""Keywords nobody gave: NumPy's names for dim and keepdim have no default of their own."""

from __future__ import annotations


class Missing:
    """The default of a keyword nobody gave."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()


def missing_dim(name: str) -> None:
    """Raise as torch does for a required dim."""
    raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
