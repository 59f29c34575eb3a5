"""What was measured, and how it is said."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

import pullback as torch

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip

FIGURES, SHORTEST = 4, 25e-9
"""The most figures a time is shown with, and the shortest that can be told apart (in seconds)."""
SPREAD, GREAT_SPREAD = 0.1, 0.25
"""How far the middle half of the times may spread, relative to the median, before that is said."""
UNITS = {"ns": (1e-9, "nanosecond"), "us": (1e-6, "microsecond"), "ms": (1e-3, "millisecond"), "s": (1, "second")}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What is measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """What it is called: its label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            more = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{more}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """What comes before it."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """All of it."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([f"{part}\n" if "\n" in part else part for part in parts if part])


FIELDS = {field.name for field in dataclasses.fields(TaskSpec)}


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times that a statement took, `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """The time of one run, in seconds."""
        return [time / self.number_per_run for time in self.raw_times]

    @cached_property
    def quartiles(self) -> tuple[float, float, float]:
        """The times that a quarter, half and three quarters of the runs took at most."""
        low, middle, high = np.quantile(np.array(self.times, dtype=np.float64), [0.25, 0.5, 0.75])
        return float(low), float(middle), float(high)

    @property
    def median(self) -> float:
        """The time in the middle."""
        return self.quartiles[1]

    @property
    def mean(self) -> float:
        """The mean time."""
        return float(np.mean(np.array(self.times, dtype=np.float64)))

    @property
    def iqr(self) -> float:
        """How far the middle half of the times spreads."""
        return self.quartiles[2] - self.quartiles[0]

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something: the middle half of the times is looked at."""
        count = len(self.raw_times)
        middle = np.array(sorted(self.times)[count // 4 : math.ceil(3 * count / 4)], dtype=np.float32)
        error = max(1.645 * float(middle.std()) / math.sqrt(len(middle)), SHORTEST)
        return min(max(math.floor(math.log10(self.median / error)), 1), FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread far."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = SPREAD) -> bool:
        """Whether the times do not spread further than this, relative to the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What it is called."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What its row in a table is called."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, (low, middle, high) = len(self.raw_times), self.quartiles
        unit, scale = select_unit(middle)
        several, threads = "s" * (count > 1), "s" * (self.num_threads > 1)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' * (count > 1)}{middle / scale:.2f} {unit}")
        if count >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if count > 1 else ','}"
        lines.append(f"  {count} measurement{several}, {runs} {self.num_threads} thread{threads}")
        if self.has_warnings:
            lines.append(f"  WARNING: Interquartile range is {self.iqr / middle * 100:.1f}% of the median measurement.")
            great = not self.meets_confidence(GREAT_SPREAD)
            suggests = "This suggests significant environmental influence."
            lines.append(" " * 11 + (suggests if great else "This could indicate system fluctuation."))
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one each."""
        times: dict[TaskSpec, list[float]] = {}
        for one in measurements:
            times.setdefault(one.task_spec, []).extend(one.times)
        return [Measurement(1, found, task) for task, found in times.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time has few figures before its point, and how many seconds that is."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3), "s")
    return unit, UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """A unit in words."""
    return UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """A number with so many figures: 3.14159 with two is 3.1."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(np.float32(x / scale).round() * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each once, in the order they come."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)
