"""Threads that make first calls together, and forks while other threads import, compile and compute."""

import textwrap

import pytest

WARM_UP = """
import random, sys, threading, traceback
sys.setswitchinterval(1e-6)
import pullback as torch

NAMES = ("exp log tanh sin cos sqrt sigmoid abs neg square relu erf sum mean prod norm std var sort max amax "
         "softplus").split()
errors, barrier = [], threading.Barrier(8)

def work(nr):
    try:
        names = NAMES[:]
        random.Random(nr).shuffle(names)
        x, large = torch.ones(4, requires_grad=True), torch.ones(5000 + nr)
        barrier.wait()
        for name in names:
            call = getattr(torch, name, None) or getattr(torch.nn.functional, name)
            for _ in range(3):
                out = call(x)
                (out[0] if isinstance(out, tuple) else out).sum().backward()
            call(large)
        layer = torch.nn.Linear(3, 3)
        layer(torch.ones(2, 3)).sum().backward()
        torch.optim.Adam(layer.parameters()).step()
        torch.nn.functional.conv2d(torch.ones(1, 1, 8, 8), torch.ones(1, 1, 3, 3))
        torch.fft.fft(torch.ones(4)), torch.linalg.inv(torch.eye(3))
        torch.distributions.Normal(0.0, 1.0).sample()
        torch.vmap(lambda v: v.sin() * 2)(torch.ones(3, 2))
        with torch.autocast("cpu"):
            assert layer(torch.ones(2, 3)).dtype is torch.bfloat16
        with torch.inference_mode():
            assert (x * 2).is_inference()
    except BaseException:
        errors.append(traceback.format_exc())

threads = [threading.Thread(target=work, args=(nr,)) for nr in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from pullback._modes import modes
print(errors, modes.active)
"""

FORKS = """
import os, random, signal, sys, threading, traceback
sys.setswitchinterval(1e-5)
import pullback as torch

MODULES = "nn optim distributions linalg fft func amp utils.data models special testing profiler".split()
stop, errors, moment = threading.Event(), [], random.Random(SEED)

def loads():
    try:
        for name in moment.sample(MODULES, len(MODULES)):
            if moment.random() < 0.5:
                __import__("pullback." + name)
            else:
                value = torch
                for part in name.split("."):
                    value = getattr(value, part)
    except BaseException:
        errors.append(traceback.format_exc())

def computes():
    try:
        while not stop.is_set():
            for name in "exp log tanh sin cos sqrt sigmoid abs neg square relu erf sum mean prod".split():
                call = getattr(torch, name)
                call(torch.rand(1000))
                x = torch.ones(50_000, requires_grad=True)
                call(x).sum().backward()
    except BaseException:
        errors.append(traceback.format_exc())

def child():
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    net(torch.rand(300, 64)).sum().backward()
    torch.optim.SGD(net.parameters(), lr=0.1).step()
    x = torch.ones(500_000, requires_grad=True)
    (x.exp() + x.tanh()).sum().backward()
    assert abs(x.grad[0].item() - 3.13825) < 1e-3, x.grad[0]
    torch.distributions.Normal(0.0, 1.0).sample()
    torch.linalg.inv(torch.eye(4))

threads = [threading.Thread(target=target) for target in (loads, computes)]
for thread in threads: thread.start()
children = []
for _ in range(COUNT):
    for _ in range(moment.randrange(2000)):
        pass
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
stop.set()
for thread in threads: thread.join()
print(set(codes), errors)
"""


@pytest.mark.parametrize("often", ["2", "50"])
def test_threads_that_warm_up_together_all_succeed(run_python, monkeypatch, often):
    program = f"import os; os.environ['PULLBACK_OFTEN'] = '{often}'\n" + WARM_UP
    assert run_python(program).strip() == "[] False"


@pytest.mark.parametrize("seed", range(3))
def test_a_child_forked_while_others_import_and_compile_can_compute(run_python, seed):
    assert run_python(FORKS.replace("SEED", str(seed)).replace("COUNT", "4")).strip() == "{0} []"


def test_workers_of_a_loader_start_while_another_thread_compiles(run_python):
    program = """
    import threading
    import pullback as torch
    from pullback.utils.data import DataLoader, TensorDataset

    stop = threading.Event()
    def computes():
        n = 5000
        while not stop.is_set():
            n += 1
            torch.ones(n).exp().sum(), torch.rand(n)
    thread = threading.Thread(target=computes)
    thread.start()
    data = TensorDataset(torch.arange(64.0))
    for _ in range(3):
        loader = DataLoader(data, 8, num_workers=2, multiprocessing_context="fork", collate_fn=lambda rows: sum(
            (row[0].expand(5000).exp().log().mean() for row in rows), torch.zeros(())))
        assert abs(sum(batch.item() for batch in loader) - 2016) < 1e-1
    stop.set()
    thread.join()
    print("done")
    """
    assert run_python(textwrap.dedent(program)).strip() == "done"


def test_no_module_waits_for_the_lock_of_first_uses_while_it_is_imported(run_python):
    """Else two threads could wait for each other: one for the module, one for the lock."""
    program = """
    import importlib, pkgutil
    from pullback import _building
    taken = []

    class Lock:
        def __enter__(self):
            taken.append(name)
        def __exit__(self, *error):
            pass
        def _is_owned(self):
            return False

    import pullback
    jit = {"cache", "engine", "target", "threads"}
    names = [m.name for m in pkgutil.walk_packages(pullback.__path__, "pullback.", lambda name: None)]
    for name in names:
        if name.startswith("pullback.kernels.jit.") or name.endswith("__main__"):
            continue  # those are imported with the lock
        _building.building, kept = Lock(), _building.building
        try:
            importlib.import_module(name)
        finally:
            _building.building = kept
    print(taken)
    """
    assert run_python(textwrap.dedent(program)).strip() == "[]"


SEEDS = "import pullback as torch; print(torch.initial_seed(), torch.rand(1).item(), torch.Generator().initial_seed())"


def test_every_process_draws_other_numbers_unless_it_is_seeded(run_python):
    first, second = (run_python(SEEDS).split() for _ in range(2))
    assert first[0] != second[0] and first[1] != second[1]
    assert first[2] == second[2] == "67280421310721"


def test_a_forked_child_begins_with_the_numbers_its_parent_would_draw(run_python):
    program = """
    import os
    import pullback as torch
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, str(torch.rand(1).item()).encode())
        os._exit(0)
    os.wait()
    print(os.read(out, 100).decode() == str(torch.rand(1).item()))
    """
    assert run_python(textwrap.dedent(program)).strip() == "True"
