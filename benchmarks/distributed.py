"""Collectives and steps of data-parallel training on two ranks, beside torch with gloo.

The ranks of both libraries live side by side and take turns: those that have none wait for a line on their input.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.table import Row

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"1 KB": 1 << 10, "64 KB": 1 << 16, "1 MB": 1 << 20, "10 MB": 10 << 20, "100 MB": 100 << 20}
REDUCE_BUDGET, STEP_BUDGET = 0.5, 0.8
STEPS = {"MLP": "mlp", "GPT": "gpt"}


def all_reduces(torch: ModuleType, size: int, later: bool) -> Callable[[], None]:
    """A sum over ranks, waited for at once."""
    x = torch.zeros(size // 4)
    dist = torch.distributed

    def call() -> None:
        work = dist.all_reduce(x, async_op=later)
        if later:
            work.wait()

    return call


def step(torch: ModuleType, name: str, alone: bool) -> Callable[[], None]:
    """A step of training, with gradients averaged over ranks unless this rank is alone."""
    steps = importlib.import_module("benchmarks.steps")
    nn, before = torch.nn, steps.training

    def training(torch: ModuleType, model: Any, loss: Callable[[], Any], optimizer: Any) -> Callable[[], None]:
        ddp = nn.parallel.DistributedDataParallel(model)
        inner = loss.__closure__  # type: ignore[attr-defined]
        for cell in inner or ():
            if cell.cell_contents is model:
                cell.cell_contents = ddp
        return before(torch, ddp, loss, optimizer)

    steps.training = before if alone else training
    try:
        return getattr(steps, STEPS[name])(torch)
    finally:
        steps.training = before


def rank(module: str) -> None:
    """One rank: for every line of input one measurement."""
    torch = importlib.import_module(module)
    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group("gloo")
    made: dict[str, Callable[[], None]] = {}
    for line in sys.stdin:
        kind, name, count = json.loads(line)
        key = f"{kind} {name}"
        if key not in made:
            torch.manual_seed(0)
            if kind in ("step", "alone"):
                made[key] = step(torch, name, kind == "alone")
            else:
                made[key] = all_reduces(torch, SIZES[name], kind == "async")
        call, best = made[key], float("inf")
        if kind == "alone" and dist.get_rank():
            count = 0  # the other has the machine for itself
        for _ in range(count):
            begun = perf_counter()
            call()
            best = min(best, perf_counter() - begun)
        print(best if count else 0.0, flush=True)
    dist.destroy_process_group()


class Ranks:
    """Two ranks of a library."""

    def __init__(self, module: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
        self.processes = []
        for number in range(2):
            own = {"RANK": number, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            own |= {"OMP_NUM_THREADS": 1, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.distributed", module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=os.environ | {name: str(value) for name, value in own.items()},
                    text=True,
                )
            )

    def measure(self, kind: str, name: str, count: int) -> float:
        """The least seconds of so many calls, on the slower rank."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps([kind, name, count]) + "\n")
            process.stdin.flush()
        found = []
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"rank {len(found)} ended")
            found.append(float(line))
        return max(found)

    def close(self) -> None:
        """End them."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Sums over ranks of several lengths, and steps of training."""
    rounds = 3 if quick else 10
    theirs, ours = Ranks(torch.__name__), Ranks(peer.__name__)

    def fill(row: Row, kind: str, name: str, count: int) -> Row:
        try:
            turns = [(theirs.measure(kind, name, count), ours.measure(kind, name, count)) for _ in range(rounds)]
        except Exception as error:
            row.error = str(error)
        else:
            row.torch, row.peer = (min(side) * 1e3 for side in zip(*turns, strict=True))
        return row

    try:
        for kind, words in (("sync", "all_reduce"), ("async", "all_reduce, async_op")):
            for name, size in SIZES.items():
                count = max(2, min(300, (20 << 20) // size))
                yield fill(Row("two ranks", f"{words}, {name}", "ms", budget=REDUCE_BUDGET), kind, name, count)
        for name in STEPS:
            yield fill(Row("two ranks", f"step of DDP, {name}", "ms", budget=STEP_BUDGET), "step", name, 20)
            yield fill(Row("two ranks", f"the same on one rank, {name}", "ms"), "alone", name, 20)
    finally:
        theirs.close()
        ours.close()


if __name__ == "__main__":
    rank(sys.argv[1])
