"""Derivatives of ops one operand of which has another dtype: integers, or double precision beside single."""

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


@pytest.mark.parametrize("call", ["maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max", "clamp", "logaddexp"])
@pytest.mark.parametrize("value", [1e30, 0.1, 0.5])
def test_ties_with_a_double_without_dimensions_are_those_of_single_precision(call: str, value: float) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([value, -0.3, 1e30], requires_grad=True)
        bound = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        made = getattr(torch, call)(x, bound)
        return made.grad_fn.name(), gradients(torch, getattr(torch, call), x, bound)

    same(program)


def test_a_double_beside_single_precision_is_saved_as_it_is_and_unpacked_once() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.1, -0.3], requires_grad=True)
        bound = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
        seen: list[str] = []

        def unpack(tensor: Any) -> Any:
            seen.append(str(tensor.dtype))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            made = torch.maximum(x, bound)
        saved = str(made.grad_fn._saved_other.dtype)
        seen.clear()
        grads = torch.autograd.grad(made.sum(), (x, bound))
        return saved, sorted(seen), grads

    same(program)


def test_what_was_written_over_is_told_beside_a_double_too() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.1, -0.3], requires_grad=True) * 1
        bound = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
        made = torch.maximum(x, bound)
        with torch.no_grad():
            x.mul_(2)
        return attempt(lambda: made.sum().backward())[:2]

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize("ends", ["float16", "float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (1,)])
def test_weights_without_dimensions_may_have_any_dtype(shape: tuple[int, ...], ends: str, dtype: str) -> None:
    if (ends, dtype) == ("float16", "complex64"):
        pytest.skip("complex32 has no arithmetic")

    def program(torch: Any) -> Any:
        start, end = (torch.full((3,), n).to(getattr(torch, ends)) for n in (1.0, 3.0))
        weight = torch.full(shape, 1.0).to(getattr(torch, dtype))
        plain = attempt(lambda: torch.lerp(start, end, weight))
        written = attempt(lambda: start.clone().lerp_(end, weight))
        return plain, written

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("signs", ["complex64", "complex128", "int64"])
def test_complex_signs_of_real_scores_are_refused(signs: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        scores, target = (torch.ones(3).to(getattr(torch, kind)) for kind in (dtype, signs))
        return attempt(lambda: torch.nn.functional.soft_margin_loss(scores, target))

    same(program)


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("call", ["as_strided", "as_strided_copy"])
def test_nothing_moves_behind_a_window_that_shows_nothing(call: str, rows: int) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, 3, requires_grad=True)
        seen = getattr(torch, call)(x, (rows, 2), (1, 2), storage_offset=1)
        (grad,) = torch.autograd.grad(seen, x, torch.ones_like(seen).requires_grad_(), create_graph=True)
        return grad.detach(), grad.requires_grad

    same(program)


@pytest.mark.parametrize("weight, bias", [((), None), ((), ()), ((), (1,)), ((1,), ())])
@pytest.mark.parametrize("training", [False, True])
def test_parameters_of_the_one_channel_may_have_no_dimensions(weight: Any, bias: Any, training: bool) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([[1.0], [3.5], [-2.0]], dtype=torch.float64)
        given = [torch.full(shape, 1.5, dtype=torch.float64) for shape in (weight, bias) if shape is not None]

        def normalized(*given: Any) -> Any:
            mean, var = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
            return torch.nn.functional.batch_norm(given[0], mean, var, *given[1:], training=training)

        moved = torch.func.jvp(normalized, (x, *given), tuple(torch.full_like(one, 0.5) for one in (x, *given)))
        return moved, gradients(torch, normalized, *[one.requires_grad_() for one in (x, *given)])

    same(program)
