"""A program as users write it, read by the type checker: what it can know without running anything."""

from typing import assert_type

import pullback as torch


def gradient_of_a_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
    """Operators, methods, functions and properties of a tensor have types."""
    product = x * y + 2.0
    assert_type(product, torch.Tensor)
    assert_type(product.exp(), torch.Tensor)
    assert_type(torch.sin(product), torch.Tensor)
    assert_type(product.topk(2).values, torch.Tensor)
    assert_type(x.requires_grad, bool)
    assert_type(x.dtype, torch.dtype)
    assert_type(torch.float32, torch.dtype)
    product.sum().backward()
    with torch.no_grad():
        x.add_(1.0)
    return x.grad
