"""Compare: measurements side by side, in a table."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Any

from pullback.utils.benchmark.utils.common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

BEST, GOOD, BAD, VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
BOLD, TERMINATE = "\033[1m", "\033[0m"
Found = Measurement | None


class Colorize(Enum):
    """What a time is compared with to get its colour."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: a row for each statement, a column for each description."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = self._highlight_warnings = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """More measurements."""
        results = list(results)
        for one in results:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Show no more figures than mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour good and bad times, within columns or within rows."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that spread far."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        labels: dict[Any, list[Measurement]] = {}
        for one in Measurement.merge(self._results):
            labels.setdefault(one.label, []).append(one)
        return "\n".join([self._table(label, found) for label, found in labels.items()])

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        """The table of one label."""
        unit, scale = select_unit(min([one.median for one in results]))
        keys = ordered_unique([(one.num_threads, one.env, one.as_row_name) for one in results])
        keys.sort(key=lambda key: key[:2])
        titles = ordered_unique([one.description for one in results])
        cells = {(one.num_threads, one.env, one.as_row_name, one.description): one for one in results}
        rows: list[list[Found]] = [[cells.get((*key, title)) for title in titles] for key in keys]
        columns = [Column([row[i] for row in rows], scale, self) for i in range(len(titles))]
        texts = [[name, *[c.shown(one) for c, one in zip(columns, row, strict=True)]]
                 for name, row in zip(self._names(keys), rows, strict=True)]  # fmt: skip
        head = ["", *titles]
        widths = [max([len(text) for text in column]) for column in zip(head, *texts, strict=True)]
        lines = ["  |  ".join([text.center(width) for text, width in zip(head, widths, strict=True)])]
        whole, threads = len(lines[0]), None
        for key, row, text in zip(keys, rows, texts, strict=True):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(whole, "-"))
            beside = [other for k, other in zip(keys, rows, strict=True) if k[0] == threads]
            lines.append("  |  ".join(self._row(row, text, widths, beside)))
        marked = self._highlight_warnings and any([one.has_warnings for one in results])
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" * marked
        title = f" {label or ''} ".center(whole - 2, "-")
        return f"[{title}]\n" + "\n".join(lines) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n{note}"

    @staticmethod
    def _names(keys: list[Any]) -> list[str]:
        """The names of the rows, with their environments where there are several."""
        several = len({env for _, env, _ in keys}) > 1
        width = max([len(str(env)) for _, env, _ in keys]) if several else 0
        names, before = [], (None, None)
        for threads, env, name in keys:
            shown = f"({env})" if several and (threads, env) != before else ""
            names.append("  " + shown.ljust(width + 4) + name)
            before = threads, env
        return names

    def _row(self, row: list[Found], texts: list[str], widths: list[int], beside: list[list[Found]]) -> list[str]:
        """The cells of a row, as wide as their columns, and coloured."""
        out = [texts[0].ljust(widths[0])]
        for i, (one, text, width) in enumerate(zip(row, texts[1:], widths[1:], strict=True)):
            text = text.center(width)
            if one is not None and self._colorize is not Colorize.NONE:
                others = row if self._colorize is Colorize.ROWWISE else [other[i] for other in beside]
                best = min([other.median for other in others if other is not None])
                text = coloured(text, one.median, best)
            out.append(text)
        return out


class Column:
    """How the times of a column are written, so that they stand below each other."""

    def __init__(self, found: list[Found], scale: float, table: Compare) -> None:
        there = [one for one in found if one is not None]
        self.scale, self.trims = scale, table._trim_significant_figures
        self.marks = table._highlight_warnings and any([one.has_warnings for one in there])
        digits = [math.ceil(math.log10(one.median / scale)) for one in there]
        after = [max(one.significant_figures - n, 0) for one, n in zip(there, digits, strict=True)]
        self.decimals = min(after) if self.trims else 1
        self.width = max(digits) + self.decimals + bool(self.decimals)

    def shown(self, one: Found) -> str:
        """A time, or as much space."""
        if one is None:
            return " " * (max(self.width, len(f"{1:.{self.decimals}f}")) + 7 * self.marks)
        value = one.median / self.scale
        value = trim_sigfig(value, one.significant_figures) if self.trims else value
        spread = f" (! {one.iqr / one.median * 100:.0f}%)" if self.marks and one.has_warnings else ""
        return f"{value:>{self.width}.{self.decimals}f}{spread:>{7 if self.marks else 0}}"


def coloured(text: str, value: float, best: float) -> str:
    """A time in the colour of how it compares with the best."""
    if value <= best * 1.01 or value <= best + 100e-9:
        return BEST + BOLD + text + TERMINATE * 2
    if value <= best * 1.1:
        return GOOD + BOLD + text + TERMINATE * 2
    if value >= best * 5:
        return VERY_BAD + BOLD + text + TERMINATE * 2
    return BAD + text + TERMINATE * 2 if value >= best * 2 else text
