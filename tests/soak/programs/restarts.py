"""Trains on several ranks under `pullback launch --restarts`, from the last checkpoint on, and checks every step.

Gradients are averaged by DistributedDataParallel, or by fully_shard if the last argument says so. At the end one
process computes all steps alone: whatever was lost in between was done again, and nothing twice.
"""

import datetime
import os
import signal
import sys
import time
from pathlib import Path

import pullback as torch
import pullback.distributed.checkpoint as dcp
from pullback import nn
from pullback.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from pullback.distributed.fsdp import fully_shard
from pullback.distributed.tensor import DTensor

folder, steps, pause, timeout = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
in_parts, every = sys.argv[5] == "fully_shard", 5
dist = torch.distributed
torch.set_num_threads(1)


def fail(number: int, frame: object) -> None:
    raise MemoryError("out of memory, as asked for")


def made() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()


def batch(step: int, rank: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(6, 4, generator=generator, dtype=torch.float64)


signal.signal(signal.SIGUSR1, fail)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))  # a busy machine starts ranks one by one
rank, size, attempt = dist.get_rank(), dist.get_world_size(), os.environ["TORCHELASTIC_RESTART_COUNT"]
net = fully_shard(made()) if in_parts else nn.parallel.DistributedDataParallel(made())
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


def state_at(step: int) -> dict[str, object]:
    weights, moments = get_state_dict(net, optimizer)
    return {"model": weights, "optimizer": moments, "step": step}


first = 0
if (folder / "checkpoint" / ".metadata").exists():
    state = state_at(0)
    dcp.load(state, checkpoint_id=folder / "checkpoint")
    set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    first = int(state["step"])
dist.barrier()
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=timeout))
(folder / f"{attempt}-{rank}.part").write_text(str(os.getpid()))
(folder / f"{attempt}-{rank}.part").rename(folder / f"{attempt}-{rank}.pid")
for step in range(first, steps):
    optimizer.zero_grad()
    net(batch(step, rank)).square().mean().backward()
    optimizer.step()
    if (step + 1) % every == 0:
        dcp.save(state_at(step + 1), checkpoint_id=folder / "checkpoint")
    time.sleep(pause)
alone = made()
its = torch.optim.Adam(alone.parameters(), lr=0.01)
for step in range(steps):
    its.zero_grad()
    (sum(alone(batch(step, one)).square().mean() for one in range(size)) / size).backward()
    its.step()
found = [(param.full_tensor() if isinstance(param, DTensor) else param).detach() for param in net.parameters()]
worst = max(float((a.detach() - b).abs().max()) for a, b in zip(alone.parameters(), found, strict=True))
assert worst < 1e-8, worst
(folder / f"{rank}.right").write_text(attempt)
