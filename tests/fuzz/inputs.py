"""The leaves of a random program: tensors described in a few words, the same numbers in every library."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

LAYOUTS = ("plain", "transposed", "stepped", "expanded", "offset")
"""How a leaf lies in memory."""
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, float("inf"), float("-inf"), float("nan"), 1e-30, 1e30, 6.0)
"""Numbers at which functions have edges. They are never moved when a program is run on slightly other inputs."""
CARRIED = {"bfloat16": "float32"}
"""Types NumPy has no name for travel as wider ones."""


@dataclass(frozen=True)
class Leaf:
    """One tensor. `values` says its elements where they matter (indices), else `seed`, `low` and `high` do."""

    shape: tuple[int, ...]
    dtype: str
    seed: int = 0
    low: float = -2.0
    high: float = 2.0
    layout: str = "plain"
    special: bool = False
    wants_grad: bool = False
    values: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        said = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[2:] if getattr(self, f.name) != f.default]
        return f"Leaf({', '.join([repr(self.shape), repr(self.dtype), *said])})"

    def simpler(self) -> list[Leaf]:
        """The same leaf with one thing less, for reducing a program."""
        plain = {"layout": "plain", "special": False, "wants_grad": False}
        return [replace(self, **{name: value}) for name, value in plain.items() if getattr(self, name) != value]

    def dense(self) -> Leaf:
        """The same elements, each in memory of its own."""
        return replace(self, layout="plain", special=False, values=tuple(self.laid_out().reshape(-1).tolist()))

    def laid_out(self, noise: int = 0) -> np.ndarray:
        """The elements as they lie in memory."""
        return laid_out(self.numbers(noise).reshape(self.shape), self.layout)

    @lru_cache(64)  # noqa: B019 - a leaf is a description, built once for each library
    def numbers(self, noise: int = 0) -> np.ndarray:
        """The elements in row-major order. With `noise`, those that are not special are moved by a rounding error."""
        kind = np.dtype(CARRIED.get(self.dtype, self.dtype))
        count = int(np.prod(self.shape))
        draw = np.random.RandomState(self.seed)
        if self.values is not None:
            wide = np.array(self.values, "complex128" if kind.kind == "c" else None).reshape(count)
        elif kind.kind in "biu":
            wide = draw.randint(int(self.low), max(int(self.low), int(self.high)) + 1, count)
        else:
            wide = draw.uniform(self.low, self.high, count)
            if kind.kind == "c":
                wide = wide + 1j * draw.uniform(self.low, self.high, count)
        # What was written down may be an index or a count.
        fixed = wide == np.round(wide) if self.values is not None else np.zeros(count, bool)
        if self.special and kind.kind in "fc":
            fixed = draw.rand(count) < 0.4
            chosen = draw.choice(SPECIAL, count)
            wide = np.where(fixed, chosen, wide)
        with np.errstate(over="ignore"):
            array = wide.astype(kind)
        if noise and kind.kind in "fc":
            by = np.random.RandomState(noise).uniform(-1, 1, count) * ROUNDING[self.dtype]
            array = np.where(fixed, array, array * (1 + by)).astype(kind)
        return array

    def build(self, library: Any, noise: int = 0) -> Any:
        """The tensor, as a leaf of its own memory."""
        made = library.from_numpy(self.laid_out(noise))
        if self.dtype in CARRIED:
            made = made.to(getattr(library, self.dtype))
        elif self.layout == "plain":
            made = made.clone()  # memory of the library's own, which can be resized
        return made.requires_grad_() if self.wants_grad else made


ROUNDING = {
    "float64": 4e-16, "complex128": 4e-16, "float32": 2e-7, "complex64": 2e-7, "float16": 1e-3, "bfloat16": 8e-3,
}  # fmt: skip
"""How far a number may be moved without anybody noticing."""


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """A copy of the array that lies in memory as asked."""
    if layout == "transposed":
        return np.array(array.T, order="C").T
    if layout == "stepped" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if layout == "expanded" and array.ndim and array.shape[0]:
        row = array[:1].copy()
        return np.lib.stride_tricks.as_strided(row, array.shape, (0, *row.strides[1:]))
    if layout == "offset":
        return np.concatenate([np.zeros(3, array.dtype), array.reshape(-1)])[3:].reshape(array.shape)
    return array.copy()
