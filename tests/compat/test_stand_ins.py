"""Stand-ins for what is missing: they can be put anywhere while a module is imported, and raise when they are used."""

import subprocess
import sys
from pathlib import Path

SRC = str(Path(__file__).parents[2] / "src")

PACKAGE = """
import abc, dataclasses, functools, typing
import torch
from torch.distributed.rpc import RRef


from torch.fx.experimental.symbolic_shapes import free_symbols

@torch.onnx.symbolic_helper.parse_args("v", "i")
def decorated_with_arguments(x): return x

@RRef.hook
def decorated(x): return x

@torch.onnx.something.register
class Decorated: pass

class Derived(RRef): pass
class Both(torch.nn.Module, RRef): pass
class Abstract(RRef, abc.ABC):
    @abc.abstractmethod
    def f(self): ...
class Generic(torch.futures.Nothing[torch.Tensor]): pass

def default(x: torch.onnx.Kind = torch.onnx.Kind.FIRST, y: "RRef | None" = None) -> RRef | None: return x
Optional = typing.Optional[RRef]
Union = int | RRef | None
@dataclasses.dataclass
class Data:
    kind: RRef = torch.onnx.Kind
@functools.singledispatch
def dispatched(x): return "plain"
@dispatched.register(RRef)
def _(x): return "sharded"
TABLE = {torch.onnx.Kind: 1, RRef: 2, torch.quint4x2: 3}
LIBRARY = torch.onnx.Library("name", "DEF")
LIBRARY.define("f(Tensor x) -> Tensor")
torch._inductor.config.some_setting = True
with torch.onnx.some_context():
    INSIDE = 1
try:
    torch.onnx.probe()
    PROBED = True
except NotImplementedError:
    PROBED = False
NEWER = torch.onnx.version() >= (2, 1)
"""
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import pullback.compat
pullback.compat.install()
import copy, inspect, pickle, typing
import package
import torch

def message(use):
    try:
        use()
    except NotImplementedError as error:
        return str(error).partition(" is not available in pullback")[0]
    return "no error"

print(message(lambda: package.decorated_with_arguments(1)), message(lambda: package.decorated(1)))
print(message(package.Decorated), message(package.Derived), message(package.Both), message(package.Generic))
print(isinstance(1, package.RRef), isinstance(1, package.Union), isinstance("", package.Union))
print(package.dispatched(1), len(package.TABLE), package.Data().kind is torch.onnx.Kind, package.PROBED, package.NEWER)
print(message(lambda: package.LIBRARY.impl("f", 1)), message(lambda: [*torch.onnx.Kind, torch.onnx.Kind + 1]))
print(typing.get_type_hints(package.default)["return"] == package.RRef | None, package.decorated.__name__)
print(pickle.loads(pickle.dumps(package.RRef)) is package.RRef, copy.deepcopy(package.RRef) is package.RRef)
try: raise ValueError("passes by")
except torch.distributed.DistBackendError: print("wrong")
except ValueError: print("right")
"""


def run(program, folder):
    done = subprocess.run([sys.executable, "-c", program, SRC], capture_output=True, text=True, cwd=folder, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_module_that_uses_them_in_every_way_is_imported_and_its_uses_raise(tmp_path):
    (tmp_path / "package.py").write_text(PACKAGE)
    fsdp = "torch.distributed.rpc.RRef"
    assert run(PROGRAM, tmp_path) == [
        f"torch.onnx.symbolic_helper.parse_args(...) {fsdp}.hook",
        f"torch.onnx.something.register {fsdp} {fsdp} torch.futures.Nothing",
        "False True False",
        "plain 3 True False False",
        "torch.onnx.Library(...).impl torch.onnx.Kind",
        "True decorated",
        "True True",
        "right",
    ]


def test_a_module_torch_has_not_is_not_found(tmp_path):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import pullback.compat; pullback.compat.install()\n"
        "import torch\n"
        "try: from torch._six import string_classes\n"
        "except ImportError as error: print(error)\n"
        "print(hasattr(torch, 'no_such_name'), hasattr(torch.nn.functional, '_no_such_name'))\n"
    )
    assert run(program, tmp_path) == ["No module named 'torch._six'", "False False"]


MODULES = """
import sys; sys.path.insert(0, sys.argv[1])
import pullback.compat; pullback.compat.install()
import inspect, pickle, types
import torch, pullback
print("Linear" in vars(torch.nn), "relu" in torch.__dict__, "Normal" in torch.distributions.__dict__)
print(vars(torch.nn)["Linear"] is pullback.nn.Linear, isinstance(vars(torch)["nn"], types.ModuleType))
kinds = [one for one in vars(torch.distributions).values() if isinstance(one, type)]
print(torch.distributions.Beta in kinds and all(not one.__name__.startswith("_pullback") for one in kinds))
print("Linear" in dir(torch.nn), not [name for name in dir(torch) if name.startswith("_pullback")])
print("class Linear" in inspect.getsource(torch.nn.Linear), len(inspect.getsource(torch.nn)) > 0)
for function in (torch.nn.functional.relu, torch.add, torch.nn.init.zeros_, torch.nn.Linear, torch.sum):
    assert pickle.loads(pickle.dumps(function)) is function
from torch.optim.adam import Adam
from torch.distributions.beta import Beta
from torch.nn.modules.linear import Linear
print(Adam is torch.optim.Adam, Beta is torch.distributions.Beta, Linear is torch.nn.Linear)
before = torch.nn.functional.relu
torch.nn.functional.relu = len
print(vars(torch.nn.functional)["relu"], pullback.nn.functional.relu)
del torch.nn.functional.relu
print(torch.nn.functional.relu is before)
"""


def test_modules_under_torchs_name_are_modules(tmp_path):
    assert run(MODULES, tmp_path) == [
        "True True True",
        "True True",
        "True",
        "True True",
        "True True",
        "True True True",
        "<built-in function len> <built-in function len>",
        "True",
    ]
