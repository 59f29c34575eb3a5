"""Ranks that die, stop or run out of memory: noticed by all others, named, and trained without."""
# ruff: noqa: E501

import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.distributed.processes import finish, start
from tests.soak.parts import lose_jobs, lose_ranks

LOSING = """
import datetime
limit = datetime.timedelta(seconds=float(os.environ["LIMIT"]))
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=40))
n, x = WORLD, torch.ones(1000)
def outs():
    return [torch.ones(1000) for _ in range(n)]
def together(group):
    with dist._coalescing_manager(group=group, async_ops=True) as manager:
        dist.all_reduce(x.clone(), group=group)
        dist.all_reduce(x.clone(), group=group)
    manager.wait()
CALLS = {
    "all_reduce": lambda group: dist.all_reduce(x.clone(), group=group),
    "later": lambda group: dist.all_reduce(x.clone(), group=group, async_op=True).wait(),
    "all_gather": lambda group: dist.all_gather(outs(), x, group=group),
    "reduce_scatter": lambda group: dist.reduce_scatter(x.clone(), outs(), group=group),
    "all_to_all": lambda group: dist.all_to_all(outs(), outs(), group=group),
    "barrier": lambda group: dist.barrier(group=group),
    "broadcast": lambda group: dist.broadcast(x.clone(), 2, group=group),
    "scatter": lambda group: dist.scatter(x.clone(), outs() if RANK == 2 else None, 2, group=group),
    "reduce": lambda group: dist.reduce(x.clone(), 0, group=group),
    "gather": lambda group: dist.gather(x, outs() if RANK == 0 else None, 0, group=group),
    "coalesced": lambda group: together(group),
    "monitored": lambda group: dist.monitored_barrier(group=group),
    "objects": lambda group: dist.all_gather_object([None] * n, RANK, group=group),
    "recv": lambda group: dist.send(x, RANK - 2, group=group) if RANK == 2 else RANK == 0 and dist.recv(x.clone(), 2, group=group),
}
chosen = os.environ["CALLS"].split() or list(CALLS)
groups = {name: dist.new_group(timeout=limit) for name in chosen}
long = {name: datetime.timedelta(seconds=40) for name in chosen}
for name in chosen:
    groups[name].set_timeout(long[name])
    CALLS[name](groups[name])
    groups[name].set_timeout(limit)
dist.barrier()
open(os.environ["RECORDS"] + ".ready", "w").close()
if RANK == 2:
    if os.environ["HOW"] == "raise":
        raise MemoryError("rank 2 has no memory")
    time.sleep(100)
while not os.path.exists(os.environ["RECORDS"] + ".go"):
    time.sleep(0.01)
for name in chosen:
    record(name, lambda: CALLS[name](groups[name]))
json.dump(records, open(os.environ["RECORDS"], "w"))
while not os.path.exists(os.environ["RECORDS"] + ".end"):
    time.sleep(0.01)
os._exit(0)
"""


def lose(transport, how, limit, calls=""):
    """What the other two of three ranks record of calls in which rank 2 is missing."""
    with tempfile.TemporaryDirectory() as folder:
        started = start(LOSING, 3, "pullback", folder, PULLBACK_TRANSPORT=transport, HOW=how, LIMIT=limit, CALLS=calls)
        files = [Path(folder, f"{rank}.json") for rank in range(3)]

        def until(seen):
            end = time.monotonic() + 60
            while not seen():
                said = [Path(folder, f"{rank}.txt").read_text() for rank in range(3)]
                assert time.monotonic() < end, said
                time.sleep(0.02)

        try:
            until(lambda: all(Path(f"{file}.ready").exists() for file in files))
            if how != "raise":
                os.kill(started[2].pid, getattr(signal, how))
            if how != "SIGSTOP":
                started[2].wait(30)
            for file in files[:2]:
                Path(f"{file}.go").touch()
            until(lambda: all(file.exists() and file.read_text().endswith("}") for file in files[:2]))
            for file in files[:2]:
                Path(f"{file}.end").touch()
            assert finish(started[:2], 30) == [0, 0]
        finally:
            finish(started, 0)
        return [json.loads(file.read_text()) for file in files[:2]]


@pytest.mark.parametrize(("transport", "how"), [("", "SIGKILL"), ("sockets", "raise")])
def test_every_call_names_the_rank_that_has_ended(transport, how):
    first, second = lose(transport, how, "30")
    assert second.pop("recv") is False
    assert "[Rank 0]: Rank 2 failed to pass monitoredBarrier" in first.pop("monitored")
    assert "Rank 1 successfully reached monitoredBarrier, but" in second.pop("monitored")
    if transport == "sockets":  # rank 1 has sent its part to rank 0, and is done
        assert second.pop("reduce") is None and second.pop("gather") is None
    for records in (first, second):
        assert [f"{name}: {said}" for name, said in records.items() if "Lost rank 2" not in str(said)] == []
    assert len(first) == 13


@pytest.mark.parametrize("transport", ["", "sockets"])
def test_a_rank_that_has_stopped_is_named_when_the_time_is_over(transport):
    for records in lose(transport, "SIGSTOP", "0.5", "all_reduce barrier"):
        for name, said in records.items():
            assert said.startswith("DistBackendError: Timed out waiting"), said
            _, _, names = said.partition(f"for {name} to complete: no answer from ")
            assert "rank 2" in names.split(", "), said  # a machine that is busy may make another late, too


def test_the_others_go_on_without_lost_ranks_and_every_step_is_right():
    lost, problem = lose_ranks(random.Random(0), size=3, losses=1, transport="", stop=0)
    assert problem == "" and lost == 1


def test_a_job_that_lost_a_rank_goes_on_from_its_last_checkpoint_and_every_step_is_right():
    lost, problem = lose_jobs(random.Random(0), size=2, losses=1, transport="", how="fully_shard", stop=0)
    assert problem == "" and lost == 1
