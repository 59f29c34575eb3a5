"""What is measured in processes of their own: the import, deep and wide graphs, and memory."""

import os
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from types import ModuleType

from benchmarks.probe import probe
from benchmarks.steps import STEPS
from benchmarks.table import Row

Sides = tuple[ModuleType, ModuleType]

IMPORT_BUDGET_MS = 60.0
FLATNESS_BUDGET = 1.3
TRAINING_GROWTH_BUDGET_MB = 1.0


def measured(row: Row, fill: Callable[[Row], None]) -> Row:
    """Fill the row; a measurement that does not run is a row of the table, not its end."""
    try:
        fill(row)
    except Exception as error:
        row.error = f"{type(error).__name__}: {error}" if not isinstance(error, RuntimeError) else str(error)
    return row


def both(name: str, figure: str, scale: float, repeats: int, *arguments: int) -> Callable[[Row, Sides], None]:
    """Fill a row with the same probe on both modules, which take turns; the least of the repeats counts."""

    def fill(row: Row, sides: Sides) -> None:
        turns = [[probe(name, side.__name__, *arguments)[figure] * scale for side in sides] for _ in range(repeats)]
        row.torch, row.peer = (min(figures) for figures in zip(*turns, strict=True))

    return fill


def import_rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """The import, on top of numpy's."""

    def fill(row: Row) -> None:
        both("import_time", "seconds", 1e3, 3 if quick else 7)(row, (torch, peer))
        row.value = row.peer

    yield measured(
        Row("import", "import, once numpy is imported", "ms", value_unit="ms", budget=IMPORT_BUDGET_MS), fill
    )


def scaling_rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Time per node from short chains to very deep ones, and a wide tree."""
    sizes = [1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    times: list[tuple[float, float]] = []
    for size in sizes:
        fill = both("chain_time", "seconds", 1e6, 1 if quick else 2, size)
        row = measured(
            Row("scaling", f"chain of {size:,}, forward and backward, per node", "us"),
            lambda row, fill=fill: fill(row, (torch, peer)),
        )
        if row.torch is not None and row.peer is not None:
            times.append((row.torch, row.peer))
        yield row
    # Flat means flat over the whole range: the slowest size counts, not only the largest.
    flat = Row("scaling", f"slowest of these to {sizes[0]:,}", "times", value_unit="times", budget=FLATNESS_BUDGET)
    if len(times) == len(sizes):
        flat.torch, flat.peer = (max(side) / side[0] for side in zip(*times, strict=True))
        flat.value = flat.peer
    else:
        flat.error = "a chain did not run"
    yield flat
    leaves = 100_000 if quick else 1_000_000
    yield measured(
        Row("scaling", f"tree of {leaves:,} leaves, per leaf", "us"),
        lambda row: both("tree", "seconds", 1e6, 3 if quick else 2, leaves)(row, (torch, peer)),
    )


COLD_BUDGET_S, CACHED_BUDGET_S = 3.0, 0.5


def step_memory_rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """The peak memory of whole programs, and how long the first step of one takes."""
    for number, name in enumerate(STEPS):
        yield measured(
            Row("memory of steps", name, "MB", budget=1.0),
            lambda row, number=number: both("step_memory", "bytes", 2**-20, 1, number)(row, (torch, peer)),
        )
    number = list(STEPS).index("GPT 4 layers of 128, batch 12x64, AdamW")
    with TemporaryDirectory() as folder:
        before = os.environ.get("PULLBACK_CACHE")
        os.environ["PULLBACK_CACHE"] = folder
        try:
            for what, budget in (("nothing compiled yet", COLD_BUDGET_S), ("kernels cached", CACHED_BUDGET_S)):

                def fill(row: Row) -> None:
                    both("first_step", "seconds", 1, 1, number)(row, (torch, peer))
                    row.value = row.peer

                yield measured(
                    Row("memory of steps", f"first GPT step, {what}", "s", budget=budget, value_unit="s"), fill
                )
        finally:
            os.environ.pop("PULLBACK_CACHE")
            if before is not None:
                os.environ["PULLBACK_CACHE"] = before


NODES = ("z * y, y needs no grad", "z * y, both need grad")
"""Nodes whose memory is measured, without and with what they save of both operands."""


def memory_rows(torch: ModuleType, peer: ModuleType, quick: bool) -> Iterator[Row]:
    """Memory per node, and memory over many training steps without the garbage collector."""
    nodes = 50_000 if quick else 300_000
    for saving, what in enumerate(NODES):
        yield measured(
            Row("memory", f"per node of {what}", "bytes", budget=1.0),
            lambda row, saving=saving: both("chain_memory", "bytes", 1, 1, nodes, saving)(row, (torch, peer)),
        )
    steps = 2_000 if quick else 10_000

    def fill(row: Row) -> None:
        both("training_memory", "bytes", 2**-20, 1, steps)(row, (torch, peer))
        row.value = row.peer

    yield measured(
        Row(
            "memory",
            f"growth over {steps:,} training steps, gc off",
            "MB",
            value_unit="MB",
            budget=TRAINING_GROWTH_BUDGET_MB,
        ),
        fill,
    )
