"""`mock.patch` on names of torch and of pullback: in force while it lasts, and gone afterwards."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys, warnings
from unittest import mock

name, installed = sys.argv[1:]
if installed == "installed":
    import pullback.compat
    pullback.compat.install()
torch = importlib.import_module(name)
importlib.import_module(name + ".nn.functional")
x = torch.ones(2) - 3
USES = {
    "relu": lambda: torch.relu(x),
    "randn": lambda: torch.randn(2),
    "save": lambda: torch.save(1, "/nowhere/at/all"),
    "manual_seed": lambda: torch.manual_seed(0),
    "no_grad": lambda: torch.no_grad(),
    "nn.functional.relu": lambda: torch.nn.functional.relu(x),
    "nn.functional.conv2d": lambda: torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)),
    "nn.Linear": lambda: torch.nn.Linear(2, 2),
    "nn.Module.forward": lambda: torch.nn.Module.forward(torch.nn.Identity(), x),
    "nn.init.zeros_": lambda: torch.nn.init.zeros_(torch.ones(2)),
    "optim.SGD": lambda: torch.optim.SGD([torch.nn.Parameter(x)], 0.1),
    "autograd.grad": lambda: torch.autograd.grad((p := torch.nn.Parameter(x)).sum(), p),
    "cuda.is_available": lambda: torch.cuda.is_available(),
    "linalg.norm": lambda: torch.linalg.norm(x),
    "utils.data.DataLoader": lambda: torch.utils.data.DataLoader([1]),
    "distributions.Normal": lambda: torch.distributions.Normal(0.0, 1.0),
    "Tensor.relu": lambda: x.relu(),
    "Tensor.__add__": lambda: x + 1,
    "Tensor.backward": lambda: torch.nn.Parameter(x).sum().backward(),
    "Tensor.cuda": lambda: x.cuda(),
}

def outcome(use):
    try:
        return repr(type(use())), None
    except Exception as error:
        return type(error), str(error)

def got(use, value):
    found = outcome(use)
    return found == (repr(type(value)), None)

class First: pass
class Second: pass

for warm in (False, True):
    for path, use in USES.items():
        full = f"{name}.{path}"
        before = outcome(use) if warm else None
        one, two = First(), Second()
        with mock.patch(full, return_value=one) as patched:
            assert got(use, one) and patched.called, full
            with mock.patch(full, return_value=two):
                assert got(use, two), full
            assert got(use, one), full
        after = outcome(use)
        assert after[0] != repr(First) and (before is None or after == before), (full, before, after)
        owner = eval(full.rpartition(".")[0], {name: torch})
        with mock.patch.object(owner, path.rpartition(".")[2], lambda *args, **options: two):
            assert got(use, two), full
        assert outcome(use) == after, full
assert isinstance(torch.Tensor, type) and isinstance(x, torch.Tensor)
own = torch.float32
with mock.patch(name + ".float32", torch.float64):
    assert torch.float32 is torch.float64
assert torch.float32 is own and torch.ones(1).dtype is own
with mock.patch(name + ".brand_new", 3, create=True):
    assert torch.brand_new == 3
try: torch.brand_new
except AttributeError: pass
else: raise SystemExit("what was made for a test is still there")
print("fine")
"""


@pytest.mark.parametrize(("name", "installed"), [("pullback", "plain"), ("torch", "installed")])
def test_a_patched_name_is_patched_while_it_lasts_and_restored_after(name, installed):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, name, installed], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_a_class_is_not_imported_as_a_module():
    program = (
        "import importlib, pullback.compat\n"
        "pullback.compat.install()\n"
        "import torch, torch.backends.cudnn\n"
        "for name in ('torch.Tensor', 'torch.relu', 'torch.nn.Linear', 'torch.float32'):\n"
        "    try: importlib.import_module(name)\n"
        "    except ModuleNotFoundError: pass\n"
        "    else: raise SystemExit(name)\n"
        "torch.backends.cudnn.deterministic = True\n"
        "assert torch.backends.cudnn.deterministic is True and isinstance(torch.Tensor, type)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
