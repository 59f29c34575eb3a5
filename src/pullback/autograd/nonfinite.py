"""Where do the NaNs come from? The first op whose result is not finite although all it got was.

    with find_nonfinite() as first:
        loss = model(x)
    print(first)        # log: 1 of 4 elements not finite (0 nan, 1 inf); called at train.py(12): loss

Anomaly mode finds NaNs in gradients; they often began in forward, in an infinity that nobody noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pullback._modes import modes
from pullback._tensor import Tensor
from pullback.autograd.profiler.events import caller_stack


class find_nonfinite:
    """Inside, the first op that makes a NaN or an infinity of finite inputs is noted; with `raise_error` it raises."""

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = raise_error
        self.op: str | None = None
        """The name of the op; None as long as everything is finite."""
        self.stack: list[str] = []
        """Where it was called, innermost first."""
        self.nan = self.inf = self.numel = 0
        self.input_shapes: list[tuple[int, ...]] = []
        self.outer: Any = None

    def __enter__(self) -> find_nonfinite:
        self.outer = modes.profiler
        modes.profiler = self
        modes.hold()
        return self

    def __exit__(self, *error: object) -> None:
        modes.profiler = self.outer
        modes.drop()

    def __bool__(self) -> bool:
        return self.op is not None

    def __str__(self) -> str:
        if self.op is None:
            return "everything is finite"
        where = f"; called at {self.stack[0]}" if self.stack else ""
        bad = f"{self.nan + self.inf} of {self.numel} elements not finite ({self.nan} nan, {self.inf} inf)"
        return f"{self.op}: {bad}{where}"

    # ---------------------------------------------------------------- called by the op machine and the engine

    def call(self, op: Any, bound: dict[str, Any], out: Any, action: Callable[..., Any]) -> Any:
        """An op."""
        inputs = list(tensors_of(bound.values()))
        sound = self.op is None and all(is_finite(t) for t in inputs)
        result = action(op, bound, out) if self.outer is None else self.outer.call(op, bound, out, action)
        if sound:
            self.look(op.name, inputs, result)
        return result

    def call_inplace(self, op: Any, self_: Any, args: tuple[Any, ...], action: Callable[..., Any]) -> Any:
        """The in-place twin of an op."""
        inputs = list(tensors_of((self_, *args)))
        sound = self.op is None and all(is_finite(t) for t in inputs)
        result = action(op, self_, args) if self.outer is None else self.outer.call_inplace(op, self_, args, action)
        if sound:
            self.look(f"{op.name}_", inputs, result)
        return result

    def run_node(self, node: Any, action: Callable[[], Any]) -> Any:
        """Backward steps are anomaly mode's business."""
        return action() if self.outer is None else self.outer.run_node(node, action)

    def look(self, name: str, inputs: list[Tensor], result: Any) -> None:
        """Note the op if its result is not finite."""
        for tensor in tensors_of(result if isinstance(result, tuple) else (result,)):
            if is_finite(tensor):
                continue
            array = tensor._array
            self.op, self.stack = name, caller_stack(3)
            self.nan, self.inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
            self.numel, self.input_shapes = array.size, [tuple(t._array.shape) for t in inputs]
            if self.raise_error:
                raise RuntimeError(f"the first result that is not finite: {self}")
            return


def tensors_of(values: Iterable[Any]) -> Iterable[Tensor]:
    """The tensors among arguments."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, Tensor))


def is_finite(tensor: Tensor) -> bool:
    """True if no element is a NaN or an infinity."""
    array = tensor._array
    return array.dtype.kind not in "fcV" or bool(np.isfinite(array).all())
