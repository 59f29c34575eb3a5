"""Histograms of one and of several variables."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from pullback._arrays.half import is_half
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, not_implemented, op
from pullback._op.named import return_type
from pullback._op.out import write_result
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor
from pullback.kernels.numpy.reduce import histogram as kernels
from pullback.ops.create.ranges import evenly
from pullback.ops.supported import invalid_combination, refuse


def type_name(array: Array) -> str:
    """A dtype as these errors write it."""
    return FROM_NUMPY[array.dtype].cpp_name


def check_points(points: Array, weight: Array | None, count: int) -> None:
    """Torch's demands on the points of a histogram of `count` variables and on their weights."""
    if points.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if count != points.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {points.shape[-1]} sequences of bin edges for a "
            f"{points.shape[-1]}-dimensional histogram but got {count}"
        )
    if weight is not None:
        if weight.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
                f"dtype, but got input({type_name(points)}), and weight({type_name(weight)})"
            )
        if weight.shape != points.shape[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
                f"excluding its innermost dimension, but got input with shape {shape_text(points.shape)} and weight "
                f"with shape {shape_text(weight.shape)}"
            )


def check_counted(points: Array) -> None:
    """The dtypes that points may have whose range is divided."""
    refuse("histogramdd", points, "iubc")
    if is_half(points.dtype) and points.size:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{FROM_NUMPY[points.dtype].scalar_type}'")


def check_edges(points: Array, edges: list[Array]) -> None:
    """Torch's demands on given edges of bins."""
    for dim, edge in enumerate(edges):
        if edge.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{type_name(points)} and bins for dimension {dim} with dtype {type_name(edge)}"
            )
        if edge.ndim != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {edge.ndim} dimensions in the bins "
                f"tensor for dimension {dim}"
            )
        if not edge.size:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                f"for dimension {dim}"
            )
    for dim, edge in enumerate(edges):
        if edge.size == 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {dim}")
    refuse("histogram_cpu", points, "iubc")


def edges_of(points: Array, bins: tuple[int, ...], range: Any) -> list[Array]:
    """The edges of equally wide bins over a range, or over what the points cover."""
    count = points.shape[-1]
    check_counted(points)
    for dim, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {dim}")
    if range is not None and len(range) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} elements, but got "
            f"{len(range)}"
        )
    out = []
    for dim, n in enumerate(bins):
        low, high = kernels.covered(points[..., dim]) if range is None else range[2 * dim : 2 * dim + 2]
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
            )
        if low == high:
            low, high = low - 0.5, high + 0.5
        kind = FROM_NUMPY[points.dtype]
        out.append(evenly(*[points.dtype.type(end).item() for end in (low, high)], n + 1, kind))
    return out


# ------------------------------------------------------------------ one variable


@op(
    vmap="entries",
    kernel="histogramdd",
    space=None,
    name="histogram",
    outputs=("hist", "bin_edges"),
    self=not_implemented,
    bins=not_implemented,
    weight=not_implemented,
)
def histogram_with_edges(
    self: Array, bins: Array, weight: Array | None = None, density: bool = False
) -> tuple[Array, Array]:
    """How many elements fall between neighbouring edges."""
    points, weight = self.reshape(-1, 1), None if weight is None else weight.reshape(-1)
    check_points(points, weight, 1)
    check_edges(points, [bins])
    return kernels.counted(points, [bins], weight, density), bins.copy()


@op(
    vmap="entries",
    kernel="histogramdd",
    space=None,
    name="histogram",
    outputs=("hist", "bin_edges"),
    self=not_implemented,
    weight=not_implemented,
)
def histogram_with_count(
    self: Array, bins: int, range: Any = None, weight: Array | None = None, density: bool = False
) -> tuple[Array, Array]:
    """How many elements fall into each of a number of equally wide bins."""
    points, weight = self.reshape(-1, 1), None if weight is None else weight.reshape(-1)
    check_points(points, weight, 1)
    edges = edges_of(points, (bins,), range)
    return kernels.counted(points, edges, weight, density, True), edges[0]


@function()
def histogram(
    self: Array, bins: Any = 100, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Count the elements that fall into each bin; returns the named tuple `(hist, bin_edges)`.

    `bins` is the number of bins of equal width, or a sorted vector of their edges. `range` is `(lowest, highest)` for
    the former; by default the smallest and the largest element. The last bin includes its upper edge.
    `weight` holds what each element counts, in the shape of `input`. With `density` the counts are divided so that the
    integral over the bins is 1.
    """
    if isinstance(bins, Tensor) and range is None:
        result = histogram_with_edges(self, bins, weight, density)
    elif type(bins) is int:
        result = histogram_with_count(self, bins, range, weight, density)
    else:
        raise invalid_combination("histogram", (self, bins))
    return result if out is None else write_result("histogram", result, out)


# ------------------------------------------------------------------ several variables


@op(
    vmap="entries",
    space=None,
    name="_histogramdd_bin_edges",
    variadic=True,
    self=not_implemented,
    weight=not_implemented,
)
def bin_edges(self: Array, bins: tuple[int, ...], range: Any, weight: Array | None) -> list[Array]:
    """The edges of equally wide bins for each variable; torch takes them for functions of the weights as well."""
    check_points(self, weight, len(bins))
    return edges_of(self, bins, range)


@op(vmap="entries", space=None, name="_histogramdd_from_bin_cts", self=not_implemented, weight=not_implemented)
def histogramdd_with_counts(
    self: Array, bins: tuple[int, ...], range: Any, weight: Array | None, density: bool
) -> Array:
    """How many points fall into each cell of equally wide bins."""
    check_points(self, weight, len(bins))
    return kernels.counted(self, edges_of(self, bins, range), weight, density, True)


@op(
    vmap="entries",
    space=None,
    name="_histogramdd_from_bin_tensors",
    self=not_implemented,
    bins=not_implemented,
    weight=not_implemented,
)
def histogramdd_with_edges(self: Array, bins: list[Array], weight: Array | None, density: bool) -> Array:
    """How many points fall into each cell between given edges."""
    check_points(self, weight, len(bins))
    check_edges(self, bins)
    return kernels.counted(self, bins, weight, density)


HISTOGRAMDD = return_type("histogramdd", ("hist", "bin_edges"))


@function(method=False)
def histogramdd(self: Array, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    """Count the points that fall into each cell of a grid; returns the named tuple `(hist, bin_edges)`.

    `input` is `(*, D)`: each row of the last dimension is a point. `hist` has D dimensions, one for each coordinate.
    `bins` is the number of bins, one for each coordinate, or a sequence of D vectors of edges. `range` holds the lowest
    and the highest edge for each coordinate in turn; by default those of the points.
    `weight` `(*)` is what each point counts. With `density` the integral over the grid is 1.
    """
    if isinstance(bins, (list, tuple)) and any(isinstance(b, Tensor) for b in bins):
        return HISTOGRAMDD(histogramdd_with_edges(self, list(bins), weight, density), tuple(bins))
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = self.shape[-1]
    numbers = (bins,) * count if type(bins) is int else tuple([index(number) for number in bins])
    if len(numbers) != count:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    found = histogramdd_with_counts(self, numbers, range, weight, density)
    return HISTOGRAMDD(found, bin_edges(self, numbers, range, weight))
