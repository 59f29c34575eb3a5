"""Writes, inside transforms, into what a function computed there from tensors it captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.both import attempt, same

WRITES = {
    "a copy": "y = b.clone(); y.mul_(x)",
    "a product": "y = b * 2; y.mul_(x)",
    "a copy in another dtype": "y = b.to(torch.float64); y.mul_(x)",
    "a view of a copy": "y = b.clone(); y[1:].mul_(x[1:])",
    "a row of a stack": "y = torch.stack([b, b]); y[0].mul_(x)",
    "one of two results": "y = torch.sort(b)[0]; y.mul_(x)",
    "an element": "y = b.clone(); y[1] = x.sum()",
    "what integers became": "y = torch.arange(3).float(); y.mul_(x)",
    "a copy of a copy": "y = b.clone(); y.mul_(2); w = b.clone(); w.copy_(y); w.mul_(x); y = w",
    "a copy of what wanted gradients": "y = (p * 2).detach(); y.mul_(x)",
    "a copy seen before": "y = b.clone(); v = y.view(3, 1); y.mul_(x); y = v * 2",
    "a tensor out= was written to": "y = torch.empty(3); torch.mul(b, 2, out=y); y.mul_(x)",
    "zeros like it": "y = torch.zeros_like(b); y.add_(x)",
    "what it makes": "y = b.new_empty(3); y.copy_(x * x)",
    "a window": "y = torch.hann_window(3); y.mul_(x)",
    "the sum of a matrix": "y = b.expand(2, 3).sum(0); y += x * x",
}
TRANSFORMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "jvp": lambda torch, f, x: torch.func.jvp(f, (x,), (x * 0.1,)),
    "jacfwd": lambda torch, f, x: torch.func.jacfwd(f)(x),
    "jacrev": lambda torch, f, x: torch.func.jacrev(f)(x),
    "jacfwd of jacfwd": lambda torch, f, x: torch.func.jacfwd(torch.func.jacfwd(f))(x),
    "jacfwd of jacrev": lambda torch, f, x: torch.func.jacfwd(torch.func.jacrev(f))(x),
    "jacrev of jacfwd": lambda torch, f, x: torch.func.jacrev(torch.func.jacfwd(f))(x),
    "jacrev of jacrev": lambda torch, f, x: torch.func.jacrev(torch.func.jacrev(f))(x),
    "jvp of jvp": lambda torch, f, x: torch.func.jvp(lambda x: torch.func.jvp(f, (x,), (x,))[1], (x,), (x,)),
    "jvp beside vmap": lambda torch, f, x: torch.func.vmap(lambda w: torch.func.jvp(f, (x,), (w,))[1])(torch.eye(3)),
    "the outer of two": lambda torch, f, x: torch.func.jvp(
        lambda x: torch.func.jvp(lambda z: f(x) * z, (x,), (x,))[1], (x,), (x,)
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("write", WRITES)
def test_what_was_computed_from_captured_tensors_may_be_written_to(write: str, transform: str) -> None:
    def program(torch: Any) -> Any:
        x, b = torch.tensor([4.0, 5.0, 6.0]), torch.tensor([1.0, 3.0, 2.0])
        p = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

        def function(x: Any) -> Any:
            names = {"torch": torch, "x": x, "b": b, "p": p}
            exec(WRITES[write], names)
            return names["y"] * x.sum()

        return TRANSFORMS[transform](torch, function, x), b

    same(program)


@pytest.mark.parametrize("view", ["b", "b.view(-1)", "b.detach()", "b.contiguous()", "b.reshape(3)", "b[:]"])
def test_captured_tensors_and_views_of_them_may_not(view: str) -> None:
    def program(torch: Any) -> Any:
        b = torch.tensor([1.0, 3.0, 2.0])

        def function(x: Any) -> Any:
            return eval(view, {"b": b}).mul_(x)

        with pytest.raises(RuntimeError, match="would mutate a captured Tensor"):
            torch.func.jacfwd(function)(torch.tensor([4.0, 5.0, 6.0]))
        return b

    same(program)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_jacobians_of_functions_with_parameters_are_views_of_what_was_computed(name: str) -> None:
    def program(torch: Any) -> Any:
        w, x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([4.0, 5.0, 6.0])
        out = getattr(torch.func, name)(lambda x: (x * x * w, (w * x**3).sum()))(x)
        return [[t.grad_fn, t.grad_fn.next_functions[0][0], list(t.stride()), t] for t in out]

    same(program)


@pytest.mark.parametrize("name", [*TRANSFORMS, "vmap inside grad", "grad inside vmap"])
@pytest.mark.parametrize("source", ["(x * 1).detach()", "(x * 1).detach_()", "(x * 1).view(-1).detach_()"])
def test_what_is_detached_is_so_on_every_level_and_in_place_on_the_innermost(source: str, name: str) -> None:
    if source.endswith("1).detach_()") and name in ("jacrev of jacrev", "jvp of jvp", "jacfwd of jacrev"):
        pytest.skip("one graph here, and so one cut for both")
    if source.endswith("_()") and name == "vmap inside grad":
        pytest.skip("torch warns of a loop before it refuses")

    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            y = eval(source, {"x": x})
            return y * x * x

        def inside(x: Any) -> Any:
            return torch.func.grad(lambda x: torch.func.vmap(function)(torch.stack([x, x])).sum())(x)

        def around(x: Any) -> Any:
            return torch.func.vmap(torch.func.grad(lambda x: function(x).sum()))(torch.stack([x, x]))

        transforms = {"vmap inside grad": inside, "grad inside vmap": around}
        x = torch.tensor([4.0, 5.0, 6.0])
        if name in transforms:
            return transforms[name](x)
        return TRANSFORMS[name](torch, lambda x: function(x) + 0, x)

    same(lambda torch: attempt(lambda: program(torch)))


@pytest.mark.parametrize("inner", ["jvp", "jacfwd"])
@pytest.mark.parametrize("source", ["x.var()", "x.clone() ** 3"])
def test_a_shape_changed_unrecorded_leaves_the_tangent_its_history(source: str, inner: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            y = eval(source, {"x": x})
            with torch.no_grad():
                y.squeeze_()
            return (3 * y).sum()

        def pushed(x: Any) -> Any:
            if inner == "jacfwd":
                return torch.func.jacfwd(function)(x)
            return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1]

        return torch.func.jacrev(pushed)(torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64))

    same(program)
