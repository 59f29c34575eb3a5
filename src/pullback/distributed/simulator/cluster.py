"""A recorded step on a cluster: how long it takes under several ways to add up gradients and to divide the model.

n ranks, b bytes, bandwidth w and latency l of a link between machines:

    ring            2 (n-1)/n b/w + 2 (n-1) l
    tree            2 b/w + 2 log2(n) l           in parts that follow each other up and down the tree
    hierarchical    the ring between machines only; inside each one its own links add up and hand on

A bucket is added up when it is complete and the one before is done, while backward goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pullback.distributed.simulator.recording import Recording

ALGORITHMS = ("ring", "tree", "hierarchical")
REFORM = 5.0
"""Seconds in which those that are left form their group anew."""


@dataclass(frozen=True)
class Cluster:
    """Machines and the links between and inside them: bytes per second, and seconds."""

    nodes: int
    ranks: int = 1
    """Ranks on each machine."""
    bandwidth: float = 12.5e9
    latency: float = 5e-6
    local_bandwidth: float = 5e9
    local_latency: float = 20e-6
    overlap: float = 1.0
    """The part of communication that does not take time from computing; 0 where the processor itself moves bytes."""
    mtbf: float = 50_000 * 3600.0
    """Seconds that a machine runs until it fails, on average."""
    checkpoint: float = 30.0
    restart: float = 120.0

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.nodes * self.ranks


@dataclass(frozen=True)
class Plan:
    """How a model is spread: ways to add up, ZeRO stage, ranks that share a layer, stages of a pipeline and parts."""

    algorithm: str = "ring"
    zero: int = 0
    tensor: int = 1
    pipeline: int = 1
    parts: int = 8

    def __str__(self) -> str:
        words = [self.algorithm]
        words += [f"ZeRO {self.zero}"] if self.zero else []
        words += [f"tensor {self.tensor}"] if self.tensor > 1 else []
        words += [f"pipeline {self.pipeline} x {self.parts}"] if self.pipeline > 1 else []
        return ", ".join(words)


@dataclass(frozen=True)
class Outcome:
    """Seconds of a step, the part of it that computes, bytes on each rank, and the part of all work that is lost."""

    step: float
    efficiency: float
    memory: float
    lost: float
    lost_elastic: float


def ring(count: int, size: float, bandwidth: float, latency: float) -> float:
    """The time of a sum around a ring."""
    return 2 * (count - 1) / count * size / bandwidth + 2 * (count - 1) * latency if count > 1 else 0.0


def reduce_time(cluster: Cluster, count: int, size: float, algorithm: str) -> float:
    """The time of a sum over so many ranks, which fill machines one after the other."""
    inside = min(count, cluster.ranks)
    outside = math.ceil(count / cluster.ranks)
    if outside == 1:
        return ring(inside, size, cluster.local_bandwidth, cluster.local_latency)
    if algorithm == "ring":  # one link of each machine carries all of it
        return ring(count, size, cluster.bandwidth, cluster.latency)
    if algorithm == "tree":
        return 2 * size / cluster.bandwidth + 2 * math.log2(count) * cluster.latency
    if algorithm == "hierarchical":
        local = ring(inside, size, cluster.local_bandwidth, cluster.local_latency)
        return local + ring(outside, size, cluster.bandwidth, cluster.latency)
    raise ValueError(f"there is no way {algorithm!r} to add up; there are {', '.join(ALGORITHMS)}")


def simulate(recording: Recording, cluster: Cluster, plan: Plan) -> Outcome:
    """A step of a plan on a cluster."""
    split = plan.tensor * plan.pipeline
    if cluster.size % split:
        raise ValueError(f"{cluster.size} ranks cannot be divided into parts of {plan.tensor} x {plan.pipeline}")
    copies = cluster.size // split
    bubble = 1 + (plan.pipeline - 1) / plan.parts if plan.pipeline > 1 else 1.0
    scale = bubble / split
    optimizer = (recording.step - recording.backward) / split / (copies if plan.zero else 1)
    backward = recording.backward * scale + exchanged(recording, cluster, plan)
    done = total = 0.0
    for size, ready in recording.buckets:
        took = reduce_time(cluster, copies, size / split, plan.algorithm)
        took *= {3: 1.5}.get(plan.zero, 1.0)  # parameters are gathered twice, gradients are scattered: 3 instead of 2
        done = max(done, ready * scale) + took
        total += took
    step = max(backward, done) + optimizer
    hidden = backward + total + optimizer - step
    step += (1 - cluster.overlap) * hidden
    memory = held(recording, plan, copies)
    lost, elastic = losses(recording, cluster, step)
    return Outcome(step, recording.step / split / step, memory, lost, elastic)


def exchanged(recording: Recording, cluster: Cluster, plan: Plan) -> float:
    """What ranks that share layers or follow each other send: outputs of layers, twice forwards and twice backwards."""
    seconds = 0.0
    layers = max(recording.tensors // 2, 1)
    one = recording.activations / layers
    if plan.tensor > 1:
        inside = plan.tensor <= cluster.ranks
        speed = (cluster.local_bandwidth, cluster.local_latency) if inside else (cluster.bandwidth, cluster.latency)
        seconds += layers / plan.pipeline * 2 * ring(plan.tensor, one, *speed)
    if plan.pipeline > 1:
        seconds += 2 * plan.parts * cluster.latency + 2 * one / cluster.bandwidth
    return seconds


def held(recording: Recording, plan: Plan, copies: int) -> float:
    """The bytes on each rank."""
    split = plan.tensor * plan.pipeline
    grads = parameters = recording.parameters / split
    state, largest = recording.state / split, max([size for size, _ in recording.buckets], default=0) / split
    activations = recording.activations / split
    if plan.zero >= 1:
        state /= copies
    if plan.zero >= 2:
        grads = grads / copies + largest
    if plan.zero >= 3:
        parameters = parameters / copies + largest
    return parameters + grads + state + activations


def losses(recording: Recording, cluster: Cluster, step: float) -> tuple[float, float]:
    """The part of all work that is lost by failures: with restarts from checkpoints, and where the others go on."""
    between = cluster.mtbf / cluster.nodes
    interval = math.sqrt(2 * cluster.checkpoint * between)
    again = (interval / 2 + cluster.restart) / between + cluster.checkpoint / interval
    return min(again, 1.0), min((step + REFORM) / between, 1.0)


def plans(cluster: Cluster, given: Plan) -> list[Plan]:
    """The plans that are compared: all ways to add up, all stages of ZeRO with the best of them."""
    several = [replace(given, algorithm=one, zero=0) for one in ALGORITHMS]
    return several + [
        replace(given, algorithm="hierarchical" if cluster.ranks > 1 else "ring", zero=z) for z in (1, 2, 3)
    ]
