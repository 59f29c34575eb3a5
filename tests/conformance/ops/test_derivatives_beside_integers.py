"""Derivatives of ops one operand of which holds integers, or another kind of numbers: computed in torch's dtypes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.conformance.both import attempt, same

INF, NAN = float("inf"), float("nan")
WHOLE = ["uint8", "int64", "bool"]


def gradients(torch: Any, function: Any, *tensors: Any, twice: bool = False) -> Any:
    """The gradients of the operands that want one, or those of the first of them."""
    out = function(*tensors)
    wanting = [tensor for tensor in tensors if tensor.requires_grad]
    firsts = torch.autograd.grad(out, wanting, torch.ones_like(out), create_graph=twice)
    return torch.autograd.grad(firsts[0].sum(), wanting, allow_unused=True) if twice else firsts


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("call", ["xlogy", "special.xlog1py"])
def test_logarithms_of_integers_beside_a_gradient_have_its_precision(call: str, twice: bool, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.0, 0.5, -1.5, 2.0], dtype=torch.float64, requires_grad=True)
        y = torch.tensor([[1], [3]]).to(getattr(torch, dtype))
        function = torch.special.xlog1py if "." in call else torch.xlogy
        return gradients(torch, lambda x: function(x * x, y), x, twice=twice)

    same(program)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("value", [3.14, 2, 1.5j])
@pytest.mark.parametrize("call, at", [("addcmul", 1), ("addcmul", 2), ("addcdiv", 1)])
def test_integers_times_a_number_are_rounded_to_the_default_dtype_in_derivatives(
    call: str, at: int, value: Any, dtype: str
) -> None:
    def program(torch: Any) -> Any:
        kind = torch.complex128 if isinstance(value, complex) else torch.float64
        start, moving = (torch.tensor([0.3, -1.7, 2.9], dtype=kind, requires_grad=True) for _ in range(2))
        factors = [moving, torch.tensor([1, 3, 7]).to(getattr(torch, dtype))]
        factors = factors if at == 2 else factors[::-1]
        function = getattr(torch, call)
        return attempt(lambda: gradients(torch, lambda a, b, c: function(a, b, c, value=value), start, *factors))

    same(program)


@pytest.mark.parametrize("base", ["float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("exponent", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("twice", [False, True])
def test_powers_by_integers_overflow_in_the_dtype_of_the_base(base: str, exponent: str, twice: bool) -> None:
    def program(torch: Any) -> Any:
        values = [1e-30, 0.5, INF, -INF, 0.0] if "float" in base else [complex(INF, 0), complex(0, INF), 1j, 2 + 1j]
        x = torch.tensor(values, dtype=getattr(torch, base), requires_grad=True)
        powers = torch.tensor([[0], [1], [2], [3]]).to(getattr(torch, exponent))
        return gradients(torch, lambda x: torch.pow(x, powers), x, twice=twice and "float" in base)

    same(program)


KINDS = [None, "float16", "float32", "float64", "uint8"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("weight", [None, "float16", "float32"])
def test_statistics_of_instance_norm_are_converted_where_the_mean_has_another_dtype(
    weight: str | None, dtype: str
) -> None:
    def program(torch: Any) -> Any:
        def ones(kind: str | None) -> Any:
            return None if kind is None else torch.ones(2, dtype=getattr(torch, kind))

        x = torch.arange(12.0).reshape(2, 2, 3).to(getattr(torch, dtype))
        seen = []
        for mean, var in itertools.product(KINDS, repeat=2):
            own = ones(mean), ones(var)
            made = attempt(lambda own=own: torch.nn.functional.instance_norm(x, *own, weight=ones(weight)))
            seen.append([made, own])
        return seen

    same(program)


@pytest.mark.parametrize("stride", [(2, 2), (1 << 40, 2)])
def test_blocks_of_no_images_go_back_to_none(stride: tuple[int, int]) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(0, 1, 5, 5, requires_grad=True)
        blocks = torch.nn.functional.unfold(x, 2, 2, (1, 2), stride)
        return blocks.shape, torch.autograd.grad(blocks, x, torch.ones_like(blocks))

    same(program)
