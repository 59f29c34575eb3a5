"""Corners in which runs of a hundred thousand random programs met differences: each is a program run on both."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

INF = float("inf")


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("value", [0.5, 2])
@pytest.mark.parametrize("call", ["addcmul", "addcdiv"])
def test_a_tangent_has_the_dtype_of_what_moves_beside_factors_that_hold_still(
    call: str, value: float, dtype: str
) -> None:
    if call == "addcdiv" and dtype != "float32":
        pytest.skip("quotients of integers are refused")

    def program(torch: Any) -> Any:
        still = torch.ones(3, 1, dtype=getattr(torch, dtype))
        x = torch.tensor(0.3, dtype=torch.float64)
        return torch.func.jvp(lambda x: getattr(torch, call)(x, still, still, value=value), (x,), (x,))

    same(program)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("sizes", [((2, 10, 5), (1, 0, 3)), ((2, 10, 0), (2, 5, 3)), ((2, 10, 5), (2, 4, 3))])
def test_batches_of_other_dtypes_without_elements_still_have_to_fit(sizes: Any, dtype: str) -> None:
    agree(f"torch.matmul(torch.ones{sizes[0]}.to(torch.{dtype}), torch.zeros{sizes[1]}.to(torch.uint8))")


@pytest.mark.parametrize("shape", [(2, 3, 4), (4,), (2, 2, 3, 4)])
@pytest.mark.parametrize("bias", ["torch.ones(1).expand(4)", "torch.ones(())", "torch.ones(2, 4)", "torch.ones(4)"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64", "float32"])
def test_a_bias_is_added_to_a_product_that_keeps_its_dtype_and_shape(shape: Any, bias: str, dtype: str) -> None:
    agree(f"torch.nn.functional.linear(torch.ones{shape!r}, torch.ones(4, 4), {bias}.to(torch.{dtype}))")


@pytest.mark.parametrize("std", [INF, 1.5, 1e308])
@pytest.mark.parametrize("mean", [1.6, INF, -INF, float("nan")])
@pytest.mark.parametrize("size", [12, 40])
def test_normal_numbers_around_or_of_infinities(mean: float, std: float, size: int) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(1)
        return torch.normal(mean, std, [size], dtype=torch.float64), torch.empty(size).double().normal_(mean, std)

    same(program)


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float32", "int64"])
def test_normal_numbers_of_integers_are_drawn_in_the_dtype_they_are_written_in(dtype: str) -> None:
    def program(torch: Any) -> Any:
        whole, out = torch.tensor([1, 2, 3]), torch.zeros(3, dtype=getattr(torch, dtype))
        for mean, std in ((2.7, whole), (whole, 1.5), (whole, whole), (whole.float(), whole)):
            torch.manual_seed(3)
            yield attempt(lambda mean=mean, std=std: torch.normal(mean, std, out=out).clone())

    same(lambda torch: list(program(torch)))


@pytest.mark.parametrize("mode", ["replicate", "reflect", "circular", "constant"])
@pytest.mark.parametrize("shape", [(0, 3, 3, 3), (0, 3, 3), (1, 0, 3)])
def test_no_images_are_padded_by_any_number(mode: str, shape: Any) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(shape, requires_grad=True)
        padded = attempt(lambda: torch.nn.functional.pad(x, (2**40, 0), mode))
        if not isinstance(padded, torch.Tensor):
            return padded
        return padded.shape, padded.stride(), torch.autograd.grad(padded.sum(), x)

    same(program)


@pytest.mark.parametrize("repeats", [(-1,), (2, -1), (2**63 - 1,), (3,), (1, 2**40), (-(2**62),)])
def test_no_elements_are_repeated_any_number_of_times(repeats: Any) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(0, requires_grad=True)
        repeated = x.repeat(repeats)
        return repeated.shape, torch.tile(x, repeats).shape, attempt(lambda: torch.autograd.grad(repeated.sum(), x))

    same(program)


def test_gradients_of_repeated_nothing_are_part_of_the_graph() -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(0, requires_grad=True)
        out = x.repeat(2, 1)
        cotangent = torch.ones(out.shape, requires_grad=True)
        (first,) = torch.autograd.grad(out, x, cotangent, create_graph=True)
        return first.requires_grad, torch.autograd.grad(first.sum(), cotangent)

    same(program)


@pytest.mark.parametrize("n", [4, 29, 35, 100, 170, 300, 1000])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_polygamma_of_half_precision_overflows_where_torch_adds_in_single(dtype: str, n: int) -> None:
    agree(f"torch.polygamma({n}, torch.tensor([-8.5, -1.766, 3.0, 0.0, -2.0, 0.5, 12.0], dtype=torch.{dtype}))")


@pytest.mark.parametrize("name", ["laguerre_polynomial_l", "legendre_polynomial_p", "hermite_polynomial_h"])
@pytest.mark.parametrize("n", [-2.0, -1.766, -0.5, 0.0, 2.0])
@pytest.mark.parametrize("x", [0.0, 1.0, -1.0, 0.5])
def test_polynomials_of_negative_degree_are_zero_also_without_dimensions(name: str, n: float, x: float) -> None:
    agree(f"torch.special.{name}(torch.tensor({x}), torch.tensor({n}))")


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128"])
@pytest.mark.parametrize("value", ["7", "torch.tensor(7, dtype=x.dtype)"])
def test_what_one_index_fills_in_an_expanded_tensor_stays_filled(value: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(5).to(getattr(torch, dtype)).expand(4, 5)
        mask = torch.zeros(4, 5, dtype=torch.bool)
        mask[1, 0] = mask[0, 1] = mask[3, 2] = True
        return x.masked_fill_(mask, eval(value, {"torch": torch, "x": x})).clone()

    same(program)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("target", ["[True, False, True]", "torch.tensor([1, 0, 1]).byte()", "[1.0, -1.0, 1.0]"])
def test_soft_margins_of_bools_and_bytes_and_their_gradients_where_exponentials_are_infinite(
    target: str, reduction: str
) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([1.0, 2.0, -100.0], requires_grad=True)
        signs = torch.as_tensor(eval(target, {"torch": torch}))
        loss = torch.nn.functional.soft_margin_loss(x, signs, reduction=reduction).sum()
        return loss, attempt(lambda: torch.autograd.grad(loss, x))

    same(program)


@pytest.mark.parametrize("p", [INF, 2.0, 1.0])
def test_distances_of_infinite_rows_pass_nan_to_their_gradients(p: float) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([[1.0, INF, 2.0], [0.5, 3.0, float("nan")], [1.0, 2.0, 3.0]], requires_grad=True)
        y = torch.tensor([[1.0, 2.0, 5.0], [0.5, 3.0, 2.0], [1.0, 2.5, 3.0]], requires_grad=True)
        return [torch.autograd.grad(torch.nn.functional.pdist(rows, p).sum(), rows) for rows in (x, y)]

    same(program)


def test_the_tangent_of_equal_numbers_is_that_of_the_second_in_fmax_and_of_the_first_in_fmin() -> None:
    def program(torch: Any) -> Any:
        x, y = torch.tensor([1.0, 2.0, 3.0, float("nan"), 0.0]), torch.tensor([1.0, 3.0, 2.0, 1.0, -0.0])
        moving = (torch.ones(5), torch.full((5,), 3.0))
        return [torch.func.jvp(getattr(torch, name), (x, y), moving) for name in ("fmax", "fmin")]

    same(program)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("history", [False, True])
def test_ranges_between_what_wants_a_gradient_are_written_with_a_node_that_refuses_one(
    name: str, history: bool
) -> None:
    def program(torch: Any) -> Any:
        start, out = torch.tensor(1.0, requires_grad=True), torch.zeros(3, requires_grad=history) * 2
        made = getattr(torch, name)(start, torch.tensor(2), 3, out=out)
        return made, made.grad_fn, attempt(lambda: made.sum().backward())

    same(program)


def test_truths_written_into_a_tensor_leave_its_history() -> None:
    def program(torch: Any) -> Any:
        out = torch.zeros(3, requires_grad=True) * 2
        return torch.diff(torch.tensor([True, False, True, True]), out=out), out.grad_fn

    same(program)


def test_functions_without_a_derivative_write_into_out_while_their_operands_move() -> None:
    def program(torch: Any) -> Any:
        x, out = torch.tensor([0.5, 1.5]), torch.zeros(2)
        return torch.func.jvp(lambda x: (torch.special.bessel_y1(x, out=out), x)[1], (x,), (x,)), out

    same(program)


@pytest.mark.parametrize(
    "call",
    ["cholesky_inverse(x, out=out)", "linalg.householder_product(x, x[0], out=out)", "linalg.inv(x, out=out)",
     "matrix_power(x, -1, out=out)", "linalg.cholesky(x, out=out)", "cholesky_solve(x, x, out=out)"],
)  # fmt: skip
@pytest.mark.parametrize("size", [0, 2])
def test_what_a_factorisation_is_written_into_lies_as_in_torch_where_it_is_resized(size: int, call: str) -> None:
    def program(torch: Any) -> Any:
        x, out = torch.eye(3, dtype=torch.float64) * 2, torch.zeros(size, dtype=torch.float64)
        eval(f"torch.{call}", {"torch": torch, "x": x, "out": out})
        return out, out.stride()

    same(program)


def test_pointwise_results_lie_in_one_order_whether_they_are_new_or_written_into_what_is_resized() -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(12).reshape(2, 1, 3, 2)
        turned = x.permute(3, 2, 1, 0)
        out = torch.logical_or(turned, x, out=torch.zeros(0, dtype=torch.int8))
        return (
            out.stride(),
            torch.logical_or(turned, x).stride(),
            torch.add(turned, x, out=torch.zeros(0).long()).stride(),
        )

    same(program)


@pytest.mark.parametrize("step", ["-0.3", "1.0", "0", "-1", "2"])
def test_steps_of_windows_are_integers_before_they_are_positive(step: str) -> None:
    agree(f"torch.zeros(4, 4).unfold(1, 2, {step})")


def test_vectors_without_elements_have_a_say_in_the_dtype_of_joined_batches() -> None:
    def program(torch: Any) -> Any:
        nothing, x = torch.zeros(2, 0, dtype=torch.complex64), torch.ones(2, 3, 3, dtype=torch.float64)
        return torch.vmap(lambda a, b: torch.cat([a, b], 1))(nothing, x)

    same(program)


@pytest.mark.parametrize("call", ["new_zeros(x, (2, 3))", "new_ones(x, 3)", "new_full(x, (3,), 2.0)"])
def test_methods_called_by_their_class_make_a_tensor_for_each_entry_of_a_batch(call: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any, y: Any) -> Any:
            return eval(f"torch.Tensor.{call}", {"torch": torch, "x": x}).add_(y)

        return torch.vmap(function)(torch.ones(2, 5), torch.arange(2.0).reshape(2, 1))

    same(program)


def test_no_batch_is_written_into_a_tensor_without_one_that_takes_the_shape_of_a_result() -> None:
    def program(torch: Any) -> Any:
        f, g = torch.ones(2, 3, 2, 4), torch.ones(2, 3, 4, 5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return attempt(lambda: torch.vmap(lambda f, g: torch.zeros(()).addbmm_(f, g))(f, g))

    same(program)


@pytest.mark.parametrize("tolerance", ["rtol=2", "atol=1.0", "rtol=0.5", "rtol=0, atol=0"])
def test_truths_are_close_within_a_tolerance_as_numbers_are(tolerance: str) -> None:
    agree(f"torch.isclose(torch.tensor([True, True, False]), torch.tensor([False, True, True]), {tolerance})")


@pytest.mark.parametrize("momentum", ["1j", "None", "'x'", "True", "0.5"])
@pytest.mark.parametrize("training", [True, False])
def test_a_momentum_is_a_number_also_where_it_is_not_needed(momentum: str, training: bool) -> None:
    x = "torch.arange(6.0).reshape(3, 2), torch.ones(2), torch.ones(2)"
    agree(f"torch.nn.functional.batch_norm({x}, training={training}, momentum={momentum})")


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64"])
def test_derivatives_of_zeta_by_integers_are_those_of_single_precision(dtype: str) -> None:
    def program(torch: Any) -> Any:
        x, y = torch.tensor([1, 2, 3]).to(getattr(torch, dtype)), torch.tensor(2.25).double().requires_grad_()
        return torch.autograd.grad(torch.special.zeta(x, y).sum(), y)

    same(program)


@pytest.mark.parametrize("order", [("jacfwd", "jacfwd"), ("jacfwd", "jacrev"), ("jacrev", "jacfwd")])
def test_writes_nobody_records_move_tangents_of_a_batch(order: tuple[str, str]) -> None:
    def program(torch: Any) -> Any:
        x, y = torch.tensor([0.3]).double(), torch.tensor([0.7]).double()

        def function(x: Any) -> Any:
            x = x.clone()
            x[0] = y
            with torch.no_grad():
                x.sin_()
            return x.sum()

        outer, inner = (getattr(torch.func, name) for name in order)
        return outer(inner(function))(x)

    same(program)


@pytest.mark.parametrize("size", [-1, 0, 5, -0.3, 0.0])
def test_no_samples_are_normalised_whatever_size_they_are_said_to_have(size: int) -> None:
    agree(f"torch.native_group_norm(torch.ones(0, 2), torch.ones(2), torch.ones(2), 0, 2, {size}, 1, 1e-5)")


@pytest.mark.parametrize("out", ["torch.empty(0)", "torch.tensor(1)", "torch.tensor(1), dtype=torch.float32"])
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("call", ["linspace", "logspace"])
def test_complex_bounds_are_refused_by_the_elements_of_out_and_not_by_its_dtype(
    call: str, steps: int, out: str
) -> None:
    agree(f"torch.{call}(0, 1j, {steps}, out={out})")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wants", [(False, False), (False, True), (True, False)])
def test_copies_cut_off_from_the_graph_are_written_where_asked(wants: tuple[bool, bool], dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(2, 3, requires_grad=wants[0])
        out = torch.zeros(0, dtype=getattr(torch, dtype), requires_grad=wants[1]) * 1
        return attempt(lambda: torch.detach_copy(x, out=out)), out.grad_fn

    same(program)


@pytest.mark.parametrize("pad", [(0, 0), (-1, 0), (1, -1), (1, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_a_number_that_nothing_is_padded_with_need_not_fit(dtype: str, pad: Any) -> None:
    agree(f"torch.constant_pad_nd(torch.ones(2).to(torch.{dtype}), {pad}, 1j)")


@pytest.mark.parametrize("shape", [(4, 0), (0, 4), (0,), (2, 3)])
@pytest.mark.parametrize("indices", ["torch.tensor([1, 2])", "torch.zeros(0).long()", "torch.tensor(1)"])
def test_places_in_tensors_without_elements_are_divided_by_zero(indices: str, shape: Any) -> None:
    agree(f"torch.unravel_index({indices}, {shape})")


@pytest.mark.parametrize("n", [0, 1, 2, 4])
@pytest.mark.parametrize("x", ["(1, 5).half().expand(5, 5)", "(3, 2).half().t()", "(2, 3).half()[:, ::2]"])
def test_polygamma_of_half_precision_lies_in_memory_as_torchs_does(x: str, n: int) -> None:
    agree(f"torch.polygamma({n}, torch.ones{x}).stride()")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32"])
@pytest.mark.parametrize("shape", ["3", "2, 3"])
def test_bilinear_products_of_truths_are_refused(shape: str, dtype: str) -> None:
    def program(torch: Any) -> Any:
        x, weight = (
            eval(f"torch.ones({size})", {"torch": torch}).to(getattr(torch, dtype)) for size in (shape, "5, 3, 3")
        )
        return attempt(lambda: torch.nn.functional.bilinear(x, x, weight))

    same(program)


@pytest.mark.parametrize("values", ["[0.5, 1.]", "[1, 0]", "[True, False]", "[1j]", "[]", "0.5", "1", "True"])
@pytest.mark.parametrize("call", ["torch.bucketize({0}, {1})", "torch.searchsorted({1}, {0}, right=True)"])
def test_truths_are_boundaries_of_numbers_but_not_of_truths(call: str, values: str) -> None:
    agree(call.format(f"torch.tensor({values})", "torch.tensor([False, True])"))


@pytest.mark.parametrize("size", [(1, 2, -0.3), (1, 2, 0.3), (1, 2, -1), (1, 2, 2.0), (-0.3,), (1,), None])
@pytest.mark.parametrize("padding", [1, 2])
def test_pools_are_not_undone_to_negative_sizes(size: Any, padding: int) -> None:
    pool = "torch.ones(1, 2, 1).double(), torch.zeros(1, 2, 1, dtype=torch.int64), kernel_size=3"
    agree(f"torch.nn.functional.max_unpool1d({pool}, padding=({padding},), output_size={size})")


@pytest.mark.parametrize("values", ["float32", "float64", "int64"])
@pytest.mark.parametrize("places", ["int64", "int32"])
@pytest.mark.parametrize("call", ["cummax(x, 0", "cummin(x, 0", "kthvalue(x, 1", "mode(x", "frexp(x"])
def test_values_and_places_are_written_into_their_own_dtypes_alone(call: str, places: str, values: str) -> None:
    pair = f"(torch.empty(0, dtype=torch.{values}), torch.empty(0, dtype=torch.{places}))"
    agree(f"(lambda x: torch.{call}, out={pair}))(torch.tensor([[3.0, 1.0], [2.0, 4.0]]))")


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize(
    "call", ["slice_scatter(x, x[:1], 0, 0, 1", "linalg.vector_norm(x", "bmm(x[None], x[None]", "cat([x, x]"]
)
def test_results_are_written_into_the_dtypes_torch_writes_them_into(call: str, dtype: str) -> None:
    agree(f"(lambda x: torch.{call}, out=torch.empty(0, dtype=torch.{dtype})))(torch.tensor([[3.0, 1.0], [2.0, 4.0]]))")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("parameters", ["None, w", "w, None", "w, w", "None, None"])
@pytest.mark.parametrize(
    "call",
    [
        "native_layer_norm(x, (4,), {0}, 0.5)",
        "native_group_norm(x, {0}, 2, 4, 1, 2, 0.5)",
        "native_batch_norm(x, {0}, None, None, True, 0.1, 0.5)",
    ],
)
def test_statistics_have_the_dtype_of_the_parameters_also_of_a_bias_alone(
    call: str, parameters: str, dtype: str
) -> None:
    x = f"torch.tensor([[1.0, 2.0, 4.0, 5.0], [3.0, -2.0, 0.5, 1.0]]).to(torch.{dtype})"
    agree(f"(lambda x, w: torch.{call.format(parameters)})({x}, torch.tensor([1.0, 2.0, 3.0, 4.0]))")


@pytest.mark.parametrize("size", ["4", "5", "0", "2, 4", "stepped"])
@pytest.mark.parametrize("call", ["matmul(a, b", "nn.functional.linear(a, b.t()", "linalg.multi_dot([a, b]"])
def test_a_vector_times_a_matrix_makes_one_row_of_out(call: str, size: str) -> None:
    def program(torch: Any) -> Any:
        a, b = torch.tensor([1.0, 2.0, 3.0]), torch.arange(12.0).reshape(3, 4)
        out = torch.zeros(8)[::2] if size == "stepped" else eval(f"torch.zeros({size})", {"torch": torch})
        eval(f"torch.{call}, out=out)", {"torch": torch, "a": a, "b": b, "out": out})
        return out, out.stride(), out._version

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)


@pytest.mark.parametrize("unbiased", [0, 1, 0.0, False, True, None])
@pytest.mark.parametrize("name", ["std", "var"])
def test_masked_deviations_ask_a_number_whether_it_is_true(name: str, unbiased: Any) -> None:
    agree(f"torch.masked.{name}(torch.tensor([1.0, 2.0, 4.0]), 0, {unbiased})")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("target", ["int64", "int32", "int8"])
def test_gradients_of_soft_margins_overflow_in_the_dtype_of_the_scores(dtype: str, target: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([-30.0, -8.0, 0.5, 20.0], dtype=getattr(torch, dtype), requires_grad=True)
        signs = torch.tensor([5, -3, 1, -4], dtype=getattr(torch, target))
        torch.nn.functional.soft_margin_loss(x, signs, reduction="sum").backward()
        return x.grad

    same(program)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "float16", "float64"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_polygamma_of_integers_is_that_of_floats(n: int, dtype: str) -> None:
    agree(f"torch.polygamma({n}, torch.tensor([7, 4, 1]).to(torch.{dtype}))")


ENDING = (
    "alias_copy(a)", "as_strided_copy(a, (2, 2), (1, 2))", "diagonal_copy(a)", "expand_copy(a, (2, 2))", "t_copy(a)",
    "permute_copy(a, (1, 0))", "squeeze_copy(a)", "squeeze_copy(a, 0)", "transpose_copy(a, 0, 1)", "view_copy(a, (4,))",
    "unfold_copy(a, 0, 1, 1)", "unsqueeze_copy(a, 0)", "select_copy(a, 0, 0)", "slice_copy(a, 0, 0, 1)", "diag(a)",
    "view_as_real_copy(a.to(torch.complex64))", "view_as_complex_copy(a)", "slice_scatter(a, a[:1], 0, 0, 1)",
    "conj_physical(a)", "conj_physical(a.to(torch.complex64))", "floor_divide(a, a)", "floor_divide(a, 2)",
    "diag(a[0])", "softmax(a, 0)", "log_softmax(a, 0)", "linalg.eigvals(a)", "fft.ifft(a)", "fft.ihfft(a)",
    "exp(a)", "fft.fft(a)",
)  # fmt: skip


@pytest.mark.parametrize("history", ["of out", "of the operand", "of a leaf", "nowhere"])
@pytest.mark.parametrize("call", ENDING)
def test_the_history_of_out_ends_where_torch_has_no_derivative_of_what_it_writes(call: str, history: str) -> None:
    def program(torch: Any) -> Any:
        a = torch.tensor([[1.0, 0.5], [0.25, 2.0]], requires_grad=history == "of the operand")
        result = eval(f"torch.{call}", {"torch": torch, "a": a.detach()})
        out = torch.zeros(result.shape, dtype=result.dtype)
        if history.startswith("of out"):
            out = out.requires_grad_() * 1
        elif history == "of a leaf":
            out.requires_grad_()
        try:
            eval(f"torch.{call[:-1]}, out=out)", {"torch": torch, "a": a, "out": out})
        except RuntimeError:
            return "refused"
        node = out.grad_fn
        return out.detach(), out.requires_grad, out._version, None if node is None else type(node).__name__

    same(program)


def test_backward_through_such_an_out_names_what_has_no_derivative() -> None:
    def program(torch: Any) -> Any:
        a, out = torch.ones(3, requires_grad=True), torch.zeros(3)
        torch.softmax(a, 0, out=out)
        return attempt(lambda: out.sum().backward())

    same(program)


@pytest.mark.parametrize("count", [2, 3, 5, 7, 11])
@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_equal_numbers_do_not_deviate_nor_do_their_derivatives(dtype: str, name: str, count: int) -> None:
    def program(torch: Any) -> Any:
        rows = (torch.arange(1, 40, dtype=torch.float64) / 7).to(getattr(torch, dtype))
        x = rows.expand(count, 39).clone().requires_grad_()
        found = getattr(torch, name)(x, 0)
        spread = found[0] if isinstance(found, tuple) else found
        spread.sum().backward()
        return (spread != 0).sum(), (x.grad.abs() > 1e-6).sum()

    same(program)


@pytest.mark.parametrize(
    "call", ["ones(3).tensor_split(n)", "ones(3).tensor_split(torch.tensor(n))", "ones(0).chunk(n)",
             "ones(0).hsplit(n)", "ones(0).unsafe_chunk(n)"],
)  # fmt: skip
def test_more_parts_than_any_memory_holds_are_refused_at_once(call: str) -> None:
    agree(f"torch.{call}".replace("(n)", "(2**40)"))


@pytest.mark.parametrize("shape", [(1, 2), (5, 2), (5, 1)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_take_along_dim_keeps_its_own_indices_whatever_becomes_of_those_it_was_given(
    dim: int, shape: tuple[int, int]
) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(10.0).reshape(5, 2).requires_grad_()
        indices = torch.ones(shape, dtype=torch.int64)
        taken = torch.take_along_dim(x, indices, dim)
        saved = taken.grad_fn._saved_index
        indices.zero_()
        return torch.autograd.grad(taken.sum(), x), saved.stride(), saved._version

    same(program)


@pytest.mark.parametrize("call", ["(torch.ones(2, 0), i(2, 1), 1)", "(torch.ones(2, 3), i(1, 0), 0)",
                                  "(torch.ones(2, 0), i(2, 0), 1)", "(torch.ones(2, 3), i(3, 3), 1)"])  # fmt: skip
def test_take_along_dim_of_nothing_and_of_sizes_that_do_not_fit(call: str) -> None:
    agree(f"torch.take_along_dim{call}".replace("i(", "torch.zeros(dtype=torch.int64, size=(").replace("),", ")),"))
