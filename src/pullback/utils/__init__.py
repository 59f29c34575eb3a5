"""Small things around tensors and modules: hooks, data loading, checkpointing. Parts load when first named."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from pullback._runtime.building import loaded

PRIVATE = {"_foreach_utils", "_pytree"}
"""Parts that programs know though their names say they should not."""

ON_REQUEST = {"tensorboard"}
"""Parts that need a package which may not be installed: they are there once they have been imported."""


def __getattr__(name: str) -> Any:
    if (
        name not in ON_REQUEST
        and (name in PRIVATE or not name.startswith("_"))
        and find_spec(f"pullback.utils.{name}") is not None
    ):
        return loaded(f"pullback.utils.{name}")
    raise AttributeError(f"module 'pullback.utils' has no attribute {name!r}")
