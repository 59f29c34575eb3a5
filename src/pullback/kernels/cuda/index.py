"""Ops that look elements up by number on the device: see jit/cuda/index.py for the kernel that does them all.

A number that is out of bounds cannot be reported at once, as the device is not waited for: it is noted, and the next
copy to the host raises. On the emulated device the op goes by way of the host, which says what is wrong.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback._arrays.half import SINGLE, is_half
from pullback._arrays.memory import joined
from pullback._modes import deterministic
from pullback.kernels.compiled import room
from pullback.kernels.cuda import carry
from pullback.kernels.cuda.array import DeviceArray, empty, filled
from pullback.kernels.cuda.conv import contiguous
from pullback.kernels.cuda.device import required
from pullback.kernels.cuda.launch import BLOCK, counted, function, launch, window
from pullback.kernels.cuda.native import UFUNCS, copied, in_place, native, parts_of
from pullback.kernels.cuda.order.masks import expanded, places_of
from pullback.kernels.jit.language.expression import COMPLEX

LETTERS = {"int64": "l", "int32": "i"}
ADDED = {"float32": "float", "float64": "double", "int64": "i64", "int32": "i32"}
"""LLVM's types of what can be added to."""

# ------------------------------------------------------------------ numbers out of bounds

flags: dict[Any, Any] = {}
"""Four bytes of the host that the kernels of a device write to, by the device's driver and number."""


def flag_of(index: int) -> Any:
    """Where the kernels of a device note that a number was out of bounds."""
    key = (required(), index)
    found = flags.get(key)
    if found is None:
        found = flags[key] = required().pinned(index, 64)
        found[...] = 0
    return found


def complain() -> None:
    """Raise if a kernel noted a number that was out of bounds."""
    for flag in flags.values():
        if flag[0]:
            flag[...] = 0
            raise IndexError(
                "index out of range: an op that ran on the CUDA device before was given a number outside the bounds of "
                "the dimension it indexes; what it made is not to be relied on"
            )


carry.checks.append(complain)


# ------------------------------------------------------------------ one kernel


class Numbers:
    """An array of numbers that say where to look: its strides in bytes along the dimensions of the plain array, the
    lowest that is allowed, how many entries there are, and how far apart they are in the table, in bytes."""

    __slots__ = ("array", "low", "size", "step", "strides")

    def __init__(self, array: Any, strides: Any, size: int, step: int, negative: bool) -> None:
        self.array, self.strides, self.size, self.step = array, list(strides), size, step
        self.low = -size if negative else 0


def run(how: str, plain: Any, table: Any, strides: list[int], numbers: list[Numbers]) -> bool:
    """Read from, write to, add to or combine with a table; `strides` are the table's along the plain dimensions.

    False if no kernel can do it, with nothing done.
    """
    if room("cuda.index") is None or any([n.array.dtype.name not in LETTERS for n in numbers]):
        return False
    if not plain.size:
        return True
    if how == "add" and plain.dtype in COMPLEX:  # parts are added to parts
        pairs, entries = parts_of(plain), parts_of(table)
        wider = [Numbers(n.array, [*n.strides, 0], n.size, n.step, n.low < 0) for n in numbers]
        return run(how, pairs, entries, [*strides, pairs.itemsize], wider)
    if required().emulated:
        return emulate(how, plain, table, strides, numbers)
    counted("index")
    kernels, size = room("cuda.index"), plain.itemsize
    moved_only = how in ("read", "write")
    element = kernels.WIDTHS.get(size) if moved_only else ADDED.get(plain.dtype.name)
    if element is None:
        return False
    shape, own = list(plain.shape), list(plain.strides)
    strides = list(strides)
    moved = [list(n.strides) for n in numbers]
    if moved_only:
        size, element, shape, own, strides = widened(plain, table, shape, own, strides, numbers, moved)
    sizes, steps = joined(shape, [own, strides, *moved])
    if not sizes:
        sizes, steps = [1], [[0] * (2 + len(numbers))]
    letters = "".join([LETTERS[n.array.dtype.name] for n in numbers])
    key = (how, element, len(sizes), letters)
    given = [math.prod(sizes), *sizes, *[s[0] // size for s in steps], *[s[1] // size for s in steps]]
    for k, n in enumerate(numbers):
        given += [*[s[2 + k] // n.array.itemsize for s in steps], n.low, n.size, n.step // size]
    index = table.device.index or 0
    addresses = [plain.address, table.address, flag_of(index).ctypes.data, *[n.array.address for n in numbers]]
    ready = function(index, kernels.name_of(*key), lambda: kernels.text_of(*key))
    types = "Q" * len(addresses) + "q" * len(given)
    launch(index, ready, (-(-given[0] // BLOCK), 1, 1), types, *addresses, *given)
    return True


def widened(
    plain: Any, table: Any, shape: list[int], own: list[int], strides: list[int], numbers: list[Numbers], moved: Any
) -> tuple[int, str, list[int], list[int], list[int]]:
    """The same with several neighbouring elements as one, where they lie beside each other in both arrays."""
    size = plain.itemsize
    last = len(shape) - 1
    if last >= 0 and own[last] == size and strides[last] == size and not any([m[last] for m in moved]):
        wide = 16
        facts = [plain.address, table.address, shape[last] * size, *own[:-1], *strides[:-1], *[n.step for n in numbers]]
        while wide > size and any([fact % wide for fact in facts]):
            wide //= 2
        shape = [*shape[:-1], shape[last] * size // wide]
        own, strides, size = [*own[:-1], wide], [*strides[:-1], wide], wide
    return size, room("cuda.index").WIDTHS[size], shape, own, strides


def emulate(how: str, plain: Any, table: Any, strides: list[int], numbers: list[Numbers]) -> bool:
    """The same by NumPy, on memory of the emulated device; False for a number that is out of bounds."""
    places = sum([along * step for along, step in grid_of(plain.shape, strides)], np.zeros(plain.shape, np.int64))
    for n in numbers:
        found = np.lib.stride_tricks.as_strided(window(n.array), plain.shape, n.strides)
        if ((found < n.low) | (found >= n.size)).any():
            return False
        places = places + np.where(found < 0, found + n.size, found) * n.step
    counted("index")
    here = window(plain)
    places = (places // table.itemsize).reshape(-1)
    low = int(places.min())
    span = table.seen_as((int(places.max()) - low + 1,), (table.itemsize,), None, low * table.itemsize)
    flat, places = window(span), places - low
    if how == "read":
        here[...] = flat[places].reshape(here.shape)
    elif how == "write":
        flat[places] = here.reshape(-1)
    else:
        UFUNCS["sum" if how == "add" else how].at(flat, places, here.reshape(-1))
    return True


def grid_of(shape: Any, strides: Any) -> Any:
    """The indices along every dimension, shaped to broadcast, with its stride."""
    for d, (n, step) in enumerate(zip(shape, strides, strict=True)):
        yield np.arange(n).reshape([-1 if k == d else 1 for k in range(len(shape))]), step


# ------------------------------------------------------------------ the ops


def are_numbers(index: Any) -> bool:
    """True for an array of numbers on the device."""
    return type(index) is DeviceArray and index.dtype.name in LETTERS


def normal(dim: Any, ndim: int) -> int | None:
    """A dimension from the front; None for one that is none."""
    return None if type(dim) is not int or not -ndim <= dim < ndim else dim % ndim


def read(table: Any, shape: Any, strides: list[int], numbers: list[Numbers]) -> Any:
    """A new array of what is looked up; None if no kernel can."""
    out = empty(shape, table.dtype, None, table.device)
    return out if run("read", out, table, strides, numbers) else None


def put(table: Any, plain: Any, strides: list[int], numbers: list[Numbers], add: bool, how: str = "add") -> bool:
    """Write to a table, or add to it, or multiply, or take extrema; halves are rounded once."""
    if add and how in ("add", "prod") and table.dtype.kind not in "iub" and deterministic["enabled"]:
        return False
    if not add or not is_half(table.dtype):
        return run(how if add else "write", plain, table, strides, numbers)
    wide, more = copied(table, SINGLE), copied(plain, SINGLE)
    ratio = SINGLE.itemsize // table.itemsize
    if not table.flags.c_contiguous or wide is None or more is None:
        return False
    for n in numbers:
        n.step *= ratio
    if not run(how, more, wide, [step * ratio for step in strides], numbers):
        return False
    table[...] = wide
    return True


@native("embedding_op")
def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> Any:
    """The rows of a table."""
    if not are_numbers(indices) or type(weight) is not DeviceArray:
        return None
    numbers = Numbers(indices, [*indices.strides, 0], weight.shape[0], weight.strides[0], False)
    strides = [0] * indices.ndim + [weight.strides[1]]
    return read(weight, (*indices.shape, weight.shape[1]), strides, [numbers])


@native("embedding_dense_backward")
def embedding_backward(grad: Any, indices: Any, count: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """The gradient of a table: every row of the gradient added to the row that was looked up."""
    if not are_numbers(indices) or type(grad) is not DeviceArray or scale_grad_by_freq:
        return None
    out = filled((count, grad.shape[-1]), grad.dtype, 0, grad.device)
    numbers = Numbers(indices, [*indices.strides, 0], count, out.strides[0], False)
    if not put(out, grad, [0] * indices.ndim + [out.strides[1]], [numbers], True):
        return None
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def slices(table: Any, dim: Any, index: Any) -> tuple[list[int], list[int], list[Numbers]] | None:
    """How slices along a dimension are looked up: the shape of the plain array, the strides and the numbers."""
    dim = normal(dim, table.ndim) if type(table) is DeviceArray else None
    if dim is None or not are_numbers(index) or index.ndim > 1:
        return None
    shape = [*table.shape[:dim], index.size, *table.shape[dim + 1 :]]
    strides = [0 if d == dim else step for d, step in enumerate(table.strides)]
    own = [index.strides[0] if d == dim and index.ndim else 0 for d in range(table.ndim)]
    return shape, strides, [Numbers(index, own, table.shape[dim], table.strides[dim], False)]


@native("index_select")
def index_select(self: Any, dim: Any, index: Any) -> Any:
    """Slices along a dimension."""
    found = slices(self, dim, index)
    return None if found is None else read(self, *found)


@in_place("index_add")
def index_add_into(self: Any, dim: Any, index: Any, source: Any, alpha: Any = 1) -> bool:
    """self[index[i]] += alpha * source[i]"""
    found = slices(self, dim, index)
    if found is None or type(source) is not DeviceArray or list(source.shape) != found[0] or source.dtype != self.dtype:
        return False
    if alpha != 1:
        source = source * self.dtype.type(alpha)
    return put(self, source, found[1], found[2], True)


@in_place("index_copy")
def index_copy_into(self: Any, dim: Any, index: Any, source: Any) -> bool:
    """self[index[i]] = source[i]"""
    found = slices(self, dim, index)
    if found is None or type(source) is not DeviceArray or list(source.shape) != found[0] or source.dtype != self.dtype:
        return False
    return put(self, source, found[1], found[2], False)


@in_place("index_fill_value")
def index_fill_into(self: Any, dim: Any, index: Any, value: Any) -> bool:
    """self[index[i]] = value"""
    found = slices(self, dim, index)
    if found is None or not is_plain(value, self.dtype):
        return False
    return put(self, one_value(self, value, found[0]), found[1], found[2], False)


def is_plain(value: Any, dtype: Any) -> bool:
    """True for a number that a dtype can hold without a word."""
    if dtype.kind in "iub":
        return type(value) is int and -128 <= value < 128
    return type(value) in (int, float) or (type(value) is complex and dtype.kind == "c")


def one_value(table: Any, value: Any, shape: Any) -> Any:
    """A number on the device, seen in a shape."""
    return np.broadcast_to(filled((), table.dtype, value, table.device), shape)


def each(table: Any, dim: Any, index: Any) -> tuple[list[int], list[Numbers]] | None:
    """How single elements along a dimension are looked up: the strides and the numbers."""
    if type(table) is not DeviceArray or not are_numbers(index) or index.ndim != table.ndim or not table.ndim:
        return None
    dim = normal(dim, table.ndim)
    if dim is None or any([n > m for d, (n, m) in enumerate(zip(index.shape, table.shape, strict=True)) if d != dim]):
        return None
    strides = [0 if d == dim else step for d, step in enumerate(table.strides)]
    return strides, [Numbers(index, index.strides, table.shape[dim], table.strides[dim], False)]


@native("gather")
def gather(self: Any, dim: Any, index: Any, *, sparse_grad: bool = False) -> Any:
    """Elements along a dimension."""
    found = each(self, dim, index)
    return None if found is None else read(self, index.shape, *found)


def scattered(self: Any, dim: Any, index: Any, src: Any, add: bool) -> bool:
    """Write elements along a dimension, or add them."""
    found = each(self, dim, index)
    if found is None or type(src) is not DeviceArray or src.dtype != self.dtype or src.ndim != index.ndim:
        return False
    if any([n > m for n, m in zip(index.shape, src.shape, strict=True)]):
        return False
    return put(self, src.seen_as(index.shape, src.strides), *found, add)


@in_place("scatter_src")
def scatter_into(self: Any, dim: Any, index: Any, src: Any) -> bool:
    """Write elements along a dimension."""
    return scattered(self, dim, index, src, False)


@in_place("scatter_add")
def scatter_add_into(self: Any, dim: Any, index: Any, src: Any) -> bool:
    """Add elements along a dimension."""
    return scattered(self, dim, index, src, True)


@in_place("scatter_value")
def scatter_value_into(self: Any, dim: Any, index: Any, value: Any) -> bool:
    """Write a number along a dimension."""
    found = each(self, dim, index)
    if found is None or not is_plain(value, self.dtype):
        return False
    return put(self, one_value(self, value, index.shape), *found, False)


# ------------------------------------------------------------------ x[i, j]


def selected(table: Any, indices: Any) -> tuple[list[int], list[int], list[Numbers]] | None:
    """How index arrays select: the shape of the plain array, the strides of the table along it, and the numbers."""
    if type(table) is not DeviceArray:
        return None
    indices = expanded(table, indices)
    if indices is None or len(indices) > table.ndim:
        return None
    given = [(d, index) for d, index in enumerate(indices) if index is not None]
    if not given or not all([are_numbers(index) for _, index in given]):
        return None
    try:
        common = np.broadcast_shapes(*[index.shape for _, index in given])
    except ValueError:
        return None
    dims = [d for d, _ in given]
    together = dims[-1] - dims[0] == len(dims) - 1
    kept = [d for d in range(table.ndim) if d not in dims]
    before = [d for d in kept if d < dims[0]] if together else []
    after = [d for d in kept if d not in before]
    shape = [*[table.shape[d] for d in before], *common, *[table.shape[d] for d in after]]
    strides = [*[table.strides[d] for d in before], *[0] * len(common), *[table.strides[d] for d in after]]
    numbers = []
    for d, index in given:
        own = np.broadcast_to(index, common).strides
        steps = [*[0] * len(before), *own, *[0] * len(after)]
        numbers.append(Numbers(index, steps, table.shape[d], table.strides[d], True))
    return shape, strides, numbers


@native("index")
def index(self: Any, indices: Any) -> Any:
    """The elements that index arrays select."""
    found = selected(self, indices)
    if found is None or not (self.flags.c_contiguous or len(found[2]) == self.ndim):
        return None  # results lie as their table does, which nothing here sees to
    return read(self, *found)


@in_place("index_put_values", "index_put_impl")
def index_put_into(self: Any, indices: Any, values: Any, accumulate: bool = False, how: str = "add") -> bool:
    """Write to, or add to, or join to the elements that index arrays select."""
    found = selected(self, indices)
    if found is not None and type(values) is np.ndarray and not values.ndim:
        masks = not accumulate and all([i is not None and i.dtype.kind == "b" for i in indices])
        if masks or values.dtype == self.dtype:  # which masks alone do not ask for
            values = carry.upload(values.astype(self.dtype), self.device)
    if found is None or type(values) is not DeviceArray or values.dtype != self.dtype:
        return False
    try:
        wide = np.broadcast_to(values, found[0])
    except ValueError:
        return False
    return put(self, wide, found[1], found[2], accumulate, how)


@native("masked_select")
def masked_select(self: Any, mask: Any) -> Any:
    """The elements where a mask is True."""
    if type(self) is not DeviceArray or type(mask) is not DeviceArray:
        return None
    try:
        shape = np.broadcast_shapes(self.shape, mask.shape)
    except ValueError:
        return None
    places = places_of(np.broadcast_to(mask, shape).reshape(-1)) if shape else None
    return None if places is None else take(contiguous(np.broadcast_to(self, shape)), places[:, 0])


@in_place("masked_scatter")
def masked_scatter_into(self: Any, mask: Any, source: Any) -> bool:
    """Write elements one after the other where a mask is True."""
    if type(mask) is not DeviceArray or type(source) is not DeviceArray or source.dtype != self.dtype:
        return False
    if not self.ndim or not self.flags.c_contiguous:
        return False
    try:
        wide = np.broadcast_to(mask, self.shape)
    except ValueError:
        return False
    places = places_of(wide.reshape(-1))
    if places is None or source.size < len(places):
        return False
    return put_into(self, places[:, 0], contiguous(source).reshape(-1)[: len(places)])


@native("take")
def take(self: Any, index: Any) -> Any:
    """Elements by their number among all."""
    if type(self) is not DeviceArray or not self.flags.c_contiguous or not are_numbers(index) or not self.size:
        return None
    return read(self, index.shape, [0] * index.ndim, [Numbers(index, index.strides, self.size, self.itemsize, True)])


@in_place("put")
def put_into(self: Any, index: Any, source: Any, accumulate: bool = False) -> bool:
    """Write to, or add to, elements by their number among all."""
    if type(source) is not DeviceArray or source.shape != index.shape or source.dtype != self.dtype:
        return False
    if not self.flags.c_contiguous or not are_numbers(index) or not self.size:
        return False
    numbers = Numbers(index, index.strides, self.size, self.itemsize, True)
    return put(self, source, [0] * index.ndim, [numbers], accumulate)
