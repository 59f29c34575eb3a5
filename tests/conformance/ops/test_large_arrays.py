"""Large tensors, which compiled kernels compute: the same programs on torch, forward, backward and in place."""

import math

import numpy as np
import pytest
import torch

import pullback

ROWS, COLUMNS = 90, 110
assert ROWS * COLUMNS > 4096


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def tensors(library, dtype, *arrays):
    return [library.tensor(a.astype(dtype), requires_grad=True) for a in arrays]


def close(expected, got, dtype):
    expected, got = expected.detach().numpy(), got.detach().numpy()
    assert expected.shape == got.shape and expected.dtype == got.dtype
    tolerance = 2e-5 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(got, expected, rtol=10 * tolerance, atol=tolerance * (1 + np.abs(expected).max()))


PROGRAMS = {
    "broadcast": lambda t, x, y, z: (x * y + z).tanh() / (1 + x * x) - y,
    "gelu": lambda t, x, y, z: t.nn.functional.gelu(x) * y + t.nn.functional.gelu(x * z, approximate="tanh"),
    "sigmoids": lambda t, x, y, z: t.sigmoid(x * z) + t.nn.functional.silu(x) + t.nn.functional.mish(x * y),
    "pieces": lambda t, x, y, z: t.relu(x).pow(3) + x.clamp(-1, 1) * z + t.nn.functional.hardswish(x) + x.abs(),
    "choices": lambda t, x, y, z: t.where(x > 0, x * y, z) + t.maximum(x, y) + t.minimum(x, z),
    "exponentials": lambda t, x, y, z: t.exp(x) + t.expm1(y) + t.log1p(y * y) + t.sqrt(z * z + 1) + t.rsqrt(x * x + 1),
    "transposes": lambda t, x, y, z: (x.t() * 2).t() + x.t().exp().t() * y,
    "linear units": lambda t, x, y, z: (
        t.nn.functional.softplus(x) + t.nn.functional.elu(x * y) + t.nn.functional.leaky_relu(z)
    ),
    "combinations": lambda t, x, y, z: t.addcmul(x, y, z, value=0.7) + t.lerp(x, y, 0.3) + t.logaddexp(x, y),
    "angles": lambda t, x, y, z: t.sin(x * 30) * t.cos(z) + t.erf(x) + (x.abs() + 0.1) ** 2.5 + 2 - x,
    "reductions": lambda t, x, y, z: (
        x.mean(0) * y + x.var(1)[:, None] * z + x.norm() + x.sum(1, keepdim=True) + x.std()
    ),
    "more reductions": lambda t, x, y, z: (
        x.amax(0) + x.max(1).values[:, None] + x.logsumexp(1, keepdim=True) + x.norm(1, dim=0) + x.median()
    ),
    "masks": lambda t, x, y, z: x.masked_fill(y > 0, 3.5) + x.masked_fill(z > 0, -1) + t.sign(x) * t.nan_to_num(x / z),
    "gates": lambda t, x, y, z: (
        t.nn.functional.prelu(x, y[:1]) + t.nn.functional.glu(t.cat([x, x * 2], 1)) + t.nn.functional.logsigmoid(x * z)
    ),
    "scans": lambda t, x, y, z: x.cumsum(0) + x.cumsum(1) + (1 + x / 100).cumprod(1),
    "sums of gradients": lambda t, x, y, z: x + x * 2 + x.exp() + (x - y) + (x * z) + x.t().contiguous().t(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_gradients_are_torchs(name, dtype):
    arrays = numbers(ROWS, COLUMNS), numbers(COLUMNS, seed=1), numbers(ROWS, 1, seed=2)
    found = []
    for library in (torch, pullback):
        inputs = tensors(library, dtype, *arrays)
        out = PROGRAMS[name](library, *inputs)
        (out * out).mean().backward()
        (PROGRAMS[name](library, *inputs) * 0.5).sum().backward()  # added to what is there
        found.append([out, *[x.grad for x in inputs if x.grad is not None]])
    assert len(found[0]) == len(found[1])
    for expected, got in zip(*found, strict=True):
        close(expected, got, dtype)


LOSSES = {
    "mse_loss": {},
    "l1_loss": {},
    "smooth_l1_loss": {"beta": 0.7},
    "huber_loss": {"delta": 1.3},
    "binary_cross_entropy_with_logits": {},
    "poisson_nll_loss": {},
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_torchs(name, reduction):
    for shape in ((ROWS, COLUMNS), (2 * ROWS, COLUMNS)):  # what is known of one shape must not serve the other
        found = []
        for library in (torch, pullback):
            x, y = tensors(library, "float64", numbers(*shape), numbers(*shape, seed=1))
            out = getattr(library.nn.functional, name)(x, y.sigmoid(), reduction=reduction, **LOSSES[name])
            out.sum().backward()
            found.append([out, x.grad, y.grad])
        for expected, got in zip(*found, strict=True):
            close(expected, got, "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_second_derivatives_are_torchs(dtype):
    found = []
    for library in (torch, pullback):
        (x,) = tensors(library, dtype, numbers(ROWS, COLUMNS))
        (first,) = library.autograd.grad((library.tanh(x) * x.exp()).sum(), x, create_graph=True)
        found.append(library.autograd.grad((first * first).sum(), x)[0])
    close(*found, dtype)


def write(t, x, y):
    x.mul_(2.5)
    x.add_(y)
    x.sub_(y, alpha=0.5)
    x.exp_()
    x.relu_()
    x.clamp_(0.1, 3)
    x[:, ::2].add_(1)
    x.t().mul_(x.t())
    x.addcmul_(y, y, value=0.1)
    x[3:].copy_(x[:-3].clone())
    x.masked_fill_(y > 1, 0.25)
    x.t().masked_fill_(y.t() < -1, 0.5)
    x.sigmoid_()
    t.mul(x, 2, out=x)
    return x


def test_writes_in_place_are_torchs():
    found = []
    for library in (torch, pullback):
        x, y = (library.tensor(numbers(ROWS, COLUMNS, seed=seed).astype("float32")) for seed in (0, 1))
        found.append(write(library, x, y))
    close(*found, "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "bool"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_copies_and_casts_are_torchs_in_values_and_strides(dtype, order):
    array = numbers(20, 30, 40) * 5
    sides = [library.tensor(array).to(getattr(library, dtype)).permute(order) for library in (torch, pullback)]
    for change in (
        lambda x, t: x.clone(),
        lambda x, t: x.contiguous(),
        lambda x, t: x.reshape(-1),
        lambda x, t: x.to(t.float32),
        lambda x, t: x.to(t.float64),
        lambda x, t: x.to(t.bool),
        lambda x, t: t.zeros_like(x, dtype=t.float64).copy_(x),
        lambda x, t: x + x,
    ):
        expected, got = (change(x, t) for x, t in zip(sides, (torch, pullback), strict=True))
        assert expected.stride() == got.stride()
        assert np.array_equal(expected.numpy(), got.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("dim", [None, 0, 1, 2])
def test_extrema_and_their_places_are_torchs(dtype, dim):
    array = (numbers(9, 25, 31) * 1000).astype(dtype)
    if dtype.startswith("float"):
        array[4, 12, 30] = array[7, 3, 3] = math.nan
    for name in ("argmax", "argmin", "max", "min", "amax", "amin", "sum"):
        arguments = () if dim is None else (dim,)
        expected, got = (getattr(t.tensor(array), name)(*arguments) for t in (torch, pullback))
        for a, b in zip(expected, got, strict=True) if isinstance(expected, tuple) else [(expected, got)]:
            assert a.numpy().dtype == b.numpy().dtype
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-5, atol=1e-2 if name == "sum" else 0)


def test_questions_about_many_bools_are_answered_as_torch_does():
    array = numbers(300, 40) > -1.8
    for name in ("any", "all", "sum"):
        for arguments in ((), (0,), (1,), (1, True)):
            expected, got = (getattr(t.tensor(array), name)(*arguments).numpy() for t in (torch, pullback))
            assert expected.dtype == got.dtype and np.array_equal(expected, got)


@pytest.mark.parametrize("shape, dim", [((5000, 3), 7), ((5000,), 1), ((40, 40, 40), -4)])
def test_a_dimension_that_is_not_there_is_torchs_error(shape, dim):
    for name in ("sum", "amax", "max", "argmax", "cumsum", "any", "prod", "var", "mean"):
        texts = []
        for library in (torch, pullback):
            with pytest.raises(IndexError) as caught:
                getattr(library.ones(shape), name)(dim)
            texts.append(str(caught.value))
        assert texts[1].startswith(texts[0])


def test_shapes_that_do_not_broadcast_are_torchs_error():
    for program in (lambda t: t.ones(5000) + t.ones(5001), lambda t: t.ones(70, 70).mul_(t.ones(71))):
        texts = []
        for library in (torch, pullback):
            with pytest.raises(RuntimeError) as caught:
                program(library)
            texts.append(str(caught.value))
        assert texts[1].startswith(texts[0])
