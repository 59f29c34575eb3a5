"""What ops demand of their operands inside transforms: what fills a batch, numbers beside tensors, dtypes, sizes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same


@pytest.mark.parametrize("value", ["2.5", "torch.tensor(2.5)", "torch.tensor(3)"])
@pytest.mark.parametrize("write", ["x[..., 0] = v", "x[1:] = v", "x.fill_(v)", "x[1:].fill_(v)"])
def test_entries_of_a_batch_are_filled_with_one_element(write: str, value: str) -> None:
    def program(torch: Any) -> Any:
        def fill(x: Any) -> Any:
            names = {"torch": torch, "x": x, "v": eval(value, {"torch": torch})}
            exec(write, names)
            return names["x"] * 1

        return torch.func.vmap(fill)(torch.arange(24.0).reshape(2, 3, 4))

    same(program)


@pytest.mark.parametrize("write", ["x.fill_(v)", "x.copy_(v)"])
def test_each_entry_of_a_batch_is_filled_with_an_element_of_its_own(write: str) -> None:
    def program(torch: Any) -> Any:
        v = torch.tensor([2.0, 3.0], requires_grad=True)
        x = torch.zeros(2, 3, 4)
        out = torch.func.vmap(lambda x, v: eval(write, {"torch": torch, "x": x, "v": v}) * 1)(x, v)
        return out.detach(), torch.autograd.grad((out * out).sum(), v)

    same(program)


@pytest.mark.parametrize("call", ["torch.add(x, 1j)", "torch.sub(x, 1j)", "torch.rsub(x, 1j)", "x * 1j", "1j - x"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_tangents_of_real_numbers_beside_complex_ones_have_torchs_dtype(call: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, dtype=getattr(torch, dtype))
        return torch.func.jvp(lambda x: eval(call, {"torch": torch, "x": x}), (x,), (x * 2,))

    same(program)


@pytest.mark.parametrize("call", ["torch.heaviside(i, x)", "torch.heaviside(x, i)", "torch.heaviside(x, x.double())"])
def test_heaviside_wants_one_dtype_inside_vmap_too(call: str) -> None:
    def program(torch: Any) -> Any:
        i = torch.tensor([1, 2])
        return attempt(
            lambda: torch.func.vmap(lambda x: eval(call, {"torch": torch, "x": x, "i": i}))(torch.ones(2, 2))
        )

    same(program)


@pytest.mark.parametrize(
    "call", ["x @ y", "torch.mm(x, y)", "torch.mv(x, y)", "torch.dot(x, y)", "torch.addmm(x, x, y)"]
)
@pytest.mark.parametrize(
    "shapes", [((3, 1), (3, 1)), ((1,), (3, 1)), ((3, 1), (3,)), ((1,), (3,)), ((2, 3, 1), (2, 3, 1))]
)
@pytest.mark.parametrize("dims", [0, (0, None), (None, 0)])
def test_sizes_that_do_not_fit_are_refused_inside_vmap(call: str, shapes: Any, dims: Any) -> None:
    def program(torch: Any) -> Any:
        first, second = dims if isinstance(dims, tuple) else (0, 0)
        x = torch.ones((2, *shapes[0]) if first == 0 else shapes[0])
        y = torch.ones((2, *shapes[1]) if second == 0 else shapes[1])
        try:
            return torch.func.vmap(lambda x, y: eval(call, {"torch": torch, "x": x, "y": y}), dims)(x, y)
        except RuntimeError:
            return "refused"

    same(program)


@pytest.mark.parametrize("question", ["(x, e)", "(e, x)", "(x, x)", "(e, e)"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (2, 3), (0,)])
def test_whether_tensors_are_equal_is_not_asked_of_a_batch(question: str, shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            return x * float(torch.equal(*eval(question, {"x": x, "e": torch.ones(shape)})))

        x = torch.ones(2, 3)
        batched = attempt(lambda: torch.func.vmap(function)(x))
        inside = attempt(lambda: torch.func.vmap(torch.func.grad(lambda x: function(x).sum()))(x))
        return batched, inside, torch.func.jvp(function, (x,), (x,))

    same(program)
