"""`compile(f, check=True)`: the function beside its program, with everything as it was for both."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._pytree import tree_leaves
from pullback._tensor import Tensor
from pullback.compiler.branches import Missed
from pullback.compiler.effects import updated_by
from pullback.ops.random.generator import default_generator

RELATIVE, ABSOLUTE = 1e-3, 1e-5
"""How much a program may differ, in relation to the largest element: kernels add in another order than eager code."""


def checked(function: Any, entry: Any, arrays: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the program, then the function, from the same state; raise if they differ. The function's result counts."""
    tensors = written_tensors(entry)
    before = [(tensor, tensor._array.copy("K")) for tensor in tensors]
    grads = [
        (tensor, tensor._grad, None if tensor._grad is None else tensor._grad._array.copy("K")) for tensor in tensors
    ]
    engine = default_generator._engine
    stream = engine.get_state()
    result = entry.called(arrays, args, kwargs)
    if type(result) is Missed:
        return result
    found = observed(result, tensors)
    drawn = engine.get_state()
    for tensor, array in before:
        tensor._array[...] = array
    for tensor, grad, array in grads:
        tensor._grad = grad
        if grad is not None:
            grad._array[...] = array
    engine.set_state(stream)
    expected = function(*args, **kwargs)
    for (name, one), (_, other) in zip(found, observed(expected, tensors), strict=True):
        compare(name, one, other)
    if not np.array_equal(drawn, engine.get_state()):
        raise RuntimeError("torch.compile: the program draws other random numbers than the function")
    return expected


def written_tensors(entry: Any) -> list[Any]:
    """Tensors that a run may change: those that were there before, and the state of optimizers."""
    found = {id(external.tensor): external.tensor for external in entry.program.externals if external.leaf is None}
    for step in entry.program.steps:
        if step.function is updated_by:
            for state in step.args[0].state.values():
                found |= {id(value): value for value in state.values() if isinstance(value, Tensor)}
    return list(found.values())


def observed(result: Any, tensors: list[Any]) -> list[tuple[str, Any]]:
    """Copies of everything a run has made or changed."""
    leaves = [leaf._array.copy() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    out: list[tuple[str, Any]] = [(f"result {i}", array) for i, array in enumerate(leaves)]
    for tensor in tensors:
        name = f"a tensor of shape {tuple(tensor.shape)}"
        out.append((name, tensor._array.copy()))
        out.append((f"the gradient of {name}", None if tensor._grad is None else tensor._grad._array.copy()))
    return out


def compare(name: str, found: Any, expected: Any) -> None:
    """Raise if a program gives something else."""
    if (found is None) != (expected is None):
        raise RuntimeError(f"torch.compile: {name} is missing in one of the program and the function")
    if found is None:
        return
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise RuntimeError(f"torch.compile: {name} is {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}")
    if found.dtype.kind not in "fc":
        if not np.array_equal(found, expected):
            raise RuntimeError(f"torch.compile: {name} differs from what the function gives")
        return
    scale = float(np.max(np.abs(expected[np.isfinite(expected)]), initial=0.0))
    if not np.allclose(found, expected, RELATIVE, ABSOLUTE + RELATIVE * scale, equal_nan=True):
        raise RuntimeError(f"torch.compile: {name} differs from what the function gives")
