"""Where tangents and the entries of a batch lie: what sees a write, and what a window onto an entry shows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same

SELECTIONS = [
    "torch.sort(x).values", "torch.msort(x)", "torch.topk(x, 1).values", "torch.kthvalue(x, 1).values",
    "torch.mode(x).values", "torch.median(x, 0).values", "torch.nanmedian(x, 0).values", "torch.max(x, 0).values",
    "torch.min(x, 0).values", "torch.cummax(x, 0).values", "torch.cummin(x, 0).values", "torch.cumprod(x, 0)",
    "torch.cumsum(x, 0)", "torch.logcumsumexp(x, 0)", "torch.prod(x, 0)", "torch.amax(x, 0)", "torch.prod(x)",
    "torch.gather(x, 0, torch.tensor(0))",
]  # fmt: skip


@pytest.mark.parametrize("call", SELECTIONS)
@pytest.mark.parametrize("write", ["x.round_()", "x.mul_(0.5)", "y.mul_(0.5)"])
def test_the_tangent_of_what_was_selected_of_one_element_does_not_see_writes_to_it(call: str, write: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            y = eval(call, {"torch": torch, "x": x})
            eval(write, {"x": x, "y": y})
            return x, y

        return torch.func.jvp(function, (torch.tensor(0.25),), (torch.tensor(3.0),))

    same(program)


VIEWS = [
    "x[..., 0]", "x.select(1, 0)", "x[0]", "x[1:]", "x.t()", "x.unfold(0, 2, 1)", "x.diagonal()", "x[..., ::2]",
    "x[1:, 1]", "x.unbind(1)[1]", "x.split(1, 1)[1]", "x[:, :1].flatten()", "x[0].expand(3, 4)", "x[:0]", "x",
]  # fmt: skip
WINDOWS = [
    "(2, 2), (1, 1)",
    "(2,), (1,), 0",
    "(2,), (1,), 4",
    "(13,), (1,)",
    "(0,), (2,)",
    "(2,), (1, 1)",
]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_onto_a_view_inside_vmap_shows_the_memory_of_its_entry(view: str, window: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            return eval(f"{view}.as_strided({window})", {"x": x})

        return attempt(lambda: torch.vmap(function)(torch.arange(24.0).reshape(2, 3, 4)))

    same(program)


def test_the_offset_of_a_view_inside_vmap_is_that_of_the_first_entry() -> None:
    def program(torch: Any) -> Any:
        seen: list[int] = []

        def function(x: Any) -> Any:
            seen.append(x[1:].storage_offset())
            return x[1:].as_strided((2,), (1,), x[1:].storage_offset())

        return torch.vmap(function)(torch.arange(24.0).reshape(2, 3, 4)), seen

    same(program)
