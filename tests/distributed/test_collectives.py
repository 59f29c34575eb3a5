"""Collectives on real processes: through shared memory and sockets, on two and four ranks, with those that fail."""

import json
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from tests.distributed.processes import finish, run_ranks, start

EVERYTHING = """
import datetime
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
n, r = WORLD, RANK
for count in (1, 7, 1000, 300_001):
    base = torch.arange(float(count)) % 17
    def check(name, got, expected):
        records[f"{name} {count}"] = bool((got == expected).all())
    total = sum(range(1, n + 1))
    x = base * (r + 1)
    dist.all_reduce(x)
    check("all_reduce", x, base * total)
    x = base * (r + 1)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    check("maximum", x, base * n)
    for root in range(n):
        x = base + r
        dist.broadcast(x, root)
        check(f"broadcast {root}", x, base + root)
        x = base * (r + 1)
        dist.reduce(x, root)
        check(f"reduce {root}", x, base * total if r == root else base * (r + 1))
        out = torch.zeros(count)
        dist.scatter(out, [base + one for one in range(n)] if r == root else None, root)
        check(f"scatter {root}", out, base + r)
        outs = [torch.zeros(count) for _ in range(n)] if r == root else None
        dist.gather(base + r, outs, root)
        if outs:
            check(f"gather {root}", torch.stack(outs), torch.stack([base + one for one in range(n)]))
    outs = [torch.zeros(count) for _ in range(n)]
    dist.all_gather(outs, base + r)
    check("all_gather", torch.stack(outs), torch.stack([base + one for one in range(n)]))
    out = torch.zeros(count)
    dist.reduce_scatter(out, [base * (r + 1) + one for one in range(n)])
    check("reduce_scatter", out, base * total + n * r)
    outs = [torch.zeros(count) for _ in range(n)]
    dist.all_to_all(outs, [base + 10 * r + one for one in range(n)])
    check("all_to_all", torch.stack(outs), torch.stack([base + 10 * one + r for one in range(n)]))
    works, tensors = [], [base * (r + one) for one in range(6)]
    for tensor in tensors:
        works.append(dist.all_reduce(tensor, async_op=True))
    dist.barrier()
    [work.wait() for work in works]
    expected = [base * (n * one + n * (n - 1) // 2) for one in range(6)]
    check("in the background", torch.stack(tensors), torch.stack(expected))
records["engine"] = type(dist.group.WORLD._engine).__name__
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("transport", "size"), [("", 2), ("", 4), ("sockets", 2), ("sockets", 3)])
def test_every_collective_gives_its_definition(transport, size):
    for records in run_ranks(EVERYTHING, size, PULLBACK_TRANSPORT=transport):
        assert records.pop("engine") == ("Engine" if transport else "Shared")
        assert len(records) > 40 and [name for name, right in records.items() if not right] == []


TROUBLE = """
import datetime
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=400))
short = dist.new_group(timeout=datetime.timedelta(seconds=0.3))
late = dist.new_group(timeout=datetime.timedelta(seconds=0.3))
odd = dist.new_group()
if RANK == 0:
    record("late", lambda: dist.all_reduce(torch.ones(2), group=short))
    record("no message", lambda: dist.recv(torch.ones(2), 1, group=late))
    record("monitored", lambda: dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.3)))
    record("all monitored", lambda: dist.monitored_barrier(None, datetime.timedelta(seconds=0.3), wait_all_ranks=True))
dist.barrier()
record("another length", lambda: dist.all_reduce(torch.ones(2 + RANK), group=odd))
"""


@pytest.mark.parametrize("transport", ["", "sockets"])
def test_who_is_late_or_does_something_else_is_named(transport):
    first, second = run_ranks(TROUBLE, PULLBACK_TRANSPORT=transport)
    assert first["late"].startswith("DistBackendError: Timed out waiting 3")
    assert "for all_reduce to complete" in first["late"] and "rank 1" in first["late"]
    assert "rank 1" in first["no message"]
    assert first["monitored"] == "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 300 ms"
    assert first["all monitored"] == "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 300 ms"
    said = "DistBackendError: Ranks disagree: rank 1 called all_reduce with 12 bytes, rank 0 all_reduce with 8 bytes"
    assert first["another length"] == said
    assert "rank 0 called all_reduce with 8 bytes, rank 1 all_reduce with 12 bytes" in second["another length"]


KILLED = """
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1000))
open(os.environ["RECORDS"] + ".ready", "w").close()
def forever():
    while True:
        dist.all_reduce(torch.ones(100_000))
record("lost", forever)
os._exit(0 if json.dump(records, open(os.environ["RECORDS"], "w")) is None else 1)
"""


@pytest.mark.parametrize("transport", ["", "sockets"])
def test_the_death_of_a_rank_is_noticed_by_the_others(transport):
    with tempfile.TemporaryDirectory() as folder:
        started = start(KILLED, 3, "pullback", folder, PULLBACK_TRANSPORT=transport)
        try:
            end = time.monotonic() + 600
            while not all(Path(folder, f"{rank}.json.ready").exists() for rank in range(3)):
                assert time.monotonic() < end, "the ranks did not start"
                time.sleep(0.02)
            os.kill(started[2].pid, signal.SIGKILL)
            codes = finish(started)
        finally:
            finish(started, 0)
        assert codes == [0, 0, -signal.SIGKILL], [Path(folder, f"{rank}.txt").read_text() for rank in range(3)]
        lost = [json.loads(Path(folder, f"{rank}.json").read_text())["lost"] for rank in range(2)]
        assert all("Lost rank 2" in one for one in lost), lost


def test_one_rank_alone_opens_no_port_and_needs_nobody():
    alone = """
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(3)
dist.all_reduce(x)
dist.broadcast(x, 0)
out = [torch.zeros(3)]
dist.all_gather(out, x)
dist.barrier()
records["x"] = plain(out)
from pullback.distributed.transport import lanes
records["listens"] = lanes.listener is not None
"""
    assert run_ranks(alone, 1) == [{"x": [[1.0, 1.0, 1.0]], "listens": False}]


def test_ranks_find_each_other_through_a_file():
    through = """
dist.init_process_group("gloo", init_method=os.environ["WHERE"], rank=RANK, world_size=WORLD)
x = torch.ones(3)
dist.all_reduce(x)
records["x"] = plain(x)
dist.barrier()
"""
    with tempfile.TemporaryDirectory() as folder:
        assert run_ranks(through, 2, WHERE=f"file://{folder}/store") == [{"x": [2.0, 2.0, 2.0]}] * 2
