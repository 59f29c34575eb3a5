"""embedding and embedding_bag: lookups, padding, long rows shortened, gradients, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import on_both, same
from tests.conformance.ops.expressions import agree

F = "torch.nn.functional"
NUMBERS = "torch.tensor([[1, 4, 4], [0, 1, 4]])"
FLAT = "torch.tensor([1, 4, 4, 0, 1])"
OFFSETS = "torch.tensor([0, 2, 2])"
EXPRESSIONS = f"""
{F}.embedding({NUMBERS}, x(5, 3))
{F}.embedding({NUMBERS}.int(), x(5, 3), padding_idx=4)
{F}.embedding({NUMBERS}, x(5, 3), padding_idx=-1)
{F}.embedding({NUMBERS}, x(5, 3), scale_grad_by_freq=True)
{F}.embedding(torch.tensor(2), x(5, 3))
{F}.embedding(torch.zeros(0, dtype=torch.long), x(5, 3))
{F}.embedding({NUMBERS}, torch.arange(15).reshape(5, 3))
torch.embedding(x(5, 3), {NUMBERS}, 1, True)
{F}.embedding_bag({NUMBERS}, x(5, 3))
{F}.embedding_bag({NUMBERS}, x(5, 3), mode='sum')
{F}.embedding_bag({NUMBERS}, x(5, 3), mode='max')
{F}.embedding_bag({NUMBERS}, x(5, 3), mode='sum', per_sample_weights=x(2, 3))
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='sum', padding_idx=4)
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='mean', padding_idx=-1)
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='max', padding_idx=4)
{F}.embedding_bag({FLAT}, x(5, 3), torch.tensor([0, 2, 5]), include_last_offset=True)
{F}.embedding_bag({FLAT}, x(5, 3), torch.tensor([0, 2, 5]), mode='sum', include_last_offset=True)
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}.int())
{F}.embedding_bag({FLAT}[:0], x(5, 3), torch.tensor([0, 0]))
torch.embedding_bag(x(5, 3), {FLAT}, {OFFSETS}, False, 0)
torch.embedding_bag(x(5, 3, dtype=torch.float32), {FLAT}, {OFFSETS}, False, 0)
torch.embedding_bag(x(5, 3), {FLAT}, {OFFSETS}, False, 1)
torch.embedding_bag(x(5, 3), {FLAT}, {OFFSETS}, False, 2)
"""
REFUSED = f"""
{F}.embedding(torch.tensor([5]), x(5, 3))
{F}.embedding(torch.tensor([-1]), x(5, 3))
{F}.embedding(torch.tensor([1.0]), x(5, 3))
{F}.embedding({NUMBERS}.short(), x(5, 3))
{F}.embedding({NUMBERS}, x(5))
{F}.embedding({NUMBERS}, x(5, 3), padding_idx=7)
{F}.embedding({NUMBERS}, x(5, 3), padding_idx=-7)
torch.embedding_renorm_(x(5, 3), {FLAT}, 1.0, 2.0)
torch.embedding_renorm_(x(5, grad=False), {FLAT}, 1.0, 2.0)
torch.embedding_renorm_(x(5, 3, grad=False), {FLAT}.short(), 1.0, 2.0)
{F}.embedding_bag({FLAT}, x(5, 3))
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='foo')
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}[None])
{F}.embedding_bag({FLAT}, x(5, 3), torch.tensor([0, 9]))
{F}.embedding_bag({FLAT} + 3, x(5, 3), {OFFSETS})
{F}.embedding_bag({FLAT}, x(5), {OFFSETS})
{F}.embedding_bag({FLAT}[None, None], x(5, 3))
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, padding_idx=9)
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='max', scale_grad_by_freq=True)
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, per_sample_weights=x(5))
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='sum', per_sample_weights=x(4))
{F}.embedding_bag({FLAT}, x(5, 3), {OFFSETS}, mode='sum', per_sample_weights=torch.ones(5))
{F}.embedding_bag({FLAT}.double(), x(5, 3), {OFFSETS})
"""


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_a_lookup_is_torchs_in_value_graph_and_gradients(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("expression", REFUSED.strip().splitlines())
def test_a_lookup_that_cannot_be_is_refused_in_torchs_words(expression: str) -> None:
    agree(expression)


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_rows_longer_than_max_norm_are_shortened_in_the_table(norm_type: float) -> None:
    @on_both
    def program(torch: Any) -> Any:
        weight = torch.arange(15.0).reshape(5, 3).requires_grad_()
        numbers = torch.tensor([1, 4, 1])
        out = torch.nn.functional.embedding(numbers, weight, max_norm=2.0, norm_type=norm_type)
        bags = torch.nn.functional.embedding_bag(numbers[None] - 1, weight, max_norm=1.0, norm_type=norm_type)
        return [out, bags, weight, weight._version]

    program()


@on_both
def test_bags_scale_gradients_by_how_often_a_row_is_used(torch: Any) -> Any:
    # Where rows occur unequally often, torch divides by the frequency of another row.
    weight = torch.zeros(5, 1, requires_grad=True)
    numbers = torch.tensor([[1, 4, 4], [0, 1, 4]])
    out = torch.nn.functional.embedding_bag(numbers, weight, mode="sum", scale_grad_by_freq=True)
    out.backward(torch.tensor([[6.0], [12.0]]))
    return weight.grad


@on_both
def test_the_table_may_change_after_a_lookup(torch: Any) -> Any:
    weight = torch.arange(15.0).reshape(5, 3).requires_grad_()
    numbers = torch.tensor([[1, 4, 1]])
    first = torch.nn.functional.embedding_bag(numbers, weight, max_norm=2.0)
    second = torch.nn.functional.embedding(numbers, weight, max_norm=1.0)
    return [first, second, torch.autograd.grad(first.sum() + second.sum(), weight)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", ["table", "weights of samples", "gradient"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_nothing_reaches_the_padding_of_a_bag_not_even_zero_times_nan(
    mode: str, dtype: str, place: str, bad: float
) -> None:
    def program(torch: Any) -> Any:
        table = torch.arange(1.0, 26, dtype=getattr(torch, dtype)).reshape(5, 5)
        weights = torch.arange(1.0, 10, dtype=table.dtype).reshape(3, 3)
        grad = torch.ones(3, 5, dtype=table.dtype)
        {"table": table[2], "weights of samples": weights[0, :1], "gradient": grad[0]}[place].fill_(bad)
        wanting = [table.requires_grad_(), *([weights.requires_grad_()] if mode == "sum" else [])]
        bags = torch.nn.functional.embedding_bag(
            torch.tensor([[2, 1, 1], [0, 2, 4], [2, 0, 0]]),
            table,
            mode=mode,
            padding_idx=2,
            per_sample_weights=weights if mode == "sum" else None,
        )
        return torch.autograd.grad(bags, wanting, grad)

    same(program)
