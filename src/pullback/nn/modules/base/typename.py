"""How torch names the type of a value in its errors."""

from __future__ import annotations

from typing import Any

from pullback import Tensor


def typename(value: Any) -> str:
    """'torch.FloatTensor', 'int', 'torch.nn.modules.linear.Linear'."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__ in ("builtins", "__builtin__"):
        return kind.__qualname__
    home = kind.__module__
    if home == "pullback" or home.startswith("pullback."):
        home = "torch" + home[len("pullback") :]
    return f"{home}.{kind.__qualname__}"
