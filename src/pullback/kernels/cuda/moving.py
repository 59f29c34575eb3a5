"""Ops that move elements, or fill places with one number, by copies between windows of memory on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.kernels.cuda.array import DeviceArray, empty, filled, like
from pullback.kernels.cuda.native import native, ramp
from pullback.kernels.cuda.pointwise import pointwise

ALL = (slice(None),)


def zeros(shape: Any, given: Any) -> Any:
    """Zeros in the dtype and on the device of an array."""
    return filled(shape, given.dtype, 0, given.device)


@native("zeros_of")
def zeros_of(given: Any, size: Any) -> Any:
    """Zeros of a shape."""
    return zeros(size, given)


@native("unsafe_view")
def unsafe_view(self: Any, size: Any) -> Any:
    """Another shape."""
    return self.reshape(size)


# ------------------------------------------------------------------ joining


def channels_are_last(arrays: Any) -> bool:
    """Whether all are images with their channels last in memory."""
    return all([a.ndim in (4, 5) and a.transpose(0, *range(2, a.ndim), 1).flags.c_contiguous for a in arrays])


@native("cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    """Arrays one after the other along a dimension."""
    some = [a for a in tensors if a.shape != (0,)] or tensors[:1]
    first = some[0]
    if any([type(a) is not DeviceArray or a.ndim != first.ndim or a.dtype != first.dtype for a in some]):
        return None
    if not first.ndim or not -first.ndim <= dim < first.ndim:
        return None
    dim %= first.ndim
    if any([a.shape[:dim] + a.shape[dim + 1 :] != first.shape[:dim] + first.shape[dim + 1 :] for a in some]):
        return None
    shape = [*first.shape[:dim], sum([a.shape[dim] for a in some]), *first.shape[dim + 1 :]]
    if not first.flags.c_contiguous and channels_are_last(some):
        order = (0, *range(2, first.ndim), 1)
        new = empty([shape[d] for d in order], first.dtype, None, first.device)
        out = new.transpose([order.index(d) for d in range(first.ndim)])
    else:
        out = empty(shape, first.dtype, None, first.device)
    start = 0
    for a in some:
        if a.size:
            out[(*ALL * dim, slice(start, start + a.shape[dim]))] = a
        start += a.shape[dim]
    return out


@native("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    """Arrays beside each other along a new dimension."""
    first = tensors[0]
    ndim = first.ndim + 1
    if not -ndim <= dim < ndim:
        return None
    if any([type(a) is not DeviceArray or a.shape != first.shape or a.dtype != first.dtype for a in tensors]):
        return None
    dim %= ndim
    out = empty([*first.shape[:dim], len(tensors), *first.shape[dim:]], first.dtype, None, first.device)
    for place, a in enumerate(tensors):
        if a.size:
            out[(*ALL * dim, place)] = a
    return out


# ------------------------------------------------------------------ gradients of views


@native("slice_backward")
def slice_backward(grad: Any, input_sizes: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """A gradient in its slice of zeros."""
    out = zeros(input_sizes, grad)
    if grad.size:
        out[(*ALL * (dim % len(input_sizes)), slice(start, end, step))] = grad
    return out


@native("select_backward")
def select_backward(grad: Any, input_sizes: Any, dim: int, index: int) -> Any:
    """A gradient in its place among zeros."""
    out = zeros(input_sizes, grad)
    if grad.size:
        out[(*ALL * (dim % len(input_sizes)), index)] = grad
    return out


@native("diagonal_backward")
def diagonal_backward(grad: Any, input_sizes: Any, offset: int, dim1: int, dim2: int) -> Any:
    """A gradient on a diagonal of zeros."""
    out = zeros(input_sizes, grad)
    if grad.size:
        np.diagonal(out, offset, dim1, dim2)[...] = grad  # type: ignore[call-overload]
    return out


# ------------------------------------------------------------------ padding, turning, repeating


@native("constant_pad_nd")
def constant_pad(self: Any, pad: Any, value: Any = 0) -> Any:
    """A frame of one number; negative widths cut off."""
    if len(pad) % 2 or len(pad) > 2 * self.ndim or not self.flags.c_contiguous or type(value) not in (int, float):
        return None
    if self.dtype.kind in "iub" and (type(value) is not int or not -128 <= value < 128):
        return None
    widths = [(0, 0)] * (self.ndim - len(pad) // 2)
    widths += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    shape = [n + a + b for n, (a, b) in zip(self.shape, widths, strict=True)]
    if min(shape, default=0) < 0 or not self.size:
        return None
    out = filled(shape, self.dtype, value, self.device)
    there = tuple([slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(shape, widths, strict=True)])
    here = tuple([slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(self.shape, widths, strict=True)])
    if out[there].size:
        out[there] = self[here]
    return out


@native("flip_dims")
def flip(self: Any, dims: Any) -> Any:
    """Backwards along dimensions."""
    if not all([type(d) is int and -self.ndim <= d < self.ndim for d in dims]):
        return None
    turned = [d % self.ndim for d in dims]
    if len({*turned}) != len(turned):
        return None
    out = like(self, self.dtype)
    if self.size:
        out[...] = self[tuple([slice(None, None, -1 if d in turned else 1) for d in range(self.ndim)])]
    return out


@native("roll_dims")
def roll(self: Any, shifts: Any, dims: Any) -> Any:
    """Elements moved along dimensions, those beyond the end to the front."""
    if len(shifts) != len(dims) or not self.size or not all([-self.ndim <= d < self.ndim for d in dims]):
        return None
    for shift, dim in zip(shifts, dims, strict=True):
        size, before = self.shape[dim], ALL * (dim % self.ndim)
        shift %= size
        out = empty(self.shape, self.dtype, None, self.device)
        out[(*before, slice(shift, None))] = self[(*before, slice(None, size - shift))]
        if shift:
            out[(*before, slice(None, shift))] = self[(*before, slice(size - shift, None))]
        self = out
    return self


@native("repeat_dims")
def repeat(self: Any, repeats: Any) -> Any:
    """Copies beside each other."""
    if len(repeats) < self.ndim or min(repeats, default=0) < 0:
        return None
    shape = (1,) * (len(repeats) - self.ndim) + self.shape
    out = empty([m for pair in zip(repeats, shape, strict=True) for m in pair], self.dtype, None, self.device)
    if out.size:
        out[...] = self.reshape([m for n in shape for m in (1, n)])
    return out.reshape([n * m for n, m in zip(shape, repeats, strict=True)])


# ------------------------------------------------------------------ triangles and masks


def at_or_below(x: Any, rows: Any, columns: Any, diagonal: int) -> Any:
    """Elements whose column is at most so far beyond their row; zeros elsewhere."""
    return np.where(columns - rows <= diagonal, x, x.dtype.type(0))


def above(x: Any, rows: Any, columns: Any, diagonal: int) -> Any:
    """The other elements."""
    return np.where(columns - rows > diagonal, x, x.dtype.type(0))


def triangle(self: Any, kept: Any, diagonal: int) -> Any:
    """Part of matrices."""
    if self.ndim < 2 or not self.size or type(diagonal) is not int or not self.flags.c_contiguous:
        return None
    rows, columns = (ramp(n, self.device) for n in self.shape[-2:])
    return pointwise(kept, (self, rows[:, None], columns, diagonal), {})


@native("tril")
def tril(self: Any, diagonal: int = 0) -> Any:
    """The lower triangle."""
    return triangle(self, at_or_below, diagonal)


@native("triu")
def triu(self: Any, diagonal: int = 0) -> Any:
    """The upper triangle."""
    return triangle(self, above, diagonal - 1)


def unless(x: Any, mask: Any, value: Any) -> Any:
    """A number where a mask holds."""
    return np.where(mask, np.asarray(value, x.dtype), x)


def unless_element(x: Any, mask: Any, value: Any) -> Any:
    """The element of an array without dimensions where a mask holds."""
    return np.where(mask, value.astype(x.dtype), x)


@native("masked_fill_value", "masked_fill_tensor")
def masked_fill(self: Any, mask: Any, value: Any) -> Any:
    """A number where a mask holds."""
    if type(self) is not DeviceArray or type(mask) is not DeviceArray or mask.dtype.kind != "b":
        return None
    element = isinstance(value, np.ndarray)
    if element:
        if value.ndim or value.dtype != self.dtype:
            return None
        if type(value) is not DeviceArray:
            element, value = False, value.item()
    elif type(value) is bool:
        value = int(value)
    elif (type(value) is not int and (type(value) is not float or self.dtype.kind in "iub")) or (
        self.dtype.kind in "iub" and not 0 <= value < 128
    ):
        return None
    try:
        shape = np.broadcast_shapes(self.shape, mask.shape)
    except ValueError:
        return None
    out = None if self.flags.c_contiguous and self.shape == shape else empty(shape, self.dtype, None, self.device)
    wide = np.broadcast_to(self, shape)
    return pointwise(unless_element if element else unless, (wide, mask, value), {}, out)


@native("fill_with_number", "full_of_number")
def fill(self: Any, value: Any) -> Any:
    """One number everywhere."""
    if type(value) not in (int, float) or self.dtype.kind != "f" or not self.flags.c_contiguous:
        return None
    return filled(self.shape, self.dtype, value, self.device)
