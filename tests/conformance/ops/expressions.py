"""Expressions written once and evaluated by torch and by pullback: values, dtypes, graphs, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.both import attempt, same
from tests.conformance.both import evaluated as called

NUMBERS = np.random.default_rng(7).uniform(-2.0, 2.0, 4000)


def given(torch: Any, *shape: int, dtype: Any = None, grad: bool = True) -> Any:
    """A tensor of fixed numbers."""
    dtype = dtype or torch.float64
    array = NUMBERS[: int(np.prod(shape))].reshape(shape)
    if dtype.is_complex:
        array = array + 1j * NUMBERS[-array.size - 1 : -1].reshape(shape)
    return torch.tensor(array, dtype=dtype, requires_grad=grad)


def tree(node: Any, depth: int = 8) -> Any:
    """The names of the nodes of a graph, and of what each saves."""
    if node is None or not depth:
        return None
    saved = sorted(name for name in dir(node) if name.startswith("_saved_"))
    return [type(node).__name__, *saved, [tree(below, depth - 1) for below, _ in node.next_functions]]


def evaluated(torch: Any, expression: str) -> Any:
    """The value of an expression in which `x(2, 3)` stands for an input, with its graph and its gradients."""
    inputs = []

    def x(*shape: int, **options: Any) -> Any:
        inputs.append(given(torch, *shape, **options))
        return inputs[-1]

    result = called(expression, {"torch": torch, "x": x, "f64": torch.float64, "c128": torch.complex128})
    outputs = result if isinstance(result, (tuple, list)) else [result]
    found: dict[str, Any] = {"result": result}
    for number, output in enumerate(outputs):
        if isinstance(output, torch.Tensor) and output.requires_grad:
            found[f"graph {number}"] = tree(output.grad_fn)
            total = (output.abs() if output.is_complex() else output * output).sum()
            wanted = [leaf for leaf in inputs if leaf.requires_grad]
            found[f"grads {number}"] = attempt(
                lambda total=total, wanted=wanted: torch.autograd.grad(
                    total, wanted, allow_unused=True, retain_graph=True
                )
            )
    return found


def agree(expression: str) -> None:
    """Assert that an expression means the same in both libraries: value, graph, gradients, or the error it raises."""
    same(lambda torch: evaluated(torch, expression))
