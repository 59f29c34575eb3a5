"""Complex numbers on the device: by kernels that compute with their two parts, and nothing by the host."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback._runtime import warnings as once

from .agreeing import agree

F = torch.nn.functional
KINDS = [torch.complex64, torch.complex128]
TWO: dict[str, Any] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "**": lambda x, y: x**y,
    "+ real": lambda x, y: x + y.real,
    "real - ": lambda x, y: y.real - x,
    "* real": lambda x, y: x * y.abs(),
    "/ real": lambda x, y: x / y.abs(),
    "real /": lambda x, y: y.abs() / x,
    "real **": lambda x, y: y.abs() ** x,
    "numbers": lambda x, y: (2.5 - 1j) / (x * 2j - 1.5) + 3 * y,
    "rows and columns": lambda x, y: (
        x[:, :1] * y[0] + x.t()[1:5].t()[:, :1] * y[:, ::2].conj()[:, 1:2] - y.t()[::2].t()[2:3, :1]
    ),
    "parts": lambda x, y: x.real * y.imag + (x * y.conj()).real,
    "of parts": lambda x, y: torch.complex(x.real, y.abs()) + torch.polar(x.abs(), y.angle()),
    "as pairs": lambda x, y: torch.view_as_complex(torch.view_as_real(x) * 2) - y,
    "where": lambda x, y: torch.where(x.real > 0, x, y) + torch.where(y.imag > 0, y, 1j),
    "masked_fill": lambda x, y: x.masked_fill(y.real > 0, 1 - 2j),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=1j) + torch.addcdiv(y, x, y),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "distance": lambda x, y: (x - y).abs().pow(2).mean() + torch.dist(x, y),
}


def numbers(dtype: Any, *shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*(shape or (4, 6)), dtype=dtype, generator=generator)


def pair(dtype: Any, *shape: int) -> tuple[Any, Any]:
    return numbers(dtype, *shape), numbers(dtype, *shape, seed=1)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", TWO)
def test_complex_arithmetic_runs_on_the_device(name: str, dtype: Any) -> None:
    agree(TWO[name], *pair(dtype))


UNARY = ["abs", "angle", "exp", "log", "sqrt", "tanh", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos",
         "atan", "asinh", "acosh", "atanh", "log2", "log10", "log1p", "expm1", "exp2", "reciprocal",
         "rsqrt", "square", "sgn", "neg", "sigmoid", "conj_physical", "sinc"]  # fmt: skip


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_complex_numbers_run_on_the_device(name: str, dtype: Any) -> None:
    agree(getattr(torch, name), numbers(dtype, 5, 7), tolerance=1e-4 if dtype is torch.complex64 else 1e-10)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2, 3, -1, -2, 2.5, 1 + 2j])
def test_powers_of_complex_numbers_run_on_the_device(power: Any) -> None:
    agree(lambda x: x**power, numbers(torch.complex128))
    agree(lambda x: (1.5 + abs(power)) ** x, numbers(torch.complex128))


REDUCTIONS: dict[str, Any] = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(1, keepdim=True),
    "sum of columns": lambda x: x.t().sum(1),
    "mean": lambda x: x.mean(0),
    "product": lambda x: x.prod(),
    "product of columns": lambda x: x.prod(0),
    "product of rows": lambda x: x.prod(1, keepdim=True),
    "running sum": lambda x: x.cumsum(1),
    "running product": lambda x: x.cumprod(0),
    "variance": lambda x: x.var(1),
    "deviation": lambda x: x.std(),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=0),
    "trace": lambda x: x.trace(),
    "of a stretched one": lambda x: x[:, None].expand(5, 3, 7).sum((0, 1)),
}


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_complex_numbers_are_reduced_on_the_device(name: str, dtype: Any) -> None:
    agree(REDUCTIONS[name], numbers(dtype, 5, 7), tolerance=1e-4 if dtype is torch.complex64 else None)


PRODUCTS: dict[str, Any] = {
    "matrices": lambda x, y: x @ y.t(),
    "adjoint": lambda x, y: x.mH @ y,
    "stacks": lambda x, y: torch.bmm(x.view(2, 2, 6), y.view(2, 6, 2)),
    "added": lambda x, y: torch.addmm(x[:, :4], x, y.t(), beta=2, alpha=1j),
    "vector": lambda x, y: x @ y[0],
    "vectors": lambda x, y: torch.dot(x[0], y[0]) + torch.vdot(x[1], y[1]),
    "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "linear": lambda x, y: F.linear(x, y, y[:, 0].clone()),
    "outer": lambda x, y: torch.outer(x[0], y[:, 0]),
    "convolution": lambda x, y: F.conv1d(x[None], y[None, :, :3], y[:1, 0].clone(), padding=1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_complex_products_run_on_the_device(name: str) -> None:
    agree(PRODUCTS[name], *pair(torch.complex128))


MOVED: dict[str, Any] = {
    "index": lambda x, y, at: x[at],
    "take": lambda x, y, at: x.take(at),
    "gather": lambda x, y, at: x.gather(1, at[None].expand(4, 3)),
    "select": lambda x, y, at: x.index_select(1, at),
    "add at": lambda x, y, at: x.index_add(0, at, y[:3]),
    "put": lambda x, y, at: torch.index_put(x, (at,), y[:3], accumulate=True),
    "scatter_add": lambda x, y, at: x.scatter_add(1, at[None].expand(4, 3).contiguous(), y[:, :3]),
    "scatter": lambda x, y, at: x.scatter(1, torch.arange(6, device=x.device).flip(0).expand(4, 6), y),
    "mask": lambda x, y, at: x[y.real > 0],
    "cat": lambda x, y, at: torch.cat([x, y, x.real]),
    "stack": lambda x, y, at: torch.stack([x, y], 1),
    "pad": lambda x, y, at: F.pad(x, (1, 2)).roll(1, 0),
    "diagonal": lambda x, y, at: torch.diag_embed(x.diagonal()),
    "triangle": lambda x, y, at: x.tril() + y.triu(),
    "transposed": lambda x, y, at: x.t().contiguous() * y.t().clone(),
    "dtype": lambda x, y, at: x.to(torch.complex128) + y.real.to(torch.complex64),
    "in place": lambda x, y, at: x.clone().mul_(y).add_(1j).div_(y.abs()),
    "written": lambda x, y, at: written(x, y),
}


def written(x: Any, y: Any) -> Any:
    """A copy of which a row, a column and the parts are written."""
    out = x.clone()
    out[1] = y[0]
    out[:, 2] = 1j
    out.imag.mul_(2)
    return out


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", MOVED)
def test_complex_numbers_are_moved_on_the_device(name: str, dtype: Any) -> None:
    agree(MOVED[name], *pair(dtype), torch.tensor([2, 0, 2]))


def test_views_of_lazy_conjugates_have_gradients_on_the_device() -> None:
    for compute in (
        lambda x: x.conj()[:, 1:3],
        lambda x: x.conj()[0] * 2,
        lambda x: x.conj().imag * 2,
        lambda x: x.mH.reshape(-1) * 1j,
        lambda x: torch.stack(x.conj().unbind(1)) * 2,
    ):
        agree(compute, numbers(torch.complex64))


def test_questions_about_complex_numbers_are_answered_on_the_device() -> None:
    x = torch.tensor([[0, 1j, complex("nan"), complex(1, float("inf"))], [2, 1j, 0, -0.0]])
    y = x.flip(0).clone()
    for compute in (
        lambda x, y: [x == y, x != y, x == 1j, torch.isclose(x, y)],
        lambda x, y: [x.isnan(), x.isinf(), x.isfinite(), torch.logical_not(x), torch.logical_xor(x, y)],
        lambda x, y: [x.any(), x.all(0), x.count_nonzero(), x.nonzero(), x.to(torch.bool)],
    ):
        agree(compute, x, y, grad=False)


def test_complex_numbers_are_made_on_the_device() -> None:
    def make(x: Any) -> Any:
        there = {"dtype": torch.complex64, "device": x.device}
        return [torch.zeros(3, **there), torch.ones(2, 2, **there), torch.full((3,), 1 - 2j, **there),
                torch.full_like(x, 2j), torch.ones_like(x), torch.zeros_like(x), torch.eye(3, **there),
                x.clone().fill_(1j), x.clone().zero_()]  # fmt: skip

    agree(make, numbers(torch.complex64), grad=False)


def test_casts_to_real_numbers_run_on_the_device_and_warn_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (torch.float32, torch.float64, torch.float16, torch.int64):
            agree(lambda x: x.to(dtype), numbers(torch.complex64))  # noqa: B023
        agree(lambda x: torch.zeros(4, 6, device=x.device).copy_(x), numbers(torch.complex64))
        assert numbers(torch.complex64).t().cuda().to(torch.float32).stride() == (1, 6)


@pytest.mark.parametrize("cast", [lambda x: x.to(torch.float32), lambda x: torch.zeros(4, 6, device="cuda").copy_(x)])
def test_a_cast_to_real_numbers_warns_on_the_device_as_on_the_host(cast: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(once, "given", set())
    x = numbers(torch.complex64).cuda()
    with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
        cast(x)


def test_complex_results_lie_as_on_the_host() -> None:
    x, y = pair(torch.complex64, 3, 4, 5)
    for compute in (
        lambda x, y: x.permute(2, 0, 1) * y.permute(2, 0, 1),
        lambda x, y: x.permute(2, 0, 1).exp(),
        lambda x, y: x.transpose(0, 1) + y.real.transpose(0, 1),
        lambda x, y: x[:, ::2].angle(),
    ):
        assert compute(x, y).stride() == compute(x.cuda(), y.cuda()).stride()


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, 3e4, -80.0, 100.0]
INFINITE = [0.0, 1.0, -1.0, float("inf"), -float("inf")]


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "asin", "acos", "atanh", "atan"])
def test_functions_of_large_small_and_signed_complex_numbers_are_those_of_the_host(name: str) -> None:
    parts = np.array(SPECIAL)
    x = torch.from_numpy(parts[:, None] + np.zeros_like(parts) + 0j)
    x.imag.copy_(torch.from_numpy(np.broadcast_to(parts, x.shape).copy()))
    host, there = getattr(torch, name)(x), getattr(torch, name)(x.cuda()).cpu()
    for one, other in zip(
        *[torch.view_as_real(t).unbind(-1) if t.is_complex() else [t] for t in (host, there)], strict=True
    ):
        a, b = one.numpy(), other.numpy()
        np.testing.assert_allclose(b, a, 1e-9, 1e-13)
        np.testing.assert_array_equal(np.signbit(b), np.signbit(a))


@pytest.mark.parametrize("name", ["abs", "exp", "log", "sqrt", "tanh", "asin", "acos", "asinh", "acosh", "atanh"])
def test_functions_of_infinite_complex_numbers_are_those_of_the_host(name: str) -> None:
    x = torch.tensor([complex(a, b) for a in INFINITE for b in INFINITE if np.inf in (abs(a), abs(b))])
    x = x.to(torch.complex128)
    host, there = getattr(torch, name)(x), getattr(torch, name)(x.cuda()).cpu()
    np.testing.assert_allclose(np.abs(there.numpy().real), np.abs(host.numpy().real), 1e-12)
    np.testing.assert_allclose(np.abs(there.numpy().imag), np.abs(host.numpy().imag), 1e-12)


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "acosh", "asinh", "atanh", "atan"])
def test_the_sides_of_cuts_are_those_of_the_host(name: str) -> None:
    reals = [-3.0, -1.0, -0.5, 0.0, 0.5, 1.5, 3.0]
    along = [complex(a, b) for a in reals for b in (0.0, -0.0)]
    x = torch.tensor(along + [complex(z.imag, z.real) for z in along], dtype=torch.complex128)
    host, there = getattr(torch, name)(x), getattr(torch, name)(x.cuda()).cpu()
    np.testing.assert_allclose(there.numpy(), host.numpy(), 1e-12, 1e-14)
