"""Which dtype a batch of numbers has beside other tensors: torch promotes some ops by entries, some by batches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same

BY_BATCHES = [
    "torch.addcmul(a, b, b, value=0.5)", "torch.addcmul(b, b, a)", "torch.addcdiv(a, b, b)", "torch.where(b > 0, a, b)",
    "torch.lerp(a, a, b)", "torch.lerp(a, b, a)",
]  # fmt: skip
BY_ENTRIES = [
    "torch.mul(a, b)", "torch.sub(a, b)", "torch.heaviside(a, b)", "torch.complex(a, b)", "torch.polar(a, b)",
    "torch.ldexp(a, b)", "torch.dist(a, b)", "torch.linspace(a.reshape(-1)[0], b.reshape(-1)[0], 3)",
]  # fmt: skip


@pytest.mark.parametrize("call", [*BY_BATCHES, *BY_ENTRIES])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_the_dtype_of_a_batch_of_numbers_beside_a_tensor(call: str, dims: Any) -> None:
    def program(torch: Any) -> Any:
        found = []
        for kinds in (("float64", "float32"), ("float32", "float64"), ("float16", "float32"), ("float32", "bool")):
            for shapes in (((), ()), ((), (3,)), ((3,), ()), ((1,), (3,))):
                a, b = (
                    torch.ones((2, *shape) if dim == 0 else shape, dtype=getattr(torch, kind))
                    for shape, kind, dim in zip(shapes, kinds, dims, strict=True)
                )
                seen = attempt(lambda: torch.vmap(lambda a, b: eval(call), in_dims=dims)(a, b))  # noqa: B023
                found.append((seen.dtype, seen.shape) if isinstance(seen, torch.Tensor) else type(seen).__name__)
        return found

    same(program)


@pytest.mark.parametrize("kind", ["float64", "float16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("of", ["float32", "int64", "complex64", "float64"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_weight_without_dimensions_is_promoted_by_lerp(shape: Any, of: str, kind: str) -> None:
    def program(torch: Any) -> Any:
        a = torch.full(shape, 3, dtype=getattr(torch, of))
        weight = torch.full((), 1, dtype=getattr(torch, kind))
        found = [attempt(lambda: torch.lerp(a, a + 1, weight)), attempt(lambda: a.clone().lerp_(a + 1, weight))]
        if a.is_floating_point() and weight.is_floating_point():
            a.requires_grad_(), weight.requires_grad_()
            torch.lerp(a, a * 2, weight).sum().backward()
            found += [a.grad, weight.grad]
        return found

    same(program)


@pytest.mark.parametrize("target", [(), (1,), (3,), (2, 3), (2, 1), (0,)])
@pytest.mark.parametrize("scores", [(), (1,), (3,), (2, 3), (1, 3), (0,)])
def test_signs_of_a_soft_margin_loss_broadcast_to_the_scores_alone(scores: Any, target: Any) -> None:
    def program(torch: Any) -> Any:
        loss = torch.nn.functional.soft_margin_loss
        return attempt(lambda: loss(torch.ones(scores), torch.ones(target), reduction="none"))

    same(program)


@pytest.mark.parametrize("call", ["torch.pow(b, a)", "torch.addcdiv(b, a, b)", "torch.mul(a, b)", "torch.pow(a, b)"])
@pytest.mark.parametrize("moving", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("still", ["int64", "uint8"])
def test_a_tangent_beside_integers_has_the_dtype_of_the_result(still: str, moving: str, call: str) -> None:
    def program(torch: Any) -> Any:
        a, b = torch.full((3,), 2, dtype=getattr(torch, moving)), torch.full((3,), 1, dtype=getattr(torch, still))
        out, tangent = torch.func.jvp(lambda a: eval(call, {"torch": torch, "a": a, "b": b}), (a,), (a,))
        return out.dtype, tangent.dtype

    same(program)


def test_the_tangent_of_complex_numbers_written_into_real_ones_is_real() -> None:
    def program(torch: Any) -> Any:
        a, b = torch.tensor([1.5, 2.5]), torch.tensor([1 + 2j])
        return torch.func.jvp(lambda a, b: torch.as_strided_scatter(a, b, (1,), (1,), 0), (a, b), (a, b))

    same(program)
