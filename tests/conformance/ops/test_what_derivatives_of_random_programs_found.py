"""Corners in which random programs under backward met differences: each is a program run on both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


def kind_of_error(torch: Any, source: str, **names: Any) -> str:
    """What a statement ends in; the source cannot be read, as that of a prompt cannot."""
    try:
        exec(source, {"torch": torch, **names})
    except Exception as error:
        return type(error).__name__
    return "nothing"


SINGULAR = {
    "svdvals": lambda torch, a: torch.linalg.svdvals(a),
    "svd": lambda torch, a: torch.linalg.svd(a, full_matrices=False)[1],
    "both sides": lambda torch, a: (lambda u, s, v: u @ v)(*torch.linalg.svd(a, full_matrices=False)),
    "cond": lambda torch, a: torch.linalg.cond(a) if a.shape[-1] == a.shape[-2] else a,
    "nuc": lambda torch, a: torch.linalg.matrix_norm(a, "nuc"),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("shape", ["3, 3", "4, 3", "3, 4", "2, 3, 3"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("scale", [1.0, 1e12, 1e20])
def test_the_phase_of_singular_vectors_may_cancel_but_for_rounding(
    name: str, shape: str, dtype: str, scale: float
) -> None:
    """What U and V owe to their common phase is compared as large as it is: a rounding error of 1e12 is no choice."""

    def program(torch: Any) -> Any:
        draw = np.random.RandomState(1)
        size = tuple(int(n) for n in shape.split(","))
        a, by = (torch.from_numpy((draw.randn(*size) + 1j * draw.randn(*size)).astype(dtype)) for _ in range(2))
        out = SINGULAR[name](torch, a.requires_grad_())
        weights = torch.from_numpy(np.asarray(draw.randn(*out.shape) * scale)).to(out.dtype)
        (first,) = torch.autograd.grad(out, a, weights, create_graph=True)
        if not first.requires_grad:
            return None
        (second,) = torch.autograd.grad(first, a, by)
        return second.shape

    same(program)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("low", ["-inf", "nan", "-1e30", "-300", "0", "2.5"])
@pytest.mark.parametrize("high", ["inf", "nan", "1e30", "2**40", "2**63", "3.5"])
def test_bounds_of_hardtanh_are_numbers_of_64_bits_or_nan(dtype: str, low: str, high: str) -> None:
    agree(f"F.hardtanh(torch.tensor([0, 1, 3, 5, 100]).to(torch.{dtype}), {low}, {high})")


@pytest.mark.parametrize("dtype", ["bool", "complex64", "float16", "uint8", "int32", "int64"])
@pytest.mark.parametrize("shape", ["5, 5", "2, 1", "1, 3", "0, 2", "2, 0", "100, 3"])
def test_bags_of_rows_begin_where_arange_says(dtype: str, shape: str) -> None:
    agree(f"F.embedding_bag(torch.zeros({shape}, dtype=torch.{dtype}), torch.ones(3, 2))")


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool", "complex64", "float32"])
@pytest.mark.parametrize("bounds", ["0, 2, inf", "0, 0, inf", "0, 2, 0", "2, 0, 1", "nan, 2, 1", "0, 6, 2.5"])
def test_ranges_ask_for_their_dtype_before_their_bounds_and_for_their_step_after(dtype: str, bounds: str) -> None:
    agree(f"torch.arange({bounds}, dtype=torch.{dtype})")


@pytest.mark.parametrize("dim", ["float('inf')", "float('nan')", "1.5", "1e30", "'a'", "None", "1j", "0"])
@pytest.mark.parametrize("call", ["a.index_fill_({}, i, 3)", "a.index_fill({}, i, 3)", "a.index_add_({}, i, a)"])
def test_a_dimension_that_is_no_integer_is_of_a_wrong_type_though_the_source_cannot_be_read(
    dim: str, call: str
) -> None:
    same(lambda torch: kind_of_error(torch, call.format(dim), a=torch.ones(1), i=torch.tensor([0])))


@pytest.mark.parametrize(
    "value", ["1j", "0j", "'a'", "[1]", "None", "True", "2**70", "np.float32(2)", "torch.tensor(2)"]
)
@pytest.mark.parametrize("mode", ["constant", "reflect", "circular"])
@pytest.mark.parametrize("made", ["torch.ones(1, 2, 3)", "torch.ones(0, 3, 3).cfloat()", "torch.ones(1, 2, 3).int()"])
def test_what_is_padded_with_is_a_real_number(made: str, mode: str, value: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "np": np}
        return eval(f"torch.nn.functional.pad({made}, (1, 0), '{mode}', {value})", names)

    same(lambda torch: kind_of(attempt(lambda: program(torch))))


def kind_of(result: Any) -> Any:
    """A result, or the class of what was raised."""
    return result.kind if hasattr(result, "kind") else result


@pytest.mark.parametrize(
    "index",
    [
        "[[0, inf]]", "[0, nan]", "[1e30, 0]", "[0, 1j]", "[nan, 1j]", "[1j, nan]", "[1.7, 0]", "[2**63, 1]",
        "[0, 'a']", "[[0, 0, nan], [0, 0, 1j]]", "[np.float32(1), 0]", "[np.float64(1), 0]", "[-1.5, True]",
    ],
)  # fmt: skip
def test_numbers_of_a_list_of_indices_are_integers_of_64_bits_one_after_the_other(index: str) -> None:
    agree(f"torch.arange(25).reshape(5, 5)[{index}]")
    agree(f"torch.tensor({index}, dtype=torch.int64)")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("bounds", ["0, 0", "1, 1", "0, 1", "2, 1", "0, nan"])
@pytest.mark.parametrize("elements", ["3", "[1, 1]", "[0, 1]"])
def test_histograms_of_integers_are_refused_for_their_dtype(elements: str, bounds: str, dtype: str) -> None:
    agree(f"torch.histc(torch.tensor({elements}).to(torch.{dtype}), 3, {bounds})")


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("weight", [1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["pdist", "cdist"])
def test_pairs_of_equal_rows_have_no_gradient_whatever_their_distance_is_asked_for(
    name: str, weight: float, p: float
) -> None:
    def program(torch: Any) -> Any:
        rows = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
        equal = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        found = []
        for x in (rows, equal):
            out = torch.pdist(x, p) if name == "pdist" else torch.cdist(x, x[:2].clone(), p)
            found += torch.autograd.grad(out, x, torch.full(out.shape, weight, dtype=torch.float64))
        return found

    same(program)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dims", [2, 3])
def test_samples_outside_see_nothing_and_are_seen_by_nothing(dims: int, bad: float, padding: str, mode: str) -> None:
    """Neither an infinite gradient nor an infinite element is multiplied by the zero weight of what lies outside."""
    if dims == 3 and mode == "bicubic":
        return

    def program(torch: Any) -> Any:
        draw = np.random.RandomState(0)
        image, grid = draw.randn(1, 2, *(4,) * dims), draw.uniform(-1.8, 1.8, (1, *(3,) * dims, dims))
        weights = draw.randn(1, 2, *(3,) * dims)
        found = []
        for spoiled in (image, weights):
            spoiled.reshape(-1)[::5] = bad
            x, at = (torch.from_numpy(part.copy()).requires_grad_() for part in (image, grid))
            out = torch.nn.functional.grid_sample(x, at, mode, padding, True)
            grads = torch.autograd.grad(out, [x, at], torch.from_numpy(weights.copy()))
            found += [[kinds(part) for part in (out, *grads)]]
            image = np.where(np.isfinite(image), image, 1.0)
        return found

    same(program)


def kinds(tensor: Any) -> Any:
    """Which elements are NaN or infinite, and the others to a few digits."""
    array = tensor.detach().numpy().reshape(-1)
    return [float(f"{number:.4g}") + 0.0 if abs(number) > 1e-9 else 0.0 for number in array.tolist()]


@pytest.mark.parametrize(
    "offset", ["1e30", "1.5", "0.0", "inf", "'a'", "torch.tensor(1.0)", "None", "2", "torch.tensor(1)"]
)
@pytest.mark.parametrize("window", ["(2, 2), (1, 1)", "(0,), (1,)", "(2**40, 0), (1, 2**40)"])
@pytest.mark.parametrize("name", ["as_strided", "as_strided_copy"])
def test_the_offset_of_a_window_onto_nothing_is_an_integer_too(name: str, window: str, offset: str) -> None:
    source = f"torch.{name}(torch.ones(3, 3), {window}, storage_offset={offset})"
    same(lambda torch: kind_of_error(torch, f"inf = float('inf'); {source}"))


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "float64"])
@pytest.mark.parametrize("row", [[6e4, 6e4, 6e4], [1e30, 2.0, 3.0], [1e30, 1e-30, 1.0], [300.0, -200.0, 100.0]])
def test_renorm_adds_in_a_wider_dtype_than_its_own(row: list[float], dtype: str, p: float) -> None:
    if dtype == "bfloat16" and max(row) > 1e4:
        return  # of which too few digits are left to compare

    def program(torch: Any) -> Any:
        x = torch.tensor([row, [1.0, 2.0, 3.0]]).to(getattr(torch, dtype)).requires_grad_()
        out = torch.renorm(x, p, 0, 3.0)
        weights = torch.tensor([[1.0, 0.5, -1.0]] * 2).to(x.dtype)
        (grad,) = torch.autograd.grad(out, x, weights)
        size = torch.nan_to_num(grad.abs().float(), 0.5, 0.5, 0.5).clamp(1e-4, 10.0)
        return out.abs().float() > 0.1, (size * 64).round() / 64, grad.dtype

    same(program)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize("row", [[1.0, 2.0, 3.0, 2.0], [float("nan"), 2.0, 3.0, 2.0], [float("inf"), 1.0]])
@pytest.mark.parametrize("weight", [1.0, float("nan"), float("inf")])
def test_nobody_has_a_share_of_an_extreme_that_was_written_over_unseen(
    weight: float, row: list[float], name: str
) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(row, requires_grad=True)
        found = []
        for write in (False, True):
            out = getattr(torch, name)(x)
            if write:
                out.data.fill_(7)
            found += torch.autograd.grad(out, x, torch.tensor(weight))
        return found

    same(program)
