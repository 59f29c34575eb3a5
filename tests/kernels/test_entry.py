"""The entry of a compiled kernel: what it refuses, and that nothing is touched then."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from pullback.kernels.compiled import room

pytestmark = pytest.mark.skipif(room("runtime.calls") is None, reason="kernels are not compiled here")


@pytest.fixture(scope="module")
def double():
    """out = 2 x for float32."""
    calls, target = room("runtime.calls"), room("compiler.target")
    width = target.lanes("float")

    def describe(code, x, out, n):
        type = f"<{width} x float>"
        code.vectors(code.begin, code.end, width, lambda i: code.store(code.load(x, i, type) * 2.0, out, i), 2)

    params = [calls.array("float32", "n"), calls.array("float32", "n", write=True), calls.integer("n")]
    return calls.kernel("test_double", params, describe)


def readonly(array):
    array.flags.writeable = False
    return array


def misaligned(count):
    return np.zeros(4 * count + 1, np.uint8)[1:].view(np.float32)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 1000, 100_000])
def test_a_kernel_takes_any_length(double, n):
    x = np.arange(n, dtype=np.float32)
    out = np.zeros_like(x)
    assert double(x, out, n, n, 1024) is True
    np.testing.assert_array_equal(out, x * 2)


@pytest.mark.parametrize(
    ("x", "out"),
    [
        (np.ones(8), np.zeros(8, np.float32)),
        (np.ones(16, np.float32)[::2], np.zeros(8, np.float32)),
        (np.ones(9, np.float32), np.zeros(8, np.float32)),
        (np.ones(8, np.float32), np.zeros(7, np.float32)),
        (np.ones(8, np.float32), readonly(np.zeros(8, np.float32))),
        (misaligned(8), np.zeros(8, np.float32)),
        (np.ones(8, ">f4"), np.zeros(8, np.float32)),
        ([1.0] * 8, np.zeros(8, np.float32)),
        (None, np.zeros(8, np.float32)),
    ],
    ids=["dtype", "strides", "long", "short", "read-only", "misaligned", "byte order", "list", "None"],
)
def test_an_array_that_does_not_fit_is_refused_untouched(double, x, out):
    before = np.array(out)
    assert double(x, out, 8, 8, 8) is False
    np.testing.assert_array_equal(out, before)


def test_a_call_with_the_wrong_number_of_arguments_is_refused(double):
    x = np.ones(4, np.float32)
    assert double() is False and double(x, x) is False and double(x, x, 4, 4, 4, 4) is False


def test_what_is_no_integer_raises(double):
    x = np.ones(4, np.float32)
    with pytest.raises(TypeError):
        double(x, x, "4", 4, 4)
    with pytest.raises(OverflowError):
        double(x, x, 2**70, 4, 4)
    assert double(x, x, 4, -1, 4) is False and double(x, x, 4, 4, 0) is False


def test_several_threads_may_call_at_once(double):
    wrong = []

    def work(seed):
        x = np.full(200_000, seed, np.float32)
        out = np.zeros_like(x)
        for _ in range(30):
            if not double(x, out, x.size, x.size, 1024) or (out != 2 * seed).any():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes_in_parallel_too():
    program = (
        "import os, numpy as np, pullback as torch\n"
        "x = torch.randn(512, 1000); expected = torch.softmax(x, 1).numpy()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    same = np.array_equal(torch.softmax(x, 1).numpy(), expected)\n"
        "    os._exit(0 if same else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=600)


IDLE = """
import time
from pathlib import Path
import pullback as torch

def threads():
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}

def facts(task):
    lines = Path(f"/proc/self/task/{task}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

before = threads()
torch.set_num_threads(2)
torch.softmax(torch.randn(512, 1000), 1)
calling = threads() - before
torch.softmax(torch.randn(512, 1000), 1)
time.sleep(0.5)
workers = calling & threads()  # those that only made something have ended
while not all(facts(worker)["State"].startswith("S") for worker in workers):
    time.sleep(0.05)
slept = {worker: facts(worker)["voluntary_ctxt_switches"] for worker in workers}
time.sleep(0.5)
assert slept == {worker: facts(worker)["voluntary_ctxt_switches"] for worker in workers}
assert workers, "no worker was started"
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="no list of threads on this system")
def test_idle_workers_sleep_until_they_are_called():
    """They neither spin for ever (then the loop above would not end) nor look around from time to time."""
    subprocess.run([sys.executable, "-c", IDLE], check=True, timeout=600)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_do_not_change_from_call_to_call(threads):
    import pullback as torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x, weight = torch.randn(300, 700), torch.ones(700)
        first = torch.nn.functional.layer_norm(x, (700,), weight).numpy().copy()
        for _ in range(5):
            np.testing.assert_array_equal(torch.nn.functional.layer_norm(x, (700,), weight).numpy(), first)
    finally:
        torch.set_num_threads(before)
