"""Names that packages written for torch use while they are imported or set up."""

import subprocess
import sys
from pathlib import Path

import pullback as library

SRC = str(Path(__file__).parents[2] / "src")

PROGRAM = """
import sys; sys.path.insert(0, sys.argv[1])
import pullback.compat; pullback.compat.install()
import collections, os, pickle
import torch
from torch.hub import _get_torch_home, load_state_dict_from_url
from torch.utils._pytree import SUPPORTED_NODES, _get_node_type
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.data._utils.collate import collate, default_collate_fn_map

folder = sys.argv[2]
table = {torch.float8_e4m3fn: 1, torch.qint8: 2, torch.uint4: 3}
print(len(table), isinstance(torch.float8_e5m2, torch.dtype), torch.finfo(torch.float8_e4m3fn).max, torch.float8_e5m2)
try: torch.ones(2).to(torch.qint8)
except NotImplementedError as error: print(error)
try: torch.ops.load_library("extension.so")
except OSError: print("no library")
relu = torch.ops.aten.relu
print(relu(torch.tensor([-1.0, 2.0])).tolist(), relu.default is torch.ops.aten.relu.default)
print(hasattr(torch.ops.torchvision, "nms"), torch.backends.cpu.get_cpu_capability())
place, kind, blocking, form = torch._C._nn._parse_to("cpu", torch.float64, True)
print(place, kind, blocking, form, torch._C._nn._parse_to(torch.ones(1)))
Point = collections.namedtuple("Point", "x y")
print(_get_node_type(Point(1, 2)) in SUPPORTED_NODES, _get_node_type([]), _get_node_type(3))
print(is_traceable_wrapper_subclass(torch.ones(1)))
default_collate_fn_map.update({complex: lambda batch, *, collate_fn_map=None: sum(batch)})
print(torch.utils.data.default_collate([1j, 2j]), collate([(1,), (2,)], collate_fn_map=default_collate_fn_map))
os.environ["TORCH_HOME"] = folder
torch.save({"x": torch.arange(3)}, os.path.join(folder, "weights.pt"))
url = "file://" + os.path.join(folder, "weights.pt")
print(torch.hub.get_dir() == os.path.join(folder, "hub"), load_state_dict_from_url(url, progress=False)["x"].tolist())
print(os.path.exists(os.path.join(folder, "hub", "checkpoints", "weights.pt")))
"""


def test_names_packages_ask_for_are_answered(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, SRC, str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("Downloading")]
    assert lines == [
        "3 True 448.0 torch.float8_e5m2",
        "torch.qint8 has no arrays here; use torch.float16, torch.bfloat16 or torch.int8",
        "no library",
        "[0.0, 2.0] True",
        "False DEFAULT",
        "cpu torch.float64 True None (device(type='cpu'), torch.float32, False, None)",
        "True <class 'list'> <class 'int'>",
        "False",
        "3j [tensor([1, 2])]",
        "True [0, 1, 2]",
        "True",
    ], done.stderr


def test_contexts_of_packages_are_decorators_too():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pullback.compat; pullback.compat.install()\n"
        "from torch.utils._contextlib import _DecoratorContextManager\n"
        "class Loud(_DecoratorContextManager):\n"
        "    def __enter__(self): print('in')\n"
        "    def __exit__(self, *error): print('out')\n"
        "@Loud()\n"
        "def f(x): return x + 1\n"
        "print(f(1), f.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, SRC], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == ["in", "out", "2 f"], done.stderr


def test_the_size_of_a_storage_counts_its_bytes():
    small, large = (library.ones(count).untyped_storage() for count in (1, 1000))
    assert sys.getsizeof(large) - sys.getsizeof(small) == 4 * 999


HOMES = """
import sys; sys.path.insert(0, sys.argv[1])
import pickle
import pullback, pullback.compat
plain = pickle.dumps(pullback.nn.Parameter(pullback.ones(1)))
pullback.compat.install()
import torch
print(torch.Tensor, torch.nn.Parameter, type(torch.ones(1)).__module__.partition(".")[0])
again = pickle.dumps(torch.nn.Parameter(torch.ones(1)))
print(again == plain, type(pickle.loads(again)) is torch.nn.Parameter, pickle.loads(pickle.dumps(torch.Tensor)))
pullback.compat.uninstall()
print(pullback.Tensor, type(pickle.loads(again)) is pullback.nn.Parameter)
"""


def test_tensors_say_they_are_torchs_while_torch_is_answered_and_pickles_do_not_depend_on_it():
    done = subprocess.run([sys.executable, "-c", HOMES, SRC], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == [
        "<class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'> torch",
        "True True <class 'torch.Tensor'>",
        "<class 'pullback._tensor.Tensor'> True",
    ], done.stderr
