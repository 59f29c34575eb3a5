"""Weight normalization: a weight from its length and its direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._arrays.half import rounded, widened
from pullback._op.define import Array, Number, function, op
from pullback._tensor import Tensor
from pullback.kernels.numpy.norm.moments import vector_norm
from pullback.ops.nn.loss.similarity import norm_of_rows
from pullback.ops.nn.norm.layer_norm import plain_tuple
from pullback.ops.pointwise.arithmetic import mul
from pullback.ops.pointwise.elementary import sqrt
from pullback.ops.reduce.norms import norm_backward, norm_tangent
from pullback.ops.reduce.sums import sum_dim


def others(x: Any, dim: int) -> tuple[int, ...]:
    """Every dimension but one."""
    return tuple([d for d in range(x.ndim) if d != dim])


def along_others(x: Any, dim: int) -> Any:
    """The sum over every dimension but one, which stays where it is."""
    return sum_dim(x, others(x, dim), True)


def weight_norm_grads(grad: Any, v: Any, g: Any, norms: Any, dim: int, wants: Any) -> Any:
    """The gradients of the direction and of the length."""
    if isinstance(v, Tensor):
        # The norms are an output without history. Torch's second derivative leaves them out and fails gradgradcheck;
        # here they are computed anew, so that it is right.
        norms = sqrt(along_others(v * v, dim))
    aligned = along_others(grad * v, dim)
    d_v = (g / norms) * (grad - v * (aligned / (norms * norms))) if wants[0] else None
    return d_v, aligned / norms if wants[1] else None


def weight_norm_tangent(v_t: Any, g_t: Any, v: Any, g: Any, dim: int) -> Any:
    """The tangents of the weight and of the norms, which are computed anew here too."""
    norms = sqrt(along_others(v * v, dim))
    norms_t = along_others(v * v_t, dim) / norms
    return v_t * (g / norms) + v * ((g_t - g * norms_t / norms) / norms), norms_t


JOINT = "one formula for all"


@op(
    vmap="entries",
    space=None,
    name="_weight_norm_interface",
    outputs=("result0", "result1"),
    v=JOINT,
    g=JOINT,
    backward=lambda grads, v, g, result1, dim, wants: weight_norm_grads(grads[0], v, g, result1, dim, wants),
    result=lambda v_t, g_t, v, g, dim: weight_norm_tangent(v_t, g_t, v, g, dim),
)
def weight_norm_op(v: Array, g: Array, dim: int = 0) -> Any:
    """v * (g / |v|) with the norms over every dimension but the first or the last; also the norms.

    The norms of half precision are float32.
    """
    wide, lengths = widened(v), widened(g)
    norms = np.sqrt(np.add.reduce(wide * wide, others(v, dim), keepdims=True))
    return rounded(wide * (lengths / norms), v.dtype), norms


weight_norm_op.op.fields = plain_tuple


@function(method=False)
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """The weight with the direction of v and the lengths g along `dim` (-1: one length for everything)."""
    if dim in (0, v.dim() - 1):
        return weight_norm_op(v, g, dim)[0]  # type: ignore[no-any-return]
    return mul(v, g / norm_except_dim(v, 2, dim))


@op(
    vmap="entries",
    space=None,
    name="norm",
    node="NormBackward0",
    self=lambda grad, self, p, result: norm_backward(grad, self, p, result, None, False),
    result=lambda self_t, self, p, result: norm_tangent(self_t, self, p, result, None, False),
)
def norm_of_all(self: Array, p: Number) -> Array:
    """The p-norm of all elements."""
    return vector_norm(self, p, None, False)


@function(method=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Compute the norm over every dimension but `dim`, shaped to broadcast against the tensor.

    `pow` is the order of the norm. With `dim=-1` it is the norm of all elements, without dimensions.
    """
    if dim == -1:
        return norm_of_all(v, pow)  # type: ignore[no-any-return]
    shape = [1] * v.dim()
    if dim == 0:
        shape[0] = v.size(0)
        return norm_of_rows(v.contiguous().view(v.size(0), -1), pow, (1,), False).view(shape)  # type: ignore[no-any-return]
    if dim == v.dim() - 1:
        shape[-1] = v.size(-1)
        return norm_of_rows(v.contiguous().view(-1, v.size(-1)), pow, (0,), False).view(shape)  # type: ignore[no-any-return]
    return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)  # type: ignore[no-any-return]
