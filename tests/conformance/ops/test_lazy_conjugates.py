"""`x.conj()` looks at the memory of x: every program starts with `x`, a complex matrix, and its conjugate `c`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from tests.conformance.both import same
from tests.conformance.ops.test_quiet_differences import lines, value_of

START = "x = torch.tensor([[1 + 2j, 3 - 4j], [5j, 0.5 + 1j]], dtype=torch.complex64); c = x.conj(); "


@pytest.mark.parametrize("source", lines("lazy"))
def test_a_conjugate_is_a_view_that_remembers_its_sign(source: str) -> None:
    same(lambda torch: value_of(torch, START + source))


def arguments(torch: Any) -> list[tuple[Any, ...]]:
    """Arguments that one in-place method or another takes for a complex matrix of two rows and two columns."""
    other = torch.tensor([[2 + 1j, -1j], [0.5 + 0j, 1 - 3j]], dtype=torch.complex64)
    mask, index = torch.tensor([[True, False], [False, True]]), torch.tensor([1, 0])
    return [
        *[(), (2,), (1,), (0, 1), (other,), (other, 0.5), (other, other.clone()), (mask, 3j), (mask, other)],
        *[(0, index, other), (0, index, 2.5), (0, index.reshape(2, 1), other), ((index,), other), (index, other[0])],
    ]


ELSEWHERE = ("resize_", "set_", "share_memory_", "apply_", "map_", "map2_")
IN_PLACE = [name for name in dir(pullback.Tensor) if name.endswith("_") and name[0] != "_" and name not in ELSEWHERE]


@pytest.mark.parametrize("part", ["conj()", "conj().imag"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_every_method_that_writes_to_a_lazy_view_changes_its_base(name: str, part: str) -> None:
    import torch

    start = np.array([[0.5 + 2.2j, 3 - 0.4j], [5.3j, 0.5 + 1.1j]], np.complex64)
    for mine, its in zip(arguments(pullback), arguments(torch), strict=True):
        expected, base = torch.tensor(start), pullback.tensor(start)
        torch.manual_seed(0)
        pullback.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                view = eval(f"base.{part}", {"base": expected})
                getattr(view, name)(*its)
            except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError):
                continue
            if not expected.equal(torch.tensor(start)):
                written = eval(f"base.{part}", {"base": base})
                try:
                    getattr(written, name)(*mine)
                except TypeError as error:
                    assert "positional argument" in str(error)  # an older form of the method
                    continue
                np.testing.assert_allclose(base.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
                assert (written.is_conj(), written.is_neg()) == (view.is_conj(), view.is_neg())
