"""Tensors that change their own shape inside transforms: what they and their views show, and when they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.both import same

PROGRAMS = {
    "a view that is written to": "y = (x * x)[0]; y.squeeze_(); y.mul_(x.sum())",
    "a view of the input": "y = x[0]; y.squeeze_(); y.mul_(2)",
    "a tensor that is written to": "y = x * x; y.transpose_(0, 2); y.mul_(x.sum())",
    "a tensor seen before": "v = x * x; y = v[0]; v.transpose_(0, 2); v.mul_(x.sum())",
    "a tensor seen before and after": "v = x * x; u = v[0]; v.transpose_(0, 2); y = v[0]; u.mul_(x.sum())",
    "a view seen before and after": "v = (x * x)[1:]; u = v[0]; v.squeeze_(); y = v[0]; u.mul_(x.sum()); v.mul_(3)",
    "its base": "v = x * x; y = v[0]; y.squeeze_(); v.mul_(x)",
    "several changes": "y = (x * x)[:2]; y.squeeze_(); y.t_(); y.unsqueeze_(0); y.mul_(x.sum())",
    "changes between views": "v = x * x; v.squeeze_(); u = v[0]; v.t_(); w = v[0]; u.mul_(x.sum()); w.mul_(3); y = v",
    "a tensor and its view": "v = x * x; y = v[1:]; v.squeeze_(); y.unsqueeze_(0); v.mul_(x.sum())",
    "one of several views": "y = (x * x).unbind(0)[0]; y.squeeze_()",
    "a view of one of several": "y = (x * x).unbind(0)[0][None]; y.squeeze_()",
    "a write to one of several": "y = (x * x).split(1)[0]; y.mul_(2)",
    "a view of the input alone": "y = x[0]; y.unsqueeze_(0)",
}
TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jvp": lambda F, f, x: F.jvp(f, (x,), (x * 0.1,)),
    "vmap": lambda F, f, x: F.vmap(f)(x[None].repeat(2, 1, 1, 1)),
    "jacfwd": lambda F, f, x: F.jacfwd(f)(x),
    "jacrev": lambda F, f, x: F.jacrev(f)(x),
    "jacfwd of jacfwd": lambda F, f, x: F.jacfwd(F.jacfwd(f))(x),
    "jacfwd of jacrev": lambda F, f, x: F.jacfwd(F.jacrev(f))(x),
    "jacrev of jacfwd": lambda F, f, x: F.jacrev(F.jacfwd(f))(x),
    "jacrev of jacrev": lambda F, f, x: F.jacrev(F.jacrev(f))(x),
    "jvp of jvp": lambda F, f, x: F.jvp(lambda x: F.jvp(f, (x,), (x,))[1], (x,), (x,)),
    "vmap of jacrev": lambda F, f, x: F.vmap(F.jacrev(f))(x[None].repeat(2, 1, 1, 1)),
    "vmap of jacfwd": lambda F, f, x: F.vmap(F.jacfwd(f))(x[None].repeat(2, 1, 1, 1)),
    "grad of vmap": lambda F, f, x: F.grad(lambda x: F.vmap(f)(x).sum())(x[None].repeat(2, 1, 1, 1)),
    "vmap of vmap": lambda F, f, x: F.vmap(F.vmap(f))(x[None, None].repeat(2, 3, 1, 1, 1)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("change", PROGRAMS)
def test_views_follow_a_tensor_that_changes_its_shape(change: str, transform: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            names = {"torch": torch, "x": x}
            exec(PROGRAMS[change], names)
            return names["y"] * names["y"]

        return TRANSFORMS[transform](torch.func, function, torch.arange(1.0, 7.0).reshape(3, 1, 2))

    same(program)


def test_the_input_of_a_gradient_keeps_its_shape_inside_a_batch() -> None:
    def program(torch: Any) -> Any:
        return torch.func.grad(lambda x: torch.func.vmap(lambda x: x.squeeze_() * 2)(x).sum())(torch.ones(2, 1))

    same(program)
