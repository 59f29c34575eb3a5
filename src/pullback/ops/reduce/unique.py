"""Distinct elements, counts and places: unique, unique_consecutive, histc, bincount, searchsorted, bucketize."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.sizes import LARGEST, allocated, check_numel
from pullback._arrays.sizes import bincount as counted
from pullback._dtype import FROM_NUMPY, float64, result_numpy_dtype
from pullback._op.define import Array, Number, function, not_implemented, op
from pullback._op.out import exactly
from pullback._runtime.messages import shape_text
from pullback._tensor import Tensor, wrap
from pullback.kernels.numpy.index import uniqueness as kernels
from pullback.ops.supported import invalid_combination, refuse

# ------------------------------------------------------------------ unique


def no_derivative(name: str) -> Any:
    """Raise when a gradient reaches an op that has none."""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


def refuse_complex(name: str, self: Array) -> None:
    """Raise torch's error for numbers without an order."""
    if self.dtype.kind == "c":
        raise NotImplementedError(f"\"{name}\" not implemented for '{FROM_NUMPY[self.dtype].scalar_type}'")


@op(
    dynamic=True,
    kernel="unique",
    space=None,
    name="unique2",
    outputs=("output", "inverse_indices", "counts"),
    vmap="of_unknown_size",
    self=lambda grad: no_derivative("_unique2"),
)
def unique_elements(self: Array) -> tuple[Array, Array, Array]:
    """The distinct elements, sorted."""
    refuse_complex("unique", self)
    return kernels.unique(self)


@op(
    dynamic=True,
    space=None,
    name="unique_dim",
    outputs=("output", "inverse_indices", "counts"),
    vmap="of_unknown_size",
    self=lambda grad: no_derivative("unique_dim"),
)
def unique_slices(self: Array, dim: int) -> tuple[Array, Array, Array]:
    """The distinct slices along a dimension, sorted."""
    refuse_complex("unique_dim", self)
    check_slices(self, dim)
    return kernels.unique_slices(self, dim, False)


@op(
    dynamic=True,
    kernel="unique",
    space=None,
    name="unique_consecutive",
    outputs=("output", "inverse_indices", "counts"),
    vmap="of_unknown_size",
    self=lambda grad: no_derivative("unique_consecutive"),
)
def unique_runs(self: Array, dim: int | None = None) -> tuple[Array, Array, Array]:
    """The first of every run of equal elements, or of equal slices along a dimension."""
    refuse_complex("unique", self)
    if dim is None:
        return kernels.unique_consecutive(self)
    check_slices(self, dim)
    return kernels.unique_slices(self, dim, True)


def check_slices(self: Array, dim: int) -> None:
    """Torch's errors for slices that do not exist or are empty."""
    if not self.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -self.ndim <= dim < self.ndim:
        raise np.exceptions.AxisError(dim, self.ndim)
    empty = self.shape.count(0)
    if self.shape[dim] == 0:
        if empty != 1:
            raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied ")
    elif empty:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")


def asked_for(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    """The distinct elements, alone or with what else was asked for."""
    output, inverse, counts = found
    if not return_inverse and not return_counts:
        return output
    return (output, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


@function(numpy_names=False)
def unique(
    self: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Find the distinct elements of a tensor, or the distinct slices along a dimension, in ascending order.

    They are always sorted, whether or not `sorted` asks for it. The elements come as a vector.
    With `return_inverse` the result is a tuple with, next, the index in it of each element (in the shape of `input`) or
    of each slice; with `return_counts` the number of times each occurs follows.
    """
    found = unique_elements(self) if dim is None else unique_slices(self, dim)
    return asked_for(found, return_inverse, return_counts)


@function(numpy_names=False)
def unique_consecutive(
    self: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Drop repetitions: keep the first of every run of equal elements, or of equal slices along a dimension.

    Without `dim` the tensor is flattened and the result is a vector; what is equal but not adjacent stays.
    With `return_inverse` the result is a tuple with, next, the run each element belongs to; with `return_counts` the
    lengths of the runs follow.
    """
    return asked_for(unique_runs(self, dim), return_inverse, return_counts)


# ------------------------------------------------------------------ counting


@op(
    vmap="entries",
    kernel="aminmax_cpu",
    out_dtype=exactly(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {c_wanted} and hist "
        "{c_got}"
    ),
)
def histc(self: Array, bins: int = 100, min: Number = 0, max: Number = 0) -> Array:
    """Count the elements that fall into each of `bins` bins of equal width between `min` and `max`.

    If both are equal, as by default, the smallest and the largest element are taken. Elements outside count nowhere.
    Returns a vector of `bins` counts in the dtype of `input`; the last bin includes its upper edge.
    """
    check_numel((bins + 1,))
    low, high = float(convert_number(min, float64)), float(convert_number(max, float64))  # type: ignore[arg-type]
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if low == high and self.size:
        refuse_complex("aminmax_cpu", self)
        low, high = float(self.min()), float(self.max())
    if low == high:
        # What has no neighbours, or no kernel below, lies between one less and one more.
        low, high = (low - 1, low + 1) if self.dtype.kind in "iubc" else kernels.around(low, self.dtype)
    if not np.isfinite(low) or not np.isfinite(high):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low >= high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if self.dtype.kind == "b":
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    for edge in (low, high):  # torch makes elements of them
        exact_number(edge, FROM_NUMPY[self.dtype])
    if self.dtype.kind in "iuc":
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{FROM_NUMPY[self.dtype].scalar_type}'")
    return kernels.histc(self, bins, low, high)


@op(dynamic=True, vmap="entries", out=False, weights=not_implemented)
def bincount(self: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Count how often each non-negative integer occurs in a vector, or sum the weights it occurs with.

    The result is a vector of `max(input) + 1` elements, at least `minlength`: element i is for the integer i.
    It is int64, or with `weights`, one for each element of `input`, the sums in float32 or float64.
    """
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if self.dtype.kind != "i" and self.dtype != np.uint8:
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{FROM_NUMPY[self.dtype].scalar_type}'")
    if self.ndim != 1 or (self.size and self.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if not self.size:
        return allocated(np.zeros, (minlength,), np.dtype(np.int64))
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    largest = int(self.max())
    if largest >= LARGEST:
        raise RuntimeError(f"maximum value of input overflowed, it should be < {LARGEST} but got {largest}")
    if weights is None:
        return counted(self, None, minlength)
    total = counted(self, weights.astype(np.float64), minlength)
    return total.astype(np.float32) if weights.dtype == np.float32 else total


# ------------------------------------------------------------------ places among sorted elements


def check_search(boundaries: Array, values: Array, right: bool, side: str | None, sorter: Array | None) -> None:
    """Torch's errors of searchsorted."""
    start = "torch.searchsorted(): "
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{start}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{start}side and right can't be set to opposites, got side of left while right was True")
    if not boundaries.ndim:
        raise RuntimeError(f"{start}boundaries tensor should have positive dimension, but got 0 dimension")
    if not values.ndim and boundaries.ndim != 1:
        raise RuntimeError(
            f"{start}input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
            f"tensor dim({boundaries.ndim}) and input value's dim({values.ndim}) numel({values.size})"
        )
    if boundaries.ndim != 1 and boundaries.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            f"{start}boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
            "input "
            f"value tensor must match, but we got boundaries tensor {shape_text(boundaries.shape)} and input value "
            "tensor "
            f"{shape_text(values.shape)}"
        )
    if sorter is not None:
        check_sorter(boundaries, sorter, start)
    if values.size:  # both become what they promote to
        refuse("searchsorted_out_cpu", values if boundaries.dtype.kind == "b" else boundaries, "bc")
        refuse("searchsorted_out_cpu", values, "c")


def check_sorter(boundaries: Array, sorter: Array, start: str) -> None:
    """Torch's errors for the indices that sort the boundaries."""
    if sorter.shape != boundaries.shape:
        raise RuntimeError(
            f"{start}boundary and sorter must have the same size, but got boundary tensor "
            f"{shape_text(boundaries.shape)}and got sorter tensor {shape_text(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(
            f"{start}sorter must be a tensor of long dtype but got dtype {FROM_NUMPY[sorter.dtype].scalar_type}"
        )
    if sorter.size and (sorter.min() < 0 or sorter.max() >= boundaries.shape[-1]):
        raise RuntimeError(f"{start}sorter index out of range")


SIDES = ("left", "right")
"""Where equals go, by `right`: what is neither False nor True finds nothing here, and is refused."""


@op(vmap="searched", space=None, name="searchsorted")
def places(
    sorted_sequence: Array,
    self: Array,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Where each value belongs in the last dimension of a sorted tensor."""
    side_of = SIDES[right]
    if (
        sorter is side is None
        and sorted_sequence.ndim == 1
        and not out_int32
        and sorted_sequence.dtype.kind not in "cb"
        and self.dtype.kind != "c"
    ):
        return kernels.searchsorted(sorted_sequence, self, side_of)
    check_search(sorted_sequence, self, right, side, sorter)
    if sorter is not None:
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    found = kernels.searchsorted(sorted_sequence, self, side or side_of)
    return found.astype(np.int32 if out_int32 else np.int64)


def chosen_integers(name: str, target: Any, result: Array, lone: bool) -> None:
    """Raise unless places can be written as they are."""
    wanted, got = FROM_NUMPY[result.dtype], target.dtype
    if got is not wanted:
        raise RuntimeError(
            "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending "
            f"on whether out_int32 flag is True, but we got output tensor's dtype {got.scalar_type} and out_int32 flag "
            f"is {wanted.name == 'int32'}"
        )


def as_values(values: Any, boundaries: Tensor) -> Tensor:
    """The values to look for as a tensor; a number takes the type it has beside the boundaries."""
    if isinstance(values, Tensor):
        return values
    if not isinstance(values, (bool, int, float, complex, np.generic)):
        raise invalid_combination("searchsorted", (boundaries, values))
    return wrap(np.asarray(values, result_numpy_dtype([boundaries._array, values])))


@function(method=False, out=True, out_dtype=chosen_integers)
def searchsorted(
    sorted_sequence: Array,
    self: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Array:
    """Find where values would be inserted into the last dimension of a sorted tensor to keep it sorted.

    `sorted_sequence` is a vector, or has the same leading dimensions as `input`; the result has the shape of `input`.
    The index i fulfils `sorted[i - 1] < v <= sorted[i]`, or with `right` (or `side="right"`)
    `sorted[i - 1] <= v < sorted[i]`.
    `sorter` holds the indices that sort a sequence which is not. Returns int64, or int32 with `out_int32`.
    """
    return places(sorted_sequence, as_values(self, sorted_sequence), out_int32, right, side, sorter)


@function(method=False, out=True, out_dtype=chosen_integers)
def bucketize(self: Any, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Array:
    """Find the bucket between sorted boundaries that each value falls into.

    `boundaries` is a vector; the index i fulfils `boundaries[i - 1] < v <= boundaries[i]`, or with `right`
    `boundaries[i - 1] <= v < boundaries[i]`. Returns int64 in the shape of `input`, or int32 with `out_int32`.
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return places(boundaries, as_values(self, boundaries), out_int32, right)
