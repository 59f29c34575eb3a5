"""Points that fill a cube evenly: `torch.quasirandom`."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback as torch
from pullback import Tensor, dtype
from pullback._runtime.building import loaded

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol sequence in up to 21,201 dimensions: each new point falls where the earlier ones left most room.

    Args:
        dimension: how many coordinates a point has.
        scramble: shuffle the digits of all coordinates (by a random triangular matrix and a shift), which keeps the
            points even and makes estimates from them unbiased.
        seed: of the scrambling; without one it draws from the default generator.

    >>> import pullback as torch
    >>> torch.quasirandom.SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = torch.tensor(direction_numbers(dimension, self.MAXBIT))
        self.shift = torch.zeros(dimension, dtype=torch.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next n points, in rows of `dtype` (the default one unless it is given)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if self.num_generated:
            points = self._following(n, dtype)
        elif n == 1:
            points = self._first_point.to(dtype)
        else:
            points = torch.cat((self._first_point.to(dtype), self._following(n - 1, dtype)), dim=-2)
        self.num_generated += n
        if out is None:
            return points
        out.resize_as_(points).copy_(points)
        return out

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype | None = None) -> Tensor:
        """The next 2**m points; with those before they must be a power of two, which keeps them balanced."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Start again with the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next n points."""
        self._advance(n if self.num_generated else n - 1)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _scramble(self) -> None:
        """Multiply the digits of all direction numbers by random triangular matrices, and draw a shift."""
        bits = self.MAXBIT
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        digits = torch.randint(2, (self.dimension, bits), generator=generator)
        self.shift = torch.mv(digits, torch.pow(2, torch.arange(0, bits)))
        triangles = torch.randint(2, (self.dimension, bits, bits), generator=generator).tril().numpy()
        diagonal = np.arange(bits)
        triangles[:, diagonal, diagonal] = 1
        powers = 1 << diagonal[::-1]  # the first digit of a fraction is the highest bit
        digits_of = (self.sobolstate.numpy()[:, None, :] & powers[:, None]) != 0
        scrambled = np.matmul(triangles, digits_of.astype(np.int64)) & 1
        self.sobolstate = torch.from_numpy((scrambled * powers[:, None]).sum(1))

    def _steps(self, n: int) -> np.ndarray[Any, Any]:
        """What the next n points differ in from the ones before: a direction for the lowest zero bit of each number."""
        before = self.num_generated - 1 if self.num_generated else 0
        numbers = np.arange(before, before + n)
        lowest_zero = np.log2((~numbers & (numbers + 1)).astype(np.float64)).astype(np.int64)
        return self.sobolstate.numpy().T[lowest_zero]

    def _advance(self, n: int) -> None:
        if n > 0:
            self.quasi ^= torch.from_numpy(np.bitwise_xor.reduce(self._steps(n), axis=0))

    def _following(self, n: int, dtype: dtype) -> Tensor:
        """The points after the last one."""
        if dtype not in (torch.float32, torch.float64):
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{dtype.scalar_type}'")
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}, {self.dimension}]")
        steps = np.vstack([self.quasi.numpy()[None], self._steps(n)])
        points = np.bitwise_xor.accumulate(steps, axis=0)
        self.quasi.copy_(torch.from_numpy(points[-1]))
        return torch.from_numpy(points[1:]).to(dtype) * 2.0**-self.MAXBIT


def direction_numbers(dimension: int, bits: int) -> np.ndarray[Any, Any]:
    """The directions of Joe and Kuo, which torch and SciPy share."""
    return np.array(loaded("scipy.stats.qmc").Sobol(dimension, scramble=False, bits=bits)._sv, np.int64)
