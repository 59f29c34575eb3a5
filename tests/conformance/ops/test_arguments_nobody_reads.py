"""Arguments of wrong types that a call has no use for, where nothing is computed: torch refuses them before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


def kind(source: str) -> None:
    """The class of what is raised, if anything is."""

    def program(torch: Any) -> Any:
        try:
            value_of(torch, source)
        except Exception as error:
            return type(error).__name__
        return None

    same(program)


@pytest.mark.parametrize("offset", ["nan", "0.0", "1.5", "inf", "2**63", "2**70", "-1", "1", "None"])
@pytest.mark.parametrize("size", [0, 1])
def test_the_offset_of_a_window_is_an_integer_whatever_it_shows(size: int, offset: str) -> None:
    made = "x = torch.ones(3)"
    kind(f"{made}; torch.as_strided(x, ({size},), (1,), storage_offset={offset})")
    kind(f"{made}; torch.as_strided_copy(x, ({size},), (1,), storage_offset={offset})")
    kind(f"{made}; torch.as_strided_scatter(x, torch.ones({size}), ({size},), (1,), storage_offset={offset})")
    kind(f"{made}; x.as_strided_(({size},), (1,), storage_offset={offset})")
    kind(f"{made}; torch.func.vmap(lambda x: torch.as_strided(x, ({size},), (1,), {offset}))(x.expand(2, 3))")


@pytest.mark.parametrize("value", ["1j", "1+0j", "'1'", "None", "2**70", "nan"])
@pytest.mark.parametrize("pad", ["(0, 1)", "(0, 0)", "()"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64", "bool"])
def test_what_pad_fills_in_is_no_complex_number(dtype: str, pad: str, value: str) -> None:
    agree(f"F.pad(torch.ones(3, 2, dtype=torch.{dtype}), {pad}, 'constant', {value})")
    kind(f"F.pad(torch.ones(3, 2, dtype=torch.{dtype}), {pad}, 'reflect', {value})")


@pytest.mark.parametrize("momentum", ["None", "1j", "'a'", "2"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 3, 4), (2, 3, 0)])
@pytest.mark.parametrize("name", ["batch_norm", "native_batch_norm", "instance_norm"])
def test_a_momentum_without_running_statistics_is_a_number(name: str, shape: Any, momentum: str) -> None:
    last = "" if name == "native_batch_norm" else ", True"
    kind(f"torch.{name}(torch.ones({shape}), None, None, None, None, True, {momentum}, 1e-5{last})")
