"""The graph as a picture: SVG that stands alone, readable in black and white."""

from __future__ import annotations

from collections import Counter
from html import escape

from pullback.insight.explorer.collect import Graph
from pullback.insight.explorer.grouped import Box, boxes_of
from pullback.insight.explorer.layout import HEIGHT, ROW, Layout, arrange, text_width

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
    if any(layout.row[b] <= layout.row[a] for a, b in edges):
        width, height = width + 60, height + 30
    size = f"{width + 2 * MARGIN:.0f} {height + 2 * MARGIN:.0f}"
    wide, high = size.split()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="{-MARGIN} {-MARGIN} {size}" '
        f'role="img" class="pullback"><title>{escape(graph.title)}</title><style>{STYLE}</style><defs>{ARROW}</defs>'
    ]
    many, used = Counter(a for a, _ in edges), Counter[int]()
    for k, (a, b) in enumerate(edges):
        gap = min(16.0, layout.widths[a] / (many[a] + 1))
        parts.append(edge(layout, k, a, b, (used[a] - (many[a] - 1) / 2) * gap))
        used[a] += 1
    parts += [drawn(box, layout.x[i], layout.row[i] * ROW, layout.widths[i]) for i, box in enumerate(boxes)]
    return "\n".join([*parts, "</svg>\n"])


def edge(layout: Layout, k: int, a: int, b: int, aside: float) -> str:
    """A curve through the bends of an edge, from `aside` of the middle of its box."""
    x, y = layout.x[a] + aside, layout.row[a] * ROW + HEIGHT
    steps = [f"M{x:.1f} {y:.1f}"]
    if layout.row[b] <= layout.row[a]:
        return loop(x, y, layout.x[b], layout.row[b] * ROW, layout.x[b] + layout.widths[b] / 2)
    points = [(layout.x[bend], layout.row[bend] * ROW + HEIGHT / 2) for bend in layout.paths[k]]
    for to_x, to_y in (*points, (layout.x[b], layout.row[b] * ROW)):
        half = (to_y - y) / 2
        steps.append(f"C{x:.1f} {y + half:.1f} {to_x:.1f} {to_y - half:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return f'<path d="{"".join(steps)}" marker-end="url(#a)"/>'


def loop(x: float, y: float, to_x: float, to_y: float, right: float) -> str:
    """An edge that leads back up, around the right side."""
    side = max(x + 40, right) + 40
    steps = f"M{x:.1f} {y:.1f}C{x:.1f} {y + 40:.1f} {side:.1f} {y + 40:.1f} {side:.1f} {(y + to_y) / 2:.1f}"
    steps += f"C{side:.1f} {to_y - 40:.1f} {to_x:.1f} {to_y - 40:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path d="{steps}" stroke-dasharray="6 4" marker-end="url(#a)"/>'


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
