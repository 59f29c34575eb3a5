"""Every op of the registry computes on the device what it computes on the host: values, shapes, strides, gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.kernels.compiled import room
from tests.op_samples import Sampled, as_tensor, leaf, outputs_of, sample, sampled_ops

KEYS = sampled_ops(False)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def moved(value: Any) -> Any:
    """An argument on the device; leaves stay leaves."""
    if isinstance(value, list):
        return [moved(item) for item in value]
    if not isinstance(value, pullback.Tensor):
        return value
    return value.detach().cuda().requires_grad_(value.requires_grad)


def run(sampled: Sampled, on_device: bool) -> tuple[list[Any], list[Any]]:
    """The outputs of an op, and the gradients of its inputs."""
    tensors = {name: as_tensor(value) for name, value in sampled.arguments.items()}
    tensors |= {name: leaf(sampled.arguments[name]) for name in sampled.moving()}
    if on_device:
        tensors = {name: moved(value) for name, value in tensors.items()}
    outs = outputs_of(sampled.call(tensors))
    leaves = [
        t for name in sampled.moving() for t in (tensors[name] if isinstance(tensors[name], list) else [tensors[name]])
    ]
    wanted = [out for out in outs if out.requires_grad]
    grads = []
    if wanted and leaves:
        weights = [pullback.ones(out.shape, dtype=out.dtype, device=out.device) for out in wanted]
        grads = list(pullback.autograd.grad(wanted, leaves, weights, allow_unused=True))
    return outs, grads


def facts(tensor: Any, strides: bool) -> Any:
    return None if tensor is None else (tuple(tensor.shape), tensor.stride() if strides else None, tensor.dtype)


def of_complex(value: Any) -> Any:
    """Floats among arguments as complex numbers."""
    if isinstance(value, list):
        return [of_complex(item) for item in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    return value + 0.7j * np.random.default_rng(0).standard_normal(value.shape)


@pytest.mark.parametrize("key", KEYS)
def test_an_op_computes_on_the_device_what_it_computes_on_the_host(key: str) -> None:
    compare(sample(key))


@pytest.mark.parametrize("key", KEYS)
def test_an_op_of_complex_numbers_computes_on_the_device_what_it_computes_on_the_host(key: str) -> None:
    real = sample(key)
    sampled = Sampled(real.op, {name: of_complex(value) for name, value in real.arguments.items()})
    pullback.cuda.reset_fallbacks()
    try:
        run(sampled, False)
    except Exception:
        pytest.skip("the host does not take complex numbers here")
    compare(sampled)
    if room("cuda.ptx") is not None:
        through = set(pullback.cuda.fallbacks())
        assert not through or "linalg" in key or key in BY_THE_HOST, through


BY_THE_HOST = {"euclidean_distance", "geqrf", "hashed", "in_range", "rrelu_grad", "triangular_solve", "values_alone"}
"""Ops that take complex numbers and have no kernels for them, beside those of linear algebra. The numbers that
`in_range` looks at are real wherever it is called; alone it would order complex ones by NumPy."""


def compare(sampled: Sampled) -> None:
    """The same call on the host and on the device."""
    try:
        here = run(sampled, False)
    except (NotImplementedError, RuntimeError) as error:
        with pytest.raises(type(error)):
            run(sampled, True)
        return
    there = run(sampled, True)
    pairs = [*zip(*(side[0] for side in (here, there)), strict=True)]
    for place, (one, other) in enumerate([*pairs, *zip(*(side[1] for side in (here, there)), strict=True)]):
        assert facts(one, place < len(pairs)) == facts(other, place < len(pairs))
        if one is not None:
            assert other.device == pullback.device("cuda", 0)
            assert one.requires_grad == other.requires_grad
            np.testing.assert_allclose(other.cpu().numpy(force=True), one.numpy(force=True), 1e-6, 1e-7)
