"""`pullback simulate-cluster train.py --nodes 1000`: what a program would take on a cluster."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pullback.cli.output import Mistake, print_json, say
from pullback.cli.program import add_program, compiled, own_options
from pullback.distributed.simulator.cluster import Cluster, Plan, plans, reduce_time, simulate
from pullback.distributed.simulator.recording import Recording

EXAMPLES = """
examples:
  pullback simulate-cluster --nodes 1000 --bandwidth 100Gb --latency 5us train.py
  pullback simulate-cluster --nodes 64 --ranks 8 --tensor 8 --pipeline 4 train.py
  pullback simulate-cluster --measure 1,2,4 train.py      how right it is: beside runs on this machine

The program runs here on one rank, a few steps, and its quickest step is recorded: when each gradient was there, and
bytes. It is replayed under the costs of the network. Efficiency is the part of a step in which a rank computes; memory
is that of parameters, gradients, optimizer and activations on each rank.
"""
UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
TURNS = 3
"""How often a program is measured alone and on several ranks, in turns: the quickest step of each counts."""
REDUCING = """
import json, os, sys, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
found = []
for size in (1 << 14, 1 << 22):
    x, best = torch.zeros(size // 4), 1e9
    for _ in range(60):
        begun = time.perf_counter()
        dist.all_reduce(x)
        best = min(best, time.perf_counter() - begun)
    found.append(best)
if dist.get_rank() == 0:
    open(sys.argv[1], "w").write(json.dumps(found))
dist.barrier()
"""
"""Measures the links inside this machine."""


def speed(text: str) -> float:
    """Bytes per second: `100Gb` is bits, `12.5GB` bytes."""
    found = re.fullmatch(r"([0-9.]+)\s*([kKmMgGtT]?)(b|B|bit)?(/s|ps)?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no bandwidth: write 100Gb (bits) or 12.5GB (bytes)")
    return float(found[1]) * UNITS[found[2].lower()] / (1 if found[3] == "B" else 8)


def seconds(text: str) -> float:
    """A time: `5us`, `1ms`, `30s`, `2h`."""
    found = re.fullmatch(r"([0-9.]+)\s*(ns|us|ms|s|min|h)?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 5us, 1ms, 30s or 2h")
    return float(found[1]) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "min": 60.0, "h": 3600.0}.get(found[2] or "s", 1.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    default = Cluster(1)
    parser.options = [  # type: ignore[attr-defined]
        parser.add_argument("--nodes", type=int, default=1, help="machines"),
        parser.add_argument("--ranks", type=int, default=1, help="ranks on each machine"),
        parser.add_argument("--bandwidth", type=speed, default=default.bandwidth, help="between machines (100Gb)"),
        parser.add_argument("--latency", type=seconds, default=default.latency, help="between machines (5us)"),
        parser.add_argument("--local-bandwidth", type=speed, default=default.local_bandwidth, help="inside (5GB)"),
        parser.add_argument("--local-latency", type=seconds, default=default.local_latency, help="inside (20us)"),
        parser.add_argument("--tensor", type=int, default=1, help="ranks that share each layer"),
        parser.add_argument("--pipeline", type=int, default=1, help="stages of a pipeline"),
        parser.add_argument("--parts", type=int, default=8, help="parts of a batch in a pipeline"),
        parser.add_argument("--mtbf", type=seconds, default=default.mtbf, help="of a machine (50000h)"),
        parser.add_argument("--checkpoint", type=seconds, default=default.checkpoint, help="to write one (30s)"),
        parser.add_argument("--restart", type=seconds, default=default.restart, help="after a failure (120s)"),
        parser.add_argument("--threads", type=int, default=1, help="of each rank"),
        parser.add_argument("--measure", metavar="1,2,4", help="compare with runs of so many ranks on this machine"),
        parser.add_argument("--json", action="store_true", help="the table as JSON"),
    ]
    add_program(parser)


def launched(ranks: int, threads: int, folder: Path, *words: str) -> Any:
    """Run a program on some ranks here; what it left in a file."""
    target = folder / "answer.json"
    target.unlink(missing_ok=True)
    given = ["launch", "-n", str(ranks), "--threads", str(threads), *[word.format(target) for word in words]]
    command = [sys.executable, "-m", "pullback", *given]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode or not target.exists():
        raise Mistake(
            "the program ended without a step of an optimizer" if not done.returncode else "the program failed"
        )
    return json.loads(target.read_text(encoding="utf-8"))


def record(given: argparse.Namespace, ranks: int, threads: int, folder: Path) -> Recording:
    """A recorded step of the program on so many ranks."""
    compiled(given.script)
    words = ["-m", "pullback.distributed.simulator.recorded", "{}", given.script, *given.arguments]
    found = launched(ranks, threads, folder, *words)
    found.pop("steps")
    return Recording(**found)


def links(ranks: int, threads: int, folder: Path) -> Cluster:
    """This machine with some ranks, its links measured. Its processor moves the bytes: nothing overlaps."""
    program = folder / "reducing.py"
    program.write_text(REDUCING, encoding="utf-8")
    small, large = launched(ranks, threads, folder, str(program), "{}")
    rate = max(large - small, 1e-9) / ((1 << 22) - (1 << 14))
    factor = 2 * (ranks - 1)
    return replace(Cluster(1, ranks), local_latency=small / factor, local_bandwidth=factor / ranks / rate, overlap=0.0)


def compare(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """The step that is simulated beside the one that is measured, for several numbers of ranks here."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = []
    for ranks in [int(word) for word in given.measure.split(",")]:
        threads = max(cores // ranks, 1)
        both = [(record(given, 1, threads, folder), record(given, ranks, threads, folder)) for _ in range(TURNS)]
        alone, together = (min(side, key=lambda one: one.step) for side in zip(*both))
        measured, cluster = together.step, links(ranks, threads, folder) if ranks > 1 else Cluster(1)
        crowd = max(1.0, ranks * threads / cores)  # more ranks than cores take turns
        busy = replace(alone, step=alone.step * crowd, backward=alone.backward * crowd)
        busy.buckets = [(size, ready * crowd) for size, ready in alone.buckets]
        step = simulate(busy, cluster, Plan()).step
        total = reduce_time(cluster, ranks, sum([size for size, _ in alone.buckets]), "ring")
        rows.append(
            {"ranks": ranks, "simulated": step, "measured": measured, "error": step / measured - 1, "reducing": total}
        )
    return rows


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Record, replay, print."""
    own_options(parser, given, parser.options)  # type: ignore[attr-defined]
    if given.module:
        raise Mistake("simulate-cluster takes a script, not a module")
    with tempfile.TemporaryDirectory(prefix="pullback-simulate-") as name:
        folder = Path(name)
        if given.measure:
            rows = compare(given, folder)
            if given.json:
                print_json(rows)
                return 0
            print(f"{'ranks':>6} {'simulated':>12} {'measured':>12} {'error':>8}")
            for row in rows:
                times = f"{row['simulated'] * 1e3:9.2f} ms {row['measured'] * 1e3:9.2f} ms"
                print(f"{row['ranks']:6} {times} {row['error']:+8.0%}")
            return 0
        recording = record(given, 1, given.threads, folder)
    names = ("nodes", "ranks", "bandwidth", "latency", "local_bandwidth", "local_latency")
    cluster = Cluster(**{name: getattr(given, name) for name in (*names, "mtbf", "checkpoint", "restart")})
    wanted = Plan(tensor=given.tensor, pipeline=given.pipeline, parts=given.parts)
    try:
        found = [(plan, simulate(recording, cluster, plan)) for plan in plans(cluster, wanted)]
    except ValueError as error:
        raise Mistake(str(error)) from None
    if given.json:
        print_json([{"plan": str(plan), **asdict(outcome)} for plan, outcome in found])
        return 0
    say(f"a step takes {recording.step * 1e3:.1f} ms here; {recording.parameters / 1e6:.1f} MB of parameters")
    print(f"{cluster.size} ranks on {cluster.nodes} machines")
    print(f"{'plan':<36} {'step':>12} {'efficiency':>11} {'memory':>10} {'lost':>8} {'elastic':>9}")
    for plan, one in found:
        figures = f"{one.step * 1e3:9.2f} ms {one.efficiency:11.1%} {one.memory / 1e6:7.1f} MB"
        print(f"{plan!s:<36} {figures} {one.lost:8.2%} {one.lost_elastic:9.3%}")
    return 0
