"""Samples at points, bags of rows, repetitions, distances and powers: on the device, and nothing by the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.kernels.compiled import room

from .agreeing import agree

F = torch.nn.functional
pytestmark = pytest.mark.skipif(room("cuda.ptx") is None, reason="needs the compiler")
PADDINGS = ("zeros", "border", "reflection")


def numbers(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images_are_sampled_at_points_on_the_device(mode: str, padding: str, align_corners: bool) -> None:
    grid = numbers(2, 4, 3, 2, seed=1) * 0.8
    agree(lambda x, grid: F.grid_sample(x, grid, mode, padding, align_corners), numbers(2, 3, 5, 6), grid)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_images_of_other_dtypes_are_sampled_on_the_device(mode: str, dtype: Any) -> None:
    x, grid = numbers(2, 3, 5, 6, dtype=dtype), (numbers(2, 4, 3, 2, seed=1) * 0.8).to(dtype)
    agree(lambda x, grid: F.grid_sample(x, grid, mode, "border", False), x, grid)


def test_a_call_without_elements_does_not_send_others_to_the_host() -> None:
    F.grid_sample(numbers(1, 1, 3, 3).cuda(), torch.zeros(1, 0, 2, 2).cuda(), align_corners=True)
    torch.cdist(torch.zeros(0, 3).cuda().requires_grad_(), numbers(2, 3).cuda()).sum().backward()
    agree(lambda x, grid: F.grid_sample(x, grid, align_corners=True), numbers(1, 1, 3, 3), numbers(1, 1, 2, 2, seed=1))
    agree(torch.cdist, numbers(3, 3), numbers(2, 3, seed=1))


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_volumes_are_sampled_at_points_on_the_device(mode: str, padding: str) -> None:
    grid = numbers(1, 3, 2, 2, 3, seed=1) * 0.8
    agree(lambda x, grid: F.grid_sample(x, grid, mode, padding, False), numbers(1, 2, 3, 4, 5), grid)


def test_affine_grids_are_made_and_sampled_on_the_device() -> None:
    def turned(x: Any, theta: Any) -> Any:
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)

    agree(turned, numbers(2, 2, 4, 5), numbers(2, 2, 3, seed=1), tolerance=1e-4)


INDICES, OFFSETS = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4, 4, 7])
BAGS: dict[str, Any] = {
    "sum": lambda w, i, o: F.embedding_bag(i, w, o, mode="sum"),
    "mean": lambda w, i, o: F.embedding_bag(i, w, o, mode="mean"),
    "max": lambda w, i, o: F.embedding_bag(i, w, o, mode="max"),
    "rows": lambda w, i, o: F.embedding_bag(i.view(2, 4), w, mode="mean"),
    "weights": lambda w, i, o: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=w[:8, 0].abs()),
    "padding": lambda w, i, o: F.embedding_bag(i, w, o, mode="mean", padding_idx=4),
    "padded maxima": lambda w, i, o: F.embedding_bag(i, w, o, mode="max", padding_idx=4),
    "frequencies": lambda w, i, o: F.embedding_bag(i, w, o, mode="mean", scale_grad_by_freq=True),
    "last offset": lambda w, i, o: F.embedding_bag(i, w, o, mode="sum", include_last_offset=True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BAGS)
def test_bags_of_rows_are_reduced_on_the_device(name: str, dtype: Any) -> None:
    agree(BAGS[name], numbers(10, 3, dtype=dtype), INDICES, OFFSETS)


def test_bags_of_numbers_of_32_bits_and_of_halves_are_reduced_on_the_device() -> None:
    agree(BAGS["mean"], numbers(10, 3), INDICES.to(torch.int32), OFFSETS.to(torch.int32))
    for dtype in (torch.float16, torch.bfloat16):
        for name in ("sum", "mean", "max"):
            agree(BAGS[name], numbers(10, 3, dtype=dtype), INDICES, OFFSETS)


def test_numbers_of_bags_out_of_range_are_refused_as_on_the_host() -> None:
    wrong = torch.tensor([1, 12])
    for weight in (numbers(10, 3), numbers(10, 3).cuda()):
        with pytest.raises(RuntimeError, match=r"takes value 12 which is not in the valid range \[0, 10\)"):
            F.embedding_bag(wrong.to(weight.device), weight, torch.tensor([0], device=weight.device), mode="sum")


def test_elements_are_repeated_as_often_as_a_tensor_says_on_the_device() -> None:
    counts = torch.tensor([1, 0, 3, 2])
    for dtype in (torch.int64, torch.int32):
        agree(lambda x, n: torch.repeat_interleave(x, n, dim=0), numbers(4, 3), counts.to(dtype))
        agree(lambda x, n: torch.repeat_interleave(x, n, dim=1), numbers(2, 4), counts.to(dtype))
        agree(torch.repeat_interleave, counts.to(dtype))
        agree(lambda x, n: torch.repeat_interleave(x, n, dim=0), numbers(0, 3), counts[:0].to(dtype))
    agree(lambda x, n: torch.repeat_interleave(x, n), numbers(2, 3), torch.tensor([2]))
    for n in (counts, counts.cuda()):
        with pytest.raises(RuntimeError, match="repeats can not be negative"):
            torch.repeat_interleave(n - 1)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_distances_have_gradients_on_the_device(p: float) -> None:
    agree(lambda x, y: torch.cdist(x, y, p), numbers(2, 4, 3), numbers(2, 5, 3, seed=1))
    agree(lambda x: F.pdist(x, p), numbers(5, 3))


def test_bilinear_layers_run_on_the_device() -> None:
    parts = (numbers(4, 3), numbers(4, 5, seed=1), numbers(2, 3, 5, seed=2), numbers(2, seed=3))
    agree(F.bilinear, *parts)
    agree(F.bilinear, *[t.to(torch.float64) for t in parts])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_powers_of_integers_wrap_on_the_device_as_on_the_host(dtype: Any) -> None:
    x = torch.arange(12).to(dtype)
    for compute in (
        lambda x: x**2,
        lambda x: x**3,
        lambda x: x**7,
        lambda x: x ** x.flip(0),
        lambda x: 3**x,
        lambda x: (x - 4) ** 5,
    ):
        agree(compute, x)


def test_negative_powers_of_integers_are_those_of_the_host() -> None:
    agree(lambda x, y: x**y, torch.tensor([1, -1, 2, -1]), torch.tensor([-3, -3, -1, -2]))
    for x in (torch.arange(4), torch.arange(4).cuda()):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
            x**-2


def test_powers_of_float64_have_all_their_digits_on_the_device() -> None:
    rng = np.random.default_rng(0)
    for low, high, most in ((0, 2, 5), (1e-300, 1e-290, 1), (0.9, 1.1, 6000), (0, 1e10, 30), (0.999999, 1.000001, 1e8)):
        x, y = rng.uniform(low, high, 500), rng.uniform(-most, most, 500)
        host = np.power(x.astype(np.longdouble), y)
        there = (torch.from_numpy(x).cuda() ** torch.from_numpy(y).cuda()).cpu().numpy()
        normal = (host > 1e-300) & (host < 1e300)
        error = np.abs(there[normal] - host[normal]) / np.spacing(there[normal])
        assert error.max() < 1.5
    agree(lambda x, y: x.abs() ** y, numbers(4, 6, dtype=torch.float64), numbers(4, 6, dtype=torch.float64, seed=1))


def test_special_powers_of_float64_are_those_of_the_host() -> None:
    some = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, np.inf, -np.inf, np.nan, 1e308, 1e-308, 5e-324])
    x, y = (torch.from_numpy(a.ravel()) for a in np.meshgrid(some, some))
    host, there = (x**y).numpy(), (x.cuda() ** y.cuda()).cpu().numpy()
    np.testing.assert_allclose(there, host, 1e-15)
    numbers = ~np.isnan(host)
    np.testing.assert_array_equal(np.signbit(there[numbers]), np.signbit(host[numbers]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_taken_apart_exactly_on_the_device(dtype: Any) -> None:
    facts = np.finfo(dtype)
    powers = np.ldexp(1.0, np.arange(facts.minexp - facts.nmant, facts.maxexp)).astype(dtype)
    some = np.random.default_rng(0).standard_normal(100).astype(dtype)
    x = np.concatenate([powers, some, np.nextafter(powers, dtype(0)), -powers, [0, -0.0, np.inf, np.nan, facts.max]])
    torch.cuda.reset_fallbacks()
    mantissa, exponent = torch.frexp(torch.from_numpy(x.astype(dtype)).cuda())
    assert torch.cuda.fallbacks() == {} and exponent.dtype is torch.int32
    expected = np.frexp(x.astype(dtype))
    finite = np.isfinite(x)
    np.testing.assert_array_equal(mantissa.cpu().numpy(), expected[0])
    np.testing.assert_array_equal(exponent.cpu().numpy()[finite], expected[1][finite])
    agree(lambda x: torch.frexp(x).mantissa, numbers(4, 3))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_batch_norms_with_half_parameters_run_on_the_device(dtype: Any, training: bool) -> None:
    def run(x: Any, weight: Any, bias: Any) -> Any:
        mean, var = torch.zeros(3, dtype=dtype, device=x.device), torch.ones(3, dtype=dtype, device=x.device)
        out = F.batch_norm(x, mean, var, weight, bias, training)
        return [out, mean, var]

    given = (numbers(4, 3, 5, dtype=dtype), numbers(3, dtype=dtype, seed=1), numbers(3, dtype=dtype, seed=2))
    agree(run, *given, tolerance=4e-2 if dtype is torch.bfloat16 else 8e-3)


def test_indices_that_are_filled_have_gradients_on_the_device() -> None:
    at = torch.tensor([2, 0, 2])
    agree(lambda x, at, value: x.index_fill(0, at, value.sum()), numbers(4, 3), at, numbers(1, seed=1))


def test_margins_of_several_labels_run_on_the_device() -> None:
    target = torch.tensor([[3, 0, -1, 1], [1, 2, 0, -1], [-1, 1, 1, 1]])
    for reduction in ("mean", "none"):
        agree(lambda x, target: F.multilabel_margin_loss(x, target, reduction=reduction), numbers(3, 4), target)  # noqa: B023


def test_real_numbers_are_real_on_the_device() -> None:
    for x in (numbers(3, 4), torch.arange(5), numbers(3, 4).t()):
        agree(torch.isreal, x, grad=False)
        assert torch.isreal(x.cuda()).stride() == torch.isreal(x).stride()


def test_calls_of_the_same_kind_with_other_elements_make_other_results() -> None:
    """What was launched for some elements is not done again for others where elements decide."""
    generator = torch.Generator().manual_seed(0)

    def whole(high: int, *shape: int) -> Any:
        return torch.randint(0, high, shape, generator=generator)

    def power() -> Any:
        return (lambda x, y: x**y), (torch.tensor([1, -1, 2, 3]), whole(4, 4) - whole(2, 4))

    def repeated() -> Any:
        return (lambda x, n: torch.repeat_interleave(x, n, 0)), (torch.randn(4, 3), whole(4, 4))

    def bags() -> Any:
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), whole(8, 3).sort()[0]])
        return (lambda w, i, o: F.embedding_bag(i, w, o, mode="max")), (torch.randn(10, 3), whole(10, 8), offsets)

    def labels() -> Any:
        return (lambda x, t: F.ctc_loss(x.log_softmax(2), t, (8, 7), (3, 2))), (
            torch.randn(8, 2, 5),
            whole(4, 2, 3) + 1,
        )

    for make in (power, repeated, bags, labels):
        for _ in range(7):
            compute, given = make()
            here, there = compute(*given), compute(*[t.cuda() for t in given])
            assert here.shape == there.shape
            np.testing.assert_allclose(there.cpu().numpy(), here.numpy(), 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_scaled_by_powers_of_two_exactly_on_the_device(dtype: Any) -> None:
    facts, rng = np.finfo(dtype), np.random.default_rng(0)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, facts.max, facts.tiny, facts.smallest_subnormal]
    x = np.concatenate([rng.standard_normal(100), edges]).astype(dtype)
    n = rng.integers(2 * facts.minexp, 2 * facts.maxexp, x.size)
    n[-2:] = 2 * facts.maxexp - 3, 10_000
    given = torch.from_numpy(x), torch.from_numpy(n)
    host = torch.ldexp(*given)
    torch.cuda.reset_fallbacks()
    there = torch.ldexp(*[t.cuda() for t in given])
    assert torch.cuda.fallbacks() == {} and there.dtype is host.dtype
    np.testing.assert_array_equal(there.cpu().numpy(), host.numpy())


def test_exponentials_of_matrices_run_on_the_device() -> None:
    for dtype in (torch.float64, torch.complex128):
        agree(torch.matrix_exp, torch.randn(2, 5, 5, dtype=dtype, generator=torch.Generator().manual_seed(0)))
