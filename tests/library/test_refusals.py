"""What torch.library has and pullback has not says so; names of ops live beside the modules that declare ops."""

import subprocess
import sys

import pytest

import pullback as torch


def test_what_is_missing_says_what_to_use():
    library = torch.library
    lib = library.Library("pbrefused", "FRAGMENT")
    lib.define("op(Tensor x) -> Tensor")
    for action, text in (
        (lambda: library.triton_op("a::b", mutates_args=()), "use torch.library.custom_op"),
        (lambda: library.wrap_triton(None), "no Triton"),
        (lambda: library.register_autocast("a::b", "cpu", torch.bfloat16), "cast the inputs"),
        (lambda: library.Library("aten", "IMPL").impl("mul.Tensor", lambda x, y: x, "CPU"), "TorchDispatchMode"),
        (lambda: library.Library("_", "IMPL").fallback(lambda x: x, "CPU"), "TorchDispatchMode"),
        (lambda: lib.impl("op", lambda keys, x: x, "CPU", with_keyset=True), "dispatch keys"),
        (lambda: torch.ops.pbrefused.op.default.redispatch(None, torch.ones(1)), "call the op itself"),
        (lambda: torch.ops.aten._unique2(torch.ones(1)), "_unique2"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            action()


def test_namespaces_live_beside_the_modules_of_ops():
    assert torch.ops.shape.__name__ == "pullback.ops.shape"
    assert repr(torch.ops.some_library) == "<module 'torch.ops.some_library' from 'torch.ops'>"
    with pytest.raises(AttributeError):
        torch.ops.__no_such_name__


PROGRAM = """
import pullback.compat
pullback.compat.install()
import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.library import custom_op
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode
from torch._library.infer_schema import infer_schema

@custom_op("mine::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

print(torch.ops.mine.scale(torch.ones(2), 3.0).tolist(), isinstance(torch.ops.mine.scale.default, OpOverload))
print(isinstance(torch.ops.aten.add, OpOverloadPacket), torch.ops.aten.add.Tensor, torch.Tag.core)
print([n for n in torch.ops if n == "mine"] if hasattr(type(torch.ops), "__iter__") else "no list")
"""


def test_programs_written_for_torch_find_it_under_torchs_name():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert found.stdout.splitlines()[:2] == ["[3.0, 3.0] True", "True aten.add.Tensor Tag.core"], found.stderr
