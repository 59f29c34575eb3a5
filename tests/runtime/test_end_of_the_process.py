"""The interpreter empties modules before it has collected all objects: what native code reads is still there then.

What is freed is overwritten here by the C library's own allocator (glibc's MALLOC_PERTURB_), so that who looks at it
afterwards does not find what was there before: otherwise only few of many processes would die of it.
"""

import os
import subprocess
import sys

import pytest

from tests.distributed.processes import ROOT, run_ranks

BUILTINS = """
x = torch.arange(7.0, requires_grad=True)
for _ in range(100):
    (x * 2 + 1).sum().backward()
"""
CYCLE = """
class Circle:
    pass
circle = Circle()
circle.itself, circle.arrays = circle, [torch.ones(n) * 2 for n in (3, 300, 100_000)]
"""
LAST = """
sys.last = [torch.ones(3), torch.ones(300).numpy(), torch.ones(100_000) * 2]
"""
DEVICE = """
x = torch.ones(1000, device="cuda")
sys.last = [x * i for i in range(100)]
"""
CAPSULES = """
x = torch.ones(1000, device="cuda")
sys.last = x.__dlpack__(), torch.from_dlpack((x * 2).__dlpack__())
"""
COLLECTIVES = """
dist.init_process_group("gloo")
x = torch.ones(1000)
works = [dist.all_reduce(x * i, async_op=True) for i in range(6)]
for work in works:
    work.wait()
dist.destroy_process_group()
"""
NAMES = ["builtins", "cycle", "last", "device", "capsules"]


@pytest.mark.parametrize("byte", ["255", "165"])
@pytest.mark.parametrize("program", [BUILTINS, CYCLE, LAST, DEVICE, CAPSULES], ids=NAMES)
def test_what_dies_last_finds_what_native_code_reads(program, byte):
    environment = os.environ | {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": byte, "PYTHONPATH": str(ROOT / "src")}
    environment |= {"PULLBACK_CUDA": "emulate", "PULLBACK_OFTEN": "1"}
    command = [sys.executable, "-X", "faulthandler", "-c", "import sys, pullback as torch" + program]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_ranks_that_have_worked_in_the_background_end_in_peace():
    assert run_ranks(COLLECTIVES, PYTHONMALLOC="malloc", MALLOC_PERTURB_="255") == [{}, {}]
