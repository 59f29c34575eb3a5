"""Who computes what is written in place is chosen as for a new result: the bits are the same."""

import os

import numpy as np
import pytest

import pullback as torch
from pullback._op.declare import REQUIRED, registry
from pullback._op.ufuncs import is_pointwise
from pullback.kernels.jit.pointwise.fused import Kernels
from pullback.kernels.jit.small import choose
from pullback.ops import load_all

load_all()
DRAWN = {"bernoulli", "exponential", "rrelu", "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"}
BY_OPERANDS = {
    count: sorted(
        {
            op.name
            for op in registry.values()
            if is_pointwise(op) and op.inplace and len(op.tensors) == count and op.name not in DRAWN
            if all(p.default is not REQUIRED for p in op.params if p.name not in op.tensors)
            if hasattr(torch.Tensor, op.name) and hasattr(torch.Tensor, f"{op.name}_")
        }
    )
    for count in (1, 2)
}


def operands(size, dtype, count):
    numbers = np.random.default_rng(0).uniform(0.1, 0.9, (count, size))
    return [torch.from_numpy(part).to(dtype) for part in numbers]


def bits(tensor):
    array = tensor.float().numpy() if tensor.dtype is torch.bfloat16 else tensor.numpy()
    return array.tobytes()


@pytest.mark.parametrize("size", [100, 5000, 20000, 70000])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", ["float32", "float64", "float16"])
def test_a_result_has_the_same_bits_in_place_as_in_a_new_tensor(name, count, size):
    different = []
    for op in BY_OPERANDS[count]:
        first, *others = operands(size, getattr(torch, name), count)
        try:
            new = getattr(first, op)(*others)
        except (RuntimeError, NotImplementedError):  # floats are not for it
            continue
        if new.dtype is first.dtype:
            written = getattr(first, f"{op}_")(*others)
            if bits(written) != bits(new):
                different.append(op)
    assert len(BY_OPERANDS[1]) > 30 and len(BY_OPERANDS[2]) > 10
    assert different == []


@pytest.fixture
def computing(monkeypatch):
    """The kernels that are asked, in order."""
    asked = []

    def watch(name):
        way = getattr(Kernels, name)

        def watched(self, *args, **kwargs):
            asked.append(self)
            return way(self, *args, **kwargs)

        monkeypatch.setattr(Kernels, name, watched)

    watch("__call__")
    watch("into")
    return asked


def test_gradients_are_added_by_who_adds_tensors(computing):
    x = torch.ones(20000, requires_grad=True)
    (x + x + x).sum().backward()
    (x + x).sum().backward()
    assert x.grad[0] == 5
    assert {kernels for kernels in computing if kernels.function is np.add} == {choose.ADD.kernels}


@pytest.mark.skipif("PULLBACK_REFERENCE" in os.environ, reason="the reference path has kernels of its own")
def test_half_precision_is_not_left_to_numpy_element_by_element(computing):
    x = torch.ones(5000, dtype=torch.float16)
    x * x
    x.mul_(x)
    assert computing == [choose.MULTIPLY.kernels] * 2
