"""What a call leaves behind for later ones (programs, recipes, tables) does not change what these compute.

Every op is called several times: with operands that are one and the same tensor, then with others of the same shapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from tests.op_samples import Sampled, as_tensor, outputs_of, sample, sampled_ops

SHARED, APART = 5, 3
"""Calls of each kind; the fourth of a kind is the one that is written down."""
SORTED = {"places"}
"""Ops that look for places among sorted numbers; what they find among others is anything."""


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def one_for_all(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the same shape and dtype as one array."""
    first: dict[Any, Any] = {}
    return {
        name: first.setdefault((value.shape, value.dtype), value) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }


def turned(value: Any, by: int) -> Any:
    """Arrays with their elements in another order: other values, of the same domain."""
    if isinstance(value, list):
        return [turned(item, by + nr) for nr, item in enumerate(value)]
    return np.roll(value, by) if isinstance(value, np.ndarray) else value


def outcome(sampled: Sampled, device: str) -> list[Any]:
    """Outputs and gradients as arrays of the host; one array is one tensor, wherever it is given."""
    known: dict[int, Any] = {}

    def on_device(value: Any, moving: bool) -> Any:
        if isinstance(value, list):
            return [on_device(item, moving) for item in value]
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in known:
            known[id(value)] = as_tensor(value).to(device)
        if moving:
            known[id(value)].requires_grad_()
        return known[id(value)]

    moving = sampled.moving()
    for name in moving:
        on_device(sampled.arguments[name], True)
    outs = outputs_of(sampled.call({name: on_device(value, False) for name, value in sampled.arguments.items()}))
    wanted, leaves = [out for out in outs if out.requires_grad], [t for t in known.values() if t.requires_grad]
    grads: list[Any] = []
    if wanted and leaves:
        weights = [pullback.ones(out.shape, dtype=out.dtype, device=out.device) for out in wanted]
        grads = list(pullback.autograd.grad(wanted, leaves, weights, allow_unused=True))
    return [None if t is None else t.detach().cpu().resolve_conj().numpy() for t in (*outs, *grads)]


@pytest.mark.parametrize("key", sampled_ops(False))
def test_an_op_computes_the_same_whatever_was_computed_before(key: str) -> None:
    sampled = sample(key)
    assert sampled is not None
    for number in range(SHARED + APART):
        arguments = {name: turned(value, number) for name, value in sampled.arguments.items()}
        if key in SORTED:
            arguments |= {name: np.sort(value) for name, value in arguments.items() if isinstance(value, np.ndarray)}
        given = Sampled(sampled.op, one_for_all(arguments) if number < SHARED else arguments)
        try:
            here = outcome(given, "cpu")
        except (NotImplementedError, RuntimeError, ValueError, IndexError):
            continue  # the host does not take these
        for one, other in zip(here, outcome(given, "cuda"), strict=True):
            if one is not None:
                np.testing.assert_allclose(other, one, 1e-6, 1e-7, err_msg=f"call {number}")
