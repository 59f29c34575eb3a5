"""Fake quantization: values, gradients, nodes and errors as torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pullback

RNG = np.random.default_rng(0)
NUMBERS = (RNG.standard_normal((3, 4)) * 10).astype(np.float32)
SPECIAL = np.array([[np.nan, np.inf, -np.inf, 1e30], [0.25, 0.35, -0.25, -0.0], [1, 2, 3, 4]], np.float32)


def per_tensor(library: Any, x: Any) -> Any:
    return library.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)


def per_tensor_of_tensors(library: Any, x: Any) -> Any:
    zero = library.tensor(3, dtype=library.int32)
    return library.fake_quantize_per_tensor_affine(x, library.tensor(0.1), zero, -8, 7)


def per_channel(library: Any, x: Any) -> Any:
    zero = library.tensor([0, 3, 5], dtype=library.int32)
    return library.fake_quantize_per_channel_affine(x, library.tensor([0.1, 0.2, 0.7]), zero, 0, 0, 15)


def per_channel_of_floats(library: Any, x: Any) -> Any:
    zero = library.tensor([0.0, 2.6, 5.0, 1.0])
    return library.fake_quantize_per_channel_affine(x, library.tensor([0.1, 0.2, 0.7, 0.3]), zero, 1, 0, 15)


FORMS = [per_tensor, per_tensor_of_tensors, per_channel, per_channel_of_floats]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("numbers", [NUMBERS, SPECIAL], ids=["usual", "special"])
def test_values_agree(form: Any, dtype: str, numbers: Any) -> None:
    results = []
    for library in (torch, pullback):
        x = library.from_numpy(numbers.copy()).to(getattr(library, dtype))
        result = form(library, x)
        assert result.dtype is x.dtype
        results.append(result.double().numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("form", FORMS)
def test_the_gradient_passes_between_the_bounds(form: Any) -> None:
    seen = []
    for library in (torch, pullback):
        x = library.from_numpy(NUMBERS.copy()).requires_grad_()
        result = form(library, x)
        node = result.grad_fn
        mask = node._saved_mask.tolist()
        result.backward(library.from_numpy(NUMBERS[::-1].copy()))
        seen.append((type(node).__name__, mask, x.grad.tolist()))
    assert seen[0] == seen[1]


ZEROS = [0, 0, 0]
BAD = [
    lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 2),
    lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255),
    lambda t, x: t.fake_quantize_per_tensor_affine(x.long(), 0.1, 0, 0, 255),
    lambda t, x: t.fake_quantize_per_tensor_affine(x, "a", 0, 0, 255),
    lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 0.5, 0, 255),
    lambda t, x: t.fake_quantize_per_tensor_affine(x, t.ones(2), t.zeros(2), 0, 255),
    lambda t, x: t.fake_quantize_per_tensor_affine(x, t.ones(1, requires_grad=True), t.zeros(1), 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(3), t.tensor(ZEROS), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(3).double(), t.tensor(ZEROS).int(), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(2), t.tensor(ZEROS).int(), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(3), t.tensor(ZEROS).int(), 1, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(3), t.tensor(ZEROS).int(), 5, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(3), t.tensor([0, 300, 0]).int(), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, t.ones(1, 3), t.tensor(ZEROS).int(), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x, [1.0], t.tensor(ZEROS).int(), 0, 0, 255),
    lambda t, x: t.fake_quantize_per_channel_affine(x.long(), t.ones(3), t.tensor(ZEROS).int(), 0, 0, 255),
]


@pytest.mark.parametrize("call", BAD)
def test_errors_agree(call: Any) -> None:
    errors = []
    for library in (torch, pullback):
        with pytest.raises(Exception) as caught:
            call(library, library.from_numpy(NUMBERS.copy()))
        errors.append((caught.type, str(caught.value).split("\nException raised")[0]))
    assert errors[0][0] is errors[1][0]
    assert errors[1][1].startswith(errors[0][1])
