"""The same on the host and on the device, compared: values, shapes, dtypes, gradients, and no way by the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as torch
from pullback.kernels.compiled import room

TOLERANCES = {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


def agree(
    compute: Callable[..., Any], *inputs: Any, grad: bool = True, tolerance: float | None = None, alone: bool = True
) -> None:
    """Compare results and gradients; `alone` says that nothing may go through the host."""
    found = []
    for place in ("cpu", "cuda"):
        given = [t.clone().to(place) if isinstance(t, torch.Tensor) else t for t in inputs]
        leaves = [t for t in given if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())]
        for leaf in leaves:
            leaf.requires_grad_(grad)
        if place == "cuda":
            compute(*given)  # what is made once, like kernels, may take its time
            torch.cuda.reset_fallbacks()
        made = compute(*given)
        outs = [t for t in (made if isinstance(made, (tuple, list)) else [made]) if t is not None]
        wanted = [t for t in outs if t.requires_grad] if grad else []
        grads = []
        if wanted:
            torch.manual_seed(1)
            weights = [torch.randn(t.shape).to(t.dtype).to(place) for t in wanted]
            grads = torch.autograd.grad(wanted, leaves, weights, allow_unused=True)
        if place == "cuda" and alone and room("cuda.ptx") is not None:  # without the compiler there are no kernels
            assert torch.cuda.fallbacks() == {}, torch.cuda.fallbacks()
        found.append([None if t is None else t.detach().cpu() for t in (*outs, *grads)])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        if one is None:
            continue
        assert one.shape == other.shape and one.dtype is other.dtype
        if one.is_complex():
            one, other = (torch.view_as_real(t.resolve_conj()) for t in (one, other))
        bound = tolerance or TOLERANCES.get(str(one.dtype).removeprefix("torch."), 0.0)
        a, b = one.to(torch.float64).numpy(), other.to(torch.float64).numpy()
        scale = max(np.abs(a[np.isfinite(a)]).max(initial=0.0), 1e-3)
        np.testing.assert_allclose(b, a, bound, bound * scale)
