"""KeyboardInterrupt by a timer in steps of training: interrupts.py SEED HOW MANY."""

import gc
import random
import signal
import sys

import numpy as np

import pullback as torch
from pullback._modes import modes
from pullback.autograd.locations import here
from pullback.autograd.task import current_task
from pullback.batching.tensor import levels

moment, COUNT = random.Random(int(sys.argv[1])), int(sys.argv[2])
signal.signal(signal.SIGALRM, signal.default_int_handler)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.randn(32, 8)
big = torch.randn(200_000)
fa = torch.autograd.forward_ad
at_first = dict(modes.holders)  # the reference path, where all is to be run on it


@torch.no_grad()
def decorated():
    return net(x).sum().item()


def step():
    """One of many things a program does, over and over."""
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        net(x)
    with torch.inference_mode():
        net(x)
    with torch.set_grad_enabled(True), torch.enable_grad():
        big.exp().sum()
    with torch.autocast("cpu"):
        net(x)
    with fa.dual_level():
        fa.unpack_dual(fa.make_dual(x, torch.ones_like(x)).sin())
    torch.vmap(lambda row: row * 2)(x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        net(x).sum().backward()
    torch.func.grad(lambda row: row.square().sum())(x)
    decorated()


def wrong():
    """What is not as it was."""
    probe = torch.tensor([3.0], requires_grad=True)
    (probe * probe).backward()
    found = []
    for name, held in {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": not torch.is_inference_mode_enabled(),
        "autocast": not torch.is_autocast_enabled("cpu"),
        "rare modes": modes.holders == at_first and modes.active is bool(at_first) and modes.profiler is None,
        "forward mode": modes.dual_level == -1,
        "vmap": levels.get() == (),
        "task": current_task.get() is None,
        "place": here().scope is None and here().block is None,
        "gradient": probe.grad.item() == 6.0,
        "collector": gc.isenabled(),
        "NumPy's error state": np.geterr()["divide"] == "warn",
        "product": (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32,
        "pool": torch.ones(100_000).exp().sum().item() > 271_000,
    }.items():
        if not held:
            found.append(name)
    return found


step()
done = 0
while done < COUNT:
    try:
        signal.setitimer(signal.ITIMER_REAL, moment.uniform(1e-5, 8e-3))
        while True:
            step()
    except KeyboardInterrupt:
        done += 1
    if found := wrong():
        print(f"after {done} interrupts: {', '.join(found)}")
        sys.exit(1)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(done)
