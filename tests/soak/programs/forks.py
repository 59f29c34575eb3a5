"""Children forked while other threads import, compile and compute: forks.py SEED [HOW MANY]."""

import multiprocessing
import os
import random
import sys
import threading
import traceback

sys.setswitchinterval(1e-5)
import pullback as torch

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 8
MODULES = ["nn", "optim", "distributions", "linalg", "fft", "func", "amp", "utils.data", "models", "special"]
MODULES += ["testing", "profiler"]
NAMES = ["exp", "log", "tanh", "sin", "cos", "sqrt", "sigmoid", "abs", "neg", "square", "relu", "erf", "sum", "mean"]
moment, stop, errors = random.Random(int(sys.argv[1])), threading.Event(), []
order, ways = moment.sample(MODULES, len(MODULES)), [moment.random() < 0.5 for _ in MODULES]


def loads():
    try:
        for name, plain in zip(order, ways, strict=True):
            if plain:
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
            for name in NAMES:
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


def forked():
    """A child by os.fork."""
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
    return lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def process():
    """One by multiprocessing."""
    made = multiprocessing.get_context("fork").Process(target=child)
    made.start()
    return lambda: (made.join(), made.exitcode)[1]


def loader():
    """Workers of a DataLoader."""
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    loaded = torch.utils.data.DataLoader(data, 4, num_workers=2, multiprocessing_context="fork")
    total = sum(batch[0].exp().log().sum().item() for batch in loaded)
    return lambda: int(abs(total - 496) > 0.1)


threads = [threading.Thread(target=target) for target in (loads, computes)]
for thread in threads:
    thread.start()
children = []
for _ in range(COUNT):
    for _ in range(moment.randrange(20_000)):
        pass
    children.append(moment.choice((forked, forked, process, loader))())
codes = [wait() for wait in children]
stop.set()
for thread in threads:
    thread.join()
if set(codes) != {0}:
    errors.append(f"children ended with {codes}")
print("\n".join(errors))
print(COUNT)
sys.exit(bool(errors))
