"""Indices inside vmap: numbers beside vectors, indices that differ between entries, truths summed in place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same

CALLS = [
    "a.scatter(0, torch.zeros_like(a, dtype=torch.long), b)",
    "a.scatter_add(0, torch.zeros_like(a, dtype=torch.long), b)",
    "a.index_copy(0, torch.zeros(1, dtype=torch.long), b)", "a.gather(0, torch.zeros_like(b, dtype=torch.long))",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shapes", [((1,), ()), ((1,), (1,)), ((), ()), ((3,), (3,)), ((3,), ())])
def test_a_number_beside_a_vector_counts_as_one_of_one_element(call: str, shapes: Any) -> None:
    def program(torch: Any) -> Any:
        a, b = (torch.full((2, *shape), 3.0 + i) for i, shape in enumerate(shapes))
        found = [attempt(lambda: eval(call, {"torch": torch, "a": a[0].clone(), "b": b[0]}))]
        if not isinstance(found[0], torch.Tensor):
            return "refused"  # inside vmap torch does not always ask

        def function(a: Any, b: Any) -> Any:
            return eval(call, {"torch": torch, "a": a, "b": b})

        return [*found, torch.vmap(function)(a, b), torch.vmap(function, in_dims=(0, None))(a, b[0])]

    same(program)


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_take_along_dim_with_indices_of_each_entry(shape: Any, dims: Any) -> None:
    def program(torch: Any) -> Any:
        a = torch.arange(12.0)[:12].reshape(2, 2, 3)[(slice(None), 0) if len(shape) == 1 else ()]
        index = torch.tensor([[[0, 2, 1], [1, 1, 0]], [[2, 2, 2], [0, 1, 2]]])[
            (slice(None), 0) if len(shape) == 1 else ()
        ]
        given = [t if dim == 0 else t[0] for t, dim in zip((a, index), dims, strict=True)]
        return torch.vmap(lambda a, i: torch.take_along_dim(a, i, -1), in_dims=dims)(*given)

    same(program)


@pytest.mark.parametrize("call", ["cumsum_", "cumprod_"])
@pytest.mark.parametrize("shape", [(), (0,), (2,)])
def test_truths_summed_in_place_while_something_else_moves(shape: Any, call: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            truths = torch.ones(shape, dtype=torch.bool)
            return attempt(lambda: getattr(truths, call)(0)), x

        seen: list[Any] = []

        def kept(x: Any) -> Any:
            seen.append(function(x)[0])
            return x * 2

        return torch.func.jvp(kept, (torch.ones(2),), (torch.ones(2),)), seen

    same(program)
