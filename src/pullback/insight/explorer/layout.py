"""Where the boxes of a graph stand: rows from the loss down to the leaves, in time linear in nodes and edges.

The page lays its graph out in the browser, since it changes with every group that opens; assets/layout.js does there
what this module does here, number for number, and a test compares the two.

    1. A box stands one row below the lowest box that sends it a gradient; only loops of the program lead back up.
    2. What leads to a box from further up joins one line down to it, which has a bend in every row it crosses. Where
       that would take too many bends, and where a program's loop leads back up, edges go around everything.
    3. Rows are sorted by the mean position of the neighbours above, then below, a few times.
    4. Boxes and bends that continue each other are chains; a chain is straight, the longer the straighter.

Edges run in rows only where they have a bend, and rows keep boxes and bends apart: no edge goes through a box.
"""

from __future__ import annotations

from dataclasses import dataclass

ROW, HEIGHT, GAP, BEND, LANE = 84.0, 40.0, 28.0, 14.0, 8.0
"""The distance of rows, the height of a box, the space between boxes, the width of a bend and of a way around."""
LANES, TURN = 6, 14.0
"""How many ways around there are on each side; how far from a box an edge that takes one turns."""
SWEEPS, PULL, STRAIGHTEN, ASIDE = 4, 3, 4, 300.0
"""How often rows are sorted, chains are pulled together and made straight; how far a chain moves to be straight."""


@dataclass(slots=True)
class Layout:
    """Boxes are numbered as they were given; bends follow them."""

    x: list[float]
    """The middle of each box and bend."""
    row: list[int]
    widths: list[float]
    bends: list[list[int]]
    """For each box, the bends of the line that leads down to it: the last one stands in the row above it."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of all boxes; the ways around them are LANES * LANE wide on each side."""
        right = max((x + w / 2 for x, w in zip(self.x, self.widths, strict=True)), default=0.0)
        return right, max(self.row, default=0) * ROW + HEIGHT

    def bends_of(self, a: int, b: int) -> list[int] | None:
        """The bends of an edge, None if it goes around everything."""
        between = self.row[b] - self.row[a] - 1
        if not 0 <= between <= len(self.bends[b]):
            return None
        return self.bends[b][len(self.bends[b]) - between :]

    def route(self, a: int, b: int, aside: float, width: float) -> tuple[list[tuple[float, float]], bool]:
        """The corners of an edge, from `aside` of the middle of its box, and whether it goes around everything.

        Every second stretch of the others is straight, down through a row. `width` is that of all boxes.
        """
        first, last = (self.x[a] + aside, self.row[a] * ROW + HEIGHT), (self.x[b], self.row[b] * ROW)
        bends = self.bends_of(a, b)
        if bends is None:  # down on the left, back up on the right
            lane = (b % LANES + 1) * LANE
            side, high, low = -lane if last[1] > first[1] else width + lane, first[1] + TURN, last[1] - TURN
            return [first, (first[0], high), (side, high), (side, low), (last[0], low), last], True
        spots = [(self.x[bend], self.row[bend] * ROW + y) for bend in bends for y in (0.0, HEIGHT)]
        return [first, *spots, last], False


def text_width(*texts: str) -> float:
    """The width of a box, from the number of characters: no font is measured."""
    return 26.0 + max(7.6 * len(texts[0]), *(6.4 * len(text) for text in texts[1:]))


def arrange(widths: list[float], edges: list[tuple[int, int]]) -> Layout:
    """Lay out boxes of these widths; an edge that leads back is drawn, but moves nothing. Edges are sorted."""
    count = len(widths)
    order = order_of(count, edges)
    row = rows_of(count, edges, order)
    widths, row = list(widths), list(row)
    longest = [0] * count
    for a, b in edges:
        longest[b] = max(longest[b], row[b] - row[a] - 1)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    bends: list[list[int]] = [[] for _ in range(count)]
    budget = 4 * count + 1000
    for b in sorted(range(count), key=longest.__getitem__):
        if longest[b] > budget:
            break
        budget -= longest[b]
        for step in range(longest[b]):
            bend = len(widths)
            widths.append(BEND)
            row.append(row[b] - longest[b] + step)
            above.append([bend - 1] if step else [])
            below.append([bend + 1 if step < longest[b] - 1 else b])
            bends[b].append(bend)
        if longest[b]:
            above[b].append(len(widths) - 1)
    for a, b in edges:
        span = row[b] - row[a]
        if order[b] <= order[a] or span - 1 > len(bends[b]):
            continue
        to = b if span == 1 else bends[b][len(bends[b]) - span + 1]
        below[a].append(to)
        if span == 1 or span - 1 == len(bends[b]):  # what joins a line on its way does not move it
            above[to].append(a)
    ranks = first_rows(row, below)
    sort_rows(ranks, above, below, len(widths))
    x = spread(ranks, above, below, widths, count)
    left = min((x[i] - widths[i] / 2 for i in range(len(x))), default=0.0)
    return Layout([v - left for v in x], row, widths, bends)


def order_of(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """A place for each box so that edges lead to later ones, but for those that lead back in a loop."""
    if all(a < b for a, b in edges):
        return list(range(count))
    to: list[list[int]] = [[] for _ in range(count)]
    for a, b in reversed(edges):
        to[a].append(b)
    order, free = [-1] * count, count
    seen = [False] * count
    for first in range(count):
        path = [] if seen[first] else [first]
        while path:
            item = path[-1]
            seen[item] = True
            while to[item] and seen[to[item][-1]]:
                to[item].pop()
            if to[item]:
                path.append(to[item].pop())
            else:
                path.pop()
                free -= 1
                order[item] = free
    return order


def rows_of(count: int, edges: list[tuple[int, int]], order: list[int]) -> list[int]:
    """The row of each box."""
    row = [0] * count
    for a, b in sorted(edges, key=lambda edge: order[edge[0]]):
        if order[b] > order[a] and row[b] <= row[a]:
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


def chains_of(ranks: list[list[int]], above: list[list[int]], below: list[list[int]], count: int) -> list[list[int]]:
    """Boxes and bends that continue each other, each in one chain: down the longest way, through boxes if there are."""
    size = len(below)
    height, lead, follow, length = [1] * size, [-1] * size, [-1] * size, [1] * size
    for rank in reversed(ranks):
        for item in rank:
            for to in below[item]:
                best = lead[item]
                if best < 0 or height[to] > height[best] or (height[to] == height[best] and to < count <= best):
                    lead[item] = to
            if lead[item] >= 0:
                height[item] = height[lead[item]] + 1
    chains: list[list[int]] = []
    chain = [-1] * size
    for rank in ranks:
        for item in rank:
            for a in above[item]:
                if lead[a] == item and (follow[item] < 0 or length[a] > length[follow[item]]):
                    follow[item] = a
            if follow[item] < 0:
                chain[item] = len(chains)
                chains.append([])
            else:
                chain[item], length[item] = chain[follow[item]], length[follow[item]] + 1
            chains[chain[item]].append(item)
    return chains


def spread(
    ranks: list[list[int]], above: list[list[int]], below: list[list[int]], widths: list[float], count: int
) -> list[float]:
    """The middle of every box: near its neighbours above and below in turn, then in line with its chain."""
    x = [0.0] * len(widths)
    for rank in ranks:
        end = 0.0
        for item in rank:
            x[item] = end + widths[item] / 2
            end += widths[item] + GAP
        for item in rank:
            x[item] -= (end - GAP) / 2
    weight = [1.0] * len(widths)
    for sweep in range(2 * SWEEPS + 1):
        near = below if sweep % 2 else above
        for rank in reversed(ranks) if sweep % 2 else ranks:
            settle(rank, [mean(near[item], x, x[item]) for item in rank], weight, widths, x)
    chains = chains_of(ranks, above, below, count)
    most = max(map(len, chains), default=0)
    for chain in chains:
        for item in chain:
            weight[item] = float(len(chain)) ** 2
    wished = [0.0] * len(chains)
    for sweep in range(PULL + STRAIGHTEN):
        for i, chain in enumerate(chains):
            middle = mean(chain, x, 0.0)
            if sweep < (PULL if len(chain) > 2 else PULL + STRAIGHTEN - 1):  # towards what it hangs on
                if len(chain) < most:
                    middle = mean([*above[chain[0]], *below[chain[-1]]], x, middle)
            else:  # out of the way of the widest thing beside it, if that is not too far
                for item in chain:
                    if abs(middle - wished[i]) < abs(x[item] - wished[i]) <= ASIDE:
                        middle = x[item]
            wished[i] = middle
        for i, chain in enumerate(chains):
            for item in chain:
                x[item] = wished[i]
        for rank in ranks:
            settle(rank, [x[item] for item in rank], weight, widths, x)
    return x


def settle(rank: list[int], wished: list[float], weight: list[float], widths: list[float], x: list[float]) -> None:
    """Put the boxes of a row where they do not touch, nearest to the wished places (weighted least squares)."""
    starts: list[float] = []
    sums: list[float] = []
    weights: list[float] = []
    counts: list[int] = []
    offset = 0.0
    for i, item in enumerate(rank):
        if i:
            offset += (widths[rank[i - 1]] + widths[item]) / 2 + GAP
        starts.append(offset)
        sums.append((wished[i] - offset) * weight[item])
        weights.append(weight[item])
        counts.append(1)
        while len(sums) > 1 and sums[-2] / weights[-2] > sums[-1] / weights[-1]:
            total, heavy, many = sums.pop(), weights.pop(), counts.pop()
            sums[-1] += total
            weights[-1] += heavy
            counts[-1] += many
    place = 0
    for total, heavy, many in zip(sums, weights, counts, strict=True):
        for _ in range(many):
            x[rank[place]] = starts[place] + total / heavy
            place += 1
