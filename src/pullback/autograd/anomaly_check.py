"""Anomaly mode in the engine: say where the forward call was when a backward step fails or makes NaNs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback._arrays.kinds import as_array, is_sparse
from pullback._modes import modes
from pullback._tensor import Tensor
from pullback.autograd.node import Node
from pullback.autograd.numbering import evaluating
from pullback.kernels.jit.small.choose import Adding


def run_node(node: Node, grad: Any, step: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Run the step of one node under watch."""
    if modes.profiler is None:
        return run_checked(node, step)
    return modes.profiler.run_node(node, lambda: run_checked(node, step), grad)  # type: ignore[no-any-return]


def run_checked(node: Node, step: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Run one node; in anomaly mode, say where it came from if it fails or makes NaNs."""
    if not modes.anomaly:
        return step()
    depth = len(evaluating)
    try:
        evaluating.append(node)
        outs = step()
        if modes.check_nan:
            for out in outs:
                if out is not None and has_nan(out):
                    nr = next(i for i, other in enumerate(outs) if other is out)
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {nr}th output.")
    except Exception:
        print_stack(node)
        raise
    finally:
        del evaluating[depth:]
    return outs


TOTAL = Adding(lambda array: np.add.reduce(array, None))


def has_nan(grad: Any) -> bool:
    """True if a gradient has a NaN in it."""
    array = grad._array if isinstance(grad, Tensor) else as_array(grad)
    if is_sparse(array):
        array = array.values
    if array.dtype.kind not in "fcV":
        return False
    total = TOTAL.head(array)
    # The sum of numbers is a number: only where it is not one (inf - inf, or a NaN) do the elements tell.
    return bool(total != total) and bool(np.isnan(array).any())


def print_stack(node: Node) -> None:
    """Warn with the traceback of the forward call, and of the calls that led to it in earlier backward passes."""
    warn_one(node, f"Error detected in {node.name()}. ", "Traceback of forward call that caused the error:\n")
    parent = node.metadata.get("parent_")
    while parent is not None:
        head = f"\n\nPrevious calculation was induced by {parent.name()}. "
        warn_one(parent, head, "Traceback of forward call that induced the previous calculation:\n")
        parent = parent.metadata.get("parent_")


def warn_one(node: Node, head: str, introduction: str) -> None:
    """One warning for one node."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        text = "No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text = introduction + "".join(stack)
    warnings.warn(head + text, UserWarning, stacklevel=6)
