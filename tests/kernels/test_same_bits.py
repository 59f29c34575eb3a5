"""What is computed does not depend on how often it was computed before, nor on what was: only its speed does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.kernels.compiled import room

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import hashlib, json, sys
import numpy as np
import pullback as torch
F = torch.nn.functional

UNARY = {name: getattr(torch, name) for name in (
    "exp log sin tanh sigmoid erf sqrt rsqrt reciprocal abs square relu logit").split()}
UNARY |= {name: getattr(F, name) for name in (
    "silu gelu softplus mish hardswish elu selu leaky_relu logsigmoid softsign tanhshrink softshrink").split()}
UNARY["pow3"] = lambda x: x ** 3
UNARY["pow_half"] = lambda x: x ** 0.5
UNARY["clamp"] = lambda x: x.clamp(0.2, 0.7)
UNARY["tanh_gelu"] = lambda x: F.gelu(x, approximate="tanh")
BINARY = {name: getattr(torch, name) for name in (
    "add mul div maximum pow atan2 logaddexp remainder xlogy").split()}
LOSSES = ("mse", "smooth_l1", "bce", "logits")
BINARY["mse"] = lambda x, y: F.mse_loss(x, y, reduction="none")
BINARY["smooth_l1"] = lambda x, y: F.smooth_l1_loss(x, y, reduction="none")
BINARY["bce"] = lambda x, y: F.binary_cross_entropy(x, y, reduction="none")
BINARY["logits"] = lambda x, y: F.binary_cross_entropy_with_logits(x, y)
BINARY["addcmul"] = lambda x, y: torch.addcmul(x, x, y, value=0.3)
BINARY["lerp"] = lambda x, y: torch.lerp(x, y, 0.3)

random = np.random.default_rng(0)


def arrays(size, layout, dtype):
    # Two operands of about `size` elements, between 0 and 1.
    rows = max(size // 7, 1)
    whole = lambda *shape: random.uniform(0.01, 0.99, shape).astype(dtype)
    if layout == "flat":
        return whole(size), whole(size)
    if layout == "turned":
        return whole(7, rows).T, whole(7, rows).T
    if layout == "strided":
        return whole(size, 2)[:, 0], whole(size, 2)[:, 1]
    if layout == "parts":
        return whole(rows, 9)[:, 1:8], whole(rows, 8)[:, :7]
    if layout == "row":
        return whole(rows, 7), whole(7)
    return whole(rows, 7), whole(rows, 1)


def digest(function, operands, count):
    leaves = [torch.from_numpy(a).requires_grad_() for a in operands[:count]]
    out = function(*leaves)
    out.backward(torch.ones_like(out))
    found = hashlib.sha256()
    for tensor in (out.detach(), *[leaf.grad for leaf in leaves]):
        if tensor is not None:
            found.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return found.hexdigest()[:12]


order = int(sys.argv[1])
cases = []
for count, functions in ((1, UNARY), (2, BINARY)):
    for name, function in functions.items():
        broadcasts = ("row", "column") if count == 2 and name not in LOSSES else ()
        for layout in ("flat", "turned", "strided", "parts", *broadcasts):
            for size in (7, 70, 300, 5000, 20000):
                for dtype in ("f", "d") if size == 70 else "f":
                    cases.append((name, layout, size, dtype, count, function, arrays(size, layout, dtype)))
found, changed = {}, []
for name, layout, size, dtype, count, function, operands in cases[::order]:
    key = f"{name} {layout} {size} {dtype}"
    found[key] = first = digest(function, operands, count)
    for call in range(2, 4 if size > 300 else 101 if size == 7 else 54):
        if digest(function, operands, count) != first:
            changed.append(f"{key}: call {call}")
            break
print(json.dumps([found, changed]))
"""


def run(order, **environment):
    """What each case gave at its first call, and the cases that gave something else at a later one."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(order)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def once():
    return run(1)


def test_a_call_gives_the_same_bits_however_often_it_was_called(once):
    found, changed = once
    assert len(found) > 900 and not changed


@pytest.mark.parametrize(("order", "environment"), [(-1, {}), (1, {"PULLBACK_OFTEN": "1"})], ids=str)
def test_a_call_gives_the_same_bits_whatever_was_called_before(once, order, environment):
    found, changed = run(order, **environment)
    assert not changed
    assert {key: (found[key], bits) for key, bits in once[0].items() if found[key] != bits} == {}


@pytest.mark.skipif(room("small.allocating") is None, reason="kernels are not compiled here")
def test_the_sweep_sees_kernels_that_round_in_their_own_way(once):
    found, _ = run(1, PULLBACK_KERNELS="numpy")
    assert any(found[key] != bits for key, bits in once[0].items())
