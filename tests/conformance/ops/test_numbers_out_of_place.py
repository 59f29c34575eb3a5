"""Numbers a function cannot use: fractions for counts, NaN for a tolerance, ones that a dtype has no room for."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of

COUNTS = [
    "torch.split(torch.ones(5, 5), 5, 1e30)",
    "torch.split(torch.ones(5, 5), [2, 3], 0.5)",
    "torch.kthvalue(torch.ones(5), 1.5)",
    "torch.diff(torch.ones(3), 1.5)",
    "torch.diff(torch.ones(3), 0, 0.5)",
    "torch.cov(torch.ones(3), correction=0.5)",
    "torch.index_select(torch.tensor(1.0), 0.5, torch.tensor([0]))",
    "torch.histogramdd(torch.ones(5, 2), (1, 1.5))",
    "torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), 1e30)",
    "torch.broadcast_shapes((0.5,), ())",
    "torch.broadcast_shapes((5, 1), 0.5)",
    "torch.broadcast_shapes((-1,), ())",
    "torch.broadcast_shapes((nan,), ())",
    "torch.broadcast_shapes(None, 3)",
    "torch.broadcast_shapes((5, 1), 2, (1, 3))",
    "torch.ones(3, 3)[[1j, 2]]",
    "torch.combinations(torch.ones(1), 300)",
    "torch.combinations(torch.ones(1), 300, True)",
    "torch.combinations(torch.ones(0), 70, True)",
]
TOLERANCES = [
    "torch.allclose(torch.ones(2), torch.ones(2), nan)",
    "torch.isclose(torch.ones(2), torch.ones(2), 0.0, nan)",
    "torch.cdist(torch.ones(2, 2), torch.ones(2, 2), nan)",
    "torch.logit(torch.tensor([0.2, nan, 0.9]), nan)",
    "torch.linalg.pinv(torch.eye(3), rtol=1j)",
    "torch.linalg.matrix_rank(torch.eye(3), rtol=1j)",
    "torch.logspace(0, -3, 0, 1j)",
    "F.softshrink(torch.ones(2), inf)",
    "F.cosine_similarity(torch.ones(2), torch.ones(2), 0, -1.0)",
    "F.huber_loss(torch.ones(2), torch.ones(2), delta=nan)",
    "F.max_pool2d(torch.ones(1, 9, 9), 3, 2, (1, 2), (1, 2))",
    "F.max_pool3d(torch.ones(1, 9, 9, 9), 3, 2, 2, (1, 2, 2))",
    "F.max_pool1d(torch.ones(1, 9), 3, 1, 2, 2, return_indices=True)",
    "F.max_pool1d(torch.ones(1, 9), 3, 1, 2, 2)",
    "F.avg_pool3d(torch.ones(1, 5, 5, 5), 6, 1, 1, ceil_mode=True)",
    "F.avg_pool2d(torch.ones(1, 5, 5), 6, 1, 1, ceil_mode=True)",
    "F.max_pool3d(torch.ones(1, 5, 5, 5), 300, ceil_mode=True, return_indices=True)",
    "F.avg_pool2d(torch.ones(1, 5, 5), 3000, ceil_mode=True)",
    "F.softshrink(torch.ones(2).bfloat16(), -1)",
    "F.softshrink(torch.ones(2), 1j)",
]
ORDERS = [
    "torch.dist(torch.ones(2), torch.ones(2), 1j)",
    "torch.norm(torch.ones(2), 1j)",
    "torch.linalg.norm(torch.ones(2), 1j)",
    "F.normalize(torch.ones(2), 1j, 0)",
    "F.pairwise_distance(torch.ones(1, 1), torch.ones(1, 1), 1j)",
]
FACTORS = [
    "torch.index_add(x, 0, i, x, alpha=V)",
    "torch.addmv(x, X, x, alpha=V)",
    "torch.addmv(x, X, x, beta=V)",
    "torch.addr(X, x, x, alpha=V)",
    "F.hardshrink(x, V)",
    "torch.logit(x, V)",
    "F.elu(x, V)",
    "F.leaky_relu(x, V)",
    "F.softplus(x, V)",
    "torch.threshold(x, V, V)",
    "torch.std(x, correction=V)",
    "torch.isin(x, V)",
]


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("source", [*COUNTS, *TOLERANCES, *ORDERS])
def test_numbers_that_are_none_of_what_is_asked_for_are_refused_in_torchs_words(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("source", FACTORS)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("value", ["2**40", "1e30", "1j", "-1"])
def test_factors_that_do_not_fit_into_the_dtype_are_refused_with_torchs_class(
    source: str, dtype: str, value: str
) -> None:
    if (dtype, value) == ("float16", "1j") and "isin" in source:
        pytest.skip("no arithmetic of complex32")

    def program(torch: Any) -> Any:
        x = torch.ones(2, dtype=getattr(torch, dtype))
        names = {"torch": torch, "F": torch.nn.functional, "x": x, "X": torch.stack([x, x]), "i": torch.tensor([0, 1])}
        try:
            return eval(source.replace("V", value), names)
        except Exception as error:
            return type(error).__name__

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("order", ["2", "3", "0.5", "-1", "0", "nan"])
@pytest.mark.parametrize("shape", ["(1,)", "(1, 1)", "()"])
def test_the_norm_of_one_element_is_its_size_however_large_that_is(shape: str, order: str, dtype: str) -> None:
    large = {"float16": 6e4, "float64": 1e200}.get(dtype, 1e30)
    x = f"torch.full({shape}, {large}, dtype=torch.{dtype})"
    agree(f"torch.linalg.vector_norm({x}, {order})")
    agree(f"torch.linalg.vector_norm({x}, {order}, -1, True)")
    agree(f"torch.linalg.vector_norm({x}.expand(1, *{shape}), {order}, 0)")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("n", [35, 2**40, 2**40 - 1, 2**40 + 1])
def test_the_order_of_polygamma_is_counted_in_32_bits(n: int, dtype: str) -> None:
    agree(f"torch.polygamma({n}, torch.tensor([0.3, 1, 2, 5, 1.5], dtype=torch.{dtype}))")


@pytest.mark.parametrize("call", ["torch.igamma(a, b)", "torch.igammac(a, b)", "torch.special.zeta(a + 2, b)"])
@pytest.mark.parametrize("create_graph", [False, True])
def test_a_derivative_nobody_asks_for_need_not_exist(call: str, create_graph: bool) -> None:
    def program(torch: Any) -> Any:
        a, b = (torch.tensor([0.3, 0.8], requires_grad=True) for _ in range(2))
        out = eval(call, {"torch": torch, "a": a, "b": b}).sum()
        asked = attempt(lambda: torch.autograd.grad(out, [a], retain_graph=True))
        return asked, [grad.detach() for grad in torch.autograd.grad(out, [b], create_graph=create_graph)]

    same(program)


@pytest.mark.parametrize("self", ["float64", "int64", "complex128", "float16"])
@pytest.mark.parametrize("vec", ["float32", "int32", "bool"])
def test_addr_promotes_what_has_no_dimensions_like_what_has_some(self: str, vec: str) -> None:
    agree(f"torch.addr(torch.ones((), dtype=torch.{self}), torch.ones(3, dtype=torch.{vec}), torch.ones(2))")


@pytest.mark.parametrize("call", [
    "torch.randn(2, 3, out=x)", "torch.randn(4, 5, out=x)", "torch.rand(4, 5, out=x)", "torch.empty(2, 3, out=x)",
    "torch.normal(torch.zeros(3), 1.0, out=x)", "torch.normal(torch.zeros(4, 2, 3), 1.0, out=x)",
    "torch.normal(torch.zeros(5), 1.0, out=x)", "torch.normal(0.0, torch.ones(4), out=x)",
])  # fmt: skip
def test_what_is_drawn_into_out_has_torchs_shape_and_counts_torchs_writes(call: str) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(3)
        x = torch.arange(6.0).reshape(2, 3)
        return attempt(lambda: eval(call, {"torch": torch, "x": x})), x, x._version

    same(program)


@pytest.mark.parametrize("call", [
    "max_pool1d(x[0], 2, stride=V)", "max_pool2d(x, 2, padding=V)", "max_pool2d(x, 2, dilation=V)", "max_pool2d(x, V)",
    "avg_pool2d(x, 2, stride=V)", "avg_pool1d(x[0], 3, stride=V, padding=1, ceil_mode=True, count_include_pad=False)",
    "avg_pool2d(x, 3, 1, 1, True, False, V)",
])  # fmt: skip
@pytest.mark.parametrize("value", ["2**40", "300", "9", "2"])
def test_windows_are_measured_in_32_bits(call: str, value: str) -> None:
    agree(f"x = torch.arange(162.0).reshape(1, 2, 9, 9); F.{call.replace('V', value)}")


@pytest.mark.parametrize("stride", [1, 3, 5, 9, 20])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_padding_that_does_not_count_is_left_out_of_a_single_window_as_well(
    stride: int, padding: int, ceil_mode: bool
) -> None:
    for dtype in ("float32", "float64"):
        x = f"torch.arange(9.0, dtype=torch.{dtype}).reshape(1, 1, 9)"
        agree(f"F.avg_pool1d({x}, 3, {stride}, {padding}, {ceil_mode}, False)")


@pytest.mark.parametrize("dtype", ["int64", "bool", "bfloat16", "float16"])
@pytest.mark.parametrize("batch", [0, 1])
def test_poolings_of_nothing_ask_for_the_dtype_where_torch_does(batch: int, dtype: str) -> None:
    x = f"torch.ones({batch}, 2, 4, 4, dtype=torch.{dtype})"
    for size in (0, 2):
        agree(f"F.adaptive_max_pool2d({x}, ({size}, 2))")
        agree(f"F.adaptive_avg_pool2d({x}, ({size}, 2))")
    agree(f"F.avg_pool3d({x}[None], 2)")


@pytest.mark.parametrize("make", [
    "torch.cat([a, a.detach()])", "torch.hstack([a, a])", "torch.as_strided(a, (0,), (1,))", "a[:0]", "a.view_as(a)",
])  # fmt: skip
@pytest.mark.parametrize("shape", ["(0,)", "(2, 0)", "(3,)"])
def test_gradients_of_nothing_are_zeros_without_a_graph_where_torchs_are(make: str, shape: str) -> None:
    def program(torch: Any) -> Any:
        a = torch.ones(eval(shape), requires_grad=True)
        out = eval(make, {"torch": torch, "a": a})
        grad = torch.ones_like(out).requires_grad_()
        return torch.autograd.grad(out, a, grad, create_graph=True)[0].requires_grad

    same(program)


@pytest.mark.parametrize(
    "call", ["F.batch_norm(x, n, n, n, n, {})", "torch.native_batch_norm(x, n, n, n, n, {}, 0.1, 1e-5)"]
)
@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_may_not_want_gradients_inside_vmap_either(call: str, training: bool) -> None:
    def program(torch: Any) -> Any:
        n, x = torch.ones(2, 2, requires_grad=True), torch.arange(24.0).reshape(3, 2, 4)
        names = {"torch": torch, "F": torch.nn.functional, "x": x}
        return attempt(lambda: torch.func.vmap(lambda n: eval(call.format(training), {**names, "n": n}))(n))

    same(program)


@pytest.mark.parametrize("call", [
    "torch.inner(a, a, out=o)", "torch.diff(a, 0, out=o)", "torch.quantile(a, 0.5, out=o)",
    "torch.nanquantile(a, 0.5, out=o)", "torch.tensordot(a, a, 1, out=o)", "torch.special.ndtr(a, out=o)",
])  # fmt: skip
@pytest.mark.parametrize("wants_grad", [True, False])
def test_functions_that_copy_into_out_record_the_copy(call: str, wants_grad: bool) -> None:
    def program(torch: Any) -> Any:
        a, o = torch.tensor([1.0, 2.0, 4.0], requires_grad=wants_grad), torch.zeros(0)
        out = attempt(lambda: eval(call, {"torch": torch, "a": a, "o": o}))
        if not o.requires_grad:
            return out
        return type(o.grad_fn).__name__, o.detach(), torch.autograd.grad(o.sum(), a)

    same(program)


@pytest.mark.parametrize("call", ["torch.tensordot(a, a, 1, out=o)", "torch.special.ndtr(a[0], out=o)"])
def test_what_is_copied_into_out_moves(call: str) -> None:
    def program(torch: Any) -> Any:
        a, o = torch.tensor([1.0, 2.0, 4.0]), torch.zeros(())
        return torch.func.jvp(lambda a, o: eval(call, {"torch": torch, "a": a, "o": o}), (a, o), (a * 2, o + 1))

    same(program)


@pytest.mark.parametrize("source", [
    "torch.linalg.vecdot(torch.ones(5), torch.ones(5), dim=1e30)",
    "torch.stft(torch.ones(100).half(), 16, return_complex=True)",
    "torch.stft(torch.ones(100).bfloat16(), 16, window=torch.ones(16).bfloat16(), return_complex=True, center=False)",
    "torch.tril(torch.zeros(0, 3, 2**40, dtype=torch.bool))",
    "torch.zeros(0, 3, 2**40).triu_()",
])  # fmt: skip
def test_tensors_and_numbers_that_no_kernel_reads_end_as_torchs_do(source: str) -> None:
    agree(source)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_least_squares_of_what_is_not_finite_come_to_an_end(value: float) -> None:
    draw = pullback.tensor([[value, 0.3, 1e30], [1.0, -0.0, 0.5], [2.0, -value, 6.0], [value, -0.03, -0.4]]).double()
    with pytest.raises(RuntimeError, match="least squares"):
        pullback.linalg.lstsq(draw, draw, driver="gelsd")


@pytest.mark.parametrize("p", [1, 2])
def test_a_margin_that_is_kept_counts_nothing_whatever_its_weight(p: int) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([[3.0, 0.0, 0.5], [0.0, 5.0, 4.5], [1.0, 1.0, 9.0]], requires_grad=True)
        weight = torch.tensor([float("nan"), 2.0, float("inf")])
        loss = torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 1, 2]), p, weight=weight, reduction="none")
        return loss.detach(), torch.autograd.grad(loss.sum(), x)

    same(program)
