"""One program on torch and on pullback: what it answers, or the error it raises, compared."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import pullback
import pullback.distributions

FLOAT_TOLERANCE = 3e-6
"""Functions of single precision differ in their last digits; the draws themselves do not."""


class Side:
    """A library, its distributions, and the parameters made for a program."""

    def __init__(self, library: Any, leaves: bool = False, dtype: str = "float64") -> None:
        self.library = library
        self.d = library.distributions
        self.dtype = getattr(library, dtype)
        self.needs_grad = leaves
        self.leaves: list[Any] = []

    def t(self, values: Any, leaf: bool = True) -> Any:
        """A parameter."""
        made = self.library.tensor(values, dtype=self.dtype, requires_grad=self.needs_grad and leaf)
        if leaf:
            self.leaves.append(made)
        return made

    def make(self, case: Any) -> Any:
        """The distribution of a case."""
        return case(self.d, self.t)

    def given(self, array: np.ndarray) -> Any:
        """A tensor with values that both sides share."""
        return self.library.tensor(array.tolist(), dtype=getattr(self.library, array.dtype.name)).reshape(array.shape)


def both(leaves: bool = False, dtype: str = "float64") -> tuple[Side, Side]:
    """Torch's side and ours."""
    return Side(torch, leaves, dtype), Side(pullback, leaves, dtype)


def array(tensor: Any) -> np.ndarray:
    """The values of a tensor of either side."""
    return np.array(tensor.detach().numpy())


def plain(text: Any) -> str:
    """A message without the modules that classes live in, which differ."""
    return re.sub(r"(torch|pullback)\.distributions(\.\w+)*\.(\w+)", r"\3", str(text)).replace("pullback.", "torch.")


def outcome(program: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a program answers, and its warnings; an error counts as its class and text."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            answer = program()
        except Exception as error:
            answer = f"{type(error).__name__}: {plain(error)}"
    return answer, [plain(warning.message) for warning in said]


def compare(theirs: Any, ours: Any, tolerance: float = 1e-9) -> None:
    """Two answers are the same: tensors by dtype, shape and values, all else by ==; our errors may say more below."""
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs or (isinstance(theirs, str) and str(ours).startswith(theirs + "\n"))
        return
    assert isinstance(ours, pullback.Tensor), ours
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    if theirs.dtype == torch.float32:
        tolerance = max(tolerance, FLOAT_TOLERANCE)
    np.testing.assert_allclose(array(ours), array(theirs), rtol=tolerance, atol=tolerance)


def agree(program: Callable[[Side], Any], tolerance: float = 1e-9, **kind: Any) -> None:
    """A program says the same on both sides."""
    (theirs, their_warnings), (ours, our_warnings) = (outcome(lambda side=side: program(side)) for side in both(**kind))
    assert our_warnings == their_warnings
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), ours
        for one, other in zip(theirs, ours, strict=True):
            compare(one, other, tolerance)
    else:
        compare(theirs, ours, tolerance)


def with_gradients(side: Side, result: Any) -> Any:
    """A result, and the gradients of its weighted sum by the parameters that were made for it."""
    if not result.requires_grad:
        return result
    weights = side.library.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape)
    grads = side.library.autograd.grad((result * weights).sum(), side.leaves, allow_unused=True)
    return [result, *[str(grad) if grad is None else grad for grad in grads]]


def seeded(side: Side, draw: Callable[[], Any]) -> Any:
    """Draw after the seed that both sides share."""
    side.library.manual_seed(7)
    return draw()


def drawn(case: Any, sample_shape: tuple[int, ...] = (5,)) -> np.ndarray:
    """Values from a distribution, drawn by torch for both sides."""
    side = Side(torch)
    with warnings.catch_warnings(action="ignore"):
        return array(seeded(side, lambda: side.make(case).sample(sample_shape)))
