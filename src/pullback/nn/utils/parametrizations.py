"""Parametrizations that come with the library: orthogonal, weight_norm and spectral_norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import pullback
from pullback import Tensor
from pullback.nn import functional as F
from pullback.nn.modules.module import Module
from pullback.nn.utils import parametrize
from pullback.nn.utils.spectral_norm import output_dim

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def weight_of(module: Module, name: str) -> Tensor:
    """The tensor to parametrize."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ------------------------------------------------------------------ orthogonal


class _OrthMaps(Enum):
    """The ways from any matrix to an orthogonal one."""

    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def is_orthogonal(q: Tensor) -> bool:
    """Whether the columns are orthonormal, up to rounding."""
    rows, columns = q.size(-2), q.size(-1)
    tolerance = 10.0 * rows * pullback.finfo(q.dtype).eps
    return bool(pullback.allclose(q.mH @ q, pullback.eye(columns, dtype=q.dtype), atol=tolerance))


def make_orthogonal(matrix: Tensor) -> Tensor:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    x, tau = pullback.geqrf(matrix)
    q = pullback.linalg.householder_product(x, tau)
    q *= x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return q


class _Orthogonal(Module):
    """Any matrix to one with orthonormal columns (or rows, if there are fewer)."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The orthogonal matrix."""
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        q = self._reflections(X) if self.orthogonal_map == _OrthMaps.householder else self._rotation(X)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _rotation(self, x: Tensor) -> Tensor:
        """By a skew-symmetric matrix: its exponential, or its Cayley transform."""
        rows, columns = x.size(-2), x.size(-1)
        x = x.tril()
        if rows != columns:
            missing = x.new_zeros(rows, rows - columns).expand(*x.shape[:-2], -1, -1)
            x = pullback.cat([x, missing], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map == _OrthMaps.matrix_exp:
            q = pullback.matrix_exp(skew)
        else:
            one = pullback.eye(rows, dtype=skew.dtype)
            q = pullback.linalg.solve(pullback.add(one, skew, alpha=-0.5), pullback.add(one, skew, alpha=0.5))
        return q[..., :columns] if rows != columns else q

    def _reflections(self, x: Tensor) -> Tensor:
        """By Householder's reflections, whose vectors stand below the diagonal and whose signs on it."""
        vectors = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
        q = pullback.linalg.householder_product(vectors, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @pullback.no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """The matrix this one is made from; with trivialization, the base is moved there instead."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        q = Q.mT if wide else Q
        if not hasattr(self, "base"):
            return self._from_reflections(q, wide)
        rows, columns = q.size(-2), q.size(-1)
        if rows != columns:
            rest = pullback.randn(*q.size()[:-2], rows, rows - columns, dtype=q.dtype)
            q = make_orthogonal(pullback.cat([q, rest], dim=-1))
        else:
            q = q.clone() if is_orthogonal(q) else make_orthogonal(q)
        self.base = q
        # Both maps send 0 to the identity; for reflections the signs on the diagonal are -1.
        start = pullback.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _from_reflections(self, q: Tensor, wide: bool) -> Tensor:
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        vectors, tau = pullback.geqrf(q)
        diagonal = vectors.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        diagonal[tau == 0.0] *= -1
        return vectors.mT if wide else vectors


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix orthogonal while it is learnt."""
    weight = weight_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    orth = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, orth, unsafe=True)


# ------------------------------------------------------------------ weight norm


class _WeightNorm(Module):
    """A weight from its length and direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """direction / |direction| * length."""
        return pullback._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The length and the direction."""
        return pullback.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn length and direction of a weight by themselves."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def accept_old_names(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        old = (f"{prefix}{name}_g", f"{prefix}{name}_v")
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(accept_old_names)
    return module


# ------------------------------------------------------------------ spectral norm


class _SpectralNorm(Module):
    """A weight divided by an estimate of its largest singular value."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            rows, columns = matrix.size()
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)  # a good estimate from the start

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.flatten(1)

    @pullback.no_grad()
    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        """Improve the singular vectors, in place."""
        for _ in range(n_power_iterations):
            self._u = F.normalize(pullback.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
            self._v = F.normalize(pullback.mv(matrix.H, self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Tensor) -> Tensor:
        """weight / sigma."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # The graph keeps copies: the next call writes into the buffers again.
        u, v = self._u.clone(), self._v.clone()
        return weight / pullback.vdot(u, pullback.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself: dividing it changes it least."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value."""
    weight = weight_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return parametrize.register_parametrization(module, name, made)
