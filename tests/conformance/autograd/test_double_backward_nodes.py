"""The nodes of gradients: with create_graph a gradient has the grad_fn torch's has."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import pullback

CALLS = {
    "mse_loss": lambda t, x, y: t.nn.functional.mse_loss(x, y),
    "smooth_l1_loss": lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y),
    "huber_loss": lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="sum"),
    "binary_cross_entropy": lambda t, x, y: t.nn.functional.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y),
    "glu": lambda t, x, y: t.nn.functional.glu(t.cat([x, y])),
    "soft_margin_loss": lambda t, x, y: t.nn.functional.soft_margin_loss(x, y.detach()),
    "maximum": lambda t, x, y: t.maximum(x, y),
    "fmin": lambda t, x, y: t.fmin(x, y),
    "xlogy": lambda t, x, y: t.xlogy(x, y),
    "lerp": lambda t, x, y: t.lerp(x, y, 0.3),
    "hypot": lambda t, x, y: t.hypot(x, y),
    "copysign": lambda t, x, y: t.copysign(x, y),
    "dist": lambda t, x, y: t.dist(x, y),
    "exp2": lambda t, x, y: t.exp2(x),
    "deg2rad": lambda t, x, y: t.deg2rad(x),
    "nan_to_num": lambda t, x, y: t.nan_to_num(x),
    "ndtr": lambda t, x, y: t.special.ndtr(x),
    "cumsum": lambda t, x, y: t.cumsum(x, 0),
    "max": lambda t, x, y: t.max(x),
    "broadcasting": lambda t, x, y: x * y[0],
    "rfft": lambda t, x, y: t.fft.rfft(x).abs(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_gradient_has_the_node_torch_gives_it(name: str) -> None:
    nodes: list[list[Any]] = []
    for t in (torch, pullback):
        x = t.tensor([0.2, 0.7, 0.4], dtype=t.float64, requires_grad=True)
        y = t.tensor([0.5, 0.1, 0.9], dtype=t.float64, requires_grad=True)
        result = CALLS[name](t, x, y)
        weight = t.ones_like(result).requires_grad_()
        grads = t.autograd.grad(result, (x, y), weight, create_graph=True, allow_unused=True)
        nodes.append([grad if grad is None else type(grad.grad_fn).__name__ for grad in grads])
    assert nodes[1] == nodes[0]
