"""The rows of the result and how they are printed."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Row:
    """One measurement: torch's figure and the peer's in `unit`, and what is compared with the budget.

    The measured value is `value` where it is given, else the ratio peer / torch. A row without a budget informs only.
    """

    section: str
    name: str
    unit: str
    torch: float | None = None
    peer: float | None = None
    value: float | None = None
    value_unit: str = ""
    budget: float | None = None
    error: str = ""

    @property
    def measured(self) -> float | None:
        if self.value is not None:
            return self.value
        if self.torch and self.peer is not None:
            return self.peer / self.torch
        return None

    @property
    def within(self) -> bool | None:
        """Whether the budget is kept; None where there is no budget and nothing failed."""
        if self.error:
            return False
        if self.budget is None or self.measured is None:
            return None
        return self.measured <= self.budget

    @property
    def verdict(self) -> str:
        if self.error:
            return f"failed: {self.error}"
        return {True: "PASS", False: "over", None: ""}[self.within]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"measured": self.measured, "within": self.within}


def figure(number: float | None, unit: str = "") -> str:
    """Three significant digits, or a dash where there is nothing."""
    if number is None:
        return "-"
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2 if abs(number) >= 1 else 3
    return f"{number:.{digits}f}{' ' + unit if unit else ''}"


class Printer:
    """Prints rows as they come, a heading before each section."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.section = ""

    def line(self, name: str, unit: str, torch: str, peer: str, measured: str, budget: str, verdict: str) -> None:
        print(f"{name:<52}{unit:>6}{torch:>9}{peer:>10}{measured:>12}{budget:>10}  {verdict}".rstrip(), flush=True)

    def row(self, row: Row) -> None:
        if row.section != self.section:
            self.section = row.section
            print()
            self.line(row.section, "unit", "torch", self.peer, "measured", "budget", "")
        budget = "" if row.budget is None else "<= " + figure(row.budget)
        measured = figure(row.measured, row.value_unit)
        self.line(row.name, row.unit, figure(row.torch), figure(row.peer), measured, budget, row.verdict)


def summary(rows: Iterable[Row]) -> str:
    """How many budgets were kept and missed, and how many measurements did not run."""
    verdicts = [row.verdict for row in rows]
    failed = sum(verdict.startswith("failed") for verdict in verdicts)
    return f"{verdicts.count('PASS')} budgets kept, {verdicts.count('over')} over, {failed} measurements failed"
