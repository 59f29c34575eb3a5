"""The keyword arguments a module hands on to the functions that make its tensors."""

from __future__ import annotations

from typing import Any

__all__ = ["factory_kwargs"]

SIMPLE = {"device", "dtype", "memory_format"}


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments for `empty` and the like: device, dtype, memory_format, given directly or as factory_kwargs."""
    if kwargs is None:
        return {}
    expected = SIMPLE | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    out = dict(kwargs.get("factory_kwargs", {}))
    for key in SIMPLE & kwargs.keys():
        if key in out:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        out[key] = kwargs[key]
    return out
