"""Arguments of wrong types or sizes that a call might not look at, or in another order: torch refuses them before."""

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


@pytest.mark.parametrize("dim", ["nan", "inf", "1.5", "-inf", "1j"])
@pytest.mark.parametrize("call", ["softmax", "log_softmax", "softmin", "glu", "gumbel_softmax"])
def test_dimensions_that_are_no_integers(call: str, dim: str) -> None:
    kind(f"F.{call}(torch.ones(4), dim={dim})")
    kind(f"F.{call}(torch.ones(4).double(), dim={dim})")


@pytest.mark.parametrize("count", ["1.5", "nan", "1", "inf"])
def test_counts_and_places_that_are_no_integers(count: str) -> None:
    kind(f"torch.multinomial(torch.ones(3), {count}, replacement=True)")
    kind(f"F.embedding(torch.tensor([0]), torch.ones(3, 3), padding_idx={count})")
    kind(f"F.ctc_loss(torch.zeros(3, 1, 4), torch.tensor([[2, 2]]), [3], [2], blank={count})")


@pytest.mark.parametrize("dtype", ["bool", "complex64", "uint8", "int64", "float32"])
@pytest.mark.parametrize("ends", ["1, 0", "0, inf", "nan, 5", "0, 5, nan", "0, 5, inf", "0, -5, -inf", "0, 2", "9"])
def test_ranges_are_refused_for_their_dtype_first(ends: str, dtype: str) -> None:
    kind(f"torch.arange({ends}, dtype=torch.{dtype})")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("number", ["70000.0", "1e30", "1e39", "inf", "-1e30", "0.5"])
def test_margins_fit_into_the_dtype_and_lengths_are_bounded_by_what_does_not(number: str, dtype: str) -> None:
    made = f"a = torch.ones(2, 2).to(torch.{dtype}); b = torch.tensor([[1, -1], [-1, 1]]).to(torch.{dtype})"
    agree(f"{made}; F.hinge_embedding_loss(a, b, margin={number}, reduction='none')")
    if number != "1e39" and dtype != "int64":
        agree(f"{made}; F.cosine_similarity(a, b, eps={number})")


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float64", "float16", "int64", "bool"])
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_weights_of_the_binary_cross_entropy_that_it_cannot_be_multiplied_with(of: str, dtype: str) -> None:
    made = f"a = torch.tensor([0.25, 0.5]).to(torch.{of}); w = torch.tensor([1.0, 1.0]).to(torch.{dtype})"
    agree(f"{made}; F.binary_cross_entropy(a, a, weight=w)")
    agree(f"{made}; F.binary_cross_entropy(a, a, weight=w[0], reduction='none')")
    agree(f"{made}; F.binary_cross_entropy_with_logits(a, a, weight=w)")
    agree(f"{made}; F.binary_cross_entropy_with_logits(a, a, pos_weight=w)")


def test_truths_are_no_indices_of_bags() -> None:
    kind("F.embedding_bag(torch.ones(2, 2).bool(), torch.ones(4, 3))")
