"""Corners in which random programs met differences: each is a program run on both libraries."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

DEGREES = "torch.tensor([nan, inf, -inf, 2.5, 1e30, -1.0, 3.0])"
POLYNOMIALS = [
    f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"
] + ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]  # fmt: skip
WINDOWS = [
    "exponential", "cosine", "gaussian", "kaiser", "bartlett", "hamming", "hann", "blackman", "nuttall",
    "general_hamming",
]  # fmt: skip


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("margin", [3, 3.0, 0, 2.5, -1.5])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16", "float16"])
def test_the_margin_of_a_loss_of_integers_is_a_float_or_one_of_them(margin: Any, reduction: str, dtype: str) -> None:
    for name in ("margin_ranking_loss", "hinge_embedding_loss"):
        c = f"torch.tensor([1, 2], dtype=torch.{dtype})"
        rest = f"{c}, torch.tensor([1, -1])" if name.startswith("margin") else "torch.tensor([1, -1])"
        agree(f"F.{name}({c}, {rest}, margin={margin}, reduction='{reduction}')")


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian", "amax"])
@pytest.mark.parametrize("source", ["[1.0, nan, 3.0, nan]", "[1.0, 3.0, 3.0, 1.0]"])
def test_the_tangent_of_an_extreme_that_is_nan_is_nan(name: str, source: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(eval(source, {"nan": math.nan}))
        return torch.func.jvp(getattr(torch, name), (x,), (torch.arange(1.0, 5.0),))[1]

    same(program)


@pytest.mark.parametrize("numbers", [(4,), (), (2,), (0,), (-1,)])
@pytest.mark.parametrize("source", ["i", "-i", "i.float()"])
def test_one_hot_inside_vmap_wants_to_be_told_how_many_classes_there_are(source: str, numbers: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        i = eval(source, {"i": torch.tensor([[0, 1], [2, 3]])})
        one_hot = torch.nn.functional.one_hot
        return attempt(lambda: torch.func.vmap(lambda i: one_hot(i, *numbers), 1, 1)(i))

    same(program)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_second_derivative_of_sinc_near_zero_has_torchs_rounding(dtype: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([1e-30, 1e-12, 1e-8, 1e-6, 1e-3, 0.1], dtype=getattr(torch, dtype), requires_grad=True)
        (first,) = torch.autograd.grad(torch.sinc(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)

    same(program)


WRITES_OF_NUMBERS = [
    "h[..., 0] = 2.5", "h[0] = 2.5", "h[0] = True", "h[:2] = 0", "h[...] = 0.0", "h[True] = 3.0", "h[0, 1] = 5.0",
    "h[0].fill_(2.5)", "h.fill_(torch.tensor(2.0))", "h[h > 0] = 2.0", "h[0] = torch.zeros(3)", "h.fill_diagonal_(2.0)",
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES_OF_NUMBERS)
@pytest.mark.parametrize("start", ["h", "h * 1"])
def test_what_was_overwritten_with_a_number_no_longer_moves(start: str, write: str) -> None:
    def program(torch: Any) -> Any:
        def function(h: Any) -> Any:
            names = {"h": eval(start), "torch": torch}
            views = [names["h"][0], names["h"].view(-1), *names["h"].unbind(1)]
            exec(write, names)
            return names["h"], *views

        moves = torch.arange(9.0).view(3, 3)
        return torch.func.jvp(function, (torch.ones(3, 3),), (moves,))

    same(program)


@pytest.mark.parametrize("shapes", [((2, 10), (2, 5, 10, 4)), ((10,), (2, 5, 10, 4)), ((2, 10), (5, 10, 4))])
def test_a_vector_times_a_batch_of_matrices_inside_vmap(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    def program(torch: Any) -> Any:
        a, b = (torch.arange(math.prod(shape)).view(shape) * 1.0 for shape in shapes)
        dims = tuple([0 if shape[0] == 2 else None for shape in shapes])
        return torch.func.vmap(torch.matmul, dims)(a, b)

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("parameters", ["own", "float32", "none"])
def test_the_tangent_of_batch_norm_has_the_dtype_of_its_parameters(dtype: str, parameters: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(24.0).view(3, 2, 4).to(getattr(torch, dtype))
        p = torch.ones(2, dtype=x.dtype if parameters == "own" else torch.float32)
        given = (None, None) if parameters == "none" else (p, p)

        def function(x: Any) -> Any:
            return torch.nn.functional.batch_norm(x, *[g if g is None else g.clone() for g in given], *given, True)

        return attempt(lambda: [str(t.dtype) for t in torch.func.jvp(function, (x,), (x,))])

    same(program)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_degrees_no_integer_can_hold_are_zero(name: str) -> None:
    for x in ("0.5", "1.0"):
        agree(f"torch.special.{name}({x}, {DEGREES})")


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_that_requires_grad_is_the_result_of_ops(name: str) -> None:
    def names(node: Any) -> Any:
        return None if node is None else [type(node).__name__, [names(below) for below, _ in node.next_functions]]

    def program(torch: Any) -> Any:
        window = getattr(torch.signal.windows, name)
        return [names(window(M, requires_grad=True).grad_fn) for M in (0, 1, 2, 5)]

    same(program)


@pytest.mark.parametrize(
    "source",
    [
        "torch.view_copy(torch.arange(6).view(2, 3).t(), (2, 3))",
        "torch.view_copy(torch.ones(1, 5).expand(4, 5), (5, -1))",
        "torch.view_copy(torch.ones(4), (3, -1))",
    ],
)
def test_view_copy_copies_what_no_view_could_show(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64"])
def test_unravel_index_gives_int64(dtype: str) -> None:
    agree(f"torch.unravel_index(torch.tensor([3, 5], dtype=torch.{dtype}), (2, 3))")


@pytest.mark.parametrize("decimals", [400, 2**40, -(2**40)])
def test_rounding_to_more_decimals_than_there_are_gives_nan(decimals: int) -> None:
    agree(f"torch.round(torch.tensor([1.5, -2.0]), decimals={decimals}).isnan()")


@pytest.mark.parametrize(
    "source",
    [
        "torch.tensor([True]).cumsum_(0)",
        "torch.tensor(True).cumsum_(0)",
        "torch.tensor([], dtype=torch.bool).cumprod_(0)",
        "torch.tensor([1]).cumsum_(0, dtype=torch.float32)",
        "torch.tensor([1.0]).cumprod_(0, dtype=torch.float64)",
        "torch.tensor([100, 100], dtype=torch.int8).cumsum_(0)",
        "torch.tensor([[1.0, 2.0], [3.0, 4.0]]).cumsum_(1)",
        "torch.tensor([1.0]).cumsum_(3)",
    ],
)
def test_running_sums_in_place_keep_the_dtype_they_find(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "call", ["to(torch.float32, memory_format={})", "to(memory_format={})", "float(memory_format={})"]
)
def test_a_tensor_that_is_not_channels_last_counts_as_contiguous(call: str) -> None:
    for start in ("torch.ones(2, 3).t()", "torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)"):
        agree(f"x = {start}; y = x.{call.format('torch.contiguous_format')}; [y is x, list(y.stride())]")


@pytest.mark.parametrize(
    "source",
    [
        "torch.linspace(0, 1, 1, dtype=torch.bool)",
        "torch.linspace(0, 1, 2, dtype=torch.bool)",
        "torch.tensordot(torch.ones(1, 1, dtype=torch.int8), torch.ones(2, 1, dtype=torch.int8), ([0, 1], [0, 1]))",
        "torch.tensordot(torch.ones(1, 1, dtype=torch.bool), torch.ones(2, 1, dtype=torch.bool), ([0, 1], [0, 1]))",
        "F.max_unpool2d(torch.ones(1, 1, 1, dtype=torch.uint8), torch.zeros(1, 1, 1, dtype=torch.int64), 2)",
    ],
)
def test_dtypes_with_and_without_kernels(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.softmax(torch.ones(2, 0, dtype=torch.int64), -1)",
        "torch.softmax(torch.ones(2, 0, dtype=torch.complex64), 3)",
        "torch.log_softmax(torch.ones(0, 2, dtype=torch.bool), 0)",
        "torch.softmax(torch.ones(2, dtype=torch.bool), 0)",
        "torch.cummax(torch.ones(2, 0, dtype=torch.complex64), 0)",
        "torch.cummin(torch.tensor(1j), 0)",
        "torch.cummin(torch.tensor([1j]), 0)",
        "torch.mode(torch.ones(2, 0, dtype=torch.complex64), 0)",
        "torch.mode(torch.tensor(1j), 0)",
        "torch.mm(torch.ones(2, 0, dtype=torch.bool), torch.ones(0, 2, dtype=torch.bool))",
        "torch.mv(torch.ones(0, 2, dtype=torch.bool), torch.ones(2, dtype=torch.bool))",
        "torch.bmm(torch.ones(0, 2, 2, dtype=torch.bool), torch.ones(0, 2, 2, dtype=torch.bool))",
        "torch.cumsum(torch.ones(0), 0, dtype=torch.bool)",
        "F.max_unpool2d(torch.ones(0, 1, 1, 1, dtype=torch.uint8), torch.zeros(0, 1, 1, 1, dtype=torch.int64), 2)",
    ],
)
def test_no_kernel_is_missing_where_there_are_no_elements(source: str) -> None:
    agree(source)


ONCE = [
    "x.add_(2, y)", "x.sub_(2, y)", "torch.add(x, 2, y)", "torch.sub(x, 2, y)", "x.__iadd__(2, y)",
    "torch.add(x, 2, y, out=torch.zeros(3))", "x.addcmul_(2, y, y)", "x.addcdiv_(2, y, y)", "torch.addcmul(x, 2, y, y)",
    "torch.addcdiv(x, 2, y, y, out=torch.zeros(3))", "x.addmv(2, m, y)", "x.addmv_(2, 3, m, y)",
    "torch.addmv(2, x, m, y)", "torch.addmv(2, x, 3, m, y)", "n.addr(2, x, y)", "n.addr_(2, 3, x, y)",
    "torch.addr(2, m, 3, x, y)", "n.addmm(2, m, m)", "n.addmm_(2, 3, m, m)", "torch.addmm(2, m, m, m)",
    "torch.addmm(2, m, 3, m, m, out=torch.zeros(3, 3))", "b.baddbmm(2, 3, c, c)", "b.baddbmm_(2, c, c)",
    "torch.baddbmm(2, c, 3, c, c)", "n.addbmm(2, c, c)", "n.addbmm_(2, 3, c, c)", "torch.addbmm(2, m, 3, c, c)",
    "torch.add(x, y, y)", "x.add_(y, y)", "torch.addmm(1, 2, 3, m, m)", "x.add_(2, y, alpha=3)",
    "torch.rsub(x, 2, y)", "torch.rsub(x, 2, 3)", "torch.mul(x, 2, y)",
]  # fmt: skip


@pytest.mark.parametrize("call", ONCE)
def test_numbers_may_stand_where_they_once_stood_among_the_tensors_and_a_warning_says_where_now(call: str) -> None:
    def program(torch: Any) -> Any:
        x, y, m, n = torch.arange(3.0), torch.full((3,), 2.0), torch.arange(9.0).view(3, 3), torch.eye(3)
        names = {"torch": torch, "x": x, "y": y, "m": m, "n": n, "b": torch.ones(2, 3, 3), "c": torch.ones(2, 3, 3) + m}
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = attempt(lambda: eval(call, names).tolist())
        finally:
            torch.set_warn_always(always)
        said = [str(w.message).partition(" (Triggered")[0] for w in caught]
        return [getattr(made, "kind", made), said]

    same(program)


@pytest.mark.parametrize(
    "reader", ["torch.add", "torch.eq", "torch.where(x > 0, x, y, out=x), torch.maximum", "torch.fmod"]
)
def test_a_result_does_not_go_where_an_operand_is_that_was_stretched_to_make_it(reader: str) -> None:
    agree(f"x = torch.ones(3, 1); y = torch.ones(3, 4); {reader}(x, y, out=x)")


@pytest.mark.parametrize(
    "source",
    [
        "x.index_fill_(0, torch.tensor([0]), 3)",
        "x.index_fill_(0, torch.tensor([0]), torch.tensor(3.0))",
        "x.masked_fill_(x > 1, 3)",
        "x.index_put_((torch.tensor([0]),), torch.tensor(3.0))",
        "x[torch.tensor([0, 1])] = torch.tensor(3.0); x",
        "x.copy_(x)",
        "x.copy_(x.view(3, 3))",
        "x.copy_(x.clone())",
        "x.scatter_(0, torch.tensor([[0]]), 3.0)",
    ],
)
def test_writes_to_expanded_tensors_that_torch_takes(source: str) -> None:
    agree(f"x = torch.arange(3.0).expand(3, 3); {source}")


@pytest.mark.parametrize(
    "start", ["torch.arange(3.0).expand(3, 3)", "torch.ones(3, 4)[:, ::2]", "torch.ones(3, 4).t()"]
)
def test_copies_with_something_overwritten_lie_in_memory_as_those_of_torch(start: str) -> None:
    for call in (
        "torch.put(x, torch.tensor([0]), torch.ones(1))",
        "torch.index_fill(x, 0, torch.tensor([0]), 1)",
        "torch.index_put(x, (torch.tensor([0]),), torch.tensor(2.0))",
        "torch.select_scatter(x, torch.ones(x.shape[1]), 0, 1)",
        "torch.slice_scatter(x, torch.ones(1, x.shape[1]), 0, 1, 2)",
        "torch.diagonal_scatter(x, torch.ones(min(x.shape)))",
        "torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (2, 1), 0)",
    ):
        agree(f"x = {start}; y = {call}; [y, list(y.stride()), y.storage_offset(), y.untyped_storage().nbytes()]")


@pytest.mark.parametrize(
    "source",
    [
        "a.set_(torch.ones(2))",
        "a.set_(torch.ones(2, requires_grad=True))",
        "a.set_()",
        "a.set_(a)",
        "torch.zeros(3).set_(a)",
        "torch.zeros(3).set_(torch.ones(2))",
        "torch.heaviside(a, a, out=a)",
        "a.sum().movedim(0, -1)",
        "F.linear(torch.ones(2, 3, 3), a.expand(3, 3), torch.ones(6)[::2])",
        "F.linear(torch.ones(2, 3, 3), a.expand(3, 3), torch.ones(2, 3, 3))",
        "F.linear(torch.ones(2, 3, 3), a.expand(3, 3), torch.ones(3))",
        "F.linear(torch.ones(2, 3, 3), a.expand(3, 3), torch.ones(1, 3))",
    ],
)
def test_the_nodes_of_rare_calls(source: str) -> None:
    agree(f"a = torch.ones(3, requires_grad=True) * 2; b = {source}; [b, type(b.grad_fn).__name__, b.requires_grad]")


@pytest.mark.parametrize(
    "source",
    [
        "torch.prelu(torch.ones(3, dtype=torch.int64), torch.ones(1, dtype=torch.int64))",
        "torch.prelu(torch.ones(3, dtype=torch.complex64), torch.ones(1, dtype=torch.complex64))",
        "torch.ones(2, dtype=torch.bool).index_reduce(0, torch.tensor([0]), torch.ones(1, dtype=torch.bool), 'amax')",
        "F.pixel_unshuffle(torch.ones(0, 3, 4, 4), 2)",
        "F.pixel_unshuffle(torch.ones(2, 3, 0, 4), 2)",
        "torch.conv_transpose1d(torch.ones(2, 3, 0), torch.ones(3, 3, 2))",
        "torch.conv_transpose2d(torch.ones(2, 3, 0, 2), torch.ones(3, 3, 2, 2))",
        "torch.conv_transpose2d(torch.ones(0, 3, 0, 2), torch.ones(3, 3, 2, 2))",
        "torch.scatter(torch.ones(3, 2), 0, torch.zeros((0, 2), dtype=torch.int64), torch.ones(0, 0))",
    ],
)
def test_dtypes_and_sizes_of_nothing(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("values", ["inf, 1, 2, 3", "1, 2, 3, inf", "1, -inf, inf, 2", "1, nan, 2, 3", "1, 2, 3, 4"])
@pytest.mark.parametrize("name", ["std_mean", "var_mean"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_mean_beside_a_variance_is_a_running_one(name: str, values: str, dtype: str) -> None:
    made = f"torch.tensor([{values}], dtype=torch.{dtype})"
    for source in (f"{made}, dim=1", f"{made}.T, dim=0", f"{made}.expand(3, 4), dim=-1", f"{made}.view(2, 2)"):
        agree(f"torch.{name}({source})[1]")


FACTORIES = [
    "zeros(3, out=a)",
    "ones(3, out=a)",
    "full((3,), 2.0, out=a)",
    "empty(0, out=a)",
    "eye(3, out=a)",
    "arange(3, out=a)",
    "range(0, 2, out=a)",
    "linspace(0, 1, 3, out=a)",
    "logspace(0, 1, 3, out=a)",
    "rand(3, out=a)",
    "randn(3, out=a)",
    "randint(3, (3,), out=a)",
    "randperm(3, out=a)",
    "normal(0.0, 1.0, (3,), out=a)",
    "fft.fftfreq(3, out=a)",
    "fft.rfftfreq(4, out=a)",
    "heaviside(torch.ones(3), torch.ones(3), out=a)",
]


@pytest.mark.parametrize("call", FACTORIES)
def test_what_a_function_without_a_derivative_does_to_the_history_of_its_out(call: str) -> None:
    leaf = "a = torch.ones(3, requires_grad=True)"
    for source in (f"{leaf}; b = torch.{call}", f"{leaf}[:]; b = torch.{call}", f"{leaf} * 2; b = torch.{call}"):
        agree(f"torch.manual_seed(0); {source}; [b, b is a, type(b.grad_fn).__name__, b.requires_grad, b.is_leaf]")
    agree(f"{leaf} * 2; b = torch.{call}; b.sum().backward()")
    agree(f"{leaf}; f = torch.no_grad()(lambda: torch.{call}); f(); [a.requires_grad, a.is_leaf]")


@pytest.mark.parametrize("factors", ["alpha=1.5", "beta=0.5", "alpha=2, beta=0", "alpha=100"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_sums_of_products_of_small_integers_keep_their_dtype(dtype: str, factors: str) -> None:
    agree(f"x = torch.ones(3, 2, 2, dtype=torch.{dtype}); torch.addbmm(x[0], x, x, {factors})")


@pytest.mark.parametrize("n", [2, 8, 40])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_an_alpha_of_zero_hides_what_blas_does_not_look_at(dtype: str, n: int) -> None:
    operands = f"o = torch.ones({n}, {n}, dtype=torch.{dtype}); x = o * nan"
    for sum_ in (
        "torch.addmm(o, x, o, alpha=0)",
        "torch.addmm(o, x, o, alpha=0, beta=0)",
        "torch.addmv(o[0], x, o[0], alpha=0)",
        "torch.addbmm(o, x[None], o[None], alpha=0)",
        "torch.baddbmm(o[None], x[None], o[None], alpha=0)",
        "torch.addr(o, x[0], o[0], alpha=0)",
    ):
        agree(f"{operands}; {sum_}.isnan()")


@pytest.mark.parametrize(
    "source",
    [
        "torch.ones(2, dtype=torch.float16) ** 1e30",
        "torch.ones(0, dtype=torch.float16).pow_(-1e30)",
        "torch.ones(2, dtype=torch.float16) ** 70000",
        "torch.ones(2, dtype=torch.bfloat16) ** 1e39",
        "torch.ones(2, dtype=torch.float16) ** inf",
        "torch.ones(2, dtype=torch.bfloat16) ** 70000",
        "torch.ones(2) ** 1e39",
        "torch.ones(2, dtype=torch.int8) ** 1e39",
    ],
)
def test_powers_half_precision_cannot_hold_are_refused(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "F.hardtanh(torch.tensor([1, 2], dtype=torch.uint8), -1, 1)",
        "F.hardtanh(torch.tensor([1, 2], dtype=torch.uint8), 0, 1)",
        "F.hardtanh(torch.tensor([True]), 0, 1)",
        "F.hardtanh(torch.tensor([1j]), 0, 1)",
        "torch.tensor([True, False]).clamp(min=True)",
        "torch.tensor([True, False]).clamp(max=True)",
        "torch.tensor([True, False]).clamp(True, False)",
        "torch.tensor([True, False]).clamp(0, 1)",
        "torch.tensor([True, False]).clamp_(min=True)",
        "torch.nan_to_num(torch.tensor([1, 2]), 1j)",
        "torch.nan_to_num(torch.tensor([1.0, 2.0]), 0.0, 1j)",
        "torch.nan_to_num(torch.tensor([nan]), 1)",
    ],
)
def test_limits_a_dtype_does_not_have_are_refused(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "a = torch.zeros(4, dtype=torch.bool); o = a[::2]; torch.eq(torch.ones(3), torch.ones(3), out=o); [a, o]",
        "a = torch.zeros(4); o = a[1:2]; torch.add(torch.ones(3), 1, out=o); [a, o, o.storage_offset()]",
        "a = torch.zeros(4); o = a[3:]; torch.add(torch.ones(3), 1, out=o); [o, o.storage_offset()]",
        "a = torch.zeros(4); o = a[1:2]; torch.mv(torch.ones(3, 3), torch.ones(3), out=o); [a, o]",
    ],
)
def test_a_result_resizes_out_within_its_memory(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.max(torch.tensor([1, 2], dtype=torch.int8), out=torch.zeros((), dtype=torch.float32))",
        "torch.min(torch.tensor([-1], dtype=torch.int8), out=torch.zeros((), dtype=torch.uint8))",
        "torch.max(torch.ones(2), 0, out=(torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.int64)))",
        "torch.argmax(torch.tensor([1, 2]), out=torch.zeros((), dtype=torch.uint8))",
    ],
)
def test_the_largest_of_all_elements_is_converted_to_the_dtype_of_out(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.histc(torch.tensor([1e20, 1e20], dtype=torch.float64), 3)",
        "torch.histc(torch.tensor(3.4e38), 4)",
        "torch.histc(torch.tensor([60000.0], dtype=torch.float16), 5)",
        "torch.histc(torch.tensor([5000.0], dtype=torch.bfloat16), 4)",
    ],
)
def test_histograms_of_a_number_too_large_to_have_neighbours(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_ranges_of_histograms_that_a_dtype_does_not_hold(dtype: str, count: int) -> None:
    x = f"torch.full(({count},), 5, dtype=torch.{dtype})"
    for ends in ("1e17, 1e17", "1e39, 1e39", "-1e5, 1e5", "300, 301", "1e30, 1e30", "-1e39, 5", "2, 1"):
        agree(f"torch.histc({x}, 3, {ends})")
    for value in ("1e30", "-1e17") if dtype != "float16" else ("65504.0", "-65504.0", "2048.0"):
        agree(f"torch.histc(torch.full(({count},), {value}, dtype=torch.{dtype}), 3)")


@pytest.mark.parametrize(
    "source",
    [
        "torch.cdist(torch.ones(2, 3), torch.ones(0, 3, dtype=torch.float64))",
        "torch.cdist(torch.ones(2, 0, dtype=torch.float64), torch.ones(2, 0))",
        "torch.cdist(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64))",
    ],
)
def test_dtypes_of_points_are_compared_where_there_are_any(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.as_strided_scatter(torch.ones(3, 3), torch.ones(2, 2), (2, 2), (-1, 2), 0)",
        "torch.as_strided_scatter(torch.ones(3, 3), torch.ones(2, 2), (2, 2), (1, 2, 3), 0)",
        "torch.as_strided_scatter(torch.ones(3, 3), torch.ones(2, 2), (2, 2), (1, 2), -3)",
        "torch.as_strided_scatter(torch.ones(3, 3), torch.ones(2, 2), (2, -2), (1, 2), 0)",
    ],
)
def test_windows_that_cannot_be_overwritten(source: str) -> None:
    agree(source)


UNPOOLED = "torch.ones(1, 2, 2), torch.tensor([[[0, 1], [2, 3]]])"
UNPOOLED_VOLUMES = "torch.ones(1, 1, 2, 2), torch.tensor([[[[0, 1], [2, 3]]]])"


@pytest.mark.parametrize(
    "source",
    [
        f"F.max_unpool2d({UNPOOLED}, 2, padding=0.5, output_size=(4, 4))",
        f"F.max_unpool2d({UNPOOLED}, 2, padding=0.5)",
        f"F.max_unpool2d({UNPOOLED}, 2, stride=2.5)",
        f"F.max_unpool3d({UNPOOLED_VOLUMES}, 2, padding=0.5, output_size=(2, 4, 4))",
        f"F.max_unpool3d({UNPOOLED_VOLUMES}, 2, stride=1.5, output_size=(2, 3, 3))",
        "F.max_unpool1d(torch.ones(1, 2), torch.tensor([[0, 1]]), 2, padding=0.5, output_size=(4,))",
    ],
)
def test_fractions_are_refused_where_unpooling_reads_them(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.ones(1, dtype=torch.int64).expand(3).uniform_()",
        "torch.ones(1, dtype=torch.int64).expand(3).cauchy_()",
        "torch.ones(1, dtype=torch.int64).expand(3).random_()",
        "torch.ones(1).expand(3).uniform_()",
    ],
)
def test_a_dtype_without_random_numbers_is_refused_before_memory_that_overlaps(source: str) -> None:
    agree(source)


CREATIONS = [
    "zeros((2,)", "ones((2,)", "full((2,), 1.0", "empty((2,)", "rand((2,)", "randn((2,)", "linspace(0, 1, 2",
    "logspace(0, 1, 2", "arange(0, 2", "eye(2", "randint(3, (2,)", "normal(0.0, 1.0, (2,)", "randperm(2",
]  # fmt: skip


@pytest.mark.parametrize("call", CREATIONS)
def test_a_tensor_made_into_out_requires_grad_if_asked_for(call: str) -> None:
    shape = "2, 2" if call == "eye(2" else "2"
    shown = "[v is u, v.requires_grad, v.is_leaf]"
    agree(f"u = torch.ones({shape}); v = torch.{call}, requires_grad=True, out=u); {shown}")
    agree(f"u = torch.ones({shape}, dtype=torch.int64); v = torch.{call}, requires_grad=True, out=u); {shown}")
    agree(f"torch.{call}, out=torch.ones({shape}, requires_grad=True))")
    agree(f"torch.{call}, dtype=torch.int32, out=torch.ones({shape}))")


def test_a_tensor_made_into_out_stays_in_its_memory() -> None:
    agree("a = torch.zeros(5); o = a[1:2]; torch.ones(3, out=o); [a, o, o.storage_offset()]")


@pytest.mark.parametrize(
    "source",
    [
        "torch.linspace(nan, 1, 0, dtype=torch.int8)",
        "torch.linspace(1000, 1, 0, dtype=torch.int8)",
        "torch.linspace(1000, 1, 1, dtype=torch.int8)",
        "torch.logspace(torch.tensor(1000), 1, 0, dtype=torch.int8)",
        "torch.diff(torch.ones(5, 5), 0, 0, torch.ones(1, 5), torch.ones(2, 5))",
        "torch.diff(torch.ones(5, 5), 0, 0, torch.ones(1, 4), torch.ones(2, 5))",
        "torch.diff(torch.ones(2), 0, 5)",
        "torch.diff(torch.ones(2), 0, 5, torch.ones(1))",
        "a = torch.ones(0, requires_grad=True); F.batch_norm(a, a, a, None, None, training=True)",
        "m = torch.ones(3, requires_grad=True); F.batch_norm(torch.ones(0, 3), m, m, None, None, training=False)",
        "m = torch.ones(3, requires_grad=True); F.batch_norm(torch.ones(2, 3), m, m, None, None, training=False)",
        "torch.ones(()).permute()",
        "torch.ones(2).permute()",
        "torch.ones(()).permute(())",
    ],
)
def test_what_is_not_looked_at_is_not_checked(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.kron(torch.ones(2, 0), 1j, out=torch.ones(2, 0))",
        "torch.outer(torch.ones(5), 1, out=torch.ones(5))",
        "torch.outer(torch.ones(5), torch.ones(2), out=torch.ones(5, 2))",
        "torch.outer(torch.ones(5, 2), torch.ones(2), out=torch.ones(5, 2))",
    ],
)
def test_arguments_of_wrong_types_are_named_beside_out(source: str) -> None:
    agree(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.take_along_dim(torch.ones(5, 5), torch.zeros(5, 1, dtype=torch.int64).expand(5, 2))",
        "torch.take_along_dim(torch.ones(5, 5).t(), torch.tensor(3))",
        "torch.take_along_dim(torch.arange(4).view(2, 2), torch.tensor([[3], [1]]))",
    ],
)
def test_take_along_dim_flattens_with_views(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("bounds", ["s, 3.0", "s, 3", "0, s", "s, s + 1", "s, 3j", "torch.tensor(2.0), s"])
def test_bounds_of_a_range_may_be_a_batch(name: str, bounds: str) -> None:
    for made in ("[0.0, 1.5]", "[0, 1]", "[0.0, 1.5], dtype=torch.float16"):
        for rest in ("4", "1", "0", "2.5", "steps=5", "4, dtype=torch.float32", "4, dtype=torch.float64"):
            agree(f"torch.func.vmap(lambda s: torch.{name}({bounds}, {rest}))(torch.tensor({made}))")


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_derivatives_of_ranges_between_batches(name: str) -> None:
    batch = "torch.tensor([1.0, 1.5])"
    agree(f"torch.func.vmap(torch.func.grad(lambda s: torch.{name}(s, 2, 3).sum()))({batch})")
    agree(f"torch.func.grad(lambda x: torch.func.vmap(lambda s: torch.{name}(s, 2, 3))(x).sum())({batch})")
    agree(f"torch.func.vmap(torch.func.vmap(lambda s: torch.{name}(s, s + 2, 3)))({batch}.view(2, 1))")


INTEGERS = [f"torch.{kind}" for kind in ("int8", "uint8", "int16", "int32", "int64", "bool", "float32")]


@pytest.mark.parametrize("kind", INTEGERS)
def test_dtypes_of_places(kind: str) -> None:
    for rows in (0, 3):
        agree(f"[torch.triu_indices({rows}, 3, dtype={kind})]")
        agree(f"[torch.tril_indices({rows}, 3, dtype={kind})]")
    for small in (False, True):
        agree(f"torch.searchsorted(torch.ones(3), torch.ones(2), out_int32={small}, out=torch.ones(2, dtype={kind}))")
        agree(f"torch.bucketize(torch.ones(2), torch.ones(3), out_int32={small}, out=torch.ones(2, dtype={kind}))")


@pytest.mark.parametrize("kinds", ["bool, float32", "float32, bool", "bool, bool", "bool, complex64", "int64, int64"])
def test_distances_from_bools(kinds: str) -> None:
    one, other = kinds.split(", ")
    agree(f"torch.dist(torch.ones(2, dtype=torch.{one}), torch.ones(2, dtype=torch.{other}))")


@pytest.mark.parametrize("size", ["2", "2.0", "torch.tensor(2)", "[2]", "()"])
def test_the_size_of_normal_is_a_tuple(size: str) -> None:
    for given in ("1, 1", "1.0, 2.0", "torch.ones(2), 1", "1.0, torch.ones(2)"):
        agree(f"torch.manual_seed(0); torch.normal({given}, {size})")


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", ["0", "0, 2", "2, 0", "0, 2, 3"])
def test_statistics_of_nothing_may_require_grad(shape: str, training: bool) -> None:
    count = 2 if ", 2" in shape else 0
    for grads in ((True, False), (False, True)):
        mean, var = (f"torch.ones({count}, requires_grad={grad})" for grad in grads)
        agree(f"x = F.batch_norm(torch.ones({shape}), {mean}, {var}, training={training}); [x, x.requires_grad]")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("scales", ["beta=1, alpha=1", "beta=-1, alpha=1", "beta=2, alpha=-1", "beta=0, alpha=3"])
def test_sums_of_products_of_small_integers_wrap_around(kind: str, scales: str) -> None:
    made = f"a = torch.full((3, 2), 9, dtype=torch.{kind}); b = torch.full((5, 3, 3), 9, dtype=torch.{kind}); "
    agree(made + f"torch.addbmm(a, b, b[:, :, :2], {scales})")
    agree(made + f"a.addbmm_(b, b[:, :, :2], {scales}); a")
    agree(made + f"torch.baddbmm(a, b, b[:, :, :2], {scales})")
    agree(made + f"torch.addmm(a, b[0], b[0, :, :2], {scales})")


@pytest.mark.parametrize("call", ["cond(a", "tensorinv(a.view(2, 2, 4), ind=2", "tensorsolve(a.view(2, 2, 4), ones"])
def test_functions_that_copy_their_result_into_out_record_the_copy(call: str) -> None:
    made = "a = (torch.eye(4) * 2).requires_grad_(); ones = torch.ones(2, 2)"
    for out in ("torch.empty(0)", "torch.empty(0, dtype=torch.float64)", "torch.empty(0, dtype=torch.int64)"):
        agree(f"{made}; b = torch.linalg.{call}, out={out}); [b, type(b.grad_fn).__name__]")
        agree(f"{made}; b = torch.linalg.{call}, out={out}); b.sum().backward(); a.grad")


@pytest.mark.parametrize(
    "made", ["torch.ones(3, 2)[:0]", "torch.ones(3, 2)[1:1]", "torch.ones(3, 2).resize_(0, 2)", "torch.ones(2)[:0]",
             "torch.ones(3, 2)[:0, :1]", "torch.ones(0, 2)", "torch.ones(3, 2)[:, :0]"],
)  # fmt: skip
@pytest.mark.parametrize("index", ["[0]", "[1]", "[0, 1]"])
def test_slices_that_are_not_there_of_a_tensor_whose_memory_holds_more(made: str, index: str) -> None:
    for call in ("index_fill_(0, i, 1)", "index_fill_(0, i, torch.tensor(1.0))", "index_copy_(0, i, torch.ones(s))"):
        agree(f"i = torch.tensor({index}); x = {made}; s = [len(i), *x.shape[1:]]; x.{call}")


INDEXED = ["torch.ones(3, 2)", "torch.ones(2, 3, 2)", "torch.ones(0, 3)", "torch.ones(3, 0)", "torch.ones(2, 0, 2)"]


@pytest.mark.parametrize("made", [*INDEXED, "torch.ones(0)", "torch.ones(0, 0)", "torch.ones(3, 2).t()"])
@pytest.mark.parametrize("index", ["[5]", "[0]", "[0, -1]", "[]"])
def test_slices_that_are_not_there(made: str, index: str) -> None:
    places = f"i = torch.tensor({index}, dtype=torch.int64)"
    for dim in (0, 1):
        agree(f"{places}; torch.index_select({made}, {dim}, i)")
        source = f"{made}; s = list(x.shape); s[{dim}] = len(i)"
        for call in (
            "index_fill_({dim}, i, 1)",
            "index_copy_({dim}, i, torch.ones(s))",
            "index_add_({dim}, i, torch.ones(s))",
        ):
            if "5" in index or "-1" not in index:
                agree(f"{places}; x = {source}; x.{call.format(dim=dim)}")


@pytest.mark.parametrize("reduce", ["amax", "amin", "prod", "mean"])
@pytest.mark.parametrize("kind", ["bool", "complex64"])
@pytest.mark.parametrize("shape", ["3", "3, 2"])
def test_slices_of_bools_and_of_complex_numbers_are_reduced_where_vectors_are_not(
    reduce: str, kind: str, shape: str
) -> None:
    for include in (True, False):
        made = f"x = torch.ones({shape}).to(torch.{kind}); s = torch.zeros({shape.replace('3', '4')}).to(torch.{kind})"
        agree(f"{made}; torch.index_reduce(x, 0, torch.tensor([0, 1, 1, 0]), s, '{reduce}', include_self={include})")


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "int64"])
@pytest.mark.parametrize(
    "source",
    [
        "torch.histogram(torch.ones(0, dtype=kind), 3)",
        "torch.histogram(torch.ones(0, dtype=kind), torch.ones(3, dtype=kind), density=True)",
        "torch.histogramdd(torch.ones(0, 2, dtype=kind), [2, 3])",
        "torch.histogramdd(torch.ones(2, 0, dtype=kind), [])",
        "F.pdist(torch.ones(1, 3, dtype=kind))",
        "F.pdist(torch.ones(3, 0, dtype=kind))",
        "F.binary_cross_entropy_with_logits(torch.ones(2, dtype=kind), torch.ones(2, dtype=kind))",
        "torch.tensordot(torch.ones(2, 2, 1, dtype=kind), torch.ones(2, 1, 2, dtype=kind), dims=([0, 1], [2, 0]))",
        "torch.mm(torch.ones(2, 2, dtype=kind), torch.ones(2, 2, dtype=torch.float64))",
    ],
)
def test_dtypes_that_matter_only_where_there_are_elements(source: str, kind: str) -> None:
    if kind != "int64" or "histogram" not in source:
        agree(f"kind = torch.{kind}; {source}")


@pytest.mark.parametrize(
    "source",
    [
        "w = torch.ones(3, requires_grad=True); torch.histogramdd(torch.ones(3, 2), [2, 2], weight=w)[1]",
        "torch.ones(3, requires_grad=True).set_(3)",
        "torch.remainder(2, torch.ones(3), out=torch.ones(3))",
        "torch.bitwise_and(2, torch.tensor([3]), out=torch.tensor([3]))",
        "torch.bmm(torch.ones(1, 2, 2, dtype=torch.bool), torch.ones(1, 2, 2))",
        "torch.linalg.pinv(torch.ones(0, 3), rtol=torch.tensor(1.0, requires_grad=True))",
        "torch.linalg.pinv(torch.ones(3, 3), torch.tensor(1.0, requires_grad=True))",
        "torch.linalg.matrix_rank(torch.ones(3, 3), out=torch.ones((), requires_grad=True))",
        "torch.arange(210.0).view(5, 6, 7).diagonal().flip(0).stride()",
        "torch.arange(24.0).view(4, 3, 2)[:, ::2].permute(2, 0, 1).flip(0).stride()",
    ],
)
def test_what_torch_asks_first(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "cauchy", "geometric", "log_normal"])
def test_parameters_of_distributions_are_floats(name: str) -> None:
    for given in ("torch.ones(2)", "'a'", "1j", "None", "0.5, 'a'", "0.5, 1j"):
        if "," not in given or name not in ("exponential", "geometric"):
            agree(f"torch.ones(3, requires_grad=True).{name}_({given})")


def test_a_bias_of_another_dtype_is_named_in_c() -> None:
    for kind in ("bfloat16", "float64", "uint8", "complex64", "bool"):
        agree(f"F.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2), torch.ones(1, dtype=torch.{kind}))")


@pytest.mark.parametrize("base", ["True", "False", "1", "2", "1.0", "1j"])
def test_numbers_to_the_power_of_bools(base: str) -> None:
    for shape in ("0", "2", "()"):
        agree(f"torch.pow({base}, torch.ones({shape}, dtype=torch.bool))")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int64", "float64"])
def test_histograms_between_given_edges_take_half_precision(kind: str) -> None:
    made = f"a = torch.tensor([-8.5, -3.0]).to(torch.{kind}); e = torch.tensor([-9.0, -8.0, -1.0]).to(torch.{kind})"
    for call in ("histogram(a, e)", "histogram(a[0], e, weight=-a[0])", "histogram(a, e, density=True)"):
        agree(f"{made}; torch.{call}")
    agree(f"{made}; torch.histogramdd(a[None], [e, e])")
    if kind != "int64":
        agree(f"{made}; torch.histogram(a, 3)")


@pytest.mark.parametrize("kind", ["bool", "complex64", "int8"])
def test_vector_products_and_searches_of_bools(kind: str) -> None:
    made = f"a = torch.ones(3, dtype=torch.{kind})"
    for call in ("linalg.cross(a, a)", "searchsorted(a, a)", "searchsorted(a, a[:0])", "bucketize(a, a)"):
        agree(f"{made}; torch.{call}")


@pytest.mark.parametrize("made", ["torch.zeros(3, 2)", "torch.zeros(2, 3).t()", "torch.zeros(6, 1)", "torch.zeros(5)"])
@pytest.mark.parametrize("call", ["arange(6", "arange(0, 6, 1", "range(0, 5", "linspace(0, 5, 6", "logspace(0, 5, 6"])
def test_ranges_leave_the_shape_of_an_out_that_has_room(made: str, call: str) -> None:
    agree(f"a = {made}; b = torch.{call}, out=a); [a, a.stride()]")


@pytest.mark.parametrize("key", ["...", ":", "None", "..., 0", ":, 0", ":, 1:", "0", "[0]"])
@pytest.mark.parametrize("value", ["2.5", "torch.tensor(2.5)"])
def test_assigning_to_a_stretched_tensor(key: str, value: str) -> None:
    agree(f"a = torch.ones(1, 3).expand(2, 3); a.__setitem__(({key}), {value}); a".replace("((:", "((slice(None)"))


def test_filling_a_stretched_tensor() -> None:
    for value in ("2.5", "torch.tensor(2.5)"):
        agree(f"torch.ones(1).expand(3).fill_({value})")


@pytest.mark.parametrize(
    "call",
    ["pow(1.5, a)", "pow(0, a)", "floor_divide(2.5, a)", "xlogy(0, a)", "remainder(2.5, a)", "add(a, 1.5)", "angle(a)"],
)
@pytest.mark.parametrize(
    "made", ["torch.ones(3).expand(2, 3)", "torch.ones(3, 1).expand(3, 2)", "torch.ones(4, 1, 2).expand(4, 3, 2).mT"]
)
def test_strides_of_what_is_computed_from_stretched_integers(call: str, made: str) -> None:
    agree(f"a = {made}.long(); torch.{call}.stride()")
    agree(f"a = {made}.bool(); torch.{call}.stride()")
    agree(f"a = torch.ones(1, 3, dtype=torch.int64).expand(2, 3); torch.{call}.stride()")


@pytest.mark.parametrize("source", ["torch.ones(2, 0).half()", "torch.ones(2, 0)", "1e30", "-0.3", "2j"])
@pytest.mark.parametrize("kind", ["float32", "int64", "uint8"])
def test_scattering_nothing(source: str, kind: str) -> None:
    agree(f"a = torch.ones(2, 0, dtype=torch.{kind}); a.scatter_(0, torch.zeros_like(a, dtype=torch.long), {source})")


EXACT = [
    "neg(a", "frac(a", "ceil(a", "round(a", "sgn(a", "nan_to_num(a", "tril(a", "diag(a", "msort(a", "softmax(a, 0",
    "mm(a, a", "addmm(a, a, a", "logcumsumexp(a, 0", "quantile(a, 0.5", "take(a, torch.tensor([0])",
    "masked_select(a, a > 0", "tensordot(a, a, 1", "heaviside(a, a", "float_power(a, 2", "index_add(a, 0, i, a",
    "scatter(a, 0, i[None], 2.0", "t_copy(a", "mv(a, a[0]", "dot(a[0], a[0]", "addbmm(a, a[None], a[None]",
    "nn.functional.gelu(a", "sqrt(a", "add(a, a", "max(a",
]  # fmt: skip


@pytest.mark.parametrize("call", EXACT)
def test_ops_that_convert_nothing_for_out(call: str) -> None:
    made = "a = torch.tensor([[1.0, 2.0], [3.0, 4.0]]); i = torch.tensor([1, 0])"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in ("float64", "float16", "float32"):
            agree(f"{made}; o = torch.{call}).to(torch.{kind}); torch.{call}, out=o)")


@pytest.mark.parametrize("call", ["square(a", "msort(a", "diag(a", "clamp_max(a, 2", "remainder(a, 2", "outer(a, a"])
def test_integers_are_not_written_into_an_out_that_requires_grad(call: str) -> None:
    same(
        lambda torch: (
            type(
                attempt(
                    lambda: value_of(
                        torch, f"a = torch.ones(2).long(); torch.{call}, out=torch.ones(2, requires_grad=True))"
                    )
                )
            ).__name__
        )
    )


@pytest.mark.parametrize("kind", ["int8", "int64", "bool", "float32"])
def test_dilated_convolutions_of_small_integers(kind: str) -> None:
    for n in (1, 2, 3):
        for batch in (0, 1):
            made = f"x = torch.ones({batch}, 1{', 4' * n}); w = torch.ones(1, 1{', 2' * n})"
            for dilation in (1, 2):
                agree(f"{made}; F.conv{n}d(x.to(torch.{kind}), w.to(torch.{kind}), dilation={dilation})")


@pytest.mark.parametrize(
    "source",
    [
        "torch.kthvalue(torch.tensor(True), 1)",
        "torch.kthvalue(torch.tensor(1j), 1)",
        "torch.kthvalue(torch.tensor([True]), 1)",
        "torch.median(torch.ones(0, dtype=torch.bool))",
        "torch.median(torch.ones(0, dtype=torch.complex64))",
        "F.mse_loss(torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64))",
        "torch.trace(torch.ones(2, dtype=torch.bool))",
    ],
)
def test_dtypes_without_an_order(source: str) -> None:
    agree(source)


def test_sizes_that_are_not_those_of_the_input_of_a_group_norm() -> None:
    agree("torch.native_group_norm(torch.ones(2, 6, 3), torch.ones(6), torch.ones(6), 2, 6, 2, 2, 0.5)")
    agree("torch.native_group_norm(torch.ones(2, 6, 3), torch.ones(6), torch.ones(6), 2, 6, 3, 2, 0.5)")


@pytest.mark.parametrize("shape", ["1, 3", "1, 3, 1", "2, 3", "1", "0"])
def test_running_products_of_one_factor_have_no_second_derivative(shape: str) -> None:
    made = f"x = torch.full(({shape},), 2.0, requires_grad=True); g = torch.ones({shape}, requires_grad=True)"
    first = "f, = torch.autograd.grad(torch.cumprod(x, 0), x, g, create_graph=True)"
    agree(f"{made}; {first}; [f, torch.autograd.grad(f, [x, g], torch.ones_like(f), allow_unused=True)]")


@pytest.mark.parametrize("kind", ["float64", "complex128", "int64"])
def test_bytes_of_a_stretched_tensor_lie_in_its_order(kind: str) -> None:
    agree(f"torch.arange(3).to(torch.{kind}).expand(2, 3).type(torch.uint8).stride()")
    agree(f"torch.arange(3).to(torch.{kind}).expand(2, 3).t().type(torch.uint8).stride()")


def test_polygamma_of_orders_whose_factorial_is_infinite() -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([-8.4, 2.5, 0.5])
        return [torch.polygamma(n, x.to(d)) for n in (171, 300) for d in (torch.float32, torch.float64)]

    same(program)


def test_complex_tolerances_are_refused_for_empty_matrices_too() -> None:
    def program(torch: Any) -> Any:
        a, t = torch.zeros(0, 5, 2), torch.zeros(0, 5, 2, dtype=torch.complex128)
        return [
            attempt(lambda: torch.linalg.pinv(a, t)),
            attempt(lambda: torch.linalg.pinv(a, rtol=t)),
            attempt(lambda: torch.linalg.pinv(a, atol=t)),
        ]

    same(program)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_zeta_where_every_term_is_zero(kind: str) -> None:
    numbers = "[1.0, 1.5, 2.0, 40.0, 1e5, 1e12, 1e15, 1e20, inf]"
    made = f"x, q = (torch.tensor({numbers}, dtype=torch.{kind}) for _ in range(2))"
    agree(f"{made}; torch.special.zeta(x[:, None], q)")


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_of_minus_infinity_and_nan(name: str) -> None:
    agree(f"torch.{name}(torch.tensor([-inf, inf, -1.0, 0.0]), torch.tensor([nan, nan, nan, nan]))")


@pytest.mark.parametrize("value", ["1+0j", "1+1j", "2", "2.5"])
def test_padding_with_a_complex_number(value: str) -> None:
    for kind in ("float32", "int64", "complex64"):
        agree(f"torch.constant_pad_nd(torch.ones(2, dtype=torch.{kind}), (1, 2), {value})")


RESIZED = {
    "float32": ["mul(x, 2)", "add(x, x)", "sin(x)", "clamp(x, 0, 1)", "special.ndtr(x)", "lerp(x, x, x)"],
    "bool": ["eq(x, 1)", "lt(x, x)", "isposinf(x)", "logical_not(x)"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind, calls in RESIZED.items() for call in calls])
def test_an_out_that_is_resized_lies_in_the_order_of_the_result(kind: str, call: str) -> None:
    made = f"x = torch.ones(3, 4, 2).permute(2, 0, 1); out = torch.zeros(0, dtype=torch.{kind})"
    agree(f"{made}; torch.{call[:-1]}, out=out).stride()")


@pytest.mark.parametrize("shapes", ["5, 0, 0; 5, 0, 0", "5, 2, 0; 5, 0, 2", "0, 2, 1; 0, 1, 3", "2, 2, 2; 2, 2, 2"])
@pytest.mark.parametrize("kinds", ["float32; float64", "float32; int64", "bool; float32"])
def test_batches_of_empty_matrices_may_have_two_dtypes(shapes: str, kinds: str) -> None:
    one, two = (f"torch.zeros({s}, dtype=torch.{k})" for s, k in zip(shapes.split(";"), kinds.split("; "), strict=True))
    agree(f"torch.bmm({one}, {two})")
    agree(f"torch.matmul({one}, {two})")
    agree(f"a, b = {one}, {two}; torch.baddbmm(torch.ones(a.size(0), a.size(1), b.size(2), dtype=a.dtype), a, b)")


def test_a_view_set_to_a_tensor_that_requires_grad() -> None:
    def program(torch: Any) -> Any:
        base = torch.zeros(3, 6)
        view = base[:, ::2]
        view.set_(torch.ones(3, 4, requires_grad=True))
        return [view.requires_grad, view.grad_fn.name(), base.requires_grad, base.grad_fn.name()]

    same(program)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_recomputed_size_that_no_integer_holds(mode: str) -> None:
    agree(f"F.interpolate(torch.ones(2, 3, 4), scale_factor=1e30, mode='{mode}', recompute_scale_factor=True)")


@pytest.mark.parametrize("dim", [0, 1])
def test_tensors_joined_with_an_empty_one_lie_in_rows(dim: int) -> None:
    agree(f"torch.cat([torch.ones(0), torch.ones(5, 1).expand(5, 5).t()], {dim}).stride()")


@pytest.mark.parametrize("call", ["polar(b, a)", "polar(a, b)", "complex(a, b)", "complex(b, b)"])
def test_complex_numbers_of_stretched_parts(call: str) -> None:
    made = "a = torch.ones(5, 10, 5); b = torch.ones(10, 5).expand(5, 10, 5)"
    agree(f"{made}; torch.{call}.stride()")


def test_half_precision_has_no_polar_numbers() -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that complex32 is experimental
            return attempt(lambda: torch.polar(torch.ones(2).half(), torch.ones(2).half()))

    same(program)


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"])
def test_losses_of_complex_numbers_are_refused(name: str) -> None:
    agree(f"x = torch.ones(2, 2, dtype=torch.complex128); F.{name}(x, x, reduction='sum')")


@pytest.mark.parametrize("p", ["nan", "0", "-1", "inf"])
@pytest.mark.parametrize("limit", ["nan", "-1", "-0.5", "0"])
def test_norms_and_limits_that_renorm_refuses(p: str, limit: str) -> None:
    agree(f"torch.renorm(torch.ones(2, 3), {p}, 0, {limit})")


@pytest.mark.parametrize("kind", ["int32", "complex64", "float32"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pooling_to_no_windows(kind: str, n: int) -> None:
    for size in (0, 2):
        agree(f"F.adaptive_avg_pool{n}d(torch.ones(1, 2{', 3' * n}, dtype=torch.{kind}), {size})")


def test_vector_products_are_written_to_their_own_dtype_alone() -> None:
    agree("torch.linalg.cross(torch.ones(5, 3).long(), torch.ones(5, 3).long(), out=torch.ones(5, 3))")


DIMS = ["max", "min", "argmax", "argmin", "cumsum", "cumprod", "cummax", "logcumsumexp", "sort", "argsort", "median",
        "nanmedian", "mode", "sum", "softmax", "unbind", "kthvalue", "flip"]  # fmt: skip


@pytest.mark.parametrize("name", DIMS)
@pytest.mark.parametrize("dim", [2**40, -(2**40), 2**31, 7, -4])
def test_a_dimension_is_out_of_range_however_large_it_is(name: str, dim: int) -> None:
    given = f"1, {dim}" if name == "kthvalue" else f"({dim},)" if name == "flip" else dim
    for shape in ("5, 5, 5", "0, 2"):
        agree(f"torch.{name}(torch.ones({shape}, dtype=torch.float64), {given})")


@pytest.mark.parametrize("write", ["transpose_(0, 1)", "t_()", "unsqueeze_(0)", "squeeze_()"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 2), (2, 0), (2, 2)])
def test_the_gradient_of_a_leaf_has_the_shape_it_had_when_it_was_used(shape: tuple[int, ...], write: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(math.prod(shape) * 1.0).view(shape).requires_grad_()
        y = x[[0, -1]]
        with torch.no_grad():
            eval(f"x.{write}", {"x": x})
        return attempt(lambda: torch.autograd.grad(y, x, torch.ones_like(y))[0].shape)

    same(program)


@pytest.mark.parametrize("write", ["t_()", "squeeze_()"])
def test_a_gradient_of_another_shape_is_kept_if_its_layout_is(write: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(6.0).view(2, 3).requires_grad_()
        y = x[[0, -1]]
        with torch.no_grad():
            eval(f"x.{write}", {"x": x})
        return attempt(lambda: y.sum().backward()), x.grad

    same(program)


CALLS_OF_WRONG_TYPES = ["outer(x, 2)", "outer(x, None)", "log_softmax(s, 1e30)", "softmax(s, 1e30)", "sum(s, 1e30)",
                        "dist(c, 2)", "combinations(x, 1.5)", "multinomial(x, 1.5)",
                        "triangular_solve(x, x, 2)", "cholesky_solve(x, x, 2)", "take_along_dim(2, x)"]  # fmt: skip


@pytest.mark.parametrize("call", CALLS_OF_WRONG_TYPES)
def test_wrong_types_come_before_wrong_sizes_where_the_source_cannot_be_read(call: str) -> None:
    def program(torch: Any) -> Any:
        names = {
            "x": torch.ones(2, 3, 4),
            "s": torch.tensor(1.0),
            "c": torch.ones(3, dtype=torch.complex64),
            "torch": torch,
        }
        return attempt(lambda: eval(f"torch.{call}", names))

    same(program)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("norm", ["2.0", "1.0", "inf", "0.0"])
def test_the_rows_of_a_table_of_integers_have_no_norm(dtype: str, norm: str) -> None:
    table = f"t = torch.ones(3, 3).to(torch.{dtype})"
    for indices in ("[0, 2]", "[]"):
        agree(f"{table}; F.embedding(torch.tensor({indices}).long(), t, max_norm=1.0, norm_type={norm}), t")
    agree(f"{table}; F.embedding_bag(torch.tensor([[0, 2]]), t, max_norm=1.0, norm_type={norm}), t")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float16", "bool"])
@pytest.mark.parametrize("value", ["-1", "-1.0", "300", "2**53 + 1", "True"])
def test_a_padding_that_is_an_integer_is_one_but_for_pad(dtype: str, value: str) -> None:
    agree(f"torch.constant_pad_nd(torch.zeros(3, dtype=torch.{dtype}), (0, 1), {value})")
    agree(f"torch.constant_pad_nd(torch.zeros(0, 3, dtype=torch.{dtype}), (0, 1), {value})")
    agree(f"F.pad(torch.zeros(3, dtype=torch.{dtype}), (0, 1), value={value})")


@pytest.mark.parametrize("call", ["nextafter(a, b)", "complex(a, b)", "polar(a, b)"])
@pytest.mark.parametrize("wants", ["a", "b"])
@pytest.mark.parametrize("written", ["a", "b", "c"])
def test_what_was_written_over_matters_only_where_it_is_needed(call: str, wants: str, written: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "a": torch.tensor([0.5, 2.0]), "b": torch.tensor([1.0, 2.0])}
        leaf = names[wants].requires_grad_()
        names[wants] = leaf * 1
        made = names["c"] = eval(f"torch.{call}", names)
        names[written].detach().sin_()
        return attempt(lambda: torch.autograd.grad(made, leaf, torch.ones_like(made)))

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int64"])
@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_mvlgamma_rounds_half_precision_where_torch_does(dtype: str, p: int) -> None:
    agree(f"torch.mvlgamma(torch.arange(26, 90).div(10).to(torch.{dtype}) + 1, {p})")
    agree(f"torch.mvlgamma(torch.tensor(7).to(torch.{dtype}), {p})")


COPIED = ["linalg.matrix_norm(x, inf", "linalg.matrix_norm(x, 'nuc'", "linalg.norm(x, 3, 0", "linalg.norm(x, 2, (0, 1)",
          "norm(x, 'nuc'", "norm(x, 'nuc', (1, 0)", "nuclear_norm(x, (0, 1)"]  # fmt: skip


@pytest.mark.parametrize("call", COPIED)
@pytest.mark.parametrize("shape", ["(0,)", "(2,)", "()"])
@pytest.mark.parametrize("moving", ["x", "out", "both"])
def test_norms_of_matrices_are_recorded_where_they_are_copied_into_out(call: str, shape: str, moving: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=moving != "out")
        leaf = torch.zeros(eval(shape), requires_grad=moving != "x")
        out = leaf * 1
        eval(f"torch.{call}, out=out)", {"torch": torch, "x": x, "out": out, "inf": math.inf})
        grads = attempt(lambda: torch.autograd.grad(out.sum(), [t for t in (x, leaf) if t.requires_grad]))
        return out, out.grad_fn, out._version, grads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it was resized, or is deprecated
        same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "uint8", "int8", "int64", "complex64"])
@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_one_step_of_a_range_is_its_start_whatever_the_end_is(dtype: str, name: str, steps: int) -> None:
    agree(f"torch.{name}(50, 1e300, {steps}, dtype=torch.{dtype})")
    agree(f"torch.{name}(-1, 300, {steps}, dtype=torch.{dtype})")
    for start in ("2**40", "70000.0", "1e300") if name == "linspace" or not dtype.startswith("complex") else ():
        agree(f"torch.{name}({start}, 50, {steps}, dtype=torch.{dtype})")


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist", "another"])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_the_way_distances_are_computed_is_a_word(mode: str, dtype: str) -> None:
    agree(f"torch.cdist(torch.ones(2, 3).to(torch.{dtype}), torch.ones(2, 3).to(torch.{dtype}), 0.0, '{mode}')")


@pytest.mark.parametrize("bounds", ["m, None", "None, m", "m - 1, m", "m, m - 1", "i, None", "None, i"])
def test_the_tangent_of_clamp_at_a_bound_that_is_a_tensor(bounds: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([math.nan, 1.0, 2.0, 0.0, math.nan, 1.0])
        m = torch.tensor([1.0, 1.0, 1.0, 1.0, math.nan, math.nan])

        def function(x: Any, m: Any) -> Any:
            return torch.clamp(x, *eval(bounds, {"m": m, "i": torch.ones(6, dtype=torch.int32)}))

        return torch.func.jvp(function, (x, m), (torch.ones(6), torch.full((6,), 0.5)))

    same(program)


WRITTEN_INSIDE = ["heaviside(m, m, out=l)", "norm(m, out=l)", "sum(m, 0, out=l)", "matmul(m[0], m[0].T, out=l)",
                  "linalg.inv(torch.eye(3), out=l)", "cat([m, m], out=l)", "arange(3, out=l)", "full((3,), 2.0, out=l)",
                  "div(i, i, out=l)", "sub(m[0, :2], m[0, 0], out=l)"]  # fmt: skip


@pytest.mark.parametrize("call", WRITTEN_INSIDE)
@pytest.mark.parametrize("transforms", ["fff", "ff", "fr", "rf", "f"])
def test_out_is_resized_inside_of_transforms(call: str, transforms: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            names = {
                "torch": torch,
                "l": torch.ones(2, 5),
                "m": torch.tensor([[[1.0], [0.0], [-1.0]]]),
                "i": torch.arange(1, 4),
            }
            return (eval(f"torch.{call}", names).exp() * x[0] ** 3).sum()

        for transform in transforms:
            function = (torch.func.jacfwd if transform == "f" else torch.func.jacrev)(function)
        return function(torch.ones(2))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)


@pytest.mark.parametrize("transforms", ["r", "rr", "gr", "rf", "rrr"])
@pytest.mark.parametrize("write", ["c.mul_(2)", "c[0] = 3", "c[1:].zero_()", "c.transpose_(0, 1)"])
@pytest.mark.parametrize("recorded", [False, True])
def test_an_input_of_a_transform_is_written_to_inside_of_another(transforms: str, write: str, recorded: bool) -> None:
    def program(torch: Any) -> Any:
        def function(c: Any) -> Any:
            e = torch.exp2(c)
            with torch.set_grad_enabled(recorded):
                exec(write, {"c": c})
            return e.sum() + c.exp().sum() + c[0].sin().sum()

        total = function
        for transform in transforms:
            if transform == "g":
                total = torch.func.grad(total)
            else:
                total = (torch.func.jacfwd if transform == "f" else torch.func.jacrev)(total)
        return attempt(lambda: total(torch.tensor([[0.5, 1.0], [1.5, -0.5]])))

    same(program)


@pytest.mark.parametrize("as_tuple", [True, False])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_the_places_of_nonzero_are_written_into_one_tensor_or_none(as_tuple: bool, dtype: str) -> None:
    agree(f"torch.nonzero(torch.tensor([1.0, 0.0]), as_tuple={as_tuple}, out=torch.zeros(2, 1).to(torch.{dtype}))")


@pytest.mark.parametrize("value", ["2", "1.5", "None", "[1.0]", "[x]"])
@pytest.mark.parametrize(
    "call",
    ["F.bilinear({}, x, w)", "F.bilinear(x, {}, w)", "F.bilinear(x, x, {})", "F.pairwise_distance({}, x)",
     "F.pairwise_distance(x, {})", "F.cosine_similarity({}, x)", "F.cosine_similarity(x, {})",
     "torch.cartesian_prod(x[0], {})", "torch.cartesian_prod({})", "torch.chain_matmul(x, {})",
     "torch.block_diag({})", "torch.block_diag(x, {})", "torch.meshgrid(x[0], {})", "torch.broadcast_tensors(x, {})"],
)  # fmt: skip
def test_what_is_no_tensor_is_refused_by_its_type(call: str, value: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "F": torch.nn.functional, "x": torch.ones(2, 2), "w": torch.ones(2, 2, 2)}
        return attempt(lambda: eval(call.format(value), names))

    same(program)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("moving", ["xm", "xv", "wm", "m", "v", "x", "bmv"])
def test_running_statistics_that_are_used_have_no_tangents(training: bool, moving: str) -> None:
    def program(torch: Any) -> Any:
        held = {"x": torch.arange(6.0).view(3, 2), "m": torch.zeros(2), "v": torch.ones(2), "w": torch.ones(2),
                "b": torch.ones(2)}  # fmt: skip

        def function(*moved: Any) -> Any:
            x, m, v, w, b = {**held, **dict(zip(moving, moved, strict=True))}.values()
            return torch.nn.functional.batch_norm(x, m.clone(), v.clone(), w, b, training)

        given = tuple(held[name] for name in moving)
        return attempt(lambda: torch.func.jvp(function, given, tuple(torch.ones_like(t) for t in given)))

    same(program)


@pytest.mark.parametrize(
    "layout", ["ones(1, 5).expand(5, 5)", "ones(5, 1).expand(5, 5)", "ones(2, 1, 3).expand(2, 4, 3)"]
)
@pytest.mark.parametrize("name", ["F.dropout", "F.alpha_dropout", "torch.native_dropout", "torch.rand_like"])
def test_random_numbers_for_stretched_tensors_are_drawn_row_by_row(name: str, layout: str) -> None:
    rest = "" if name.endswith("like") else ", 0.5, True"
    agree(f"torch.manual_seed(0); {name}(torch.{layout}{rest}), torch.rand(2)")


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "float32"])
@pytest.mark.parametrize("nr", range(4))
def test_all_operands_of_bilinear_have_one_dtype(dtype: str, nr: int) -> None:
    given = ["torch.ones(2, 3)", "torch.ones(2, 4)", "torch.ones(5, 3, 4)", "torch.ones(5)"]
    given[nr] += f".to(torch.{dtype})"
    agree(f"F.bilinear({', '.join(given)})")
    agree(f"F.bilinear({', '.join(given[:3])})")


@pytest.mark.parametrize(
    "name", ["soft_margin_loss", "hinge_embedding_loss", "mse_loss", "multilabel_soft_margin_loss"]
)
def test_targets_that_want_gradients_are_refused_inside_vmap_too(name: str) -> None:
    def program(torch: Any) -> Any:
        target = torch.ones(2, 3, requires_grad=True)
        loss = getattr(torch.nn.functional, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a loop
            return attempt(lambda: torch.func.vmap(loss)(torch.arange(6.0).view(2, 3), target))

    same(program)


@pytest.mark.parametrize(
    "call", ["argmax(x, 0, out=o)", "exp(x, out=o.long())", "linalg.inv(x, out=o)", "eq(x, 1, out=o)"]
)
def test_out_of_another_dtype_is_refused_inside_of_transforms_too(call: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            o = torch.zeros(2, 2, dtype=torch.bfloat16)
            made = eval(f"torch.{call}", {"torch": torch, "x": torch.eye(2), "o": o})
            return (made * x).sum()

        return attempt(lambda: torch.func.jacfwd(torch.func.jacfwd(function))(torch.ones(2, 2)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)


@pytest.mark.parametrize("kinds", ["float32 complex64 complex64", "float64 float32 float32", "float32 float64 float32"])
def test_addbmm_names_the_operands_of_different_dtypes(kinds: str) -> None:
    one, two, three = kinds.split()
    given = f"torch.ones(2, 2, 3, dtype=torch.{two}), torch.ones(2, 3, 2, dtype=torch.{three})"
    agree(f"torch.addbmm(torch.ones(1, dtype=torch.{one}), {given})")


@pytest.mark.parametrize("base", ["0", "-0.0", "-2.0", "float('inf')", "1", "0.5"])
@pytest.mark.parametrize("ends", ["0, -3", "-2, 2", "1.5, -1", "1000, 2000", "1001, 1003"])
def test_powers_of_zero_and_infinity_in_a_logarithmic_range(base: str, ends: str) -> None:
    for dtype in ("float32", "float64", "float16"):
        agree(f"torch.logspace({ends}, 3, {base}, dtype=torch.{dtype})")


@pytest.mark.parametrize(
    "mean", ["1.0", "torch.ones(2)", "torch.ones(2, dtype=torch.complex64)", "torch.ones(2).long()"]
)
def test_deviations_of_normal_numbers_are_real(mean: str) -> None:
    agree(f"torch.normal({mean}, torch.ones(2, dtype=torch.complex64))")


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "kinds", ["int16 float32", "bool int64", "float32 int64", "float16 float64", "float32 complex64"]
)
def test_the_huber_loss_has_the_dtype_of_its_input_if_that_can_hold_it(kinds: str, reduction: str) -> None:
    one, two = kinds.split()
    agree(f"F.huber_loss(torch.ones(3).to(torch.{one}), torch.ones(3).to(torch.{two}) * 3, reduction='{reduction}')")


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3), (3,), ()])
def test_only_matrices_are_transposed_inside_vmap_too(shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(2.0 * math.prod(shape)).view(2, *shape)
        return attempt(lambda: torch.func.vmap(torch.t)(x))

    same(program)


MOVING = ["add(x, x, out=o)", "add(o, o, out=m)", "sum(v, 0, out=o)", "where(x > 0, x, x, out=o)", "cat([v, v], out=o)",
          "linalg.norm(v, out=o)", "eq(x, 1, out=m)", "linalg.matrix_norm(x * torch.eye(2), out=o)", "add(o, o, out=o)",
          "sign(o, out=m)", "median(v, 0, out=(o, torch.tensor(0)))[0]", "cumsum(v, 0, out=o)"]  # fmt: skip


@pytest.mark.parametrize("call", MOVING)
def test_what_moves_is_not_written_into_out(call: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            names = {"torch": torch, "x": x, "v": x * torch.ones(2), "o": torch.zeros(()), "m": torch.zeros(()) + x}
            return eval(f"torch.{call}", names).clone()

        x = torch.tensor(1.5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it was resized
            return attempt(lambda: torch.func.jvp(function, (x,), (x,)))

    same(program)


@pytest.mark.parametrize("shape", [(2, 3), (3,), (0,)])
def test_a_tensor_that_moves_is_not_resized(shape: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            return torch.linalg.matrix_rank(torch.eye(2), out=torch.zeros(shape) + x)

        x = torch.tensor(1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it was resized
            return attempt(lambda: torch.func.jvp(function, (x,), (x,)))

    same(program)


@pytest.mark.parametrize("source", ["torch.tensor(2.0)", "torch.arange(3.0)"])
def test_a_tensor_is_filled_with_an_element_of_itself(source: str) -> None:
    agree(f"x = {source}; x.index_fill_(0, torch.tensor([0]), x.reshape(-1)[-1]), x")


NATIVE = ["native_group_norm(x, w, w, 1, 3, {}, 1, 1e-5)", "native_group_norm(x, w, w, 1, 3, 1, 1, {})",
          "native_layer_norm(x, {}, w, w, 1e-5)", "native_layer_norm(x, (3,), w, w, {})"]  # fmt: skip


@pytest.mark.parametrize("call", NATIVE)
@pytest.mark.parametrize("value", ["-0.3", "None", "'a'", "2"])
def test_types_of_the_arguments_of_native_norms(call: str, value: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "x": torch.arange(3.0).view(1, 3), "w": torch.ones(3)}
        return attempt(lambda: eval(f"torch.{call.format(value)}", names))

    same(program)


@pytest.mark.parametrize("bounds", ["min=0, max=1j", "min=1j", "min=0, max=2", "min=True, max=2.5", "min=2, max=1"])
def test_the_bounds_of_a_histogram_are_real(bounds: str) -> None:
    agree(f"torch.histc(torch.arange(5.0), 4, {bounds})")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("value", ["nan", "inf", "1.0"])
def test_views_of_a_batch_that_holds_nan_are_written_through(dtype: str, value: str) -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            out = x.new_full((7, 3, 11), float(value))  # shapes nobody else uses: how a call runs is remembered
            out[..., 2:9][1:5].copy_(x)
            return out

        return torch.func.vmap(function)(torch.arange(2 * 4 * 21.0).view(2, 4, 3, 7).to(getattr(torch, dtype)))

    same(program)


def test_the_weight_of_nll_loss_may_want_a_gradient_inside_vmap() -> None:
    def program(torch: Any) -> Any:
        weight = torch.ones(2, 3, requires_grad=True)
        loss = torch.nn.functional.nll_loss
        x, y = torch.arange(12.0).view(2, 2, 3), torch.tensor([[0, 1], [2, 0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a loop
            mapped = torch.func.vmap(loss)(x, y, weight).detach()
        return mapped, attempt(lambda: loss(x[0], y[0], weight[0]))

    same(program)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
@pytest.mark.parametrize(
    "mask", ["", "is_causal=True", "attn_mask=torch.ones(3, 6).bool()", "is_causal=True, dropout_p=0.5"]
)
def test_masks_of_attention_to_integers_hold_no_infinities(dtype: str, mask: str) -> None:
    q, k = (f"torch.ones(4, {n}, 8).to(torch.{dtype})" for n in (3, 6))
    agree(f"F.scaled_dot_product_attention({q}, {k}, {k}, {mask})")
