"""Corners in which later random programs met differences: each is a program run on both libraries."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.both import attempt, same
from tests.conformance.ops.test_quiet_differences import value_of


def agree(source: str) -> None:
    same(lambda torch: attempt(lambda: value_of(torch, source)))


@pytest.mark.parametrize("dim", [2**31, 2**32, 2**32 + 1, -(2**32), 2**40, 4, -5])
@pytest.mark.parametrize(
    "call", ["permute(2, 1, 3, {})", "permute({}, 1, 2, 3)", "transpose(0, {})", "swapaxes({}, 1)", "movedim({}, 0)"]
)
def test_dimensions_that_do_not_fit_into_32_bits_are_no_others(dim: int, call: str) -> None:
    agree(f"torch.zeros(1, 2, 3, 4).{call.format(dim)}.shape")


@pytest.mark.parametrize("shape", ["2, 2, 2, 2", "2, 5", "3, 1, 4", "2, 0, 3"])
@pytest.mark.parametrize("shifts", [2, -1, 7, 0])
def test_each_entry_of_a_batch_is_rolled_by_itself_without_dimensions(shape: str, shifts: int) -> None:
    def program(torch: Any) -> Any:
        size = tuple(int(n) for n in shape.split(","))
        x = torch.arange(float(torch.Size(size).numel())).reshape(size)
        rolled = torch.func.vmap(lambda entry: torch.roll(entry, shifts))(x)
        return rolled, torch.func.vmap(lambda entry: torch.roll(entry, shifts), 1)(x)

    same(program)


@pytest.mark.parametrize("name", ["softshrink", "hardshrink"])
def test_shrinking_lets_the_gradient_of_nan_pass(name: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([float("nan"), 0.5, -0.5, 0.3, float("inf"), 1.0], requires_grad=True)
        shrink = getattr(torch.nn.functional, name)
        pushed = torch.func.jvp(shrink, (x.detach(),), (torch.ones(6),))
        return torch.autograd.grad(shrink(x).sum(), x), pushed

    same(program)


@pytest.mark.parametrize("name", ["remainder", "fmod", "Tensor.__mod__"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float64"])
@pytest.mark.parametrize("other", ["float16", "float32"])
def test_remainders_of_other_dtypes_have_gradients(name: str, dtype: str, other: str) -> None:
    def program(torch: Any) -> Any:
        function = torch
        for part in name.split("."):
            function = getattr(function, part)
        a = torch.tensor([1, 0, 1, 1]).to(getattr(torch, dtype))
        b = torch.tensor([2.5, 1.5, -0.7, 0.0], dtype=getattr(torch, other), requires_grad=True)
        out = function(a, b)
        return out, torch.autograd.grad(out.sum(), b), torch.func.jvp(lambda b: function(a, b), (b,), (b * 2,))

    same(program)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_weight_of_padding_does_not_reach_the_table(sparse: bool) -> None:
    def program(torch: Any) -> Any:
        table = torch.arange(10.0).reshape(5, 2).requires_grad_()
        weights = torch.tensor([[float("nan"), 1.0, 2.0], [1.0, float("inf"), 3.0]])
        bags = torch.nn.functional.embedding_bag(
            torch.tensor([[2, 1, 1], [0, 2, 4]]),
            table,
            padding_idx=2,
            mode="sum",
            per_sample_weights=weights,
            sparse=sparse,
        )
        (grad,) = torch.autograd.grad(bags.sum(), table)
        return bags, grad.to_dense()

    same(program)


@pytest.mark.parametrize(
    "write",
    [
        "scatter_(0, index, k)", "scatter_add_(0, index, k)", "index_add_(0, rows, k)", "index_copy_(0, rows, k)",
        "put_(index, k)", "index_put_((rows,), k)", "masked_scatter_(k > 0, k)", "copy_(k)", "add_(k)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["2, 0", "2, 3"])
def test_a_tensor_is_not_apart_from_itself_even_without_elements(write: str, shape: str) -> None:
    def program(torch: Any) -> Any:
        k = eval(f"torch.zeros({shape})", {"torch": torch})
        names = {"k": k, "index": torch.zeros_like(k, dtype=torch.long), "rows": torch.arange(2)}
        return attempt(lambda: eval(f"k.{write}", names))

    same(program)


@pytest.mark.parametrize("options", ["", "rtol=1.0", "atol=1.0", "tol=1.0", "rtol=1.0, hermitian=True"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "bool", "float32"])
@pytest.mark.parametrize("shape", ["0, 0", "1, 1, 0, 2", "2, 2"])
def test_the_rank_of_matrices_without_elements_needs_no_kernel(options: str, dtype: str, shape: str) -> None:
    agree(f"torch.linalg.matrix_rank(torch.ones({shape}, dtype=torch.{dtype}), {options})")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout", "dropout"])
def test_alpha_dropout_of_integers_is_refused(dtype: str, name: str) -> None:
    agree(f"torch.nn.functional.{name}(torch.ones(1, 1, dtype=torch.{dtype}), p=1e-9, training=True).shape")


@pytest.mark.parametrize("ends", ["inf, 1", "1, -inf", "nan, 1", "-inf, inf", "inf, inf", "1e308, -1e308"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", [1, 2, 3, 6, 50])
def test_linspace_between_infinities_is_infinite_where_torchs_is(ends: str, dtype: str, steps: int) -> None:
    agree(f"torch.linspace({ends}, {steps}, dtype=torch.{dtype})")


@pytest.mark.parametrize("turn", ["", "[..., ::2]", ".transpose(1, 2)", ".mT.contiguous().mT", ".expand(2, 4, 6)"])
def test_native_group_norm_wants_contiguous_memory(turn: str) -> None:
    x = f"torch.arange(48.0).reshape(2, 4, 6){turn}"
    agree(f"torch.native_group_norm({x}, None, None, 2, {x}.shape[1], {x}.shape[2], 2, 1e-5)")


def test_native_group_norm_takes_channels_last() -> None:
    x = "torch.arange(48.0).reshape(2, 4, 3, 2).contiguous(memory_format=torch.channels_last)"
    agree(f"torch.native_group_norm({x}, None, None, 2, 4, 6, 2, 1e-5)")


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["", ", dtype=torch.float32", ", dtype=torch.int64", ", dtype=torch.float64"])
@pytest.mark.parametrize("out", ["float16", "float32", "float64", "int64", "int32", "bool", "complex64"])
@pytest.mark.parametrize("given", ["float32", "int64", "bool"])
def test_reductions_compute_in_the_dtype_of_out_unless_another_is_given(
    name: str, dtype: str, out: str, given: str
) -> None:
    x = f"torch.tensor([[0.5, 2.7], [3.0, 4.0]]).to(torch.{given})"
    agree(f"torch.{name}({x}, 1{dtype}, out=torch.empty({2 if name[0] == 'c' else 0}, 2, dtype=torch.{out})[:, :2])")


def test_the_dtype_of_out_is_looked_at_inside_transforms() -> None:
    def program(torch: Any) -> Any:
        def function(x: Any) -> Any:
            torch.cumsum(torch.ones(2, 2), 1, dtype=torch.float32, out=torch.zeros(3, dtype=torch.float16))
            return (x * x).sum()

        x = torch.ones(2)
        pushed, pulled = torch.func.jacfwd(lambda x: x.sum())(x), attempt(lambda: torch.func.grad(function)(x))
        return pushed, pulled, attempt(lambda: torch.func.jacfwd(function)(x))

    same(program)


@pytest.mark.parametrize(
    "source",
    [
        "(x > 0).mul_(0.3)", "(x > 0).add_(1)", "(x > 0).add_(True)", "x.int().add_(x)", "x.int().div_(2)",
        "x.int().mul_(1.5)", "x.int().exp_()", "x.mul_(x + 1j)", "x.int().copy_(x)", "x.int().eq_(x)", "x.eq_(x)",
        "x.int().masked_fill_(x > 0, 2)", "x.half().add_(x)", "x.int().clamp_(0, 1)", "x.int().fill_(2)",
        "x.int().cumsum_(0)", "x.short().mul_(x.long())", "x.int().bitwise_and_(x.long())",
    ],
)  # fmt: skip
def test_what_is_written_in_place_inside_vmap_fits(source: str) -> None:
    def program(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of loops
            return attempt(lambda: torch.func.vmap(lambda x: eval(source, {"x": x.clone()}))(torch.ones(2, 3) * 1.5))

    same(program)


@pytest.mark.parametrize("log_target", [True, False])
@pytest.mark.parametrize("kinds", ["int64 float32", "float32 int64", "bool bool", "float32 float64", "int64 complex64"])
def test_kl_div_takes_floating_point_numbers(kinds: str, log_target: bool) -> None:
    a, b = (f"torch.ones(2, 3, dtype=torch.{kind})" for kind in kinds.split())
    agree(f"torch.nn.functional.kl_div({a}, {b}, reduction='sum', log_target={log_target})")


@pytest.mark.parametrize("bounds", ["b, b", "b", "max=b", "b, x.int()", "False, True", "b[:0], b[:0]"])
def test_truths_are_clamped_between_tensors_on_one_side_only(bounds: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "b": torch.tensor([True, False]), "x": torch.ones(2)}
        return attempt(lambda: eval(f"torch.clamp(b[:0] if '0' in '{bounds}' else b, {bounds})", names))

    same(program)


@pytest.mark.parametrize("call", ["pow(2.5, x)", "pow(2, x)", "pow(1, x)", "float_power(2.5, x)", "pow(x, 2.5)"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
@pytest.mark.parametrize("turn", ["x.mT", "x.permute(2, 1, 0)", "x[..., ::2]"])
def test_powers_of_numbers_are_contiguous(call: str, dtype: str, turn: str) -> None:
    def program(torch: Any) -> Any:
        x = eval(turn, {"x": torch.arange(1, 25).reshape(2, 3, 4).to(getattr(torch, dtype))})
        return eval(f"torch.{call}", {"torch": torch, "x": x}).stride()

    same(program)


@pytest.mark.parametrize("limits", ["-0.5, 0.5", "-1.5, 0.5", "0.5, 2.5", "-0.9, -0.5", "-1, 1"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_the_limits_of_hardtanh_are_whole_numbers_for_integers(limits: str, dtype: str) -> None:
    agree(f"torch.nn.functional.hardtanh(torch.arange(4, dtype=torch.{dtype}), {limits})")


@pytest.mark.parametrize(
    "call",
    [
        "kron(a, a, out=a)", "kron(a, a[:1, :1], out=a)", "kron(a, b, out=a)", "outer(a[0], a[0], out=a)",
        "outer(a[0], a[1], out=a[0])", "inner(a[0], a[0], out=a)",
        "matmul(a[0], a[0], out=a)",
    ],
)  # fmt: skip
def test_products_written_into_a_factor_are_refused_only_if_they_are_read_meanwhile(call: str) -> None:
    def program(torch: Any) -> Any:
        names = {"a": torch.arange(1.0, 5.0).reshape(2, 2), "b": torch.full((1, 1), 2.0), "torch": torch}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of resizing
            return attempt(lambda: eval(f"torch.{call}", names))

    same(program)


@pytest.mark.parametrize("name", ["index_reduce", "scatter_reduce"])
@pytest.mark.parametrize("zeros", [(0, 3), (0,), ()])
def test_second_derivatives_of_products_of_several_zeros_are_refused(name: str, zeros: tuple[int, ...]) -> None:
    def program(torch: Any) -> Any:
        a = torch.arange(1.0, 7.0).reshape(3, 2).requires_grad_()
        source = torch.arange(1.0, 9.0).reshape(4, 2)
        source[list(zeros), 0] = 0
        source.requires_grad_()
        index = torch.tensor([0, 1, 2, 0])
        if name == "scatter_reduce":
            index = index[:, None].expand(4, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a function that may change
            out = getattr(torch, name)(a, 0, index, source, "prod")
            first = torch.autograd.grad(out.sum(), (a, source), create_graph=True)
            again = torch.autograd.grad(first[0].sum(), source, retain_graph=True)
            return first, again, attempt(lambda: torch.autograd.grad(first[1].sum(), (a, source)))

    same(program)


COPIES = {
    "narrow_copy": "1, 0, 2", "slice_copy": "0, 1", "select_copy": "0, 1", "permute_copy": "(1, 0)",
    "transpose_copy": "0, 1", "t_copy": "", "squeeze_copy": "", "unsqueeze_copy": "0", "view_copy": "(9,)",
    "expand_copy": "(2, 3, 3)", "diagonal_copy": "", "detach_copy": "", "alias_copy": "", "unfold_copy": "0, 2, 1",
    "as_strided_copy": "(2, 2), (3, 1)", "unbind_copy": "", "view_as_real_copy": "",
}  # fmt: skip
"""Functions that copy what a view would show, and arguments for a matrix of three rows."""


@pytest.mark.parametrize("name", COPIES)
def test_what_was_copied_inside_vmap_can_be_written_without_changing_the_source(name: str) -> None:
    def program(torch: Any) -> Any:
        def entry(x: Any) -> Any:
            x = x + 0j if name == "view_as_real_copy" else x.clone()
            made = eval(f"torch.{name}(x, {COPIES[name]})", {"torch": torch, "x": x})
            for part in made if isinstance(made, (tuple, list)) else (made,):
                part.mul_(0)
            return x.clone()

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of slowness
            return torch.func.vmap(entry)(torch.arange(18.0).reshape(2, 3, 3))

    same(program)


@pytest.mark.parametrize("name", sorted({*COPIES} - {"detach_copy"}))
@pytest.mark.parametrize("dtype, target", [("int8", "int64"), ("float32", "float64"), ("float32", "int64")])
def test_copies_of_views_are_not_written_into_another_dtype(name: str, dtype: str, target: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(3, 3, dtype=getattr(torch, dtype))
        x = x + 0j if name == "view_as_real_copy" else x
        out = [torch.zeros(0, dtype=getattr(torch, target)) for _ in range(3 if name == "unbind_copy" else 1)]
        names = {"torch": torch, "x": x, "out": out if name == "unbind_copy" else out[0]}
        return attempt(lambda: eval(f"torch.{name}(x, {COPIES[name]}{', ' if COPIES[name] else ''}out=out)", names))

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape, dim", [((60, 5), -1), ((3, 4, 17), 2), ((40,), 0), ((17, 40), 0), ((3, 7, 4), 1)])
def test_log_softmax_of_halves_rounds_the_sum_along_the_last_dimension(
    dtype: str, shape: tuple[int, ...], dim: int
) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(1)
        return torch.log_softmax((torch.randn(shape) * 3).to(getattr(torch, dtype)), dim).float()

    same(program)


@pytest.mark.parametrize("bad", ["inf", "-inf"])
def test_least_squares_by_singular_values_of_what_is_not_finite_come_to_an_end(bad: str) -> None:
    def program(torch: Any) -> Any:
        a = torch.tensor([[1.0, 2.0, 3.0], [0.4, 6.0, 3.0], [-0.1, -0.3, 3.0]], dtype=torch.float64).repeat(2, 1, 1)
        a[1, 0, 1] = float(bad)
        solved = torch.linalg.lstsq(a, a, driver="gelss")
        return solved.rank, solved.singular_values.isnan(), solved.solution.isnan()

    same(program)


@pytest.mark.parametrize("size", ["(1, 2, 1.5, 6)", "(1.5, 6)", "(2, 6.0)", "(2, 6)"])
def test_sizes_of_unpooled_images_are_whole_numbers(size: str) -> None:
    pooled = "torch.ones(1, 2, 2, 6), torch.arange(12).reshape(1, 1, 2, 6).expand(1, 2, 2, 6).contiguous()"
    agree(f"torch.nn.functional.max_unpool2d({pooled}, 3, stride=(2, 1), padding=1, output_size={size})")


LOSSES = {
    "binary_cross_entropy": "(a, y, weight=b)", "binary_cross_entropy_with_logits": "(a, y, weight=b)",
    "nll_loss": "(a, k, weight=b)", "cross_entropy": "(a, k, weight=b)", "multi_margin_loss": "(a, k, weight=b)",
    "soft_margin_loss": "(a, b.expand(4, 3))", "batch_norm": "(a, b.clone(), b + 1)",
}  # fmt: skip
"""Functions of `a` with a constant `b`."""


@pytest.mark.parametrize("moving", ["a", "b", "both"])
@pytest.mark.parametrize("name", LOSSES)
def test_tangents_of_what_counts_as_constant_are_refused_where_they_would_be_left_out(name: str, moving: str) -> None:
    def program(torch: Any) -> Any:
        a, b = torch.linspace(0.1, 0.9, 12).reshape(4, 3), torch.tensor([0.5, 1.0, 0.25])
        names = {"torch": torch, "y": torch.linspace(0.9, 0.2, 12).reshape(4, 3), "k": torch.tensor([0, 1, 2, 1])}

        def function(a: Any, b: Any) -> Any:
            return eval(f"torch.nn.functional.{name}{LOSSES[name]}", {**names, "a": a, "b": b})

        function, given = {
            "a": (lambda a: function(a, b), (a,)), "b": (lambda b: function(a, b), (b,)), "both": (function, (a, b))
        }[moving]  # fmt: skip
        try:
            return torch.func.jvp(function, given, tuple(x * 0.5 for x in given))
        except Exception as error:
            return type(error).__name__, str(error)[:60]

    same(program)


@pytest.mark.parametrize("call", ["ldexp(h, f, out=f)", "ldexp(f, h, out=f)", "outer(e, e + 1, out=e)"])
def test_results_go_into_operands_that_are_read_before(call: str) -> None:
    def program(torch: Any) -> Any:
        names = {"h": torch.tensor([1.0, 2, 3]), "f": torch.full((2, 2, 1), 2.0), "e": torch.zeros(0), "torch": torch}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of resizing
            return attempt(lambda: eval(f"torch.{call}", names))

    same(program)


@pytest.mark.parametrize(
    "dtypes", ["int16 float64", "bool float32", "float32 float64", "float64 float32", "float32 int64"]
)
@pytest.mark.parametrize("given", ["(m, s)", "(m, 2.0)", "(1.0, s)"])
@pytest.mark.parametrize("count", [3, 20])
def test_normal_numbers_are_drawn_in_the_dtype_they_are_written_in(given: str, dtypes: str, count: int) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        kind, target = (getattr(torch, name) for name in dtypes.split())
        m, s = torch.arange(count).to(kind), torch.arange(1, count + 1).to(kind)
        mean, std = eval(given, {"m": m, "s": s})
        return attempt(lambda: torch.normal(mean, std, out=torch.zeros(count, dtype=target)))

    same(program)


PLUS = {
    "addmm": "a, m, a", "addmv": "a[:, 0], m, a[:, 1]", "addr": "a, a[:, 0], a[0]",
    "addbmm": "a, m.expand(4, 2, 2), a.expand(4, 2, 3)",
    "baddbmm": "a.expand(4, 2, 3), m.expand(4, 2, 2), a.expand(4, 2, 3)",
}  # fmt: skip


@pytest.mark.parametrize("name", PLUS)
@pytest.mark.parametrize("beta", [0, 2])
def test_jacobians_of_products_without_their_first_term(name: str, beta: float) -> None:
    def program(torch: Any) -> Any:
        def function(a: Any) -> Any:
            m = torch.arange(1.0, 5.0).reshape(2, 2)
            return eval(f"torch.{name}({PLUS[name]}, beta={beta})", {"torch": torch, "a": a, "m": m})

        a = torch.arange(1.0, 7.0).reshape(2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of slowness
            twice = torch.func.jacfwd(torch.func.jacfwd(lambda a: function(a).square().sum()))(a)
            return torch.func.jacfwd(function)(a), torch.func.jacrev(function)(a), twice

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("counts", ["int64", "int8", "float32", "float64"])
@pytest.mark.parametrize("full", [True, False])
def test_poisson_losses_have_the_dtype_of_their_first_part(dtype: str, counts: str, full: bool) -> None:
    input, target = f"torch.full((5,), 2.0, dtype=torch.{dtype})", f"torch.arange(5).to(torch.{counts})"
    agree(f"torch.nn.functional.poisson_nll_loss({input}, {target}, full={full}).dtype")


@pytest.mark.parametrize(
    "call", ["index_fill_(DIM, i, 1)", "index_fill_(DIM, i, torch.tensor(1))", "sum(DIM)", "squeeze(DIM)"]
)
@pytest.mark.parametrize("dim", ["float('inf')", "float('nan')", "1.5"])
def test_what_is_no_integer_is_no_dimension_out_of_range(call: str, dim: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "x": torch.zeros(3, 3), "i": torch.tensor([0, 1])}
        try:
            return eval(f"x.{call.replace('DIM', dim)}", names)
        except Exception as error:
            return type(error).__name__

    same(program)


@pytest.mark.parametrize("base", [0, 2, 0.5, -2, 10])
@pytest.mark.parametrize("steps", ["0, -3, 1", "0, 3, 5", "1.5, -2, 4"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_powers_on_a_logarithmic_scale_are_those_of_pow(base: float, steps: str, dtype: str) -> None:
    agree(f"torch.logspace({steps}, {base}, dtype=torch.{dtype})")


@pytest.mark.parametrize(
    "call",
    [
        "pixel_unshuffle(e, 0.5)",
        "pixel_unshuffle(x, 2.0)",
        "rms_norm(x, (4,), eps=1j)",
        "hardtanh(x).round(decimals=1.5)",
    ],
)
def test_numbers_of_another_kind_are_refused(call: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "e": torch.zeros(1, 0, 1, 1), "x": torch.ones(1, 4, 4, 4)}
        try:
            return eval(f"torch.nn.functional.{call}", names)
        except Exception as error:
            return type(error).__name__

    same(program)


def test_no_images_have_no_blocks_however_wide_their_edge() -> None:
    agree("torch.nn.functional.unfold(torch.zeros(0, 1, 5, 5), 2, padding=(1, 2**40)).shape")


@pytest.mark.parametrize("dims", [(0, 0), (0, None)])
def test_istft_runs_inside_vmap(dims: tuple[int, int | None]) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(0)
        spectra, windows = torch.randn(2, 5, 6, dtype=torch.complex128), torch.rand(2, 8, dtype=torch.float64) + 0.1
        windows = windows if dims[1] == 0 else windows[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of slowness
            return torch.func.vmap(lambda s, w: torch.istft(s, 8, window=w), dims)(spectra, windows)

    same(program)


@pytest.mark.parametrize("dim", ["-(2**31)", "-(2**31) + 1", "2**31"])
@pytest.mark.parametrize(
    "call", ["argsort(x, d)", "sort(x, d)", "argmax(x, d)", "argmin(x, d)", "cat([x, x], d)", "amax(x, d)",
             "cumsum(x, d)", "tensordot(x, x, ([d], [0]))", "argsort(x, d, True)", "cat([x[:0], x], d)"],
)  # fmt: skip
def test_a_dimension_that_numpy_takes_for_all_is_out_of_range(call: str, dim: str) -> None:
    agree(f"d = {dim}; x = torch.arange(6.0).reshape(2, 3); torch.{call}")
    agree(f"d = {dim}; x = torch.arange(3.0); torch.{call}")


@pytest.mark.parametrize("name", ["addmm", "addbmm", "baddbmm"])
@pytest.mark.parametrize("sizes", [(2, 0, 4), (0, 3, 4), (2, 3, 0), (0, 0, 0), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "complex64"])
def test_factors_of_sums_with_products_of_nothing_are_not_looked_at(
    name: str, sizes: tuple[int, int, int], dtype: str
) -> None:
    n, m, p = sizes
    batch = "" if name == "addmm" else "2, "
    operands = f"torch.ones(({batch}{n}, {m}), dtype=t), torch.ones(({batch}{m}, {p}), dtype=t)"
    out = f"2, {n}, {p}" if name == "baddbmm" else f"{n}, {p}"
    for factors in ("alpha=-0.3", "beta=-0.3", "alpha=300", "beta=300", "beta=-300", "alpha=1j", "beta=1j",
                    "alpha=1e10, beta=0", "beta=True", "beta=2, alpha=3", "beta=float('nan')"):  # fmt: skip
        for self in ("()", f"({out})"):
            made = f"t = torch.{dtype}; x = torch.full({self}, 3, dtype=t)"
            agree(f"{made}; torch.{name}(x, {operands}, {factors})")
        agree(f"{made}; x.{name}_({operands}, {factors})")


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("correction", ["-5", "-0.5", "0", "1", "3", "-float('inf')"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float32"])
def test_variances_of_nothing_are_nan_whatever_is_taken_off(name: str, correction: str, dtype: str) -> None:
    for shape in ((0,), (5, 0), (0, 5)):
        for dim in (None, 0, -1):
            agree(f"torch.{name}(torch.ones({shape}, dtype=torch.{dtype}), {dim}, correction={correction})")
