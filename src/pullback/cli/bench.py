"""`pullback bench`: measure this machine, beside torch where it is installed."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import timeit
from importlib.util import find_spec
from typing import Any

import pullback
from pullback.cli.output import BOLD, DIM, Mistake, paint, print_json, say, say_if_not_compiled

SETUP = """
F = torch.nn.functional
torch.manual_seed(0)
x, y = torch.ones(4), torch.full((4,), 0.5)
p, q = torch.ones(4, requires_grad=True), torch.full((4,), 0.5, requires_grad=True)
rows = torch.randn(64, 256)
square, big = torch.randn(128, 128), torch.randn(1000000)
def chain():
    z = p
    for _ in range(100):
        z = z * q
    z.sum().backward()
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
adam = torch.optim.Adam(net.parameters())
data, goal = torch.randn(4, 8), torch.randn(4, 1)
def step():
    adam.zero_grad()
    F.mse_loss(net(data), goal).backward()
    adam.step()
conv, images = torch.nn.Conv2d(8, 16, 3, padding=1), torch.randn(4, 8, 16, 16)
"""
WORKLOADS = {
    "x * y, 4 elements": "x * y",
    "x * y with grad": "p * q",
    "(x * y).sum().backward()": "(p * q).sum().backward()",
    "100 products and their backward": "chain()",
    "a step of Adam on an 8-16-1 network": "step()",
    "jacobian of tanh, 16 elements": "torch.autograd.functional.jacobian(torch.tanh, rows[0, :16])",
    "softmax of 64 rows of 256": "rows.softmax(1)",
    "conv2d of 4 images 8x16x16, and backward": "conv(images).sum().backward()",
    "matrix product 128 x 128": "square @ square",
    "exp of a million": "big.exp()",
}
EXAMPLES = """
examples:
  pullback bench             about ten seconds; times in microseconds, the least of several rounds
  pullback bench --quick     a few seconds
  pullback bench --alone     leave torch out, though it is installed
  pullback bench --json      for machines

Small tensors show what a call costs, large ones what the arithmetic costs. `make bench` in the repository measures
hundreds of ops.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--alone", action="store_true", help="do not measure torch")
    parser.add_argument("--json", action="store_true", help="the table as JSON")


def round_time(timer: timeit.Timer, seconds: float) -> tuple[int, float]:
    """How many calls fill about this time, and how long one takes."""
    number, took = 1, timer.timeit(1)
    while took < seconds / 2:
        number = max(2 * number, min(10 * number, int(number * seconds / max(took, 1e-7))))
        took = timer.timeit(number)
    return number, took / number


def measure(statement: str, names: list[dict[str, Any]], rounds: int, seconds: float) -> list[float]:
    """The least time of one call in each library, in microseconds; their rounds take turns."""
    timers = [timeit.Timer(statement, globals=name) for name in names]
    firsts = [round_time(timer, seconds) for timer in timers]
    best = [first for _, first in firsts]
    for _ in range(rounds):
        for i, timer in enumerate(timers):
            best[i] = min(best[i], timer.timeit(firsts[i][0]) / firsts[i][0])
    return [1e6 * time for time in best]


def libraries(alone: bool) -> list[Any]:
    """pullback, and torch if it can be had."""
    if alone or find_spec("torch") is None:
        return [pullback]
    name = "torch"
    try:
        peer = importlib.import_module(name)
    except Exception as error:
        raise Mistake(f"torch is installed but cannot be imported ({error}); try --alone") from None
    peer.set_num_threads(pullback.get_num_threads())
    return [pullback, peer]


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Measure and print."""
    measured = libraries(given.alone)
    say_if_not_compiled()
    names: list[dict[str, Any]] = [{"torch": library} for library in measured]
    for space in names:
        exec(compile(SETUP, "<pullback bench>", "exec"), space)
    peer = measured[1].__version__ if len(measured) > 1 else None
    if not given.json:
        print(
            f"pullback {pullback.__version__}" + (f" beside torch {peer}" if peer else "") + ", microseconds per call"
        )
        heading = f"{'':<42}{'pullback':>10}" + (f"{'torch':>10}{'ratio':>8}" if peer else "")
        print(paint(heading, BOLD))
    results: list[dict[str, Any]] = []
    for count, (title, statement) in enumerate(WORKLOADS.items(), 1):
        if sys.stderr.isatty():
            print(f"\r\033[K[{count}/{len(WORKLOADS)}] {title}", end="", file=sys.stderr, flush=True)
        times = measure(statement, names, 2 if given.quick else 8, 0.01 if given.quick else 0.04)
        results.append({"name": title, "pullback_us": times[0]} | ({"torch_us": times[1]} if peer else {}))
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        if not given.json:
            print(f"{title:<42}{times[0]:>10.2f}" + (f"{times[1]:>10.2f}{times[0] / times[1]:>8.2f}" if peer else ""))
    ratios = [result["pullback_us"] / result["torch_us"] for result in results if peer]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    if given.json:
        print_json({"pullback": pullback.__version__, "torch": peer, "rows": results, "geometric_mean": mean})
    elif mean:
        print(paint(f"{'geometric mean of the ratios; below 1 pullback is faster':<62}{mean:>8.2f}", DIM))
    else:
        say("install torch to see the same beside it")
    return 0
