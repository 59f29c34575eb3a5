"""How far apart vectors are: cosine_similarity, pairwise_distance, pdist; and vectors brought to length one."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.element import convert_number
from pullback._arrays.half import is_half
from pullback._arrays.kinds import made_on
from pullback._arrays.memory import row_major
from pullback._arrays.sizes import LARGEST, allocated, check_ints
from pullback._dtype import FROM_NUMPY, float32, int64, result_numpy_dtype
from pullback._modes import grad_enabled
from pullback._op.declare import FUNCTIONAL, TORCH, publish
from pullback._op.define import Array, Number, function, op
from pullback._runtime.messages import type_name
from pullback._runtime.quiet import quiet
from pullback._tensor import Tensor, wrap
from pullback._thresholds import LARGE
from pullback.kernels.numpy.index.subscript import which_outside
from pullback.kernels.numpy.linalg import pairs as kernels
from pullback.kernels.numpy.norm import moments
from pullback.ops.create.cast import to
from pullback.ops.create.copy import clone
from pullback.ops.nn.loss.reduction import refuse_narrow
from pullback.ops.nn.number import plus
from pullback.ops.nn.unrecorded import arrays_of, unrecorded
from pullback.ops.pointwise.arithmetic import add, div, mul, sub
from pullback.ops.pointwise.bounds import clamp_min
from pullback.ops.pointwise.compare import eq
from pullback.ops.reduce.norms import norm, norm_backward, norm_tangent, refuse_empty_norm, vector_norm_dim
from pullback.ops.reduce.sums import axes, sum_dim
from pullback.ops.shape.reshape import common_shape, expand, unsqueeze
from pullback.ops.supported import no_derivative

# ------------------------------------------------------------------ cosine_similarity


def cosines(x: Array, y: Array, dim: int, eps: float) -> Array:
    """Those between the vectors along a dimension."""
    return row_major(np.vecdot(of_length_one(x, dim, eps), of_length_one(y, dim, eps), axis=dim))


def of_length_one(x: Array, dim: int, eps: float) -> Array:
    """The vectors over their lengths."""
    return np.divide(x, np.maximum(np.sqrt(np.vecdot(x, x, axis=dim, keepdims=True)), eps))


@function(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Compute the cosine of the angle between vectors: `dot(x1, x2) / (max(|x1|, eps) * max(|x2|, eps))`.

    `x1` and `x2` are broadcast against each other; the vectors lie along `dim`, which is missing in the result.
    """
    if not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    arrays = arrays_of(x1, x2)
    if arrays is not None and 0 < arrays[0].size < LARGE and arrays[0].shape == arrays[1].shape:
        if -x1.ndim <= dim < x1.ndim:
            return unrecorded(cosines, *arrays, dim, eps)
    kind = FROM_NUMPY[result_numpy_dtype((x1._array, x2._array))]
    if not kind.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {kind.scalar_type}")
    x1, x2 = (x if x.dtype.is_floating_point else to(x, kind) for x in (x1, x2))
    if tuple(x1.shape) != tuple(x2.shape):
        shape = common_shape(tuple(x1.shape), tuple(x2.shape))
        x1, x2 = expand(x1, shape), expand(x2, shape)
    if is_half(kind.numpy):
        eps = float(quiet().run(kind.numpy.type, convert_number(eps, float32)))
    lengths = [clone(vector_norm_dim(x, 2, (dim,), True)) for x in (x1, x2)]
    # As in torch, the bound is out of the graph: the gradient is that of the length, however small.
    before = grad_enabled.get()
    try:
        grad_enabled.set(False)
        for length in lengths:
            length.clamp_min_(eps)  # type: ignore[attr-defined]
    finally:
        grad_enabled.set(before)
    return sum_dim(mul(div(x1, lengths[0]), div(x2, lengths[1])), (dim,))


publish("cosine_similarity", cosine_similarity, FUNCTIONAL)

# ------------------------------------------------------------------ pairwise_distance


@op(
    space=None,
    name="norm",
    node="NormBackward1",
    self=lambda grad, self, p, dim, keepdim, result: norm_backward(grad, self, p, result, dim, keepdim),
    result=lambda self_t, self, p, dim, keepdim, result: norm_tangent(self_t, self, p, result, dim, keepdim),
)
def norm_of_rows(self: Array, p: Number, dim: Any, keepdim: bool) -> Array:
    """The p-norm along dimensions."""
    if self.dtype.kind in "iub":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{FROM_NUMPY[self.dtype].scalar_type}"
        )
    if not self.size and (p < 0 or p == np.inf):
        refuse_empty_norm(self, p, dim)
    return moments.vector_norm(self, p, axes(dim, self.ndim), keepdim)


@function(raw=True, method=False, explained=True)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Tensor:
    """Compute the distances of corresponding vectors: the `p`-norm of `x1 - x2 + eps` along the last dimension.

    `x1` and `x2` are `(..., D)` and broadcast against each other; `eps` keeps gradients finite where they are equal.
    The last dimension is missing in the result, or has size 1 with `keepdim`.
    """
    if isinstance(eps, complex):
        raise TypeError("pairwise_distance(): argument 'eps' must be float, not complex")
    last = max(x1.ndim, x2.ndim) - 1
    difference, eps = sub(x1, x2), float(eps)
    moved = plus(difference, eps) if difference.dtype.category > 1 else add(difference, eps)
    return norm_of_rows(moved, p, (last,), keepdim)


publish("pairwise_distance", pairwise_distance, FUNCTIONAL)

# ------------------------------------------------------------------ pdist


def check_pdist(self: Array, p: float) -> None:
    """Torch's demands on pdist."""
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if FROM_NUMPY[self.dtype].category != 2:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if len(self) > 1 and self.shape[1]:
        refuse_narrow("pdist", self)


@op(
    vmap="entries",
    space="nn.functional",
    method=False,
    out=False,
    check=check_pdist,
    self=lambda grad, self, p, result: pdist_backward(grad, self, p, result),
)
def pdist(self: Array, p: float = 2.0) -> Array:
    """Compute the `p`-norm distances between all pairs of rows of a matrix.

    For `input` of shape `(N, M)` returns `(N * (N - 1) / 2,)`, in the order (0, 1), (0, 2), ..., (1, 2), ...
    """
    check_pdist(self, p)
    return kernels.pdist(self, p)


@op(
    vmap="entries",
    space=None,
    name="_pdist_backward",
    node="PdistBackwardBackward0",
    grad_output=lambda grad: no_derivative("_pdist_backward"),
    self=lambda grad: no_derivative("_pdist_backward"),
    pdist=lambda grad: no_derivative("_pdist_backward"),
)
def pdist_backward(grad_output: Array, self: Array, p: float, pdist: Array) -> Array:
    """The gradient of the rows."""
    refuse_narrow("pdist_backward", self)
    return kernels.pdist_backward(grad_output, self, p, pdist)


publish("pdist", pdist, TORCH)

# ------------------------------------------------------------------ length one


@function(raw=True, space="nn.functional", method=False)
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Scale vectors to length one: `v / max(norm(v), eps)`.

    The vectors lie along `dim` (one dimension or several), and `p` is the order of the norm.
    """
    length = norm(input, p, dim, True)
    length = expand(clamp_min(length, eps), tuple(input.shape))
    return div(input, length) if out is None else div(input, length, out=out)


# ------------------------------------------------------------------ one_hot


@function(raw=True, space="nn.functional", method=False)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Encode class numbers as one-hot vectors.

    `tensor` holds int64 class numbers of any shape; returns an int64 tensor of shape `(*tensor.shape, num_classes)`
    with a one at each class and zeros elsewhere. Unless given, `num_classes` is the largest class plus one.
    """
    if not isinstance(num_classes, (int, np.integer)):
        raise TypeError(f"one_hot(): argument 'num_classes' (position 2) must be int, not {type_name(num_classes)}")
    numbers = tensor._array
    if getattr(numbers, "bdim", None) is not None:
        return one_hot_of_each(tensor, num_classes)
    if numbers.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    check_ints("one_hot", {"num_classes": num_classes})
    if not numbers.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif numbers.min() < 0:
        raise RuntimeError("Class values must be non-negative." + classes_outside(numbers, num_classes))
    elif num_classes == -1:
        num_classes = int(numbers.max()) + 1
    elif numbers.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes." + classes_outside(numbers, num_classes))
    if num_classes > LARGEST:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    out = made_on(tensor.device, allocated, np.zeros, (*numbers.shape, num_classes), numbers.dtype)
    out.reshape(-1)[np.arange(numbers.size) * num_classes + numbers.reshape(-1)] = 1
    return wrap(out)


def classes_outside(numbers: Array, num_classes: int) -> str:
    """What is added to an error about classes: which is none of so many, and where it stands."""
    return which_outside(numbers, num_classes, 0, "tensor") if num_classes > 0 else ""


def one_hot_of_each(tensor: Tensor, num_classes: int) -> Tensor:
    """one_hot inside vmap, where nobody looks which classes there are."""
    if tensor.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if num_classes <= 0:
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    return to(eq(unsqueeze(tensor, -1), wrap(made_on(tensor.device, np.arange, num_classes))), int64)  # type: ignore[no-any-return]
