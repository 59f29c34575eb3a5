"""Discrete Fourier transforms: the ops, and the few forms all functions of torch.fft take.

Three ops do the work, as in torch: complex to complex, real to complex, complex to real. Every form brings its input
to the right dtype and size and then calls one or two of them, so the graph is the same as torch's.
"""

from __future__ import annotations

from operator import index as as_index
from typing import Any

from pullback._arrays.memory import empty_in_order, row_major
from pullback._dtype import FROM_NUMPY, complex64, complex128, defaults, float32, float64
from pullback._op.define import Array, linear, op
from pullback._tensor import Tensor, normal_dim
from pullback.kernels.numpy.math import fft as kernels
from pullback.ops.create.cast import converted
from pullback.ops.nn.image.pad import constant_pad_nd
from pullback.ops.pointwise.arithmetic import conj, real_part
from pullback.ops.pointwise.elementary import conj_physical
from pullback.ops.shape.slicing import slice_

# ------------------------------------------------------------------ how results lie in memory


def transformed_last(result: Any, source: Any, dims: tuple[int, ...]) -> Any:
    """A transform along `dims` as torch leaves it in memory: by those dimensions last, in their order.

    Before them lie the others, in the order they have in the memory of the source.
    """
    ndim = result.ndim
    if ndim < 2 or not result.size:
        return result
    order = transformed_order(source, dims)
    if order == list(range(ndim)):
        return row_major(result)
    out = empty_in_order(result.shape, order, result.dtype)
    if out.strides == result.strides:
        return result
    out[...] = result
    return out


def transformed_order(source: Any, dims: tuple[int, ...]) -> list[int]:
    """The dimensions of such a result, from the outermost to the innermost."""
    steps = source.strides
    return [*sorted([d for d in range(source.ndim) if d not in dims], key=lambda d: -steps[d]), *dims]


def by_steps(source: Any, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions from the outermost in memory to the innermost."""
    steps = source.strides
    return dims if len(dims) < 2 else tuple(sorted(dims, key=lambda d: -steps[d]))


# ------------------------------------------------------------------ the three transforms


@op(
    space=None,
    name="_fft_c2c",
    node="FftC2CBackward0",
    self=lambda grad, dim, normalization, forward: fft_c2c(grad, dim, normalization, not forward),
    result=linear,
)
def fft_c2c(self: Array, dim: tuple[int, ...], normalization: int, forward: bool) -> Array:
    """The transform of complex numbers, or the inverse one."""
    return transformed_last(kernels.c2c(self, dim, normalization, forward), self, by_steps(self, dim))


@op(
    space=None,
    name="_fft_r2c",
    node="FftR2CBackward0",
    self=lambda grad, self, dim, normalization, onesided: r2c_backward(
        grad, self.shape[dim[-1]], dim, normalization, onesided
    ),
    result=linear,
)
def fft_r2c(self: Array, dim: tuple[int, ...], normalization: int, onesided: bool) -> Array:
    """The transform of real numbers, whole or without the half that repeats the other."""
    order = (*by_steps(self, dim[:-1]), dim[-1])
    return transformed_last(kernels.r2c(self, dim, normalization, onesided), self, order)


def r2c_backward(grad: Any, size: int, dim: tuple[int, ...], normalization: int, onesided: bool) -> Any:
    """The half left out has no gradient; then the transform backwards, of which only the real part matters."""
    if onesided:
        grad = extended(grad, dim[-1], size)
    return real_part(fft_c2c(grad, dim, normalization, False))


@op(
    space=None,
    name="_fft_c2r",
    node="FftC2RBackward0",
    self=lambda grad, dim, normalization: c2r_backward(grad, dim, normalization),
    result=linear,
)
def fft_c2r(self: Array, dim: tuple[int, ...], normalization: int, last_dim_size: int) -> Array:
    """The inverse transform, to real numbers, from half of the complex ones."""
    out = kernels.c2r(self, dim, normalization, last_dim_size)
    if len(dim) > 1:  # all but the last are transformed first
        self = empty_in_order(self.shape, transformed_order(self, by_steps(self, dim[:-1])), self.dtype)
    return transformed_last(out, self, dim[-1:])


def c2r_backward(grad: Any, dim: tuple[int, ...], normalization: int) -> Any:
    """The transform, with the elements doubled that stood for themselves and for their mirror image."""
    size = grad.shape[dim[-1]]
    return doubled(fft_r2c(grad, dim, normalization, True), dim[-1], 1, (size - 1) // 2)


@op(space=None, self=lambda grad, dim, start, count: doubled(grad, dim, start, count), result=linear)
def doubled(self: Array, dim: int, start: int, count: int) -> Array:
    """The same numbers, with some along a dimension times two."""
    out = self.copy()
    out[(*(slice(None),) * dim, slice(start, start + count))] *= 2
    return out


def extended(self: Any, dim: int, size: int) -> Any:
    """Zeros appended to a dimension until it has `size` elements."""
    if self.shape[dim] == size:
        return self
    return constant_pad_nd(self, end_padding(self.ndim, {dim: size - self.shape[dim]}))


def end_padding(ndim: int, amounts: dict[int, int]) -> tuple[int, ...]:
    """The amounts to append to some dimensions, in the order padding lists them."""
    pad = [0] * (2 * ndim)
    for dim, amount in amounts.items():
        pad[2 * (ndim - dim) - 1] = amount
    return tuple(pad)


# ------------------------------------------------------------------ arguments

MODES = {"backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}
"""How a transform and an inverse one are normalised in each mode."""

COMPLEX = {float32: complex64, float64: complex128}


def normalization_of(norm: str | None, forward: bool) -> int:
    """Torch's number for a mode of normalization."""
    mode = MODES.get("backward" if norm is None else norm)
    if mode is None:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return mode[0 if forward else 1]


def promoted(self: Tensor, to_complex: bool = False) -> Tensor:
    """The input in a dtype there is a transform for; integers count as the default dtype."""
    if self._array.dtype.char in ("FD" if to_complex else "fdFD"):
        return self
    kind = FROM_NUMPY[self._array.dtype]
    target = defaults.dtype if kind.category < 2 else kind
    if target not in COMPLEX and target not in COMPLEX.values():
        raise RuntimeError(f"Unsupported dtype {target.scalar_type}")
    return converted(self, COMPLEX.get(target, target) if to_complex else target)


def place(dim: int, ndim: int) -> int:
    """A dimension counted from the front; a 0-d tensor has none."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return normal_dim(as_index(dim), ndim)


def check_points(*counts: int) -> None:
    """There must be something to transform."""
    for count in counts:
        if count < 1:
            raise RuntimeError(f"Invalid number of data points ({count}) specified")


def resized(self: Tensor, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """The input cut or filled up with zeros to the sizes asked for."""
    shape = self._array.shape
    if sizes == tuple([shape[d] for d in dims]):
        return self
    missing = {}
    for dim, size in zip(dims, sizes, strict=True):
        if shape[dim] > size:
            self = slice_(self, dim, 0, size)
        elif shape[dim] < size:
            missing[dim] = size - shape[dim]
    return constant_pad_nd(self, end_padding(len(shape), missing)) if missing else self


LAST_TWO = (-2, -1)


def shape_and_dims(self: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes and the dimensions of a transform of several dimensions."""
    if s is None and dim == LAST_TWO and type(dim) is tuple and self._array.ndim > 1 and self._array.size:
        ndim = self._array.ndim  # what fft2 brings
        return self._array.shape[-2:], (ndim - 2, ndim - 1)
    ndim, sizes = self._array.ndim, self._array.shape
    dims = None
    if dim is not None:
        dims = tuple([place(d, ndim) for d in as_tuple(dim)])
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is None:
        dims = tuple(range(ndim)) if dims is None else dims
        shape = tuple([sizes[d] for d in dims])
    else:
        s = as_tuple(s)
        if dims is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = tuple(range(ndim - len(s), ndim)) if dims is None else dims
        shape = tuple([sizes[d] if n == -1 else n for n, d in zip(s, dims, strict=True)])
    check_points(*shape)
    return shape, dims


def halved_shape_and_dims(name: str, self: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The same for a transform to real numbers, whose input is half as long; and the size of the result there."""
    shape, dims = shape_and_dims(self, s, dim)
    if not shape:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = shape[-1] if s is not None and as_tuple(s)[-1] != -1 else 2 * (self._array.shape[dims[-1]] - 1)
    check_points(last)
    return (*shape[:-1], last // 2 + 1), dims, last


def as_tuple(value: Any) -> tuple[int, ...]:
    """One size or several, as a tuple of ints."""
    return tuple([as_index(v) for v in value]) if isinstance(value, (list, tuple)) else (as_index(value),)


# ------------------------------------------------------------------ one dimension and several


def complex_to_complex(self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """fft and ifft of complex numbers."""
    self = promoted(self, True)
    at = place(dim, self._array.ndim)
    count = self._array.shape[at] if n is None else as_index(n)
    check_points(count)
    if n is not None:
        self = resized(self, (at,), (count,))
    return fft_c2c(self, (at,), normalization_of(norm, forward), forward)


def real_to_complex(
    name: str, self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, onesided: bool
) -> Tensor:
    """fft, ifft, rfft and ihfft of real numbers."""
    if self._array.dtype.kind == "c":
        raise RuntimeError(f"{name} expects a real input tensor, but got {self.dtype.scalar_type}")
    self = promoted(self)
    at = place(dim, self._array.ndim)
    count = self._array.shape[at] if n is None else as_index(n)
    check_points(count)
    if n is not None:
        self = resized(self, (at,), (count,))
    out = fft_r2c(self, (at,), normalization_of(norm, forward), onesided)
    return out if forward else conj(out)


def complex_to_real(self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """irfft and hfft."""
    self = promoted(self, True)
    at = place(dim, self._array.ndim)
    count = 2 * (self._array.shape[at] - 1) if n is None else as_index(n)
    check_points(count)
    if n is not None:
        self = resized(self, (at,), (count // 2 + 1,))
    if forward:
        self = conj(self)
    return fft_c2r(self, (at,), normalization_of(norm, forward), count)


def several_complex(self: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """fftn and ifftn."""
    shape, dims = shape_and_dims(self, s, dim)
    return fft_c2c(resized(promoted(self, True), dims, shape), dims, normalization_of(norm, forward), forward)


def several_to_halved(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """rfftn."""
    if self._array.dtype.kind == "c":
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {self.dtype.scalar_type}")
    shape, dims = shape_and_dims(self, s, dim)
    if not shape:
        raise RuntimeError("rfftn must transform at least one axis")
    return fft_r2c(resized(promoted(self), dims, shape), dims, normalization_of(norm, True), True)


def several_to_real(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """irfftn."""
    shape, dims, last = halved_shape_and_dims("irfftn", self, s, dim)
    return fft_c2r(resized(promoted(self, True), dims, shape), dims, normalization_of(norm, False), last)


def several_hermitian(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """hfftn: all dimensions but the last, then the last to real numbers."""
    shape, dims, last = halved_shape_and_dims("hfftn", self, s, dim)
    out = resized(promoted(self, True), dims, shape)
    mode = normalization_of(norm, True)
    if len(dims) > 1:
        out = fft_c2c(out, dims[:-1], mode, True)
    return fft_c2r(conj(out), dims[-1:], mode, last)


def several_from_hermitian(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """ihfftn: the last dimension from real numbers, then all others."""
    shape, dims = shape_and_dims(self, s, dim)
    if not shape:
        raise RuntimeError("ihfftn must transform at least one axis")
    if self._array.dtype.kind == "c":
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {self.dtype.scalar_type}")
    mode = normalization_of(norm, False)
    out = fft_r2c(resized(promoted(self), dims, shape), dims[-1:], mode, True)
    return conj(out) if len(dims) == 1 else fft_c2c(conj_physical(out), dims[:-1], mode, False)
