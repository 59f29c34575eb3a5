"""Copies and overwriting: clone, detach, copy_, fill_, zero_, requires_grad_."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number, exact_number
from pullback._arrays.kinds import is_foreign
from pullback._arrays.memory import data_ptr, is_non_overlapping_and_dense, memory_of, order_of_result, overlaps_itself
from pullback._device import copies
from pullback._dtype import FROM_NUMPY, dtype
from pullback._lazy import LazyTensor, seen, stored
from pullback._modes import in_transform, is_grad_enabled, modes
from pullback._op.apply import cast
from pullback._op.define import Array, Number, explain, function, linear, op
from pullback._op.inplace import inplace
from pullback._op.overrides import overriding_class
from pullback._runtime import messages
from pullback._runtime.warnings import warn_once
from pullback._tensor import (
    INFERENCE,
    DetachedCounter,
    Parameter,
    Tensor,
    bump_version,
    channels_last,
    channels_last_3d,
    contiguous_format,
    counter_of,
    memory_format,
    preserve_format,
    wrap,
)
from pullback._thresholds import LARGE
from pullback.autograd.locations import detached_here
from pullback.autograd.tracebacks import trim
from pullback.autograd.view import set_requires_grad, wants_grad
from pullback.kernels.jit.pointwise.fused import overwrite, row_major_copy
from pullback.ops.shape.reshape import zeros_of

# ------------------------------------------------------------------ new memory with the same elements


def copied(array: Array, target: Any = None, format: memory_format | None = None) -> Array:
    """A copy of an array, in another NumPy dtype if asked, its memory in the order `format` says."""
    if target is None:
        target = array.dtype
    elif array.dtype.kind == "c" and target.kind not in "cb":
        warn_imaginary_part()
        array = array.real
    array = wrapping(array, target)
    kept = format is None or format is preserve_format
    if format is contiguous_format or (kept and array.flags.c_contiguous):
        return array.astype(target, "C") if array.size < LARGE else row_major_copy(array, target)
    order = order_of_memory(array, format)
    return row_major_copy(array.transpose(order), target).transpose(np.argsort(order))


def wrapping(array: Array, target: Any) -> Array:
    """What becomes bytes, as torch casts it: by way of int64, so that numbers beyond 32 bits wrap around, too."""
    return cast(array, np.dtype(np.int64)) if target.char == "B" and array.dtype.char == "d" else array


def arranged(array: Array, format: memory_format | None) -> Array:
    """The array, or a copy where the order of memory asks for one."""
    return array if format is None or format is contiguous_format else copied(array, None, format)


def order_of_memory(array: Array, format: memory_format | None) -> list[int]:
    """The dimensions from the outermost in memory to the innermost, for a copy in the order `format` says.

    The order of the strides, where the format does not say otherwise; stretched dimensions stay where they are.
    """
    ndim = array.ndim
    if format is channels_last or format is channels_last_3d:
        wanted = 4 if format is channels_last else 5
        if ndim != wanted:
            raise RuntimeError(f"required rank {wanted} tensor to use {format.name} format")
        return [0, *range(2, ndim), 1]
    order = None if format is contiguous_format else order_of_result([array], array.shape)
    return list(range(ndim)) if order is None else list(order)


def warn_imaginary_part() -> None:
    """Warn, the first time, that a cast to a real type forgets the imaginary part."""
    warn_once("Casting complex values to real discards the imaginary part")


@op(
    nested="shape", vmap="formatted", sparse="entries", packed="moved", out=False, self=lambda grad: grad, result=linear
)
def clone(self: Array, *, memory_format: Any = None) -> Array:
    """Return a copy of a tensor in new memory.

    The copy is part of the graph: gradients flow through it to the original. `memory_format` chooses the order of the
    elements in memory; by default the strides are kept if the tensor is dense.
    """
    return copied(self, None, memory_format)


# ------------------------------------------------------------------ out of the graph


@function(nested="shape", raw=True)
def detach(self: Tensor) -> Tensor:
    """Return a view of the same memory that is cut off from the graph.

    The result never requires a gradient; writes to it are seen by the original.
    """
    if type(self) is not Tensor and type(self) is not Parameter:
        kind = overriding_class((self,))
        if kind is not None:
            return kind.__torch_function__(detach, (kind,), (self,), {})  # type: ignore[attr-defined, no-any-return]
    if hasattr(type(self), "cut_off"):
        out = type(self).cut_off(self)
    else:
        out = seen(self, stored(self)) if type(self) is LazyTensor else wrap(self._array)
    out._counter = INFERENCE if self._counter is INFERENCE else counter_of(self)
    out._detached_at = detached_here("detach()") if self._requires_grad else self._detached_at
    return out


@function(nested="shape", raw=True)
def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off from its graph, in place: it becomes a leaf that requires no gradient."""
    if self._view is not None or (hasattr(type(self), "shows") and type(self).shows(self)):
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if self._edge is not None:
        counter: Any = DetachedCounter(counter_of(self))
        self._counter = counter
        self._detached_at = detached_here("detach_()")
    if not (self._requires_grad and in_transform.get()):
        self._tangent = None  # a gradient inside jvp: the innermost of both ends
    self._edge = None
    self._requires_grad = False
    return self


@function(nested="shape", raw=True, space=None)
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether autograd records operations on this tensor, in place, and return it.

    Only leaves can be switched off, and only floating-point and complex tensors can be switched on.
    """
    try:
        if requires_grad and FROM_NUMPY[self._array.dtype].category < 2:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and wants_grad(self):
            self._requires_grad = True
        else:
            set_requires_grad(self, requires_grad)
        return self
    except Exception as error:
        trim(error)
        raise


# ------------------------------------------------------------------ overwriting


def plain_write(self: Tensor) -> bool:
    """True if self may be overwritten without a thought: nobody records, nobody overrides."""
    if modes.active or (type(self) is not Tensor and type(self) is not Parameter):
        return False
    if self._counter is INFERENCE:
        return False
    return not (is_grad_enabled() and wants_grad(self))


def on_device(self: Tensor, src: Tensor) -> bool:
    """True for a copy within a device, or between it and the host, that is one of bytes and of nobody's concern."""
    ours, its = self._array, src._array
    if not (is_foreign(ours) or is_foreign(its)) or ours.dtype != its.dtype or ours.shape != its.shape:
        return False
    plain = all([type(t) in (Tensor, Parameter) or type(t._array).steps_on_arrays for t in (self, src)])
    if not plain or modes.active or self._counter is INFERENCE or ours.dtype.kind in "cV":
        return False
    return not (is_grad_enabled() and (wants_grad(self) or wants_grad(src)))


def check_copy(self: Array, src: Array) -> None:
    """Raise torch's error if `src` does not broadcast to the shape of self."""
    mine, its = self.shape, src.shape
    if len(its) > len(mine):
        shown = f"{messages.shape_text(mine)} doesn't match the broadcast shape"
        whole = np.broadcast_shapes(mine, its) if fits(mine, its) else None
        if whole is not None:
            raise RuntimeError(f"output with shape {shown} {messages.shape_text(whole)}")
    ndim = max(len(mine), len(its))
    a, b = (1,) * (ndim - len(mine)) + mine, (1,) * (ndim - len(its)) + its
    for dim in reversed(range(ndim)):
        if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
            raise RuntimeError(messages.size_mismatch(a[dim], b[dim], dim))
    if a != tuple(np.broadcast_shapes(a, b)):
        whole = np.broadcast_shapes(a, b)
        shown = messages.shape_text(mine)
        raise RuntimeError(f"output with shape {shown} doesn't match the broadcast shape {messages.shape_text(whole)}")


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if two shapes broadcast."""
    return all(n == m or n == 1 or m == 1 for n, m in zip(reversed(a), reversed(b), strict=False))


@op(
    vmap="overwritten",
    sparse="not_copied",
    packed="copied",
    space=None,
    name="copy",
    node="CopyBackwards",
    check=check_copy,
    vmap_inplace="inplace arithmetic",
    self=lambda grad: zeros_of(grad, grad.shape),
    src=lambda grad: grad,
    result=lambda self_t, src_t, self: copied_tangent(self_t, src_t, self),
)
def copy_from(self: Array, src: Array) -> Array:
    """The elements of `src` in the shape and dtype of self."""
    if self.dtype is not src.dtype:
        src = copied(src, self.dtype)
    return np.broadcast_to(src, self.shape)


def copied_tangent(self_t: Any, src_t: Any, self: Any) -> Any:
    """The tangent of a copy is the copy of the tangent."""
    return zeros_of(self, self.shape) if src_t is None else copy_from(self, src_t)


def lies_like(one: Array, other: Array) -> bool:
    """True if arrays of one shape step alike; the step along a dimension of one element is never taken."""
    return all(n == 1 or a == b for n, a, b in zip(one.shape, one.strides, other.strides, strict=True))


def check_overlap(target: Array, source: Array) -> None:
    """Raise if a write to `target` would change elements of `source` still to be read, as far as torch can tell."""
    if (target.base is None and source.base is None) or memory_of(target) is not memory_of(source):
        return
    if not is_non_overlapping_and_dense(target) or not is_non_overlapping_and_dense(source):
        return
    start, other = data_ptr(target), data_ptr(source)
    if start == other and target.shape == source.shape and lies_like(target, source):
        return
    if start < other + source.nbytes and other < start + target.nbytes:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def is_window_of(self: Tensor, src: Tensor) -> bool:
    """True if two tensors are the same window onto the same memory."""
    one, other = self._array, src._array
    return (
        type(self) is type(src) is Tensor
        and (one.dtype, one.shape, one.strides) == (other.dtype, other.shape, other.strides)
        and data_ptr(one) == data_ptr(other)
    )


@function(nested="strided", raw=True, space=None)
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src` into this tensor and return it.

    `src` is broadcast to the shape of this tensor and cast to its dtype; gradients flow back to `src`.
    With `non_blocking`, a copy between pinned memory of the host and a device is not waited for.
    """
    if non_blocking and any([isinstance(t, Tensor) and is_foreign(t._array) for t in (self, src)]):
        return copies.unwaited(copy_, self, src)  # type: ignore[no-any-return]
    try:
        if not isinstance(src, Tensor):
            if not isinstance(src, (bool, int, float, complex, np.generic)):
                kind = "numpy.ndarray" if isinstance(src, np.ndarray) else type(src).__name__
                raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {kind}")
            src = wrap(np.asarray(src))
        check_overlap(stored(self), stored(src))
        if overlaps_itself(self._array) and is_window_of(self, src) and not (is_grad_enabled() and wants_grad(src)):
            bump_version(self)  # nothing to copy, so that nothing meets
            return self
        if on_device(self, src):
            if src._array.dtype.kind == "c" and self._array.dtype.kind not in "cb":
                warn_imaginary_part()
            np.copyto(self._array, src._array, "unsafe")
            bump_version(self)
            return self
        quiet = (
            plain_write(self)
            and not overlaps_itself(self._array)
            and type(src) in (Tensor, Parameter)
            and not (is_grad_enabled() and wants_grad(src) and FROM_NUMPY[self._array.dtype].category >= 2)
        )
        if not quiet:
            # Integers and bools have no gradient, so what is copied into them has none either.
            whole = FROM_NUMPY[self._array.dtype].category < 2 and wants_grad(src)
            return inplace(copy_from.op, self, (detach(src) if whole else src,))
        array, other = self._array, src._array
        if array.shape != other.shape:
            check_copy(array, other)
        if other.dtype.kind == "c" and array.dtype.kind not in "cb":
            warn_imaginary_part()
            other = other.real
        overwrite(array, wrapping(other, array.dtype))
        bump_version(self)
        return self
    except Exception as error:
        trim(error)
        raise


def check_fill_value(self: Array, value: Any) -> None:
    """A tensor to fill with has no dimensions."""
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")


def filled(self: Array, value: Any) -> Array:
    """An array of the shape and dtype of self, every element `value`."""
    out = np.empty_like(self)
    out[...] = element(value, FROM_NUMPY[self.dtype], self.size != 1)
    return out


def element(value: Any, target: dtype, many: bool = True) -> Any:
    """A number as an element of a dtype, or torch's error about overflow."""
    return (exact_number if many else convert_number)(
        value.item() if isinstance(value, (np.ndarray, np.generic)) else value, target
    )


@op(
    vmap="leading",
    packed="filled",
    space=None,
    name="fill",
    node="FillBackward2",
    may_overlap="biufcV",
    vmap_inplace="inplace arithmetic",
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda self: zeros_of(self, self.shape),
)
def fill_with_number(self: Array, value: Any) -> Array:
    """Every element a number."""
    return filled(self, value)


@op(
    vmap="filled_with_one",
    packed="filled",
    space=None,
    name="fill",
    node="FillBackward3",
    check=check_fill_value,
    vmap_inplace="fill_",
    self=lambda grad: zeros_of(grad, grad.shape),
    value=lambda grad: grad,
    result=lambda self, value_t: copied_tangent(None, value_t, self),
)
def fill_with_tensor(self: Array, value: Array) -> Array:
    """Every element that of a tensor without dimensions."""
    check_fill_value(self, value)
    return np.full(self.shape, copied(value, self.dtype))


@op(
    vmap="leading",
    packed="moved",
    space=None,
    name="zero",
    node="ZeroBackward0",
    may_overlap="biufcV",
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda self: zeros_of(self, self.shape),
)
def fill_with_zero(self: Array) -> Array:
    """Every element zero."""
    return np.zeros_like(self)


@op(
    vmap="leading",
    packed="filled",
    space=None,
    name="fill",
    node="FillBackward0",
    self=lambda grad: zeros_of(grad, grad.shape),
    result=lambda self: zeros_of(self, self.shape),
)
def full_of_number(self: Array, value: Any) -> Array:
    """A new array of the shape of self, every element a number."""
    return filled(self, value)


@op(
    vmap="filled_with_one",
    packed="filled",
    space=None,
    name="fill",
    node="FillBackward1",
    check=check_fill_value,
    self=lambda grad: zeros_of(grad, grad.shape),
    value=lambda grad: grad,
    result=lambda self, value_t: copied_tangent(None, value_t, self),
)
def full_of_tensor(self: Array, value: Array) -> Array:
    """A new array of the shape of self, every element that of a tensor without dimensions."""
    check_fill_value(self, value)
    return np.full(self.shape, copied(value, self.dtype))


@function(nested="strided", method=False)
def fill(self: Array, value: Array | Number) -> Array:
    """Return a tensor like the input with every element equal to `value`, a number or a tensor without dimensions."""
    return full_of_tensor(self, value) if isinstance(value, Tensor) else full_of_number(self, value)


@function(nested="strided", raw=True, space=None)
def fill_(self: Tensor, value: Tensor | Number) -> Tensor:
    """Fill this tensor with `value`, a number or a tensor without dimensions, in place."""
    if isinstance(value, Tensor):
        return inplace(fill_with_tensor.op, self, (value,))
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        why = f"      didn't match because some of the arguments have invalid types: (!{type(value).__name__}!)\n"
        raise TypeError(
            f"fill_() received an invalid combination of arguments - got ({type(value).__name__}), but expected one "
            "of:\n"
            f" * (Tensor value)\n{why} * (Number value)\n{why}"
        )
    if not plain_write(self):
        return inplace(fill_with_number.op, self, (value,))
    array = self._array
    number = element(value, FROM_NUMPY[array.dtype])
    if array.size < LARGE:
        array[...] = number
    else:
        overwrite(array, np.asarray(number, array.dtype))
    bump_version(self)
    return self


@function(nested="shape", raw=True)
def zero_(input: Tensor) -> Tensor:
    """Fill this tensor with zeros, in place."""
    try:
        if not plain_write(input):
            return inplace(fill_with_zero.op, input, ())
        input._array[...] = 0
        bump_version(input)
        return input
    except Exception as error:
        explain(error, zero_, input)
        raise
