"""Where the lines of a picture run: points on them, and the boxes they go through."""

from itertools import pairwise

from pullback.insight.explorer.layout import HEIGHT, ROW


def points(spots, around, parts=24):
    """Points on an edge, drawn through its corners as pictures and the page draw it."""
    for n, ((x, y), (to_x, to_y)) in enumerate(pairwise(spots)):
        for step in range(parts + 1):
            t = step / parts
            if around or n % 2:
                yield x + t * (to_x - x), y + t * (to_y - y)
            else:
                half = (to_y - y) / 2
                a, b, c, d = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
                yield (a + b) * x + (c + d) * to_x, a * y + b * (y + half) + c * (to_y - half) + d * to_y


def crossings(routes, x, row, widths):
    """(edge, box) for every point of an edge inside a box; edges end at the rims of boxes, which are not inside."""
    rows = {}
    for box, where in enumerate(row[: len(widths)]):
        rows.setdefault(where, []).append(box)
    found = []
    for number, (spots, around) in enumerate(routes):
        for px, py in points(spots, around):
            where = int(py // ROW)
            if 0.5 < py - where * ROW < HEIGHT - 0.5:
                found += [(number, box) for box in rows.get(where, ()) if abs(px - x[box]) < widths[box] / 2 - 0.5]
    return found
