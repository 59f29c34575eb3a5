"""Where the boxes of a graph stand: rows from the loss down to the leaves, in time linear in nodes and edges.

The page lays its graph out in the browser, since it changes with every group that opens; assets/layout.js does there
what this module does here, number for number, and a test compares the two.

    1. A box stands one row below the lowest box that sends it a gradient.
    2. An edge over several rows bends where it crosses one, unless it is one of many that meet in the same box.
    3. Rows are sorted by the mean position of the neighbours above, then below, a few times.
    4. Boxes move towards their neighbours as far as their row lets them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

ROW, HEIGHT, GAP, BEND = 84.0, 40.0, 28.0, 14.0
"""The distance of rows, the height of a box, the space between boxes, the width kept free for an edge."""
LONGEST, MANY = 120, 4
"""Edges over more rows, or one of more that meet, do not bend: they are drawn straight, behind everything."""
SWEEPS = 4


@dataclass(slots=True)
class Layout:
    """Boxes are numbered as they were given; bends follow them."""

    x: list[float]
    """The middle of each box and bend."""
    row: list[int]
    widths: list[float]
    paths: list[list[int]]
    """For each edge, its bends."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of everything."""
        right = max((x + w / 2 for x, w in zip(self.x, self.widths, strict=True)), default=0.0)
        return right, max(self.row, default=0) * ROW + HEIGHT


def text_width(*texts: str) -> float:
    """The width of a box, from the number of characters: no font is measured."""
    return 26.0 + max(7.6 * len(texts[0]), *(6.4 * len(text) for text in texts[1:]))


def arrange(widths: list[float], edges: list[tuple[int, int]]) -> Layout:
    """Lay out boxes of these widths; an edge that does not lead to a later box is drawn, but moves nothing."""
    count = len(widths)
    row = rows_of(count, edges)
    widths, row = list(widths), list(row)
    paths: list[list[int]] = []
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    budget = 4 * count + 1000
    meeting = Counter(b for a, b in edges)
    for a, b in edges:
        path: list[int] = []
        span = row[b] - row[a]
        if b > a and span - 1 <= budget and (span < MANY or (span <= LONGEST and meeting[b] <= MANY)):
            budget -= span - 1
            last = a
            for step in range(1, span):
                bend = len(widths)
                widths.append(BEND)
                row.append(row[a] + step)
                above.append([last])
                below.append([])
                below[last].append(bend)
                path.append(bend)
                last = bend
            below[last].append(b)
            above[b].append(last)
        paths.append(path)
    ranks = first_rows(row, below)
    sort_rows(ranks, above, below, len(widths))
    x = spread(ranks, above, below, widths)
    left = min((x[i] - widths[i] / 2 for i in range(len(x))), default=0.0)
    return Layout([v - left for v in x], row, widths, paths)


def rows_of(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """The row of each box; edges come sorted by where they start."""
    row = [0] * count
    for a, b in edges:
        if b > a and row[b] <= row[a]:
            row[b] = row[a] + 1
    return row


def first_rows(row: list[int], below: list[list[int]]) -> list[list[int]]:
    """The rows as they are met from above: what is below the first box comes first."""
    members: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for item, where in enumerate(row):
        members[where].append(item)
    ranks: list[list[int]] = []
    for rank in members:
        met = dict.fromkeys(child for item in ranks[-1] for child in below[item]) if ranks else {}
        ranks.append([*met, *(item for item in rank if item not in met)])
    return ranks


def sort_rows(ranks: list[list[int]], above: list[list[int]], below: list[list[int]], count: int) -> None:
    """Sort every row by the mean position of its neighbours, downwards and upwards in turn."""
    place = [0.0] * count
    for rank in ranks:
        for i, item in enumerate(rank):
            place[item] = float(i)
    for sweep in range(SWEEPS):
        near = below if sweep % 2 else above
        for rank in reversed(ranks) if sweep % 2 else ranks:
            if len(rank) < 2:
                continue
            key = {item: mean(near[item], place, place[item]) for item in rank}
            rank.sort(key=key.__getitem__)
            for i, item in enumerate(rank):
                place[item] = float(i)


def mean(items: list[int], of: list[float], otherwise: float) -> float:
    """The mean of some numbers."""
    if not items:
        return otherwise
    total = 0.0
    for item in items:
        total += of[item]
    return total / len(items)


def spread(ranks: list[list[int]], above: list[list[int]], below: list[list[int]], widths: list[float]) -> list[float]:
    """The middle of every box: near its neighbours above and below in turn, above at last."""
    x = [0.0] * len(widths)
    for rank in ranks:
        end = 0.0
        for item in rank:
            x[item] = end + widths[item] / 2
            end += widths[item] + GAP
        for item in rank:
            x[item] -= (end - GAP) / 2
    for sweep in range(2 * SWEEPS + 1):
        near = below if sweep % 2 else above
        for rank in reversed(ranks) if sweep % 2 else ranks:
            wished = [mean(near[item], x, x[item]) for item in rank]
            for item, value in zip(rank, settle(rank, wished, widths), strict=True):
                x[item] = value
    return x


def settle(rank: list[int], wished: list[float], widths: list[float]) -> list[float]:
    """The places nearest to the wished ones (least squares) at which the boxes of a row do not touch."""
    starts: list[float] = []
    sums: list[float] = []
    counts: list[int] = []
    offset = 0.0
    for i, item in enumerate(rank):
        if i:
            offset += (widths[rank[i - 1]] + widths[item]) / 2 + GAP
        starts.append(offset)
        sums.append(wished[i] - offset)
        counts.append(1)
        while len(sums) > 1 and sums[-2] / counts[-2] > sums[-1] / counts[-1]:
            total, many = sums.pop(), counts.pop()
            sums[-1] += total
            counts[-1] += many
    out: list[float] = []
    for total, many in zip(sums, counts, strict=True):
        for _ in range(many):
            out.append(starts[len(out)] + total / many)
    return out
