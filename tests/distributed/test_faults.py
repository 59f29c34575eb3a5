"""Ranks that die, stop or run out of memory: noticed by all others, named, and trained without."""

import json
import os
import random
import re
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.distributed.processes import finish, start
from tests.soak.parts import lose_jobs, lose_ranks

LOSING = """
import datetime, threading
from pullback.distributed import process_group
seconds = lambda count: datetime.timedelta(seconds=count)
dist.init_process_group("gloo", timeout=seconds(300))
VICTIM, HOW, INSIDE = int(os.environ["VICTIM"]), os.environ["HOW"], bool(os.environ["INSIDE"])
n, first = WORLD, min({0, 1, 2} - {VICTIM})
x = torch.ones(1_000_000)  # longer than what fits between two ranks
part = x if VICTIM else x[:10].clone()  # with the store of rank 0 gone, who sends to another that gives up waits on
def outs():
    return [torch.ones_like(x) for _ in range(n)]
def parts():
    return [torch.ones_like(part) for _ in range(n)]
def together(group):
    with dist._coalescing_manager(group=group, async_ops=True) as manager:
        dist.all_reduce(x.clone(), group=group)
        dist.all_reduce(x.clone(), group=group)
    manager.wait()
def batch(group):
    pairs = {VICTIM: (dist.isend, first), first: (dist.irecv, VICTIM)}
    if RANK in pairs:
        call, peer = pairs[RANK]
        for work in dist.batch_isend_irecv([dist.P2POp(call, x.clone(), peer, group)]):
            work.wait()
def to_victim(group):
    if RANK == first:
        for _ in range(20):  # more than a connection holds
            dist.send(x, VICTIM, group=group)
    elif RANK == VICTIM:
        for _ in range(20):
            dist.recv(x.clone(), first, group=group)
def from_victim(group, call=dist.recv):
    if RANK == VICTIM:
        dist.send(x, first, group=group)
    elif RANK == first:
        call(x.clone(), VICTIM, group=group)
CALLS = {
    "all_reduce": lambda group: dist.all_reduce(x.clone(), group=group),
    "later": lambda group: dist.all_reduce(x.clone(), group=group, async_op=True).wait(),
    "sparse": lambda group: dist.all_reduce(torch.eye(50).to_sparse(), group=group),
    "all_gather": lambda group: dist.all_gather(outs(), x, group=group),
    "all_gather_into": lambda group: dist.all_gather_into_tensor(torch.cat(outs()), x, group=group),
    "reduce_scatter": lambda group: dist.reduce_scatter(x.clone(), outs(), group=group),
    "reduce_scatter_tensor": lambda group: dist.reduce_scatter_tensor(x.clone(), torch.cat(outs()), group=group),
    "all_to_all": lambda group: dist.all_to_all(outs(), outs(), group=group),
    "all_to_all_single": lambda group: dist.all_to_all_single(torch.cat(outs()), torch.cat(outs()), group=group),
    "barrier": lambda group: dist.barrier(group=group),
    "broadcast": lambda group: dist.broadcast(x.clone(), VICTIM, group=group),
    "scatter": lambda group: dist.scatter(x.clone(), outs() if RANK == VICTIM else None, VICTIM, group=group),
    "reduce": lambda group: dist.reduce(part.clone(), first, group=group),
    "gather": lambda group: dist.gather(part, parts() if RANK == first else None, first, group=group),
    "coalesced": together,
    "monitored": lambda group: dist.monitored_barrier(group=group),
    "all_gather_object": lambda group: dist.all_gather_object([None] * n, RANK, group=group),
    "broadcast_object_list": lambda group: dist.broadcast_object_list([RANK], VICTIM, group=group),
    "scatter_object_list": lambda group: dist.scatter_object_list([None], list(range(n)), VICTIM, group=group),
    "send": to_victim,
    "recv": from_victim,
    "irecv": lambda group: from_victim(group, lambda *given, **group: dist.irecv(*given, **group).wait()),
    "batch": batch,
}
groups = {name: dist.new_group(timeout=seconds(300)) for name in CALLS}
for name, call in CALLS.items():
    call(groups[name])
dist.barrier()
for group in groups.values():
    group.set_timeout(seconds(float(os.environ["LIMIT"])))
def out_of_memory(*given, **out):
    raise MemoryError(f"rank {RANK} has no memory")
def alone(name):  # each call has a group and a thread of its own
    for _ in range(1 if RANK == VICTIM else 2):  # a rank that is lost inside may have done its part
        record(name, lambda: CALLS[name](groups[name]))
        if records[name] is not None:
            return
threads = [threading.Thread(target=alone, args=(name,), daemon=True) for name in CALLS]
if RANK == VICTIM:
    if INSIDE:
        for group in groups.values():
            group.set_timeout(seconds(300))
        for thread in threads:
            thread.start()
    open(os.environ["RECORDS"] + ".ready", "w").close()
    if HOW == "MemoryError":  # in the middle of a sum that all others are in
        process_group.combiner = lambda *given: out_of_memory
        for group in groups.values():
            group.set_timeout(seconds(300))
        dist.all_reduce(x.clone(), op=dist.ReduceOp.MAX)
    if HOW == "exception":
        raise ValueError(f"rank {RANK} gives up")
    time.sleep(1000)
open(os.environ["RECORDS"] + ".ready", "w").close()
while not os.path.exists(os.environ["RECORDS"] + ".go"):
    time.sleep(0.01)
if HOW == "MemoryError":
    record("with the one", lambda: dist.all_reduce(x.clone(), op=dist.ReduceOp.MAX))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
json.dump(records, open(os.environ["RECORDS"], "w"))
while not os.path.exists(os.environ["RECORDS"] + ".end"):
    time.sleep(0.01)
os._exit(0)
"""


def lose(transport, how, victim, inside):
    """What two of three ranks record of calls in which the third is missing; what that one said."""
    limit = "0.5" if how == "SIGSTOP" else "300"
    others = [rank for rank in range(3) if rank != victim]
    variables = {"HOW": how, "LIMIT": limit, "VICTIM": str(victim), "INSIDE": "1" if inside else ""}
    with tempfile.TemporaryDirectory() as folder:
        started = start(LOSING, 3, "pullback", folder, PULLBACK_TRANSPORT=transport, **variables)
        files = [Path(folder, f"{rank}.json") for rank in range(3)]

        def until(seen):
            end = time.monotonic() + 600
            while not seen():
                said = [Path(folder, f"{rank}.txt").read_text() for rank in range(3)]
                assert time.monotonic() < end, said
                time.sleep(0.02)

        try:
            until(lambda: all(Path(f"{file}.ready").exists() for file in files))
            if how.startswith("SIG"):
                os.kill(started[victim].pid, getattr(signal, how))
            if how in ("SIGKILL", "exception"):
                started[victim].wait(300)
            for rank in others:
                Path(f"{files[rank]}.go").touch()
            until(lambda: all(files[rank].exists() and files[rank].read_text().endswith("}") for rank in others))
            for rank in others:
                Path(f"{files[rank]}.end").touch()
            assert finish([started[rank] for rank in others]) == [0, 0]
        finally:
            finish(started, 0)
        said = Path(folder, f"{victim}.txt").read_text()
        return [json.loads(files[rank].read_text()) for rank in others], said


def unnamed(records, victim, wanted):
    """The calls whose error is another than is wanted, apart from those that need not notice."""
    first, second = records
    assert len(first) >= 23 and set(first) == set(second)
    monitored = [each.pop("monitored") for each in records]
    if victim:
        assert f"[Rank 0]: Rank {victim} failed to pass monitoredBarrier in" in monitored[0]
        monitored = monitored[1:]
    for said in monitored:
        assert re.search(r"Rank \d successfully reached monitoredBarrier, but received errors", said), said
    for name in ("send", "recv", "irecv", "batch"):
        assert second.pop(name) is None  # it has no part in them
    if first["reduce"] is not None and second["reduce"] is None:
        second.pop("reduce")  # over sockets it has sent its part, and is done
        assert second.pop("gather") is None
    return [f"{name}: {said}" for each in records for name, said in each.items() if not wanted(str(said))]


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("transport", ["", "sockets"], ids=["memory", "sockets"])
@pytest.mark.parametrize(("how", "victim"), [("SIGKILL", 2), ("exception", 2), ("MemoryError", 2), ("SIGKILL", 0)])
def test_every_call_names_the_rank_that_has_ended(how, victim, transport, inside):
    records, said = lose(transport, how, victim, inside)
    assert unnamed(records, victim, lambda said: f"DistBackendError: Lost rank {victim}: " in said) == []
    assert {"exception": "ValueError: rank 2 gives up", "MemoryError": "rank 2 has no memory"}.get(how, "") in said


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("transport", ["", "sockets"], ids=["memory", "sockets"])
def test_every_call_names_a_rank_that_has_stopped_when_the_time_is_over(transport, inside):
    def named(said):  # a machine that is busy may make another late, too
        found = re.fullmatch(
            r"DistBackendError: Timed out waiting \d+ms for \w+ to complete: no answer from (.*)", said
        )
        return found is not None and "rank 2" in found[1].split(", ")

    records, _ = lose(transport, "SIGSTOP", 2, inside)
    assert unnamed(records, 2, named) == []


def test_the_others_go_on_without_lost_ranks_and_every_step_is_right():
    lost, problem = lose_ranks(random.Random(0), size=3, losses=1, transport="", stop=0)
    assert problem == "" and lost == 1


def test_a_job_that_lost_a_rank_goes_on_from_its_last_checkpoint_and_every_step_is_right():
    lost, problem = lose_jobs(random.Random(0), size=2, losses=1, transport="", how="fully_shard", stop=0)
    assert problem == "" and lost == 1
