"""What every loss does with its reduction: none, mean or sum."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pullback._arrays.kinds import laid_out
from pullback._op.define import Array
from pullback._runtime.warnings import warn
from pullback.kernels.jit.language.expression import Halfway, Stand
from pullback.kernels.numpy.reduce.dims import total
from pullback.ops.reduce.sums import mean_all, sum_all
from pullback.ops.supported import refuse

CODES = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """The number by which torch's kernels know a reduction; the two old arguments still say it, with a warning."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction in CODES:
        return CODES[reduction]
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """What `size_average` and `reduce` used to mean."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
    )
    return reduction


def refuse_narrow(kernel: str, array: Array) -> None:
    """Raise torch's error unless an array holds float32 or float64, the types some kernels are written for."""
    refuse(kernel, array, "fiubcV" if array.dtype.itemsize == 2 else "iubc")


def reduced(loss: Array, reduction: int) -> Array:
    """An array of losses, reduced."""
    if reduction == 0:
        return loss
    if type(loss) is Stand:
        raise Halfway(loss, lambda made: reduced(made, reduction))
    summed = total(loss, None, False)
    return summed if reduction == 2 else np.divide(summed, loss.size, dtype=loss.dtype)


def reduced_like(input: Array, loss: Array, reduction: int) -> Array:
    """The same, of losses that lie in memory as the input does where they are not reduced."""
    return laid_out(loss, (input,)) if reduction == 0 and type(loss) is not Stand else reduced(loss, reduction)


def apply_reduction(loss: Any, reduction: int) -> Any:
    """A tensor of losses, reduced by the ops whose nodes torch records."""
    return loss if reduction == 0 else mean_all(loss) if reduction == 1 else sum_all(loss)


def share(grad: Any, reduction: int, shape: Any) -> Any:
    """The gradient each element's loss receives."""
    return grad / prod(shape) if reduction == 1 else grad
