"""Programs written for torch, run as they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as library

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(library.__file__).parents[1])}

PROGRAM = """
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed.rpc as rpc
from torch.autograd import Function, gradcheck
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18
import sys

assert isinstance(torch.ones(2), torch.Tensor)
assert torch.nn is nn and nn.functional is F
assert torch.__version__.startswith("2.13")
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
assert torch.version.cuda is None and not torch.backends.mps.is_available()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

torch.manual_seed(0)
model = torch.compile(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = StepLR(optimizer, 10)
data = TensorDataset(torch.randn(16, 2), torch.randn(16, 1))
for x, y in DataLoader(data, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
scheduler.step()

for missing in (lambda: rpc.init_rpc("worker"), lambda: torch.export.export(model, ())):
    try:
        missing()
    except NotImplementedError as error:
        print(error)
class Exported(torch.export.ExportedProgram):
    pass

try:
    Exported()
except NotImplementedError as error:
    print(error)
print(sys.argv[1:], __name__)
"""


def pullback(*arguments, cwd):
    return python("-m", "pullback", *arguments, cwd=cwd)


def python(*arguments, cwd):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_program_for_torch_runs_as_it_is(script):
    result = pullback("run", script.name, "--epochs", "3", cwd=script.parent)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "torch.distributed.rpc.init_rpc is not available in pullback; send objects with "
        "torch.distributed.send_object_list",
        "torch.export.export is not available in pullback; save the model with torch.save or "
        "safetensors.torch.save_file",
        "torch.export.ExportedProgram is not available in pullback; save the model with torch.save or "
        "safetensors.torch.save_file",
        "['--epochs', '3'] __main__",
    ]


def test_a_program_that_is_not_there_is_told(tmp_path):
    result = pullback("run", "nothing.py", cwd=tmp_path)
    assert result.returncode == 2 and result.stderr == "pullback: there is no file nothing.py\n"


def test_check_lists_what_is_missing_without_running(script):
    result = pullback("check", script.name, cwd=script.parent)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0].endswith("4 missing")
    assert any(line.startswith("  line 5: torch.distributed.rpc is missing: send objects") for line in lines)
    assert any("torch.export.ExportedProgram is missing" in line for line in lines)
    assert "  torch.nn.functional.mse_loss" in lines and "  torchvision.models.resnet18" in lines


def test_check_is_content_with_a_program_that_lacks_nothing(tmp_path):
    (tmp_path / "fine.py").write_text("import torch\nprint(torch.ones(2).sum())\n")
    result = pullback("check", "fine.py", cwd=tmp_path)
    assert result.returncode == 0 and "2 names of torch, 0 missing" in result.stdout


def test_only_this_process_sees_the_names_and_they_can_be_taken_away(tmp_path):
    code = (
        "import pullback, sys\n"
        "pullback.compat.install()\n"
        "import torch.nn\n"
        "assert torch.nn.Linear is pullback.nn.Linear\n"
        "torch.set_grad_enabled(True)\n"
        "try: torch.no_such_name\n"
        "except AttributeError as error: print(error)\n"
        "pullback.compat.uninstall()\n"
        "print('torch' in sys.modules)\n"
    )
    result = python("-c", code, cwd=tmp_path)
    assert result.stdout.splitlines() == ["module 'torch' has no attribute 'no_such_name'", "False"], result.stderr


NAMES = """
import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.utils.cpp_extension, torch.ao.quantization, torch.hub, torch.onnx
import torchvision.transforms as transforms
from torch import distributed, jit
from torch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd
from torch.nn import *
from torch.nn.parallel import DistributedDataParallel
from torch.types import Device, Number, _size
from torchvision import datasets, models
import pullback

class Net(torch.nn.Module):
    steps: torch.jit.Final[int]

    @torch.jit.ignore
    def slow(self, group: dist.ProcessGroup | None = None) -> "torch.futures.Future[Tensor]":
        return 1

    @torch.jit.export
    @torch.compiler.disable
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if torch.jit.is_scripting() or torch.onnx.is_in_onnx_export() else x + self.slow()

assert Net()(torch.ones(1)).item() == 2 and issubclass(Linear, torch.nn.Module)
assert type(pullback.nn) is type(pullback.nn.functional) is type(torch).__mro__[1], "pullback itself is as it was"
cudnn.benchmark = True
assert torch.backends.cudnn.benchmark and not cudnn.is_available()
torch._dynamo.config.suppress_errors = True
assert dist.is_available() and not dist.is_initialized()
for part in (torch.cuda, torch.xpu, torch.mps, torch.accelerator, torch.backends.mps):
    assert part.is_available() is False
assert "pullback" in torch.__config__.show() and torch.get_num_threads() > 0
assert isinstance(3, Number) and not isinstance(3, torch.ScriptObject) and not issubclass(int, torch.ScriptObject)
assert mp.get_context("spawn") and models.resnet18 is pullback.models.resnet18
try:
    raise ValueError
except torch.cuda.OutOfMemoryError:
    pass
except ValueError:
    pass
for use in (
    lambda: distributed.rpc.init_rpc("worker"),
    lambda: jit.CompilationUnit("def f(x): return x"),
    lambda: torch.hub.load("a", "b"),
    lambda: transforms.ToTensor(),
    lambda: datasets.MNIST("data"),
):
    try:
        use()
    except NotImplementedError as error:
        print(str(error).split()[0])
"""


def test_nothing_fails_at_import_and_what_is_missing_says_so_when_it_is_used(tmp_path):
    (tmp_path / "names.py").write_text(NAMES)
    result = pullback("run", "names.py", cwd=tmp_path)
    assert result.stderr == ""
    assert result.stdout.split() == [
        "torch.distributed.rpc.init_rpc",
        "torch.jit.CompilationUnit",
        "torch.hub.load",
        "torchvision.transforms.ToTensor",
        "torchvision.datasets.MNIST",
    ]


def test_a_part_that_needs_a_package_is_not_there_without_it(tmp_path):
    (tmp_path / "asks.py").write_text(
        "import sys; sys.modules['tensorboard'] = None\n"
        "import torch, torch.utils\n"
        "print(hasattr(torch.utils, 'tensorboard'))\n"
        "try: from torch.utils.tensorboard import SummaryWriter\n"
        "except ImportError: print('no writer')\n"
    )
    result = pullback("run", "asks.py", cwd=tmp_path)
    assert result.stdout.split("\n") == ["False", "no writer", ""], result.stderr


def test_check_does_not_count_a_question_as_missing(tmp_path):
    (tmp_path / "asks.py").write_text("import torch\nprint(torch.distributed.is_available())\n")
    result = pullback("check", "asks.py", cwd=tmp_path)
    assert result.returncode == 0 and "0 missing" in result.stdout


def test_gradcheck_is_a_function_and_a_module_at_once(tmp_path):
    code = (
        "import pullback\n"
        "pullback.compat.install()\n"
        "import torch\n"
        "x = torch.ones(2, dtype=torch.float64, requires_grad=True)\n"
        "print(torch.autograd.gradcheck(torch.sin, (x,)))\n"
        "from torch.autograd.gradcheck import gradcheck, GradcheckError\n"
        "print(gradcheck(torch.sin, (x,)), torch.autograd.gradcheck(torch.cos, (x,)))\n"
    )
    result = python("-c", code, cwd=tmp_path)
    assert result.stderr == "" and result.stdout == "True\nTrue True\n"
