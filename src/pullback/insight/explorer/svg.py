"""The graph as a picture: SVG that stands alone, readable in black and white."""

from __future__ import annotations

from collections import Counter
from html import escape
from itertools import pairwise

from pullback.insight.explorer.collect import Graph
from pullback.insight.explorer.grouped import Box, boxes_of
from pullback.insight.explorer.layout import HEIGHT, LANE, LANES, ROW, TURN, arrange, text_width

MARGIN = 16
STYLE = (
    ".pullback text{font:11px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;text-anchor:middle;fill:#5b6778}"
    ".pullback .t{font-size:12px;font-weight:600;fill:#1b2430}.pullback rect{stroke-width:1.2}"
    ".pullback path{fill:none;stroke:#8a95a3}.pullback .op{fill:#e8effb;stroke:#6f93d6}"
    ".pullback .view{fill:#eef0f3;stroke:#a3adba}.pullback .function{fill:#f1e9fb;stroke:#a783dd}"
    ".pullback .leaf{fill:#e4f4e8;stroke:#5fae78}.pullback .group{fill:#fff4dc;stroke:#d8a63c}"
    ".pullback .bad{stroke:#c8102e;stroke-width:2}"
)
"""Every rule names the picture, since a notebook holds other things too."""
ARROW = (
    '<marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" style="fill:#8a95a3;stroke:none"/></marker>'
)


def svg(graph: Graph, group: str | None = None) -> str:
    """The picture: loss at the top, gradients downwards."""
    boxes, edges = boxes_of(graph, group)
    layout = arrange([text_width(box.title, box.more) for box in boxes], edges)
    width, height = layout.size
    around = any(layout.bends_of(a, b) is None for a, b in edges)
    left, top = MARGIN + (LANES + 1) * LANE * around, MARGIN + TURN * around
    wide, high = f"{width + 2 * left:.0f}", f"{height + 2 * top:.0f}"
    seen = f"{-left:.0f} {-top:.0f} {wide} {high}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="{seen}" '
        f'role="img" class="pullback"><title>{escape(graph.title)}</title><style>{STYLE}</style><defs>{ARROW}</defs>'
    ]
    many, used = Counter(a for a, _ in edges), Counter[int]()
    for a, b in edges:
        gap = min(16.0, layout.widths[a] / (many[a] + 1))
        parts.append(
            edge(*layout.route(a, b, (used[a] - (many[a] - 1) / 2) * gap, width), layout.row[b] <= layout.row[a])
        )
        used[a] += 1
    parts += [drawn(box, layout.x[i], layout.row[i] * ROW, layout.widths[i]) for i, box in enumerate(boxes)]
    return "\n".join([*parts, "</svg>\n"])


def edge(spots: list[tuple[float, float]], around: bool, back: bool) -> str:
    """A line through the corners of an edge, curved between rows; dashed where it leads back up."""
    steps = [f"M{spots[0][0]:.1f} {spots[0][1]:.1f}"]
    for n, ((x, y), (to_x, to_y)) in enumerate(pairwise(spots)):
        half = (to_y - y) / 2
        curve = f"C{x:.1f} {y + half:.1f} {to_x:.1f} {to_y - half:.1f} " if not around and n % 2 == 0 else "L"
        steps.append(f"{curve}{to_x:.1f} {to_y:.1f}")
    dashes = ' stroke-dasharray="6 4"' * back
    return f'<path d="{"".join(steps)}"{dashes} marker-end="url(#a)"/>'


def drawn(box: Box, x: float, y: float, width: float) -> str:
    """A box with its two lines; what else is known appears when the pointer rests on it."""
    round_ = HEIGHT / 2 if box.kind == "leaf" else 8
    bad = " bad" if any(entry.error for entry in box.entries) else ""
    first = box.entries[0]
    told = [box.title, box.more, first.module, f"gradient norm {first.norm}" if first.norm is not None else ""]
    return (
        f'<g><title>{escape(chr(10).join(filter(None, told)))}</title><rect class="{box.kind}{bad}" '
        f'x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{HEIGHT:.0f}" rx="{round_:.0f}"/>'
        f'<text class="t" x="{x:.1f}" y="{y + 18:.1f}">{escape(box.title)}</text>'
        f'<text x="{x:.1f}" y="{y + 32:.1f}">{escape(box.more)}</text></g>'
    )
