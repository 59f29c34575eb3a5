"""Calls with one thing changed each (a bound, a dtype, an operand without elements): the same on both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


def fail_alike(source: str) -> None:
    """The class of the error, or the shape of the result: what is said may name operands, numbers may be random."""
    same(lambda torch: outline(torch, lambda: value_of(torch, source)))


def outline(torch: Any, action: Any) -> Any:
    """The class of the error, or the shape of the result."""
    found = attempt(action)
    return tuple(found.shape) if isinstance(found, torch.Tensor) else getattr(found, "kind", type(found).__name__)


@pytest.mark.parametrize("out", ["requires_grad_()", "requires_grad_() * 1"])
@pytest.mark.parametrize(
    "call",
    [
        "clamp(a, a, out=out)", "clamp_min(a, a, out=out)", "clamp_max(a, a, out=out)", "max(a, a, out=out)",
        "min(a, a, out=out)", "hstack([a, a], out=out)", "vstack([a, a], out=out)", "column_stack([a, a], out=out)",
        "outer(a, a, out=out)", "kron(a, a[:1], out=out)", "any(a, dim=0, out=out)", "isin(a, a, out=out)",
    ],
)  # fmt: skip
def test_truths_made_by_ops_with_a_derivative_are_not_written_where_one_is_wanted(call: str, out: str) -> None:
    def program(torch: Any) -> Any:
        names = {"a": torch.tensor([True, False]), "out": eval(f"torch.zeros(2).{out}", {"torch": torch})}
        return outline(torch, lambda: eval(f"torch.{call}", {"torch": torch, **names}))

    same(program)


@pytest.mark.parametrize("form", ["torch.clamp(x, {}, {})", "x.clamp({}, {})", "torch.ones(2).clamp_({}, {})"])
@pytest.mark.parametrize(
    "bounds",
    [
        ("torch.ones(2)", "0.5"), ("0.5", "torch.ones(2)"), ("torch.tensor(1.0)", "0.5"), ("0.5", "torch.tensor(1)"),
        ("0.5", "torch.tensor(1.0, requires_grad=True)"), ("torch.tensor(1.0)", "torch.ones(2)"),
        ("torch.tensor(1.5, dtype=torch.float64)", "2"),
    ],
)  # fmt: skip
def test_bounds_are_two_numbers_or_two_tensors(form: str, bounds: tuple[str, str]) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad="clamp_" not in form)
        found = attempt(lambda: eval(form.format(*bounds), {"torch": torch, "x": x}))
        known = isinstance(found, torch.Tensor)
        return (found.detach(), type(found.grad_fn).__name__) if known else found.kind

    same(program)


def test_a_number_beside_a_bound_has_to_fit_into_the_dtype() -> None:
    fail_alike("torch.tensor([1, 2], dtype=torch.int8).clamp(2, torch.tensor(300))")


@pytest.mark.parametrize("index", ["torch.zeros(1)", "torch.zeros(1, 1)", "torch.zeros(1, dtype=torch.int64)"])
@pytest.mark.parametrize(
    "call",
    [
        "gather({x}, 3, {i})", "index_select({x}, 3, {i})", "scatter({x}, 3, {i}, 1)", "scatter_add({x}, 3, {i}, {x})",
        "scatter({x}, 3, {i}, {x})", "scatter_reduce({x}, 3, {i}, {x}, 'sum')", "index_fill({x}, 0, {i}, 1j)",
        "index_fill({x}, 0, {i}, torch.tensor(1j))", "index_fill({x}, 0, {i}, torch.ones(2))",
    ],
)  # fmt: skip
def test_of_a_wrong_dimension_and_a_wrong_index_torch_names_the_same(call: str, index: str) -> None:
    fail_alike("torch." + call.format(x="torch.ones(2, 2)", i=index))


@pytest.mark.parametrize("dim", ["-0.3", "7", "1"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes_of_nothing_along_what_is_no_dimension(name: str, dim: str) -> None:
    fail_alike(f"torch.{name}(torch.zeros(5, 0), {dim})[0]")


@pytest.mark.parametrize("pivot", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "complex128"])
@pytest.mark.parametrize("shape", [(0, 6, 5), (6, 0), (0, 3), (2, 0, 0)])
@pytest.mark.parametrize("name", ["lu", "lu_factor", "lu_factor_ex"])
def test_matrices_without_elements_are_factored_without_pivots_too(
    name: str, shape: Any, dtype: str, pivot: bool
) -> None:
    def program(torch: Any) -> Any:
        return list(getattr(torch.linalg, name)(torch.zeros(shape, dtype=getattr(torch, dtype)), pivot=pivot))

    same(program)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_what_no_columns_leave_of_the_right_hand_side(driver: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        a, b = torch.ones(3, 4, 0, dtype=getattr(torch, dtype)), torch.ones(3, 4, 2, dtype=getattr(torch, dtype))
        return list(torch.linalg.lstsq(a, 2 * b, driver=driver))

    same(program)


@pytest.mark.parametrize("call", ["max", "min", "median", "nanmedian", "prod"])
@pytest.mark.parametrize("form", ["torch.{}({}, keepdim=True)", "torch.{}({}, None, True)"])
def test_without_a_dimension_none_is_kept(call: str, form: str) -> None:
    fail_alike(form.format(call, "torch.ones(2)"))


@pytest.mark.parametrize("bias", ["()", "(1,)", "(5,)", "(8, 5)", "(5, 1)", "(0,)"])
@pytest.mark.parametrize("weight", ["(5, 3, 4)", "(5, 3)", "(5,)", "()", "(5, 3, 4, 1)"])
def test_a_bilinear_layer_asks_for_the_sizes_of_its_parameters(weight: str, bias: str) -> None:
    fail_alike(
        f"torch.nn.functional.bilinear(torch.ones(8, 3), torch.ones(8, 4), torch.ones({weight}), torch.ones({bias}))"
    )


@pytest.mark.parametrize("kernel", [3, (3,), (3, 3), (3, 3, 3)])
@pytest.mark.parametrize("stride", [None, 2, (2,), (2, 2), (2, 2, 2), ()])
@pytest.mark.parametrize("padding", [0, (1,), (0, 0)])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_reads_as_many_numbers_as_the_kernel_has(dims: int, padding: Any, stride: Any, kernel: Any) -> None:
    def program(torch: Any) -> Any:
        x, places = torch.ones(1, 2, *[2] * dims), torch.zeros(1, 2, *[2] * dims, dtype=torch.int64)
        unpool = getattr(torch.nn.functional, f"max_unpool{dims}d")
        return outline(torch, lambda: unpool(x, places, kernel, stride, padding))

    same(program)


@pytest.mark.parametrize("target", ["(2, 5)", "(1, 5)", "(0, 5)", "(5,)", "()", "(1,)"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_soft_margins_have_the_shape_of_the_scores(target: str, reduction: str) -> None:
    agree(f"torch.nn.functional.soft_margin_loss(torch.ones(5), torch.ones({target}), reduction={reduction!r})")


SHAPES = [
    ((4, 3, 0), (4, 2, 0), (4, 2, 3)), ((4, 3, 0), (4, 2, 0), (4, 2, 0)), ((0, 3, 8), (4, 6, 8), (4, 6, 8)),
    ((4, 3, 8), (0, 6, 8), (4, 6, 8)), ((2, 4, 3, 8), (2, 0, 6, 8), (2, 4, 6, 8)), ((4, 3, 8), (4, 0, 8), (4, 2, 8)),
    ((4, 3, 8), (4, 0, 8), (4, 0, 8)), ((4, 0, 8), (4, 2, 8), (4, 3, 8)), ((2, 4, 3, 0), (2, 4, 2, 0), (2, 4, 2, 0)),
]  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shapes", SHAPES)
def test_attention_to_nothing_and_of_no_features(shapes: Any, causal: bool) -> None:
    query, key, value = (f"torch.ones{shape}" for shape in shapes)
    call = f"torch.nn.functional.scaled_dot_product_attention({query}, {key}, {value}, is_causal={causal})"
    fail_alike(call)
    if causal is False and shapes[0][-1] == 0:
        agree(call)


@pytest.mark.parametrize("shape", ["(0,)", "(0, 3)", "(2, 0)", "(0, 3, 2)"])
@pytest.mark.parametrize("stats", ["None, None", "torch.ones(2), torch.ones(1)", "torch.ones(()), torch.ones(3)"])
@pytest.mark.parametrize("parameters", ["None, None", "torch.ones(5), torch.ones(2)", "torch.ones(0), None"])
@pytest.mark.parametrize("training", [True, False])
def test_batches_without_elements_are_normalised_by_any_statistics(
    training: bool, parameters: str, stats: str, shape: str
) -> None:
    agree(f"torch.nn.functional.batch_norm(torch.ones({shape}), {stats}, {parameters}, training={training})")


@pytest.mark.parametrize("bounds", ["1.5", "1, 3.5", "high=2.5", "3", "1, 3"])
def test_random_integers_lie_between_integers(bounds: str) -> None:
    fail_alike(f"torch.randint_like(torch.ones(2), {bounds})")


@pytest.mark.parametrize("other", ["(1, 3)", "(2, 3)", "(3, 2)", "(6,)"])
def test_tensorsolve_asks_for_a_square(other: str) -> None:
    fail_alike(f"torch.linalg.tensorsolve(torch.randn(2, 3, 6), torch.ones({other}), dims=(0, 1))")


@pytest.mark.parametrize("indices", ["(5, 0), dtype=torch.bfloat16", "(5, 1), dtype=torch.int32", "(5, 1)"])
@pytest.mark.parametrize("dim", ["", ", 0", ", None"])
def test_places_in_the_flattened_tensor_may_be_of_another_dtype(indices: str, dim: str) -> None:
    fail_alike(f"torch.take_along_dim(torch.ones(5, 5), torch.zeros({indices}){dim})")


@pytest.mark.parametrize("shape", [(2, 2), (2,), (), (0, 2)])
@pytest.mark.parametrize("rest", ["()", "(), True", "[], False", "(0,)"])
def test_logsumexp_along_no_dimension(shape: Any, rest: str) -> None:
    if shape == () and rest == "(0,)":
        pytest.skip("a dimension there is not")
    agree(f"torch.logsumexp(torch.ones({shape}), {rest})")


@pytest.mark.parametrize("modes", ["0, 0.5", "0.5, 0", "0, 1"])
@pytest.mark.parametrize("name", ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"])
def test_modes_of_samplers_are_integers(name: str, modes: str) -> None:
    dims = 3 if name.endswith("3d") else 2
    image, grid = f"torch.ones(1, 1, {', '.join('2' * dims)})", f"torch.zeros(1, {', '.join('1' * dims)}, {dims})"
    fail_alike(f"torch.{name}({image}, {grid}, {modes}, True)")


@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
@pytest.mark.parametrize("one", ["0.5", "None", "torch.ones(1)", "torch.ones(())"])
@pytest.mark.parametrize("other", ["0.5", "None", "torch.ones(1)", "torch.ones(())"])
def test_tolerances_are_numbers_or_tensors(name: str, one: str, other: str) -> None:
    fail_alike(f"torch.linalg.{name}(torch.ones(1, 2, 2), atol={one}, rtol={other})")


@pytest.mark.parametrize("dtypes", [("float32", "complex64"), ("bfloat16", "complex128"), ("float16", "float64")])
def test_soft_margins_of_complex_signs(dtypes: tuple[str, str]) -> None:
    agree(
        f"torch.nn.functional.soft_margin_loss(torch.ones(2, dtype=torch.{dtypes[0]}), "
        f"torch.ones(2, dtype=torch.{dtypes[1]}))"
    )


@pytest.mark.parametrize("arguments", ["7, (2,)", "(7,), (2, 2)", "(7, 7), (2, 2)", "7, 2", "[7, 7, 7], 2"])
def test_fractional_pools_have_one_size_or_one_for_each_dimension(arguments: str) -> None:
    fail_alike(f"torch.nn.functional.fractional_max_pool2d(torch.ones(1, 3, 9, 9), {arguments})")
    fail_alike(f"torch.nn.functional.fractional_max_pool3d(torch.ones(1, 3, 9, 9, 9), {arguments})")


@pytest.mark.parametrize("stats", ["torch.ones(6), None", "None, torch.ones(2)", "torch.ones(2), torch.ones(2)"])
def test_one_running_statistic_without_the_other(stats: str) -> None:
    fail_alike(f"torch.native_batch_norm(torch.ones(1, 2, 3), None, None, {stats}, True, 0.5, 1e-5)[0]")


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("weight", ["torch.tensor(0.75)", "torch.tensor([0.75])"])
@pytest.mark.parametrize("ends", ["float32", "float16", "complex64", "int64"])
@pytest.mark.parametrize("shape", ["()", "(2,)"])
def test_a_weight_without_dimensions_counts_as_a_number(ends: str, weight: str, dtype: str, shape: str) -> None:
    if (ends, dtype) == ("float16", "complex64"):
        pytest.skip("there are no arrays of complex32")

    def program(torch: Any) -> Any:
        x = torch.ones(eval(shape), dtype=getattr(torch, ends))
        share = eval(weight, {"torch": torch}).to(getattr(torch, dtype))
        found = attempt(lambda: torch.lerp(x, x * 3, share))
        written = attempt(lambda: torch.ones(2, dtype=x.dtype).lerp_(x * 3, share))
        return [part.kind if not isinstance(part, torch.Tensor) else part for part in (found, written)]

    same(program)


def test_gradients_through_a_weight_of_another_dtype() -> None:
    def program(torch: Any) -> Any:
        x, share = torch.ones(2, requires_grad=True), torch.tensor(0.25, dtype=torch.float64, requires_grad=True)
        made = torch.lerp(x, x * 3, share)
        return made, type(made.grad_fn).__name__, torch.autograd.grad(made.sum(), (x, share))

    same(program)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("int64", "int64"), ("float32", "int64")])
@pytest.mark.parametrize(
    "shapes",
    [((2, 3, 5, 5), (2, 0, 5, 2)), ((0, 3, 5, 5), (0, 1, 5, 2)), ((2, 0, 5, 5), (2, 1, 5, 2)),
     ((2, 3, 5, 5, 5), (2, 0, 5, 2, 3)), ((2, 3, 5, 5), (2, 1, 5, 2))],
)  # fmt: skip
def test_nothing_is_sampled_at_points_of_any_dtype(shapes: Any, dtypes: Any, mode: str) -> None:
    image, grid = (f"torch.ones({shape}, dtype=torch.{dtype})" for shape, dtype in zip(shapes, dtypes, strict=True))
    fail_alike(f"torch.nn.functional.grid_sample({image}, {grid}, {mode!r}, align_corners=False)")


@pytest.mark.parametrize("call", ["kthvalue(x, -3, 300)", "kthvalue(x, 3, 0)", "topk(x, -1, 4)", "topk(x, 9, 0)"])
@pytest.mark.parametrize("shape", ["(5,)", "()"])
def test_a_dimension_there_is_not_is_named_before_a_rank_there_is_not(call: str, shape: str) -> None:
    fail_alike("torch." + call.replace("x", f"torch.ones({shape})", 1) + "[0]")


@pytest.mark.parametrize("sizes", ["(1,)", "(1, 1)", "(1, 1, 1)", "1", "(None,)"])
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("dims", [2, 3])
def test_adaptive_pools_have_one_size_or_one_for_each_dimension(kind: str, dims: int, sizes: str) -> None:
    fail_alike(f"torch.nn.functional.adaptive_{kind}_pool{dims}d(torch.ones({[2, 3, 4, 4][: dims + 1]}), {sizes})")


@pytest.mark.parametrize("arguments", ["3, 3, 1.5", "3, 3, float('inf')", "3, 3.5", "3.5, 3", "3, 3, 1"])
@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_triangles_are_counted_in_integers(name: str, arguments: str) -> None:
    fail_alike(f"torch.{name}({arguments})")


@pytest.mark.parametrize("ends", ["int64, int64", "int64, int32", "float32, float64", "float16, int64"])
def test_ends_of_another_dtype_are_refused_beside_a_number(ends: str) -> None:
    one, other = (f"torch.ones(2, dtype=torch.{dtype})" for dtype in ends.split(", "))
    fail_alike(f"torch.lerp({one}, {other}, 0.25)")
    fail_alike(f"{one}.lerp_({other}, 0.25)")


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("values", ["()", "(1,)", "(5,)", "(1, 1)", "(1, 5)", "(1, 1, 5)", "(5, 5)", "(1, 5, 5)"])
@pytest.mark.parametrize(
    "indices",
    ["(torch.tensor(0),)", "(torch.tensor([0]),)", "(torch.tensor(0), torch.tensor(1))", "(torch.ones(5) > 0,)",
     "(torch.ones(5, 5) > 0,)", "(torch.tensor([[0, 1]]),)", "(torch.tensor([0, 1]), torch.tensor([[1], [2]]))"],
)  # fmt: skip
def test_values_of_index_put_have_no_dimensions_to_spare(indices: str, values: str, accumulate: bool) -> None:
    fail_alike(f"torch.index_put(torch.zeros(5, 5), {indices}, torch.ones({values}), {accumulate})")
    fail_alike(f"torch.zeros(5, 5).index_put_({indices}, torch.ones({values}), {accumulate})")


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shapes", [((1, 2, 3), (3, 2, 3)), ((1, 3, 2), (4, 3, 1)), ((3, 3, 2), (1, 3, 1))])
def test_ranks_are_those_of_the_matrices_and_not_of_every_right_hand_side(shapes: Any, driver: str) -> None:
    def program(torch: Any) -> Any:
        matrix, other = (torch.ones(shape, dtype=torch.float64) for shape in shapes)
        return [tuple(part.shape) for part in torch.linalg.lstsq(matrix, other, driver=driver)]

    same(program)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "float16"])
@pytest.mark.parametrize("power", ["float64", "float32", "float16"])
@pytest.mark.parametrize("exponent", [600.5, 100.25, -600.5])
def test_powers_of_two_of_one_number_for_another(exponent: float, power: str, dtype: str) -> None:
    if (power, dtype) == ("float64", "float16"):
        pytest.skip("torch computes in the memory of the result, which is too narrow")

    def program(torch: Any) -> Any:
        x = torch.tensor(0.5, dtype=getattr(torch, dtype))
        by = torch.tensor(exponent, dtype=getattr(torch, power))
        return torch.ldexp(x, by), attempt(lambda: x.clone().ldexp_(by))

    same(program)
