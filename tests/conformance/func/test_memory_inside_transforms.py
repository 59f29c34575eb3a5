"""Where tangents and the entries of a batch lie: what sees a write, and what a window onto an entry shows."""

from __future__ import annotations

import warnings
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


FILLS = [
    "x.fill_(1.5)",
    "x.zero_()",
    "x.masked_fill_(x > 0.8, 1)",
    "x.masked_fill_(torch.tensor([[True, False, True], [False, False, True]]), 1)",
    "x.index_fill_(0, torch.tensor([0]), 1.0)",
    "x.mul_(2)",
]


@pytest.mark.parametrize("write", FILLS)
@pytest.mark.parametrize("mode", ["plain", "vmap", "jvp"])
def test_what_fills_a_stretched_tensor_fills_it_inside_transforms_too(mode: str, write: str) -> None:
    def program(torch: Any) -> Any:
        def function(y: Any) -> Any:
            x = y.unsqueeze(0).expand(2, 3)
            eval(write, {"torch": torch, "x": x})
            return x, y

        y = torch.tensor([0.5, 0.6, 0.9])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is deprecated
            if mode == "vmap":
                return attempt(lambda: torch.vmap(function)(torch.stack([y, y + 0.25])))
            return attempt(lambda: torch.func.jvp(function, (y,), (y * 2,)) if mode == "jvp" else function(y))

    same(program)


@pytest.mark.parametrize("call", ["float_power", "pow", "mul", "div", "atan2"])
@pytest.mark.parametrize("outer", ["jacfwd", "jacrev", "vmap"])
def test_a_captured_operand_that_is_written_after_a_node_has_saved_it_is_missed(outer: str, call: str) -> None:
    def program(torch: Any) -> Any:
        def function(a: Any, b: Any) -> Any:
            out = getattr(torch, call)(a, b)
            b.sin_()
            return out.sum()

        a, b = torch.tensor([1.5, 2.5]), torch.tensor([2.0, 3.0])
        inner = torch.func.jacrev(function)
        if outer == "vmap":
            return attempt(lambda: torch.vmap(inner, in_dims=(0, None))(torch.stack([a, a]), b))
        return attempt(lambda: getattr(torch.func, outer)(inner)(a, b))

    same(program)


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "acosh", "reciprocal", "conj", "abs", "neg", "tanh", "log"])
def test_tangents_of_complex_numbers_are_no_lazy_conjugates(name: str) -> None:
    def program(torch: Any) -> Any:
        z = torch.tensor([1 + 2j, 3 - 1j])
        return torch.func.jvp(getattr(torch, name), (z,), (torch.ones_like(z),))[1].is_conj()

    same(program)


COPIES = [
    "x.t().contiguous()", "x.contiguous()", "x[..., ::2].contiguous()", "x.expand(2, 3, 4).contiguous()",
    "x.select(1, 0).contiguous()", "x.diagonal().contiguous()", "x.t().reshape(-1)", "x.reshape(-1)", "x.t().ravel()",
    "x.narrow(0, 0, 2).contiguous()", "x.movedim(0, 1).contiguous()",
]  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("dim", [0, 1])
def test_a_contiguous_copy_inside_vmap_is_written_to_alone(dim: int, copy: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            y = eval(copy, {"x": x})
            y.mul_(2)
            return x, y

        return torch.vmap(function, in_dims=dim)(torch.arange(24.0).reshape((2, 3, 4) if dim == 0 else (3, 2, 4)))

    same(program)


@pytest.mark.parametrize("dim", [0, 1])
def test_strides_inside_vmap_are_those_of_an_entry(dim: int) -> None:
    def program(torch: Any) -> Any:
        seen: list[Any] = []

        def function(x: Any) -> Any:
            for view in (x, x.t(), x[..., ::2], x.expand(2, 3, 4), x[:, :1]):
                seen.append((view.stride(), view.is_contiguous(), view.stride(-1)))
            return x

        torch.vmap(function, in_dims=dim)(torch.ones((2, 3, 4) if dim == 0 else (3, 2, 4)))
        return seen

    same(program)


def test_groups_of_a_transposed_entry_are_normalised_inside_vmap() -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            return torch.native_group_norm(x.transpose(0, 2).contiguous().transpose(0, 2), None, None, 2, 6, 3, 2, 0.5)

        return [part.round(decimals=4) for part in torch.vmap(function)(torch.arange(72.0).reshape(2, 2, 6, 3))]

    same(program)


def test_a_captured_tensor_does_not_look_at_the_memory_of_a_batch() -> None:
    def program(torch: Any) -> Any:
        captured = torch.ones(2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is slow
            return attempt(lambda: torch.vmap(lambda x: captured.set_(x))(torch.ones(3, 2))), captured

    same(program)
