"""What is added is little: an op is one block, a row op with its kernel two files, a module and an optimizer one.

The definitions of CONTRIBUTING.md's recipes are added to a copy of the source, and used there as users would.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.kernels.compiled import room
from tests.structure.source import SRC

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def recipe(heading, *names):
    """What a recipe imports and defines, without its checks; of its definitions those of these names, if any."""
    section = PAGE.partition(f"### {heading}\n")[2].partition("\n##")[0]
    program = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    lines, kept = program.splitlines(), []
    for part in ast.parse(program).body:
        if isinstance(part, (ast.Import, ast.ImportFrom)):
            wanted = not ast.unparse(part).startswith(("from __future__", "import pullback"))
        else:
            wanted = isinstance(part, (ast.FunctionDef, ast.ClassDef)) and (not names or part.name in names)
        if wanted:
            first = min([part.lineno, *(one.lineno for one in getattr(part, "decorator_list", []))])
            kept += [*lines[first - 1 : part.end_lineno], "", ""]
    assert kept, heading
    return "\n".join(["", "", *kept])


ROW_OP = "A row op with a kernel of its own"
POINTWISE = {"ops/pointwise/special.py": recipe("A pointwise op that torch lacks", "hump")}
ROWS = {
    "kernels/numpy/reduce/energy.py": "import numpy as np\n"
    + recipe(ROW_OP, "energy_of_rows", "kernel", "energy_kernel"),
    "ops/reduce/norms.py": "\n\nfrom pullback.kernels.numpy.reduce.energy import energy_kernel\n"
    + recipe(ROW_OP, "energy"),
}
MODULE = {"nn/modules/linear.py": "\n\nimport pullback as torch\n" + recipe("A module") + '__all__ += ["Scale"]\n'}
OPTIMIZER = {
    "optim/descent.py": "import pullback as torch\n"
    + recipe("An optimizer")
    + '''
class BySign(Rule):
    """p <- p - lr sign(grad)."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    def update(self, parameter, grad, state, group):
        parameter.sub_(grad.sign() * group["lr"])
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
assert torch.allclose(torch.compile(lambda x: torch.hump(x) * 2)(x), torch.hump(x) * 2)
torch.show(torch.hump, torch.randn(100, 100), kernel=True)
"""
USES_ROWS = """
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(torch.energy, x, check_forward_ad=True)
assert torch.autograd.gradgradcheck(torch.energy, x)
assert torch.allclose(x.energy(), (x * x).sum(-1)) and torch.equal(x.mT.energy(), (x * x).sum(-2))
assert torch.allclose(torch.vmap(torch.energy)(x), x.energy())
assert torch.allclose(torch.compile(torch.energy)(x), x.energy())
torch.show(torch.energy, torch.randn(50, 17), kernel=True)
"""
USES_MODULE = """
scale = torch.nn.Scale(3)
assert repr(torch.nn.Sequential(scale)) == "Sequential(\\n  (0): Scale(features=3)\\n)"
scale.load_state_dict({"weight": torch.tensor([1.0, 2.0, 3.0])})
assert torch.equal(scale(torch.ones(2, 3))[1], torch.tensor([1.0, 2.0, 3.0]))
scale(torch.ones(2, 3)).sum().backward()
assert torch.equal(scale.weight.grad, torch.full((3,), 2.0))
assert torch.equal(torch.compile(scale)(torch.ones(2, 3)), scale(torch.ones(2, 3)))
"""
USES_OPTIMIZER = """
from pullback.optim.descent import BySign, SignDescent
def shown(kind):
    parameter = torch.ones(3, requires_grad=True)
    optimizer = kind([parameter], lr=0.5)
    for _ in range(2):
        parameter.grad = torch.ones(3)
        optimizer.step()
    torch.show(optimizer)
    return parameter[0].item()
assert abs(shown(SignDescent) - (1 - 0.5 - 0.5 * 1.9)) < 1e-6 and shown(BySign) == 0.0
"""

IMPORTS = "import numpy as np\nimport pullback as torch\nfrom pullback._op import stubs\n"
ADDITIONS = {
    "a pointwise op": (POINTWISE, 1, USES_POINTWISE, "; hump: multiply(x0, exp(negative(multiply(x0, x0))))"),
    "a row op with its kernel": (ROWS, 2, USES_ROWS, "; kernel energy_float32"),
    "a module": (MODULE, 1, USES_MODULE, ""),
    "an optimizer": (OPTIMIZER, 1, USES_OPTIMIZER, "SignDescent is one pass over memory for float32 with previous:"),
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
