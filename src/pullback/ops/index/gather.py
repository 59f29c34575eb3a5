"""Reading and writing along a dimension by index tensors: gather, scatter, index_select, index_add, take, put, ..."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import exact_number
from pullback._arrays.kinds import answered
from pullback._arrays.memory import overlaps, row_major
from pullback._dtype import FROM_NUMPY
from pullback._op.define import Array, Number, function, linear, not_implemented, op
from pullback._op.inplace import run_inplace
from pullback._op.out import exact, exactly, no_overlap
from pullback._runtime.messages import no_dimensions, size_mismatch
from pullback._runtime.warnings import warn_once
from pullback._tensor import Tensor
from pullback.kernels.numpy.index import gather as kernels
from pullback.kernels.numpy.index import slices
from pullback.kernels.numpy.index.subscript import is_inside
from pullback.ops.create.copy import clone, copied
from pullback.ops.nn.unrecorded import arrays_of
from pullback.ops.pointwise.arithmetic import scaled
from pullback.ops.pointwise.remainder import remainder
from pullback.ops.reduce.sums import sum_all
from pullback.ops.shape.reshape import expand, reshape_to, view_, zeros_of
from pullback.ops.supported import same_dtype_elsewhere, warn_if_expanded

# ------------------------------------------------------------------ gather


@op(
    kernel="scatter_gather_tensor_cpu",
    check_out=same_dtype_elsewhere,
    self=lambda grad, self, dim, index, sparse_grad: scatter_add(zeros_of(grad, self.shape), dim, index, grad),
    result=linear,
)
def gather(self: Array, dim: int, index: Array, *, sparse_grad: bool = False) -> Array:
    """Pick elements along a dimension, at the positions that `index` holds for each place of the result.

    For three dimensions and `dim=0` the rule is `out[i][j][k] = input[index[i][j][k]][j][k]`; for `dim=1` it is
    `out[i][j][k] = input[i][index[i][j][k]][k]`, and so on.
    `index` has as many dimensions as `input` and is no larger than it except along `dim`; nothing broadcasts.
    The result has the shape of `index`. `sparse_grad` is accepted; the gradient is dense.
    """
    return row_major(kernels.gather(self, dim, index))


@function(out=True, numpy=("take_along_axis",), out_dtype=exact)
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Pick elements along a dimension at the positions that `indices` holds, as `argmax` or `argsort` return them.

    Like `gather`, but `input` and `indices` broadcast against each other in all dimensions but `dim`.
    Without `dim` both are flattened, and the result is a vector.
    """
    if indices._array.dtype != np.int64 and dim is not None:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_type}"
        )
    if dim == 0 and type(indices) is Tensor and self._array.ndim == 1 == indices._array.ndim:
        if arrays_of(self) is not None and is_inside(indices._array, self._array.size):
            return gather(self, 0, indices)
    if dim is None:
        return gather(view_(self, (self._array.size,)), 0, view_(indices, (indices._array.size,)))
    if self._array.ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{self._array.ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    dim = kernels.normal_dim(dim, self._array.ndim)
    if not self._array.ndim:
        raise IndexError(no_dimensions(0))
    mine, its = list(self._array.shape), list(indices._array.shape)
    for d in range(len(mine)):
        if d != dim and mine[d] != its[d]:
            if mine[d] != 1 != its[d]:
                raise RuntimeError(size_mismatch(mine[d], its[d], d))
            mine[d] = its[d] = its[d] if mine[d] == 1 else mine[d]
    # Here, unlike in gather, indices outside count around; the rest is a tensor of its own, whatever becomes of these.
    around = remainder(expand(indices, tuple(its)), mine[dim])
    return gather(expand(self, tuple(mine)), dim, around)


# ------------------------------------------------------------------ scatter


@op(
    kernel="scatter_gather_tensor_cpu",
    space=None,
    name="scatter",
    inplace=kernels.scatter_into,
    out_overlap="apart",
    self=lambda grad, dim, index: scatter_value(grad, dim, index, 0),
    src=lambda grad, dim, index: gather(grad, dim, index),
    result=linear,
)
def scatter_src(self: Array, dim: int, index: Array, src: Array) -> Array:
    """Write the elements of a tensor where index says."""
    return kernels.on_copy(kernels.scatter_into, self, dim, index, src)


def write_value(self: Array, dim: int, index: Array, value: Number) -> None:
    """Write a number into self where index says."""
    number = exact_number(value, FROM_NUMPY[self.dtype]) if index.size else 0
    kernels.scatter_into(self, dim, index, number)


@op(
    kernel="scatter_gather_tensor_cpu",
    space=None,
    name="scatter",
    node="ScatterBackward1",
    inplace=write_value,
    out_overlap="apart",
    self=lambda grad, dim, index: scatter_value(grad, dim, index, 0),
    result=lambda self_t, dim, index: scatter_value(self_t, dim, index, 0),
)
def scatter_value(self: Array, dim: int, index: Array, value: Number) -> Array:
    """Write a number where index says."""
    return kernels.on_copy(write_value, self, dim, index, value)


REDUCE = {"add": np.add, "multiply": np.multiply}


def combine_of(reduce: str) -> Any:
    """The ufunc of scatter's old reduce argument."""
    if reduce not in REDUCE:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return REDUCE[reduce]


@op(
    kernel="scatter_gather_tensor_cpu",
    space=None,
    name="scatter",
    out_overlap="apart",
    self=not_implemented,
    src=not_implemented,
)
def scatter_src_reduce(self: Array, dim: int, index: Array, src: Array, reduce: str) -> Array:
    """Add or multiply the elements of a tensor into self where index says."""
    return kernels.on_copy(kernels.scatter_combine_into, self, dim, index, src, combine_of(reduce))


@op(kernel="scatter_gather_tensor_cpu", space=None, name="scatter", out_overlap="apart", self=not_implemented)
def scatter_value_reduce(self: Array, dim: int, index: Array, value: Number, reduce: str) -> Array:
    """Add or multiply a number into self where index says."""
    number = exact_number(value, FROM_NUMPY[self.dtype])
    return kernels.on_copy(kernels.scatter_combine_into, self, dim, index, number, combine_of(reduce))


def scatter_overload(src: Any, value: Any, reduce: str | None) -> tuple[Any, tuple[Any, ...]]:
    """Which of the four scatters a call means, and its last arguments."""
    if value is not None:
        src = value
    if src is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if not isinstance(src, Tensor):
        if not isinstance(src, (bool, int, float, complex)):
            raise TypeError(
                f"scatter(): argument 'src' (position 3) must be Tensor or Number, not {type(src).__name__}"
            )
        return (scatter_value, (src,)) if reduce is None else (scatter_value_reduce, (src, reduce))
    if reduce is None:
        return scatter_src, (src,)
    warn_reduce()
    return scatter_src_reduce, (src, reduce)


def warn_reduce() -> None:
    """Warn, the first time, as torch does."""
    warn_once(
        "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch "
        "release. Use torch.scatter_reduce instead for more reduction options.",
    )


@function(out=True, out_overlap="apart", out_dtype=exact)
def scatter(
    self: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Array:
    """Copy a tensor and write values at the positions that `index` holds along a dimension: the reverse of `gather`.

    For three dimensions and `dim=0` the rule is `out[index[i][j][k]][j][k] = src[i][j][k]`.
    `src` is a tensor at least as large as `index`, or a number (also as `value`) to be written everywhere.
    `reduce` may be "add" or "multiply" to combine with what is there; then there is no gradient.
    If several elements go to one place, only one of them is kept; the gradient of `src` is then not to be trusted.
    """
    if reduce is None and value is None and isinstance(src, Tensor):
        return scatter_src(self, dim, index, src)
    overload, rest = scatter_overload(src, value, reduce)
    return overload(self, dim, index, *rest)


@function(space=None)
def scatter_(
    self: Array, dim: int, index: Array, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Array:
    """In-place version of :func:`scatter`: write `src` or the number `value` where `index` says along `dim`."""
    overload, rest = scatter_overload(src, value, reduce)
    return run_inplace(overload.op, self, (dim, index, *rest))


@op(
    kernel="scatter_gather_tensor_cpu",
    inplace=kernels.scatter_add_into,
    out_overlap="apart",
    self=lambda grad: grad,
    src=lambda grad, dim, index: gather(grad, dim, index),
    result=linear,
    out_dtype=exact,
)
def scatter_add(self: Array, dim: int, index: Array, src: Array) -> Array:
    """Copy a tensor and add values to it at the positions that `index` holds along a dimension.

    For three dimensions and `dim=0` the rule is `out[index[i][j][k]][j][k] += src[i][j][k]`.
    All elements that go to one place are added. `index` has as many dimensions as `input` and is no larger than `src`,
    nor than `input` except along `dim`.
    """
    out = self.copy() if type(self) is np.ndarray else np.array(self)  # formulas may bring scalars
    kernels.scatter_add_into(out, dim, index, src)
    return out


# ------------------------------------------------------------------ whole slices


@op(
    sparse="parts_at",
    packed="moved",
    check_out=same_dtype_elsewhere,
    vmap="selected",
    self=lambda grad, self_sym_sizes, dim, index: index_add(zeros_of(grad, self_sym_sizes), dim, index, grad),
    result=linear,
)
def index_select(self: Array, dim: int, index: Array) -> Array:
    """Select slices along a dimension by a vector of indices, in its order and with repetitions.

    The result has the shape of `input` with size `len(index)` along `dim`. It is a copy, not a view.
    """
    return slices.index_select(self, dim, index)


def slices_for(grad: Any, dim: int, index: Any, source: Any, source_dim: int) -> Any:
    """The slices of a gradient that belong to a source, in the source's shape."""
    if source_dim:
        return expand(index_select(grad, dim, index), source.shape)
    return reshape_to(index_select(grad, dim, index), ())


@op(
    vmap="along",
    packed="rounded_complex",
    kernel="scatter_gather_tensor_cpu",
    inplace=slices.index_add_into,
    out_overlap="apart",
    self=lambda grad: grad,
    source=lambda grad, dim, index, source, source_dim, alpha: scaled(
        slices_for(grad, dim, index, source, source_dim), alpha
    ),
    result=linear,
    out_dtype=exact,
)
def index_add(self: Array, dim: int, index: Array, source: Array, *, alpha: Number = 1) -> Array:
    """Copy a tensor and add slices of another, times `alpha`, to those that `index` names along a dimension.

    For `dim=0` the rule is `out[index[i]] += alpha * source[i]`; indices may repeat, and then all slices are added.
    `source` has size `len(index)` along `dim`, and the sizes of `input` elsewhere.
    """
    out = self.copy() if type(self) is np.ndarray else np.array(self)  # formulas may bring scalars
    slices.index_add_into(out, dim, index, source, alpha)
    return out


@op(
    vmap="along",
    packed="moved_complex",
    inplace=slices.index_copy_into,
    out_overlap="apart",
    autocast="widest",
    self=lambda grad, dim, index: index_fill_value(grad, dim, index, 0),
    source=lambda grad, dim, index, source, source_dim: slices_for(grad, dim, index, source, source_dim),
    result=linear,
    out_dtype=exact,
)
def index_copy(self: Array, dim: int, index: Array, source: Array) -> Array:
    """Copy a tensor and write slices of another into it: slice `i` of `source` becomes slice `index[i]` along `dim`.

    For `dim=0` the rule is `out[index[i]] = source[i]`; an index that repeats keeps one of its slices.
    `source` has size `len(index)` along `dim`, and the sizes of `input` elsewhere.
    """
    return kernels.on_copy(slices.index_copy_into, self, dim, index, source)


def write_fill(self: Array, dim: int, index: Array, value: Any) -> None:
    """Overwrite the slices of self that index names by one value."""
    value = one_element(value)
    slices.check_index_fill(index)
    slices.index_fill_into(self, dim, index, fill_element(self, value))


@op(
    vmap="along",
    packed="moved_complex",
    space=None,
    name="index_fill",
    inplace=write_fill,
    may_overlap="biufcV",
    out_overlap="apart",
    self=lambda grad, dim, index: index_fill_value(grad, dim, index, 0),
    result=lambda self_t, dim, index: index_fill_value(self_t, dim, index, 0),
)
def index_fill_value(self: Array, dim: int, index: Array, value: Number) -> Array:
    """A number in the slices that index names."""
    out = copied(np.asarray(self))
    write_fill(out, dim, index, value)
    return out


@op(
    vmap="entries",
    packed="moved_complex",
    space=None,
    name="index_fill",
    node="IndexFillBackward1",
    inplace=write_fill,
    may_overlap="biufcV",
    out_overlap="apart",
    self=lambda grad, dim, index: index_fill_value(grad, dim, index, 0),
    value=lambda grad, dim, index: sum_all(index_select(grad, dim, distinct(index))),
    result=lambda self_t, dim, index, value_t: index_fill_tensor(self_t, dim, index, value_t),
)
def index_fill_tensor(self: Array, dim: int, index: Array, value: Array) -> Array:
    """The element of a tensor without dimensions in the slices that index names."""
    out = copied(np.asarray(self))
    write_fill(out, dim, index, value)
    return out


@op(vmap="entries", space=None)
def distinct(index: Array) -> Array:
    """The different indices, each once."""
    return np.unique(index)


@answered(meta=lambda value: 0)
def one_element(value: Any) -> Number:
    """A number, or the one in an array without dimensions."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return value  # type: ignore[no-any-return]
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return value.item()  # type: ignore[no-any-return]


@answered(meta=lambda self, value: 0)
def fill_element(self: Array, value: Number) -> Number:
    """A number as index_fill writes it."""
    if isinstance(value, complex) and self.dtype.kind != "c":
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return exact_number(value, FROM_NUMPY[self.dtype])


@function(out=True, out_overlap="apart")
def index_fill(self: Array, dim: int, index: Array, value: Any) -> Array:
    """Copy a tensor and fill the slices along a dimension that `index` names with one value.

    `index` is a vector of indices along `dim`; `value` is a number or a tensor without dimensions.
    """
    return (index_fill_tensor if isinstance(value, Tensor) else index_fill_value)(self, dim, index, value)


@function(space=None)
def index_fill_(self: Array, dim: int, index: Array, value: Any) -> Array:
    """In-place version of :func:`index_fill`: fill the slices along `dim` that `index` names with `value`."""
    overload = index_fill_tensor if isinstance(value, Tensor) else index_fill_value
    warn_if_expanded("index_fill_", self)
    if isinstance(value, Tensor) and not value._array.ndim and overlaps(value._array, self._array):
        value = clone(value)  # which is read before anything is written
    return run_inplace(overload.op, self, (dim, index, value))


# ------------------------------------------------------------------ the tensor as one line


@op(
    vmap="entries",
    check_out=no_overlap,
    self=lambda grad, self, index: put(zeros_of(grad, self.shape), index, grad, True),
    result=linear,
    out_dtype=exactly(
        "take(): self and out expected to have the same dtype, but got self.dtype = {wanted} and out.dtype = {got}"
    ),
)
def take(self: Array, index: Array) -> Array:
    """Pick elements by their position in the flattened tensor.

    `index` counts through `input` in row-major order whatever its shape; the result has the shape of `index`.
    """
    return kernels.take(self, index)


@op(
    vmap="entries",
    inplace=kernels.put_into,
    out=False,
    out_overlap="apart",
    self=lambda grad, index, source, accumulate: (
        grad if accumulate else put(grad, index, zeros_of(grad, source.shape), False)
    ),
    source=lambda grad, index, source, accumulate: reshape_to(take(grad, index), source.shape),
    result=linear,
)
def put(self: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Copy a tensor and write the elements of `source` at positions of the flattened tensor.

    `index` counts through `input` in row-major order and has as many elements as `source`.
    With `accumulate` they are added to what is there, also where indices repeat; otherwise they replace it.
    """
    out = copied(np.asarray(self))
    kernels.put_into(out, index, source, accumulate)
    return out
