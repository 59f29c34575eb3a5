"""Programs measured on torch and on its peer in turns: one row each, and the geometric mean of the ratios."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.table import Row

Program = Callable[[], Any]
Build = Callable[[ModuleType], Program]


def fastest(sides: list[Program], seconds: float) -> list[float]:
    """The least time of one run of each side; they take turns for about `seconds`."""
    for side in sides:
        side()
        side()
    best = [math.inf] * len(sides)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or math.inf in best:
        for nr, side in enumerate(sides):
            side()  # wakes this side's threads and brings its data back to the caches
            for _ in range(3):
                start = time.perf_counter()
                side()
                best[nr] = min(best[nr], time.perf_counter() - start)
    return best


def compared(
    section: str,
    cases: Iterable[tuple[str, Build]],
    sides: tuple[ModuleType, ModuleType],
    seconds: float,
    budgets: tuple[float, float],
    unit: str = "ms",
) -> Iterator[Row]:
    """A row for each program, with two threads each, and one for the mean; `budgets` are those of either kind."""
    sides[1].set_num_threads(2)
    ratios = []
    for name, build in cases:
        row = Row(section, name, unit, budget=budgets[0])
        try:
            programs = []
            for side in sides:
                side.manual_seed(0)
                programs.append(build(side))
            scale = {"ms": 1e3, "us": 1e6}[unit]
            row.torch, row.peer = (best * scale for best in fastest(programs, seconds))
            ratios.append(row.peer / row.torch)
        except Exception as error:
            row.error = f"{type(error).__name__}: {error}"
        yield row
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    yield Row(section, "geometric mean of the ratios", "", value=mean, budget=budgets[1])
