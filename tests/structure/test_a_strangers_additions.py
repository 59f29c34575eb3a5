"""What is added is little: an op is one block, a row op with its kernel two files, a module and an optimizer one.

Each is added to a copy of the source, as CONTRIBUTING.md tells it, and used there as users would.
"""

import os
import shutil
import subprocess
import sys

import pytest

from pullback.kernels.compiled import room
from tests.structure.source import SRC

POINTWISE = {
    "ops/pointwise/special.py": '''

@op(inplace=True, pointwise=True, floats=True,
    self=lambda grad, self: grad * ((1 - 2 * self * self) * exp(-self * self)), result=elementwise)
def hump(self: Array) -> Array:
    """x exp(-x^2)."""
    return np.multiply(self, np.exp(np.negative(np.multiply(self, self))))
'''
}
USES_POINTWISE = """
x = torch.tensor([0.3, -1.2], dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.hump, x, check_forward_ad=True) and torch.autograd.gradgradcheck(torch.hump, x)
assert torch.equal(x.hump(), torch.hump(input=x)) and x.hump().grad_fn.name() == "HumpBackward0"
assert torch.equal(x.detach().clone().hump_(), torch.hump(x.detach(), out=torch.zeros(2, dtype=torch.float64)))
assert torch.vmap(torch.hump)(torch.ones(3, 2)).shape == (3, 2)
assert torch.hump(torch.ones(3, dtype=torch.int64)).dtype is torch.float32
if not np.__version__.startswith("2.0."):  # in which nothing can be on meta
    assert torch.ones(3, device="meta").hump().shape == (3,)
assert "def hump(input: Tensor, *, out: Any = None) -> Tensor: ..." in stubs.stubs()["torch.pyi"]
torch.show(torch.hump, torch.randn(100, 100), kernel=True)
"""

ROWS = {
    "kernels/jit/rows/energy.py": '''"""The sum of squares of each row."""

from functools import cache

import numpy as np

from pullback.kernels.jit.rows.programs import DTYPES, ELEMENTS, fold, share, vector_of
from pullback.kernels.jit.runtime import calls


@cache
def kernel(element):
    """The kernel of a dtype."""
    type, dtype = vector_of(element), DTYPES[element]

    def describe(code, x, out, count, length):
        with code.loop(code.begin, code.end) as row:
            source = code.at(x, row * length, element)

            def square(i):
                value = code.load(source, i, type)
                return (value * value,)

            (total,) = fold(code, length, element, square, ["add"])
            code.store(total, out, row)

    params = [calls.array(dtype, "count*length"), calls.array(dtype, "count", write=True)]
    return calls.kernel(f"energy_{dtype}", [*params, calls.integer("count"), calls.integer("length")], describe)


def energy(x):
    """The sums; None where NumPy must do it."""
    element = ELEMENTS.get(x.dtype.char)
    if element is None or not x.size or x.ndim != 2:
        return None
    out = np.empty(x.shape[0], x.dtype)
    return out if kernel(element)(x, out, *x.shape, x.shape[0], share(x.shape[1])) else None
''',
    "ops/reduce/norms.py": '''

@op(self=lambda grad, self: 2 * self * unsqueeze(grad, -1),
    result=lambda self_t, self: sum_dim(2 * self * self_t, (-1,)))
def energy(self: Array) -> Array:
    """The sum of squares along the last dimension."""
    compiled = room("rows.energy")
    made = None if compiled is None else compiled.energy(self)
    return np.add.reduce(np.multiply(self, self), -1) if made is None else made


from pullback.kernels.compiled import room
from pullback.ops.reduce.sums import sum_dim
from pullback.ops.shape.reshape import unsqueeze
''',
}
USES_ROWS = """
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.energy, x, check_forward_ad=True)
assert torch.autograd.gradgradcheck(torch.energy, x)
assert torch.allclose(x.energy(), (x * x).sum(-1)) and torch.equal(x.mT.energy(), (x * x).sum(-2))
torch.show(torch.energy, torch.randn(50, 17), kernel=True)
"""

MODULE = {
    "nn/modules/linear.py": '''

class Scale(Layer):
    """x * weight, one weight per feature."""

    def __init__(self, features: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.features = features
        self.weight = Parameter(torch.empty(features, device=device, dtype=dtype))
        init.ones_(self.weight)

    def forward(self, input):
        return input * self.weight

    def extra_repr(self) -> str:
        return f"features={self.features}"


__all__ += ["Scale"]
import pullback as torch
from pullback.nn import init
'''
}
USES_MODULE = """
scale = torch.nn.Scale(3)
assert repr(torch.nn.Sequential(scale)) == "Sequential(\\n  (0): Scale(features=3)\\n)"
scale.load_state_dict({"weight": torch.tensor([1.0, 2.0, 3.0])})
assert torch.equal(scale(torch.ones(2, 3))[1], torch.tensor([1.0, 2.0, 3.0]))
"""

OPTIMIZER = {
    "optim/descent.py": '''"""Descent with the gradient of the step before."""

import pullback as torch
from pullback.optim.rule import Rule


class TwoSteps(Rule):
    """p <- p - lr (grad + momentum v), v <- grad."""

    def __init__(self, params, lr=1e-3, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    def start(self, parameter, group):
        return {"previous": torch.zeros_like(parameter)}

    def update(self, parameter, grad, state, group):
        parameter.add_(grad.add(state["previous"], alpha=group["momentum"]), alpha=-group["lr"])
        state["previous"].copy_(grad)


class BySign(Rule):
    """p <- p - lr sign(grad)."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    def update(self, parameter, grad, state, group):
        parameter.sub_(grad.sign() * group["lr"])
'''
}
USES_OPTIMIZER = """
from pullback.optim.descent import BySign, TwoSteps
def shown(kind):
    parameter = torch.ones(3, requires_grad=True)
    optimizer = kind([parameter], lr=0.5)
    for _ in range(2):
        parameter.grad = torch.ones(3)
        optimizer.step()
    torch.show(optimizer)
    return parameter[0].item()
assert abs(shown(TwoSteps) - (1 - 0.5 - 0.5 * 1.9)) < 1e-6 and shown(BySign) == 0.0
"""

IMPORTS = "import numpy as np\nimport pullback as torch\nfrom pullback._op import stubs\n"
ADDITIONS = {
    "a pointwise op": (POINTWISE, 1, USES_POINTWISE, "; hump: multiply(x0, exp(negative(multiply(x0, x0))))"),
    "a row op with its kernel": (ROWS, 2, USES_ROWS, "; kernel energy_float32"),
    "a module": (MODULE, 1, USES_MODULE, ""),
    "an optimizer": (OPTIMIZER, 1, USES_OPTIMIZER, "TwoSteps is one pass over memory for float32 with previous:"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the source."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(SRC / "pullback", folder / "pullback", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("what", ADDITIONS)
def test_it_takes_no_more_than_its_files(what, kernels, copy):
    files, count, program, kernel = ADDITIONS[what]
    before = {name: (copy / "pullback" / name).read_text() for name in files if (copy / "pullback" / name).exists()}
    assert len(files) == count
    try:
        for name, text in files.items():
            (copy / "pullback" / name).write_text(before.get(name, "") + text)
        environment = dict(os.environ, PYTHONPATH=str(copy), PULLBACK_KERNELS=kernels)
        environment.pop("PULLBACK_REFERENCE", None)
        command = [sys.executable, "-c", IMPORTS + program]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    finally:
        for name in files:
            (copy / "pullback" / name).unlink()
        for name, text in before.items():
            (copy / "pullback" / name).write_text(text)
    assert ran.returncode == 0, ran.stderr
    if kernels == "" and room("runtime.calls") is not None:
        assert kernel in ran.stdout
    if what == "an optimizer":
        assert "BySign runs as it is written" in ran.stdout
