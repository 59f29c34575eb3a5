"""Sorting and selecting by rank: sort, argsort, msort, topk, kthvalue, median, nanmedian, mode."""

from __future__ import annotations

from operator import index as as_index
from typing import Any

import numpy as np

from pullback._arrays.memory import row_major
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, function, op
from pullback._op.missing import UNNAMED, Missing, missing_dim
from pullback._op.out import EXPECTED, exact, exactly, no_overlap
from pullback.kernels.numpy.index import sorting as kernels
from pullback.ops.create.copy import order_of_memory
from pullback.ops.reduce.extremum import distribute, pick, place, refuse_complex, refuse_empty, shares
from pullback.ops.reduce.sums import axes, sum_dim

# ------------------------------------------------------------------ sort


def sorted_along(self: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Sort, with torch's error for numbers without an order."""
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    values, order = kernels.sort(self, dim, descending)
    if self.flags.c_contiguous:
        return values, order
    return in_memory_order(values, self), in_memory_order(order, self)


def in_memory_order(result: Array, self: Array) -> Array:
    """A result with its dimensions in memory as those of the input are."""
    outward = order_of_memory(self, None)
    return row_major(result.transpose(outward)).transpose(np.argsort(outward))


@op(
    kernel="sorting_kernel_method_name",
    space=None,
    node="SortBackward0",
    name="sort",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices: place(grad, dim, indices, True, self_sym_sizes),
    result=lambda self_t, dim, indices: (pick(self_t, dim, indices, True), None),
)
def sort_any(self: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """Sort along `dim`."""
    return sorted_along(self, dim, descending)


@op(
    kernel="sorting_kernel_method_name",
    space=None,
    node="SortBackward1",
    name="sort",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices: place(grad, dim, indices, True, self_sym_sizes),
    result=lambda self_t, dim, indices: (pick(self_t, dim, indices, True), None),
)
def sort_stable(self: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """Sort along `dim`; equal elements keep their order."""
    return sorted_along(self, dim, descending)


UNSAID = Missing()
"""The default of an argument whose presence decides which overload is meant."""


@function(out=True, out_dtype=exact)
def sort(self: Array, dim: int = -1, descending: bool = False, *, stable: Any = UNSAID) -> Any:
    """Sort the elements along a dimension, in ascending order unless `descending` is set.

    Returns the named tuple `(values, indices)`, both in the shape of `input`; `indices` says where each value was.
    `stable` asks that equal elements keep their order, which they always do here. NaN counts as the largest value.
    """
    return (sort_any if stable is UNSAID else sort_stable)(self, as_index(dim), descending)


@op(
    kernel="sorting_kernel_method_name",
    out_dtype=exactly(EXPECTED),
)
def argsort(self: Array, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Array:
    """Return the indices that sort a tensor along a dimension, in ascending order unless `descending` is set.

    They are the second result of `sort`, in the shape of `input`. NaN counts as the largest value.
    `stable` asks that equal elements keep their order, which they always do here.
    """
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    order = kernels.argsort(self, dim, descending)
    return order if self.flags.c_contiguous else in_memory_order(order, self)


@function(out=True, out_dtype=exact)
def msort(self: Array) -> Array:
    """Sort the elements in ascending order along the first dimension; returns the values only."""
    return sort_any(self, 0)[0]


# ------------------------------------------------------------------ by rank


def length_along(self: Array, dim: int) -> int:
    """The size of a dimension; 1 for that of a 0-d array."""
    if not -(self.ndim or 1) <= dim < (self.ndim or 1):
        raise np.exceptions.AxisError(dim, self.ndim)
    return self.shape[dim] if self.ndim else 1


@op(
    outputs=("values", "indices"),
    check_out=no_overlap,
    out_dtype=exact,
    self=lambda grad, self_sym_sizes, dim, indices: place(grad, dim, indices, True, self_sym_sizes),
    result=lambda self_t, dim, indices: (pick(self_t, dim, indices, True), None),
)
def topk(self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Array, Array]:
    """Find the `k` largest elements along a dimension, or with `largest=False` the `k` smallest.

    Returns the named tuple `(values, indices)`, in the shape of `input` with size `k` along `dim`.
    The values are in order, the most extreme first, whether or not `sorted` asks for it.
    """
    if self.dtype.char == "f" and type(k) is int and self.ndim == 2 and 0 <= k <= self.shape[1] and dim == -1:
        return kernels.topk(self, k, -1, largest)
    if self.dtype.kind in "bc":
        kind = "topk does not support bool" if self.dtype.kind == "b" else " topk does not support complex"
        raise RuntimeError(f"{kind} dtypes on CPU")
    if type(k) is not int:
        k = as_index(k)
    length = self.shape[dim] if -self.ndim <= dim < self.ndim else length_along(self, dim)
    if not 0 <= k <= length:
        raise RuntimeError("selected index k out of range")
    return kernels.topk(self, k, dim, largest)


def refuse_unordered(kernel: str, self: Array) -> None:
    """Raise torch's error for complex numbers and bools."""
    refuse_complex(kernel, self)
    if self.dtype.kind == "b":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{FROM_NUMPY[self.dtype].scalar_type}'")


def values_and_places(values: str, places: str) -> Any:
    """The demand that both have the dtypes of what is found, with what torch says of others."""

    def check(name: str, target: Any, array: Array, lone: bool) -> None:
        exactly(places if array.dtype == np.int64 else values)(name, target, array, lone)

    return check


@op(
    outputs=("values", "indices"),
    check_out=no_overlap,
    out_dtype=values_and_places(
        "output values must be of same type as input", "output indices must be of scalar type Long"
    ),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def kthvalue(self: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """Find the `k`-th smallest element along a dimension, counting from 1, and its index.

    Returns the named tuple `(values, indices)` without the dimension `dim`, or with size 1 there if `keepdim` is set.
    """
    if not self.size:
        refuse_empty("kthvalue", self, dim)
    length = length_along(self, dim)
    if not 1 <= as_index(k) <= length:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim % (self.ndim or 1)}")
    if self.ndim:
        refuse_unordered("kthvalue_cpu", self)
    return kernels.at_rank(self, dim, k - 1, keepdim)


# ------------------------------------------------------------------ median


def middle(self: Array, ignore_nan: bool) -> Array:
    """The median of all elements."""
    if not self.size:
        return np.asarray(np.nan).astype(self.dtype)
    refuse_unordered("median_cpu", self)
    return kernels.median(self, ignore_nan)


def middle_along(name: str, self: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    """The median along one dimension and where it is."""
    if not self.size:
        refuse_empty("median", self, dim)
    refuse_unordered("median_out", self)
    if self.ndim == 1 and not keepdim:
        axes((dim,), 1)
        return kernels.median_place(self, name == "nanmedian")
    length_along(self, dim)
    rank = kernels.median_rank(self, dim, name == "nanmedian") if self.ndim else 0
    return kernels.at_rank(self, dim, rank, keepdim)


@op(
    space=None,
    node="MedianBackward0",
    name="median",
    vmap="reduced",
    along="median_dim",
    self=lambda grad, self, result: distribute(grad, shares(self, result, None, True)),
    result=lambda self_t, self, result: sum_dim(self_t * shares(self, result), None),
)
def median_all(self: Array) -> Array:
    """The median of all elements, the lower of two."""
    return middle(self, False)


@op(
    kernel="median_cpu",
    space=None,
    node="NanmedianBackward0",
    name="nanmedian",
    vmap="reduced",
    along="nanmedian_dim",
    self=lambda grad, self, result: distribute(grad, shares(self, result, None, True)),
    result=lambda self_t, self, result: sum_dim(self_t * shares(self, result), None),
)
def nanmedian_all(self: Array) -> Array:
    """The median of all elements that are not nan."""
    return middle(self, True)


@op(
    space=None,
    node="MedianBackward1",
    name="median",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def median_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The median along `dim` and where it is."""
    return middle_along("median", self, dim, keepdim)


@op(
    kernel="median_cpu",
    space=None,
    node="NanmedianBackward1",
    name="nanmedian",
    outputs=("values", "indices"),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def nanmedian_dim(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The median along `dim` of what is not nan, and where it is."""
    return middle_along("nanmedian", self, dim, keepdim)


WRONG_MEDIANS = values_and_places(
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.{got}Tensor "
    "does not equal torch.{wanted}Tensor (while checking arguments for median)",
    "Expected tensor for argument #1 'indices' to have scalar type Long; but got torch.{got}Tensor instead (while "
    "checking arguments for median)",
)


def median_and_place(name: str, target: Any, array: Array, lone: bool) -> None:
    """The demand on what receives a median and its index; alone it is converted."""
    if not lone:
        WRONG_MEDIANS(name, target, array, lone)


@function(out=True, out_dtype=median_and_place)
def median(self: Array, dim: int | Any = UNNAMED, keepdim: bool = False) -> Any:
    """Compute the median of all elements, or along a dimension with its indices.

    Of an even number of elements it is the lower of the two in the middle, not their mean; NaN if there is a NaN.
    `median(input)` returns a tensor without dimensions; `median(input, dim)` the named tuple `(values, indices)`.
    With `keepdim` the dimension stays, with size 1.
    """
    if dim is UNNAMED:
        if keepdim is not False:
            missing_dim("median")
        return median_all(self)
    return median_dim(self, as_index(dim), keepdim)


@function(out=True, out_dtype=median_and_place)
def nanmedian(self: Array, dim: int | Any = UNNAMED, keepdim: bool = False) -> Any:
    """Compute the median of the elements that are not NaN, of all or along a dimension with its indices.

    Of an even number of elements it is the lower of the two in the middle; NaN only where there is nothing else.
    `nanmedian(input)` returns a tensor without dimensions; `nanmedian(input, dim)` the named tuple `(values, indices)`.
    With `keepdim` the dimension stays, with size 1.
    """
    if dim is UNNAMED:
        if keepdim is not False:
            missing_dim("nanmedian")
        return nanmedian_all(self)
    return nanmedian_dim(self, as_index(dim), keepdim)


@op(
    outputs=("values", "indices"),
    out_dtype=values_and_places(
        "expected scalar type '{wanted}' but got '{got}' for values output",
        "expected scalar type '{wanted}' but got '{got}' for indices output",
    ),
    self=lambda grad, self_sym_sizes, dim, indices, keepdim: place(grad, dim, indices, keepdim, self_sym_sizes),
    result=lambda self_t, dim, indices, keepdim: (pick(self_t, dim, indices, keepdim), None),
)
def mode(self: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """Find the most frequent value along a dimension, and an index where it occurs.

    Of equally frequent values the smallest is taken.
    Returns the named tuple `(values, indices)` without the dimension `dim`, or with size 1 there if `keepdim` is set.
    """
    if self.ndim:
        refuse_complex("mode_cpu", self, idle=True)
    if not self.size:
        refuse_empty("mode", self, dim)
    return kernels.mode(self, dim, keepdim)
