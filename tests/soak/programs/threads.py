"""Threads that make first calls of many ops together, then each trains a network of its own: threads.py SEED."""

import random
import sys
import threading
import traceback

sys.setswitchinterval(1e-6)
import pullback as torch
from pullback._modes import modes

SEED = int(sys.argv[1])
COUNT = 8
NAMES = ["exp", "log", "tanh", "sin", "cos", "sqrt", "sigmoid", "abs", "neg", "square", "relu", "erf", "sum", "mean"]
NAMES += ["prod", "norm", "std", "var", "sort", "max", "amax", "softplus", "cumsum", "logsumexp", "gelu"]
ARGUMENTS = {"cumsum": (0,), "logsumexp": (0,)}
errors = []
barrier = threading.Barrier(COUNT)


def warm_up(nr):
    names = random.Random(SEED + nr).sample(NAMES, len(NAMES))
    x, large = torch.ones(4, requires_grad=True), torch.ones(5000 + nr)
    for name in names:
        call = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        for _ in range(3):
            out = call(x, *ARGUMENTS.get(name, ()))
            (out[0] if isinstance(out, tuple) else out).sum().backward()
        call(large, *ARGUMENTS.get(name, ()))
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
    with torch.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def trained(nr):
    """The weights of a little network after some steps: the same whoever runs beside."""
    drawn = torch.Generator().manual_seed(nr)
    w = torch.randn(20, 20, generator=drawn).requires_grad_()
    x = torch.randn(300, 20, generator=drawn)
    for _ in range(20):
        loss = ((x @ w).tanh() - x).square().mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    return w.detach()


made = {}


def work(nr):
    try:
        barrier.wait()
        warm_up(nr)
        made[nr] = trained(nr)
    except BaseException:
        errors.append(traceback.format_exc())


at_first = dict(modes.holders)
threads = [threading.Thread(target=work, args=(nr,)) for nr in range(COUNT)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for nr in made:
    if not torch.equal(made[nr], trained(nr)):
        errors.append(f"thread {nr} trained otherwise than alone")
if modes.holders != at_first or modes.active is not bool(at_first):
    errors.append("a mode was left on")
print("\n".join(errors))
print(COUNT * len(NAMES))
sys.exit(bool(errors))
