"""torch.return_types: the named tuples of ops with several results, made when first named."""

from __future__ import annotations

from typing import Any

from pullback import ops
from pullback._op.declare import registry
from pullback._op.named import return_type, return_types


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'pullback.return_types' has no attribute {name!r}")
    ops.load_all()
    for op in registry.values():
        if op.name == name and op.visible > 1 and not op.variadic and op.fields is None:
            op.fields = return_type(name, op.outputs[: op.visible])
    if name not in return_types and name.endswith("_out"):
        return_type(name, __getattr__(name.removesuffix("_out"))._fields)
    if name not in return_types:
        raise AttributeError(f"module 'pullback.return_types' has no attribute {name!r}")
    return return_types[name]
