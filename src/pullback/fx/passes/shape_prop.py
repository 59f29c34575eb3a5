"""Shapes and dtypes of all values in a graph, found by running it."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import pullback as torch
from pullback.fx.interpreter import Interpreter
from pullback.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    """What is known of this tensor."""
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d) if include_contiguity else ()
    ranks = {torch.channels_last: 4, torch.channels_last_3d: 5}
    fitting = [
        f for f in formats if ranks.get(f, result.dim()) == result.dim() and result.is_contiguous(memory_format=f)
    ]
    memory_format = fitting[0] if fitting else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and notes shape, dtype and strides of every value in `node.meta["tensor_meta"]`."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("fake tensors are not available in pullback; call ShapeProp without fake_mode")
        self.fake_module = self.fake_mode = None
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose shape is noted."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found: list[Any] = []

        def noted(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, noted)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these arguments; its result comes back."""
        return super().run(*args)
