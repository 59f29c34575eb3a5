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
from pullback.distributed.simulator.cluster import Cluster, Plan, plans, simulate
from pullback.distributed.simulator.recording import Recording, pace

EXAMPLES = """
examples:
  pullback simulate-cluster --nodes 1000 --bandwidth 100Gb --latency 5us train.py
  pullback simulate-cluster --nodes 64 --ranks 8 --tensor 8 --pipeline 4 train.py
  pullback simulate-cluster --measure 1,2,4 train.py      how right it is: beside runs on this machine, with gradients
                                                          averaged even if the program does not do so itself

The program runs here on one rank, a few steps, and its quickest step is recorded: when each gradient was there, and
bytes. It is replayed under the costs of the network. Efficiency is the part of a step in which a rank computes; memory
is that of parameters, gradients, optimizer and activations on each rank.
"""
UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
TURNS = 3
"""How often copies of a program are measured side by side and as ranks, in turns: the quickest turn of each counts."""
REDUCING = """
import json, random, sys, time
import numpy as np
import torch.distributed as dist
dist.init_process_group("gloo")
group, found, rng = dist.group.WORLD, [], random.Random(dist.get_rank())
for size in json.loads(sys.argv[2]):
    arrays, calls = [np.zeros(size // 4, np.float32)], []
    for _ in range(200):
        end = time.thread_time() + 2e-4 * rng.random()
        while time.thread_time() < end:
            pass
        came = time.perf_counter()
        group._mean(arrays, 1).wait()
        calls.append((came, time.perf_counter()))
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, calls)
    took = [max(left for _, left in call) - max(came for came, _ in call) for call in zip(*everyone)]
    found.append(sorted(took)[len(took) // 2])
if dist.get_rank() == 0:
    open(sys.argv[1], "w").write(json.dumps(found))
dist.barrier()
"""
"""Measures the links inside this machine, by the sums of DistributedDataParallel.

A sum lasts from when the last rank comes until the last one leaves. Ranks come at different times, as they do where
they have computed something: who has waited long must be woken up.
"""
SMALL = 1 << 14


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


def start(ranks: int, threads: int, *words: str) -> subprocess.Popen[bytes]:
    """Start a program on some ranks here."""
    given = ["launch", "-n", str(ranks), "--threads", str(threads), *words]
    return subprocess.Popen([sys.executable, "-m", "pullback", *given], stdout=sys.stderr)


def answer(process: subprocess.Popen[bytes], target: Path) -> Any:
    """What a program has left in a file, once it has ended."""
    status = process.wait()
    if status or not target.exists():
        raise Mistake("the program ended without a step of an optimizer" if not status else "the program failed")
    return json.loads(target.read_text(encoding="utf-8"))


def record(given: argparse.Namespace, ranks: int, threads: int, copies: int = 0, turns: int = 0) -> list[Recording]:
    """The quickest step of the program on so many ranks; those of several copies side by side."""
    compiled(given.script)
    with tempfile.TemporaryDirectory(prefix="pullback-simulate-") as name:
        targets = [Path(name, f"{number}.json") for number in range(copies or 1)]
        words = ["-m", "pullback.distributed.simulator.recorded"]
        tails = [[str(target), str(copies), str(turns), given.script, *given.arguments] for target in targets]
        started = [start(ranks, threads, *words, *tail) for tail in tails]
        return [Recording(**answer(*each)) for each in zip(started, targets)]


def links(ranks: int, threads: int, largest: int, folder: Path) -> Cluster:
    """This machine with some ranks, its links measured. Its processor moves the bytes: nothing overlaps."""
    if ranks == 1:
        return Cluster(1)
    program, target, large = folder / "reducing.py", folder / "links.json", max(largest, 2 * SMALL)
    program.write_text(REDUCING, encoding="utf-8")
    sizes = json.dumps([SMALL, large])
    small, long = answer(start(ranks, threads, str(program), str(target), sizes), target)
    rate = max(long - small, 1e-9) / (large - SMALL)
    factor = 2 * (ranks - 1)
    least = max(small - rate * SMALL, 0.0)
    return replace(Cluster(1, ranks), local_latency=least / factor, local_bandwidth=factor / ranks / rate, overlap=0.0)


def compare(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """The step that is simulated beside the one that is measured, for several numbers of ranks here.

    What is replayed are steps of copies that compute side by side without a word: ranks of one machine share its cores
    and its memory, as those of a cluster do not. If there are more ranks than cores, they wait for each other after
    every step, so a core goes from one to the next, whose data it has no longer in its caches: copies take turns, too.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = []
    for ranks in [int(word) for word in given.measure.split(",")]:
        threads = max(cores // ranks, 1)
        simulated, measured = [], []
        for _ in range(TURNS):
            apart = record(given, 1, threads, ranks, min(ranks, cores))
            measured.append(pace(record(given, ranks, threads, 1, 1), 1))
            cluster = links(ranks, threads, max([size for size, _ in apart[0].buckets]), folder)
            simulated.append(simulate(apart[0].lasting(pace(apart, cores)), cluster, Plan()).step)
        step, took = min(simulated), min(measured)
        rows.append({"ranks": ranks, "simulated": step, "measured": took, "error": step / took - 1})
    return rows


def main(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Record, replay, print."""
    own_options(parser, given, parser.options)  # type: ignore[attr-defined]
    if given.module:
        raise Mistake("simulate-cluster takes a script, not a module")
    with tempfile.TemporaryDirectory(prefix="pullback-simulate-") as name:
        folder = Path(name)
        if given.measure:
            try:
                rows = compare(given, folder)
            except ValueError as error:
                raise Mistake(str(error)) from None
            if given.json:
                print_json(rows)
                return 0
            print(f"{'ranks':>6} {'simulated':>12} {'measured':>12} {'error':>8}")
            for row in rows:
                times = f"{row['simulated'] * 1e3:9.2f} ms {row['measured'] * 1e3:9.2f} ms"
                print(f"{row['ranks']:6} {times} {row['error']:+8.0%}")
            return 0
        (recording,) = record(given, 1, given.threads)
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
