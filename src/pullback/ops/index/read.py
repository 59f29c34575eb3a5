"""x[...]: reading. A subscript is taken apart into views first; index tensors and masks then select from the last view.

    x[0, :, None, idx]    select(0) -> unsqueeze(1) -> index([None, None, idx])
                          SelectBackward0   UnsqueezeBackward0   IndexBackward0

Integers, slices, None and Ellipsis make views; tensors, lists, arrays and bools select. The full slice makes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as as_int
from typing import Any

import numpy as np

from pullback import _dtype as dtypes
from pullback._arrays.kinds import answered
from pullback._dtype import canonical
from pullback._modes import modes
from pullback._op.define import Array, function, op
from pullback._op.inplace import inplace
from pullback._runtime.warnings import warn
from pullback._tensor import Parameter, Tensor, wrap
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import make_view
from pullback.kernels.numpy.index import subscript as kernels
from pullback.kernels.numpy.index.subscript import BOOL, INT64, UINT8
from pullback.ops.create.copy import copied, order_of_memory
from pullback.ops.create.data import integers, number_of
from pullback.ops.shape.reshape import unsqueeze, zeros_of
from pullback.ops.shape.slicing import alias, select_int, slice_
from pullback.ops.supported import check_count, check_indices, check_values, warn_if_expanded

WHOLE = slice(None)
END = (1 << 63) - 1
"""The end of a slice that has none."""
ZERO_DIM = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
    "tensor to a number"
)
BYTE_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
SEQUENCE_AS_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)


# ------------------------------------------------------------------ selecting by tensors


@op(
    packed="moved",
    space=None,
    vmap="indexed",
    self=lambda grad, self_sym_sizes, indices: index_put_impl(zeros_of(grad, self_sym_sizes), indices, grad, True),
    result=lambda self_t, indices: index(self_t, indices),
)
def index(self: Array, indices: list[Array | None]) -> Array:
    """The elements that index tensors and masks select; None stands for a whole dimension."""
    out = kernels.index_get(self, indices)
    return out if self.flags.c_contiguous or out.ndim < 2 else in_order_of(self, indices, out)


def in_order_of(self: Array, indices: list[Array | None], out: Array) -> Array:
    """A selection whose dimensions lie in memory in the order they have in self, where nobody indexed them."""
    kept, taken, dim = [], [], 0
    for place, part in enumerate(indices):
        if part is None:
            kept.append(dim)
        else:
            taken.append((place, dim))
        dim += part.ndim if part is not None and part.dtype is BOOL else 1
    kept += range(dim, self.ndim)
    together = taken[-1][0] - taken[0][0] == len(taken) - 1
    before = len([d for d in kept if d < taken[0][1]]) if together else 0
    new = [0] * (out.ndim - len(kept))
    strides = [self.strides[d] for d in kept]
    like = np.lib.stride_tricks.as_strided(out, out.shape, strides[:before] + new + strides[before:])
    order = order_of_memory(like, None)
    if order == list(range(out.ndim)):
        return out
    return np.ascontiguousarray(out.transpose(order)).transpose(np.argsort(order))


@answered(meta=lambda self, indices, values, accumulate=False: np.array(self, order="C"))
def put(self: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    """A copy with values written, or added, where the indices say."""
    out = copied(np.asarray(self))
    kernels.index_put_into(out, indices, values, accumulate)
    return out


def unselected(grad: Any, indices: Any, accumulate: bool) -> Any:
    """The gradient of what index_put wrote into: nothing where it was overwritten."""
    return grad if accumulate else index_put_values(grad, indices, zeros_of(grad, ()), False)


@op(
    packed="moved",
    space=None,
    name="index_put",
    inplace=kernels.index_put_into,
    may_overlap="biufcV",
    out_overlap="apart",
    vmap="index_written",
    vmap_inplace="index_put_",
    self=lambda grad, indices, accumulate: unselected(grad, indices, accumulate),
    values=lambda grad, indices: index(grad, indices),
    result=lambda self_t, values_t, indices, accumulate: index_put_values(self_t, indices, values_t, accumulate),
)
def index_put_values(self: Array, indices: list[Array | None], values: Array, accumulate: bool = False) -> Array:
    """A copy with values written, or added, where index tensors and masks say."""
    return put(self, indices, values, accumulate)


@op(
    space=None,
    name="_index_put_impl",
    node="IndexPutImplBackward0",
    vmap="index_written",
    self=lambda grad, indices, accumulate: unselected(grad, indices, accumulate),
    values=lambda grad, indices: index(grad, indices),
    result=lambda self_t, values_t, indices, accumulate: index_put_values(self_t, indices, values_t, accumulate),
)
def index_put_impl(self: Array, indices: list[Array | None], values: Array, accumulate: bool = False) -> Array:
    """index_put as the derivative of indexing calls it."""
    return put(self, indices, values, accumulate)


@function(out_overlap="apart")
def index_put(self: Array, indices: Any, values: Array, accumulate: bool = False) -> Array:
    """Copy a tensor and write values at the places a tuple of index tensors selects: `out[indices] = values`.

    `indices` holds tensors of integers, which broadcast against each other, or bool masks; dimensions beyond them are
    whole. `values` broadcasts to the shape of `input[indices]`.
    With `accumulate` the values are added, and all of them count where places repeat; otherwise one is kept.
    """
    check_indices("index_put", indices)
    check_count(self, indices)
    check_values(self, indices, values, accumulate)
    return index_put_values(self, indices, values, accumulate)


@function()
def index_put_(self: Array, indices: Any, values: Array, accumulate: bool = False) -> Array:
    """In-place version of :func:`index_put`: `self[indices] = values`, or with `accumulate` an addition."""
    check_indices("index_put_", indices)
    check_count(self, indices)
    check_values(self, indices, values, accumulate)
    warn_if_expanded("index_put_", self, "indices] = tensor")
    return inplace(index_put_values.op, self, (indices, values, accumulate))


# ------------------------------------------------------------------ parts of a subscript


def select_at(self: Tensor, dim: int, position: int, nr: int) -> Tensor:
    """One index of a dimension; `nr` counts the parts of the subscript, which is how torch's error counts."""
    shape = self._array.shape
    if not shape:
        raise IndexError(ZERO_DIM)
    size = shape[dim] if dim < len(shape) else 0
    if not -size <= position < size:
        raise IndexError(kernels.out_of_bounds(position, nr, size))
    return select_int(self, dim, position)  # type: ignore[no-any-return]


def slice_bounds(part: slice) -> tuple[int, int, int]:
    """Start, end and step of a slice, as torch fills them in."""
    start, end, step = part.start, part.stop, part.step
    if step is None and type(start) is type(end) is int and -END <= start <= END and -END <= end <= END:
        return start, end, 1
    step = 1 if step is None else slice_int(step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    return 0 if start is None else slice_int(start), END if end is None else slice_int(end), step


def slice_int(value: Any) -> int:
    """A bound of a slice as an int of 64 bits."""
    if type(value) is int and -END <= value <= END:
        return value
    if type(value) is not int:
        try:
            value = as_int(value)
        except TypeError:
            raise TypeError("slice indices must be integers or None or have an __index__ method") from None
    return max(-END - 1, min(END, value))


def as_index(part: Any) -> Tensor:
    """A list, range or NumPy array as an index tensor: bool and uint8 stay what they are, the rest becomes int64."""
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str'")
    try:
        array = np.array(part)
    except ValueError as error:
        raise ragged(part, 0) or error from None
    if array.dtype != BOOL and array.dtype != UINT8:
        if array.dtype.kind in "OUS":
            raise not_an_index(part)
        if array.dtype.kind in "cfu" and not isinstance(part, np.ndarray):
            numbers = [number_of(number, dtypes.int64) for number in np.array(part, object).reshape(-1)]
            array = integers(numbers, set(map(type, numbers)), dtypes.int64).reshape(array.shape)
        array = array.astype(INT64)
    return wrap(canonical(array))


def ragged(part: Any, dim: int) -> Exception | None:
    """Torch's error for nested sequences of different lengths."""
    items = [item for item in part if isinstance(item, (list, tuple))]
    if len(items) < len(part):
        return TypeError(f"'{type(items[0]).__name__}' object cannot be interpreted as an integer") if items else None
    length = len(items[0])
    for item in items:
        if len(item) != length:
            return ValueError(f"expected sequence of length {length} at dim {dim + 1} (got {len(item)})")
    return next((found for item in items if (found := ragged(item, dim + 1)) is not None), None)


def not_an_index(part: Any) -> Exception:
    """Torch's error for sequences that hold no numbers."""
    items = np.array(part, object).reshape(-1).tolist()
    for item in items:
        if isinstance(item, str):
            return TypeError("new(): invalid data type 'str'")
        if not isinstance(item, (int, float, complex, np.generic)):
            return RuntimeError(f"Could not infer dtype of {type(item).__name__}")
    if items:
        return ValueError("Overflow when unpacking long long")
    return IndexError("tensors used as indices must be long, int, byte or bool tensors")


def is_sequence(part: Any) -> bool:
    """What counts as a sequence of indices."""
    return isinstance(part, (list, tuple, range, np.ndarray, str)) or (
        hasattr(part, "__getitem__") and hasattr(part, "__len__") and not isinstance(part, (dict, np.generic, Tensor))
    )


def parts_of(key: Any) -> tuple[Any, ...]:
    """A subscript as a tuple of parts: short lists that hold sequences, slices or tensors count as tuples, still."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, (Tensor, np.ndarray)) or not is_sequence(key) or len(key) >= 32:
        return (key,)
    for item in key:
        if item is None or item is Ellipsis or isinstance(item, (Tensor, slice)) or is_sequence(item):
            warn(SEQUENCE_AS_TUPLE)
            return tuple(key)
    return (key,)


def dims_taken(part: Any) -> int:
    """How many dimensions of self one part of a subscript speaks about."""
    if isinstance(part, Tensor):
        array = part._array
        return array.ndim if array.dtype is BOOL or array.dtype is UINT8 else 1
    return 0 if part is None or part is Ellipsis or part is True or part is False else 1


def take_apart(self: Tensor, parts: tuple[Any, ...]) -> tuple[Tensor, list[Tensor | None]]:
    """The view that a subscript's simple parts make, and the indices (one per dimension) that select from it."""
    specified = sum([dims_taken(part) for part in parts])
    if specified > self._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._array.ndim}")
    view, indices = self, []  # type: ignore[var-annotated]
    # dim counts dimensions of the view; place counts entries of `indices`, where a mask over several dimensions is one.
    dim = place = 0
    for nr, part in enumerate(parts):
        kind = type(part)
        if kind is not int and kind is not slice and kind is not Tensor and is_sequence(part):
            part = as_index(part)
        if isinstance(part, Tensor):
            part = simple_part(part)
        kind = type(part)
        if kind is int:
            view = select_at(view, dim, part, nr)
            continue
        steps = places = 1
        if kind is slice:
            view = sliced(view, dim, part)
        elif part is None:
            view = unsqueeze(view, dim)
        elif part is Ellipsis:
            steps = places = self._array.ndim - specified
        elif kind is bool:
            view = unsqueeze(view, dim)
            record(indices, place, wrap(np.zeros(int(part), INT64)))
        elif isinstance(part, Tensor):
            record(indices, place, part)
            steps = dims_taken(part)
        else:
            view = select_at(view, dim, other_int(part), nr)
            continue
        dim, place = dim + steps, place + places
    return view, indices


def simple_part(part: Tensor) -> Any:
    """An index tensor without dimensions is the integer or bool it holds."""
    array = part._array
    if array.ndim == 0 and array.dtype.kind in "iub" and type(array) is np.ndarray:
        return bool(array) if array.dtype is BOOL or array.dtype is UINT8 else int(array)
    if array.dtype is UINT8:
        warn(BYTE_MASK)
    return part


def sliced(view: Tensor, dim: int, part: slice) -> Tensor:
    """A range of a dimension; all of it is the view itself."""
    start, end, step = slice_bounds(part)
    if start == 0 and step == 1 and end >= view._array.shape[dim]:
        return view
    return slice_(view, dim, start, end, step)  # type: ignore[no-any-return]


def record(indices: list[Any], place: int, selected: Tensor) -> None:
    """Put an index tensor in its place; the dimensions before it that nobody indexed are whole."""
    indices.extend([None] * (place - len(indices)))
    indices.append(selected)


def other_int(part: Any) -> int:
    """An index of a type of its own, or torch's error."""
    if hasattr(part, "__index__") and not isinstance(part, np.bool_):
        return int64(as_int(part))
    module = type(part).__module__
    name = f"{module}.{type(part).__name__}" if module == "numpy" else type(part).__name__
    raise IndexError(
        f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {name})"
    )


def int64(value: int) -> int:
    """An int that fits 64 bits."""
    if not -END - 1 <= value <= END:
        raise ValueError("Overflow when unpacking long long")
    return value


# ------------------------------------------------------------------ x[...]


def getitem(self: Tensor, key: Any) -> Tensor:
    """x[key]: views for integers, slices, None and Ellipsis; a selection for index tensors, masks and lists."""
    try:
        kind = type(key)
        if kind is Tensor:
            array = key._array
            if (array.dtype is INT64 or array.dtype is BOOL) and 0 < array.ndim <= self._array.ndim:
                return index(self, (key,))  # type: ignore[no-any-return]
        elif kind is int or kind is slice or kind is tuple:
            view = self._view
            if not self._requires_grad and (view is None or not view.base._requires_grad) and not modes.active:
                quick = plain_view(self, key, kind)
                if quick is not None:
                    return quick
            if kind is int:
                return select_at(self, 0, int64(key), 0)
            if kind is slice:
                if not self._array.ndim:
                    raise IndexError("slice() cannot be applied to a 0-dim tensor.")
                return slice_(self, 0, *slice_bounds(key))  # type: ignore[no-any-return]
            found = dim_by_dim(self, key)
            if found is not None:
                return found
            indices = plain_indices(key, self._array.ndim)
            if indices is not None:
                return index(self, indices)  # type: ignore[no-any-return]
        if key is None:
            return unsqueeze(self, 0)  # type: ignore[no-any-return]
        if key is Ellipsis:
            return alias(self)  # type: ignore[no-any-return]
        view, indices = take_apart(self, parts_of(key))
        if indices:
            return index(view, indices)  # type: ignore[no-any-return]
        return alias(self) if view is self else view
    except Exception as error:
        trim(error)
        raise


def plain_view(self: Tensor, key: Any, kind: type) -> Tensor | None:
    """The view of a tensor without history that a subscript makes, at once; None if it takes more care.

    NumPy's views are torch's: only steps below one (which NumPy has) and integers as index arrays differ.
    """
    if type(self) is not Tensor and type(self) is not Parameter:
        return None
    if kind is tuple:
        for part in key:
            kind = type(part)
            if kind is slice:
                if part.step is not None and (type(part.step) is not int or part.step < 1):
                    return None
            elif kind is not int and part is not None and part is not Ellipsis:
                return None
        if Ellipsis not in key:
            key = (*key, ...)
    elif kind is int:
        key = (key, ...)
    elif key.step is not None and (type(key.step) is not int or key.step < 1):
        return None
    try:
        array = self._array[key]
    except (IndexError, TypeError):
        return None
    out = wrap(array)
    make_view(out, self)
    return out


def dim_by_dim(self: Tensor, key: tuple[Any, ...]) -> Tensor | None:
    """The view that integers and slices make, an op for each; None for any other subscript."""
    if len(key) > self._array.ndim:
        return None
    for part in key:
        if type(part) is not slice and type(part) is not int:
            return None
    view, dim = self, 0
    for nr, part in enumerate(key):
        if type(part) is int:
            view = select_at(view, dim, part, nr)
        else:
            if part.stop is not None or part.start is not None or part.step is not None:
                view = sliced(view, dim, part)
            dim += 1
    return alias(self) if view is self else view  # type: ignore[no-any-return]


def plain_indices(key: tuple[Any, ...], ndim: int) -> list[Tensor | None] | None:
    """The indices of a subscript of whole slices and index tensors; None for any other."""
    if len(key) > ndim:
        return None
    indices: list[Tensor | None] = []
    for place, part in enumerate(key):
        if type(part) is Tensor and part._array.dtype is INT64 and part._array.ndim:
            record(indices, place, part)
        elif type(part) is not slice or part != WHOLE:
            return None
    return indices or None


def iterate(self: Tensor) -> Iterator[Tensor]:
    """The slices along the first dimension, one after the other."""
    try:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]
    except Exception as error:
        trim(error)
        raise


def backwards(self: Tensor) -> Tensor:
    """The tensor with its first dimension reversed."""
    return self.flip(0) if self._array.ndim else self  # type: ignore[attr-defined, no-any-return]


def contains(self: Tensor, element: Any) -> bool:
    """True if some element equals this one (compared with broadcasting)."""
    if not isinstance(element, (Tensor, bool, int, float, complex, np.generic)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((element == self).any())


def refuse_deletion(self: Tensor, key: Any) -> None:
    """Raise: elements cannot be deleted."""
    raise TypeError("Tensor does not support deleting items")


Tensor.__getitem__ = getitem  # type: ignore[attr-defined]
Tensor.__delitem__ = refuse_deletion  # type: ignore[attr-defined]
Tensor.__iter__ = iterate  # type: ignore[attr-defined]
Tensor.__reversed__ = backwards  # type: ignore[attr-defined]
Tensor.__contains__ = contains  # type: ignore[attr-defined]
