"""Arrays as memory: strides in elements, offsets, and windows onto an array's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, Any]


def element_strides(array: AnyArray) -> tuple[int, ...]:
    """Strides in elements, as torch counts them."""
    itemsize = array.dtype.itemsize
    if array.size:
        if array.ndim == 2:  # matrices save their strides for their gradients
            rows, columns = array.strides
            return rows // itemsize, columns // itemsize
        return tuple([s // itemsize for s in array.strides])
    return contiguous_strides(array.shape)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides in elements of a contiguous tensor; empty dimensions count as one, as in torch."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def row_major(array: AnyArray) -> AnyArray:
    """The array, copied if need be so that its last dimension is the innermost in memory.

    NumPy gives results the order of their operands; torch's reductions, scans and normalizations do not.
    """
    return array if array.ndim < 2 or array.flags.c_contiguous else np.ascontiguousarray(array)


def data_ptr(array: AnyArray) -> int:
    """The address of the first element."""
    if type(array) is not np.ndarray and hasattr(array, "address"):  # of another kind: see _arrays/kinds.py
        return array.address  # type: ignore[no-any-return]
    address: int = array.__array_interface__["data"][0]
    return address


def memory_of(array: AnyArray) -> AnyArray:
    """The array that owns the memory another array looks at."""
    base: Any = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array, base = base, base.base
        elif type(base).__name__ == "DummyArray":
            base = base.base  # what stride_tricks.as_strided puts between a window and its memory
        else:
            break
    return array


class Span:
    """Memory of a foreign array, from the first to the last element of a window onto it."""

    __slots__ = ("__array_interface__", "window")


def on_own_memory(window: AnyArray) -> AnyArray:
    """The same window, but the memory it is said to look at begins and ends with it, as torch sees NumPy's views."""
    if window.base is None:
        return window
    if not window.size:
        return window.copy()
    reach = sum((n - 1) * s for n, s in zip(window.shape, window.strides, strict=True)) // window.itemsize + 1
    span: Any = Span()
    span.window = window
    place = (data_ptr(window), not window.flags.writeable)
    span.__array_interface__ = {"version": 3, "shape": (reach,), "typestr": window.dtype.str, "data": place}
    same: AnyArray = np.ndarray(window.shape, window.dtype, np.asarray(span), 0, window.strides)
    return same


def storage_offset(array: AnyArray) -> int:
    """How many elements lie between the start of the memory and the first element."""
    return (data_ptr(array) - data_ptr(memory_of(array))) // array.dtype.itemsize  # type: ignore[no-any-return]


def geometry_of(array: AnyArray) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset: where an array's elements lie in its memory."""
    return array.shape, element_strides(array), storage_offset(array)


def as_strided(array: AnyArray, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> AnyArray:
    """Another window onto the memory of `array`; stride and offset count elements from the start of that memory.

    Raises RuntimeError, as torch does, for a window that would leave the memory.
    """
    memory = memory_of(array)
    itemsize = array.dtype.itemsize
    if offset is None:
        offset = storage_offset(array)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if 0 not in size and (last + 1) * itemsize > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes [{', '.join(map(str, size))}], strides [{', '.join(map(str, stride))}], storage offset "
            f"{offset}, and itemsize {itemsize} requiring a storage size of {(last + 1) * itemsize} are out of bounds "
            f"for storage of size {memory.nbytes}"
        )
    if not memory.flags.c_contiguous:
        memory = memory.reshape(-1, order="A") if memory.flags.f_contiguous else flat_memory(memory)
    strides = tuple([s * itemsize for s in stride])
    if 0 in size:
        offset = 0 * index(offset)  # it has to be an integer all the same
    if hasattr(memory, "seen_as"):  # of another kind: see _arrays/kinds.py
        return memory.seen_as(size, strides, array.dtype, offset * itemsize)  # type: ignore[no-any-return]
    window: AnyArray = np.ndarray(tuple(size), array.dtype, memory, offset * itemsize, strides)
    return window


def resized(array: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    """A contiguous window of another shape that starts where the array does: onto its memory if that is large enough,
    else onto a larger copy of it."""
    count, start = math.prod(shape), storage_offset(array)
    room = memory_of(array).nbytes // array.dtype.itemsize
    if count and start + count > room:
        larger = np.zeros(start + count, array.dtype)
        larger[:room] = as_strided(array, (room,), (1,), 0)
        array = larger
    return as_strided(array, shape, contiguous_strides(shape), start)


def broadcast_view(array: Any, shape: tuple[int, ...]) -> AnyArray:
    """`array` stretched to `shape` without copying: np.broadcast_to, ten times quicker and writable."""
    array = np.asarray(array)
    lead = len(shape) - array.ndim
    if lead < 0:
        raise ValueError("the shape has fewer dimensions than the array")
    strides = [0] * lead
    for have, wanted, stride in zip(array.shape, shape[lead:], array.strides, strict=True):
        if have == wanted:
            strides.append(stride)
        elif have == 1:
            strides.append(0)
        else:
            raise ValueError("the shapes do not broadcast")
    if array.flags.c_contiguous and array.flags.writeable:
        return np.ndarray(shape, array.dtype, array, 0, strides)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def flat_memory(memory: AnyArray) -> AnyArray:
    """The memory an owner spans whose dimensions lie in another order or with gaps, as one flat array."""
    ordered = memory.transpose(sorted(range(memory.ndim), key=lambda dim: -memory.strides[dim]))
    if ordered.flags.c_contiguous:
        return ordered.reshape(-1)
    span = sum((n - 1) * abs(s) for n, s in zip(memory.shape, memory.strides, strict=True)) + memory.dtype.itemsize
    first = np.lib.stride_tricks.as_strided(memory, (1,), (memory.dtype.itemsize,))
    flat: AnyArray = np.lib.stride_tricks.as_strided(first.view(np.uint8), (span,), (1,))
    return flat


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: np.dtype[Any]) -> AnyArray:
    """Uninitialised memory seen with the given strides."""
    if 0 in size:
        return np.empty(tuple(size), dtype)
    memory: AnyArray = np.empty(sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1, dtype)
    return as_strided(memory, size, stride, 0)


def is_non_overlapping_and_dense(array: AnyArray) -> bool:
    """True if every element of the spanned memory belongs to exactly one index: a permuted contiguous tensor."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return True
    itemsize = array.dtype.itemsize
    step = itemsize
    for stride, n in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= n
    return True


def overlaps_itself(array: AnyArray) -> bool:
    """True if two indices surely name the same element: a stretched dimension."""
    return (
        array.size > 0
        and 0 in array.strides
        and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))
    )


def overlaps(a: AnyArray, b: AnyArray) -> bool:
    """True if two dense arrays surely share memory; of others nobody can tell quickly."""
    return (
        np.may_share_memory(a, b)
        and a.size > 0 < b.size
        and is_non_overlapping_and_dense(a)
        and is_non_overlapping_and_dense(b)
    )


def overlaps_partially(a: AnyArray, b: AnyArray) -> bool:
    """True if two dense arrays share some memory but are not the same elements in the same order."""
    if a is b or not overlaps(a, b):
        return False
    same_memory = data_ptr(a) == data_ptr(b) and a.nbytes == b.nbytes
    return not (same_memory and a.strides == b.strides)


# ------------------------------------------------------------------ the order of a pointwise result in memory


def order_of_result(arrays: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of what is computed from arrays, from the outermost in memory to the innermost; None if row-major.

    Of two dimensions the one with the larger step in the first array that can tell lies further out. An array cannot
    tell if it is stretched along one of them, or if its steps are equal and the sizes do not decide.
    """
    if all([not a.ndim or a.flags.c_contiguous for a in arrays]):
        return None
    ndim = len(shape)
    steps = []
    for a in arrays:
        if a.ndim > 0:
            offset = ndim - a.ndim
            own = [0 if n == 1 != shape[offset + d] else a.strides[d] for d, n in enumerate(a.shape)]
            steps.append([0] * offset + own)
    order = list(range(ndim))[::-1]
    for last in range(1, ndim):
        place = last
        for before in range(last - 1, -1, -1):
            which = further_out(steps, shape, order[before], order[place])
            if which > 0:
                order[before], order[place] = order[place], order[before]
                place = before
            elif which < 0:
                break
    order.reverse()
    return None if order == sorted(order) else tuple(order)


def further_out(steps: Sequence[Sequence[int]], shape: Sequence[int], a: int, b: int) -> int:
    """1 if dimension a lies further out in memory than dimension b, -1 if further in, 0 if nobody can tell."""
    for own in steps:
        if own[a] and own[b]:
            if own[a] != own[b]:
                return 1 if own[a] > own[b] else -1
            if shape[a] > shape[b]:
                return 1
    return 0


def empty_in_order(shape: Sequence[int], order: Sequence[int] | None, dtype: Any) -> AnyArray:
    """Uninitialised memory whose dimensions lie in an order, from the outermost to the innermost."""
    if order is None:
        return np.empty(shape, dtype)
    out: AnyArray = np.empty([shape[d] for d in order], dtype)
    return out.transpose([order.index(d) for d in range(len(order))])


def empty_alike(array: AnyArray) -> AnyArray:
    """Uninitialised memory for an array's shape and dtype in its memory order; stretched dimensions get memory, too."""
    return empty_in_order(array.shape, order_of_result([array], array.shape), array.dtype)


def laid_out(result: Any, arrays: Sequence[Any]) -> Any:
    """A pointwise result in the memory order torch gives it, copied where NumPy chose another."""
    if result.flags.c_contiguous:
        for a in arrays:
            if type(a) is np.ndarray and not a.flags.c_contiguous:
                break
        else:
            return result
    else:
        steps = result.strides
        for a in arrays:
            if type(a) is np.ndarray and a.strides != steps and a.ndim:
                break
        else:
            return result
    key: list[Any] = [result.itemsize, result.shape, result.strides]
    for a in arrays:
        if type(a) is np.ndarray:
            key += (a.shape, a.strides)
    known = tuple(key)
    if known not in arrangements:
        if len(arrangements) >= ARRANGEMENTS:
            arrangements.clear()
        arrangements[known] = arrangement(result, [a for a in arrays if type(a) is np.ndarray])
    plan = arrangements[known]
    if plan is None:
        return result
    out = np.empty(plan[0], result.dtype).transpose(plan[1])
    out[...] = result
    return out


arrangements: dict[Any, Any] = {}
"""What `arrangement` said, by shapes and strides."""
ARRANGEMENTS = 4096


def arrangement(result: AnyArray, arrays: Sequence[Any]) -> Any:
    """A row-major shape and how to transpose it, for a result that lies otherwise; None if nothing is to be done."""
    shape = result.shape
    if not result.size or np.broadcast_shapes(*[a.shape for a in arrays]) != shape:
        return None
    order = common_order(arrays, shape) or order_of_result(arrays, shape) or tuple(range(len(shape)))
    if empty_in_order(shape, order, result.dtype).strides == result.strides:
        return None
    return tuple([shape[d] for d in order]), tuple([order.index(d) for d in range(len(order))])


def common_order(arrays: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...] | None:
    """The order that arrays of one shape agree on where dimensions of size one leave a choice: channels_last."""
    if len(shape) not in (4, 5):
        return None
    order = (0, *range(2, len(shape)), 1)
    alike = all([a.shape == shape and a.transpose(order).flags.c_contiguous for a in arrays])
    return order if alike and not all([a.flags.c_contiguous for a in arrays]) else None


def joined(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The dimensions of arrays that are walked together, in the order of the last one's memory, joined where all
    of them allow it: sizes, and for each dimension the strides of the arrays."""
    dims = [d for d in range(len(shape)) if shape[d] != 1]
    if strides:
        dims.sort(key=lambda d: -abs(strides[-1][d]))
    sizes: list[int] = []
    steps: list[list[int]] = []
    for d in dims:
        here = [s[d] for s in strides]
        if sizes and all([a == b * shape[d] for a, b in zip(steps[-1], here, strict=True)]):
            sizes[-1] *= shape[d]
            steps[-1] = here
        else:
            sizes.append(shape[d])
            steps.append(here)
    return sizes, steps
