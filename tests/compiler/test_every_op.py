"""Every op, compiled: forward and backward give the bits of eager, for other elements than those that were recorded."""

import warnings

import numpy as np
import pytest

import pullback as torch
from pullback._op.declare import registry
from tests.compiler.support import exactly, same, seen
from tests.op_samples import outputs_of, sample

KEYS = sorted(registry)
PARTS = 8


def arguments(sampled, factor):
    """The tensors of a sample, scaled; those that can want a gradient do."""
    moving = set(sampled.moving())

    def tensor(name, value):
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            return [tensor(name, item) for item in value]
        if not isinstance(value, np.ndarray):
            return value
        array = value * factor if value.dtype.kind == "f" else value.copy()
        return torch.tensor(array, requires_grad=name in moving)

    tensors = sampled.op.tensors
    return {name: tensor(name, value) for name, value in sampled.arguments.items() if name in tensors}


def leaves(tensors):
    """The tensors that want gradients."""
    flat = [t for value in tensors.values() for t in (value if isinstance(value, list) else [value])]
    return [t for t in flat if isinstance(t, torch.Tensor) and t.requires_grad]


def observed(function, sampled, factor):
    """Results and gradients."""
    tensors = arguments(sampled, factor)
    results = outputs_of(function(tensors))
    wanting = [result for result in results if result.requires_grad]
    grads = []
    if wanting:
        starts = [torch.full(result.shape, 0.7, dtype=result.dtype) for result in wanting]
        try:
            grads = torch.autograd.grad(wanting, leaves(tensors), starts, allow_unused=True)
        except RuntimeError as error:
            return type(error), str(error)
    return [seen(result) for result in results], [None if g is None else seen(g) for g in grads]


@pytest.mark.parametrize("part", range(PARTS))
def test_an_op_gives_what_it_gives_eagerly(part):
    programs, reasons = 0, {}
    for key in KEYS[part::PARTS]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampled = sample(key)
            if sampled is None or sampled.op.flips or key.endswith(("_by_number", "_by_tensor")):
                continue
            plain = sampled.call
            compiled, native = exactly(plain), torch.compile(plain)
            for factor in (1.0, 0.96, 1.0):
                expected = observed(plain, sampled, factor)
                same(observed(compiled, sampled, factor), expected, key)
                same(observed(native, sampled, factor), expected, key, rounding=True)
        entry = compiled._compiled.entries[0] if compiled._compiled.entries else None
        if entry is None or entry.why:
            reasons[key] = entry and entry.why
        else:
            assert entry.calls, key
            programs += 1
    assert programs > 3 * len(reasons), reasons


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_gradients_of_complex_numbers_without_dimensions_have_the_bits_of_eager(size, dtype):
    def corner(x):
        return torch.log(torch.sgn(x[0, 0])) * torch.exp(x[-1, 0])

    for function in (torch.logdet, torch.linalg.det, corner):
        compiled, random = exactly(function), np.random.RandomState(0)
        for _ in range(20):
            given = random.randn(size, size) + 1j * random.randn(size, size)
            start = torch.tensor(random.randn() + 1j * random.randn(), dtype=getattr(torch, dtype))
            grads = []
            for call in (function, compiled):
                x = torch.tensor(given, dtype=getattr(torch, dtype), requires_grad=True)
                grads.append(torch.autograd.grad(call(x), x, start)[0].numpy())
            assert grads[0].tobytes() == grads[1].tobytes()
