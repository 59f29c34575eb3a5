"""Trains on several ranks under `pullback launch --elastic` and checks, at the end, that every step was right.

Each step is computed again by one process alone, with as many ranks as took part in it. Prints `right` on every rank.
"""

import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path

import pullback as torch
from pullback import nn
from pullback.distributed import elastic

folder, steps, pause, timeout = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
dist = torch.distributed
torch.set_num_threads(1)


def fail(number: int, frame: object) -> None:
    raise MemoryError("out of memory, as asked for")


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1)).double()
    return net, torch.optim.Adam(net.parameters(), lr=0.01)


def batch(step: int, rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(6, 4, generator=generator, dtype=torch.float64)


class History:
    """With how many ranks each step was done."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def state_dict(self) -> dict[str, list[int]]:
        return {"sizes": list(self.sizes)}

    def load_state_dict(self, state: dict[str, list[int]]) -> None:
        self.sizes = state["sizes"]


signal.signal(signal.SIGUSR1, fail)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))  # a busy machine starts ranks one by one
first, (net, optimizer), history = dist.get_rank(), made(), History()
ddp = nn.parallel.DistributedDataParallel(net)


def step(number: int) -> None:
    optimizer.zero_grad()
    size = dist.get_world_size()
    ddp(batch(number, dist.get_rank())).square().mean().backward()
    optimizer.step()
    history.sizes.append(size)
    time.sleep(pause)


dist.barrier()
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=timeout))
(folder / f"{first}.part").write_text(json.dumps(os.getpid()))
(folder / f"{first}.part").rename(folder / f"{first}.pid")
elastic.run(step, steps, {"model": ddp, "optimizer": optimizer, "history": history})
alone, its = made()
for number, size in enumerate(history.sizes):
    its.zero_grad()
    (sum(alone(batch(number, rank)).square().mean() for rank in range(size)) / size).backward()
    its.step()
worst = max(float((a - b).abs().max()) for a, b in zip(alone.parameters(), net.parameters()))
assert len(history.sizes) == steps and worst < 1e-8, (worst, history.sizes)
assert history.sizes == sorted(history.sizes, reverse=True), history.sizes
(folder / f"{first}.right").write_text(json.dumps(history.sizes))
