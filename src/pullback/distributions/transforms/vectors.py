"""Transforms of vectors and matrices: onto the simplex, and onto triangular and positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.distributions import constraints
from pullback.distributions.transforms.base import Transform, require_dims
from pullback.distributions.transforms.elementwise import _clipped_sigmoid, _SameByClass
from pullback.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from pullback.nn import functional as F


class SoftmaxTransform(_SameByClass):
    """Onto the simplex by exp and normalizing; not bijective: adding a number to all elements changes nothing."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        """The same shape, of at least one dimension."""
        require_dims(len(shape), 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_SameByClass):
    """Onto the simplex of one more dimension, by breaking a piece off what is left of a stick, again and again."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        pieces = _clipped_sigmoid(x - _offsets(x, x.shape[-1]).log())
        left = (1 - pieces).cumprod(-1)
        return F.pad(pieces, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = torch.clamp(1 - cropped.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + _offsets(y, cropped.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The matrix of derivatives is triangular: the sum of the logarithms of its diagonal."""
        x = x - _offsets(x, x.shape[-1]).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One element more."""
        require_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        """One element less."""
        require_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] - 1,)


def _offsets(like: Tensor, n: int) -> Tensor:
    """n, n - 1, ..., 1: with these a vector of zeros becomes the middle of the simplex."""
    return n + 1 - like.new_ones(n).cumsum(-1)


class CorrCholeskyTransform(Transform):
    """From vectors of D(D-1)/2 numbers onto Cholesky factors of D x D correlation matrices.

    The numbers become partial correlations by tanh; row after row, they break a stick of squared length one.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + torch.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return partial * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        """The Jacobian of breaking the sticks and of tanh."""
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        of_sticks = 0.5 * left.log().sum(-1)
        of_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return of_sticks + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        """From N numbers to a matrix."""
        require_dims(len(shape), 1)
        n = shape[-1]
        side = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if side * (side - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (side, side)

    def inverse_shape(self, shape: Any) -> Any:
        """From a matrix to its numbers below the diagonal."""
        require_dims(len(shape), 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class LowerCholeskyTransform(_SameByClass):
    """From matrices onto lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameByClass):
    """From matrices onto positive definite ones: L Lᵀ of the lower triangular one."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))
