"""Dropout, rrelu and gumbel_softmax: torch's very random numbers, masks, graphs and the state left behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as TORCH

import pullback
from tests.conformance.both import on_both
from tests.conformance.ops.expressions import agree

F = "torch.nn.functional"
NUMBERS = np.random.default_rng(0).standard_normal((6, 5, 4, 3))
CALLS = [
    "F.dropout(x, {p})",
    "F.dropout(x.permute(3, 1, 0, 2), {p})",
    "F.dropout(x + 0, {p}, inplace=True)",
    "F.dropout1d(x.reshape(6, 5, 12), {p})",
    "F.dropout1d(x.reshape(30, 12), {p})",
    "F.dropout1d(x.reshape(30, 12) + 0, {p}, inplace=True)",
    "F.dropout2d(x, {p})",
    "F.dropout2d(x + 0, {p}, inplace=True)",
    "F.dropout3d(x[None], {p})",
    "F.dropout3d(x, {p})",
    "F.alpha_dropout(x, {p}, True)",
    "F.alpha_dropout(x + 0, {p}, True, True)",
    "F.feature_alpha_dropout(x, {p}, True)",
    "torch.dropout(x, {p}, True)",
    "torch.dropout_(x + 0, {p}, True)",
    "torch.feature_dropout(x, {p}, True)",
    "torch.native_dropout(x, {p}, True)[0]",
    "torch.native_dropout(x.permute(3, 1, 0, 2), {p}, None)[0]",
]


def bits(torch: Any, call: str, dtype: str) -> Any:
    """The bytes of a result and of its gradient, its node, and the state of the generator afterwards."""
    torch.manual_seed(7)
    x = torch.from_numpy(NUMBERS.astype(dtype)).requires_grad_()
    out = eval(call, {"torch": torch, "F": torch.nn.functional, "x": x})
    (grad,) = torch.autograd.grad(out.sum(), x)
    parts = [np.ascontiguousarray(part.detach().numpy()).tobytes() for part in (out, grad)]
    return parts, type(out.grad_fn).__name__, torch.get_rng_state().numpy().tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("p", [0.3, 1.0])
@pytest.mark.parametrize("call", CALLS)
def test_dropout_draws_torchs_numbers_bit_for_bit(call: str, p: float, dtype: str) -> None:
    assert bits(pullback, call.format(p=p), dtype) == bits(TORCH, call.format(p=p), dtype)


RRELU = [
    "F.rrelu(x, training=True)",
    "F.rrelu(x + 0, 0.2, 0.7, True, True)",
    "torch.rrelu(x.permute(3, 1, 0, 2), training=True)",
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("call", RRELU)
def test_rrelu_draws_torchs_slopes_bit_for_bit(call: str, dtype: str) -> None:
    assert bits(pullback, call, dtype) == bits(TORCH, call, dtype)


@pytest.mark.parametrize("call", ["F.dropout(x, 0.0)", "F.dropout(x, training=False)", "F.dropout2d(x, 0.0)"])
def test_dropout_that_drops_nothing_gives_back_its_input(call: str) -> None:
    x = pullback.ones(2, 3, 4, 5)
    assert eval(call, {"F": pullback.nn.functional, "x": x}) is x


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_is_torchs_draw(hard: bool) -> None:
    @on_both
    def program(torch: Any) -> Any:
        torch.manual_seed(3)
        x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4).requires_grad_()
        out = torch.nn.functional.gumbel_softmax(x, 0.7, hard, dim=0)
        return [out, out.grad_fn, torch.autograd.grad((out**2).sum(), x)]

    program()


REFUSED = f"""
{F}.dropout(x(3), 1.5)
torch.dropout(x(3), 1.5, True)
torch.feature_dropout(x(3), 0.5, True)
{F}.dropout(torch.ones(3, dtype=torch.long))
{F}.dropout(torch.ones(3, dtype=torch.cfloat))
{F}.dropout(3.0)
{F}.dropout(x(3), 0.5, True, True)
{F}.dropout1d(x(3))
{F}.dropout1d(x(1, 2, 3, 4))
{F}.dropout2d(x(3))
{F}.dropout2d(x(3), training=False)
{F}.dropout3d(x(3), 0.0)
{F}.dropout2d(x(2, 2, 2), 0.0)
{F}.alpha_dropout(x(3), 2.0, True)
torch.native_dropout(x(3), 2.0, True)
{F}.rrelu(x(3), 0.5, 0.2)
{F}.rrelu(x(3), 0.1, float('inf'), True)
{F}.rrelu(torch.ones(3, dtype=torch.long))
{F}.rrelu(torch.ones(3).half(), training=True)
{F}.gumbel_softmax(torch.ones(3, dtype=torch.long))
"""


@pytest.mark.parametrize("expression", REFUSED.strip().splitlines())
def test_what_cannot_be_dropped_is_refused_or_warned_about_in_torchs_words(expression: str) -> None:
    agree(expression)
